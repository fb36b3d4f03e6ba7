"""Figures for print: the logarithmic and the paper's linear view, as PDF, SVG and PNG.

The logarithmic view has every measure, with bands, bounds, names and slopes. The paper's own has linear axes, regret
beside the signed violation, the low curves enlarged as in its Figure 2.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.experiments.result import LOGGED, Curve, Result
from longterm.report.style import (
    in_plain_text,
    leader,
    line_style,
    look,
    moved_apart,
    plain_log_ticks,
    publication_style,
    save_figure,
)
from longterm.report.words import (
    MEASURE_MATHEMATICS,
    MEASURE_NAMES,
    Scale,
    extent,
    last_decade_slope,
    panels,
    scale_of,
    slug,
)

LEGEND_WIDTH = 44
"""Letters in a line of the legend; longer names go on in the next."""
LABEL_GAP = 0.072
"""Between two names beside a panel, as a share of its height."""
LABEL_SIZE = 8.0
"""Of these, in points, unless there are too many."""
MOST_NAMED = 30
"""Names beside a panel; more would be too small to read, and the legend has them."""
NAME_WIDTH = 26
"""Letters of a name beside a panel."""
LOWER_END = 0.5
"""The lower end of a logarithmic axis, as a share of the least mean: a band may leave it there."""
SHOWN = ("regret", "signed_violation", LOGGED)
"""The last where the result has it: what the paper's Figure 4 shows, beside the sum over all rounds."""
GAP = 3.0
"""The low curves are those below the widest gap; where it is narrower than this no inset is drawn."""
LOW = 0.2
"""Curves that go further than this share of the highest are plain to see without an inset."""
SIZES = ((0.5, 0.42), (0.46, 0.36), (0.42, 0.32), (0.38, 0.28), (0.36, 0.24))
"""Widths and heights that the inset may have, as shares of the panel, the preferred first."""
LEFT, RIGHT, BELOW = 0.14, 0.05, 0.1
"""Room for the inset's own numbers beside and below it."""


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
            for view, draw in (("log-log", draw_log_log), ("linear", draw_linear))
            for path in save_figure(draw(plt, result), folder, f"{slug(result.name)}-{view}")
        ]


def draw_log_log(plt: Any, result: Result) -> Any:
    """One panel for each measure. Beside each line stand its name and its growth, t^a, fitted over the last decade."""
    groups = panels(result)
    columns = min(2, len(groups))
    rows = -(-len(groups) // columns)
    drawing = plt.figure(figsize=(4.9 * columns, 2.75 * rows + height_of_words(result)), layout="constrained")
    grid = drawing.subplots(rows, columns, squeeze=False).ravel()
    for axis, group in zip(grid, groups, strict=False):
        _panel(axis, result, group)
    for axis in grid[len(groups) :]:
        axis.remove()
    outside_legend(drawing, result, bounds=True)
    drawing.suptitle(title_of(result))
    return drawing


def _panel(axis: Any, result: Result, group: tuple[str, ...]) -> None:
    scale = scale_of(result, group[0])
    labels: list[tuple[float, str, str]] = []
    for k, curve in enumerate(result.curves):
        draw_curve(axis, result, curve, k, group[0])
        labels += _label(result, curve.mean(group[0]), look(k).colour, short_name(curve.name))
        for measure, bound in _bounds(curve, group, printed=False):
            _draw_bound(axis, result, bound, look(k).colour, look(k).marker, "--")
            if measure == group[0]:
                labels += _label(result, bound, look(k).colour, "its bound")
        for _, bound in _bounds(curve, group, printed=True):
            _draw_bound(axis, result, bound, look(k).colour, look(k).marker, ":")
    shown = np.concatenate([curve.mean(group[0]) for curve in result.curves])
    bounds = [b for c in result.curves for printed in (False, True) for _, b in _bounds(c, group, printed=printed)]
    _set_scale(axis, scale, np.concatenate([shown, *bounds]))
    axis.set(xscale="log", xlabel="round $t$")
    name = " = ".join(MEASURE_NAMES[m].lower() if i else MEASURE_NAMES[m] for i, m in enumerate(group))
    axis.set_title(name, loc="left", fontsize=10)
    formula = MEASURE_MATHEMATICS[group[0]]
    axis.set_ylabel(formula if scale.kind == "log" else f"{formula}\n(linear within ±{scale.threshold:g})", fontsize=8)
    axis.grid(visible=True, which="major", alpha=0.3)
    _write_beside(axis, result, labels)


def _bounds(curve: Curve, group: tuple[str, ...], *, printed: bool) -> list[tuple[str, FloatArray]]:
    known = curve.printed_bounds if printed else curve.bounds
    return [(measure, np.asarray(known[measure], dtype=np.float64)) for measure in group if measure in known]


def _draw_bound(axis: Any, result: Result, bound: FloatArray, colour: str, marker: str, line: str) -> None:
    few = max(1, len(result.rounds) // 4)
    axis.plot(
        result.rounds, np.where(np.isfinite(bound), bound, np.nan), line, color=colour, linewidth=1.1,
        marker=marker, markersize=3.5, markerfacecolor="white", markevery=(few // 2, few),
    )  # fmt: skip


def _set_scale(axis: Any, scale: Scale, values: FloatArray) -> None:
    finite = values[np.isfinite(values)]
    if scale.kind == "log":
        axis.set_yscale("log")
        low, high = LOWER_END * finite[finite > 0].min(), finite.max() / LOWER_END
        axis.set_ylim(low, high)
        if high < 100 * low:
            plain_log_ticks(axis.yaxis)
        return
    axis.set_yscale("symlog", linthresh=scale.threshold)
    low, high = min(finite.min(), 0.0), max(finite.max(), 0.0)
    axis.set_ylim(
        low / LOWER_END if low < 0 else -0.3 * scale.threshold, high / LOWER_END if high > 0 else 0.3 * scale.threshold
    )
    axis.axhline(0, color="black", linewidth=0.6)


def short_name(name: str) -> str:
    """A name that fits beside a panel; the legend has all of it."""
    return in_plain_text(textwrap.shorten(name, NAME_WIDTH, placeholder="…"))


def _label(result: Result, values: FloatArray, colour: str, what: str) -> list[tuple[float, str, str]]:
    """Where the label belongs, its colour and its text: the name, and its growth where one can be fitted."""
    slope = last_decade_slope(result.rounds, values)
    if not np.isfinite(values[-1]):
        return []
    if slope is None:
        return [(float(values[-1]), colour, what)]
    sign = "-" if values[-1] < 0 else ""
    growth = f"${sign}t^{{\\,{abs(slope) if abs(slope) < 0.005 else slope:.2f}}}$"
    return [(float(values[-1]), colour, f"{what} {growth}")]


def _write_beside(axis: Any, result: Result, labels: list[tuple[float, str, str]]) -> None:
    """Each name at the height of its line's end, moved apart as little as it takes; equal bounds once."""
    if not 0 < len(labels) <= MOST_NAMED:
        return
    labels = sorted({(value, text): (value, colour, text) for value, colour, text in reversed(labels)}.values())
    ends = np.array([(result.rounds[-1], value) for value, _, _ in labels], dtype=np.float64)
    heights = np.clip(axis.transAxes.inverted().transform(axis.transData.transform(ends))[:, 1], 0, 1)
    gap = min(LABEL_GAP, 1 / len(labels))
    size = LABEL_SIZE * min(1.0, gap / LABEL_GAP)
    apart = moved_apart(heights, gap)
    right = float(axis.transAxes.inverted().transform(axis.transData.transform(ends))[0, 0])
    for (_, colour, text), height, place in zip(labels, heights, apart, strict=True):
        axis.annotate(
            text, (right, height), (1.05, place), xycoords="axes fraction",
            textcoords="axes fraction", va="center", fontsize=size, color=colour, annotation_clip=False,
            arrowprops=leader(colour, 0.5),
        )  # fmt: skip


def draw_linear(plt: Any, result: Result) -> Any:
    """A panel for each. Bounds are left to the logarithmic figure: they would press the curves flat."""
    shown = [measure for measure in SHOWN if measure in result.measures]
    drawing = plt.figure(figsize=(4.2 * len(shown), 3.0 + height_of_words(result)), layout="constrained")
    for axis, measure in zip(drawing.subplots(1, len(shown)), shown, strict=True):
        for k, curve in enumerate(result.curves):
            draw_curve(axis, result, curve, k, measure)
        axis.axhline(0, color="black", linewidth=0.6)
        axis.set_xlim(0, result.rounds[-1])
        axis.locator_params(axis="x", nbins=6 if len(shown) == 2 else 4)  # numbers of six digits fit
        axis.set_xlabel("round $t$")
        axis.set_ylabel(MEASURE_MATHEMATICS[measure])
        axis.set_title(MEASURE_NAMES[measure], loc="left", fontsize=10)
        axis.grid(visible=True, alpha=0.3)
        low = low_curves(largest(result, measure))
        if low:
            _inset(axis, result, measure, low)
    outside_legend(drawing, result, bounds=False)
    drawing.suptitle(title_of(result))
    return drawing


def low_curves(heights: list[float]) -> list[int]:
    """Indices of the curves that the others press against zero, by the widest gap; none where there is no such gap.

    Examples
    --------
    >>> low_curves([4.0, 1.0, 8.2, 527.0, 257.0, 64.0]), low_curves([33.0, 30.0, 188.0, 83.0])
    ([0, 1, 2], [])
    """
    highest = max(heights)
    if len(heights) < 2 or highest == 0:
        return []
    order = np.argsort(heights, kind="stable")
    ordered = np.maximum(np.asarray(heights)[order], 1e-3 * highest)
    ratios = ordered[1:] / ordered[:-1]
    below = int(np.argmax(ratios)) + 1
    if ratios[below - 1] < GAP or ordered[below - 1] > LOW * highest:
        return []
    return sorted(int(k) for k in order[:below])


def _inset(axis: Any, result: Result, measure: str, low: list[int]) -> None:
    """The same axes again, cut to the low curves, in the emptiest corner."""
    edges = [result.curves[k].measures[measure] for k in low]
    bottom, top = float(np.min(edges)), float(np.max(edges))
    if top - bottom <= 1e-9 * max(largest(result, measure)):
        return  # level lines: there is nothing to see in them from nearby
    margin = 0.08 * (top - bottom) or 1e-3 * max(largest(result, measure))
    zoom = axis.inset_axes(_emptiest_place(axis, result, measure))
    for k, curve in enumerate(result.curves):
        draw_curve(zoom, result, curve, k, measure)
    zoom.set(xlim=(0, result.rounds[-1]), ylim=(bottom - margin, top + margin))
    zoom.tick_params(labelsize=7)
    zoom.locator_params(axis="both", nbins=4)
    zoom.grid(visible=True, alpha=0.3)
    zoom.spines[["top", "right"]].set_visible(True)
    axis.indicate_inset_zoom(zoom, edgecolor="black", alpha=0.4)


def _emptiest_place(axis: Any, result: Result, measure: str) -> tuple[float, float, float, float]:
    """Left, bottom, width and height of the largest inset that covers no curve, or else the fewest points of them."""
    dense = np.linspace(result.rounds[0], result.rounds[-1], 400)
    means = [np.interp(dense, result.rounds, curve.mean(measure)) for curve in result.curves]
    points = np.concatenate([np.column_stack([dense, mean]) for mean in means])
    x, y = axis.transAxes.inverted().transform(axis.transData.transform(points)).T
    places = [
        (float(left), float(bottom), width, height)
        for width, height in SIZES
        for bottom in np.linspace(0.96 - height, BELOW + 0.02, 9)
        for left in np.linspace(LEFT + 0.01, 0.98 - width, 9)
    ]
    covered = [
        np.count_nonzero((x > left - LEFT) & (x < left + width + RIGHT) & (y > bottom - BELOW) & (y < bottom + height))
        for left, bottom, width, height in places
    ]
    return places[int(np.argmin(covered))]


# What both views share: a curve with its band, and a legend that covers nothing.


def draw_curve(axis: Any, result: Result, curve: Curve, index: int, measure: str) -> None:
    """The mean over the sequences, with a band from the least to the greatest of them."""
    values, style = curve.measures[measure], look(index)
    axis.plot(
        result.rounds, curve.mean(measure), color=style.colour, linestyle=line_style(index, curve.role),
        marker=style.marker, markersize=4, markevery=(0.14 * index / len(result.curves), 0.14),
    )  # fmt: skip
    axis.fill_between(result.rounds, values.min(axis=1), values.max(axis=1), color=style.colour, alpha=0.2, linewidth=0)


def height_of_words(result: Result) -> float:
    """What the title takes above the panels and the legend below them, in inches."""
    lines = sum(len(textwrap.wrap(curve.name, LEGEND_WIDTH)) for curve in result.curves)
    return 0.2 + 0.16 * (lines / legend_columns(result) + 2) + 0.2 * len(title_of(result).splitlines())


def legend_columns(result: Result) -> int:
    """More where there are many names, and short ones."""
    many, short = len(result.curves) > 16, max(len(curve.name) for curve in result.curves) <= 30
    return 4 if many and short else 2


def outside_legend(drawing: Any, result: Result, *, bounds: bool) -> None:
    """Below the panels, where it covers nothing."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Line2D([], [], color=look(k).colour, linestyle=line_style(k, curve.role), marker=look(k).marker, markersize=4)
        for k, curve in enumerate(result.curves)
    ]
    labels = [in_plain_text(textwrap.fill(curve.name, LEGEND_WIDTH)) for curve in result.curves]
    if bounds and any(curve.bounds for curve in result.curves):
        handles.append(Line2D([], [], color="black", linestyle="--", linewidth=1.1))
        labels.append("bound, in its colour")
    if bounds and any(curve.printed_bounds for curve in result.curves):
        handles.append(Line2D([], [], color="black", linestyle=":", linewidth=1.1))
        labels.append("bound as printed in the paper")
    if len(result.seeds) > 1:
        handles.append(Patch(color="black", alpha=0.2, linewidth=0))
        labels.append("least to greatest of the sequences")
    columns = legend_columns(result)
    drawing.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8, handlelength=3.2
    )


def title_of(result: Result) -> str:
    """The figure's title: what was played, and below it how much of it, in lines that fit a figure of two panels."""
    what = textwrap.fill(textwrap.shorten(result.title, 130), 84)
    return in_plain_text(f"{what}\n{extent(result)}")


def largest(result: Result, measure: str) -> list[float]:
    """How far from zero each curve goes."""
    return [float(np.max(np.abs(curve.mean(measure)))) for curve in result.curves]
