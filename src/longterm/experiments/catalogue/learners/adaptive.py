"""Learners that find the scale of the losses while they play.

Their theorems are about what happened (`longterm.bounds.adaptive_aftrl` and its neighbours take the state after T
rounds), so there is no bound to be drawn before the run.
"""

from __future__ import annotations

from typing import Any

from longterm.experiments.catalogue.base import LearnerEntry
from longterm.experiments.catalogue.learners.common import BETA
from longterm.learners import AdaGradAOGD, AdaptiveAFTRL, AdaptivePenalisedFTRL, Learner
from longterm.problems import Problem


def adaptive_aftrl(problem: Problem, rounds: int, beta: float = BETA) -> Learner[Any]:
    """A-FTRL with no bound on the gradients known."""
    return AdaptiveAFTRL.for_problem(problem, beta=beta)


def adaptive_penalised_ftrl(problem: Problem, rounds: int, growth: float = 0.5) -> Learner[Any]:
    """Penalised FTRL with no bound on the gradients known."""
    return AdaptivePenalisedFTRL.for_problem(problem, growth=growth)


def adagrad_aogd(problem: Problem, rounds: int, beta: float = BETA) -> Learner[Any]:
    """A-OGD with AdaGrad's step, one for all coordinates, and no bound on the gradients known."""
    return AdaGradAOGD.for_problem(problem, beta=beta)


ENTRIES = (
    LearnerEntry("adaptive_aftrl", adaptive_aftrl, "Adaptive A-FTRL"),
    LearnerEntry("adaptive_penalised_ftrl", adaptive_penalised_ftrl, "Adaptive penalised FTRL"),
    LearnerEntry("adagrad_aogd", adagrad_aogd, "AdaGrad A-OGD"),
)
