"""A growing penalty on [g]₊ as a slot of FTRL: no multiplier to learn, and O(1) hard violation.

The objective of the leader has the term W_t [g(x)]₊ with W_t = Σ_{s≤t} w_s, known before round t, and
w_t = w_0 M_{t−1} t^{1+e}, where M_{t−1} is the unit of the losses (1 where w_0 was chosen for their size). The argmin
is that of ν g with the smallest ν in [0, W] that makes g ≤ 0, or W. A trace records that ν as the multiplier.

Terms of the theorem (`docs/proofs/aftrl.md`). If Σ Δf_t + Σ w_t [g(x_t)]₊ ≤ P_T ≤ C T for the primal side, regret ≤ P_T
and, with τ + 1 the first round that has a weight above 0,

    Σ [g(x_t)]₊ ≤ (C + F) ( (τ + 1)/w_{τ+1} + Σ_{τ+1<t≤T} 1/w_t ),     which stays bounded as T grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, as_float, like, namespace
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.ftrl.slots import FTRLDual, FTRLState, Leader, Scale
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.prox_learner import as_reported, positive_or_one
from longterm.learners.interface.states import as_numbers
from longterm.problems import Problem
from longterm.problems.constraints.prox import PenaltyProx, Prox
from longterm.theory.bounds import HARD, REGRET, BoundValues
from longterm.theory.step_sums import power_sum


class PenaltyState(NamedTuple):
    """The state (W_t, the sum of 1/w up to round t)."""

    weight_sum: Array
    inverse_sum: Array
    """(τ + 1)/w_{τ+1} + Σ_{τ+1<s≤t} 1/w_s where the unit is found online, else 0. Only bounds read it."""


@dataclass(frozen=True, eq=False)
class GrowingPenalty(FTRLDual):
    """The weights w_t = w_0 M_{t−1} t^{1+e} of a penalty on [g]₊.

    Parameters
    ----------
    w_0 : float or array
        Above 0.
    growth : float or array
        e, above 0.
    """

    w_0: Hyper
    growth: Hyper = 0.5

    starts_at_centre = False

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "w_0", "growth")

    def require(self, prox: Prox, scale: Scale) -> None:
        if not isinstance(prox, PenaltyProx):
            what = f"is a {type(prox).__name__}, which has no closed form for the positive part of g"
            raise InputError("prox", what, "Use a budget inside a ball about 0, or a Multiplier")
        if scale.finds_unit and np.any(prox.constraint.values(prox.over.centre) > 0):
            what = "the learner starts at the centre of its set, and that point violates the constraint"
            raise InputError("prox", what, "Use a set whose centre is feasible, or PenalisedFTRL")

    def _with_weight(self, before: PenaltyState, t: Array, unit: Array | None) -> PenaltyState:
        """Return the state with w_t added."""
        xp, t = namespace(before.weight_sum), as_float(t, before.weight_sum)
        new = like(self.w_0, t) * t ** (1 + like(self.growth, t))
        if unit is None:
            return before._replace(weight_sum=before.weight_sum + new)
        new = new * unit
        inverse = xp.where(new > 0, 1 / positive_or_one(new), new)
        first = before.inverse_sum <= 0
        return PenaltyState(before.weight_sum + new, before.inverse_sum + xp.where(first, t * inverse, inverse))

    def init(self, prox: Prox, x: Array, unit: Array | None) -> PenaltyState:
        zero = namespace(x).zeros(x.shape[:-1], dtype=x.dtype)
        return self._with_weight(PenaltyState(zero, zero), namespace(x).asarray(1), unit)

    def update(self, state: FTRLState, feedback: Feedback, unit: Array | None) -> tuple[PenaltyState, Array]:
        return self._with_weight(state.dual, state.round + 1, unit), state.weight

    def weight(self, state: FTRLState, leader: Leader) -> Array:
        return as_column(leader.least_weight(state.weight[..., 0], state.dual.weight_sum))

    def report(self, state: FTRLState, scale: Scale) -> dict[str, Array]:
        return {"multiplier": as_reported(state.weight), "weight": state.dual.weight_sum}

    def bounds(
        self, primal: FloatArray, prox: Prox, scale: Scale, problem: Problem, T: FloatArray, state: FTRLState | None
    ) -> BoundValues:
        most = scale.primal_per_round(problem, state) + problem.constants.loss_range
        if state is None or not scale.finds_unit:
            inverse_sum = power_sum(T, 1 + np.asarray(self.growth)) / np.asarray(self.w_0)
        else:
            inverse_sum = as_numbers(state.dual.inverse_sum)  # up to w_{T+1}, one term more than needed
        regret, violation = np.broadcast_arrays(primal, most * inverse_sum)
        return {REGRET: regret, HARD: violation}
