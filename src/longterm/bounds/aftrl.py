"""A-FTRL: regret and long-term violation, for convex and for strongly convex losses (`docs/aftrl.md`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm.bounds._decoupled import power_sum, with_dual
from longterm.bounds.base import Bound, horizons
from longterm.learners.aftrl import AFTRL
from longterm.learners.strongly_convex_aftrl import StronglyConvexAFTRL
from longterm.theory.facts import Constants


def aftrl(learner: AFTRL, constants: Constants, rounds: ArrayLike) -> Bound:
    """`AFTRL`, for any x* with g(x*) ≤ 0 and any losses:

        Σ f_t(x_t) − f_t(x*)  ≤ P + (D²/2) Σ 1/(θ_t t),   P = R²/(2η_T) + (G_f²/2) Σ η_t
        max_j Σ_t g_j(x_t)    ≤ √( 2 (S_θ + θ_0) (that + F T) )

    With η_t = R/(G_f √t), P ≤ (3/2) R G_f √T. D bounds the length of (g_1, …, g_m).

    >>> from longterm.learners import AFTRL
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import aftrl
    >>> problem = two_dimensional()
    >>> [round(float(part), 1) for part in aftrl(AFTRL.for_problem(problem), problem.constants, 1000)]
    [1588.9, 127.5]
    """
    T, step = horizons(rounds, learner.batch_shape), np.asarray(learner.schedule.step)
    G = constants.loss_gradient_bound
    P = constants.radius**2 * np.sqrt(T) / (2 * step) + G**2 * step / 2 * power_sum(T, np.asarray(0.5))
    return with_dual(P, learner.prox, learner.schedule, constants, T)


def strongly_convex_aftrl(learner: StronglyConvexAFTRL, constants: Constants, rounds: ArrayLike) -> Bound:
    """`StronglyConvexAFTRL`: the same with P = (G_f²/(2σ)) (1 + ln T)."""
    T, sigma = horizons(rounds, learner.batch_shape), np.asarray(learner.schedule.strong_convexity)
    P = constants.loss_gradient_bound**2 / (2 * sigma) * (1 + np.log(T))
    return with_dual(P, learner.prox, learner.schedule, constants, T)
