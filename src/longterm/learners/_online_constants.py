"""Steps from what was seen, where no bound on the losses' gradients is known beforehand.

With b_t = ‖∇f_t(x_t)‖, M_t = max_{s≤t} b_s and a `dual_scale` that the constraint alone gives,

    θ_t = dual_scale/(M_t t^β),   μ_t = 1/(θ_t (t + 1)).

θ_t does not increase, which is all that the dual's proof asks of it (`docs/aftrl.md`). Until the first gradient other
than 0, in round τ, there is no scale to price the constraint in: M_t = 0, λ stays 0 and x stays x_1. The theorems are
about what happened, so they read the state after T rounds.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from longterm._arrays import Array, FloatArray, column, like, namespace, to_numpy
from longterm._validate import Hyper
from longterm.constraints.prox import Prox
from longterm.problems import Problem
from longterm.theory.bounds import NoTheoremError
from longterm.theory.conditions import power_sum
from longterm.theory.schedules import Steps

SHARE = 0.1
"""dual_scale is this share of D²/R: with R M_t for F, θ_t starts from the D²/(10F) of learners that know F."""


def default_dual_scale(problem: Problem, prox: Prox | None = None) -> float:
    """D²/(10R), from the set and the constraint alone; with a prox, D is for the vector of all constraints."""
    D = problem.constants.constraint_bound if prox is None else prox.values_norm_bound()
    return SHARE * D**2 / problem.constants.radius


def positive_or_one(value: Array) -> Array:
    """The value where there is one to divide by; 1 where it is still 0, and what it divides is 0 as well."""
    xp = namespace(value)
    return xp.where(value > 0, value, xp.ones_like(value))


def dual_steps(t: Array, largest_gradient: Array, dual_scale: Hyper, beta: Hyper) -> Steps:
    """θ_t and μ_t from M_t; both 0 while M_t is. The step of x is not the dual's business: `eta` is 0."""
    xp, seen = namespace(largest_gradient), largest_gradient > 0
    t = xp.astype(t, largest_gradient.dtype)
    theta = like(dual_scale, t) / (positive_or_one(largest_gradient) * t ** like(beta, t))
    zero = xp.zeros_like(theta)
    return Steps(xp.where(seen, theta, zero), zero, xp.where(seen, 1 / (theta * (t + 1)), zero))


def add_theta(theta_sum: Array, steps: Steps) -> Array:
    """S_θ + δ_μ after one more round: θ_t, and in the first round that has one 1/μ_t = (t + 1) θ_t."""
    xp, zero = namespace(theta_sum), theta_sum <= 0
    first = xp.where(steps.mu > 0, 1 / positive_or_one(steps.mu), steps.mu)
    return theta_sum + xp.where(zero, first, steps.theta)


def first_round(first_gradient: Array, t: Array, largest_gradient: Array) -> Array:
    """τ, the first round with a gradient other than 0: t if none was seen before and one is now, 0 while there is none.

    A state that does not know (one of an earlier version) has 0 with M > 0; then t stands for a τ that is no later.
    """
    seen_now = (first_gradient == 0) & (largest_gradient > 0)
    return namespace(largest_gradient).where(seen_now, t, first_gradient)


def ascend_maximum(multiplier: Array, constraint: Array, steps: Steps) -> Array:
    """The paper's dual step, [λ_t + μ_t (g(x_t) − θ_t λ_t)]₊, for one multiplier per learner, shape (...,)."""
    return namespace(multiplier).maximum(multiplier + steps.mu * (constraint - steps.theta * multiplier), 0.0)


def about(centre: Array, slope: Array, curvature: Array) -> Array:
    """The slope at 0 of ⟨slope, x⟩ + (a/2)‖x − centre‖²."""
    return slope - column(curvature) * like(centre, slope)


class OnlineState(Protocol):
    """What the theorems read of a state after T rounds."""

    @property
    def round(self) -> Array:
        """T + 1: the round about to be played."""

    @property
    def largest_gradient(self) -> Array:
        """M_T, the length of the largest gradient so far."""

    @property
    def theta_sum(self) -> Array:
        """N_T = 1/μ_τ + Σ_{τ<t≤T} θ_t."""

    @property
    def first_gradient(self) -> Array:
        """τ; 0 where there was no gradient other than 0, or where nobody knows when."""


def regret_and_violation(
    primal: FloatArray, D: float, at_start: float, dual_scale: Hyper, beta: Hyper, problem: Problem, state: OnlineState
) -> tuple[FloatArray, FloatArray]:
    """From P to both bounds, with c the dual_scale and [g(x_1)]₊ `at_start`:

    regret    ≤ P + (D² M_T/(2c)) Σ t^{β−1}
    violation ≤ (τ − 1) [g(x_1)]₊ + √( 2 N_T (that + F T) )
    """
    T, first = numbers(state.round) - 1, numbers(state.first_gradient)
    inverse_theta, power = numbers(state.largest_gradient) / np.asarray(dual_scale), 1 - np.asarray(beta)
    regret = primal + D**2 / 2 * inverse_theta * np.where(T > 0, power_sum(np.maximum(T, 1.0), power), 0.0)
    waited = np.where(first > 0, first - 1, T)
    priced = np.sqrt(2 * numbers(state.theta_sum) * (regret + problem.constants.loss_range * T))
    return regret, waited * at_start + priced


def start_of(problem: Problem) -> float:
    """[g(x_1)]₊ = max_j [g_j(x_1)]₊ at the centre; at most min(D, G_g R) where g_t changes, with g_t(x*) ≤ 0 always."""
    c, constraint = problem.constants, problem.constraint
    if constraint.parameters:
        return min(c.constraint_bound, c.constraint_gradient_bound * c.radius)
    return max(float(np.max(constraint.values(problem.enclosing_set.centre))), 0.0)


def no_theorem_beforehand(learner: str) -> NoTheoremError:
    """Its bounds are made of what happened."""
    why = f"the theorem of {learner} is about what happened: ask after the run"
    return NoTheoremError(f"{why}, bound(problem, rounds, state=trace.state)")


def numbers(value: Array) -> FloatArray:
    """An array of a state, for NumPy."""
    return np.asarray(to_numpy(value), dtype=np.float64)
