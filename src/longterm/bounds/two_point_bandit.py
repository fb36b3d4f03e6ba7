"""Two-point bandit feedback on the constraint: expected regret and violation (`docs/after_the_paper.md`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm.bounds.base import Bound, horizons
from longterm.errors import ScheduleError
from longterm.learners.two_point_bandit import TwoPointBandit, inner_radius, steps_assumption
from longterm.theory.facts import Constants


def two_point_bandit(learner: TwoPointBandit, constants: Constants, rounds: ArrayLike) -> Bound:
    """`TwoPointBandit`, in expectation over its directions, against x* with g_t(x*) ≤ 0 in every round.

        P = r²/(2η) + ηT (G_f² + D²) + ζT (D/θ) (G_g + min(D, G_g r)/ρ)
        E Σ f_t(x_t) − f_t(x*) ≤ P + (ζT/ρ) min(F, G_f r)
        E Σ g_t(x_t)           ≤ √( 2 (θ(T − 1) + 1/η) (P + F T) )

    with r the radius of B about its centre, ρ that of a ball inside it, and θ = ηδ.

    >>> from longterm.learners import TwoPointBandit
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import two_point_bandit
    >>> problem = two_dimensional()
    >>> learner = TwoPointBandit.for_problem(problem, horizon=10_000)
    >>> [round(float(part), 1) for part in two_point_bandit(learner, problem.constants, 10_000)]
    [1183.4, 4927.0]
    """
    T, c = horizons(rounds, learner.batch_shape), constants
    theta, eta, mu = (np.asarray(step) for step in (learner.schedule.theta, learner.schedule.eta, learner.schedule.mu))
    assumed = steps_assumption(learner, c)
    if not assumed.holds or np.any(mu != eta):
        raise ScheduleError("learner", f"{assumed.statement}, or μ = η, does not hold", "Use TwoPointBandit.tuned")
    rho, strayed = inner_radius(learner.enclosing_set), np.asarray(learner.distance) * T
    pull = c.constraint_gradient_bound + min(c.constraint_bound, c.constraint_gradient_bound * c.radius) / rho
    P = (
        c.radius**2 / (2 * eta)
        + eta * T * (c.loss_gradient_bound**2 + c.constraint_bound**2)
        + strayed * c.constraint_bound / theta * pull
    )
    regret = P + strayed / rho * min(c.loss_range, c.loss_gradient_bound * c.radius)
    violation = np.sqrt(2 * (theta * (T - 1) + 1 / eta) * (P + c.loss_range * T))
    shape = np.broadcast_shapes(T.shape, learner.batch_shape)  # a grid of seeds has the same bound for each
    return Bound(np.broadcast_to(regret, shape), np.broadcast_to(violation, shape))
