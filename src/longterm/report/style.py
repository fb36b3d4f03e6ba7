"""How figures look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


def save_figure(drawing: Any, folder: str | Path, name: str) -> list[Path]:
    """Write a figure as PDF, SVG and PNG, the same bytes each time.

    Parameters
    ----------
    drawing : matplotlib.figure.Figure
    folder : str or pathlib.Path
        Made where it is missing.
    name : str
        Of the files, without the ending.

    Returns
    -------
    list of pathlib.Path
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    drawing.draw_without_rendering()
    drawing.set_layout_engine("none")  # laid out once, and not again for each file
    paths = []
    for ending, metadata in WITHOUT_DATES.items():
        path = target / f"{name}.{ending}"
        write_atomically(path, lambda file, e=ending, m=metadata: drawing.savefig(file, format=e, metadata=m))  # type: ignore[misc]
        paths.append(path)
    return paths
