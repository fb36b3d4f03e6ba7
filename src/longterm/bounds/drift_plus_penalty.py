"""Drift plus penalty: what its queues say about regret and the signed violation (`docs/after_the_paper.md`).

With M = D_m + G_mΔ ≥ ‖ĝ(x_{t+1})‖, every x* that is feasible on average over every K rounds in a row (K = 1: in every
round) has

    V Σ Δf_t + ½‖Q(T+1)‖² ≤ α r² + V²G_f² T/(4α) + M²T/2 + (K − 1) M D_m T/2,

and Σ_t g_j^t(x_t) ≤ Q_j(T+1) + G_g Σ_t ‖x_{t+1} − x_t‖ ≤ Q_j(T+1) + (G_g/(2α)) Σ_t (V G_f + G_m‖Q(t)‖).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.bounds.base import Bound, horizons
from longterm.learners.drift_plus_penalty import DriftPlusPenalty
from longterm.theory.facts import Constants


def drift_plus_penalty(
    learner: DriftPlusPenalty,
    constants: Constants,
    rounds: ArrayLike,
    *,
    window: int = 1,
    slack: float | None = None,
) -> Bound:
    """Regret against x* that is feasible over every `window` rounds, and a bound on each Σ_t g_j^t(x_t).

    `slack` is an ε for which some x̂ in B has g_j^t(x̂) ≤ −ε in *every* round. Then no queue is longer than
    √( q² + 2αΔ² + 2VG_fΔ + M² ), q = (VG_fΔ + M²/2)/ε: O(√T) for V of the order of √T and α of T.

    >>> from longterm.learners import DriftPlusPenalty
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import drift_plus_penalty
    >>> problem = two_dimensional()
    >>> for T in (100, 10_000):
    ...     bound = drift_plus_penalty(DriftPlusPenalty.for_problem(problem, horizon=T, preset="neely-yu"), problem.constants, T, slack=1.25)
    ...     print([round(float(part), 1) for part in bound])
    [72.8, 80.4]
    [728.1, 746.8]
    """
    T, K = horizons(rounds, learner.batch_shape), validate.count("window", window)
    V, alpha, M = np.asarray(learner.V), np.asarray(learner.alpha), _largest_step(learner, constants)
    c, D_m = constants, learner.value_bound
    windows = (K - 1) * M * D_m * T / 2
    total = alpha * c.radius**2 + V**2 * c.loss_gradient_bound**2 * T / (4 * alpha) + M**2 * T / 2 + windows
    queue = np.sqrt(2 * (total + V * c.loss_range * T))
    if slack is not None:
        spent = V * c.loss_gradient_bound * c.diameter + M**2 / 2
        q = spent / validate.positive_scalar("slack", slack)
        queue = np.minimum(queue, np.sqrt(q**2 + 2 * alpha * c.diameter**2 + 2 * spent))
    return Bound(total / V, _violation(learner, constants, T, queue))


def drift_plus_penalty_expected(
    learner: DriftPlusPenalty, constants: Constants, rounds: ArrayLike, *, slack: float
) -> Bound:
    """The same in expectation, for g_t drawn independently from one law, and losses that do not look at the draw.

    x* and x̂ need be feasible and slack on average only: E g_j^t(x*) ≤ 0, E g_j^t(x̂) ≤ −ε. With c = VG_fΔ + M²/2 and
    b = 2M + 2G_mΔ + ε,

        E‖Q(t)‖ ≤ 2(c/ε + Δ√(2α)) + D_m + √(2c) + (2b²/ε) ln(9b²/ε²),

    O(√T) again.
    """
    T = horizons(rounds, learner.batch_shape)
    epsilon = validate.positive_scalar("slack", slack)
    V, alpha, M = np.asarray(learner.V), np.asarray(learner.alpha), _largest_step(learner, constants)
    spent = V * constants.loss_gradient_bound * constants.diameter + M**2 / 2
    jump = 2 * M + 2 * learner.lipschitz * constants.diameter + epsilon
    level = 2 * (spent / epsilon + constants.diameter * np.sqrt(2 * alpha))
    queue = level + learner.value_bound + np.sqrt(2 * spent) + 2 * jump**2 / epsilon * np.log(9 * jump**2 / epsilon**2)
    regret = drift_plus_penalty(learner, constants, rounds).regret
    return Bound(regret, _violation(learner, constants, T, queue))


def _largest_step(learner: DriftPlusPenalty, constants: Constants) -> float:
    """M ≥ ‖ĝ(x_{t+1})‖: by no more can the queues' length change in a round."""
    return learner.value_bound + learner.lipschitz * constants.diameter


def _violation(learner: DriftPlusPenalty, constants: Constants, T: FloatArray, queue: FloatArray) -> FloatArray:
    """From a bound on every ‖Q(t)‖ to one on Σ_t g_j^t(x_t)."""
    moves = (np.asarray(learner.V) * constants.loss_gradient_bound + learner.lipschitz * queue) / (
        2 * np.asarray(learner.alpha)
    )
    return np.asarray(queue + constants.constraint_gradient_bound * T * moves)
