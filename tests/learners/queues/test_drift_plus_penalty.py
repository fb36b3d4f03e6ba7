"""Drift plus penalty: by hand, its presets, its bounds with constraints of an adversary, in windows and by chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, InputError, Problem, observe, run
from longterm.learners import DriftPlusPenalty, YuLeeLee
from longterm.problems import doubly_stochastic, two_dimensional
from longterm.problems.constraints import Affine, L2Budget, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import RandomCosts, RandomPermutations, Replay
from longterm.problems.streams.costs import SwitchingCosts
from opponents import KINDS, best_in_box, cut_problem, play_cut, play_linear, slope

seeds = st.integers(0, 10**6)


def test_first_rounds_by_hand():
    # T = 4: V = 2, α = 4, steps of ⅛. f = ½‖x − (1, 0)‖², g = x_1 − ¼.
    problem = two_dimensional()
    learner = DriftPlusPenalty.for_problem(problem, horizon=4, preset="neely-yu")
    assert (learner.V, learner.alpha) == (2.0, 4)
    state, seen = learner.init(), []
    for _ in range(3):
        state = learner.tell(state, observe(problem, learner.ask(state), [np.array([1.0, 0.0])]))
        seen.append((float(state.x[0]), float(state.queue)))
    assert seen[0] == (0.25, 0.0)  # 0 + 2 · 1/8; the queue sees g at the *new* point: −¼ + ¼
    assert seen[1] == (0.25 + 2 * 0.75 / 8, 0.1875)  # ĝ(x_3) = 0 + 0.1875
    assert seen[2] == (0.4375 + (2 * 0.5625 - 0.1875) / 8, 0.1875 + 0.1875 + 0.9375 / 8)
    assert float(learner.report(state)["multiplier"]) == seen[2][1] / 2


def test_a_queue_for_each_of_several_constraints_that_change():
    rng = np.random.default_rng(0)
    problem = Problem(Ball(3), Linear(3), VaryingAffine(3, 2, 1.0, 1.0))
    learner = DriftPlusPenalty.for_problem(problem, horizon=100)
    x, queue, cost = rng.uniform(-0.3, 0.3, 3), np.array([0.7, 0.0]), rng.uniform(-0.5, 0.5, 3)
    A = rng.standard_normal((2, 3))
    A, b = A / np.linalg.norm(A, axis=1, keepdims=True), rng.uniform(-1, 1, 2)
    state = learner.init()._replace(x=x, queue=queue)
    after = learner.tell(state, observe(problem, x, [cost], [A, b]))
    moved = problem.enclosing_set.project(x - (learner.V * cost + A.T @ queue) / (2 * learner.alpha))
    np.testing.assert_allclose(after.x, moved)
    np.testing.assert_allclose(after.queue, np.maximum(queue + A @ moved - b, 0.0), atol=1e-12)


def test_the_queue_sees_the_linearised_constraint_where_g_bends():
    problem = Problem(Ball(2, radius=2.0), Linear(2), L2Budget(2, budget=0.5))
    learner = DriftPlusPenalty.for_problem(problem, horizon=9, preset="neely-yu")
    state = learner.init()._replace(x=np.array([0.6, 0.8]), queue=np.asarray(1.0))
    after = learner.update(state, observe(problem, state.x, [np.array([1.0, 0.0])]))
    moved = np.array([0.6, 0.8]) - (3 * np.array([1.0, 0.0]) + np.array([0.6, 0.8])) / 18
    np.testing.assert_allclose(after.x, moved)
    assert float(after.queue) == pytest.approx(1.0 + 0.5 + np.array([0.6, 0.8]) @ (moved - [0.6, 0.8]))


def test_presets():
    problem, T = cut_problem(), 400
    one, two = (
        DriftPlusPenalty.for_problem(problem, horizon=T, preset="yu-neely-wei"),
        DriftPlusPenalty.for_problem(problem, horizon=T, preset="neely-yu"),
    )
    assert (one.V, one.alpha) == (two.V, two.alpha) == (20.0, 400)
    narrow, wide = (
        DriftPlusPenalty.for_problem(problem, horizon=T, preset="liakopoulos", window=4, V=V) for V in (10.0, 100.0)
    )
    assert (narrow.V, narrow.alpha, wide.alpha) == (10.0, 400.0, 2000.0)
    assert DriftPlusPenalty.for_problem(problem, horizon=T, preset="liakopoulos", window=4).V == 40.0  # √(KT)
    grid = DriftPlusPenalty.for_problem(problem, horizon=T, preset="liakopoulos", window=4, V=np.array([10.0, 100.0]))
    np.testing.assert_allclose(grid.alpha, [400.0, 2000.0])
    tuned = DriftPlusPenalty.for_problem(problem, horizon=T)
    assert float(tuned.bound(problem, T)["regret"]) == pytest.approx(
        1.5 * problem.constants.radius * 20.0
    )  # (3/2) r G_f √T


def test_tuned_weights_do_not_depend_on_units():
    costs = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 2))
    plain = Problem(Ball(2), Linear(2), Affine([[0.6, 0.8]], [0.1]))
    other = Problem(Ball(2, radius=10.0), Linear(2, 300.0), Affine([[42.0, 56.0]], [70.0]))
    one, two = (
        run(p, DriftPlusPenalty.for_problem(p, horizon=50), Replay([c]))
        for p, c in ((plain, costs), (other, 300 * costs))
    )
    np.testing.assert_allclose(two.state.x, 10 * one.state.x, atol=1e-12)


def test_many_constraints_at_once():
    """96 queues on 8 × 8 matrices: the pushforward is one product, and agrees with the gradients one by one."""
    problem = doubly_stochastic(8)
    learner = DriftPlusPenalty.for_problem(problem, horizon=200, preset="neely-yu")
    trace = run(problem, learner, RandomPermutations(8), 200)
    assert trace.state.queue.shape == (96,)
    assert float(trace.long_term_violation[-1]) <= float(learner.bound(problem, 200)["long_term_violation"])


# --- constraints of an adversary ---------------------------------------------------------------------------------


@given(kind=KINDS, seed=seeds, T=st.integers(1, 150), preset=st.sampled_from(["neely-yu", "tuned", "liakopoulos"]))
def test_fixed_constraints_stay_under_the_bound(kind, seed, T, preset):
    rng = np.random.default_rng(seed)
    B = Box(rng.uniform(-2, -0.5, 3), rng.uniform(0.5, 2, 3))
    rows = rng.standard_normal((2, 3))
    inside, slack = B.sample(rng, 3).mean(axis=0), float(10 ** rng.uniform(-2, 0))
    problem = Problem(B, Linear(3, 2.0), Affine(rows, rows @ inside + slack))
    learner = DriftPlusPenalty.for_problem(problem, horizon=T, preset=preset, window=1)
    game = play_linear(problem, learner, kind, T, seed)
    regret = game.loss - best_in_box(B.lower, B.upper, rows, rows @ inside + slack, game.costs.sum(axis=0))
    for slater in (None, slack):
        bound = learner.theorem_with(problem, T, slack=slater)
        assert regret <= float(bound["regret"]) * (1 + 1e-9)
        assert game.values.sum(axis=0).max() <= float(bound["long_term_violation"]) * (1 + 1e-9)
    spent = 2 * (float(bound["regret"]) * learner.V + learner.V * problem.constants.loss_range * T)
    assert np.linalg.norm(game.state.queue) <= np.sqrt(spent)


@given(seed=seeds, T=st.integers(1, 150), K=st.integers(1, 12))
def test_comparators_that_are_feasible_over_windows(seed, T, K):
    """In every K rounds in a row (K − 1) offsets are bad for x* and one makes up for them."""
    rng = np.random.default_rng(seed)
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, row_norm=1.0, limit_bound=2.0))
    rows = rng.standard_normal((T, 1, 2))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    comparator, costs = rng.uniform(-0.4, 0.4, 2), RandomCosts(2).draw(seed, 0, T).loss[0]
    pattern = np.concatenate([np.full(K - 1, 1.0 / max(K - 1, 1)), [-1.0]])  # g_t(x*) over one window: sums to 0
    pattern = pattern if K > 1 else np.zeros(1)
    offsets = rows @ comparator - 0.5 * np.resize(rng.permutation(pattern), T)[:, None]
    learner = DriftPlusPenalty.for_problem(problem, horizon=max(T, K), preset="liakopoulos", window=K)
    trace = run(problem, learner, Replay([costs], [rows, offsets]))
    bound = learner.theorem_with(problem, T, window=K)
    assert float(trace.cumulative_loss[-1]) - float((costs @ comparator).sum()) <= float(bound["regret"]) * (1 + 1e-9)
    assert float(trace.signed_violation[-1]) <= float(bound["long_term_violation"]) * (1 + 1e-9)


@given(
    seed=seeds,
    T=st.integers(1, 120),
    v=st.floats(0.05, 1),
    length=st.integers(1, 120),
    turns=st.sampled_from(["random", "against", "phases"]),
)
def test_no_window_overspends_more_than_the_bound(seed, T, v, length, turns):
    """Costs along the slope, and half-spaces that meet in a point: random, against the learner, or in phases."""
    rng = np.random.default_rng(seed)
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, row_norm=1.0, limit_bound=1.0))
    learner = DriftPlusPenalty.for_problem(problem, horizon=T, preset="neely-yu", V=v * T**0.5)
    state, comparator, values = learner.init(), rng.uniform(-0.4, 0.4, 2), []
    for t in range(T):
        x = learner.ask(state)
        away = x - comparator + 1e-6 * rng.standard_normal(2) if turns == "against" else rng.standard_normal(2)
        away = np.array([1.0 if t < T // 2 else -1.0, 0.1]) if turns == "phases" else away
        row = away / np.linalg.norm(away)
        told = observe(problem, x, [-row], [row[None], np.array([row @ comparator])])
        values.append(float(told.constraint))
        state = learner.tell(state, told)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    for most in (min(length, T), T):
        largest = max(sums[end] - sums[max(end - most, 0) : end].min() for end in range(1, T + 1))
        bound = float(learner.overspend_bound(problem, T, length=None if most == T else most))
        assert largest <= bound * (1 + 1e-9)
    assert bound == float(learner.bound(problem, T)["long_term_violation"])


def test_a_smaller_weight_buys_smaller_windows_with_regret():
    """V = √T/16: the bound on any window falls by 4, the root of 16, and that on the regret rises by 16 at most."""
    problem, T = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, row_norm=1.0, limit_bound=1.0)), 10**10
    large, small = (DriftPlusPenalty.for_problem(problem, horizon=T, preset="neely-yu", V=V) for V in (1e5, 1e5 / 16))
    assert float(large.overspend_bound(problem, T) / small.overspend_bound(problem, T)) == pytest.approx(4, rel=0.02)
    assert float(small.bound(problem, T)["regret"] / large.bound(problem, T)["regret"]) == pytest.approx(16, rel=0.1)
    short = float(large.overspend_bound(problem, T, length=1000))
    assert short == pytest.approx(float(np.sqrt(2 * (1e5 * 2 * T))), rel=0.05)  # Q̄ alone


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["neely-yu", "tuned", "liakopoulos"])
def test_the_signed_violation_grows_like_the_square_root_under_slater(preset):
    problem, horizons = cut_problem(), (4000, 16_000)
    learners = [DriftPlusPenalty.for_problem(problem, horizon=T, preset=preset, window=8) for T in horizons]
    games = [play_cut(learner, T) for learner, T in zip(learners, horizons, strict=True)]
    for game, learner, T in zip(games, learners, horizons, strict=True):
        bound = learner.theorem_with(problem, T, slack=0.5)
        assert game.signed <= float(bound["long_term_violation"])
        assert game.regret <= float(bound["regret"])
    assert slope(horizons, [game.signed for game in games]) == pytest.approx(0.5, abs=0.1)


@pytest.mark.slow
def test_nothing_is_promised_about_the_hard_violation():
    """The queue lets slack rounds pay for broken ones, for ever: Σ [g]₊ grows with T where Σ g grows with √T."""
    problem, horizons = cut_problem(), (4000, 16_000)
    games = [play_cut(DriftPlusPenalty.for_problem(problem, horizon=T, preset="neely-yu"), T) for T in horizons]
    assert slope(horizons, [game.hard for game in games]) > 0.9


# --- constraints by chance ----------------------------------------------------------------------------------------


def test_slack_and_feasible_on_average_will_do():
    """g_t = ±(x_1 + x_2) + 2ξ_t with E ξ = ¼: no point is feasible in every round; x* and x̂ are on average."""
    T, S = 2000, 40
    rng = np.random.default_rng(0)
    problem = Problem(Box.cube(2, -1.0, 1.0), Linear(2), VaryingAffine(2, 1, row_norm=2.0, limit_bound=1.5))
    learner = DriftPlusPenalty.for_problem(problem, horizon=T, preset="yu-neely-wei")
    signs = rng.choice([2.0, 0.0], (T, S))  # E of the row is (1, 1)
    rows, offsets = signs[..., None, None] * np.ones(2) * 0.5**0.5, -0.5 + rng.choice([-1.0, 1.0], (T, S, 1))
    cost = np.full((S, 2), -(0.5**0.5))
    state, loss, signed = learner.init((S,)), np.zeros(S), np.zeros(S)
    for t in range(T):
        told = observe(problem, state.x, [cost], [rows[t], offsets[t]])
        loss, signed, state = loss + told.loss, signed + told.constraint, learner.update(state, told)
    best = float(cost[0] @ np.full(2, -0.25 * 2**0.5)) * T  # E g = √½ (x_1 + x_2) + ½ ≤ 0
    slack = 2**0.5 - 0.5  # of (−1, −1), on average
    bound = learner.expected_theorem(problem, T, slack=slack)
    assert float(np.mean(loss)) - best <= float(bound["regret"])
    assert 0 < float(np.mean(signed)) <= float(bound["long_term_violation"])


@pytest.mark.slow
def test_a_mean_of_each_constraint_is_enough_here_and_not_for_the_maximum():
    """g = (ξ, −ξ) with ξ = ±1: each has mean 0 wherever one stands, their maximum is 1. No learner can do anything."""
    T = 4000
    problem = Problem(Ball(1), Linear(1), VaryingAffine(1, 2, row_norm=0.01, limit_bound=1.0))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (T, 1)) * np.array([1.0, -1.0])
    stream = Replay([np.zeros((T, 1))], [np.zeros((T, 2, 1)), signs])
    queues, *others = (
        DriftPlusPenalty.for_problem(problem, horizon=T),
        YuLeeLee.for_problem(problem),
        AOGD.for_problem(problem),
    )
    for learner in (queues, *others):
        trace, bound = run(problem, learner, stream, record=[T]), learner.bound(problem, T)
        assert float(trace.signed_violation[-1]) == T
        if isinstance(
            learner, DriftPlusPenalty
        ):  # one constraint at a time, and against x* that is feasible on average
            assert float(trace.long_term_violation[-1]) <= float(bound["long_term_violation"])
        else:  # E max_j g_j(x*) = 1: no x* of its theorem is there
            assert float(bound["signed_violation"]) < T


def test_the_expected_violation_is_of_order_root_T():
    problem = cut_problem()
    horizons = (10**10, 10**12)  # before that, a constant is the larger part
    learners = [DriftPlusPenalty.for_problem(problem, horizon=T, preset="neely-yu") for T in horizons]
    bounds = [
        float(learner.expected_theorem(problem, T, slack=0.5)["long_term_violation"])
        for learner, T in zip(learners, horizons, strict=True)
    ]
    assert slope(horizons, bounds) == pytest.approx(0.5, abs=0.03)


# --- the formulas, and what is refused ---------------------------------------------------------------------------


def test_the_bound_by_hand():
    # V = 2, α = 4, T = 4, g = x_1 − ¼ on the unit disc: r = 1, Δ = 2, G_f = 2, G_g = G_m = 1, D_m = 5/4, F = 2.
    problem = two_dimensional()
    learner = DriftPlusPenalty.for_problem(problem, horizon=4, preset="neely-yu")
    B = 1.25 + 2
    total = 4 + 4 * 4 * 4 / 16 + B**2 * 2
    bound = learner.theorem_with(problem, 4)
    assert float(bound["regret"]) == pytest.approx(total / 2)
    queue = np.sqrt(2 * (total + 2 * 2 * 4))
    assert float(bound["long_term_violation"]) == pytest.approx(queue + 4 * (2 * 2 + queue) / 8)
    windows = learner.theorem_with(problem, 4, window=3)
    assert float(windows["regret"] - bound["regret"]) == pytest.approx(2 * B * 1.25 * 4 / 2 / 2)
    far = learner.bound(problem, 10**6)  # ε = 5/4, at (−1, 0)
    spent = 2 * 2 * 2 + B**2 / 2
    queue = np.sqrt((spent / 1.25) ** 2 + 2 * 4 * 4 + 2 * spent)
    assert float(far["long_term_violation"]) == pytest.approx(queue + 10**6 * (4 + queue) / 8)
    expected = learner.expected_theorem(problem, 4, slack=1.25)
    jump = 2 * B + 4 + 1.25
    queue = 2 * (spent / 1.25 + 2 * 8**0.5) + 1.25 + np.sqrt(2 * spent)
    queue += 2 * jump**2 / 1.25 * np.log(9 * jump**2 / 1.25**2)
    assert float(expected["long_term_violation"]) == pytest.approx(queue + 4 * (4 + queue) / 8)
    assert float(expected["regret"]) == float(bound["regret"])


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda p: DriftPlusPenalty.for_problem(p, horizon=0, preset="neely-yu"), "horizon"),
        (lambda p: DriftPlusPenalty.for_problem(p, horizon=100, preset="liakopoulos", window=0), "window"),
        (lambda p: DriftPlusPenalty.for_problem(p, horizon=100, preset="liakopoulos", window=10, V=5.0), "V"),
        (lambda p: DriftPlusPenalty.for_problem(p, horizon=100, preset="liakopoulos", window=10, V=500.0), "V"),
        (lambda p: DriftPlusPenalty.for_problem(p, horizon=9, V=5.0), "V"),
        (lambda p: DriftPlusPenalty.for_problem(p, horizon=9, preset="published"), "preset"),
        (lambda p: DriftPlusPenalty.for_problem(p, horizon=9).theorem_with(p, 9, slack=0.0), "slack"),
    ],
)
def test_what_makes_no_sense_is_refused(call, argument):
    with pytest.raises(InputError) as refused:
        call(two_dimensional())
    assert refused.value.argument == argument


def test_a_learner_with_several_queues_asks_for_slopes():
    problem = doubly_stochastic(2)
    learner = DriftPlusPenalty.for_problem(problem, horizon=9, preset="neely-yu")
    state = learner.init()
    told = observe(problem, state.x, [np.zeros(4)])
    for missing in ("pullback", "pushforward"):
        with pytest.raises(InputError, match="observe") as refused:
            learner.tell(state, told._replace(**{missing: None}))
        assert refused.value.argument == missing
    single = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    learner = DriftPlusPenalty.for_problem(single, horizon=9, preset="neely-yu")  # one constraint: arrays are enough
    told = observe(single, np.zeros(2), [np.zeros(2)])
    learner.tell(learner.init(), told._replace(pullback=None, pushforward=None))


def test_it_plays_costs_that_switch_without_a_horizon_that_fits():
    problem = Problem(Box.cube(3, -1.0, 1.0), Linear(3), Affine([[1.0, 1.0, 0.0]], [0.2]))
    learner = DriftPlusPenalty.for_problem(problem, horizon=100)
    trace = run(problem, learner, SwitchingCosts(3), 400)
    assert float(trace.signed_violation[-1]) <= float(learner.bound(problem, 400)["long_term_violation"])


def test_facts_about_all_constraints_together():
    varying = Problem(Ball(2), Linear(2), VaryingAffine(2, 4, row_norm=3.0, limit_bound=1.0))
    assert (varying.joint_gradient_bound, varying.joint_value_bound) == (6.0, 8.0)  # √4 · 3, √4 · (3 + 1)
    fixed = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0], [1.0, 0.0]], [0.0, 0.0]))
    assert fixed.joint_gradient_bound == pytest.approx(2**0.5)
    assert fixed.joint_value_bound == pytest.approx(2**0.5)
