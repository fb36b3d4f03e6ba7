"""Which colour, marker and line a curve has, in figures on paper and on the page alike.

Colour and marker say which learner it is, so that neither colour-blind readers nor grey print lose it; the line says
what it is: solid for the paper's and the user's, broken for the fair variants, dashed for bounds, dotted for bounds as
printed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from longterm.experiments.result import Role


class Look(NamedTuple):
    """How one learner is drawn everywhere."""

    colour: str
    """On white: at least 3 to 1 in contrast."""
    on_dark: str
    """The same hue on a dark page."""
    marker: str
    """In matplotlib's letters."""
    symbol: str
    """The same shape in plotly's words."""


COLOURS = (
    ("#0072B2", "#5AB4F0"),
    ("#D55E00", "#FF9147"),
    ("#00825F", "#35CFA2"),
    ("#8C2D6B", "#E58AC6"),
    ("#946B00", "#E3B53A"),
    ("#4D4D4D", "#C4C9CF"),
    ("#5B4FC4", "#A79EFF"),
    ("#B3202C", "#FF7B83"),
)
"""Blue, vermilion, green, purple, ochre, grey, violet, red; the first four as Okabe and Ito chose them, darkened."""

MARKERS = (
    ("o", "circle"),
    ("s", "square"),
    ("^", "triangle-up"),
    ("D", "diamond"),
    ("v", "triangle-down"),
    ("X", "x"),
    ("P", "cross"),
)
"""One fewer than colours: the two together repeat after 56 curves."""

DASHES: dict[Role, Literal["solid", "dashdot"]] = {"paper": "solid", "fair": "dashdot", "own": "solid"}
"""Line styles, which matplotlib and plotly call the same."""


def look(index: int) -> Look:
    """The look of the curve with this index.

    >>> look(0) == look(56), look(0) == look(8)
    (True, False)
    """
    return Look(*COLOURS[index % len(COLOURS)], *MARKERS[index % len(MARKERS)])
