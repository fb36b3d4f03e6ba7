"""How figures look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
}


@contextmanager
def publication_style() -> Iterator[Any]:
    """`matplotlib.pyplot`, drawing to files, in the style of a paper; figures are closed afterwards."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError("figures need matplotlib: install longterm[experiments]") from error
    mpl.use("agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context(_STYLE):
        try:
            yield plt
        finally:
            plt.close("all")
