"""SGD with one projection: by hand, its constants, its answer against exact optima."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, InputError, Problem, observe, run
from longterm.learners import OneProjectionSGD
from longterm.learners.interface.needs import Need
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import NoisyTargets, Replay
from longterm.theory.schedules import ConstantSchedule
from opponents import KINDS, best_in_box, onto_box_and_half_space, play_linear


def cut(x):
    """Π_X of points in the unit disc, for x_1 ≤ ¼."""
    return np.minimum(x, [0.25, np.inf])


def box_problem(seed, d=4):
    """A box, one half-space through it with slack ε at the centre, its projection, and the slope ε/Δ."""
    rng = np.random.default_rng(seed)
    B, row = Box.cube(d, -1.0, 1.0), rng.standard_normal((1, d))
    slack = float(rng.uniform(0.05, 0.5))
    problem = Problem(B, Linear(d), Affine(row, [slack]))
    project = onto_box_and_half_space(B.lower, B.upper, row[0], slack)
    return problem, project, slack / B.diameter


def test_first_rounds_by_hand():
    # θ = η = ½, target (1, 0) in every round, g = x_1 − ¼.
    problem = two_dimensional()
    learner = OneProjectionSGD(problem.enclosing_set, cut, ConstantSchedule(0.5, 0.5, 0.5))
    state, seen = learner.init(), []
    for _ in range(3):
        state = learner.tell(state, observe(problem, learner.ask(state), [np.array([1.0, 0.0])]))
        seen.append((float(state.x[0]), float(state.multiplier), float(state.mean[0])))
    # x_2 = ½, λ_2 = [−⅛]₊;  x_3 = ½ + ½·½, λ_3 = ½·¼;  x_4 = ¾ + ½(¼ − ⅛), λ_4 = (1 − ¼)·⅛ + ½·½.
    np.testing.assert_allclose(seen, [(0.5, 0, 0), (0.75, 0.125, 0.25), (0.8125, 0.34375, 1.25 / 3)])
    np.testing.assert_allclose(learner.answer(state), [0.25, 0])


def test_its_decisions_are_those_of_aogd_with_constant_steps_and_mean_is_their_mean():
    problem, project, slope = box_problem(3)
    learner = OneProjectionSGD.for_problem(problem, horizon=200, projection=project, slope=slope)
    game = play_linear(problem, learner, "switching", 200, seed=1)
    same = play_linear(problem, AOGD(problem.enclosing_set, learner.schedule), "switching", 200, seed=1)
    np.testing.assert_array_equal(game.decisions, same.decisions)
    np.testing.assert_allclose(game.state.mean, game.decisions.mean(axis=0), atol=1e-14)


@given(T=st.integers(1, 10**6), seed=st.integers(0, 1000), slope=st.floats(0.01, 10))
def test_tuned_steps_meet_the_condition_with_equality(T, seed, slope):
    problem, project, _ = box_problem(seed)
    steps = OneProjectionSGD.for_problem(problem, horizon=T, projection=project, slope=slope).schedule
    G = problem.constants.constraint_gradient_bound
    assert steps.eta * (G**2 + steps.theta**2) == pytest.approx(steps.theta / 2, rel=1e-9)
    assert steps.mu == steps.eta <= 1 / (4 * G)


def test_the_slope_of_the_tests_is_one():
    problem, project, slope = box_problem(5)
    points = problem.enclosing_set.sample(np.random.default_rng(0), 2000)
    distance = np.linalg.norm(points - project(points), axis=-1)
    assert np.all(slope * distance <= np.maximum(problem.constraint.values(points)[:, 0], 0) + 1e-12)


@given(kind=KINDS, seed=st.integers(0, 10**6), T=st.integers(1, 150))
def test_rounds_stay_under_the_bound_whatever_the_losses(kind, seed, T):
    problem, project, slope = box_problem(seed)
    learner = OneProjectionSGD.for_problem(problem, horizon=T, projection=project, slope=slope)
    game = play_linear(problem, learner, kind, T, seed)
    bound = learner.bound(problem, T)
    B, g = problem.enclosing_set, problem.constraint
    regret = game.loss - best_in_box(B.lower, B.upper, g.matrix, g.limit, game.costs.sum(axis=0))
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert game.values.sum() <= float(bound["signed_violation"]) * (1 + 1e-9)


@given(seed=st.integers(0, 10**6), T=st.integers(1, 400))
def test_the_answer_is_feasible_and_within_its_bound_for_one_fixed_loss(seed, T):
    problem, project, slope = box_problem(seed)
    learner = OneProjectionSGD.for_problem(problem, horizon=T, projection=project, slope=slope)
    game = play_linear(problem, learner, "same", T, seed)
    answer, cost = learner.answer(game.state), game.costs[0]
    B, g = problem.enclosing_set, problem.constraint
    assert float(g.values(answer)[0]) <= 1e-9
    assert np.all(B.contains(answer))
    gap = cost @ answer - best_in_box(B.lower, B.upper, g.matrix, g.limit, cost)
    assert gap <= float(learner.answer_bound(problem, T)) * (1 + 1e-9)


@pytest.mark.slow
def test_the_answer_for_random_losses_is_within_its_bound_on_average_and_falls_like_one_over_root_T():
    # Costs with mean (−0.6, 0.2) and noise of ±0.2; X = disc ∩ {x_1 ≤ ¼}: f(x*) = −0.15 − 0.2 √(15/16).
    mean, best = np.array([-0.6, 0.2]), -0.6 * 0.25 - 0.2 * np.sqrt(15 / 16)
    gaps, bounds = [], []
    for T in (250, 4000):
        problem = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.25]))
        learner = OneProjectionSGD.for_problem(problem, horizon=T, projection=cut, slope=1.0)
        answers = learner.answer(run(problem, learner, NoisyTargets(mean, spread=0.2), T, seeds=range(20)).state)
        gaps.append(float((answers @ mean).mean() - best))
        bounds.append(float(learner.answer_bound(problem, T)))
    assert 0 <= gaps[0] <= bounds[0]
    assert 0 <= gaps[1] <= bounds[1]
    assert bounds[1] == pytest.approx(bounds[0] / 4, rel=0.02)
    assert gaps[1] < gaps[0] / 2.5


def test_a_grid_of_steps_is_one_learner():
    problem = two_dimensional()
    eta = np.array([0.01, 0.02, 0.05])
    learner = OneProjectionSGD(problem.enclosing_set, cut, ConstantSchedule(4 * eta, eta, eta), slope=1.0)
    trace = run(problem, learner, Replay([np.tile([0.8, 0.6], (50, 1))]), seeds=range(2))
    assert learner.answer(trace.state).shape == (3, 2, 2)
    assert learner.answer_bound(problem, [10, 50]).shape == (2, 3)
    assert learner.bound(problem, [10, 50])["signed_violation"].shape == (2, 3)


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"projection": lambda x: x}, "projection"),
        ({"projection": lambda x: 0 * x}, "projection"),
        ({"projection": lambda x: x[..., :1]}, "projection"),
        ({"projection": "soon"}, "projection"),
        ({"horizon": 0}, "horizon"),
        ({"slope": 0.0}, "slope"),
        ({"slope": float("nan")}, "slope"),
    ],
)
def test_bad_input_is_refused(changed, argument):
    with pytest.raises(InputError) as refused:
        OneProjectionSGD.for_problem(two_dimensional(), **{"projection": cut, "horizon": 10, "slope": 1.0, **changed})
    assert refused.value.argument == argument
    assert refused.value.remedy


def test_constraints_that_change_are_refused_before_round_1():
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0))
    learner = OneProjectionSGD(problem.enclosing_set, cut, ConstantSchedule(0.1, 0.1, 0.1))
    with pytest.raises(InputError, match=Need.FIXED_CONSTRAINT.value):
        OneProjectionSGD.for_problem(problem, horizon=10, projection=cut, slope=1.0)
    with pytest.raises(InputError, match=Need.FIXED_CONSTRAINT.value):
        run(problem, learner, Replay([np.ones((3, 2))], [np.ones((3, 1, 2)), np.ones((3, 1))]))


def test_steps_outside_the_condition_have_no_bound():
    problem = two_dimensional()
    for theta, eta, mu in ((0.01, 0.5, 0.5), (1.0, 0.1, 0.2)):
        learner = OneProjectionSGD(problem.enclosing_set, cut, ConstantSchedule(theta, eta, mu))
        bound = learner.bound(problem, 10)
        assert not bound
        assert "θ/2" in bound.reason


def test_the_problem_gives_the_projection_and_a_slope():
    problem = two_dimensional()
    learner = OneProjectionSGD.for_problem(problem, horizon=100)
    assert learner.slope == pytest.approx(1.25 / 2)  # ε/Δ
    assert learner.project is problem.projection
    unknown = OneProjectionSGD(problem.enclosing_set, cut, learner.schedule)
    with pytest.raises(InputError, match="slope: is missing"):
        unknown.answer_bound(problem, 10)
