"""Linear regression under a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from longterm._base.arrays import FloatArray
from longterm.linear_model._estimator import BudgetLinearModel
from longterm.linear_model._passes import TrainingRows
from longterm.linear_model._rows import labels_for, row_block, weights_for
from longterm.storage.one_thread import exclusive


class BudgetLinearRegressor(RegressorMixin, BudgetLinearModel):  # type: ignore[misc]
    """Predict numbers with a linear model whose size you limit by a budget or by a number of features.

    The model is a least-squares, Huber or quantile regression with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    Rows are learned one after another, each after it was scored. All parameters are optional.

    Parameters
    ----------
    budget : float, optional
        ρ of the constraint l1‖x‖₁ + ½ l2‖x‖² ≤ ρ, where a weight counts times the size of its feature. None: no budget;
        if features are not scaled, a large one that depends on the first 1,000 rows.
    loss : {"squared", "huber", "quantile"}
        The loss of a row.
    loss_parameter : float, optional
        The threshold of Huber's loss (1 unless given), or the level of the quantile (½ unless given).
    l1, l2, rule, fit_intercept, max_features, scale_features, half_life : optional
        As in `BudgetLinearClassifier`.
    passes, shuffle, random_state, predict_with : optional
        As in `BudgetLinearClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model.regressor import BudgetLinearRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 10))
    >>> y = 3 * X[:, 0] + 100 + 0.1 * rng.standard_normal(2000)
    >>> model = BudgetLinearRegressor(random_state=0).fit(X, y)
    >>> model.coef_[:1].round(), round(model.intercept_)
    (array([3.]), 100)
    """

    def __init__(
        self,
        budget: float | None = None,
        *,
        l1: float = 1.0,
        l2: float = 1.0,
        loss: str = "squared",
        loss_parameter: float | None = None,
        rule: str = "a-ftrl",
        fit_intercept: bool = True,
        max_features: int | None = None,
        scale_features: bool | None = None,
        half_life: float | None = None,
        passes: int | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        predict_with: str = "auto",
    ) -> None:
        self._keep(locals())

    @exclusive
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows once, in their order."""
        return self._learn_once(X, y, sample_weight)

    def _training_rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, classes: Any = None
    ) -> tuple[Any, TrainingRows]:
        X, y = self._validated(X, y, reset=reset, y_numeric=True)
        block = row_block(X, X.shape[1])
        labels = labels_for(y, block.count, classifies=False)
        return X, TrainingRows(block, [labels], weights_for(sample_weight, block.count))

    def _target_spread(self, targets: Sequence[FloatArray]) -> float:
        first = targets[0][:1000]
        return float(np.std(first)) or float(np.abs(first[0])) or 1.0

    def _as_coef(self, weights: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(weights[0])

    def _as_intercept(self, intercepts: NDArray[Any]) -> Any:
        return float(intercepts[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction ⟨u, x⟩ + b for each row."""
        return self._margins(X)[:, 0]
