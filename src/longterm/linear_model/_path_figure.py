"""The figure of a path: loss against size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longterm.linear_model.path import PathPoint


def draw_path(points: Sequence[PathPoint], axis: Any = None) -> Any:
    """Progressive loss against non-zeros, each with its standard error; `BudgetPath.figure` says more."""
    from longterm.linear_model.path import best_of, smallest_of

    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("the figure of a path needs matplotlib: pip install 'longterm[experiments]'") from None
    if axis is None:
        axis = plt.figure(figsize=(5.0, 3.4), layout="constrained").subplots()
    for curve in sorted({(point.rule, point.beta, point.seed) for point in points}):
        own = sorted((p for p in points if (p.rule, p.beta, p.seed) == curve), key=lambda point: point.budget)
        axis.errorbar(
            [p.nonzeros for p in own], [p.loss for p in own], [p.standard_error for p in own],
            marker="o", markersize=3, linewidth=0.8, elinewidth=0.6, label=f"{curve[0]}, β = {curve[1]:.3g}",
        )  # fmt: skip
    for name, point, marker in (("best", best_of(points), "*"), ("within one error", smallest_of(points), "s")):
        axis.plot(
            point.nonzeros, point.loss, marker, color="black", markersize=9, markerfacecolor="none",
            linestyle="none", label=f"{name}: budget {point.budget:.3g}, {point.nonzeros} features",
        )  # fmt: skip
    axis.set(xlabel="features that are not 0", ylabel="progressive loss per row")
    axis.grid(visible=True, alpha=0.3)
    axis.legend(fontsize=7, frameon=False)
    return axis
