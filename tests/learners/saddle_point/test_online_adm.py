"""Online ADM: by hand, against the problems that define its steps, its bounds; both points it can play."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from longterm import InputError, Problem, observe, run
from longterm.learners import FeasibleOnlineADM, OnlineADM
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.needs import Need
from longterm.learners.saddle_point.online_adm import OnlineADMState
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine, ElasticNetBudget, L2Budget, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import Replay
from opponents import KINDS, best_in_box, onto_box_and_half_space, play_linear
from zoo import projection_of

BOTH = pytest.mark.parametrize("kind_of_learner", [OnlineADM, FeasibleOnlineADM])


def half_space(x):
    """x_1 ≤ ¼ alone: the disc is B's business."""
    return np.minimum(x, [0.25, np.inf])


def cut_disc(y):
    """x_1 ≤ ¼ in the unit disc: the disc's point, else the half-space's, else the corner between them."""
    in_disc, cut = Ball(2).project(y), half_space(y)
    corner = np.stack([np.full(y.shape[:-1], 0.25), np.copysign(np.sqrt(15 / 16), y[..., 1])], axis=-1)
    other = np.where(np.linalg.norm(cut, axis=-1, keepdims=True) <= 1, cut, corner)
    return np.where(in_disc[..., :1] <= 0.25, in_disc, other)


def box_problem(seed, d=4):
    rng = np.random.default_rng(seed)
    B, row = Box.cube(d, -1.0, 1.0), rng.standard_normal((1, d))
    problem = Problem(B, Linear(d), Affine(row, row @ rng.uniform(-1, 1, d)))
    return problem, onto_box_and_half_space(B.lower, B.upper, row[0], problem.constraint.limit[0])


def test_first_rounds_by_hand():
    # ρ = η = 1, target (1, 0): x ← Π_B((x + z − y − ∇f)/2), z ← Π_C(x + y), y ← y + x − z.
    problem = two_dimensional()
    learner = OnlineADM(problem.enclosing_set, half_space, eta=1.0, rho=1.0)
    state, seen = learner.init(), []
    for _ in range(3):
        state = learner.tell(state, observe(problem, learner.ask(state), [np.array([1.0, 0.0])]))
        seen.append([float(part[0]) for part in (state.x, state.copy, state.multiplier)])
    # (0 + 0 − 0 + 1)/2 = ½, cut to ¼, y = ¼;  (½ + ¼ − ¼ + ½)/2 = ½, ½ + ¼ cut, y = ½;  (½ + ¼ − ½ + ½)/2 = ⅜, y = ⅝.
    np.testing.assert_allclose(seen, [[0.5, 0.25, 0.25], [0.5, 0.25, 0.5], [0.375, 0.25, 0.625]])


def test_the_steps_solve_their_problems():
    rng = np.random.default_rng(0)
    row, offset, eta, rho = np.array([1.0, 2.0, -1.0]), 0.3, 1.7, 0.6
    B = Box.cube(3, -1.0, 1.0)
    learner = OnlineADM(B, onto_box_and_half_space(B.lower, B.upper, row, offset), eta=eta, rho=rho)
    x, z, y, c = rng.uniform(-1, 1, (4, 3))
    after = learner.update(OnlineADMState(np.asarray(1), x, z, y), Feedback(c, np.asarray(0.0), c))
    inside = {"bounds": [(-1, 1)] * 3, "method": "SLSQP", "options": {"ftol": 1e-15}}
    first = minimize(
        lambda v: (c + y) @ v + rho / 2 * np.sum((v - z) ** 2) + eta / 2 * np.sum((v - x) ** 2), np.zeros(3), **inside
    )
    np.testing.assert_allclose(after.x, first.x, atol=1e-6)
    second = minimize(
        lambda v: -y @ v + rho / 2 * np.sum((after.x - v) ** 2),
        np.zeros(3),
        constraints={"type": "ineq", "fun": lambda v: offset - row @ v},
        **inside,
    )
    np.testing.assert_allclose(after.copy, second.x, atol=1e-6)
    np.testing.assert_allclose(after.multiplier, y + rho * (after.x - after.copy))


def test_where_B_does_not_bind_the_feasible_form_is_projected_gradient_descent():
    problem = Problem(Ball(3, radius=100.0), Linear(3), Affine([[1.0, 1.0, 0.0]], [0.2]))
    project = projection_of(problem.constraint)
    learner = FeasibleOnlineADM(problem.enclosing_set, project, eta=0.0, rho=20.0)
    game = play_linear(problem, learner, "switching", 100, seed=4)
    x = project(np.zeros(3))
    for decision, cost in zip(game.decisions, game.costs, strict=True):
        np.testing.assert_allclose(decision, x, atol=1e-12)
        x = project(x - cost / 20.0)


@given(kind=KINDS, seed=st.integers(0, 10**6), T=st.integers(1, 150), ratio=st.floats(0.1, 10))
def test_x_stays_under_its_bounds(kind, seed, T, ratio):
    problem, project = box_problem(seed)
    tuned = OnlineADM.for_problem(problem, horizon=T, projection=project)
    learner = OnlineADM(problem.enclosing_set, project, tuned.eta, ratio * tuned.rho)
    game = play_linear(problem, learner, kind, T, seed)
    B, g = problem.enclosing_set, problem.constraint
    regret = game.loss - best_in_box(B.lower, B.upper, g.matrix, g.limit, game.costs.sum(axis=0))
    bound = learner.bound(problem, T)
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert np.maximum(game.values, 0).sum() <= float(bound["hard_violation"]) * (1 + 1e-9)
    assert game.values.sum() <= float(bound["long_term_violation"]) * (1 + 1e-9)


@given(kind=KINDS, seed=st.integers(0, 10**6), T=st.integers(1, 150), proximal=st.sampled_from([0.0, 1.0]))
def test_z_is_feasible_in_every_round_and_stays_under_its_bound(kind, seed, T, proximal):
    problem, project = box_problem(seed)
    tuned = FeasibleOnlineADM.for_problem(problem, horizon=T, projection=project)
    learner = FeasibleOnlineADM(problem.enclosing_set, project, proximal * tuned.rho, tuned.rho)
    game = play_linear(problem, learner, kind, T, seed)
    B, g = problem.enclosing_set, problem.constraint
    regret = game.loss - best_in_box(B.lower, B.upper, g.matrix, g.limit, game.costs.sum(axis=0))
    bound = learner.bound(problem, T)
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert game.values.max() <= 1e-9
    assert float(bound["hard_violation"]) == 0


@given(seed=st.integers(0, 10**6), T=st.integers(1, 150))
def test_splitting_off_the_half_space_alone_keeps_the_bounds(seed, T):
    """C = {g ≤ 0} need not lie in B: only B ∩ C has to hold the comparator."""
    problem, _ = box_problem(seed)
    learner = OnlineADM.for_problem(problem, horizon=T, projection=projection_of(problem.constraint))
    game = play_linear(problem, learner, "adaptive", T, seed)
    B, g = problem.enclosing_set, problem.constraint
    regret = game.loss - best_in_box(B.lower, B.upper, g.matrix, g.limit, game.costs.sum(axis=0))
    bound = learner.bound(problem, T)
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert np.maximum(game.values, 0).sum() <= float(bound["hard_violation"]) * (1 + 1e-9)


def test_the_regret_bounds_are_within_sight():
    """A cost that stays, along the boundary of the constraint: the best point of the disc is (0, −1)."""
    problem, T = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.25])), 1000
    costs = Replay([np.tile([0.0, 1.0], (T, 1))])
    for kind_of_learner, project in ((OnlineADM, half_space), (FeasibleOnlineADM, cut_disc)):
        learner = kind_of_learner.for_problem(problem, horizon=T, projection=project)
        regret = float(run(problem, learner, costs).cumulative_loss[-1]) + T
        assert 0.45 < regret / float(learner.bound(problem, T)["regret"]) <= 1


@BOTH
def test_constraints_that_change_are_refused_before_round_1(kind_of_learner):
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0))
    learner = kind_of_learner(problem.enclosing_set, half_space, eta=1.0, rho=1.0)
    with pytest.raises(InputError, match=Need.FIXED_CONSTRAINT.value):
        kind_of_learner.for_problem(problem, horizon=10, projection=half_space)
    with pytest.raises(InputError, match=Need.FIXED_CONSTRAINT.value):
        run(problem, learner, Replay([np.ones((3, 2))], [np.ones((3, 1, 2)), np.ones((3, 1))]))


@BOTH
@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"projection": lambda x: x}, "projection"),
        ({"projection": lambda x: 0 * x}, "projection"),
        ({"projection": "soon"}, "projection"),
        ({"horizon": -3}, "horizon"),
    ],
)
def test_bad_input_is_refused(kind_of_learner, changed, argument):
    with pytest.raises(InputError) as refused:
        kind_of_learner.for_problem(two_dimensional(), **{"projection": cut_disc, "horizon": 10, **changed})
    assert refused.value.argument == argument


def test_the_feasible_form_needs_the_projection_onto_B_too():
    with pytest.raises(InputError, match="outside B"):
        FeasibleOnlineADM.for_problem(two_dimensional(), horizon=10, projection=half_space)
    OnlineADM.for_problem(two_dimensional(), horizon=10, projection=half_space)


def test_a_feasible_form_that_would_play_outside_of_b_is_refused_however_it_was_made():
    """G_f holds on B only: z_t in {g ≤ 0} alone may have longer gradients than the theorem knows."""
    problem = Problem(Ball(2), SquaredDistance(2), Affine([[1.0, 0.0]], [0.25]))
    made = FeasibleOnlineADM(problem.enclosing_set, half_space, eta=0.0, rho=1.0)
    targets = Replay([np.tile([0.0, 1.0], (5, 1))])
    for asked in (lambda: run(problem, made, targets), lambda: made.bound(problem, 5)):
        with pytest.raises(InputError, match="outside B"):
            asked()
    run(problem, OnlineADM(problem.enclosing_set, half_space, eta=1.0, rho=1.0), targets)


def test_the_problem_gives_the_projection():
    problem = two_dimensional()
    assert OnlineADM.for_problem(problem, horizon=10).project is problem.projection
    unknown = Problem(Ball(2, 0.3), Linear(2), ElasticNetBudget(2, budget=1.0))
    with pytest.raises(InputError, match="the Euclidean projection"):
        OnlineADM.for_problem(unknown, horizon=10)


def test_only_affine_constraints_have_the_better_bound():
    curved = Problem(Ball(2), Linear(2), L2Budget(2, budget=0.5))
    onto = projection_of(curved.constraint)
    assert set(OnlineADM.for_problem(curved, horizon=10, projection=onto).bound(curved, 10)) == {
        "regret",
        "hard_violation",
    }


@pytest.mark.parametrize(("eta", "rho", "argument"), [(-1.0, 1.0, "eta"), (1.0, 0.0, "rho"), (1.0, np.nan, "rho")])
def test_bad_weights_are_refused(eta, rho, argument):
    with pytest.raises(InputError) as refused:
        OnlineADM(Ball(2), half_space, eta, rho)
    assert refused.value.argument == argument


def test_x_without_a_proximal_term_has_no_bound():
    bound = OnlineADM(Ball(2), half_space, 0.0, 1.0).bound(two_dimensional(), 10)
    assert not bound
    assert "η is 0" in bound.reason


def test_a_grid_of_weights_is_one_learner():
    problem = two_dimensional()
    grid = OnlineADM(problem.enclosing_set, half_space, eta=np.array([1.0, 5.0, 20.0]), rho=np.array([2.0, 2.0, 9.0]))
    targets = Replay([np.tile([0.8, 0.6], (40, 1))])
    together = run(problem, grid, targets)
    for k, (eta, rho) in enumerate([(1.0, 2.0), (5.0, 2.0), (20.0, 9.0)]):
        alone = run(problem, OnlineADM(problem.enclosing_set, half_space, eta, rho), targets)
        np.testing.assert_allclose(together.state.x[k], alone.state.x, atol=1e-12)
    assert grid.bound(problem, [10, 40])["hard_violation"].shape == (2, 3)
