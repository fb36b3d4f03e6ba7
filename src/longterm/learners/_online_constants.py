"""Steps from what was seen, where no bound on the losses' gradients is known beforehand.

With b_t = ‖∇f_t(x_t)‖, M_t = max_{s≤t} b_s and a `dual_scale` that the constraint alone gives,

    θ_t = dual_scale/(M_t t^β),   μ_t = 1/(θ_t (t + 1)).

θ_t does not increase, which is all that the dual's proof asks of it (`docs/aftrl.md`). Until the first gradient other
than 0 there is no scale to price the constraint in: M_t = 0, and λ stays 0.
"""

from __future__ import annotations

from longterm._arrays import Array, column, like, namespace
from longterm._validate import Hyper
from longterm.constraints.prox import Prox
from longterm.problems import Problem
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


def ascend_maximum(multiplier: Array, constraint: Array, steps: Steps) -> Array:
    """The paper's dual step, [λ_t + μ_t (g(x_t) − θ_t λ_t)]₊, for one multiplier per learner, shape (...,)."""
    return namespace(multiplier).maximum(multiplier + steps.mu * (constraint - steps.theta * multiplier), 0.0)


def about(centre: Array, slope: Array, curvature: Array) -> Array:
    """The slope at 0 of ⟨slope, x⟩ + (a/2)‖x − centre‖²."""
    return slope - column(curvature) * like(centre, slope)
