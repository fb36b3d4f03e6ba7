"""The figure of a budget path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longterm._base.extras import import_optional
from longterm.linear_model.path import PathPoint, best_point, smallest_point


def draw_path(points: Sequence[PathPoint], axis: Any = None) -> Any:
    """Draw progressive loss against non-zero weights, with standard errors, and return the axis."""
    plt: Any = import_optional("matplotlib.pyplot", "the figure of a path needs Matplotlib", "experiments")
    if axis is None:
        axis = plt.figure(figsize=(5.0, 3.4), layout="constrained").subplots()
    points = sorted(points, key=lambda point: point.budget)
    columns = zip(*((point.nonzeros, point.loss, point.standard_error) for point in points), strict=True)
    axis.errorbar(*columns, marker="o", markersize=3, linewidth=0.8, elinewidth=0.6)
    chosen = (("best", best_point(points), "*"), ("within one standard error", smallest_point(points), "s"))
    for name, point, marker in chosen:
        label = f"{name}: budget {point.budget:.3g}, {point.nonzeros} features"
        style = {"color": plt.rcParams["text.color"], "markersize": 9, "markerfacecolor": "none", "linestyle": "none"}
        axis.plot(point.nonzeros, point.loss, marker, label=label, **style)
    axis.set(xlabel="non-zero weights", ylabel="progressive loss per row")
    axis.grid(visible=True, alpha=0.3)
    axis.legend(fontsize="small", frameon=False)
    return axis
