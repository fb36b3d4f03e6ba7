"""A learner for a linear model under a budget, which takes one row or a block of rows at a time.

Splitting rows into blocks changes nothing, bit for bit. scikit-learn is not imported.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base.arrays import FloatArray
from longterm.errors import InputError, NonFiniteError
from longterm.linear_model._feature_scale import FeatureScale
from longterm.linear_model._learning import LONGEST_SCALED, BlockLearner
from longterm.linear_model._rows import (
    IN_ORDER,
    TOO_LARGE,
    RowBlock,
    in_range,
    is_row,
    labels_for,
    max_abs_bound,
    order_for,
    row_block,
    weights_for,
    whole_numbers,
)
from longterm.linear_model._settings import NO_BUDGET, Settings
from longterm.storage.one_thread import OneThread, exclusive

LOG_ODDS = 4.0
"""The largest residual of the intercept of two classes."""


class BudgetLinearLearner(BlockLearner):
    """Learn a linear model one row at a time, with a budget on its size, for services.

    The budget is l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    One thread at a time may learn or save; a second one gets an InUseError.

    Parameters
    ----------
    dimension : int
        d, the number of features.
    budget : float, optional
        ρ of g(x) = l1‖x‖₁ + ½ l2‖x‖² − ρ, where each weight counts times the size of its feature. None: no budget.
    l1, l2 : float
        The weights of the two norms.
    loss : {"logistic", "hinge", "squared_hinge", "squared", "huber", "quantile"}
        The first three have labels ±1.
    loss_parameter : float, optional
        The threshold of Huber's loss (1 unless given), the level of the quantile (½ unless given).
    rule : {"a-ftrl", "penalised-ftrl"}
        The learning rule.
    fit_intercept : bool
        Whether there is an intercept. It does not count towards the budget.
    intercept_bound : float, optional
        The intercept stays within ±intercept_bound. None: an offset (log-odds or mean target so far) plus a residual.
    beta, growth : float
        θ_t ∝ t^−β; penalised FTRL's weights w_t ∝ t^(1 + growth).
    max_features : int, optional
        The largest number of non-zero weights of any decision, for penalised FTRL.
    scale_features : bool
        Whether features are centred and scaled by what was seen so far, so that units do not matter.
    sparse : bool
        Whether the state is laid out for sparse rows, so that a round costs what the row touches (A-FTRL only).
    seed : int
        The seed of the rounds that are drawn for the average.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model.streaming import BudgetLinearLearner
    >>> learner = BudgetLinearLearner(3, budget=1.0, fit_intercept=False)
    >>> learner.step(np.array([0, 2]), np.array([3.0, 4.0]), 1.0)
    0.0
    >>> round(learner.step_dense(np.array([0.0, 1.0, 1.0]), -1.0), 6)
    0.01369
    >>> learner.rounds, learner.weights.round(3)
    (2, array([ 0.019, -0.007,  0.016]))
    """

    scales_by_default = True

    def __init__(
        self,
        dimension: int,
        budget: float | None = None,
        *,
        l1: float = 1.0,
        l2: float = 1.0,
        loss: str = "logistic",
        loss_parameter: float | None = None,
        rule: str = "a-ftrl",
        fit_intercept: bool = True,
        intercept_bound: float | None = None,
        beta: float = 2 / 3,
        growth: float = 0.5,
        max_features: int | None = None,
        scale_features: bool | None = None,
        sparse: bool = False,
        seed: int = 0,
    ) -> None:
        self._guard = OneThread(type(self).__name__)
        if scale_features is None:
            scale_features = self.scales_by_default
        if budget is None and not scale_features:
            raise InputError(
                "budget", "is missing, and features are not scaled", "Give a budget, or scale_features=True"
            )
        settings = Settings(
            dimension,
            NO_BUDGET if budget is None else budget,
            l1,
            l2,
            loss,
            loss_parameter,
            rule,
            beta=beta,
            growth=growth,
            max_features=max_features or 0,
        )
        if fit_intercept and intercept_bound is not None:
            settings = replace(settings, intercept_bound=intercept_bound)
        elif fit_intercept and not settings.classifies:
            settings = replace(settings, offset="mean")
        elif fit_intercept:
            offset = "log-odds" if settings.loss == "logistic" else "none"
            settings = replace(settings, offset=offset, residual_radius=LOG_ODDS)
        centred = settings.classifies and settings.may_centre(sparse)
        scale = FeatureScale(settings.dimension, centred) if scale_features else None
        self._begin(settings, scale, sparse=sparse, level=None, seed=seed)

    # --- one row ----------------------------------------------------------------------------------------------

    def step_dense(self, row: ArrayLike, y: float, weight: float = 1.0) -> float:
        """Learn one row u of `dimension` numbers. Return the margin ⟨u, x_t⟩ + b_t from before.

        Parameters
        ----------
        row : array-like of shape (dimension,)
            The features u.
        y : float
            Its label, ±1, or its target.
        weight : float
            A factor of its loss.
        """
        u = np.ascontiguousarray(row, np.float64)
        if u.shape != (self._settings.dimension,):
            remedy = f"Give {self._settings.dimension} numbers"
            raise InputError("row", f"has shape {u.shape}", remedy, round=self.rounds + 1)
        with self._guard():
            return self._learn_row(u[None], u, y, weight)

    def step(self, indices: ArrayLike, values: ArrayLike, y: float, weight: float = 1.0) -> float:
        """Learn a sparse row: increasing column `indices`, with the `values` there. Else as `step_dense`."""
        u, columns = np.ascontiguousarray(values, np.float64), whole_numbers("indices", indices)
        with self._guard():
            if not is_row(columns, u, self._settings.dimension):
                raise self._column_error(u, columns)
            return self._learn_row((u, columns, np.array([0, u.size])), u, y, weight)

    def _learn_row(self, rows: Any, u: FloatArray, y: float, weight: float) -> float:
        """Learn a block of one row, whose numbers are u."""
        label, margins = self._require_label(y, weight), np.empty(1)
        own, weights = np.array([label - self._level]), np.array([weight], dtype=np.float64)
        with np.errstate(over="ignore"):
            length, distance = math.sqrt(float(u.dot(u)) * u.size), abs(label) + abs(self._level)
        if self._is_plain(own[0], rows) and self._learn_plain(rows, own, weights, margins, length, distance):
            self._until_drawn -= 1
            return float(margins[0]) + self._level
        labels, block = np.array([label]), RowBlock(rows, 1, max_abs_bound(u) * math.sqrt(u.size))
        try:
            self.require(block, labels, weights, IN_ORDER)
            self.learn_checked(block, labels, weights, margins=margins)
        except InputError:
            raise self._row_error(u) from None
        return float(margins[0])

    def _is_plain(self, label: float, rows: Any) -> bool:
        """Return True if a row can be learned as it comes, without a change of settings, factors or the average."""
        is_first = self._scale is not None and self._scale.counts[0] == 0
        if is_first or self._until_drawn == 0 or isinstance(rows, tuple) != self._state.is_sparse:
            return False
        return not self._widens or (self._has_level and abs(label) <= self._settings.residual_radius)

    def _learn_plain(
        self, rows: Any, label: FloatArray, weight: FloatArray, margin: FloatArray, length: float, distance: float
    ) -> bool:
        """Learn a plain row of this length. Return False, with nothing learned, if it may be out of range."""
        scale = self._scale
        if scale is None:
            if not in_range(length, distance, float(weight[0]), self._radius):
                return False
            return self._state.learn(rows, label, weight, margin) == 1
        length = scale.length_bound(length)
        if not in_range(length, distance, float(weight[0]), self._radius + 4 * distance, LONGEST_SCALED):
            return False
        if self._state.is_sparse:
            self._state.learn(scale.scale_sparse(rows), label, weight, margin)
            self._update_if_due(scale)
            return True
        scale.meet(rows)
        if self._state.learn(rows, label, weight, margin, (scale.means, scale.factors)) != 1:
            return False
        self._observe_for_scale(scale, rows, label, weight, margin)
        return True

    def _require_label(self, y: float, weight: float) -> float:
        """Return the label as a float. Raise InputError if the label or the weight is not valid."""
        try:
            sound = (y == 1 or y == -1) if self._classifies else -math.inf < y < math.inf
            sound = sound and 0.0 <= weight < math.inf
            label = float(y)
        except (TypeError, ValueError):  # not numbers
            sound = False
        if not sound:
            what = f"the label is {y!r}, the weight {weight!r}"
            remedy = "Use labels −1 and +1 for two classes, finite targets for regression, weights of at least 0"
            raise InputError("y", what, remedy, round=self.rounds + 1)
        return label

    def _row_error(self, u: FloatArray) -> InputError:
        """Return the error for a row whose numbers cannot be learned."""
        if not np.isfinite(u).all():
            what = "holds NaN or infinity"
            return NonFiniteError("row", what, "Check this row; nothing was learned from it", round=self.rounds + 1)
        what = "has numbers so large that the squares of its gradient overflow"
        return InputError("row", what, TOO_LARGE, round=self.rounds + 1)

    def _column_error(self, u: FloatArray, columns: NDArray[np.int64]) -> InputError:
        """Return the error for columns that are not those of a sparse row."""
        if columns.shape != u.shape or u.ndim != 1:
            what, remedy = f"has shape {columns.shape}, the values {u.shape}", "Give an index for each value"
        else:
            what = f"are not increasing within 0 … {self._settings.dimension - 1}"
            remedy = "Sort them, and give each once"
        return InputError("indices", what, remedy, round=self.rounds + 1)

    # --- a block of rows --------------------------------------------------------------------------------------

    @exclusive
    def learn(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        order: ArrayLike | None = None,
    ) -> FloatArray:
        """Learn a block of rows. Splitting rows into blocks changes nothing, bit for bit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, dimension)
            The rows.
        y : array-like of shape (n,)
            Their labels, ±1, or targets.
        sample_weight : array-like of shape (n,), optional
            Factors of the losses of the rows.
        order : array-like of int, optional
            Row numbers: learn these rows in this order, each as often as it is named.

        Returns
        -------
        margins : ndarray of shape (n,) or (len(order),)
            ⟨u, x_t⟩ + b_t of each row, from before it was learned.
        """
        block = row_block(X, self._settings.dimension, self.rounds + 1 if order is None else None)
        labels = labels_for(y, block.count, self._classifies)
        rows_in_order = order_for(order, block.count)
        weights = weights_for(sample_weight, block.count)
        self.require(block, labels, weights, rows_in_order)
        margins = np.empty(block.count if order is None else len(rows_in_order))
        self.learn_checked(block, labels, weights, rows_in_order, margins=margins)
        return margins
