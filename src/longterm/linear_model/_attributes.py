"""The fitted attributes of the estimators, read from their learners."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from longterm._base.arrays import FloatArray
from longterm.linear_model._passes import RecentAverage
from longterm.linear_model.streaming import BudgetLinearLearner
from longterm.storage.one_thread import serialised

MODELS = ("auto", "recent", "last", "average", "within_budget")
"""The values of `predict_with`."""


class FittedAttributes:
    """Mixin: the attributes of a fitted estimator; arrays have an entry for each learner where there are several."""

    predict_with: str
    _learners: list[BudgetLinearLearner]
    _averages: list[RecentAverage]
    """Averages of the decisions in `fit`, one for each learner; empty if there was no `fit`."""
    _multipliers: list[float]
    """The budget's multipliers, one for each learner; empty unless `fit` came last."""
    _fitted: bool
    """True if `fit` came last, and not `partial_fit`."""
    _models_cache: dict[str, tuple[FloatArray, FloatArray]]

    @serialised
    def _models(self, which: str) -> tuple[FloatArray, FloatArray]:
        """Return weights (K, d) and intercepts (K,) of the K learners, kept until something is learned."""
        check_is_fitted(self)
        if which not in self._models_cache:
            models = [self._model(number, which) for number in range(len(self._learners))]
            self._models_cache[which] = np.stack([x for x, _ in models]), np.array([b for _, b in models])
        return self._models_cache[which]

    def _model(self, number: int, which: str) -> tuple[FloatArray, float]:
        learner = self._learners[number]
        if which == "average":
            return learner.average()
        if which == "within_budget":
            return learner.within_budget()
        if which == "recent" and self._averages:
            return self._averages[number].model(learner)
        return learner.weights, learner.intercept

    def _chosen_models(self) -> tuple[FloatArray, FloatArray]:
        """Return the models that predict."""
        check_is_fitted(self)
        which = self.predict_with
        if which == "auto":
            which = "recent" if self._fitted else "last"
        return self._models(which)

    def _as_coef(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return weights in the shape of scikit-learn's `coef_`."""
        return weights

    def _as_intercept(self, intercepts: NDArray[Any]) -> Any:
        """Return intercepts in the shape of scikit-learn's `intercept_`."""
        return intercepts

    def _for_each(self, name: str) -> Any:
        """Return an attribute of every learner; one number where there is one learner."""
        check_is_fitted(self)
        return _single([getattr(learner, name) for learner in self._learners])

    @property
    def budget_(self) -> float:
        """The budget in force, given or chosen; infinity without one."""
        check_is_fitted(self)
        return self._learners[0].budget

    @property
    def coef_(self) -> NDArray[Any]:
        """The weights that `predict` uses: after `fit` an average, after `partial_fit` the decision in force."""
        return self._as_coef(self._chosen_models()[0])

    @property
    def intercept_(self) -> Any:
        """The intercept that `predict` uses."""
        return self._as_intercept(self._chosen_models()[1])

    @property
    def average_coef_(self) -> NDArray[Any]:
        """x̄, the mean decision: the model of the online-to-batch theorem."""
        return self._as_coef(self._models("average")[0])

    @property
    def average_intercept_(self) -> Any:
        """The intercept of x̄."""
        return self._as_intercept(self._models("average")[1])

    @property
    def coef_within_budget_(self) -> NDArray[Any]:
        """The nearest point to x̄ with g ≤ 0."""
        return self._as_coef(self._models("within_budget")[0])

    @property
    def intercept_within_budget_(self) -> Any:
        """The intercept of `coef_within_budget_`, that of x̄."""
        return self._as_intercept(self._models("within_budget")[1])

    @property
    def budget_binds_(self) -> Any:
        """True if the budget has limited the weights so far."""
        return self._for_each("binds")

    @property
    def multiplier_(self) -> Any:
        """The KKT multiplier of the budget: by how much the best mean loss of `fit`'s rows falls for a unit of budget.

        Computed by `fit` at the model that it returns. `partial_fit` keeps no rows to compute it from.
        """
        check_is_fitted(self)
        if not self._multipliers:
            raise AttributeError("multiplier_ exists after fit only. After partial_fit, read dual_variable_")
        return _single(self._multipliers)

    @property
    def dual_variable_(self) -> Any:
        """λ_{T+1}, the rule's dual variable after the last row (penalised FTRL: the weight of its penalty)."""
        return self._for_each("multiplier")

    @property
    def n_rounds_(self) -> int:
        """T, the number of rows learned, every pass counted."""
        check_is_fitted(self)
        return self._learners[0].rounds

    @property
    def n_nonzero_(self) -> Any:
        """The number of non-zero weights in the last decision."""
        return self._for_each("nonzeros")

    @property
    def cumulative_loss_(self) -> Any:
        """Σ f_t(x_t), each row scored before it was learned."""
        return self._for_each("cumulative_loss")

    @property
    def signed_violation_(self) -> Any:
        """Σ g(x_t); minus infinity without a budget."""
        return self._for_each("signed_violation")

    @property
    def hard_violation_(self) -> Any:
        """Σ [g(x_t)]₊."""
        return self._for_each("hard_violation")

    @property
    def squared_violation_(self) -> Any:
        """Σ [g(x_t)]₊²."""
        return self._for_each("squared_violation")


def _single(values: list[Any]) -> Any:
    """Return the value where there is one, and an array of several."""
    array = np.array(values)
    return array[0].item() if len(array) == 1 else array
