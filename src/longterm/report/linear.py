"""The paper's own view: linear axes, regret beside the signed violation, the low curves enlarged as in its Figure 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from longterm.experiments.result import LOGGED, Result
from longterm.report.drawing import draw_curve, height_of_words, largest, outside_legend, title_of
from longterm.report.words import MEASURE_MATHEMATICS, MEASURE_NAMES

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
