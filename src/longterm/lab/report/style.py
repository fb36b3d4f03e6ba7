"""Colours, markers and lines of curves, and the files of figures.

A curve has a colour and a marker, so that it can be recognised in grey print and with colour blindness. Its line is
solid for the paper's and the user's curves and broken for fair variants. From the ninth curve on, where colours
repeat, lines are broken in other ways. Bounds are dashed, printed bounds dotted. Figures and pages use the same styles.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from longterm._base.extras import missing_extra
from longterm.lab.experiments.records import write_file
from longterm.lab.experiments.result import Role

FORMATS: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
"""The formats of a figure, with metadata that make the bytes reproducible."""


@contextmanager
def publication_style() -> Iterator[Any]:
    """Yield `matplotlib.pyplot` with the style of a paper; close its figures afterwards."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise missing_extra("figures need Matplotlib", "experiments") from error
    mpl.use("agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context(MATPLOTLIB_STYLE):
        try:
            yield plt
        finally:
            plt.close("all")


def save_figure(drawing: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as NAME.pdf, .svg and .png; equal figures give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    log = logging.getLogger("matplotlib.mathtext")  # logs a line for each letter that a font lacks
    level = log.level
    log.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        drawing.draw_without_rendering()
        drawing.set_layout_engine(None)  # the layout is computed once, not for each file
        for kind, metadata in FORMATS.items():
            content = io.BytesIO()
            drawing.savefig(content, format=kind, metadata=metadata)
            paths.append(folder / f"{name}.{kind}")
            write_file(paths[-1], content.getvalue())
    log.setLevel(level)
    return paths


class CurveStyle(NamedTuple):
    """The colour and the marker of a curve."""

    colour: str
    """On white, with a contrast of at least 3 to 1."""
    on_dark: str
    """The same hue on a dark page."""
    marker: str
    """Matplotlib's letter."""
    shape: str
    """The marker as an SVG path around its centre."""


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
"""On white and on dark. The first four are those of Okabe and Ito, darkened."""
MATPLOTLIB_STYLE: dict[Any, Any] = {
    "font.family": "serif",
    "mathtext.fontset": "dejavuserif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": f"cycler('color', {[on_white for on_white, _ in COLOURS]})",
    "lines.linewidth": 1.6,
    "savefig.dpi": 200,
    "svg.hashsalt": "longterm",
    "pdf.fonttype": 42,  # publishers refuse Type 3 fonts, matplotlib's default
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
}
MARKERS = (
    ("o", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z"),
    ("s", "M-4-4h8v8h-8z"),
    ("^", "M0-5L4.6 3.5H-4.6z"),
    ("D", "M0-5L5 0L0 5L-5 0z"),
    ("v", "M0 5L4.6-3.5H-4.6z"),
    ("X", "M-4.5-2.5L-2.5-4.5L0-2L2.5-4.5L4.5-2.5L2 0L4.5 2.5L2.5 4.5L0 2L-2.5 4.5L-4.5 2.5L-2 0z"),
    ("P", "M-1.6-5h3.2v3.4h3.4v3.2h-3.4v3.4h-3.2v-3.4h-3.4v-3.2h3.4z"),
)
"""One fewer than colours, so that the pairs repeat after 56 curves."""
FAIR_DASHES = (9.0, 3.0, 2.0, 3.0)
"""Strokes and gaps of a fair variant's line, in pixels."""
REPEATED_DASHES: tuple[tuple[float, ...], ...] = (
    *((), (14, 3), (4, 2), (14, 3, 3, 3)),
    *((8, 5), (14, 3, 3, 3, 3, 3), (2, 2)),
)
"""Strokes and gaps for the first use of a colour (solid), the second, and so on."""


def curve_style(index: int) -> CurveStyle:
    """Return the colour and the marker of the curve with this index.

    Examples
    --------
    >>> curve_style(0) == curve_style(56), curve_style(0) == curve_style(8)
    (True, False)
    """
    return CurveStyle(*COLOURS[index % len(COLOURS)], *MARKERS[index % len(MARKERS)])


def dashes(index: int, role: Role) -> tuple[float, ...]:
    """Return the strokes and gaps of a curve's line; empty if it is solid.

    Examples
    --------
    >>> dashes(0, "own"), dashes(8, "own"), dashes(1, "fair")
    ((), (14, 3), (9.0, 3.0, 2.0, 3.0))
    """
    return FAIR_DASHES if role == "fair" else REPEATED_DASHES[index // len(COLOURS) % len(REPEATED_DASHES)]


def line_style(index: int, role: Role) -> Any:
    """Return the dashes for Matplotlib, in units of the line's width."""
    return (0, tuple(length / 2 for length in dashes(index, role))) if dashes(index, role) else "solid"


def escape_formula(text: str) -> str:
    """Return text that Matplotlib does not parse as a formula."""
    return text.replace("$", r"\$")


def set_plain_ticks(axis: Any) -> None:
    """Set ticks at 1, 2 and 5 times the powers of ten: Matplotlib's 6×10⁰ is too wide for a short axis."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
