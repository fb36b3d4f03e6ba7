"""What people look at: a fitted linear model as a table, a path of budgets as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from longterm import _validate as validate
from longterm._display import TextTable, format_number

if TYPE_CHECKING:
    from longterm.linear_model.path import PathPoint

INTERCEPT = "(intercept)"


class SummarisedModel:
    """Mixin: `summary`."""

    def summary(self: Any, top: int = 20) -> TextTable:
        """The largest weights by name, what they cost, and what the budget is worth.

        Parameters
        ----------
        top : int
            How many features to show, those with the largest weights first; with several classes by the largest of
            a feature's weights.

        Returns
        -------
        table : Table
            Text in a terminal, a table in a notebook. The title says how much of the budget the model that `predict`
            uses takes, and the price: what one more unit would have saved, in loss per row. Names are those of the
            data frame, else x0, x1, ….
        """
        check_is_fitted(self)
        top = validate.count("top", top)
        weights, intercepts = self._chosen()
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{k}" for k in range(weights.shape[1])]
        sizes = np.abs(weights).max(axis=0)
        shown = [k for k in np.argsort(-sizes, kind="stable")[:top] if sizes[k] > 0]
        rows = [(INTERCEPT, *map(format_number, intercepts))] if self.fit_intercept else []
        rows += [(str(names[k]), *map(format_number, weights[:, k])) for k in shown]
        left = int(np.count_nonzero(sizes)) - len(shown)
        if left > 0:
            rows.append((f"… {left:,} more", *("" for _ in intercepts)))
        return TextTable(("feature", *self._columns_of_summary()), rows, title=self._title_of_summary(weights))

    def _columns_of_summary(self: Any) -> tuple[str, ...]:
        classes = getattr(self, "classes_", None)
        if classes is None:
            return ("weight",)
        return (str(classes[1]),) if len(classes) == 2 else tuple(str(one) for one in classes)

    def _title_of_summary(self: Any, weights: Any) -> str:
        features = int(np.count_nonzero(np.abs(weights).max(axis=0)))
        one = f"{type(self).__name__}: {features:,} of {weights.shape[1]:,} features, {self.n_rounds_:,} rounds"
        sizes = [learner.size(x) for learner, x in zip(self._learners, weights, strict=True)]
        most, prices = max(sizes), np.atleast_1d(self.multiplier_)
        each = "" if len(sizes) == 1 else " (largest of a class)"
        binds = "" if np.any(self.budget_binds_) else "; the budget does not bind"
        two = f"budget {format_number(self.budget_)}, used {format_number(most)} ({most / self.budget_:.1%}){each}"
        return f"{one}\n{two}, price {format_number(float(prices.max()))}{binds}"


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
