"""Projected OGD against pencil and paper, its bounds, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import AOGD, InputError, Problem, hindsight, observe, run
from longterm.errors import BrokenBoundError
from longterm.learners import ProjectedOGD
from longterm.learners.interface.feedback import Feedback
from longterm.problems import covariance, doubly_stochastic, two_dimensional
from longterm.problems.constraints import Affine, ElasticNetBudget, L2Budget, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box, Simplex
from longterm.problems.streams import RandomCosts, RandomPermutations, Replay
from longterm.problems.streams.costs import SwitchingCosts
from longterm.problems.streams.points import PairwiseSigns
from zoo import problems


def play(problem, learner, rounds):
    state, seen = learner.init(), []
    for parameters in rounds:
        seen.append(learner.ask(state))
        state = learner.tell(state, observe(problem, learner.ask(state), [np.array(parameters)]))
    return [*seen, learner.ask(state)]


def test_first_rounds_strongly_convex_by_hand():
    # σ = 1, so η_t = 1/t; X is the disc left of ¼.
    problem = two_dimensional()
    x1, x2, x3, x4 = play(
        problem, ProjectedOGD.for_problem(problem, steps="strongly convex"), ([1.0, 0.0], [0.0, 1.0], [1.0, 0.0])
    )
    np.testing.assert_array_equal(x1, [0, 0])
    np.testing.assert_allclose(x2, [0.25, 0])  # the target itself, cut off at ¼
    np.testing.assert_allclose(x3, [0.125, 0.5])  # half-way to (0, 1)
    np.testing.assert_allclose(x4, [0.25, 1 / 3])  # a third of the way to (1, 0): 0.125 + 0.875/3 > ¼


def test_first_rounds_convex_by_hand():
    # Δ = 2, G = 1, η_t = 2/√t; X is the disc left of ½.
    problem = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    _, x2, x3 = play(problem, ProjectedOGD.for_problem(problem), ([-1.0, 0.0], [0.0, -1.0]))
    np.testing.assert_allclose(x2, [0.5, 0])
    np.testing.assert_allclose(x3, [1 / 3, np.sqrt(8) / 3])  # (½, √2), of length 3/2, comes back along its ray


def test_starts_inside_the_constraint_set():
    """The centre of B need not be feasible; x_1 has to be."""
    problem = Problem(Ball(2), Linear(2), Affine([[-1.0, 0.0]], [-0.5]))
    np.testing.assert_allclose(ProjectedOGD.for_problem(problem).init().x, [0.5, 0])
    matrices = ProjectedOGD.for_problem(doubly_stochastic(3)).init((2,)).x
    np.testing.assert_allclose(matrices, np.full((2, 9), 1 / 3))


def test_a_smaller_diameter_and_a_grid_of_them():
    problem, stream = problems()["adversary on a box"]
    grid = np.array([0.5, 1.0])
    together = run(problem, ProjectedOGD.for_problem(problem, diameter=grid), stream, 60, seeds=range(2))
    assert together.cumulative_loss.shape[1:] == (2, 2)
    alone = run(problem, ProjectedOGD.for_problem(problem, diameter=1.0), stream, 60, seeds=1)
    np.testing.assert_allclose(together.cumulative_loss[:, 1, 1], alone.cumulative_loss, atol=1e-12)
    np.testing.assert_allclose(alone.eta, 1.0 / problem.constants.loss_gradient_bound / np.sqrt(alone.rounds))
    bound = ProjectedOGD.for_problem(problem, diameter=grid).bound(problem, [10, 60])
    assert bound["regret"].shape == bound["hard_violation"].shape == (2, 2)
    G = problem.constants.loss_gradient_bound
    np.testing.assert_allclose(bound["regret"], 1.5 * G * np.sqrt([[10], [60]]) * grid)


def test_only_the_gradients_of_the_losses_count():
    """The constraint's gradient may be longer than G_f; a loss's may not, although G is larger than it."""
    problem = Problem(Ball(2), Linear(2), Affine([[5.0, 0.0]], [1.0]))
    learner = ProjectedOGD.for_problem(problem)
    state = learner.init()
    steep = Feedback(np.array([0.5, 0.0]), np.asarray(-1.0), np.array([5.0, 0.0]))
    assert learner.tell(state, steep).x[0] == pytest.approx(-1.0)
    with pytest.raises(BrokenBoundError, match="loss_gradient"):
        learner.tell(state, steep._replace(loss_gradient=np.array([1.1, 0.0])))
    made_for_less = ProjectedOGD(
        problem.enclosing_set, problem.projection, 1.0, 0.5, replace(problem.constants, loss_gradient_bound=0.5)
    )
    with pytest.raises(BrokenBoundError, match=r"loss_gradient in round 1: has size 1, above the declared bound 0\.5"):
        run(problem, made_for_less, RandomCosts(2), 5)


def test_a_projection_of_the_user():
    g = L2Budget(2, budget=0.5)
    cut = Problem(Box.cube(2, 0.0, 1.0), Linear(2), g)  # the quarter disc: clip, then shrink, is exact here
    learner = ProjectedOGD.for_problem(cut, projection=lambda x: Ball(2, 0.5).project(np.maximum(x, 0.0)))
    trace = run(cut, learner, RandomCosts(2), 100)
    assert float(trace.largest_violation[-1]) <= 1e-12


@pytest.mark.parametrize(
    ("problem", "what"),
    [
        (Problem(Ball(2, 0.3), Linear(2), ElasticNetBudget(2, budget=1.0)), "the Euclidean projection"),
        (Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0)), "the same constraint in every round"),
    ],
)
def test_what_cannot_be_played_is_refused_before_round_1(problem, what):
    with pytest.raises(InputError, match=what):
        ProjectedOGD.for_problem(problem)


def test_more_refusals():
    with pytest.raises(InputError, match="not strongly convex"):
        ProjectedOGD.for_problem(Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5])), steps="strongly convex")
    with pytest.raises(InputError, match="diameter"):
        ProjectedOGD.for_problem(two_dimensional(), diameter=0.0)
    varying, stream = problems()["varying constraints"]
    learner = ProjectedOGD(varying.enclosing_set, varying.enclosing_set.project, 1.0, 0.5)
    with pytest.raises(InputError, match="the same constraint in every round"):
        run(varying, learner, stream)


# --- bounds -------------------------------------------------------------------------------------------------


def test_bounds_by_hand():
    facts = {
        "radius": 2.0,
        "diameter": 4.0,
        "loss_gradient_bound": 3.0,
        "constraint_gradient_bound": 100.0,
        "constraint_bound": 5.0,
        "loss_range": 7.0,
        "strong_convexity": 0.5,
    }
    problem = Problem(Ball(2, 2.0), Linear(2), Affine([[1.0, 0.0]], [0.5]), declared=facts)
    zinkevich, hazan = (ProjectedOGD.for_problem(problem, steps=steps) for steps in ("convex", "strongly convex"))
    np.testing.assert_allclose(zinkevich.bound(problem, [1, 4])["regret"], [18.0, 36.0])
    np.testing.assert_allclose(hazan.bound(problem, [1, 10])["regret"], [9.0, 9 * (1 + np.log(10))])
    np.testing.assert_array_equal(zinkevich.bound(problem, [1, 4])["hard_violation"], [0, 0])
    with pytest.raises(InputError, match="rounds"):
        zinkevich.bound(problem, 0)
    convex = Problem(Ball(2, 2.0), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    with pytest.raises(InputError, match="σ = 0"):
        ProjectedOGD.for_problem(convex, steps="strongly convex")
    with pytest.raises(InputError, match=r"σ = 0\.5"):
        hazan.bound(convex, 3)


def test_steps_of_ones_own_have_the_bound_that_they_have():
    problem = two_dimensional()  # Δ = 2, G = 2: η_1 = 1 is Zinkevich's
    longer = ProjectedOGD(problem.enclosing_set, problem.projection, 3.0, 0.5)
    assert float(longer.bound(problem, 25)["regret"]) == pytest.approx(4 * 5 / 6 + 3 * 4 * 5)
    other = ProjectedOGD(problem.enclosing_set, problem.projection, 1.0, 0.7).bound(problem, 25)
    assert not other
    assert "neither like 1/√t nor like 1/t" in other.reason


CONVEX = {
    "half disc": Problem(Ball(3), Linear(3), Affine([[1.0, 0.0, 0.0]], [0.2])),
    "box": Problem(Box.cube(3, -1.0, 1.0), Linear(3), Affine([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]], [0.2, 0.3])),
    "simplex": Problem(Simplex(3), Linear(3), Affine([[1.0, 0.0, 1.0]], [0.7])),
    "elastic net": Problem(ElasticNetBudget(3, 1.0).enclosing_ball(), Linear(3), ElasticNetBudget(3, 1.0)),
}


@pytest.mark.parametrize("name", CONVEX)
@given(seed=st.integers(0, 10**6), switch=st.booleans())
@examples(8)
def test_regret_of_linear_losses_stays_under_zinkevich(name, seed, switch):
    problem = CONVEX[name]
    stream = (SwitchingCosts if switch else RandomCosts)(3)
    rounds = 100
    trace = run(problem, ProjectedOGD.for_problem(problem), stream, rounds, seeds=seed, record=[10, rounds])
    costs = np.cumsum(stream.draw(seed, 0, rounds).loss[0], axis=0)[[9, rounds - 1]]
    # The farthest feasible point against a cost is the limit of projecting −s·cost for large s.
    best = problem.projection(-1e6 * costs / (1e-9 + np.linalg.norm(costs, axis=1, keepdims=True)))
    regret = trace.cumulative_loss - np.vecdot(costs, best)
    assert np.all(regret <= ProjectedOGD.for_problem(problem).bound(problem, [10, rounds])["regret"] + 1e-6)
    assert float(trace.hard_violation[-1]) <= 1e-9 * rounds


def test_zinkevich_is_not_loose_by_an_order_of_magnitude():
    """An adversary who charges for where the learner stands: a bound ten times smaller would be broken."""
    problem = Problem(Box([-1.0], [1.0]), Linear(1), Affine([[1.0]], [0.9]))
    learner = ProjectedOGD.for_problem(problem)
    state, total, loss = learner.init(), 0.0, 0.0
    for _ in range(400):
        x = learner.ask(state)
        cost = np.array([1.0 if x[0] >= 0 else -1.0])
        total, loss = total + cost[0], loss + float(cost @ x)
        state = learner.tell(state, observe(problem, x, [cost]))
    regret = loss - min(-total, 0.9 * total)
    bound = float(learner.bound(problem, 400)["regret"])
    assert 0.1 * bound < regret <= bound


@pytest.mark.slow
@pytest.mark.parametrize("name", ["doubly stochastic", "doubly stochastic in rows", "correlation", "covariance"])
def test_regret_of_squared_distances_stays_logarithmic(name):
    problem, stream = problems()[name]
    rounds, seeds = [10, 100, 300], range(3)
    convex, strongly = (ProjectedOGD.for_problem(problem, steps=steps) for steps in ("convex", "strongly convex"))
    trace = run(problem, strongly, stream, 300, seeds=seeds, record=rounds)
    best = hindsight.best(problem, stream, rounds, seeds=seeds)
    assert np.all(trace.regret(best) <= strongly.bound(problem, rounds)["regret"][:, None])
    assert np.all(trace.hard_violation[-1] <= 300 * 1e-12)
    also = run(problem, convex, stream, 300, seeds=seeds, record=rounds)
    assert np.all(also.regret(best) <= convex.bound(problem, rounds)["regret"][:, None])


def test_far_targets_reach_half_of_the_logarithmic_bound():
    """σ-strongly convex losses whose optimum keeps moving: the bound is met within a factor of two."""
    problem = Problem(Box([-1.0], [1.0]), SquaredDistance(1), Affine([[1.0]], [1.0]))
    learner = ProjectedOGD.for_problem(problem, steps="strongly convex")
    state, targets, loss = learner.init(), [], 0.0
    for _ in range(200):
        x = learner.ask(state)
        target = np.array([-1.0 if x[0] >= 0 else 1.0])
        told = observe(problem, x, [target])
        targets.append(target)
        loss, state = loss + float(told.loss), learner.tell(state, told)
    best = hindsight.best(problem, Replay([np.array(targets)]), [200])
    bound = float(learner.bound(problem, 200)["regret"])
    assert 0.1 * bound < loss - float(best.loss[0]) <= bound


def test_permutations_cost_nothing_to_project():
    """Doubly-stochastic targets: the running mean never leaves X, so projecting changes no round."""
    problem, stream = doubly_stochastic(4), RandomPermutations(4)
    trace = run(problem, ProjectedOGD.for_problem(problem, steps="strongly convex"), stream, 50, record=[50])
    np.testing.assert_allclose(trace.state.x, stream.draw(0, 0, 50).loss[0].mean(axis=0), atol=1e-13)


@pytest.mark.parametrize("unit_diagonal", [True, False])
def test_matrices_stay_symmetric_and_feasible(unit_diagonal):
    problem = covariance(6, unit_diagonal=unit_diagonal)
    for learner in (
        ProjectedOGD.for_problem(problem, steps="strongly convex"),
        AOGD.for_problem(problem, steps="strongly convex"),
        AOGD.for_problem(problem),
    ):
        x = run(problem, learner, PairwiseSigns(6), 80, seeds=range(2)).state.x.reshape(2, 6, 6)
        np.testing.assert_array_equal(x, x.swapaxes(1, 2))
        if unit_diagonal:
            np.testing.assert_array_equal(np.diagonal(x, axis1=1, axis2=2), np.ones((2, 6)))


def test_constants_that_are_a_number_are_refused():
    problem = two_dimensional()
    learner = ProjectedOGD(problem.enclosing_set, problem.enclosing_set.project, 1.0, 0.5, made_for=2.0)
    with pytest.raises(InputError, match="made_for: is a float, not Constants"):
        learner.tell(learner.init(), observe(problem, learner.ask(learner.init()), [np.ones(2)]))
