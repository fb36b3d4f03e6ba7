"""The recommended learner of each kind of problem."""

import numpy as np
import pytest

from longterm import InputError, Problem, default_learner
from longterm.learners import HedgedCuts, PenalisedFTRL
from longterm.problems import doubly_stochastic
from longterm.problems.constraints import ElasticNetBudget, L1Budget, L2Budget, VaryingAffine
from longterm.problems.losses import Hinge, Linear
from longterm.problems.sets import Ball

VARYING = Problem(Ball(3), Linear(3), VaryingAffine(3, 2, 1.0, 1.0))


@pytest.mark.parametrize("budget", [L1Budget(3, 0.5), L2Budget(3, 0.5), ElasticNetBudget(3, 0.5)])
def test_a_budget_gets_the_learner_that_is_made_for_it(budget):
    problem = Problem(Ball(3), Hinge(3, 1.0), budget)
    assert type(default_learner(problem)) is PenalisedFTRL
    assert default_learner(problem, offsetting=True).bank == 0.1


def test_every_other_problem_gets_hedged_cuts():
    for problem in (VARYING, doubly_stochastic(3)):
        learner = default_learner(problem)
        assert type(learner) is HedgedCuts
        assert learner.remembered == 0
        assert not np.any(learner.bank)
    assert default_learner(VARYING, returning=True).remembered == 64
    assert default_learner(doubly_stochastic(3), returning=True).remembered == 0  # a fixed constraint is known
    with pytest.raises(InputError, match="offsetting"):
        default_learner(VARYING, returning=True, offsetting=True)
