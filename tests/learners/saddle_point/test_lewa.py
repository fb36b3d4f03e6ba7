"""LEWA: by hand, its geometry, its bounds, and a penalty that does not fall with T."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import InputError, Problem, observe, run
from longterm.errors import BrokenBoundError, BrokenBoundWarning
from longterm.learners import LEWA
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Simplex
from longterm.problems.streams import Replay
from longterm.theory.schedules import ConstantSchedule
from opponents import KINDS, best_in_box, play_linear


def problem_on_simplex(seed, d=5):
    """Random costs of length 1, and one half-space that a random point of the simplex lies on or in."""
    rng = np.random.default_rng(seed)
    row = rng.uniform(-1, 1, (1, d))
    offset = row @ rng.dirichlet(np.ones(d)) + rng.uniform(0, 0.05)
    return Problem(Simplex(d), Linear(d), Affine(row, offset))


def test_first_rounds_by_hand():
    # η = μ = ln 2, θ = ½, costs (0, 1), g = x_1 − ½: every step multiplies weights by powers of 2.
    problem = Problem(Simplex(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    step = float(np.log(2))
    learner = LEWA(problem.enclosing_set, ConstantSchedule(0.5, step, step), 1.0, 1.0)
    state = learner.init()
    np.testing.assert_allclose(learner.ask(state), [0.5, 0.5])
    state = learner.tell(state, observe(problem, state.x, [np.array([0.0, 1.0])]))
    np.testing.assert_allclose(state.x, [2 / 3, 1 / 3])  # weights 1 : ½
    assert float(state.multiplier) == 0.0  # g(x_1) = 0
    state = learner.tell(state, observe(problem, state.x, [np.array([0.0, 1.0])]))
    np.testing.assert_allclose(state.x, [4 / 5, 1 / 5])  # λ_2 = 0: again 1 : ½
    assert float(state.multiplier) == pytest.approx(step / 6)  # μ (⅔ − ½)
    before = float(state.multiplier)
    state = learner.tell(state, observe(problem, state.x, [np.array([0.0, 1.0])]))
    weights = np.array([0.8 * 2**-before, 0.2 / 2])  # ∇g = (1, 0)
    np.testing.assert_allclose(state.x, weights / weights.sum())
    assert float(state.multiplier) == pytest.approx(before + step * (0.3 - 0.5 * before))


def test_without_a_binding_constraint_it_is_hedge():
    rng = np.random.default_rng(0)
    costs = rng.uniform(0, 1, (200, 4)) / 2
    problem = Problem(Simplex(4), Linear(4), Affine([[1.0, 0.0, 0.0, 0.0]], [2.0]))
    learner = LEWA.for_problem(problem, horizon=200)
    trace = run(problem, learner, Replay([costs]))
    weights = np.exp(-learner.schedule.eta * costs.sum(axis=0))
    np.testing.assert_allclose(trace.state.x, weights / weights.sum(), atol=1e-13)


def test_weights_that_underflow_come_back():
    problem = Problem(Simplex(2), Linear(2), Affine([[1.0, 0.0]], [2.0]))
    learner = LEWA(problem.enclosing_set, ConstantSchedule(1.0, 10.0, 0.1), 1.0, 1.0)
    costs = np.concatenate([np.tile([1.0, 0.0], (200, 1)), np.tile([0.0, 1.0], (201, 1))])
    middle = run(problem, learner, Replay([costs]), 200)
    assert middle.state.x.tolist() == [0.0, 1.0]  # e^−2000 is no number any more, its logarithm is
    end = run(problem, learner, Replay([costs]))
    np.testing.assert_allclose(end.state.x, [1.0, 0.0], atol=1e-4)
    np.testing.assert_allclose(middle.state.log_x[0], -2000.0)


@given(T=st.integers(1, 10**6), seed=st.integers(0, 1000))
def test_tuned_steps_meet_the_condition_with_equality(T, seed):
    learner = LEWA.for_problem(problem_on_simplex(seed), horizon=T)
    steps, spread = learner.schedule, learner.constraint_spread
    assert steps.eta * spread**2 / 4 + steps.mu * steps.theta**2 == pytest.approx(steps.theta / 2, rel=1e-9)
    assert steps.mu == steps.eta


@given(kind=KINDS, seed=st.integers(0, 10**6), T=st.integers(1, 200), sharp=st.booleans())
def test_regret_and_violation_stay_under_the_bound(kind, seed, T, sharp):
    problem = problem_on_simplex(seed)
    g, d = problem.constraint, problem.dimension
    spreads = {"constraint_spread": float(np.ptp(g.matrix))} if sharp else {}
    learner = LEWA.for_problem(problem, horizon=T, **spreads)
    game = play_linear(problem, learner, kind, T, seed)
    regret = game.loss - best_in_box(np.zeros(d), np.ones(d), g.matrix, g.limit, game.costs.sum(axis=0), total=1.0)
    bound = learner.bound(problem, T)
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert game.values.sum() <= float(bound["signed_violation"]) * (1 + 1e-9)


@given(seed=st.integers(0, 10**6))
def test_constraints_may_change_against_a_point_feasible_in_every_round(seed):
    rng = np.random.default_rng(seed)
    T, d = 150, 4
    x = rng.dirichlet(np.ones(d))
    rows = rng.uniform(-0.5, 0.5, (T, 1, d))
    costs = rng.uniform(-0.5, 0.5, (T, d))
    problem = Problem(Simplex(d), Linear(d), VaryingAffine(d, 1, row_norm=1.0, limit_bound=1.0))
    learner = LEWA.for_problem(problem, horizon=T, loss_spread=1.0, constraint_spread=1.0)
    trace = run(problem, learner, Replay([costs], [rows, rows @ x]))
    bound = learner.bound(problem, T)
    assert float(trace.cumulative_loss[-1]) - float((costs @ x).sum()) <= float(bound["regret"])
    assert float(trace.signed_violation[-1]) <= float(bound["signed_violation"])


@pytest.mark.slow
def test_the_regret_bound_is_within_sight():
    """An adversary who charges the heavier of two experts makes the learner pay a fair share of it."""
    T, loss = 2000, 0.0
    problem = Problem(Simplex(2), Linear(2), Affine([[1.0, 1.0]], [1.0]))  # never violated: g = 0 on the simplex
    learner = LEWA.for_problem(problem, horizon=T, loss_spread=1.0, constraint_spread=0.1)
    state, total = learner.init(), np.zeros(2)
    for _ in range(T):
        x = learner.ask(state)
        cost = np.eye(2)[int(np.argmax(x))]
        loss, total = loss + float(cost @ x), total + cost
        state = learner.tell(state, observe(problem, x, [cost]))
    share = (loss - total.min()) / float(learner.bound(problem, T)["regret"])
    assert 0.05 < share <= 1


def linear_violation(T, penalty):
    """Experts A and B, costs 0 and 1, B wanted half of the time: g = κ(½ − x_B), κ = ½."""
    problem = Problem(Simplex(2), Linear(2), Affine([[0.0, -0.5]], [-0.25]))
    tuned = LEWA.for_problem(problem, horizon=T, loss_spread=1.0, constraint_spread=0.5)
    steps = tuned.schedule
    theta = steps.theta if penalty is None else penalty
    learner = LEWA(problem.enclosing_set, ConstantSchedule(theta, steps.eta, steps.mu), 1.0, 0.5)
    return float(run(problem, learner, Replay([np.tile([0.0, 1.0], (T, 1))])).signed_violation[-1])


@pytest.mark.slow
def test_a_penalty_that_does_not_fall_with_T_violates_in_every_round():
    """λ ≤ ¼/δ pulls with at most ⅛/δ towards B, and the costs pull with 1 towards A: δ = ½ loses for ever."""
    fixed = [linear_violation(T, penalty=0.5) / T for T in (250, 1000, 4000)]
    assert fixed[0] < fixed[1] < fixed[2]
    assert fixed[2] > 0.9 * 0.25  # almost all that can be violated
    falling = [linear_violation(T, penalty=None) for T in (250, 4000)]
    assert falling[1] < falling[0] * 16**0.75


def test_a_broken_promise_about_spreads_is_noticed():
    problem = Problem(Simplex(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    learner = LEWA.for_problem(problem, horizon=100, loss_spread=0.5)
    state = learner.init()
    told = observe(problem, state.x, [np.array([0.0, 0.75])])
    with pytest.raises(BrokenBoundError, match=r"0\.75 apart, but 0\.5 was declared") as refused:
        learner.tell(state, told)
    assert (refused.value.argument, refused.value.round) == ("loss_spread", 1)
    with pytest.warns(BrokenBoundWarning, match="apart"):
        assert int(learner.tell(state, told, on_broken_bound="warn").round) == 2
    learner.tell(state, observe(problem, state.x, [np.array([0.5, 0.75])]))


@pytest.mark.parametrize("over", [Ball(3), Simplex(3, total=2.0), Simplex(1)])
def test_sets_other_than_the_simplex_are_refused(over):
    problem = Problem(over, Linear(over.dimension), Affine(np.ones((1, over.dimension)), [1.0]))
    with pytest.raises(InputError, match="A-OGD on this set") as refused:
        LEWA.for_problem(problem, horizon=100)
    assert refused.value.argument == "enclosing_set"


@pytest.mark.parametrize(("name", "value"), [("loss_spread", 0.0), ("constraint_spread", -1.0), ("horizon", 2.5)])
def test_bad_numbers_are_refused(name, value):
    with pytest.raises(InputError) as refused:
        LEWA.for_problem(problem_on_simplex(0), **{"horizon": 10, name: value})
    assert refused.value.argument == name


def test_steps_outside_the_condition_have_no_bound():
    learner = LEWA(Simplex(5), ConstantSchedule(0.01, 1.0, 1.0), 1.0, 1.0)
    assert "θ/2" in learner.bound(problem_on_simplex(0), 10).reason
