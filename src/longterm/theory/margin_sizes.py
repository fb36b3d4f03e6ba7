"""The margin γ for which A-OGD on g + γ has Σ g(x_t) ≤ 0 (Corollary 1 of the paper, made explicit).

Lemma 5 holds for g + γ with D + γ instead of D, for any comparator with g ≤ −γ. With W = S_θ + δ_μ and
𝓡_0 = 𝓡 − D² S_μ,

    Σ (g(x_t) + γ) ≤ √( 2 W (𝓡_0 + (D + γ)² S_μ + F T) ).

*Exact sums.* The right side equals γT if γ² T² = C + A (D + γ)², A = 2 W S_μ, C = 2 W (𝓡_0 + F T). There is a positive
root if and only if T² > A.

*Closed form.* For γ ≤ D and Table 1, γ = c_1 T^{−β/2} suffices with c_1 = √( 4 θ_1 (K + F)/(1 − β) ) and

    K = ΔG + ΔG/(2(1 − β)) + 4D²/(βθ_1)     convex, θ_1 = 3ΔG
    K = G²/σ + 4D²/(βθ_1)                   strongly convex, θ_1 = 6G²/σ.

A Slater point with slack ε allows γ ≤ ε only, so T ≥ c_0 = (c_1/ε)^{2/β} is needed. Proof: `docs/proofs/theory.md`.
"""

from __future__ import annotations

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.problems.constants import Constants
from longterm.theory.conditions import check_conditions
from longterm.theory.schedules import ConvexSchedule, Schedule, StronglyConvexSchedule
from longterm.theory.step_sums import descent_cost, step_sums


def coefficient(schedule: Schedule, constants: Constants) -> Hyper:
    """Return c_1 for a schedule of Table 1.

    >>> from longterm import Constants
    >>> from longterm.theory.margin_sizes import coefficient, needed_horizon
    >>> from longterm.theory.schedules import ConvexSchedule
    >>> constants = Constants(1.0, 2.0, 1.0, 1.0, constraint_bound=1.5, loss_range=2.0)
    >>> schedule = ConvexSchedule(2.0, 1.0, beta=2 / 3)
    >>> round(coefficient(schedule, constants), 2), round(needed_horizon(schedule, constants, 0.5), -2)
    (25.81, 137500.0)
    """
    D, F, beta = constants.constraint_bound, constants.loss_range, beta_of(schedule)
    if isinstance(schedule, StronglyConvexSchedule):
        _require_at_most(schedule.strong_convexity, constants.strong_convexity, "strong convexity")
        losses = schedule.gradient_bound**2 / schedule.strong_convexity
        theta = 6 * losses
    else:
        assert isinstance(schedule, ConvexSchedule)  # beta_of refuses others
        _require_at_most(constants.diameter, schedule.diameter, "diameter")
        product = schedule.diameter * schedule.gradient_bound
        theta, losses = 3 * product, product + product / (2 * (1 - beta))
    _require_at_most(constants.gradient_bound, schedule.gradient_bound, "gradient bound")
    K = losses + 4 * D**2 / (beta * theta)
    return validate.positive("c_1", np.sqrt(4 * theta * (K + F) / (1 - beta)))


def needed_horizon(schedule: Schedule, constants: Constants, epsilon: float) -> Hyper:
    """Return c_0, the horizon from which on γ = c_1 T^{−β/2} ≤ ε, so that Σ g(x_t) ≤ 0 is guaranteed."""
    c, beta = coefficient(schedule, constants), beta_of(schedule)
    with np.errstate(over="ignore"):
        least = np.maximum(1.0, np.float_power(c / epsilon, 2 / np.asarray(beta)))
    if not np.all(np.isfinite(least)):
        what = f"{np.min(beta):g} gives a horizon c_0 = (c_1/ε)^(2/β) that is not finite"
        raise InputError("beta", what, "Give a larger β, or a Slater point with more slack")
    return validate.number("c_0", least)


def beta_of(schedule: Schedule) -> Hyper:
    """Return β of a schedule of Table 1. Raise InputError for others."""
    if not isinstance(schedule, (ConvexSchedule, StronglyConvexSchedule)):
        what = f"its {type(schedule).__name__} is not of Table 1, so c_1 is not known"
        raise InputError("learner", what, "Use the margin by exact sums, which takes any schedule that passes C1–C3")
    return schedule.beta


def allowed_violation(schedule: Schedule, constants: Constants, horizon: int, gamma: Hyper) -> FloatArray:
    """Return √(2 W (𝓡_γ + F T)), Lemma 5's bound for A-OGD on g + γ. If γT is at least that, Σ g(x_t) ≤ 0."""
    A, C = _sums(schedule, constants, validate.dimension("horizon", horizon))
    return np.sqrt(C + A * (constants.constraint_bound + np.asarray(gamma)) ** 2)


def exact_margin(schedule: Schedule, constants: Constants, horizon: int) -> Hyper:
    """Return γ with γT = √(2 W (𝓡_γ + F T)), by exact sums. Raise InputError if T² ≤ A, where T is too short."""
    T, D = validate.dimension("horizon", horizon), constants.constraint_bound
    A, C = _sums(schedule, constants, T)
    if np.any(A >= T**2):
        raise InputError("horizon", f"T² = {T**2} is not above A = {np.max(A):.6g}", "Give a longer horizon")
    return validate.positive("gamma", (A * D + np.sqrt((A * D) ** 2 + (T**2 - A) * (C + A * D**2))) / (T**2 - A))


def _sums(schedule: Schedule, constants: Constants, T: int) -> tuple[FloatArray, FloatArray]:
    """Return A = 2 W S_μ and C = 2 W (𝓡_0 + F T)."""
    G, sigma = constants.gradient_bound, constants.strong_convexity
    check_conditions(schedule, T, gradient_bound=G, strong_convexity=sigma).require()
    sums = step_sums(schedule, T, sigma)
    twice_W = 2 * (sums.theta + sums.delta_mu)
    return twice_W * sums.mu, twice_W * (descent_cost(sums, constants, G) + constants.loss_range * T)


def _require_at_most(asked: Hyper, made_for: Hyper, name: str) -> None:
    if np.any(np.asarray(asked) > np.asarray(made_for) * (1 + 1e-12)):
        raise InputError("learner", f"has another {name}", "Build it from the same problem")
