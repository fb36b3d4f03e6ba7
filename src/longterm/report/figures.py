"""Figures for print: the logarithmic and the paper's linear view, as PDF, SVG and PNG."""

from __future__ import annotations

from pathlib import Path

from longterm.experiments.result import Result
from longterm.report.linear import draw_linear
from longterm.report.log_log import draw_log_log
from longterm.report.style import publication_style, save_figure
from longterm.report.words import slug

VIEWS = {"log-log": draw_log_log, "linear": draw_linear}


def write_figures(result: Result, folder: str | Path) -> list[Path]:
    """Draw a result: NAME-log-log and NAME-linear, each as PDF, SVG and PNG.

    The logarithmic view has every measure with its deviation, bounds and slopes; an axis whose data are zero or
    negative somewhere is logarithmic on both sides of zero, so that nothing is left out. The linear view is the
    paper's.

    Parameters
    ----------
    result : Result
        What to draw.
    folder : str or pathlib.Path
        Made where it is missing.

    Returns
    -------
    list of pathlib.Path
        The files that were written.
    """
    with publication_style() as plt:
        return [
            path
            for view, draw in VIEWS.items()
            for path in save_figure(draw(plt, result), folder, f"{slug(result.name)}-{view}")
        ]
