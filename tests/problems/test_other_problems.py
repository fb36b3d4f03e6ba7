"""A learner is refused on a problem that it does not fit."""

import numpy as np
import pytest

from longterm import InputError, Problem, SlaterPoint, run
from longterm.learners import (
    DoublingRestarts,
    FeasibleOnlineADM,
    MirrorProx,
    NoViolationAOGD,
    NoViolationMirrorProx,
    ProjectedOGD,
)
from longterm.problems import doubly_stochastic
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Simplex
from longterm.problems.streams import RandomCosts


def half_plane(b):
    return Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [b]))


WIDE, NARROW = half_plane(0.9), half_plane(-0.5)
MAKERS = {
    "mirror prox": lambda p: MirrorProx.for_problem(p, horizon=100),
    "mirror prox without violation": lambda p: NoViolationMirrorProx.for_problem(p, horizon=10**6),
    "projected": lambda p: ProjectedOGD.for_problem(p),
    "feasible ADM": lambda p: FeasibleOnlineADM.for_problem(p, horizon=100, projection=p.projection),
    "no violation": lambda p: NoViolationAOGD.for_problem(p, horizon=1000, margin=0.1),
    "doubling": lambda p: DoublingRestarts.for_problem(p, of="no_violation_aogd"),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.filterwarnings("ignore::longterm.errors.AssumptionWarning")
def test_a_learner_for_a_wider_set_is_refused_on_a_narrower_one(name):
    learner = MAKERS[name](WIDE)
    run(WIDE, learner, RandomCosts(2), 5)
    with pytest.raises(InputError):
        run(NARROW, learner, RandomCosts(2), 5)


def test_a_false_slater_point_is_refused():
    problem = doubly_stochastic(2)
    with pytest.raises(InputError, match="no interior"):
        NoViolationAOGD.for_problem(problem, horizon=1000, margin=0.1, slater=SlaterPoint(0.5))


def test_projection_onto_the_simplex_far_away():
    for scale in (1e16, 1e150, 1e300):
        far = Simplex(3).project(scale * np.array([1.0, -1.0, 0.5]))
        np.testing.assert_array_equal(far, [1.0, 0.0, 0.0])
