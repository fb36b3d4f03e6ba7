"""Quadratic-penalty OGD: regret and *hard* violation, and the squared violation at any horizon.

Write v_t for the vector [g_t(x_t)]₊ of what was penalised. For θ_t = c L η_t with c > 1 and any x* with g_t(x*) ≤ 0 in
every round (`docs/after_the_paper.md`),

    Σ f_t(x_t) − f_t(x*) + (1 − 1/c) Σ ‖v_t‖²/θ_t ≤ P_T = r² [δ_η]₊/2 + (Δ²/2) U_η + G_f² S_η.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.bounds.base import Bound, horizons
from longterm.learners.quadratic_penalty import QuadraticPenaltyOGD
from longterm.theory.facts import Constants
from longterm.theory.step_sums import step_sums, tabulate


def quadratic_penalty(learner: QuadraticPenaltyOGD, constants: Constants, rounds: ArrayLike) -> Bound:
    """P_T, and √( S_θ (P_T + F T) c/(c − 1) ) for Σ ‖v_t‖, which is the hard violation or more.

    With c = 2 on a ball: P_T ≤ 2rG_f T^β + rG_f T^{1−β}/(1 − β) − 3rG_f/2 and √(4 (G_g²/G_f) r T^{1−β} (P_T + F T)/(1 −
    β)). The σ it uses is the constants'.

    >>> from longterm.learners import QuadraticPenaltyOGD
    >>> from longterm.problems import late_reversal
    >>> from longterm.bounds import quadratic_penalty, theorem_1
    >>> problem = late_reversal()
    >>> bound = quadratic_penalty(QuadraticPenaltyOGD.for_problem(problem), problem.constants, 1000)
    >>> round(float(bound.regret), 2), round(float(theorem_1(problem.constants, 1000).regret), 2)
    (226.06, 228.5)
    """
    schedule, c = learner.schedule, np.asarray(learner.schedule.factor)
    sums = step_sums(schedule, rounds, constants.strong_convexity)
    regret = (
        constants.radius**2 * np.maximum(sums.delta_eta, 0.0) / 2
        + constants.diameter**2 / 2 * sums.growth
        + constants.loss_gradient_bound**2 * sums.eta
    )
    T = horizons(rounds, schedule.batch_shape)
    return Bound(regret, np.sqrt(sums.theta * (regret + constants.loss_range * T) * c / (c - 1)))


def quadratic_penalty_squared(learner: QuadraticPenaltyOGD, constants: Constants, rounds: ArrayLike) -> FloatArray:
    """An upper bound on Σ ‖v_t‖², and so on Σ [g_t(x_t)]₊²: (c/(c − 1)) Σ θ_t (F + P_t − P_{t−1}), P_0 = 0.

    It is of the order of S_θ: T^{1−β} for convex losses, log T for strongly convex ones.
    """
    asked = validate.horizons("rounds", rounds)
    schedule, sigma = learner.schedule, constants.strong_convexity
    c = np.asarray(schedule.factor)
    totals, last = [], np.zeros(schedule.batch_shape)
    for steps in tabulate(schedule, int(asked.max())):
        growth = np.maximum(np.diff(1 / steps.eta, axis=0) - sigma, 0.0) * constants.diameter**2 / 2
        first = constants.radius**2 * np.maximum(1 / steps.eta[:1] - sigma, 0.0) / 2
        rise = np.concatenate([first, growth]) + constants.loss_gradient_bound**2 * steps.eta
        paid = steps.theta * (constants.loss_range + rise)
        sums = last + np.cumsum(paid if steps.rounds[0] == 1 else paid[1:], axis=0)
        totals.append(sums)
        last = sums[-1]
    return np.asarray(np.concatenate(totals)[asked - 1] * c / (c - 1))
