"""Penalised FTRL: regret and *hard* violation (`docs/aftrl.md`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm.bounds._decoupled import power_sum
from longterm.bounds.base import Bound, horizons
from longterm.learners.penalised_ftrl import PenalisedFTRL
from longterm.theory.facts import Constants


def penalised_ftrl(learner: PenalisedFTRL, constants: Constants, rounds: ArrayLike) -> Bound:
    """`PenalisedFTRL`, for any x* with g(x*) ≤ 0 and any losses, with η_t = s/√t and w_t = w_0 t^{1+e}:

        Σ f_t(x_t) − f_t(x*) ≤ P_T = R²/(2η_T) + (G_f²/2) Σ η_t
        Σ [g(x_t)]₊          ≤ (P_1 + F) Σ t^{−1−e}/w_0 ≤ (P_1 + F) (1 + (1 − T^{−e})/e)/w_0

    With s = R/G_f, P_T ≤ (3/2) R G_f √T and P_1 = R G_f.

    >>> from longterm.learners import PenalisedFTRL
    >>> from longterm.problems import budgeted_logistic
    >>> from longterm.bounds import penalised_ftrl
    >>> problem = budgeted_logistic([[3.0, 4.0, 0.0, 0.0]], budget=1.5)
    >>> bound = penalised_ftrl(PenalisedFTRL.for_problem(problem), problem.constants, [100, 10_000])
    >>> bound.regret.round(1), bound.violation.round(2)
    (array([ 72.5, 747.5]), array([4.2 , 4.47]))
    """
    T, c, s = horizons(rounds, learner.batch_shape), constants, np.asarray(learner.step)
    e, w_0 = np.asarray(learner.growth), np.asarray(learner.w_0)
    regret = c.radius**2 * np.sqrt(T) / (2 * s) + c.loss_gradient_bound**2 * s / 2 * power_sum(T, np.asarray(0.5))
    first = c.radius**2 / (2 * s) + c.loss_gradient_bound**2 * s / 2
    return Bound(*np.broadcast_arrays(regret, (first + c.loss_range) / w_0 * power_sum(T, 1 + e)))
