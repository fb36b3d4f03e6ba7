"""A-OGD with a penalty φ: Lemma 5 with φ in the place of the square (`docs/after_the_paper.md`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm.bounds.base import Bound
from longterm.learners.penalty_aogd import PenaltyAOGD
from longterm.theory.facts import Constants
from longterm.theory.penalties import check_penalty
from longterm.theory.step_sums import step_sums


def penalty_aogd(learner: PenaltyAOGD, constants: Constants, rounds: ArrayLike) -> Bound:
    """`PenaltyAOGD` where C1' and C2' hold (a ScheduleError says where not), against x* with g_t(x*) ≤ 0 in all rounds:

        Σ f_t(x_t) − f_t(x*) ≤ 𝓡 of Lemma 5
        Σ g(x_t)             ≤ min over λ > 0 of ( 𝓡 + F T + S_θ φ(λ) + λ² [1/μ_1 − κθ_1]₊/2 ) / λ

    The minimum is taken over a fine grid: every λ gives a bound.

    >>> from longterm.learners import PenaltyAOGD
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import penalty_aogd
    >>> from longterm.theory.penalties import Penalty
    >>> problem = two_dimensional()
    >>> lightest = Penalty(lambda u: u**2 / 4, lambda u: u / 2, strong_convexity=0.5)
    >>> for learner in (PenaltyAOGD.convex(problem), PenaltyAOGD.convex(problem, lightest)):
    ...     print([round(float(part), 1) for part in penalty_aogd(learner, problem.constants, 10_000)])
    [215.4, 5536.8]
    [215.4, 3976.6]
    """
    horizons = validate.horizons("rounds", rounds)
    schedule, penalty, c = learner.schedule, learner.penalty, constants
    check_penalty(penalty, schedule, c, int(horizons.max())).require()
    sums = step_sums(schedule, horizons, c.strong_convexity)
    regret = (
        c.radius**2 * np.maximum(sums.delta_eta, 0.0) / 2
        + c.diameter**2 / 2 * sums.growth
        + c.gradient_bound**2 * sums.eta
        + c.constraint_bound**2 * sums.mu
    )
    first = schedule.at(np.asarray(1), np.zeros(1))
    start = max(float(1 / first.mu - penalty.strong_convexity * first.theta), 0.0)
    gain = regret + c.loss_range * horizons
    # The best λ for the paper's square, times a grid about 1.
    tried = (np.sqrt(2 * gain / (sums.theta + start)))[..., None] * np.geomspace(0.05, 20, 2001)
    cost = gain[..., None] + sums.theta[..., None] * np.asarray(penalty.value(tried)) + start * tried**2 / 2
    return Bound(regret, np.min(cost / tried, axis=-1))
