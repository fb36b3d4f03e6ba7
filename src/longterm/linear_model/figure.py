"""The worked example as a figure, a row for each data set: loss, size, violation, every penalty of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longterm.linear_model.example import Course, Study
from longterm.report.style import publication_style

OURS = {"a-ftrl": ("A-FTRL, budget given", "C0", "-"), "penalised-ftrl": ("penalised FTRL, budget given", "C2", "--")}
THEIRS = {
    "best α of all": ("SGD, best α of all", "C1", "-"),
    "best α within budget": ("SGD, best α that fits the budget", "C4", "-"),
    "α as sparse as ours": ("SGD, α as sparse as ours", "C3", ":"),
}


FLOOR = 1e-4
"""The lower end of the scale of violations, in budgets."""


def figure(studies: Sequence[Study], path: Path) -> None:
    """Draw the studies into a file."""
    with publication_style() as plt:
        made, axes = plt.subplots(
            len(studies), 4, figsize=(13.5, 3.2 * len(studies)), squeeze=False, constrained_layout=True
        )
        for row, found in zip(axes, studies, strict=True):
            _row(row, found)
        handles: dict[str, Any] = {}
        for axis in axes[:, 0]:
            handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
        made.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False)
        made.savefig(path)


def _row(axes: Any, found: Study) -> None:
    loss, size, violation, grid = axes
    lines = [(course, *OURS[course.name]) for course in found.ours]
    lines += [(course, *THEIRS[name]) for name, course in found.chosen().items()]
    for course, label, colour, style in lines:
        shown = course.rows >= 0.02 * course.rows[-1]  # the first blocks would fill the scale
        loss.plot(course.rows[shown], course.loss[shown], style, color=colour, label=label)
        size.plot(course.rows, course.size, style, color=colour)
        over = np.cumsum(np.maximum(course.size - found.budget, 0)) / np.arange(1, len(course.size) + 1)
        violation.plot(course.rows, np.maximum(over / found.budget, FLOOR), style, color=colour)
    loss.set(title=f"{found.name}: progressive loss", xlabel="rows", ylabel="mean log-loss so far")
    best = min(float(course.loss[-1]) for course, *_ in lines)
    loss.set_ylim(best - 0.02, 1.1 * np.log(2))
    violation.set(title="violation", xlabel="rows", ylabel="mean of [g]₊ so far, in budgets", yscale="log")
    violation.set_ylim(FLOOR, None)
    violation.annotate("0 lies below this scale", (0.98, 0.02), xycoords="axes fraction", ha="right", size=7)
    size.axhline(found.budget, color="0.4", linewidth=0.8)
    size.set(title="size of the model", xlabel="rows", ylabel="‖x‖₁ + ½‖x‖²", yscale="log")
    top = max(float(np.median(course.size)) for course, *_ in lines)
    size.set_ylim(found.budget / 5, 3 * max(top, found.budget))
    size.annotate("budget", (0.99, found.budget), xycoords=("axes fraction", "data"), ha="right", va="bottom", size=8)
    _grid(grid, found)


def _grid(axis: Any, found: Study) -> None:
    def ends(courses: Sequence[Course]) -> tuple[list[float], list[float]]:
        return [max(float(course.size[-1]), 1e-3) for course in courses], [float(c.loss[-1]) for c in courses]

    axis.plot(*ends(found.grid), "o-", color="C1", markersize=3, linewidth=0.8)
    for course in found.grid[::3]:
        axis.annotate(f"{course.alpha:.0e}", (max(course.size[-1], 1e-3), course.loss[-1]), size=6, va="bottom")
    for course in found.ours:
        _, colour, _ = OURS[course.name]
        axis.plot(*ends([course]), "s", color=colour, markersize=6)
    axis.axvline(found.budget, color="0.4", linewidth=0.8)
    best = min(float(course.loss[-1]) for course in [*found.grid, *found.ours])
    axis.set_ylim(best - 0.02, 1.1 * np.log(2))
    axis.set(
        title="every α of the grid, and ours", xlabel="size of the last model", ylabel="mean log-loss", xscale="log"
    )
