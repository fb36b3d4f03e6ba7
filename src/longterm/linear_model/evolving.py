"""A learner for streams that change: its past fades with a half-life, and features may be added.

Row t has the weight ω_t = 2^{t/h}. A common factor of all losses changes no decision, so before the weights grow too
large the state is divided by a power of 2, which is exact. The theorem is in `docs/proofs/linear_models.md`. θ_0 and
w_0 stay those of the first dimension, since θ_t must not rise and w_t not fall. The average x̄ means nothing under
drift: `average` returns the decision in force.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._rows import IN_ORDER, NO_NUMBERS, RowBlock
from longterm.linear_model._settings import Settings
from longterm.linear_model.kernels.kernel_state import KernelState
from longterm.linear_model.kernels.layout import FIELDS, MIXTURE_FIELDS
from longterm.linear_model.kernels.losses import values_and_slopes
from longterm.linear_model.streaming import BudgetLinearLearner
from longterm.storage.one_thread import exclusive

SPAN = 64
"""Weights grow up to 2^SPAN before the state is divided by that."""
LEAST_SQUARES = 1e-250
"""Sums of squares are not divided below this."""
NEVER = 2**62
EXTRA_KEYS = ("first_dimension", "half_life", "shift", "losses")


class EvolvingLinearLearner(BudgetLinearLearner):
    """A `BudgetLinearLearner` that forgets, and to which features can be added.

    Parameters
    ----------
    dimension : int
        d, the number of features at the beginning.
    budget : float
        Of g(x) = l1‖x‖₁ + ½ l2‖x‖² − budget.
    half_life : float, optional
        After so many rows a row counts half. None: nothing is forgotten.
    **options
        Further arguments of `BudgetLinearLearner`.

    Notes
    -----
    `docs/proofs/linear_models.md` bounds the regret on every interval. With penalised FTRL the hard violation is O(h)
    for every T, if gradients do not stay small for longer than h. With A-FTRL nothing is promised about the violation.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model.evolving import EvolvingLinearLearner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((8000, 3))
    >>> turns = np.where(np.arange(8000) // 2000 % 2, -1, 1)  # the labels change sign every 2,000 rows
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

    file_kind = "evolving linear learner"
    scales_by_default = False

    def __init__(self, dimension: int, budget: float, *, half_life: float | None = None, **options: Any) -> None:
        self._first_dimension, self._shift, self._losses = dimension, 0, 0.0
        self._half_life = half_life if half_life is None else validate.positive_scalar("half_life", half_life)
        if options.get("scale_features"):
            what = "a learner with a half-life forgets rows, but scale factors of a stream cover all of them"
            raise InputError("scale_features", what, "Scale the features before, or leave scale_features out")
        super().__init__(dimension, budget, **options)
        if self._half_life is None:
            return
        if self._half_life < 1:
            raise InputError("half_life", f"{half_life!r} is less than one row", "Give a number of rows")

    def _parameters(self, settings: Settings) -> Any:
        return super()._parameters(replace(settings, dimension=self._first_dimension))

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
        """Add features up to this number. Their weights are 0."""
        before = self._settings.dimension
        if validate.count("dimension", dimension) < before:
            raise InputError(
                "dimension",
                f"{dimension} is less than the {before} features of the model",
                "Features can be added but not removed",
            )
        arrays = self._state.arrays()
        arrays["vector"] = np.append(arrays["vector"], np.zeros(dimension - before))
        if self._state.is_sparse:  # the number of bits for a coordinate may change
            arrays["entries"], arrays["heap"] = np.zeros(dimension, np.uint64), np.empty(0, np.uint64)
        self._state = KernelState(self._settings.rule, dimension, self._sparse)
        self._use(replace(self._settings, dimension=dimension))
        self._state.restore(arrays)
        self._state.rebuild_heap()

    # --- learning ---------------------------------------------------------------------------------------------

    def margin(self, indices: NDArray[np.int64], values: FloatArray) -> float:
        """Return ⟨u, x⟩ + b of one sparse row with the decision in force; nothing is learned."""
        if indices.size and (indices.min() < 0 or indices.max() >= self._settings.dimension):
            raise InputError(
                "indices", "contain a number that is not a column", f"Use 0 … {self._settings.dimension - 1}"
            )
        if indices.shape != values.shape:
            raise InputError(
                "indices", f"has shape {indices.shape}, the values {values.shape}", "Give one value for each index"
            )
        return float(values @ self._state.x(indices)) + self._state.number("intercept") + self._level

    def _is_plain(self, label: float, rows: Any) -> bool:
        return self._half_life is None and super()._is_plain(label, rows)

    def _weight_bound(self, weight: Any) -> Any:
        with np.errstate(over="ignore"):
            return weight if self._half_life is None else weight * 2.0**SPAN

    def learn_checked(
        self,
        block: RowBlock,
        labels: FloatArray,
        weights: FloatArray = NO_NUMBERS,
        order: NDArray[np.int64] = IN_ORDER,
        *,
        margins: FloatArray = NO_NUMBERS,
    ) -> None:
        if self._half_life is None:
            super().learn_checked(block, labels, weights, order, margins=margins)
            return
        if order is not IN_ORDER:  # weights belong to rounds here, not to rows
            block, labels = RowBlock(block.take(order), len(order), block.longest), labels[order]
            weights = weights[order] if len(weights) else weights
        own, start = margins if len(margins) else np.empty(block.count), 0
        while start < block.count:
            self._divide_if_large()
            left = math.ceil(min((SPAN + self._shift) * self._half_life, 2.0**62)) - self.rounds
            stop = min(block.count, start + max(left, 1))
            exponents = np.arange(self.rounds, self.rounds + stop - start) / self._half_life - self._shift
            factors = np.array([math.exp2(one) for one in exponents.tolist()])  # the same bits as one by one
            given = weights[start:stop] if len(weights) else np.ones(stop - start)
            part = RowBlock(block.part(start, stop), stop - start, block.longest, block.first_round)
            super().learn_checked(part, labels[start:stop], factors * given, margins=own[start:stop])
            self._add_losses(own[start:stop], labels[start:stop], given)
            start = stop

    def _add_losses(self, margins: FloatArray, labels: FloatArray, weights: FloatArray) -> None:
        """Add the losses of rows, with their own weights, to the sum of losses."""
        values, _ = values_and_slopes(self._settings.code, self._settings.loss_parameter or 0.0, margins, labels)
        self._losses = float(np.cumsum(np.append(self._losses, values * weights))[-1])

    def _divide_if_large(self) -> None:
        """Divide the state by 2^SPAN if the next weight is that large. Every decision stays."""
        assert self._half_life is not None
        times = int((self.rounds / self._half_life - self._shift) // SPAN)
        if times == 0:
            return
        self._shift, by = self._shift + times * SPAN, -times * SPAN
        state = self._state
        squares = [state.number(name) for name in ("gradient_squares", "intercept_squares")]
        if any(0 < math.ldexp(one, 2 * by) < LEAST_SQUARES or math.ldexp(one, 2 * by) == 0 < one for one in squares):
            return
        for field in FIELDS:
            if field.unit and (field.name != "scale" or squares[0] > 0):
                state.scalars[field.name] = np.ldexp(state.scalars[field.name], by * field.unit)
        for field in MIXTURE_FIELDS:
            state.mixtures[field.name] = np.ldexp(state.mixtures[field.name], by * field.unit)
        state.z[...] = np.ldexp(state.z, by)
        state.rebuild_heap()

    # --- the average ------------------------------------------------------------------------------------------

    def _plan_average(self) -> None:
        self._until_drawn = NEVER

    # --- files ------------------------------------------------------------------------------------------------

    def _specification(self) -> dict[str, Any]:
        own = (self._first_dimension, self._half_life, self._shift, self._losses)
        return {**super()._specification(), **dict(zip(EXTRA_KEYS, own, strict=True))}

    def _restore(self, specification: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        known = dict(specification)
        first, half_life, shift, losses = (known.pop(name) for name in EXTRA_KEYS)
        if type(first) is not int or first < 1 or type(shift) is not int or type(losses) is not float:
            raise ValueError("the first dimension, the shift or the losses are not numbers")
        self._first_dimension, self._half_life, self._shift, self._losses = first, half_life, shift, losses
        super()._restore(known, arrays)
        if first > self._settings.dimension:
            raise ValueError(f"there were {first} features, and there are {self._settings.dimension}")
        if half_life is None:
            good = shift == 0
        else:
            good = type(half_life) is float and 1 <= half_life < math.inf and shift >= 0
            good = good and -1e-6 <= self.rounds / half_life - shift <= SPAN + 1
        if not good:
            raise ValueError("the half-life does not fit the state")
