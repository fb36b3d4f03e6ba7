"""The search for worst-case sequences: its results are true, and it refutes false bounds."""

from dataclasses import dataclass

import numpy as np
import pytest

from longterm import AOGD, InputError, Problem, hindsight, run
from longterm.problems.constraints import Affine, L2Budget, VaryingAffine
from longterm.problems.losses import Hinge, Linear, SquaredDistance
from longterm.problems.sets import Ball, Box
from longterm.testing import find_worst_cases

INTERVAL = Problem(Box([-1.0], [1.0]), Linear(1), Affine([[1.0]], [0.25]))
PROBLEMS = {
    "interval": INTERVAL,
    "disc": Problem(Ball(2), SquaredDistance(2), L2Budget(2, budget=0.5)),
    "changing": Problem(Box.cube(2, -1.0, 1.0), Linear(2), VaryingAffine(2, 2, 1.0, 0.5)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_found_sequence_gives_the_found_value(name):
    problem = PROBLEMS[name]
    learner = AOGD.for_problem(problem)
    found = find_worst_cases(problem, learner, 20, generations=4, population=16)
    assert set(found) == {"regret", "signed_violation"}
    for measure, case in found.items():
        assert 0 < case.ratio <= 1
        assert case.value / case.bound == pytest.approx(case.ratio)
        trace = run(problem, learner, case.stream, case.rounds)
        if measure == "regret":
            best = hindsight.best(problem, case.stream, trace.rounds)
            assert case.value <= trace.regret(best)[-1] + best.gap[-1] + 1e-9
            assert case.value >= 0.5 * trace.regret(best)[-1] - 1e-9
        else:
            assert case.value == pytest.approx(trace.signed_violation[-1], abs=1e-9)
        assert case.bound == pytest.approx(float(learner.bound(problem, case.rounds)[measure]))


def test_the_same_seed_finds_the_same():
    learner = AOGD.for_problem(INTERVAL)
    one, two = (find_worst_cases(INTERVAL, learner, 10, generations=3, population=12, seed=5) for _ in range(2))
    assert {m: c.ratio for m, c in one.items()} == {m: c.ratio for m, c in two.items()}
    assert "regret, ratio 0." in repr(one["regret"])


def test_evolution_improves_on_the_first_generation():
    learner = AOGD.for_problem(INTERVAL)
    first, last = (find_worst_cases(INTERVAL, learner, 32, generations=n, population=24) for n in (1, 25))
    # The regret is worst after one round, which the first generation finds.
    assert last["signed_violation"].ratio > first["signed_violation"].ratio * 1.1


@dataclass(frozen=True, eq=False)
class Optimist(AOGD):
    """A-OGD with a bound that is false by a factor of 3."""

    def theorem(self, problem, rounds):
        return {measure: np.asarray(values) / 3 for measure, values in super().theorem(problem, rounds).items()}


def test_a_false_theorem_is_refuted():
    problem = Problem(Box([-1.0], [1.0]), Linear(1), Affine([[0.01]], [0.01]))
    sound = AOGD.for_problem(problem)
    found = find_worst_cases(problem, Optimist(sound.enclosing_set, sound.schedule), 32, generations=15)
    assert found["regret"].ratio > 1


def test_problems_without_a_known_space_are_refused():
    with pytest.raises(InputError, match="Hinge has no known space"):
        find_worst_cases(
            Problem(Ball(2), Hinge(2, 1.0), L2Budget(2, 0.5)), AOGD.for_problem(INTERVAL), 5, generations=1
        )
