"""Linear regression under a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from longterm._arrays import FloatArray
from longterm.linear_model._estimator import BudgetLinearModel
from longterm.linear_model._passes import TrainingRows
from longterm.linear_model._rows import labels_for, row_block, weights_for
from longterm.storage.one_thread import exclusive


class BudgetLinearRegressor(RegressorMixin, BudgetLinearModel):  # type: ignore[misc]
    """Least squares, Huber or quantile regression with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    Rows are learned one after another, each after it was scored. All parameters are optional.

    Parameters
    ----------
    budget : float, optional
        ρ of the constraint l1‖x‖₁ + ½ l2‖x‖² ≤ ρ on the weights. None: one that will not bind (`budget_`).
    l1, l2 : float
        The weights of the two norms.
    loss : {"squared", "huber", "quantile"}
        The loss of a row.
    loss_parameter : float, optional
        The threshold of Huber's loss (1 unless given), or the level of the quantile (½ unless given).
    rule : {"a-ftrl", "a-ogd", "penalised-ftrl"}
        "a-ftrl": sparse weights, O(non-zeros) per row; "penalised-ftrl": almost no violation, O(d) per row.
    fit_intercept : bool
        Whether there is an intercept. It does not count towards the budget.
    max_features : int, optional
        At most this many non-zero weights: chosen by a first `fit`, or in every round of `partial_fit`.
    scale_features : bool, optional
        Whether features are centred and scaled. None: yes, but not for wide sparse matrices or streams with a budget.
    half_life : float, optional
        After this many rows the weight of a row is halved, for streams that drift. `fit` then makes one pass.
    passes : int, optional
        Passes of `fit` over its rows. None: 5, or 10 with a budget, but at most 100,000 rounds or one pass.
    shuffle : bool
        Whether every pass of `fit` has an order of its own.
    random_state : int, RandomState instance or None
        Draws these orders, and the rounds of `average_coef_`.
    warm_start : bool
        Whether `fit` continues from the last fit.
    predict_with : {"auto", "recent", "last", "average", "within_budget"}
        "recent": an average of `fit`'s decisions within the budget; "last": the decision in force; "average": the mean
        decision; "within_budget": the nearest to it within the budget; "auto": "recent" after `fit`, else "last".

    Notes
    -----
    The notes of `BudgetLinearClassifier` on standardised features hold here, too.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model import BudgetLinearRegressor
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
        warm_start: bool = False,
        predict_with: str = "auto",
    ) -> None:
        self.budget = budget
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.loss_parameter = loss_parameter
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.max_features = max_features
        self.scale_features = scale_features
        self.half_life = half_life
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
        self.predict_with = predict_with

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
