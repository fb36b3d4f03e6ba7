import numpy as np
import pytest
from scipy.optimize import minimize

from longterm import AOGD, InputError, Problem, run
from longterm.constraints import Affine, L2Budget, Stack
from longterm.errors import StreamEndedError
from longterm.hindsight import nearest_to_mean
from longterm.losses import Linear, SquaredDistance
from longterm.problems import doubly_stochastic, two_dimensional
from longterm.sets import Ball
from longterm.streams import RandomCosts, RandomPermutations, Replay


def test_the_mean_of_permutations_is_the_best_matrix():
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    best = nearest_to_mean(problem, stream, [1, 5, 100], seeds=range(2))
    for k, t in enumerate((1, 5, 100)):
        for seed in range(2):
            targets = stream.draw(seed, 0, t).loss[0]
            np.testing.assert_allclose(best.x[k, seed], targets.mean(axis=0), atol=1e-15)
            direct = problem.loss.value(best.x[k, seed], targets).sum()
            assert best.loss[k, seed] == pytest.approx(direct, abs=1e-10)
            solved = minimize(
                lambda x, y=targets: problem.loss.value(x, y).sum(),
                problem.enclosing_set.centre,
                jac=lambda x, y=targets: problem.loss.gradient(x, y).sum(axis=0),
                constraints=[{"type": "ineq", "fun": lambda x: -problem.constraint.values(x)}],
                method="SLSQP",
                options={"maxiter": 500, "ftol": 1e-12},
            )
            assert solved.fun >= best.loss[k, seed] - 1e-6


def test_a_projection_is_used_and_checked():
    stream = Replay([np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])])
    best = nearest_to_mean(two_dimensional(), stream, [3], project=lambda y: np.minimum(y, [0.25, np.inf]))
    # ½ (2 · 0.75² + 0.25²) + ½ (2 · (1/3)² + (2/3)²)
    assert best.loss[0] == pytest.approx(0.59375 + 1 / 3)
    own = nearest_to_mean(two_dimensional(), stream, [3])  # the problem knows its projection
    np.testing.assert_allclose(own.x, best.x, atol=1e-15)
    unknown = Problem(Ball(2), SquaredDistance(2), Stack([Affine([[1.0, 0.0]], [0.25]), L2Budget(2, budget=0.9)]))
    with pytest.raises(InputError, match="the mean target is not feasible"):
        nearest_to_mean(unknown, stream, [3])
    with pytest.raises(InputError, match="what project returned"):
        nearest_to_mean(two_dimensional(), stream, [3], project=lambda y: y)


def test_other_losses_are_refused():
    problem = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    with pytest.raises(InputError, match="SquaredDistance"):
        nearest_to_mean(problem, RandomCosts(2), [3])


def test_a_mean_that_is_not_quite_feasible_and_one_outside_the_ball_are_refused():
    stream = Replay([np.array([[0.26, 0.0]])])
    with pytest.raises(InputError, match="not feasible"):
        nearest_to_mean(two_dimensional(), stream, [1], project=lambda y: y)
    with pytest.raises(InputError, match="outside B: True"):
        nearest_to_mean(two_dimensional(), stream, [1], project=lambda y: y * 0 + [0.0, 1.5])


def test_rounds_beyond_the_stream_are_refused():
    stream = Replay([np.zeros((3, 2))])
    for rounds in ([3, 10], [10]):
        with pytest.raises(StreamEndedError, match="ended after round 3"):
            nearest_to_mean(two_dimensional(), stream, rounds)


def test_integer_targets_do_not_overflow():
    problem = Problem(Ball(1, radius=200.0), SquaredDistance(1), Affine([[1.0]], [200.0]))
    best = nearest_to_mean(problem, Replay([np.array([[100], [120], [110]], dtype=np.int8)]), [3])
    assert best.loss[0] == pytest.approx(100.0)


def test_regret_over_a_grid_and_seeds():
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    grid = AOGD.for_problem(problem, beta=np.array([0.3, 0.5, 0.7]))
    for seeds in (2, range(4)):
        trace = run(problem, grid, stream, 50, seeds=seeds, record=[10, 20, 50])
        best = nearest_to_mean(problem, stream, [10, 20, 50], seeds=seeds)
        for k, beta in enumerate((0.3, 0.5, 0.7)):
            single = run(problem, AOGD.for_problem(problem, beta=beta), stream, 50, seeds=seeds, record=[10, 20, 50])
            np.testing.assert_allclose(trace.regret(best)[:, k], single.regret(best), atol=1e-9)
    with pytest.raises(InputError, match="seeds"):
        trace.regret(nearest_to_mean(problem, stream, [10, 20, 50], seeds=range(3)))
    with pytest.raises(InputError, match="other rounds"):
        trace.regret(nearest_to_mean(problem, stream, [10, 20], seeds=range(4)))
