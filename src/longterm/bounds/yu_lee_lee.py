"""Yu, Lee and Lee 2026: regret, and the signed or hard violation (`docs/after_the_paper.md`).

The constants are ours, from a proof of our own; the article states the rates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm.bounds.base import Bound, horizons
from longterm.learners.yu_lee_lee import YuLeeLee
from longterm.theory.facts import Constants


def yu_lee_lee(learner: YuLeeLee, constants: Constants, rounds: ArrayLike) -> Bound:
    """`YuLeeLee` and `HardYuLeeLee`, for any losses, against x* with g_t(x*) ≤ 0 in every round.

        P = 2ΔG_f √T + Δ/√2  (convex)   or   (G_f²/σ)(1 + ln T)  (strongly convex)
        C = P + (1/e) ln(γ_1/γ_T)
        Σ f_t(x_t) − f_t(x*) ≤ C + 1
        Σ g_t(x_t)           ≤ (1/γ_T) ln E + κ D² Σ γ_t + 4ΔG + 2ΔG √(2T ln(T E)),      E = 1 + C + F T

    In the hard form [g_t]₊ stands for g_t. For g_t drawn independently of the past both hold in expectation, the signed
    form's against every x* with E g_t(x*) ≤ 0.

    >>> from longterm.learners import YuLeeLee
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import yu_lee_lee
    >>> from longterm.learners import Published, Sharp
    >>> problem = two_dimensional()
    >>> for rates in (Published, Sharp):
    ...     bound = yu_lee_lee(YuLeeLee.for_problem(problem, rates=rates), problem.constants, [1000, 100_000])
    ...     print(bound.regret.round(0), bound.violation.round(0))
    [ 256. 2534.] [ 5126. 76194.]
    [ 255. 2533.] [ 1640. 21353.]
    """
    T, c, rates = horizons(rounds, learner.batch_shape), constants, learner.rates
    steepness, D = np.asarray(rates.diameter * rates.gradient_bound), np.asarray(rates.constraint_bound)
    if learner.strong_convexity is None:
        primal = rates.diameter * (2 * c.loss_gradient_bound * np.sqrt(T) + 1 / np.sqrt(2))
    else:
        primal = c.loss_gradient_bound**2 / np.asarray(learner.strong_convexity) * (1 + np.log(T))
    first, last = (np.asarray(rates.gamma(t)) for t in (np.ones_like(T), T))
    cost = primal + np.log(first / last) / np.e
    gain = 1 + cost + c.loss_range * T
    queue = np.log(gain) / last + rates.spared * D**2 * rates.total(T)
    return Bound(cost + 1, queue + 4 * steepness + 2 * steepness * np.sqrt(2 * T * np.log(T * gain)))
