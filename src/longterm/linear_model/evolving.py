"""A learner for what changes: its past fades with a half-life, and it may be given more features as they appear.

**Forgetting.** Row t counts ω_t = 2^{t/h} times. A factor on all losses changes no decision of FTRL with constants
found online, so this is the leader of z_t = Σ_s γ^{t−s}n_s, Λ and V likewise, γ = 2^{−1/h}: after h rounds a row counts
half. Before these weights grow too large the whole state is divided by a power of 2, which is exact: no bit is lost,
and splitting rows into blocks still changes nothing.

**On every interval I**, for every x within the budget, with F the range of a loss, M the longest gradient,

    Σ_{t∈I} f_t(x_t) − f_t(x) ≤ B_h(1 + |I| ln 2/h) + F(h/ln 2 + 1),      B_h = O(RM√h);

A-FTRL's multiplier adds Q_t/ω_t = O(RMh^β) to B_h. All of it is for the weights: of the intercept's
offset nothing is proved.

*Proof.* Let r_t = f_t(x_t) − f_t(x), D_t = Σ_{s≤t}γ^{t−s}r_s. The theorem of the rule (`docs/scales.md`), on the losses
ω_tf_t and divided by ω_t, is D_t ≤ B_h for every t: V_t/ω_t² ≤ M²/(1 − γ²) ≤ M²(h/(2 ln 2) + 1) there, and all else
grows no faster. As r_t = D_t − γD_{t−1}, Σ_{t=a}^b r_t = D_b + (1 − γ)Σ_{t=a}^{b−1}D_t − γD_{a−1}, with 1 − γ ≤ ln 2/h
and −D_{a−1} ≤ F/(1 − γ) ≤ F(h/ln 2 + 1). ∎ The last term is real: z may have grown to Mh against what is best in I.
With h of the order of |I|^{2/3} the whole is O(|I|^{2/3}); `Restarted` with stretches of h has the same order.

**Violation.** Penalised FTRL's w_t ∝ M_{t−1}t^{1+e} grow with ω_t, and Σ_{s≤t}w_s[g(x_s)]₊ ≤ Khω_t, so as in
`docs/aftrl.md` Σ[g(x_t)]₊ ≤ KhΣω_t/w_t = O(h) for every T. A-FTRL's λ_t fades, too: it is made of the violation of the
last rounds, and for Σ g(x_t) nothing is promised. Where the budget must hold, use penalised FTRL.

**Growing.** `grow` adds weights, 0 so far. θ_0 and w_0 stay those of the first dimension, since θ_t must not rise and
w_t not fall: D, which they are made of, is then that of the budget in the first dimension, and the theorems hold with
D²/θ_0 as it is.

The average x̄ is not kept: under drift it stands for nothing. `average` is the decision in force.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse as scipy_sparse

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._rows import IN_ORDER, RowBlock
from longterm.linear_model._settings import LEADERS, Settings
from longterm.linear_model.kernels.mixture import FACTOR, LOSS, OWED, SQUARES
from longterm.linear_model.kernels.rule import NO_NUMBERS, NO_ROUNDS, NO_TRACE, SparseRule, compiled_rule
from longterm.linear_model.kernels.score import losses_kernel, margin_kernel, unsorted_row_kernel
from longterm.linear_model.streaming import BudgetLinearLearner
from longterm.storage.one_thread import exclusive

UNITS = {
    "loss_sum": 1,
    "signed_violation": 0,
    "hard_violation": 0,
    "squared_violation": 0,
    "multiplier": 1,
    "multiplier_sum": 1,
    "gradient_squares": 2,
    "longest_gradient": 1,
    "scale": -1,
    "norm_1": 1,
    "norm_2": 2,
    "intercept": 0,
    "intercept_slope": 1,
    "bound_sum": 0,  # read by nobody here: other bounds hold
    "intercept_squares": 2,
    "norm_1_low": 1,
    "norm_2_low": 2,
    "first_length": 0,
    "clip": 1,
    "clipped_squares": 2,
    "pivot": 1,
    "residual_clip": 1,
    "residual_clipped_squares": 2,
    "residual_pivot": 1,
    "residual": 0,
    "positive_weight": 1,
    "negative_weight": 1,
    "heaviest": 1,
    "reach": 0,
    "waits": 0,
    "factor": -1,
    "mean_radius": 0,
    "owed": 1,
    "owed_squares": 2,
    "patience": 1,
    "tilt": -1,
    "residual_factor": -1,
    "residual_mean_radius": 0,
    "residual_owed": 1,
    "residual_owed_squares": 2,
    "residual_patience": 1,
    "residual_tilt": -1,
}
"""By what power of the losses' unit each scalar of an FTRL state grows. z has that of the losses."""
SPAN = 64
"""Weights grow up to 2^SPAN before the state is divided by that."""
LEAST_SQUARES = 1e-250
"""Sums of squares are not divided below this: what no gradient contradicts need not be forgotten."""
NEVER = 2**62
EVOLVES = ("first", "half_life", "shift", "losses")


class EvolvingLinearLearner(BudgetLinearLearner):
    """A `BudgetLinearLearner` that forgets, and that can be given more features.

    Parameters
    ----------
    dimension : int
        d, the number of features at the beginning.
    budget : float
        Of g(x) = l1‖x‖₁ + ½ l2‖x‖² − budget.
    half_life : float, optional
        After so many rows a row counts half. None: nothing is forgotten.
    **options
        What else `BudgetLinearLearner` takes. Forgetting is for A-FTRL and penalised FTRL with constants found online.

    Notes
    -----
    On every interval I the regret is at most B_h(1 + |I| ln 2/h) + F(h/ln 2 + 1), with B_h = O(RM√h), for A-FTRL
    O(RM(√h + h^β)): the top of this file has the proof.
    With penalised FTRL the hard violation is O(h) for every T; with A-FTRL the price of the budget
    fades as the losses do, and nothing is promised of the violation.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model import EvolvingLinearLearner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((8000, 3))
    >>> turns = np.where(np.arange(8000) // 2000 % 2, -1, 1)  # what was right is wrong 2,000 rows later
    >>> y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(8000)) * turns
    >>> for half_life in (None, 200):
    ...     learner = EvolvingLinearLearner(3, 3.0, half_life=half_life, rule="penalised-ftrl")
    ...     margins = learner.learn(X, y)
    ...     print(half_life, round(learner.cumulative_loss / 8000, 2))
    None 0.51
    200 0.39
    >>> learner.grow(5)
    >>> learner.weights.shape
    (5,)
    """

    kind = "evolving linear learner"

    def __init__(self, dimension: int, budget: float, *, half_life: float | None = None, **options: Any) -> None:
        self._first, self._shift, self._losses = dimension, 0, 0.0
        self._half_life = half_life if half_life is None else validate.positive_scalar("half_life", half_life)
        if options.get("scale_features"):
            what = "factors found on a stream stand for all of it, and rows are forgotten here"
            raise InputError("scale_features", what, "Scale the features before, or leave scale_features out")
        super().__init__(dimension, budget, **options)
        if self._half_life is None:
            return
        if self._half_life < 1:
            raise InputError("half_life", f"{half_life!r} is less than one row", "Give a number of rows")
        if self._settings.rule not in LEADERS or self._settings.given is not None:
            what = f"forgetting is for {' and '.join(LEADERS)} with constants found online"
            raise InputError("half_life", what, 'Use rule="a-ftrl" and constants="online", or leave half_life out')

    def _use(self, settings: Settings) -> None:
        super()._use(settings)
        if isinstance(self._rule, SparseRule):
            self._margin, self._unsorted = margin_kernel(), unsorted_row_kernel()
        if settings.dimension != self._first:
            self._rule.use(self._parameters(replace(settings, dimension=self._first)))

    @property
    def half_life(self) -> float | None:
        """After so many rows a row counts half."""
        return self._half_life

    @property
    def cumulative_loss(self) -> float:
        return super().cumulative_loss if self._half_life is None else self._losses

    # --- more features ----------------------------------------------------------------------------------------

    @exclusive
    def grow(self, dimension: int) -> None:
        """Have so many features from now on; the weights of new ones are 0. O(d).

        Parameters
        ----------
        dimension : int
            At least as many as now.
        """
        before = self._settings.dimension
        if validate.count("dimension", dimension) < before:
            raise InputError("dimension", f"{dimension} is less than the {before} there are", "Features only appear")
        arrays, name = self._rule.arrays(), self._rule.vector_name
        more = (dimension - before) * self._rule.numbers_per_coordinate
        arrays[name] = np.append(arrays[name], np.zeros(more))
        self._rule = compiled_rule(self._settings.rule, dimension, self._sparse)
        self._use(replace(self._settings, dimension=dimension))
        if isinstance(self._rule, SparseRule):
            arrays["heap"] = np.empty(0, dtype=np.uint64)
        self._rule.restore(arrays)
        self._make_heap()

    def _make_heap(self) -> None:
        """Entries for what is active, with keys of 0: bounds on anything, and in order."""
        rule = self._rule
        if not isinstance(rule, SparseRule):
            return
        threshold = rule.number("multiplier_sum") * rule.number_of("l1")
        active = np.flatnonzero(np.abs(rule.vector[::2]) > threshold)
        words = rule.vector.view(np.uint64)
        words[1::2] = 0
        words[2 * active + 1] = rule.heap[: len(active)] = active.astype(np.uint64) + np.uint64(1)
        for name in ("active", "live", "entries"):
            rule.scalars[name] = len(active)

    # --- learning ---------------------------------------------------------------------------------------------

    def margin(self, indices: NDArray[np.int64], values: FloatArray) -> float:
        """⟨u, x⟩ + b of one sparse row with the decision in force; nothing is learned.

        Parameters
        ----------
        indices : ndarray of int64
            Columns within 0 … d − 1.
        values : ndarray of float64
            The features there.

        Returns
        -------
        margin : float
            What `step` would return.
        """
        if indices.size and (indices.min() < 0 or indices.max() >= self._settings.dimension):
            raise InputError("indices", "are not all columns", f"Use 0 … {self._settings.dimension - 1}")
        if indices.shape != values.shape:
            raise InputError("indices", f"has shape {indices.shape}, the values {values.shape}", "Give pairs")
        if not self._rule.is_sparse:
            return float(values @ self.weights[indices]) + self.intercept
        whole, bits = np.asarray(indices, dtype=np.int64), np.asarray(values, dtype=np.float64).view(np.int64)
        return self.margin_packed(np.concatenate([whole, bits]))

    def margin_packed(self, packed: NDArray[np.int64]) -> float:
        """`margin` with sparse memory, of what is known to be a row: its columns, and the bits of its values."""
        return self._margin(self._rule._addresses, packed) + self._level  # type: ignore[no-any-return]

    def step_packed(self, packed: NDArray[np.int64], y: float, weight: float) -> None:
        """`step` of such a row, its columns each once, in any order; labels ±1; by one thread."""
        level, label, grown = 0.0, y, weight
        if not (self._half_life is None and self._classifies and 0.0 <= weight <= self._ordinary):
            grown = weight if self._half_life is None else self._grown(weight)
            level, label = self._level, self._label_for(_halves(packed)[1], y, grown)
        margin = self._unsorted(self._rule._addresses, packed, label, grown)
        if margin != margin:
            indices, values = _halves(packed)
            order = np.argsort(indices)
            self._require_row(values[order], float(y), grown, indices[order])
            with self._rule.of_any_length():
                margin = self._unsorted(self._rule._addresses, packed, label, grown)
        if self._half_life is not None:
            self._counted(margin + level, y, weight)

    def step(self, indices: ArrayLike, values: ArrayLike, y: float, weight: float = 1.0) -> float:
        if self._half_life is None:
            return super().step(indices, values, y, weight)
        return self._counted(super().step(indices, values, y, self._grown(weight)), y, weight)

    def step_dense(self, row: ArrayLike, y: float, weight: float = 1.0) -> float:
        if self._half_life is None:
            return super().step_dense(row, y, weight)
        return self._counted(super().step_dense(row, y, self._grown(weight)), y, weight)

    def _grown(self, weight: float) -> float:
        """The weight of the next row."""
        assert self._half_life is not None
        self._given = weight
        exponent = self.rounds / self._half_life - self._shift
        if exponent >= SPAN:
            self._divide()
            exponent = self.rounds / self._half_life - self._shift
        try:
            return float(weight) * math.exp2(exponent)
        except (TypeError, ValueError):  # no number: it is refused with the label
            return weight

    def _counted(self, margin: float, y: float, weight: float) -> float:
        self._count(np.array([margin]), np.array([float(y)]), np.array([float(weight)]))
        return margin

    def _count(self, margins: FloatArray, labels: FloatArray, weights: FloatArray) -> None:
        s = self._settings
        self._losses = float(losses_kernel()(s.code, s.loss_parameter or 0.0, margins, labels, weights, self._losses))

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
        if self._half_life is None:
            super().learn_checked(block, labels, weights, order, margins=margins, record=record, trace=trace)
            return
        if len(record):
            raise InputError("record", "a trace has no sums of losses that fade", "Learn in blocks, and look between")
        if order is not IN_ORDER:  # weights belong to rounds here, not to rows
            block, labels = _in_order(block, order), labels[order]
            weights = weights[order] if len(weights) else weights
        own, start = margins if len(margins) else np.empty(block.count), 0
        while start < block.count:
            self._grown(1.0)  # after it there is room for one row at least
            left = math.ceil(min((SPAN + self._shift) * self._half_life, 2.0**62)) - self.rounds
            stop = min(block.count, start + max(left, 1))
            exponents = np.arange(self.rounds, self.rounds + stop - start) / self._half_life - self._shift
            factors = np.array([math.exp2(one) for one in exponents.tolist()])  # to the last bit as one by one
            given = weights[start:stop] if len(weights) else NO_NUMBERS
            part = RowBlock(block.part(start, stop), stop - start, block.longest, block.first_round)
            grown = factors * given if len(given) else factors
            super().learn_checked(part, labels[start:stop], grown, margins=own[start:stop])
            self._count(own[start:stop], labels[start:stop], given)
            start = stop

    def _require_row(self, u: FloatArray, y: float, weight: float, columns: NDArray[np.int64] | None) -> None:
        super()._require_row(u, y, weight if self._half_life is None else self._given, columns)

    def _heaviest(self, weight: Any) -> Any:
        return weight if self._half_life is None else weight * 2.0**SPAN  # whatever it has grown to

    def _divide(self) -> None:
        """The state in units 2^SPAN times as large: what was learned, and every decision, stays as it is."""
        assert self._half_life is not None
        times = int((self.rounds / self._half_life - self._shift) // SPAN)
        self._shift, by = self._shift + times * SPAN, -times * SPAN
        rule = self._rule
        squares = [rule.number(name) for name in ("gradient_squares", "intercept_squares")]
        if any(0 < math.ldexp(one, 2 * by) < LEAST_SQUARES or math.ldexp(one, 2 * by) == 0 < one for one in squares):
            return
        for name, power in UNITS.items():
            if name != "scale" or squares[0] > 0:
                rule.scalars[name] = np.ldexp(rule.scalars[name], by * power)
        for row, power in ((LOSS, 1), (FACTOR, -1), (OWED, 1), (SQUARES, 2)):
            rule.mixture[row] = np.ldexp(rule.mixture[row], by * power)
        vector = rule.vector[::2] if isinstance(rule, SparseRule) else rule.vector
        vector[...] = np.ldexp(vector, by)
        self._make_heap()

    # --- the average ------------------------------------------------------------------------------------------

    def _plan_average(self) -> None:
        self._until_sample = NEVER

    # --- files ------------------------------------------------------------------------------------------------

    def _specification(self) -> dict[str, Any]:
        own = {"first": self._first, "half_life": self._half_life, "shift": self._shift, "losses": self._losses}
        return {**super()._specification(), **own}

    def _restore(self, specification: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        known = dict(specification)
        first, half_life, shift, losses = (known.pop(name) for name in EVOLVES)
        if type(first) is not int or first < 1 or type(shift) is not int or type(losses) is not float:
            raise ValueError("the first dimension, the shift or the losses are no numbers")
        self._first, self._half_life, self._shift, self._losses = first, half_life, shift, losses
        super()._restore(known, arrays)
        if first > self._settings.dimension:
            raise ValueError(f"there were {first} features, and there are {self._settings.dimension}")
        if half_life is None:
            good = shift == 0
        else:
            good = type(half_life) is float and 1 <= half_life < math.inf and shift >= 0
            good = good and -1e-6 <= self.rounds / half_life - shift <= SPAN + 1 and self._settings.given is None
        if not good or (half_life is not None and self._settings.rule not in LEADERS):
            raise ValueError("nothing fades with this half-life")


def _halves(packed: NDArray[np.int64]) -> tuple[NDArray[np.int64], FloatArray]:
    count = len(packed) // 2
    return packed[:count], packed[count:].view(np.float64)


def _in_order(block: RowBlock, order: NDArray[np.int64]) -> RowBlock:
    """The rows of this order, one after another."""
    if not block.is_sparse:
        return RowBlock(np.ascontiguousarray(block.rows[order]), len(order), block.longest)
    data, indices, indptr = block.rows
    width = int(indices.max(initial=0)) + 1
    made = scipy_sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))[order]
    return RowBlock((made.data, made.indices, made.indptr), len(order), block.longest)
