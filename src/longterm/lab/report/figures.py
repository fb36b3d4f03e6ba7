"""Figures for print as PDF, SVG and PNG: all measures on logarithmic axes, and the paper's view on linear axes."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.lab.experiments.result import LOGGED, Curve, Result
from longterm.lab.report.axes import AxisScale, panels, scale_of
from longterm.lab.report.formats import format_size, page_slug
from longterm.lab.report.names import MEASURE_LATEX, MEASURE_NAMES
from longterm.lab.report.style import (
    curve_style,
    escape_formula,
    line_style,
    publication_style,
    save_figure,
    set_plain_ticks,
)
from longterm.play.engines.figure import Band, band_for, draw_band

LEGEND_WIDTH = 44
"""Characters in a line of the legend."""
AXIS_MARGIN = 0.5
"""The lower end of a logarithmic axis as a share of the smallest mean."""
GREY = "#888888"
"""The colour of the line at 0."""
LINEAR_MEASURES = ("regret", "signed_violation", LOGGED)
"""The measures of the paper's figures."""


SPREAD = {
    "quantiles": "10 % to 90 % of the sequences",
    "range": "smallest to largest of the sequences",
    "ends": "one standard deviation of the sequences",
}
"""The words for bands and error bars of figures."""


def write_figures(
    result: Result, folder: str | Path, *, band: Band | None = None, size: tuple[float, float] | None = None
) -> list[Path]:
    """Draw a result: NAME-log-log and NAME-linear, each as PDF, SVG and PNG.

    The logarithmic figure has every measure with its bounds. An axis with zero or negative values is logarithmic on
    both sides of zero. The linear figure has the paper's measures.

    Parameters
    ----------
    result : Result
        The result to draw.
    folder : str or pathlib.Path
        Created if it is missing.
    band : {"quantiles", "range", "ends", "none"}, optional
        How the sequences are drawn, as in `Comparison.plot`.
    size : pair of float, optional
        Width and height in inches.

    Returns
    -------
    list of pathlib.Path
        The files.
    """
    with publication_style() as plt:
        return [
            path
            for view, draw in (("log-log", draw_log_log), ("linear", draw_linear))
            for path in save_figure(draw(plt, result, band, size), Path(folder), f"{page_slug(result.name)}-{view}")
        ]


def draw_log_log(plt: Any, result: Result, band: Band | None = None, size: tuple[float, float] | None = None) -> Any:
    """Draw one panel for each measure, with bounds, and return the figure."""
    band = band_for(len(result.curves), band)
    groups = panels(result)
    columns = min(2, len(groups))
    rows = -(-len(groups) // columns)
    size = size or (4.4 * columns, 2.75 * rows + _text_height(result))
    drawing = plt.figure(figsize=size, layout="constrained")
    grid = drawing.subplots(rows, columns, squeeze=False).ravel()
    for axis, group in zip(grid, groups, strict=False):
        _draw_log_panel(axis, result, group, band)
    for axis in grid[len(groups) :]:
        axis.remove()
    _draw_legend(drawing, result, band, bounds=True)
    drawing.suptitle(_title(result))
    return drawing


def _draw_log_panel(axis: Any, result: Result, group: tuple[str, ...], band: Band) -> None:
    scale = scale_of(result, group[0])
    values = [curve.mean(group[0]) for curve in result.curves]
    for k, curve in enumerate(result.curves):
        _draw_curve(axis, result, curve, k, group[0], band)
        for known, line in ((curve.bounds, "--"), (curve.printed_bounds, ":")):
            for measure in group:
                if measure in known:
                    values.append(np.asarray(known[measure], dtype=np.float64))
                    _draw_bound(axis, result, values[-1], k, line)
    _set_scale(axis, scale, np.concatenate(values))
    axis.set(xscale="log", xlabel="round $t$")
    name = " = ".join(MEASURE_NAMES[m].lower() if i else MEASURE_NAMES[m] for i, m in enumerate(group))
    axis.set_title(name, loc="left", fontsize=10)
    formula = MEASURE_LATEX[group[0]]
    axis.set_ylabel(formula if scale.kind == "log" else f"{formula}\n(linear within ±{scale.threshold:g})", fontsize=8)
    axis.grid(visible=True, which="major", alpha=0.3)


def _draw_bound(axis: Any, result: Result, bound: FloatArray, index: int, line: str) -> None:
    step, style = max(1, len(result.rounds) // 4), curve_style(index)
    axis.plot(
        result.rounds, np.where(np.isfinite(bound), bound, np.nan), line, color=style.colour, linewidth=1.1,
        marker=style.marker, markersize=3.5, markerfacecolor="white", markevery=(step // 2, step),
    )  # fmt: skip


def _set_scale(axis: Any, scale: AxisScale, values: FloatArray) -> None:
    """Set the vertical axis and its limits."""
    finite = values[np.isfinite(values)]
    if scale.kind == "log":
        axis.set_yscale("log")
        low, high = AXIS_MARGIN * finite[finite > 0].min(), finite.max() / AXIS_MARGIN
        axis.set_ylim(low, high)
        if high < 100 * low:
            set_plain_ticks(axis.yaxis)
        return
    axis.set_yscale("symlog", linthresh=scale.threshold)
    low, high = min(finite.min(), 0.0), max(finite.max(), 0.0)
    margin = 0.3 * scale.threshold
    axis.set_ylim(low / AXIS_MARGIN if low < 0 else -margin, high / AXIS_MARGIN if high > 0 else margin)
    axis.axhline(0, color="black", linewidth=0.6)


def draw_linear(plt: Any, result: Result, band: Band | None = None, size: tuple[float, float] | None = None) -> Any:
    """Draw the paper's measures on linear axes, without bounds, and return the figure."""
    band = band_for(len(result.curves), band)
    measures = [measure for measure in LINEAR_MEASURES if measure in result.measures]
    drawing = plt.figure(figsize=size or (4.4 * len(measures), 3.0 + _text_height(result)), layout="constrained")
    for axis, measure in zip(drawing.subplots(1, len(measures)), measures, strict=True):
        _draw_linear_panel(axis, result, measure, band)
        axis.locator_params(axis="x", nbins=6 if len(measures) == 2 else 4)
    _draw_legend(drawing, result, band, bounds=False)
    drawing.suptitle(_title(result))
    return drawing


def _draw_linear_panel(axis: Any, result: Result, measure: str, band: Band) -> None:
    for k, curve in enumerate(result.curves):
        _draw_curve(axis, result, curve, k, measure, band)
    axis.axhline(0, color=GREY, linewidth=0.6)
    axis.set_xlim(0, result.rounds[-1])
    axis.set(xlabel="round $t$", ylabel=MEASURE_LATEX[measure])
    axis.set_title(MEASURE_NAMES[measure], loc="left", fontsize=10)
    axis.grid(visible=True, alpha=0.3)


def _draw_curve(axis: Any, result: Result, curve: Curve, index: int, measure: str, band: Band) -> None:
    """Draw the mean over the sequences, and how far they lie apart."""
    values, style = curve.measures[measure], curve_style(index)
    axis.plot(
        result.rounds, curve.mean(measure), color=style.colour, linestyle=line_style(index, curve.role),
        marker=style.marker, markersize=4, markevery=(0.14 * index / len(result.curves), 0.14),
    )  # fmt: skip
    draw_band(axis, result.rounds, values, style.colour, band)


def _text_height(result: Result) -> float:
    """Return the height of title and legend in inches."""
    lines = sum(len(textwrap.wrap(curve.name, LEGEND_WIDTH)) for curve in result.curves)
    return 0.2 + 0.16 * (lines / _legend_columns(result) + 2) + 0.2 * len(_title(result).splitlines())


def _legend_columns(result: Result) -> int:
    return 4 if len(result.curves) > 16 and max(len(curve.name) for curve in result.curves) <= 30 else 2


def _draw_legend(drawing: Any, result: Result, band: Band, *, bounds: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: list[tuple[Any, str]] = []
    for k, curve in enumerate(result.curves):
        style = curve_style(k)
        line = Line2D(
            [], [], color=style.colour, linestyle=line_style(k, curve.role), marker=style.marker, markersize=4
        )
        entries.append((line, escape_formula(textwrap.fill(curve.name, LEGEND_WIDTH))))
    if bounds and any(curve.bounds for curve in result.curves):
        entries.append((Line2D([], [], color="black", linestyle="--", linewidth=1.1), "bound, in its colour"))
    if bounds and any(curve.printed_bounds for curve in result.curves):
        entries.append((Line2D([], [], color="black", linestyle=":", linewidth=1.1), "bound as printed in the paper"))
    if len(result.seeds) > 1 and band != "none":
        entries.append((Patch(color="black", alpha=0.2, linewidth=0), SPREAD[band]))
    handles, labels = zip(*entries, strict=True)
    columns = _legend_columns(result)
    drawing.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8, handlelength=3.2
    )


def _title(result: Result) -> str:
    title = textwrap.fill(textwrap.shorten(result.title, 130), 84)
    return escape_formula(f"{title}\n{format_size(result)}")
