"""A-FTRL, both forms: by hand, against a plain rewriting, its bounds, its zeros, what it needs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budget_problems import best_in_budget, budget_problem, factors, horizons, seeds
from longterm import AOGD, Feedback, Fleet, InputError, Problem, observe, run
from longterm.learners import AFTRL, AdaptiveAFTRL, ProximalAOGD
from longterm.learners.ftrl.ftrl_scales import GivenScale, StronglyConvexScale
from longterm.learners.ftrl.growing_penalty import GrowingPenalty
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.problems import budgeted_logistic, two_dimensional
from longterm.problems.constraints import Affine, CustomConstraint, ElasticNetBudget, L1Budget, Smooth
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import Replay, ResampledRows
from opponents import KINDS, best_in_box, play_linear

UP, RIGHT = np.array([0.0, 1.0]), np.array([1.0, 0.0])


def told_targets(problem, learner, targets):
    state = learner.init()
    for target in targets:
        state = learner.tell(state, observe(problem, learner.ask(state), [target]))
    return state


def test_first_rounds_by_hand():
    problem = two_dimensional()  # ½‖x − target‖², g = x₁ − ¼, the unit disc
    learner = AFTRL(problem.constraint.prox(problem.enclosing_set), GivenScale(1.0), Multiplier(1.0, 0.5))
    state = told_targets(problem, learner, [RIGHT])
    # x_1 = 0 is slack, so λ_2 = 0; z_1 = (−1, 0); η_2 = 1/√2.
    np.testing.assert_allclose(state.x, [np.sqrt(0.5), 0])
    assert float(state.multiplier[0]) == 0
    state = told_targets(problem, learner, [RIGHT, RIGHT])
    # θ_2 = 1/√2, μ_2 = √2/3, so λ_3 = (√2/3)(√½ − ¼) = Λ_3; z_2 = −1 + (√½ − 1); x_3 = (−z_2 − Λ_3)/√3.
    multiplier = np.sqrt(2) / 3 * (np.sqrt(0.5) - 0.25)
    assert float(state.multiplier[0]) == pytest.approx(multiplier)
    assert float(state.x[0]) == pytest.approx((2 - np.sqrt(0.5) - multiplier) / np.sqrt(3))


def test_a_round_under_a_budget_by_hand():
    g = ElasticNetBudget(3, budget=1.0, l1=2.0, l2=3.0)
    learner = AFTRL(g.prox(Ball(3, 10.0)), GivenScale(step=2.0), Multiplier(theta_0=1.0, beta=0.5))
    start = learner.init()
    before = start._replace(
        round=np.asarray(3),
        gradient_sum=np.array([-4.0, 3.0, 1.0]),
        weight=np.array([0.8]),
        dual=start.dual._replace(multiplier=np.array([0.5])),
    )
    after = learner.update(before, Feedback(np.array([-1.0, 0.0, 1.0]), np.asarray(0.6), np.zeros(3)))
    # θ_3 = 1/√3, μ_3 = √3/4: λ_4 = ½ + (√3/4)(0.6 − ½/√3) = 0.375 + 0.15√3; η_4 = 1.
    multiplier = 0.375 + 0.15 * np.sqrt(3)
    total = 0.8 + multiplier
    assert float(after.multiplier[0]) == pytest.approx(multiplier)
    assert float(after.weight[0]) == pytest.approx(total)
    expected = np.array([5 - 2 * total, -(3 - 2 * total), 0.0]) / (1 + 3 * total)
    np.testing.assert_allclose(after.x, expected, atol=1e-15)
    assert after.x[2] == 0.0


def test_first_rounds_of_the_strongly_convex_form_by_hand():
    problem = two_dimensional()
    prox = problem.constraint.prox(problem.enclosing_set)
    learner = AFTRL(prox, StronglyConvexScale(1.0), Multiplier(theta_0=1.0, beta=0.5))
    np.testing.assert_allclose(told_targets(problem, learner, [RIGHT]).x, [1, 0])
    # λ_3 = μ_2 · ¾ = √2/4; the models add up to −⟨(1, 1), x⟩ + ‖x‖².
    state = told_targets(problem, learner, [RIGHT, UP])
    np.testing.assert_allclose(state.x, [(1 - np.sqrt(2) / 4) / 2, 0.5])


def test_on_squared_distances_the_strongly_convex_form_follows_the_mean():
    rng = np.random.default_rng(0)
    slack = Problem(Ball(3, 2.0), SquaredDistance(3, targets=Ball(3)), Affine([[1.0, 0, 0]], [5.0]))
    targets = Ball(3).project(rng.standard_normal((50, 3)))
    state = told_targets(slack, AFTRL.for_problem(slack, steps="strongly convex"), targets)
    np.testing.assert_allclose(state.x, targets.mean(axis=0), atol=1e-12)


def test_every_affine_constraint_has_a_multiplier_of_its_own():
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((3, 4)), rng.uniform(-0.2, 0.4, 3)
    low, high = np.array([-1.0, 0.5, -2.0, -1.0]), np.array([1.0, 2.0, -0.5, 3.0])
    problem = Problem(Box(low, high), Linear(4), Affine(A, b))
    learner = AFTRL.for_problem(problem, beta=0.6, theta_0=0.7)
    costs = rng.standard_normal((60, 4))
    costs /= np.linalg.norm(costs, axis=1, keepdims=True)
    centre, R = (low + high) / 2, np.linalg.norm(high - low) / 2
    x, z, multiplier, total = centre, np.zeros(4), np.zeros(3), np.zeros(3)
    for t, cost in enumerate(costs, start=1):
        z, theta = z + cost, 0.7 / t**0.6
        multiplier = np.maximum(multiplier + (A @ x - b - theta * multiplier) / (theta * (t + 1)), 0)
        total = total + multiplier
        x = np.clip(centre - R / np.sqrt(t + 1) * (z + A.T @ total), low, high)
    trace = run(problem, learner, Replay([costs]))
    np.testing.assert_allclose(trace.state.x, x, atol=1e-11)
    np.testing.assert_allclose(trace.state.multiplier, multiplier, atol=1e-11)
    assert trace.multiplier.shape == (len(trace.rounds), 3)


# --- bounds -------------------------------------------------------------------------------------------------


@given(kind=KINDS, seed=seeds, T=horizons, theta=factors, step=st.floats(0.2, 5), beta=st.floats(0.05, 0.95))
def test_bounds_under_a_budget(kind, seed, T, theta, step, beta):
    problem = budget_problem(seed)
    tuned = AFTRL.for_problem(problem, beta=beta)
    learner = AFTRL(
        problem.constraint.prox(problem.enclosing_set),
        GivenScale(step * tuned.scale.step),
        Multiplier(theta * tuned.dual.theta_0, beta),
    )
    game = play_linear(problem, learner, kind, T, seed)
    bound = learner.bound(problem, T)
    regret = game.loss - best_in_budget(problem.constraint, game.costs.sum(axis=0))
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert game.values.sum() <= float(bound["long_term_violation"]) * (1 + 1e-9)


@given(kind=KINDS, seed=seeds, T=horizons, theta=factors, beta=st.floats(0.05, 0.95))
def test_bounds_with_a_multiplier_for_each_affine_constraint(kind, seed, T, theta, beta):
    rng = np.random.default_rng(seed)
    B, rows = Box(rng.uniform(-2, -0.5, 3), rng.uniform(0.5, 2, 3)), rng.standard_normal((4, 3))
    problem = Problem(B, Linear(3), Affine(rows, rows @ rng.uniform(-0.4, 0.4, 3)))
    learner = AFTRL.for_problem(problem, beta=beta, theta_0=theta * AFTRL.for_problem(problem).dual.theta_0)
    game = play_linear(problem, learner, kind, T, seed)
    best = best_in_box(B.lower, B.upper, problem.constraint.matrix, problem.constraint.limit, game.costs.sum(axis=0))
    bound = learner.bound(problem, T)
    assert game.loss - best <= float(bound["regret"]) * (1 + 1e-9)
    together = np.linalg.norm(np.maximum(game.values.sum(axis=0), 0))
    assert together <= float(bound["long_term_violation"]) * (1 + 1e-9)


@given(seed=seeds, T=horizons, theta=factors, turning=st.booleans(), beta=st.floats(0.05, 0.95))
def test_bounds_for_strongly_convex_losses(seed, T, theta, turning, beta):
    problem = two_dimensional()
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 2 * np.pi, T) if not turning else np.pi * (np.arange(1, T + 1) > T / 2)
    targets = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    learner = AFTRL.for_problem(
        problem,
        steps="strongly convex",
        beta=beta,
        theta_0=theta * AFTRL.for_problem(problem, steps="strongly convex").dual.theta_0,
    )
    trace = run(problem, learner, Replay([targets]), record=[T])
    centre = targets.mean(axis=0)
    best = np.minimum(centre, [0.25, np.inf])  # the mean, cut at ¼, still lies in the disc
    regret = float(trace.cumulative_loss[-1]) - 0.5 * ((targets - best) ** 2).sum()
    bound = learner.bound(problem, T)
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert float(trace.signed_violation[-1]) <= float(bound["long_term_violation"]) * (1 + 1e-9)


def test_the_regret_bound_is_within_sight():
    """Costs at right angles to all before them cost nothing and leave ‖z_T‖ = √T: regret √T, bound (3/2)√T."""
    problem, z, costs = Problem(Ball(2), Linear(2), L1Budget(2, budget=2.0)), RIGHT, [RIGHT]
    for _ in range(999):
        costs.append(np.array([-z[1], z[0]]) / np.linalg.norm(z))
        z = z + costs[-1]
    learner = AFTRL.for_problem(problem, theta_0=1e9)  # g never binds, and its part of the bound is next to nothing
    regret = float(run(problem, learner, Replay([np.array(costs)])).cumulative_loss[-1]) + np.linalg.norm(z)
    assert 0.6 < regret / float(learner.bound(problem, 1000)["regret"]) <= 1


def test_bounds_of_a_grid_and_of_horizons():
    problem = budget_problem(1)
    grid = AFTRL.for_problem(problem, beta=np.array([0.4, 0.7]), theta_0=np.array([0.5, 2.0]))
    whole = grid.bound(problem, [10, 1000, 50])
    assert whole["regret"].shape == whole["long_term_violation"].shape == (3, 2)
    for j, (beta, theta) in enumerate([(0.4, 0.5), (0.7, 2.0)]):
        alone = AFTRL.for_problem(problem, beta=beta, theta_0=theta).bound(problem, 1000)
        assert float(alone["long_term_violation"]) == pytest.approx(whole["long_term_violation"][1, j])


@given(T=st.integers(1, 3000), beta=st.floats(0.02, 0.98), theta_0=st.floats(0.1, 10))
def test_the_sums_in_the_bound_are_no_smaller_than_the_exact_ones(T, beta, theta_0):
    problem, t = budget_problem(1), np.arange(1.0, T + 1)
    c, learner = problem.constants, AFTRL.for_problem(problem, beta=beta, theta_0=theta_0)
    R, G, D = c.radius, c.loss_gradient_bound, c.constraint_bound
    exact = R * G * np.sqrt(T) / 2 + R * G / 2 * (1 / np.sqrt(t)).sum() + D**2 / 2 * (t**beta / theta_0 / t).sum()
    violation = np.sqrt(2 * ((theta_0 / t**beta).sum() + theta_0) * (exact + c.loss_range * T))
    bound = learner.bound(problem, T)
    assert exact <= float(bound["regret"]) * (1 + 1e-12) <= 2 * exact
    assert violation <= float(bound["long_term_violation"]) * (1 + 1e-12) <= 2 * violation


# --- what it is for -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_iterates_are_sparse_where_those_of_aogd_are_not():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1000, 30))
    labels = np.sign(rows[:, :3] @ [1.0, -0.7, 0.5] + 0.2 * rng.standard_normal(1000))
    problem, stream = budgeted_logistic(rows, budget=0.8), ResampledRows(rows, labels)
    ours, theirs = (run(problem, make(problem), stream, 4000) for make in (AFTRL.for_problem, AOGD.for_problem))
    assert np.flatnonzero(ours.state.x).tolist() == [0, 1, 2]
    assert np.count_nonzero(theirs.state.x) == 30
    assert float(ours.cumulative_loss[-1]) < float(theirs.cumulative_loss[-1])


def test_a_grid_and_a_fleet_run_as_if_alone():
    problem, theta = budget_problem(1), np.array([0.5, 1.0, 4.0])
    grid, costs = AFTRL.for_problem(problem, theta_0=theta), np.random.default_rng(0).uniform(-1, 1, (40, 4))
    together = run(problem, grid, Replay([costs]))
    fleet = Fleet(grid, 3)
    for cost in costs:
        x = fleet.ask()
        told = observe(problem, x, [np.tile(cost, (3, 1))])
        for k in range(3):  # one after another, so that rounds differ on the way; g_j is left out
            fleet.tell(Feedback(told.loss_gradient[[k]], told.constraint[[k]], told.constraint_gradient[[k]]), rows=[k])
    for k in range(3):
        alone = run(problem, AFTRL.for_problem(problem, theta_0=theta[k]), Replay([costs]))
        np.testing.assert_allclose(together.state.x[k], alone.state.x, atol=1e-12)
        np.testing.assert_allclose(fleet.state.x[k], alone.state.x, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda p: AFTRL.for_problem(p, theta_0=0.0), "theta_0"),
        (lambda p: AFTRL.for_problem(p, theta_0=np.nan), "theta_0"),
        (lambda p: AFTRL.for_problem(p, beta=1.0), "beta"),
        (lambda p: GivenScale(-1.0), "step"),
        (lambda p: StronglyConvexScale(0.0), "strong_convexity"),
        (lambda p: AFTRL(AFTRL.for_problem(p).prox, StronglyConvexScale(1.0), GrowingPenalty(1.0)), "dual"),
        (lambda p: AFTRL.for_problem(p, steps="strongly convex"), "problem"),
        (
            lambda p: AFTRL.for_problem(Problem(p.enclosing_set, p.loss, p.constraint, declared={"loss_range": 0})),
            "loss_range",
        ),
        (lambda p: AFTRL.for_problem(p).bound(p, 0), "rounds"),
        (lambda p: AFTRL.for_problem(p, steps="concave"), "steps"),
    ],
)
def test_bad_input_is_refused(call, argument):
    with pytest.raises(InputError) as refused:
        call(budget_problem(1))
    assert refused.value.argument == argument


def test_a_sigma_that_the_losses_do_not_have_is_refused():
    problem = two_dimensional()
    prox = problem.constraint.prox(problem.enclosing_set)
    learner = AFTRL(prox, StronglyConvexScale(2.0), Multiplier(1.0))
    with pytest.raises(InputError, match="σ = 2"):
        run(problem, learner, Replay([np.ones((3, 2)) / 2]))


@pytest.mark.parametrize("made", [AFTRL, ProximalAOGD, AdaptiveAFTRL])
def test_an_argmin_that_is_found_by_steps_has_no_theorem(made):
    square = CustomConstraint(2, lambda x: x[..., 0] ** 2 - 0.5, lambda x: 2 * x * RIGHT, 2.0, 0.5)
    problem = Problem(Ball(2), Linear(2), Smooth(square, smoothness=2.0))
    learner = made.for_problem(problem)
    state = run(problem, learner, Replay([np.tile(RIGHT, (20, 1))])).state
    bound = learner.bound(problem, 20, state=state if made is AdaptiveAFTRL else None)
    assert not bound
    assert "finds its minimum approximately" in bound.reason


def test_many_constraints_need_all_their_values():
    problem = Problem(Ball(2), Linear(2), Affine(np.eye(2), [0.1, 0.2]))
    learner = AFTRL.for_problem(problem)
    with pytest.raises(InputError, match="2 multipliers") as refused:
        learner.tell(learner.init(), Feedback(RIGHT, np.asarray(-0.1), RIGHT))
    assert refused.value.argument == "constraint_values"
