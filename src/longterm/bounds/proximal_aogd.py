"""Proximal A-OGD: regret and long-term violation (`docs/aftrl.md`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm.bounds._decoupled import power_sum, with_dual
from longterm.bounds.base import Bound, horizons
from longterm.learners.proximal_aogd import ProximalAOGD
from longterm.theory.facts import Constants
from longterm.theory.schedules import StronglyConvexDecoupledSchedule


def proximal_aogd(learner: ProximalAOGD, constants: Constants, rounds: ArrayLike) -> Bound:
    """`ProximalAOGD`, for any x* with g(x*) ≤ 0 and any losses; r = max ‖x_1 − x‖ over B, Δ its diameter:

        Σ f_t(x_t) − f_t(x*)  ≤ P + (D²/2) Σ 1/(θ_t t)
        max_j Σ_t g_j(x_t)    ≤ √( 2 (S_θ + θ_0) (that + F T) )

    Convex losses, η_t = s/√t: P = r²/(2s) + (Δ²/(2s)) (√T − 1) + (G_f²/2) Σ η_t. Strongly convex losses,
    η_t = 1/(σt): P = (G_f²/(2σ)) (1 + ln T).

    >>> from longterm.learners import ProximalAOGD
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import proximal_aogd
    >>> problem = two_dimensional()
    >>> [round(float(part), 1) for part in proximal_aogd(ProximalAOGD.for_problem(problem), problem.constants, 1000)]
    [1670.3, 129.0]
    """
    T, schedule, c = horizons(rounds, learner.batch_shape), learner.schedule, constants
    if isinstance(schedule, StronglyConvexDecoupledSchedule):
        P = c.loss_gradient_bound**2 / (2 * np.asarray(schedule.strong_convexity)) * (1 + np.log(T))
    else:
        s = np.asarray(schedule.step)
        P = (c.radius**2 + c.diameter**2 * (np.sqrt(T) - 1)) / (2 * s)
        P = P + c.loss_gradient_bound**2 * s / 2 * power_sum(T, np.asarray(0.5))
    return with_dual(P, learner.prox, schedule, constants, T)
