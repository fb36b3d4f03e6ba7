"""Bounds as numbers, so that a changed constant of a theorem is noticed."""

import numpy as np
import pytest

from longterm import Problem
from longterm.learners import LEWA, MirrorProx, OneProjectionSGD, ProximalAOGD, TwoPointBandit
from longterm.problems import doubly_stochastic, two_dimensional
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear
from longterm.problems.sets import Simplex

DISC, MATRICES = two_dimensional(), doubly_stochastic(8)
SIMPLEX = Problem(Simplex(3), Linear(3, 2**0.5), Affine([[1.0, 0.0, 0.0]], [0.5]))


@pytest.mark.parametrize(
    ("problem", "learner", "rounds", "expected"),
    [
        (SIMPLEX, LEWA.for_problem(SIMPLEX, horizon=3000, loss_spread=1.0, constraint_spread=1.0), 3000, [81.2, 971.3]),
        (MATRICES, MirrorProx.for_problem(MATRICES, horizon=1000), 1000, [3240.0]),
        (DISC, TwoPointBandit.for_problem(DISC, horizon=10_000), 10_000, [1183.4, 4927.0]),
        (DISC, ProximalAOGD.for_problem(DISC), 1000, [1670.3, 129.0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bounds(problem, learner, rounds, expected):
    found = [float(part) for part in learner.bound(problem, rounds).values()]
    assert found[: len(expected)] == pytest.approx(expected, abs=0.05)


def test_the_answer_of_one_projection():
    def onto(x):
        return np.minimum(x, [0.25, np.inf])

    learner = OneProjectionSGD.for_problem(DISC, horizon=10_000, projection=onto, slope=1.0)
    assert float(learner.answer_bound(DISC, 10_000)) == pytest.approx(0.0978, abs=5e-5)
