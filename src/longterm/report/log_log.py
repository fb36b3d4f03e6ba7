"""The figure on logarithmic axes: every measure, with bands, bounds, names and slopes."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.experiments.result import Curve, Result
from longterm.report.drawing import (
    draw_curve,
    height_of_words,
    in_plain_text,
    leader,
    moved_apart,
    outside_legend,
    title_of,
)
from longterm.report.scales import Scale, last_decade_slope, panels, scale_of
from longterm.report.style import look, plain_log_ticks
from longterm.report.words import MEASURE_MATHEMATICS, MEASURE_NAMES

LABEL_GAP = 0.072
"""Between two names beside a panel, as a share of its height."""
LABEL_SIZE = 8.0
"""Of these, in points, unless there are too many."""
MOST_NAMED = 30
"""Names beside a panel; more would be too small to read, and the legend has them."""
NAME_WIDTH = 26
"""Letters of a name beside a panel."""
BELOW = 0.5
"""The lower end of a logarithmic axis, as a share of the least mean: a band may leave it there."""


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
        low, high = BELOW * finite[finite > 0].min(), finite.max() / BELOW
        axis.set_ylim(low, high)
        if high < 100 * low:
            plain_log_ticks(axis.yaxis)
        return
    axis.set_yscale("symlog", linthresh=scale.threshold)
    low, high = min(finite.min(), 0.0), max(finite.max(), 0.0)
    axis.set_ylim(
        low / BELOW if low < 0 else -0.3 * scale.threshold, high / BELOW if high > 0 else 0.3 * scale.threshold
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
