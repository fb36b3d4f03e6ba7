"""Figures for print: the logarithmic and the paper's linear view, as PDF, SVG and PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from longterm.experiments.result import Result
from longterm.report.linear import draw_linear
from longterm.report.log_log import draw_log_log
from longterm.report.style import publication_style
from longterm.report.words import slug

VIEWS = {"log-log": draw_log_log, "linear": draw_linear}
NO_DATES: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
"""The same result gives the same bytes, whenever it is drawn."""


def write_figures(result: Result, folder: str | Path) -> list[Path]:
    """Draw a result into `folder` (made where it is missing): NAME-log-log and NAME-linear, each as PDF, SVG and PNG.

    The logarithmic view has every measure with its deviation, bounds and slopes; an axis whose data are zero or
    negative somewhere is logarithmic on both sides of zero, so that nothing is left out. The linear view is the
    paper's.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    with publication_style() as plt:
        for view, draw in VIEWS.items():
            drawing = draw(plt, result)
            drawing.draw_without_rendering()
            drawing.set_layout_engine("none")  # laid out once, and not again for each file
            for ending, metadata in NO_DATES.items():
                path = target / f"{slug(result.name)}-{view}.{ending}"
                drawing.savefig(path, metadata=metadata)
                paths.append(path)
    return paths
