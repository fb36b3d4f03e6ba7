"""How figures look: the style of print, how it is saved, and which colour, marker and line a curve has.

Colour and marker say which learner it is, so that neither colour-blind readers nor grey print lose it; the line says
what it is: solid for the paper's and the user's, broken for the fair variants, dashed for bounds, dotted for bounds as
printed. From the ninth curve on, where colours come again, the line is broken another way with each repetition: among
so many curves no markers are drawn. Figures on paper and on the page look alike.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from longterm._arrays import FloatArray
from longterm.experiments.result import Role
from longterm.storage.files import write_atomically

WITHOUT_DATES: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
"""The endings of a figure's files, and what keeps their bytes the same whenever it is drawn."""

_STYLE: dict[Any, Any] = {
    "font.family": "serif",
    "mathtext.fontset": "dejavuserif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": "cycler('color', ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9'])",
    "lines.linewidth": 1.6,
    "savefig.dpi": 200,
    "svg.hashsalt": "longterm",
    "pdf.fonttype": 42,  # publishers refuse matplotlib's default, Type 3
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,  # figures say it themselves
}


@contextmanager
def publication_style() -> Iterator[Any]:
    """`matplotlib.pyplot`, drawing to files, in the style of a paper; figures are closed afterwards."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'longterm[experiments]'") from error
    mpl.use("agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context(_STYLE):
        try:
            yield plt
        finally:
            plt.close("all")


def save_figure(drawing: Any, folder: str | Path, name: str) -> list[Path]:
    """Write a figure as NAME.pdf, .svg and .png into a folder, made where it is missing; the same bytes each time."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = [target / f"{name}.{ending}" for ending in WITHOUT_DATES]
    # A name in letters that the font lacks is drawn as boxes; the page has it whole. Beside a formula matplotlib does
    # not warn of it, but logs a line for each letter.
    with warnings.catch_warnings(), _quiet("matplotlib.mathtext"):
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        drawing.draw_without_rendering()
        drawing.set_layout_engine(None)  # laid out once, and not drawn a second time for each file
        for path, (ending, metadata) in zip(paths, WITHOUT_DATES.items(), strict=True):
            write_atomically(path, lambda file, e=ending, m=metadata: drawing.savefig(file, format=e, metadata=m))  # type: ignore[misc]
    return paths


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    log = logging.getLogger(name)
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def plain_log_ticks(axis: Any) -> None:
    """Ticks of a logarithmic axis at 1, 2 and 5 times the powers of ten, in plain numbers, where it is short.

    matplotlib writes 6×10⁰ between two powers, which runs into what stands beside it.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")


class Look(NamedTuple):
    """How one learner is drawn everywhere."""

    colour: str
    """On white: at least 3 to 1 in contrast."""
    on_dark: str
    """The same hue on a dark page."""
    marker: str
    """In matplotlib's letters."""
    shape: str
    """The same as a path about its centre, for pages."""


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
    ("o", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z"),
    ("s", "M-4-4h8v8h-8z"),
    ("^", "M0-5L4.6 3.5H-4.6z"),
    ("D", "M0-5L5 0L0 5L-5 0z"),
    ("v", "M0 5L4.6-3.5H-4.6z"),
    ("X", "M-4.5-2.5L-2.5-4.5L0-2L2.5-4.5L4.5-2.5L2 0L4.5 2.5L2.5 4.5L0 2L-2.5 4.5L-4.5 2.5L-2 0z"),
    ("P", "M-1.6-5h3.2v3.4h3.4v3.2h-3.4v3.4h-3.2v-3.4h-3.4v-3.2h3.4z"),
)
"""One fewer than colours: the two together repeat after 56 curves."""

FAIR = (9.0, 3.0, 2.0, 3.0)
"""Lengths of the strokes and gaps of a fair variant's line, in pixels of a page."""
AGAIN: tuple[tuple[float, ...], ...] = (
    (),
    (14, 3),
    (4, 2),
    (14, 3, 3, 3),
    (8, 5),
    (14, 3, 3, 3, 3, 3),
    (2, 2),
)
"""The same for the first time that a colour is used, the second, and so on; none is solid."""


def dashes(index: int, role: Role) -> tuple[float, ...]:
    """Strokes and gaps of the line of the curve with this index; none where it is solid.

    Examples
    --------
    >>> dashes(0, "own"), dashes(8, "own"), dashes(1, "fair")
    ((), (14, 3), (9.0, 3.0, 2.0, 3.0))
    """
    return FAIR if role == "fair" else AGAIN[index // len(COLOURS) % len(AGAIN)]


def line_style(index: int, role: Role) -> Any:
    """The same as matplotlib wants it, which counts in widths of the line."""
    return (0, tuple(length / 2 for length in dashes(index, role))) if dashes(index, role) else "solid"


def look(index: int) -> Look:
    """The look of the curve with this index.

    Examples
    --------
    >>> look(0) == look(56), look(0) == look(8)
    (True, False)
    """
    return Look(*COLOURS[index % len(COLOURS)], *MARKERS[index % len(MARKERS)])


def in_plain_text(text: str) -> str:
    """Text that matplotlib shows as it stands: a dollar in a user's name starts no formula."""
    return text.replace("$", r"\$")


def leader(colour: str, width: float) -> dict[str, Any]:
    """The thin line from a point to the left edge of its label, as matplotlib wants it described."""
    ends = {"shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)}
    return {"arrowstyle": "-", "color": colour, "linewidth": width, **ends}


def moved_apart(heights: FloatArray, gap: float) -> FloatArray:
    """Places for labels at these heights of a panel, 0 to 1, moved as little as it takes to be a gap apart.

    Examples
    --------
    >>> import numpy as np
    >>> moved_apart(np.array([0.5, 0.1, 0.5]), 0.1).round(3)
    array([0.45, 0.1 , 0.55])
    """
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(heights))
    apart = np.clip(isotonic_regression(np.clip(heights[order], 0, 1) - steps).x, 0, max(0.0, 1 - steps[-1])) + steps
    places = np.empty(len(heights))
    places[order] = apart
    return places
