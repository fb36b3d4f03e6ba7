"""The search for worst-case sequences: its results are true, and it refutes false bounds."""

from dataclasses import dataclass

import numpy as np
import pytest

from longterm import AOGD, InputError, Problem, hindsight, run
from longterm.problems import power_allocation
from longterm.problems.constraints import Affine, L2Budget, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box
from longterm.testing import find_worst_cases
from zoo import D, losses

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


@pytest.mark.parametrize("name", losses())
def test_every_loss_has_worst_cases(name):
    """Rows, labels and targets keep to what the loss declares, so the stream passes the checks of `run`."""
    problem = Problem(Ball(D), losses()[name], L2Budget(D, budget=0.5))
    learner, choices = AOGD.for_problem(problem), [np.linspace(-1.0, 1.0, 9)] if name == "custom" else None
    case = find_worst_cases(problem, learner, 6, generations=2, population=8, choices=choices)["signed_violation"]
    trace = run(problem, learner, case.stream, case.rounds)
    assert trace.signed_violation[-1] == pytest.approx(case.value, abs=1e-9)


def test_prices_are_in_their_range():
    problem = power_allocation(np.linspace(0.2, 1.0, 5), 2)
    found = find_worst_cases(problem, AOGD.for_problem(problem), 6, generations=2, population=8)
    prices = found["regret"].stream.draw(0, 0, found["regret"].rounds).loss[0]
    assert np.all((prices >= 0.2) & (prices <= 1.0))


def test_problems_without_a_known_space_are_refused():
    custom = Problem(Ball(D), losses()["custom"], L2Budget(D, budget=0.5))
    learner = AOGD.for_problem(custom)
    with pytest.raises(InputError, match=r"CustomLoss has no known set of possible parameters.*Give `choices`"):
        find_worst_cases(custom, learner, 5, generations=1)
    for choices in ([], [np.zeros((3, 2))], [np.zeros(0)], ["many"]):
        with pytest.raises(InputError, match="choices"):
            find_worst_cases(custom, learner, 5, generations=1, choices=choices)


def test_progress_counts_the_generations_of_all_measures():
    seen = []
    find_worst_cases(
        INTERVAL, AOGD.for_problem(INTERVAL), 3, generations=2, population=4, progress=lambda *of: seen.append(of)
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
