"""Polyak feasibility steps: regret, and no violation in any round (`docs/after_the_paper.md`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm.bounds.base import Bound, horizons
from longterm.errors import ScheduleError
from longterm.learners.polyak_feasibility import PolyakFeasibility, feasible_regret, safe_step
from longterm.theory.facts import Constants


def polyak_feasibility(learner: PolyakFeasibility, constants: Constants, rounds: ArrayLike) -> Bound:
    """`PolyakFeasibility`: Σ f_t(x_t) − f_t(x*) ≤ Δ²/(2η) + ηG_f²T/2 + (ϱ/ε)FT, and g(x_t) ≤ 0 in every round.

    >>> from longterm.learners import PolyakFeasibility
    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import polyak_feasibility
    >>> problem = two_dimensional()
    >>> learner = PolyakFeasibility.for_problem(problem, horizon=10_000)
    >>> [round(float(part), 1) for part in polyak_feasibility(learner, problem.constants, 10_000)]
    [1182.5, 0.0]
    """
    epsilon, eta = learner.slater.epsilon, np.asarray(learner.eta)
    if np.any(eta > np.asarray(safe_step(constants, epsilon, np.asarray(learner.margin))) * (1 + 1e-9)):
        what = f"its η = {learner.eta} is too large for rounds that are all feasible"
        raise ScheduleError("learner", what, "Use PolyakFeasibility.tuned, or a smaller η")
    T = horizons(rounds, learner.batch_shape)
    regret = feasible_regret(constants, epsilon, learner.eta, learner.margin, T)
    return Bound(regret, np.zeros_like(regret))
