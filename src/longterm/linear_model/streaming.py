"""One learner for a linear model under a budget, fed a row at a time or a block at a time: what services hold.

It has no knowledge of scikit-learn. `step` and `step_dense` take one row and return the margin ⟨u, x_t⟩ + b_t from
before it was learned, the honest prediction; `learn` takes a block. Splitting rows into blocks changes nothing, bit for
bit.

The interval of the intercept. For two classes it is ±4 unless given: log-odds of shares between 2 % and 98 %. For
regression neither level nor scale of the targets is known beforehand. With intercept_bound None the interval begins
as the first target alone, which sets the level and costs nothing, and is widened to twice the distance of any target
that lies outside: `docs/linear_model.md` says what the theorem becomes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._arrays import FloatArray
from longterm.errors import InputError, NonFiniteError
from longterm.linear_model._feature_scale import EARLIER, ROOM, TARGET_POWER, FeatureScale, gathered
from longterm.linear_model._memory import Average, LearnerMemory
from longterm.linear_model._rows import (
    IN_ORDER,
    TOO_LARGE,
    RowBlock,
    immoderate,
    is_moderate,
    is_row,
    labels_for,
    largest,
    lengths_of,
    require_moderate,
    row_block,
    weights_for,
    whole_numbers,
)
from longterm.linear_model._settings import LEADERS, Settings
from longterm.linear_model.kernels.layout import ORDINARY, TRACE
from longterm.linear_model.kernels.rule import NO_NUMBERS, NO_ROUNDS, NO_TRACE, compiled_rule
from longterm.linear_model.kernels.score import slopes_kernel
from longterm.storage.one_thread import OneThread, exclusive

FLOAT, WHOLE = np.dtype(np.float64), np.dtype(np.int64)
NARROWEST, LARGEST_LIMIT = 1e-60, 1e150
"""The intercept's interval is never widened to less, and its V_b not beyond the square: both keep numbers finite."""
LONGEST_SCALED = 1e60
"""The end of the range for scaled rows: sums are multiplied where factors change, and must have room for that."""
LOG_ODDS = 4.0
"""The intercept's bound for two classes unless another is given: shares between 2 % and 98 %."""


class BudgetLinearLearner(LearnerMemory):
    """A linear model of `dimension` weights with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    One thread at a time may learn or save; a second one is refused (InUseError).

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
        How it learns.
    fit_intercept : bool
        Whether there is an intercept, which costs no budget.
    intercept_bound : float, optional
        It stays within ±intercept_bound. None: an offset (log-odds of the classes so far, mean of the targets so far)
        and a residual; with one scale ±4 for two classes, for regression an interval that grows with the targets.
    constants : "online" or dict
        "online", or {"feature_norm": …, "label_bound": …, "rounds": …} for steps made for known bounds.
    scales : {"mixed", "priced", "one"}, optional
        A mixture of eight radii in one leader, so that a generous budget does no harm; the same where radii pay for the
        multiplier, too; or the budget's own radius alone. None: "mixed" for FTRL with constants found online.
    max_features : int, optional
        Penalised FTRL: no decision has more weights other than 0 than this.
    beta, growth : float
        θ_t ∝ t^−β; penalised FTRL's weights w_t ∝ t^(1 + growth).
    scale_features : bool
        Whether features are scaled, and for two classes where there is an intercept and the memory is not sparse
        centred, by what was seen on the stream (FTRL with a mixture of scales). The budget is then one of weights of
        scaled features.
    sparse : bool
        Whether the memory is laid out for sparse rows (A-FTRL only: rounds then cost what they touch). Rows of the
        other kind are converted.
    seed : int
        Draws the rounds that stand for others in the average.

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
        self._rule = compiled_rule(rule, settings.dimension, sparse)
        self._average = Average(settings.dimension, seed)
        self._settings = settings  # which says whether features may be centred
        centred = self._may_centre and settings.classifies
        self._scale = FeatureScale(settings.dimension, centred) if scale_features else None
        self._use(settings)
        self._plan_average()

    # --- learning ---------------------------------------------------------------------------------------------

    @property
    def _may_centre(self) -> bool:
        """Whether there is an intercept to take up what is taken off the features, and a memory without zeros."""
        s = self._settings
        return (self._widens or s.offset != "none" or s.reach > 0) and not self._rule.is_sparse

    def step_dense(self, row: ArrayLike, y: float, weight: float = 1.0) -> float:
        """Learn one row of `dimension` numbers.

        Parameters
        ----------
        row : array-like of shape (dimension,)
            The features u.
        y : float
            Its label, ±1, or its target.
        weight : float
            By what its loss is multiplied.

        Returns
        -------
        margin : float
            ⟨u, x_t⟩ + b_t, from before the row was learned.
        """
        u = np.ascontiguousarray(row, FLOAT)
        if u.shape != self._shape:
            remedy = f"Give {self._settings.dimension} numbers"
            raise InputError("row", f"has shape {u.shape}", remedy, round=self.rounds + 1)
        lock = self._guard.lock
        if lock.locked():
            raise self._guard.refusal()
        with lock:
            if self._scale is not None:
                return self._step_scaled(u[None], u, y, weight, None)
            level, label = self._level, self._label_for(u, y, weight)
            margin = self._rule.step_dense(u, label, weight)
            if margin != margin:  # NaN: the kernel refused the row
                self._require_row(u, float(y), weight, None)
                with self._rule.of_any_length():
                    margin = self._rule.step_dense(u, label, weight)
            self._until_sample -= 1
        return margin + level

    def step(self, indices: ArrayLike, values: ArrayLike, y: float, weight: float = 1.0) -> float:
        """Learn one sparse row.

        Parameters
        ----------
        indices : array-like of int
            The columns of the features that are not 0, increasing.
        values : array-like of float
            These features.
        y : float
            Its label, ±1, or its target.
        weight : float
            By what its loss is multiplied.

        Returns
        -------
        margin : float
            ⟨u, x_t⟩ + b_t, from before the row was learned.
        """
        u, columns = np.ascontiguousarray(values, FLOAT), np.ascontiguousarray(indices)
        if columns.dtype is not WHOLE:
            columns = whole_numbers("indices", columns)
        lock = self._guard.lock
        if lock.locked():
            raise self._guard.refusal()
        with lock:
            kernel_looks = self._rule.is_sparse and self._scale is None
            if not kernel_looks and not is_row(columns, u, self._settings.dimension):
                raise self._refusal(u, columns)
            if self._scale is not None:
                return self._step_scaled((u, columns, np.array([0, u.size])), u, y, weight, columns)
            level, label = self._level, self._label_for(u, y, weight, columns)
            try:
                margin = self._rule.step(columns, u, label, weight)
            except TypeError:  # not vectors
                margin = math.nan
            if margin != margin:
                self._require_row(u, float(y), weight, columns)
                with self._rule.of_any_length():
                    margin = self._rule.step(columns, u, label, weight)
            self._until_sample -= 1
        return margin + level

    def _step_scaled(
        self, rows: Any, u: FloatArray, y: float, weight: float, columns: NDArray[np.int64] | None
    ) -> float:
        """Where features are scaled, a row is a block of one, but where nothing about it can be out of range."""
        self._require_label(y, weight)
        assert self._scale is not None
        most, size, scale = self._ordinary, largest(u), self._scale
        if not (size <= most and weight <= most and -most <= y - self._level <= most):
            self._require_row(u, float(y), weight, columns)
        block = RowBlock(rows, 1, size * math.sqrt(u.size))
        labels, weights = np.array([float(y)]), np.array([float(weight)])
        if not self._may_not_fit(block, labels, weights) and scale.longest(block.longest) <= ORDINARY:
            level, label, whole = self._level, self._label_for(u, y, weight, columns), scale.whole(rows)
            seen = scale.scaled(whole)
            if isinstance(seen, tuple):
                margin = self._rule.step(seen[1], seen[0], label, weight)
            else:
                margin = self._rule.step_dense(seen[0], label, weight)
            if margin != margin:
                raise self._refusal(u, columns)
            self._counted_for_scale(whole, np.array([margin]), np.array([label]), weights)
            self._until_sample -= 1
            return margin + level
        margins = np.empty(1)
        try:
            self.learn_checked(block, labels, weights, margins=margins)
        except InputError:
            raise self._refusal(u, columns) from None
        return float(margins[0])

    def _label_for(self, u: FloatArray, y: float, weight: float, columns: NDArray[np.int64] | None = None) -> float:
        """The label as the kernel is to see it, once it and the weight are known to be sound."""
        label = self._require_label(y, weight)
        most = self._ordinary
        if weight > most or not -most <= label - self._level <= most:
            self._require_row(u, label, weight, columns)
        if self._until_sample == 0:
            self._sample()
        if not self._widens:
            return label
        if not (self._has_level and abs(label - self._level) <= self._settings.reach):
            self._require_row(u, label, weight, columns)  # before the interval changes
            self._begin_at(label)
            if abs(label - self._level) > self._settings.reach:
                self._widen(abs(label - self._level))
        return label - self._level

    def _require_label(self, y: float, weight: float) -> float:
        """The label as a number, once it and the weight are known to be sound."""
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

    def _require_row(self, u: FloatArray, y: float, weight: float, columns: NDArray[np.int64] | None) -> None:
        """Raise if the row, with a label or target that is a number, is out of range, or none at all."""
        sound = u.ndim == 1 and (columns is None or is_row(columns, u, self._settings.dimension))
        length = float(lengths_of(u[None])[0]) if sound else math.nan
        distances, radii = self._distances_and_radii(np.array([y]))
        if not is_moderate(length, float(distances[0]), self._heaviest(float(weight)), float(radii[0])):
            raise self._refusal(u, columns)

    def _heaviest(self, weight: Any) -> Any:
        """What counts as a row's weight in the range of numbers."""
        return weight

    def _distances_and_radii(self, labels: FloatArray, ordered: bool = True) -> tuple[FloatArray, FloatArray]:
        """|y| and ϱ of `is_moderate` for labels in this order; not ordered: the largest that they are in any."""
        radius, reach = self._rule.number_of("radius"), self._settings.reach
        sizes = np.abs(labels)
        if not self._widens:
            return sizes, np.full(len(sizes), radius + reach)
        with np.errstate(over="ignore"):
            if self._has_level or ordered:
                level = self._level if self._has_level else float(labels[0])
                sizes, offsets = sizes + abs(level), np.abs(labels - level)
            else:
                sizes, offsets = sizes + sizes.max(), np.full(len(sizes), labels.max() - labels.min())
            farthest = np.maximum.accumulate(offsets) if ordered else np.full(len(sizes), offsets.max())
            return sizes, radius + np.maximum(reach, 2 * farthest)

    def _refusal(self, u: FloatArray, columns: NDArray[np.int64] | None = None) -> InputError:
        """What is wrong with a row that cannot be learned; nothing is left of it."""
        t = self.rounds + 1
        self._average.take_back(t)
        self._plan_average()
        if not np.isfinite(u).all():
            what = "holds NaN or infinity"
            return NonFiniteError("row", what, "Check this row; nothing was learned from it", round=t)
        if columns is not None and (u.ndim != 1 or u.shape != columns.shape):
            what = f"has shape {columns.shape}, the values {u.shape}"
            return InputError("indices", what, "Give an index for each value", round=t)
        if columns is not None and not is_row(columns, u, self._settings.dimension):
            what = f"are not increasing within 0 … {self._settings.dimension - 1}"
            return InputError("indices", what, "Sort them, and give each once", round=t)
        what = "has numbers so large that the squares of its gradient overflow"
        return InputError("row", what, TOO_LARGE, round=t)

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
            By what the loss of each row is multiplied.
        order : array-like of int, optional
            Row numbers: learn these rows in this order, each as often as it is named.
        record : sequence of int, optional
            Round numbers to trace.

        Returns
        -------
        margins : ndarray of shape (n,) or (len(order),)
            ⟨u, x_t⟩ + b_t of each row, from before it was learned. With `record` a trace instead, a record for each
            of these rounds that lies in the block: `round`, `nonzeros` and `multiplier` of x_t, and the sums up to
            and with it, `loss`, `signed_violation`, `hard_violation`, `squared_violation`.
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
        trace = np.empty(len(wanted), dtype=TRACE)
        self.learn_checked(block, labels, weights, rows_in_order, record=wanted, trace=trace)
        return trace

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
        """`learn` for what `row_block`, `labels_for` and `weights_for` made, and `require` has seen."""
        if block.count == 0:
            return
        look = self._may_not_fit(block, labels, weights)
        if not look and (block.longest if self._scale is None else self._scale.longest(block.longest)) <= ORDINARY:
            self._learn_seen(block, labels, weights, order, margins, record, trace, look=False)
            return
        back = self._way_back() if look else None
        try:
            with self._rule.of_any_length():
                self._learn_seen(block, labels, weights, order, margins, record, trace, look=look)
        except InputError:
            if back is not None:
                back()
            raise

    def _way_back(self) -> Callable[[], None]:
        """What makes everything as it is now."""
        settings, level, sampled = self._settings, (self._has_level, self._level), self._average.sampled
        arrays, scale = self._rule.arrays(), deepcopy(self._scale)

        def back() -> None:
            self._rule = compiled_rule(settings.rule, settings.dimension, self._sparse)
            self._use(settings)
            self._rule.restore(arrays)
            (self._has_level, self._level), self._average.sampled, self._scale = level, sampled, scale
            self._plan_average()

        return back

    def _may_not_fit(self, block: RowBlock, labels: FloatArray, weights: FloatArray) -> bool:
        """Whether a row could be out of range once it is scaled, by factors of now or by others, half-way through."""
        if self._scale is None:
            return False
        if not self._scale.stays_for(block.count):
            return True
        weight = float(weights.max()) if len(weights) else 1.0
        distance = 2 * largest(labels) + abs(self._level)
        longest = self._scale.longest(block.longest)
        return not is_moderate(longest, distance, weight, self._radius + 4 * distance, LONGEST_SCALED)

    def _learn_seen(
        self,
        block: RowBlock,
        labels: FloatArray,
        weights: FloatArray,
        order: NDArray[np.int64],
        margins: FloatArray,
        record: NDArray[np.int64],
        trace: NDArray[Any],
        *,
        look: bool,
    ) -> None:
        if self._rule.is_sparse and not block.is_sparse:
            block = block.to_sparse()
        shuffled = order is not IN_ORDER
        count = len(order) if shuffled else block.count
        before = self._level
        if self._widens and count:
            self._begin_at(float(labels[order[0] if shuffled else 0]))
            labels = labels - self._level
        start = 0
        while start < count:
            if self._until_sample == 0:
                self._sample()
            stop = min(count, start + self._until_sample)
            if self._widens:
                stop = self._widened_for(labels[order[start:stop]] if shuffled else labels[start:stop], start)
            some = margins[start:stop] if len(margins) else NO_NUMBERS
            if self._scale is not None:
                room = max(ROOM // self._settings.dimension, 1) if self._scale.centred else count
                stop = min(stop, start + min(self._scale.until_due, room))
                chosen = order[start:stop] if shuffled else slice(start, stop)
                part = gathered(block.rows, order[start:stop], self._settings.dimension) if shuffled else None
                part = self._scale.whole(block.part(start, stop) if part is None else part)
                of_rows = weights[chosen] if len(weights) else weights
                some = some[: stop - start] if len(some) else np.empty(stop - start)
                seen = self._scaled(part, labels[chosen], of_rows) if look else self._scale.scaled(part)
                if seen is None:
                    what = f"rows {start} … {stop - 1} hold one whose numbers, scaled as those before it, overflow"
                    raise InputError("X", what, TOO_LARGE, round=self.rounds + 1)
                played = self._rule.play(seen, IN_ORDER, labels[chosen], of_rows, record, trace, some)
                self._counted_for_scale(part, some, labels[chosen], of_rows)
            elif shuffled:
                played = self._rule.play(block.rows, order[start:stop], labels, weights, record, trace, some)
            else:
                part, part_weights = block.part(start, stop), weights[start:stop]
                played = self._rule.play(part, IN_ORDER, labels[start:stop], part_weights, record, trace, some)
            if played != stop - start:  # blocks are checked, so that this never happens
                raise InputError("X", f"row {start + played} was refused", "Scale the features", round=self.rounds + 1)
            self._until_sample -= stop - start
            start = stop
        if self._widens and len(margins):
            margins[0] += before  # the first target of all was not known before it came
            margins[1:] += self._level

    def _scaled(self, rows: Any, labels: FloatArray, weights: FloatArray) -> Any:
        """Rows as the kernel is to see them; factors are made anew where they are due. None: out of range as such."""
        assert self._scale is not None
        scale, change = copy(self._scale), None
        scale.begin(rows)
        if scale.is_due():
            change = scale.renewed(None if self._classifies else TARGET_POWER)
        seen = scale.scaled(rows)
        sizes, radius = np.abs(labels), self._rule.number_of("radius") + self._settings.reach
        longest = largest(seen[0] if isinstance(seen, tuple) else seen) * math.sqrt(self._settings.dimension)
        if immoderate(seen, longest, sizes, weights, np.full(len(sizes), radius), most=LONGEST_SCALED) is not None:
            return None
        if change is not None:
            more = EARLIER if self._classifies else 1.0
            self._rule.rescale(*change, more)
            scale.slopes = scale.slopes * more
        self._scale = scale
        return seen

    def _counted_for_scale(self, rows: Any, margins: FloatArray, labels: FloatArray, weights: FloatArray) -> None:
        """What the features' scale is made of, once the rows are learned."""
        assert self._scale is not None
        slopes, s = NO_NUMBERS, self._settings
        if self._scale.centred:
            given, slopes, total = np.ascontiguousarray(labels), np.empty(len(margins)), self._scale.slopes
            total[0] = slopes_kernel()(s.code, s.loss_parameter or 0.0, margins, given, weights, slopes, total[0])
        self._scale.count(rows, slopes if self._classifies else NO_NUMBERS)

    def scale_by(self, block: RowBlock) -> None:
        """Before the first row: centre and scale features by what they are in these rows, once and for all."""
        self._scale = FeatureScale.of_block(block, self._settings.dimension, self._may_centre)
        self._use(self._settings)

    def require(
        self, block: RowBlock, labels: FloatArray, weights: FloatArray, order: NDArray[np.int64] | None = None
    ) -> None:
        """Raise if a row of the block is out of range (`_rows.is_moderate`). Without an order: in some order it is."""
        if block.count == 0:
            return
        distance, weight = largest(labels), self._heaviest(float(weights.max()) if len(weights) else 1.0)
        distance += distance + abs(self._level) if self._widens else 0.0
        radius = self._rule.number_of("radius") + max(self._settings.reach, 2 * distance if self._widens else 0.0)
        if is_moderate(block.longest, distance, weight, radius):  # so is every row of it
            return
        if order is not None and order is not IN_ORDER:
            labels, weights = labels[order], weights[order] if len(weights) else weights
        if len(labels) == 0:
            return
        distances, radii = self._distances_and_radii(labels, ordered=order is not None)
        with np.errstate(over="ignore"):
            weights = self._heaviest(weights if len(weights) else np.ones(len(labels)))
        require_moderate(block, distances, weights, radii, IN_ORDER if order is None else order)

    # --- the intercept's interval -----------------------------------------------------------------------------

    def _begin_at(self, y: float) -> None:
        """The first target is what the interval is about."""
        if not self._has_level:
            self._has_level, self._level = True, y

    def _widened_for(self, labels: FloatArray, start: int) -> int:
        """Widen the interval if the first of these targets asks for it; where the next one does, to stop before it."""
        sizes = np.abs(labels)
        if sizes[0] > self._settings.reach:
            self._widen(float(sizes[0]))
        beyond = sizes > self._settings.reach
        return start + (int(beyond.argmax()) if beyond.any() else len(labels))

    def _widen(self, size: float) -> None:
        """The interval becomes ±2 size; the decision and its curvature stay as they are (`docs/linear_model.md`)."""
        size = max(size, NARROWEST)
        if self._settings.scales != "one":  # the residual begins anew
            self._use(replace(self._settings, residual_radius=2 * size))
            return
        scalars, before = self._rule.scalars, self._settings.intercept_bound
        limit = math.sqrt(scalars["intercept_squares"][0])  # curvature times bound: what holds b at the interval's end
        scalars["intercept_slope"] = min(max(scalars["intercept_slope"][0], -limit), limit)
        self._use(replace(self._settings, intercept_bound=2 * size))
        if before > 0.0:
            scalars["intercept_squares"] = min(limit * (2 * size / before), LARGEST_LIMIT) ** 2
