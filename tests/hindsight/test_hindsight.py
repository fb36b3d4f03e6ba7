import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from longterm import AOGD, InputError, Problem, hindsight, run
from longterm.errors import StreamEndedError
from longterm.play import Comparison
from longterm.problems import doubly_stochastic, two_dimensional
from longterm.problems.constraints import Affine, L2Budget, Stack
from longterm.problems.losses import CustomLoss, Linear, SquaredDistance
from longterm.problems.sets import Ball
from longterm.problems.streams import FromIterable, RandomCosts, RandomPermutations, Replay


def test_the_mean_of_permutations_is_the_best_matrix():
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    best = hindsight.best(problem, stream, [1, 5, 100], seeds=range(2))
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


def test_the_projection_of_the_mean_is_used():
    stream = Replay([np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])])
    best = hindsight.best(two_dimensional(), stream, [3])  # the problem knows its projection
    np.testing.assert_allclose(best.x, [[0.25, 1 / 3]], atol=1e-15)
    # ½ (2 · 0.75² + 0.25²) + ½ (2 · (1/3)² + (2/3)²)
    assert best.loss[0] == pytest.approx(0.59375 + 1 / 3)
    assert best.solver == "the projection of the mean target"
    feasible = hindsight.best(two_dimensional(), Replay([np.array([[0.25, 0.5]])]), 1)
    assert feasible.solver == "the mean target"
    barely_not = hindsight.best(two_dimensional(), Replay([np.array([[0.26, 0.0]])]), [1])
    np.testing.assert_allclose(barely_not.x, [[0.25, 0.0]])
    outside = hindsight.best(two_dimensional(), Replay([np.array([[0.0, 1.5]])]), [1])
    np.testing.assert_allclose(outside.x, [[0.0, 1.0]])


@pytest.mark.slow
def test_another_solver_is_used_without_a_projection():
    stream = Replay([np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])])
    unknown = Problem(Ball(2), SquaredDistance(2), Stack([Affine([[1.0, 0.0]], [0.25]), L2Budget(2, budget=0.4)]))
    for method in ("auto", "numerical", "cvxpy"):
        best = hindsight.best(unknown, stream, [3], method=method)
        np.testing.assert_allclose(best.x, [[0.25, np.sqrt(0.16 - 0.0625)]], atol=1e-5)  # (⅔, ⅓) is farther from 0
        assert best.relative_gap[0] <= 1e-5


def test_a_wrong_minimiser_is_not_trusted():
    stream = Replay([np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])])
    right = replace(two_dimensional(), minimiser=lambda y: np.minimum(y.mean(axis=0), [0.25, np.inf]))
    assert hindsight.best(right, stream, [3]).solver == "the problem's own minimiser"
    for wrong in (lambda y: y.mean(axis=0), lambda y: np.array([0.0, 1.5]), lambda y: np.zeros(2), lambda y: y):
        best = hindsight.best(replace(two_dimensional(), minimiser=wrong), stream, [3])
        assert best.solver == "the projection of the mean target"
        np.testing.assert_allclose(best.x, [[0.25, 1 / 3]], atol=1e-15)


def test_unknown_methods_are_refused():
    problem = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    with pytest.raises(InputError, match="Choose from"):
        hindsight.best(problem, RandomCosts(2), [3], method="magic")


@pytest.mark.parametrize("result", [3, Comparison({})])
def test_something_else_than_a_problem_or_a_result_is_refused(result):
    with pytest.raises(InputError, match=f"problem: is a {type(result).__name__}"):
        hindsight.best(result)


def test_rounds_beyond_the_stream_are_refused():
    stream = Replay([np.zeros((3, 2))])
    for rounds in ([3, 10], [10]):
        with pytest.raises(StreamEndedError, match="ended after round 3"):
            hindsight.best(two_dimensional(), stream, rounds)


def test_integer_targets_do_not_overflow():
    problem = Problem(Ball(1, radius=200.0), SquaredDistance(1), Affine([[1.0]], [200.0]))
    best = hindsight.best(problem, Replay([np.array([[100], [120], [110]], dtype=np.int8)]), [3])
    assert best.loss[0] == pytest.approx(100.0)


def test_regret_over_a_grid_and_seeds():
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    grid = AOGD.for_problem(problem, beta=np.array([0.3, 0.5, 0.7]))
    for seeds in (2, range(4)):
        trace = run(problem, grid, stream, 50, seeds=seeds, record=[10, 20, 50])
        best = hindsight.best(problem, stream, [10, 20, 50], seeds=seeds)
        for k, beta in enumerate((0.3, 0.5, 0.7)):
            single = run(problem, AOGD.for_problem(problem, beta=beta), stream, 50, seeds=seeds, record=[10, 20, 50])
            np.testing.assert_allclose(trace.regret(best)[:, k], single.regret(best), atol=1e-9)
    with pytest.raises(InputError, match="seeds"):
        trace.regret(hindsight.best(problem, stream, [10, 20, 50], seeds=range(3)))
    with pytest.raises(InputError, match="other rounds"):
        trace.regret(hindsight.best(problem, stream, [10, 20], seeds=range(4)))


@pytest.mark.slow
def test_the_regret_against_a_plain_decision_is_added_up_from_the_stream():
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    x = np.linspace(0.0, 0.5, 9)
    grid = AOGD.for_problem(problem, beta=np.array([0.3, 0.5]))
    for seeds in (4, range(3)):
        trace = run(problem, grid, stream, 5000, seeds=seeds, record=[1, 7, 4500, 5000])  # more than one block
        every = [seeds] if seeds == 4 else seeds
        for k, t in enumerate(trace.rounds):
            sums = np.array([problem.loss.value(x, *stream.draw(seed, 0, t).loss).sum() for seed in every])
            expected = trace.cumulative_loss[k] - (sums[0] if seeds == 4 else sums)
            np.testing.assert_allclose(trace.regret(x)[k], expected, rtol=1e-12)
    best = hindsight.best(problem, stream, trace.rounds, seeds=range(3))
    np.testing.assert_allclose(trace.regret(best.x[-1, 1])[-1, :, 1], trace.regret(best)[-1, :, 1], atol=1e-9)
    resumed = run(problem, grid, stream, 5005, seeds=range(3), record=[7], resume=trace)
    assert resumed.rounds[-1] == 5005
    assert resumed.regret(list(x)).shape == (len(resumed.rounds), 2, 3)


def test_the_regret_against_a_decision_needs_the_stream():
    problem = two_dimensional()
    trace = run(problem, AOGD.for_problem(problem), RandomCosts(2), 5)
    with pytest.raises(InputError, match="a decision has"):
        trace.regret([1.0, 2.0, 3.0])
    sent = pickle.loads(pickle.dumps(trace))
    assert sent.problem is None
    np.testing.assert_array_equal(sent.cumulative_loss, trace.cumulative_loss)
    with pytest.raises(InputError, match="has no problem and stream"):
        sent.regret(np.zeros(2))
    once = run(problem, AOGD.for_problem(problem), FromIterable(([0.1 * t, 0.0],) for t in range(5)))
    with pytest.raises(InputError, match="cannot be drawn again"):
        once.regret(np.zeros(2))
    alone = Problem(
        Ball(2), CustomLoss(2, lambda x: x[..., 0], lambda x: 0 * x + [1.0, 0.0], 1.0, 2.0), problem.constraint
    )
    trace = run(alone, AOGD.for_problem(alone), Replay([], rounds=4), seeds=[0, 1])
    np.testing.assert_allclose(trace.regret([0.5, 0.0])[-1], trace.cumulative_loss[-1] - 2.0)
