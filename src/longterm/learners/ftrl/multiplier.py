"""The paper's multiplier as a slot: one λ_j for each constraint, with a penalty θ_t λ²/2 that fades.

    λ_{t+1} = [ λ_t + μ_t ( g(x_t) − θ_t λ_t ) ]₊,     θ_t = θ_0/(M_t t^β),   μ_t = 1/(θ_t (t + 1)),     λ_1 = 0

M_t is the unit of the losses: 1 where θ_0 was chosen for their size, else the length of the longest gradient up to
round t. While M_t = 0, up to round τ, the first with a gradient other than 0, λ stays 0.

Terms of the theorem (`docs/proofs/aftrl.md`), where the primal side has Σ Δf_t + Σ ⟨λ_t, g(x_t)⟩ ≤ P, and D ≥ ‖g(x)‖:

    Σ Δf_t                 ≤ P + Q,   Q = (D²/2) Σ 1/(θ_t t)
    max_j Σ_t g_j(x_t)     ≤ (τ − 1) max_j [g_j(x_1)]₊ + √( 2 N_T (P + Q + F T) ),   N_T = 1/μ_τ + Σ_{τ<t≤T} θ_t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, as_float, like, namespace
from longterm._base.validate import Hyper
from longterm.learners.ftrl.slots import FTRLDual, FTRLState, Leader, Scale
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.prox_learner import (
    as_reported,
    length_bound,
    positive_or_one,
    require_exact,
    values_of,
)
from longterm.learners.interface.states import as_numbers
from longterm.problems import Problem
from longterm.problems.constraints.prox import Prox
from longterm.theory.bounds import LONG_TERM, REGRET, BoundValues
from longterm.theory.paper import violation_bound
from longterm.theory.step_sums import power_sum

SHARE = 0.1
"""The default θ_0 as a share of D²/F, or of D²/R per unit M_t.

Bounds would choose about seven times as much. On data that more than doubled the hard violation.
"""


class MultiplierState(NamedTuple):
    """The state (λ_t, N_{t−1}, τ): λ has the shape (..., m)."""

    multiplier: Array
    theta_sum: Array
    """N_{t−1} = 1/μ_τ + Σ_{τ<s<t} θ_s where the unit is found online, else 0. Only bounds read it."""
    first_gradient: Array
    """τ where the unit is found online, else 0, as before it. Only bounds read it."""


@dataclass(frozen=True, eq=False)
class Multiplier(FTRLDual):
    """A multiplier for each constraint, with θ_t = θ_0/(M_t t^β).

    Parameters
    ----------
    theta_0 : float or array
        θ_0, above 0. Larger values favour the regret.
    beta : float or array
        β in (0, 1). Larger values favour the constraint.
    """

    theta_0: Hyper
    beta: Hyper = 2 / 3

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "theta_0")
        validate.validate_fields(self, validate.trade_off, "beta")

    @classmethod
    def for_unit(cls, constraint_bound: float, unit: float, theta_0: Hyper | None, beta: Hyper) -> Multiplier:
        """Return the multiplier with θ_0, by default D²/(10 unit); the unit is F, or R where M_t is found online."""
        return cls(SHARE * constraint_bound**2 / unit if theta_0 is None else theta_0, beta)

    @classmethod
    def for_range(cls, prox: Prox, problem: Problem, theta_0: Hyper | None, beta: Hyper) -> Multiplier:
        """Return the multiplier with θ_0, by default D²/(10F)."""
        F = validate.positive_scalar("loss_range", problem.constants.loss_range)
        return cls.for_unit(prox.values_norm_bound(), F, theta_0, beta)

    def steps(self, t: Array, x: Array, unit: Array | None = None) -> tuple[Array, Array]:
        """Return θ_t and μ_t in the library and dtype of x, both 0 while the unit is 0."""
        t = as_float(t, x)
        theta = like(self.theta_0, x) / t ** like(self.beta, x)
        if unit is None:
            return theta, 1 / (theta * (t + 1))
        xp, theta = namespace(x), theta / positive_or_one(unit)
        zero = xp.zeros_like(theta)
        return xp.where(unit > 0, theta, zero), xp.where(unit > 0, 1 / (theta * (t + 1)), zero)

    def start(self, count: int, x: Array) -> MultiplierState:
        """Return λ_1 = 0 for `count` constraints, for learners that play x."""
        xp = namespace(x)
        zero, no_round = xp.zeros(x.shape[:-1], dtype=x.dtype), xp.zeros(x.shape[:-1], dtype=xp.int64)
        return MultiplierState(xp.zeros((*x.shape[:-1], count), dtype=x.dtype), zero, no_round)

    def ascend(self, dual: MultiplierState, t: Array, values: Array, unit: Array | None = None) -> MultiplierState:
        """Return the dual state after round t, in which g_j(x_t) were `values`, shape (..., m)."""
        xp, (theta, mu) = namespace(values), self.steps(t, values, unit)
        ascent = values - as_column(theta) * dual.multiplier
        multiplier = xp.maximum(dual.multiplier + as_column(mu) * ascent, 0.0)
        if unit is None:
            return dual._replace(multiplier=multiplier)
        first = xp.where(mu > 0, 1 / positive_or_one(mu), mu)
        return MultiplierState(
            multiplier=multiplier,
            theta_sum=dual.theta_sum + xp.where(dual.theta_sum > 0, theta, first),
            first_gradient=xp.where((dual.first_gradient == 0) & (unit > 0), t, dual.first_gradient),
        )

    def init(self, prox: Prox, x: Array, unit: Array | None) -> MultiplierState:
        return self.start(prox.constraint.count, x)

    def update(self, state: FTRLState, feedback: Feedback, unit: Array | None) -> tuple[MultiplierState, Array]:
        values = values_of(feedback, state.weight.shape[-1])
        dual = self.ascend(state.dual, state.round, values, unit)
        return dual, state.weight + dual.multiplier

    def weight(self, state: FTRLState, leader: Leader) -> Array:
        return state.weight

    def report(self, state: FTRLState, scale: Scale) -> dict[str, Array]:
        multiplier = {"multiplier": as_reported(state.multiplier)}
        if scale.finds_unit:  # then θ_t is not known before the round
            return multiplier
        theta, mu = self.steps(state.round, state.x)
        return {**multiplier, "theta": theta, "mu": mu}

    def bounds(
        self, primal: FloatArray, prox: Prox, scale: Scale, problem: Problem, T: FloatArray, state: FTRLState | None
    ) -> BoundValues:
        require_exact(prox)
        D = length_bound(prox, problem)
        if state is None or not scale.finds_unit:
            regret, violation = self.terms(primal, D, problem, T)
        else:
            regret, violation = self.terms(primal, D, problem, T, state.dual, scale.unit(state.scale))
        return {REGRET: regret, LONG_TERM: violation}

    def terms(
        self,
        primal: FloatArray,
        D: float,
        problem: Problem,
        T: FloatArray,
        dual: MultiplierState | None = None,
        unit: Array = 1.0,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the bounds on regret and violation after T rounds; with `dual` from the θ_t that occurred."""
        theta_0, beta = np.asarray(self.theta_0), np.asarray(self.beta)
        total = np.where(T > 0, power_sum(np.maximum(T, 1.0), 1 - beta), 0.0)
        regret = primal + D**2 / 2 * (as_numbers(unit) / theta_0) * total
        if dual is None:
            waited, weight = np.zeros(()), theta_0 * (power_sum(T, beta) + 1)
        else:
            first, weight = as_numbers(dual.first_gradient), as_numbers(dual.theta_sum)
            waited = np.where(first > 0, first - 1, T) * violation_at_start(problem)
        return regret, waited + violation_bound(weight, regret, problem.constants, T)


def violation_at_start(problem: Problem) -> float:
    """Return max_j [g_j(x_1)]₊ at the centre. Where g_t changes, min(D, G_g R) bounds it if some g_t(x*) ≤ 0."""
    c, constraint = problem.constants, problem.constraint
    if constraint.parameters:
        return c.first_violation
    return max(float(np.max(constraint.values(problem.enclosing_set.centre))), 0.0)
