"""Two values of the constraint a round: directions that are functions, first rounds by hand, expectations, slopes."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import Feedback, InputError, LiveLearner, Problem, observe, run
from longterm.errors import AssumptionWarning
from longterm.learners import TwoPointBandit
from longterm.learners.saddle_point.random_directions import GOLDEN, _mix, unit_direction
from longterm.learners.saddle_point.two_point_bandit import inner_radius
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine, ElasticNetBudget, L2Budget, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box, Product, Simplex
from longterm.problems.streams import RandomCosts, Replay
from longterm.problems.streams.costs import SwitchingCosts
from longterm.theory.schedules import ConstantSchedule
from opponents import best_in_box, regret_in_a_ball, slope

MANY = np.arange(100)


# --- directions ---------------------------------------------------------------------------------------------


def test_directions_are_uniform_on_the_sphere_and_independent():
    u = unit_direction(np.arange(4), np.arange(1, 20_001)[:, None], np.zeros(3))  # rounds × seeds × coordinates
    np.testing.assert_allclose(np.linalg.norm(u, axis=-1), 1.0)
    flat = u.reshape(-1, 3)
    np.testing.assert_allclose(flat.mean(axis=0), 0.0, atol=0.01)
    np.testing.assert_allclose(flat.T @ flat / len(flat), np.eye(3) / 3, atol=0.01)
    np.testing.assert_allclose((flat**4).mean(axis=0), 0.2, atol=0.01)
    share = np.histogram(flat[:, 0], bins=10, range=(-1, 1))[0] / len(flat)  # in three dimensions each is uniform
    np.testing.assert_allclose(share, 0.1, atol=0.01)
    for one, other in ((u[1:, 0], u[:-1, 0]), (u[:, 0], u[:, 1]), (u[:, 0, [0]], u[:, 0, [1]])):
        product = one.T @ other / len(one)
        np.testing.assert_allclose(product, 0.0, atol=0.02)


def test_the_words_are_those_of_splitmix64():
    words = _mix(np.arange(1, 4, dtype=np.uint64) * np.uint64(GOLDEN), np)  # its first three outputs from state 0
    assert [hex(word) for word in words] == ["0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f"]


def test_a_direction_depends_on_seed_and_round_alone():
    alone = unit_direction(3, np.asarray(17), np.zeros(4))
    np.testing.assert_array_equal(unit_direction(np.array([1, 3]), np.asarray(17), np.zeros((2, 4)))[1], alone)
    np.testing.assert_array_equal(unit_direction(3, np.array([5, 17]), np.zeros((2, 4)))[1], alone)
    assert unit_direction(3, np.asarray(17), np.zeros(4, dtype=np.float32)).dtype == np.float32
    strict = unit_direction(3, array_api_strict.asarray(17), array_api_strict.zeros(4, dtype=array_api_strict.float64))
    np.testing.assert_allclose(np.asarray(strict), alone, atol=1e-15)
    assert set(unit_direction(5, np.arange(1, 60), np.zeros((59, 1))).ravel().tolist()) == {-1.0, 1.0}


# --- by hand ------------------------------------------------------------------------------------------------


def test_first_rounds_by_hand():
    """In one dimension u = ±1, and neither ĝ nor the slope depends on which."""
    g = ElasticNetBudget(1, budget=0.5, l1=1.0, l2=2.0)  # |x| + x² − ½
    problem = Problem(Box.cube(1, -1.0, 1.0), Linear(1), g)
    learner = TwoPointBandit(problem.enclosing_set, ConstantSchedule(0.5, 0.4, 0.4), distance=0.1)
    state = learner.tell(learner.init(), observe(problem, np.zeros(1), [np.array([-1.0])]))
    # x_1 = 0: ĝ = 0.1 + 0.01 − ½; x_2 = 0.4, λ_2 = 0.
    np.testing.assert_allclose(state.x, [0.4])
    assert float(state.multiplier) == 0.0
    state = learner.tell(state, observe(problem, state.x, [np.array([-2.0])]), on_broken_bound="warn")
    # 0.4 + 0.8 leaves 0.9 B; ĝ = ½ (g(½) + g(0.3)) = ½ (0.25 − 0.11) = 0.07: λ_3 = 0.4 · 0.07.
    np.testing.assert_allclose(state.x, [0.9])
    assert float(state.multiplier) == pytest.approx(0.028)
    state = learner.tell(state, observe(problem, state.x, [np.array([0.0])]))
    # g(1) = 1.5, g(0.8) = 0.94: slope 2.8, ĝ = 1.22.
    np.testing.assert_allclose(state.x, [0.9 - 0.4 * 0.028 * 2.8])
    assert float(state.multiplier) == pytest.approx(0.028 + 0.4 * (1.22 - 0.5 * 0.028))


def test_two_dimensions_along_a_known_direction():
    problem = two_dimensional()  # g = x₁ − ¼
    learner = TwoPointBandit(problem.enclosing_set, ConstantSchedule(0.5, 0.1, 0.1), distance=0.1, seed=9)
    state = learner.init()._replace(multiplier=np.asarray(2.0), x=np.array([0.5, 0.1]))
    after = learner.tell(state, observe(problem, state.x, [np.array([0.5, 0.1])]))
    u = unit_direction(9, np.asarray(1), np.zeros(2))
    np.testing.assert_allclose(
        after.x, [0.5, 0.1] - 0.1 * 2.0 * 2 * u[0] * u
    )  # d ⟨a, u⟩ u, and no gradient of the loss
    assert float(after.multiplier) == pytest.approx(2 + 0.1 * (0.25 - 0.5 * 2))


def test_the_steps():
    problem = two_dimensional()  # R = 1, D = 5/4, G_f = 2, G_g = 1, d = 2
    learner = TwoPointBandit.for_problem(problem, horizon=10_000)
    eta = 1 / np.sqrt(2 * (1.25**2 + 4) * 10_000)
    delta = (1 - np.sqrt(1 - 16 * 4 * eta**2)) / (4 * eta**2)
    assert learner.schedule.eta == learner.schedule.mu == pytest.approx(eta)
    assert learner.schedule.theta == pytest.approx(eta * delta)
    assert learner.distance == learner.shrinkage == pytest.approx(delta / 10_000)
    assert learner.assumptions[0].holds
    short = TwoPointBandit.for_problem(problem, horizon=3)  # both caps: 4dG_gη ≤ 1, ζ ≤ r/2
    assert short.schedule.eta == pytest.approx(1 / 8)
    assert short.distance == pytest.approx(0.5)
    assert short.assumptions[0].holds


# --- what it asks, and in expectation -----------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), box=st.booleans())
def test_every_question_is_about_a_point_of_the_set(seed, box):
    rng = np.random.default_rng(seed)
    B = Box([-1.0, -0.3], [2.0, 0.4]) if box else Ball(2, 0.7, [1.0, -1.0])
    problem = Problem(B, Linear(2), Affine(rng.standard_normal((1, 2)), rng.standard_normal(1)))
    learner = TwoPointBandit.for_problem(problem, horizon=40, seed=seed)
    state, asked = learner.init(), []
    for cost in RandomCosts(2).draw(seed, 0, 40).loss[0]:
        told = observe(problem, state.x, [cost])

        def listening(y, told=told):
            asked.append(y)
            return told.constraint_at(y)

        state = learner.tell(state, told._replace(constraint_at=listening))
    assert len(asked) == 80
    assert np.all(B.contains(np.array(asked)))
    middle = (np.array(asked[::2]) + np.array(asked[1::2])) / 2
    np.testing.assert_allclose(np.linalg.norm(np.array(asked[::2]) - middle, axis=1), learner.distance)


def test_the_slope_is_right_on_average():
    rows = np.array([[0.3, -0.5, 0.8]])
    problem = Problem(Ball(3), Linear(3), Affine(rows, [0.1]))
    learner = TwoPointBandit(problem.enclosing_set, ConstantSchedule(0.5, 0.01, 0.01), 0.1, seed=np.arange(40_000))
    state = learner.init()
    state = state._replace(multiplier=np.ones(40_000))
    after = learner.update(state, observe(problem, state.x, [np.zeros(3)]))
    np.testing.assert_allclose(-after.x.mean(axis=0) / 0.01, rows[0], atol=0.02)


def means(problem, T, stream):
    """Loss and violation, averaged over many seeds, and the bound."""
    learner = TwoPointBandit.for_problem(problem, horizon=T, seed=MANY)
    trace = run(problem, learner, stream, T, record=[T], progress=None)
    bound = TwoPointBandit.for_problem(problem, horizon=T).bound(problem, T)
    return float(trace.cumulative_loss[-1].mean()), float(trace.signed_violation[-1].mean()), bound


@given(seed=st.integers(0, 10**6), T=st.integers(1, 80), switching=st.booleans(), curved=st.booleans())
def test_bounds_in_expectation(seed, T, switching, curved):
    rng = np.random.default_rng(seed)
    row = rng.standard_normal((1, 2))
    offset = row @ rng.uniform(-0.7, 0.7, 2)
    constraint = L2Budget(2, budget=0.6) if curved else Affine(row, offset)
    problem = Problem(Box.cube(2, -1.0, 1.0), Linear(2), constraint)
    costs = (SwitchingCosts if switching else RandomCosts)(2).draw(seed, 0, T).loss[0]
    loss, violation, bound = means(problem, T, Replay([costs]))
    total = costs.sum(axis=0)
    best = -0.6 * np.linalg.norm(total) if curved else best_in_box(-np.ones(2), np.ones(2), row, offset, total)
    assert loss - best <= float(bound["regret"])
    assert violation <= float(bound["signed_violation"])


@pytest.mark.slow
def test_regret_grows_like_the_root():
    problem, rounds = Problem(Ball(2), Linear(2), L2Budget(2, budget=1.0)), [250, 1000, 4000]
    regret = regret_in_a_ball(problem, lambda T: TwoPointBandit.for_problem(problem, horizon=T), rounds)
    bounds = [float(TwoPointBandit.for_problem(problem, horizon=T).bound(problem, T)["regret"]) for T in rounds]
    assert np.all(regret <= bounds)
    assert 0.35 <= slope(rounds, regret) <= 0.65


@pytest.mark.slow
def test_violation_grows_no_faster_than_the_theorem_says():
    """A constraint that the losses pull against in every round."""
    problem = Problem(Ball(2), Linear(2), L2Budget(2, budget=0.5))
    rounds, found = np.array([250, 1000, 4000]), []
    for T in rounds:
        costs = np.tile([[-0.6, 0.8]], (T, 1))
        loss, violation, bound = means(problem, int(T), Replay([costs]))
        assert loss + 0.5 * T <= float(bound["regret"])
        assert violation <= float(bound["signed_violation"])
        found.append(violation)
    assert 0.45 <= slope(rounds, found) <= 0.8
    before, after = (TwoPointBandit.for_problem(problem, horizon=T).bound(problem, T) for T in (10**6, 10**8))
    assert float(after["regret"] / before["regret"]) == pytest.approx(10, rel=0.05)
    assert float(after["signed_violation"] / before["signed_violation"]) == pytest.approx(10**1.5, rel=0.05)


@pytest.mark.slow
def test_constraints_that_change():
    rng = np.random.default_rng(2)
    T, comparator = 1000, np.array([0.3, -0.2])
    normals = rng.standard_normal((T, 1, 2))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    costs = SwitchingCosts(2).draw(2, 0, T).loss[0]
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0))
    loss, violation, bound = means(problem, T, Replay([costs], [normals, normals @ comparator]))
    assert loss - float((costs @ comparator).sum()) <= float(bound["regret"])
    assert violation <= float(bound["signed_violation"])


def test_the_formula():
    problem = two_dimensional()  # R = r = 1, D = 5/4, G_f = 2, G_g = 1, F = 2
    learner = TwoPointBandit(Ball(2), ConstantSchedule(theta=0.5, eta=0.05, mu=0.05), distance=0.01)
    bound = learner.bound(problem, 200)
    P = 1 / 0.1 + 0.05 * 200 * (4 + 1.25**2) + 2 * (1.25 / 0.5) * (1 + 1)
    assert float(bound["regret"]) == pytest.approx(P + 2 * 2)
    assert float(bound["signed_violation"]) == pytest.approx(np.sqrt(2 * (0.5 * 199 + 20) * (P + 400)))


# --- seeds, services, refusals ------------------------------------------------------------------------------


def test_a_grid_of_seeds_is_single_runs():
    problem = two_dimensional()
    targets = Replay([np.tile([0.8, 0.6], (60, 1))])
    together = run(
        problem, TwoPointBandit.for_problem(problem, horizon=60, seed=np.array([4, 7])), targets, seeds=range(2)
    )
    assert together.cumulative_loss.shape[1:] == (2, 2)
    for k, seed in enumerate((4, 7)):
        alone = run(problem, TwoPointBandit.for_problem(problem, horizon=60, seed=seed), targets)
        np.testing.assert_allclose(together.cumulative_loss[:, k, 1], alone.cumulative_loss, rtol=0, atol=1e-12)
    assert not np.allclose(together.state.x[0, 0], together.state.x[1, 0])
    grid = TwoPointBandit.for_problem(problem, horizon=60, seed=np.array([4, 7]))
    assert grid.bound(problem, [5, 50, 60])["signed_violation"].shape == (3, 2)


def test_in_a_service_with_functions():
    problem = two_dimensional()
    learner = TwoPointBandit.for_problem(problem, horizon=50, seed=1)
    by_functions, by_parameters = LiveLearner(learner), LiveLearner(learner, problem)
    target = np.array([0.8, 0.6])
    for _ in range(40):
        by_functions.tell(
            by_functions.ask(),
            loss=lambda x: (0.5 * np.sum((x - target) ** 2), x - target),
            constraint=lambda x: (x[0] - 0.25, np.array([1.0, 0.0])),
        )
        by_parameters.tell(by_parameters.ask(), loss_parameters=[target])
    np.testing.assert_allclose(by_functions.ask().x, by_parameters.ask().x)
    assert float(by_functions.state.multiplier) > 0.1


def test_refusals():
    problem = two_dimensional()
    learner = TwoPointBandit.for_problem(problem, horizon=50)
    state = learner.init()
    with pytest.raises(InputError, match="constraint_at in round 1"):
        learner.tell(state, Feedback(np.zeros(2), np.asarray(0.0), np.zeros(2)))
    flat = Problem(Simplex(3), Linear(3), Affine([[1.0, 0.0, 0.0]], [0.5]))
    with pytest.raises(InputError, match="no ball"):
        TwoPointBandit.for_problem(flat, horizon=100)
    with pytest.raises(InputError, match="no ball"):
        inner_radius(Product([Ball(2), Box([0.0], [1.0])]))
    for changed in ({"distance": 1.0}, {"distance": 0.0}, {"seed": -1}, {"seed": 0.5}):
        with pytest.raises(InputError) as refused:
            TwoPointBandit(**{"enclosing_set": Ball(2), "schedule": learner.schedule, "distance": 0.1, **changed})
        assert refused.value.argument in changed
    bold = TwoPointBandit(Ball(2), ConstantSchedule(0.1, 0.1, 0.1), 0.1, made_for=problem.constants)
    assert "does not hold" in bold.bound(problem, 10).reason
    with pytest.warns(AssumptionWarning, match="smaller η"):
        run(problem, bold, Replay([np.zeros((3, 2))]))


def test_inner_radius():
    assert inner_radius(Ball(3, 0.7)) == 0.7
    assert inner_radius(Box([-1.0, -0.2], [1.0, 0.4])) == pytest.approx(0.3)
