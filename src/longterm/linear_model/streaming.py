"""A learner for a linear model under a budget, which takes one row or a block of rows at a time.

`step` and `step_dense` take one row and return the margin ⟨u, x_t⟩ + b_t from before it was learned; `learn` takes a
block. Splitting rows into blocks changes nothing, bit for bit. scikit-learn is not imported.

The intercept lies in an interval. For two classes it is ±4 unless given: log-odds of shares between 2 % and 98 %. For
regression neither the level nor the scale of the targets is known beforehand. With intercept_bound None the interval
begins as the first target alone and is widened to twice the distance of any target that lies outside.
`docs/linear_model.md` says how this changes the theorem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._arrays import FloatArray
from longterm.errors import InputError, NonFiniteError
from longterm.linear_model._average import Average
from longterm.linear_model._feature_scale import PAST_WEIGHT, POWER, TARGET_POWER, FeatureScale
from longterm.linear_model._memory import LearnerMemory
from longterm.linear_model._rows import (
    IN_ORDER,
    NO_NUMBERS,
    TOO_LARGE,
    RowBlock,
    first_out_of_range,
    in_range,
    is_row,
    labels_for,
    max_abs,
    max_abs_bound,
    require_in_range,
    row_block,
    to_dense,
    weights_for,
    whole_numbers,
)
from longterm.linear_model._settings import LEADERS, Settings
from longterm.linear_model.kernels.layout import TRACE
from longterm.linear_model.kernels.losses import values_and_slopes
from longterm.linear_model.kernels.state import KernelState
from longterm.storage.one_thread import OneThread, exclusive

NO_ROUNDS, NO_TRACE = np.empty(0, dtype=np.int64), np.empty(0, dtype=TRACE)
NUMBERS_AT_ONCE, ROWS_AT_ONCE = 2**17, 64
"""Rows that are gathered, converted or scaled at once have so many numbers, which fit into a cache, or are so few."""
NARROWEST, LARGEST_LIMIT = 1e-60, 1e150
"""Bounds on the intercept's interval and on the root of its V_b when it is widened. They keep numbers finite."""
LONGEST_SCALED = 1e60
"""The bound on gradients of scaled rows. Sums are multiplied when factors change, so it is smaller than usual."""
LOG_ODDS = 4.0
"""The intercept's bound for two classes unless another is given."""


class BudgetLinearLearner(LearnerMemory):
    """A linear model of `dimension` weights with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    One thread at a time may learn or save; a second one gets an InUseError.

    Parameters
    ----------
    dimension : int
        d, the number of features.
    budget, l1, l2 : float
        g(x) = l1‖x‖₁ + ½ l2‖x‖² − budget.
    loss : {"logistic", "hinge", "squared_hinge", "squared", "huber", "quantile"}
        The first three have labels ±1.
    loss_parameter : float, optional
        The threshold of Huber's loss (1 unless given), the level of the quantile (½ unless given).
    rule : {"a-ftrl", "a-ogd", "penalised-ftrl", "mahdavi"}
        The learning rule.
    fit_intercept : bool
        Whether there is an intercept. It does not count towards the budget.
    intercept_bound : float, optional
        The intercept stays within ±intercept_bound. None: an offset (log-odds of the classes so far, mean of the
        targets so far) plus a residual; with one scale ±4 for two classes, and for regression an interval that grows
        with the targets.
    constants : "online" or dict
        "online", or {"feature_norm": …, "label_bound": …, "rounds": …} for step sizes from known bounds.
    scales : {"mixed", "priced", "one"}, optional
        "mixed": eight radii in one leader, so that a large budget does no harm. "priced": the same, and radii are also
        charged the multiplier's part. "one": the budget's radius alone. None: "mixed" for FTRL with constants found
        online, otherwise "one".
    max_features : int, optional
        The largest number of non-zero weights of any decision, for penalised FTRL.
    beta, growth : float
        θ_t ∝ t^−β; penalised FTRL's weights w_t ∝ t^(1 + growth).
    scale_features : bool
        Whether features are scaled by what was seen on the stream, for FTRL with a mixture of scales. For two classes
        they are also centred, unless there is no intercept or the layout is sparse. The budget is then one of weights
        of scaled features.
    sparse : bool
        Whether the state is laid out for sparse rows, so that a round costs what the row touches (A-FTRL only). Rows of
        the other kind are converted.
    seed : int
        The seed of the rounds that are drawn for the average.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model import BudgetLinearLearner
    >>> learner = BudgetLinearLearner(3, budget=1.0, fit_intercept=False)
    >>> learner.step(np.array([0, 2]), np.array([3.0, 4.0]), 1.0)
    0.0
    >>> round(learner.step_dense(np.array([0.0, 1.0, 1.0]), -1.0), 6)
    0.034719
    >>> learner.rounds, learner.weights.round(3)
    (2, array([ 0.025, -0.008,  0.025]))
    """

    def __init__(
        self,
        dimension: int,
        budget: float,
        *,
        l1: float = 1.0,
        l2: float = 1.0,
        loss: str = "logistic",
        loss_parameter: float | None = None,
        rule: str = "a-ftrl",
        fit_intercept: bool = True,
        intercept_bound: float | None = None,
        constants: str | Mapping[str, float] = "online",
        beta: float = 2 / 3,
        growth: float = 0.5,
        scales: str | None = None,
        max_features: int | None = None,
        scale_features: bool = False,
        sparse: bool = False,
        seed: int = 0,
    ) -> None:
        self._guard = OneThread(type(self).__name__)
        if isinstance(constants, str) and constants != "online":
            raise InputError("constants", f"{constants!r} is not a way to find them", 'Use "online", or give a mapping')
        if not isinstance(constants, str | Mapping):
            raise InputError("constants", f"{constants!r} is not a mapping", 'Use "online", or give a mapping')
        given = None if isinstance(constants, str) else dict(constants)
        if scales is None:
            scales = "mixed" if given is None and rule in LEADERS else "one"
        settings = Settings(
            dimension,
            budget,
            l1,
            l2,
            loss,
            loss_parameter,
            rule,
            beta=beta,
            growth=growth,
            given=given,
            scales=scales,
            max_features=max_features or 0,
        )
        self._widens, self._has_level, self._level = False, False, 0.0
        if fit_intercept and intercept_bound is not None:
            settings = replace(settings, intercept_bound=intercept_bound)
        elif fit_intercept and not settings.classifies:
            self._widens = given is None
            if given is not None:
                settings = replace(settings, intercept_bound=given["label_bound"])
            elif scales != "one":
                settings = replace(settings, offset="mean")
        elif fit_intercept and scales == "one":
            settings = replace(settings, intercept_bound=LOG_ODDS)
        elif fit_intercept:
            offset = "log-odds" if settings.loss == "logistic" else "none"
            settings = replace(settings, offset=offset, residual_radius=LOG_ODDS)
        if scale_features and scales == "one":
            raise InputError("scale_features", "is for a mixture of scales", 'Use scales="mixed", or scale the rows')
        self._sparse = sparse
        self._state = KernelState(rule, settings.dimension, sparse)
        self._average = Average(settings.dimension, seed)
        self._settings = settings
        centred = self._may_centre and settings.classifies
        self._scale = FeatureScale(settings.dimension, centred) if scale_features else None
        self._use(settings)
        self._plan_average()

    @property
    def _may_centre(self) -> bool:
        """True if an intercept can take up the means of features, and the layout is not sparse."""
        s = self._settings
        return (self._widens or s.offset != "none" or s.reach > 0) and not self._state.is_sparse

    # --- one row ----------------------------------------------------------------------------------------------

    def step_dense(self, row: ArrayLike, y: float, weight: float = 1.0) -> float:
        """Learn one row of `dimension` numbers.

        Parameters
        ----------
        row : array-like of shape (dimension,)
            The features u.
        y : float
            Its label, ±1, or its target.
        weight : float
            A factor of its loss.

        Returns
        -------
        margin : float
            ⟨u, x_t⟩ + b_t, from before the row was learned.
        """
        u = np.ascontiguousarray(row, np.float64)
        if u.shape != (self._settings.dimension,):
            remedy = f"Give {self._settings.dimension} numbers"
            raise InputError("row", f"has shape {u.shape}", remedy, round=self.rounds + 1)
        with self._guard():
            return self._learn_row(u[None], u, y, weight)

    def step(self, indices: ArrayLike, values: ArrayLike, y: float, weight: float = 1.0) -> float:
        """Learn one sparse row.

        Parameters
        ----------
        indices : array-like of int
            The columns of the non-zero features, increasing.
        values : array-like of float
            These features.
        y : float
            Its label, ±1, or its target.
        weight : float
            A factor of its loss.

        Returns
        -------
        margin : float
            ⟨u, x_t⟩ + b_t, from before the row was learned.
        """
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
        if self._is_plain(own[0], rows) and in_range(length, distance, float(weight), self._radius):
            self._state.learn(rows, own, weights, margins)
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
        if self._scale is not None or self._until_drawn == 0 or isinstance(rows, tuple) != self._state.is_sparse:
            return False
        return not self._widens or (self._has_level and abs(label) <= self._settings.reach)

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
        record: Sequence[int] | None = None,
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
        record : sequence of int, optional
            Round numbers to trace.

        Returns
        -------
        margins : ndarray of shape (n,) or (len(order),)
            ⟨u, x_t⟩ + b_t of each row, from before it was learned. With `record` a trace instead, with a record for
            each of these rounds that lies in the block: `round`, `nonzeros` and `multiplier` of x_t, and the sums up to
            and including the round, `loss`, `signed_violation`, `hard_violation`, `squared_violation`.
        """
        block = row_block(X, self._settings.dimension, self.rounds + 1 if order is None else None)
        labels = labels_for(y, block.count, self._classifies)
        rows_in_order = IN_ORDER
        if order is not None:
            rows_in_order = whole_numbers("order", order)
            if rows_in_order.ndim != 1 or np.any((rows_in_order < 0) | (rows_in_order >= block.count)):
                raise InputError("order", "has other numbers than those of rows", f"Use 0 … {block.count - 1}")
        weights = weights_for(sample_weight, block.count)
        self.require(block, labels, weights, rows_in_order)
        count = block.count if order is None else len(rows_in_order)
        if record is None:
            margins = np.empty(count)
            self.learn_checked(block, labels, weights, rows_in_order, margins=margins)
            return margins
        first = self.rounds + 1
        wanted = np.asarray([t for t in sorted(set(record)) if first <= t < first + count], dtype=np.int64)
        trace: Any = np.empty(len(wanted), dtype=TRACE)
        self.learn_checked(block, labels, weights, rows_in_order, record=wanted, trace=trace)
        return trace  # type: ignore[no-any-return]

    def require(
        self, block: RowBlock, labels: FloatArray, weights: FloatArray, order: NDArray[np.int64] | None = None
    ) -> None:
        """Raise InputError if a row is out of range (`_rows.in_range`), learned in this order or, with None, in any."""
        if order is not None and order is not IN_ORDER:
            labels, weights = labels[order], weights[order] if len(weights) else weights
        if block.count == 0 or len(labels) == 0:
            return
        distances, radius = np.abs(labels), self._radius
        if self._widens:
            with np.errstate(over="ignore"):
                if self._has_level or order is not None:
                    level = self._level if self._has_level else float(labels[0])
                    distances, farthest = distances + abs(level), max_abs(labels - level)
                else:
                    distances, farthest = distances + distances.max(), float(labels.max() - labels.min())
                radius = self._state.parameter("radius") + max(self._settings.reach, 2 * farthest)
        require_in_range(block, distances, self._weight_bound(weights), radius, IN_ORDER if order is None else order)

    def _weight_bound(self, weight: Any) -> Any:
        """Return the weights that the range check is to use."""
        return weight

    def learn_checked(
        self,
        block: RowBlock,
        labels: FloatArray,
        weights: FloatArray = NO_NUMBERS,
        order: NDArray[np.int64] = IN_ORDER,
        *,
        margins: FloatArray = NO_NUMBERS,
        record: NDArray[np.int64] = NO_ROUNDS,
        trace: NDArray[Any] = NO_TRACE,
    ) -> None:
        """Learn what `row_block`, `labels_for` and `weights_for` returned and `require` accepted, as `learn` does."""
        count = block.count if order is IN_ORDER else len(order)
        if count == 0:
            return
        with self._rollback_on_error(block, labels, weights):
            made = margins if len(margins) else np.empty(count)
            before = self._level
            if self._widens:
                self._set_level(float(labels[0 if order is IN_ORDER else order[0]]))
            as_they_are = order is IN_ORDER and self._scale is None and block.is_sparse == self._state.is_sparse
            rows_at_once = count if as_they_are else max(NUMBERS_AT_ONCE // self._settings.dimension, ROWS_AT_ONCE)
            start, traced = 0, 0
            while start < count:
                stop = min(count, start + rows_at_once)
                recorded = traced < len(record) and int(record[traced]) == self.rounds + 1
                if traced < len(record):  # a recorded round is learned by itself
                    stop = min(stop, start + (1 if recorded else int(record[traced]) - self.rounds - 1))
                if recorded:
                    trace[traced]["round"] = self.rounds + 1
                    trace[traced]["nonzeros"], trace[traced]["multiplier"] = self.nonzeros, self.multiplier
                stop = self._learn_part(block, labels, weights, order, start, stop, made)
                if recorded:
                    trace[traced]["loss"] = self.cumulative_loss
                    for name in ("signed_violation", "hard_violation", "squared_violation"):
                        trace[traced][name] = self._state.number(name)
                    traced += 1
                start = stop
            if self._widens:
                made[0] += before  # the first target of all was not known before it came
                made[1:] += self._level

    def _learn_part(
        self,
        block: RowBlock,
        labels: FloatArray,
        weights: FloatArray,
        order: NDArray[np.int64],
        start: int,
        stop: int,
        margins: FloatArray,
    ) -> int:
        """Learn the rows from `start` on, at most to `stop`, with one set of constants. Return where they end."""
        if self._until_drawn == 0:
            self._draw_decision()
        stop = min(stop, start + self._until_drawn)
        if self._scale is not None:
            stop = min(stop, start + self._scale.rows_until_update)
        chosen: Any = slice(start, stop) if order is IN_ORDER else order[start:stop]
        own = labels[chosen] - self._level
        if self._widens:
            stop = start + self._widen_for(own)
            chosen, own = chosen if stop - start == len(own) else _shortened(chosen, stop - start), own[: stop - start]
        rows = block.part(start, stop) if order is IN_ORDER else block.take(chosen)
        own_weights = weights[chosen] if len(weights) else np.ones(stop - start)
        given = np.ascontiguousarray(own), np.ascontiguousarray(own_weights)
        self._learn_rows(rows, *given, margins[start:stop], block.longest)
        self._until_drawn -= stop - start
        return stop

    def _learn_rows(
        self, rows: Any, labels: FloatArray, weights: FloatArray, margins: FloatArray, longest: float
    ) -> None:
        """Learn rows in the layout of the state, scaled if features are."""
        if self._scale is None:
            self._state.learn(self._in_layout(rows), labels, weights, margins)
            return
        rows = self._scale.prepare(rows)
        scaled = self._scaled(rows, labels, weights, longest)
        self._state.learn(self._in_layout(scaled), labels, weights, margins)
        self._observe_for_scale(rows, labels, weights, margins)

    def _in_layout(self, rows: Any) -> Any:
        if self._state.is_sparse and not isinstance(rows, tuple):
            return RowBlock(rows, len(rows), 0.0).to_sparse().rows
        return rows if self._state.is_sparse else to_dense(rows, self._settings.dimension)

    # --- scaled features --------------------------------------------------------------------------------------

    @contextmanager
    def _rollback_on_error(self, block: RowBlock, labels: FloatArray, weights: FloatArray) -> Iterator[None]:
        """Restore the learner if a row turns out to be out of range after scaling, half-way through the block."""
        if self._scale is None or self._scaled_rows_fit(block, labels, weights):
            yield
            return
        settings, level, drawn = self._settings, (self._has_level, self._level), self._average.drawn
        arrays, scale = self._state.arrays(), deepcopy(self._scale)
        try:
            yield
        except InputError:
            self._state = KernelState(settings.rule, settings.dimension, self._sparse)
            self._scale = scale
            self._use(settings)
            self._state.restore(arrays)
            (self._has_level, self._level), self._average.drawn = level, drawn
            self._plan_average()
            raise

    def _scaled_rows_fit(self, block: RowBlock, labels: FloatArray, weights: FloatArray) -> bool:
        """Return True if no row of the block can be out of range once it is scaled."""
        assert self._scale is not None
        if not self._scale.stays_for(block.count):
            return False
        weight = float(weights.max()) if len(weights) else 1.0
        distance = 2 * max_abs(labels) + abs(self._level)
        longest = self._scale.length_bound(block.longest)
        return bool(in_range(longest, distance, weight, self._radius + 4 * distance, LONGEST_SCALED))

    def _scaled(self, rows: Any, labels: FloatArray, weights: FloatArray, longest: float) -> Any:
        """Return scaled rows, after the update of the factors if it is due. Raise InputError if one is out of range.

        `longest` is a bound on the lengths of the rows.
        """
        assert self._scale is not None
        scale, change = self._scale, None
        if scale.counts[0] == 0 or scale.is_due:
            scale = copy(self._scale)
            scale.begin(rows)
            change = scale.update(POWER if self._classifies else TARGET_POWER) if scale.is_due else None
        scaled = scale.apply(rows)
        bound = scale.length_bound(longest)
        if first_out_of_range(scaled, bound, np.abs(labels), weights, self._radius, bound=LONGEST_SCALED) is not None:
            what = "holds a row whose numbers, scaled as those before it, are so large that they overflow"
            raise InputError("X", what, TOO_LARGE, round=self.rounds + 1)
        if change is not None:
            more = PAST_WEIGHT if self._classifies else 1.0
            self._state.rescale(*change, more)
            scale.slopes = scale.slopes * more
        self._scale = scale
        return scaled

    def _observe_for_scale(self, rows: Any, labels: FloatArray, weights: FloatArray, margins: FloatArray) -> None:
        """Add learned rows to the sums from which factors are computed."""
        assert self._scale is not None
        slopes = np.zeros(len(labels))
        if self._scale.centred and self._scale.rows_until_update < 2**62:
            s = self._settings
            slopes = values_and_slopes(s.code, s.loss_parameter or 0.0, margins, labels)[1] * weights
            self._scale.slopes[0] = np.cumsum(np.append(self._scale.slopes, slopes))[-1]
        self._scale.observe(rows, slopes if self._classifies else np.zeros(len(labels)))

    def scale_by(self, block: RowBlock, *, standard: bool = False) -> None:
        """Centre and scale features by their means and sizes in these rows; to be called before the first row.

        With `standard`, features are standardised: `FeatureScale.standard`.
        """
        make = FeatureScale.standard if standard else FeatureScale.of_block
        self._scale = make(block, self._settings.dimension, self._may_centre)
        self._use(self._settings)

    # --- the intercept's interval -----------------------------------------------------------------------------

    def _set_level(self, y: float) -> None:
        """Put the intercept's interval about the first target."""
        if not self._has_level:
            self._has_level, self._level = True, y

    def _widen_for(self, labels: FloatArray) -> int:
        """Widen the interval if the first target lies outside. Return how many targets lie inside then."""
        sizes = np.abs(labels)
        if sizes[0] > self._settings.reach:
            self._widen(float(sizes[0]))
        outside = sizes > self._settings.reach
        return int(outside.argmax()) if outside.any() else len(labels)

    def _widen(self, size: float) -> None:
        """Set the interval to ±2 size. The decision and its curvature stay (`docs/linear_model.md`)."""
        size = max(size, NARROWEST)
        if self._settings.scales != "one":  # the residual begins at 0
            self._use(replace(self._settings, residual_radius=2 * size))
            return
        scalars, before = self._state.scalars, self._settings.intercept_bound
        limit = math.sqrt(scalars["intercept_squares"][0])  # curvature times bound: b is at the end of the interval
        scalars["intercept_slope"] = min(max(scalars["intercept_slope"][0], -limit), limit)
        self._use(replace(self._settings, intercept_bound=2 * size))
        if before > 0.0:
            scalars["intercept_squares"] = min(limit * (2 * size / before), LARGEST_LIMIT) ** 2


def _shortened(chosen: Any, count: int) -> Any:
    return slice(chosen.start, chosen.start + count) if isinstance(chosen, slice) else chosen[:count]
