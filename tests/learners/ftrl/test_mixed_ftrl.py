"""Mixtures of scales: the first rounds by hand, the weights against a plain root, and the theorems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import Problem, observe, run
from longterm.errors import InputError
from longterm.learners import AdaptiveAFTRL, MixedAFTRL, MixedPenalisedFTRL
from longterm.learners.ftrl import multi_scale_hedge as hedges
from longterm.learners.ftrl.scale_mixture import ray_of
from longterm.problems.constraints import Affine, ElasticNetBudget
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball
from longterm.problems.streams import Replay
from longterm.problems.streams.costs import SwitchingCosts


def costs_of(rng, n, d, drift):
    """Costs no longer than 1."""
    costs = rng.standard_normal((n, d)) + drift
    return costs / np.linalg.norm(costs, axis=1).max()


def linear_problem(d=5, budget=1.0, **norms):
    g = ElasticNetBudget(d, budget, **norms)
    return Problem(g.enclosing_ball(), Linear(d), g)


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_shares_are_those_of_a_plain_root(seed):
    rng = np.random.default_rng(seed)
    radius, typical = np.exp(rng.uniform(-3, 8, 2))
    R, prior = hedges.radii(radius), hedges.log_priors(radius, typical)
    clip, squares = rng.exponential(size=2)
    units = np.sqrt(4 * clip**2 + 0.25 * squares) * R
    losses = 5 * units * rng.standard_normal(9)
    hedge = hedges.HedgeState.zeros((), np, np.float64)._replace(
        losses=losses, clip=np.asarray(clip), squares=np.asarray(squares)
    )
    p = hedges.weights_of(hedge, radius, prior)
    # (ν − Q_k)/(αR_k) = ln(p_k/π_k) for one ν, the same for all, and Σ p_k = 1: that is the argmin, and the only one
    assert p.sum() == pytest.approx(1, abs=1e-12)
    there = p > 1e-290  # others are below the smallest numbers
    nu = (losses + units * (np.log(np.where(there, p, 1.0)) - prior))[there]
    np.testing.assert_allclose(nu, nu[np.argmax(p[there])], rtol=0, atol=1e-9 * units[0])


def test_the_first_two_rounds_by_hand():
    problem = linear_problem(1, budget=1.0, l1=1.0, l2=0.0)  # R = 1
    learner = MixedAFTRL.for_problem(problem, typical_size=1.0)
    state = learner.init()
    R = np.append(4.0 ** -np.arange(8), 4.0**-7)
    prior = (R + 1) ** -0.5 / ((R + 1) ** -0.5).sum()
    np.testing.assert_allclose(state.scale.weights, prior, rtol=1e-14)
    state = learner.update(state, observe(problem, state.x, [np.array([2.0])]))
    # V = 4, z = 2: every leader is at −R_k, the nearest of −z/(√V/R_k) = −R_k and the ball's end.
    assert state.x[0] == pytest.approx(-(prior[:8] @ R[:8]), rel=1e-13)
    before = state.scale.weights
    state = learner.update(state, observe(problem, state.x, [np.array([1.0])]))
    # ℓ_k = −R_k, b = 1, but m = 0 before: nothing is charged, m = 1, U = 0.
    np.testing.assert_allclose(state.scale.weights, before, rtol=1e-12)
    assert (state.scale.hedge.clip, state.scale.hedge.squares) == (1.0, 0.0)
    state = learner.update(state, observe(problem, state.x, [np.array([1.0])]))
    # now α = 2, ℓ_k = −s_k w with z = 3, V = 5: −R_k again (3/√5 > 1), h = −½: Q_k = −2 R_k ln 1.5, the last 0.
    np.testing.assert_allclose(state.scale.hedge.losses, np.append(-2 * R[:8] * np.log(1.5), 0.0), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("T", [240, pytest.param(600, marks=pytest.mark.cross)])
@pytest.mark.parametrize(
    ("budget", "priced"),
    [
        (0.3, False),
        (10.0, True),
        (1000.0, False),
        *(pytest.param(*more, marks=pytest.mark.cross) for more in ((0.3, True), (10.0, False), (1000.0, True))),
    ],
)
def test_theorem_2_holds_for_every_scale(budget, priced, T):
    """Against the best x of every ball, in hindsight; without `priced` the largest ball and x = 0 only."""
    rng = np.random.default_rng(int(budget * 10))
    for drift, run_of in ((0.0, 1), (0.3, 1), (0.0, 20)):  # in runs what scales owe adds up, and blocks end early
        costs = np.repeat(costs_of(rng, T // run_of, 4, drift), run_of, axis=0)
        problem = linear_problem(4, budget=budget)
        learner = MixedAFTRL.for_problem(problem, priced=priced)
        trace = run(problem, learner, Replay([costs]))
        total, R = costs.sum(axis=0), hedges.radii(problem.enclosing_set.radius)
        bounds = learner.scale_bounds(problem, trace.state)
        g = ElasticNetBudget(4, budget)
        for k in range(8) if priced else (0,):
            prox = g.prox(Ball(4, R[k]))
            # a feasible point of the ball that is good enough to make the test sharp: many weights, the best one kept
            candidates = [prox.argmin(total, np.array([v]), np.asarray(1e-6)) for v in np.geomspace(1e-3, 1e4, 200)]
            best = min(total @ x for x in candidates if g.values(x)[0] <= 0)
            assert trace.cumulative_loss[-1] - best <= bounds[k]
        assert trace.cumulative_loss[-1] <= bounds[-1]
        bound = learner.bound(problem, T, state=trace.state)
        assert trace.signed_violation[-1] <= bound["long_term_violation"]


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0.3, 10.0, 1000.0])
def test_penalised_regret_and_hard_violation_are_under_their_bounds(budget):
    problem = linear_problem(4, budget=budget)
    learner = MixedPenalisedFTRL.for_problem(problem)
    costs = costs_of(np.random.default_rng(3), 200, 4, 0.5)
    trace = run(problem, learner, Replay([costs]), record=np.arange(1, 201))
    bound = learner.bound(problem, 200, state=trace.state)
    x = problem.constraint.prox(problem.enclosing_set)
    total = costs.sum(axis=0)
    weight = x.least_weight(total, np.asarray(1e-3))
    best = total @ x.argmin(total, weight[None], np.asarray(1e-3))
    assert trace.cumulative_loss[-1] - best <= bound["regret"]
    assert trace.hard_violation[-1] <= bound["hard_violation"]
    assert np.all(np.diff(trace.multiplier) >= 0)


@pytest.mark.slow
def test_a_generous_budget_costs_little():
    rng = np.random.default_rng(0)
    costs = np.sign(rng.standard_normal((200, 1))) * np.eye(5)[rng.integers(5, size=200)]  # nothing to be learned
    losses = {}
    for rule in (AdaptiveAFTRL, MixedAFTRL, MixedPenalisedFTRL):
        problem = linear_problem(budget=1e4)
        losses[rule] = run(problem, rule.for_problem(problem), Replay([costs])).cumulative_loss[-1]
    assert losses[AdaptiveAFTRL] > 10 * max(losses[MixedAFTRL], 1.0)
    assert losses[MixedPenalisedFTRL] == pytest.approx(losses[MixedAFTRL], rel=1e-9)  # the budget does not bind


@pytest.mark.slow
def test_scales_wait_until_they_owe_much_and_follow_meanwhile():
    """A block by hand: p stays while little is owed, the leader is tilted, and what is owed is paid all at once."""
    problem = linear_problem(3, budget=100.0)
    learner, rng = MixedAFTRL.for_problem(problem), np.random.default_rng(4)
    R = hedges.radii(learner.prox.over.radius)
    state, waited, unlike = learner.init(), 0, 0
    for _ in range(400):
        before, cost = state, rng.standard_normal(3)
        state = learner.update(state, observe(problem, state.x, [cost]))
        w, s = ray_of(learner.prox, state.gradient_sum, state.weight[..., 0], state.scale.square_sum)
        hedge, alpha = state.scale.hedge, float(hedges.inverse_rate(state.scale.hedge))
        if hedge.block_losses.any():
            waited += 1
            np.testing.assert_array_equal(state.scale.weights, before.scale.weights)
            np.testing.assert_array_equal(hedge.losses, before.scale.hedge.losses)
            assert np.max(np.abs(hedge.block_losses) / R) <= min(0.15 * alpha, alpha / 2 - hedge.clip)
            tilted = 1 + hedge.tilt * hedge.block_losses[7] / R[7]
            assert 0.85 <= tilted <= 1.15
            unlike += tilted != 1
            np.testing.assert_allclose(state.x, min(state.scale.weights @ s * tilted, s[0]) * w, rtol=1e-12)
    assert waited > 200
    assert unlike > 200
    # the derivative: p for exponents that all moved by a little, beside what the tilt says
    p, little = state.scale.weights, 1e-6
    _, s = ray_of(learner.prox, state.gradient_sum, state.weight[..., 0], state.scale.square_sum)
    closed = hedges.close_block(state.scale.hedge, p, learner.prox.over.radius)
    p = hedges.weights_of(closed, learner.prox.over.radius, learner.scale.log_priors(learner.prox))
    moved = closed._replace(losses=closed.losses + little * s / np.max(s / R))
    after = hedges.weights_of(moved, learner.prox.over.radius, learner.scale.log_priors(learner.prox))
    slope = float(hedges.tilt_of(closed, p, s, learner.prox.over.radius))
    assert (after @ s / (p @ s) - 1) / little == pytest.approx(slope, rel=1e-4)


@pytest.mark.slow
def test_rows_of_a_batch_are_single_runs():
    problem = linear_problem()
    rng = np.random.default_rng(1)
    for rule in (MixedAFTRL, MixedPenalisedFTRL):
        learner = rule.for_problem(problem)
        batch, singles = learner.init((3,)), [learner.init() for _ in range(3)]
        for _ in range(30):
            cost = rng.standard_normal((3, 5))
            batch = learner.update(batch, observe(problem, batch.x, [cost]))
            singles = [learner.update(one, observe(problem, one.x, [c])) for one, c in zip(singles, cost, strict=True)]
        np.testing.assert_allclose(batch.x, np.stack([one.x for one in singles]), rtol=1e-11, atol=1e-12)


def test_other_constraints_are_refused():
    g = Affine([[1.0, 0.0]], [0.5])
    with pytest.raises(InputError, match="one ray"):
        MixedAFTRL.for_problem(Problem(Ball(2, 1.0), Linear(2), g))


@pytest.mark.slow
def test_switching_costs_never_break_a_budget_by_much():
    problem = linear_problem()
    trace = run(problem, MixedPenalisedFTRL.for_problem(problem), SwitchingCosts(5), rounds=500)
    assert trace.hard_violation[-1] < 1e-9


# --- terms of the theorem ------------------------------------------------------------------------------------


def play_on_the_line(lead, body, first, pattern, rounds):
    """Play costs along x_t; return the regret against 0, its bound, W_T and the second sum of W_T."""
    problem = linear_problem(1, budget=1.5, l1=1.0, l2=1.0)  # R = 1
    learner, following, regret = MixedAFTRL.for_problem(problem), 0.0, 0.0
    state = learner.init()
    for t in range(rounds):
        size = first[t % len(first)] if t < lead else pattern[(t - lead) % len(pattern)] if t < lead + body else 1.0
        x, cost = state.x, np.array([size * (np.sign(state.x[0]) or 1.0)])
        w, s = ray_of(learner.prox, state.gradient_sum, state.weight[..., 0], state.scale.square_sum)
        p, hedge = state.scale.weights, state.scale.hedge
        following += float(cost @ w * (hedges.factor(hedge, p, s, 1.0) - p @ s))
        regret += float(cost @ x)
        state = learner.update(state, observe(problem, x, [cost]))
    cost_of_blocks = float(hedges.close_block(state.scale.hedge, state.scale.weights, 1.0).block_cost)
    bound = float(learner.scale_bounds(problem, state)[-1])
    return regret, bound, cost_of_blocks, following


@pytest.mark.parametrize(
    ("sequence", "needed"),
    [
        ((37, 218, [-1, 1, -1, -0.1, -0.01, -0.1], [0.2, 0.01, -0.2, 0.2, -0.2], 600), "following"),
        (
            (
                36,
                225,
                [-1, 1, -1, 0.05, -0.01, -0.1],
                [0, -0.01, 0.2, 0.2, 0.2, 0.7, -0.2, 0.2, 0.2, 0.2, 0.2, -0.4, -0.4, -0.4, -1],
                400,
            ),
            "blocks",
        ),
    ],
)
def test_no_part_of_the_cost_of_blocks_can_be_left_out(sequence, needed):
    """Sequences found by search on which the bound against x = 0 is false without W_T, or without one of its sums."""
    regret, bound, cost_of_blocks, following = play_on_the_line(*sequence)
    assert regret <= bound
    assert regret > 1.03 * (bound - cost_of_blocks)
    part = following if needed == "following" else cost_of_blocks - following
    assert regret > 1.5 * (bound - part)


@given(
    shares=st.lists(st.floats(-1.0, 1.0), min_size=9, max_size=9),
    rounds=st.integers(1, 6),
    largest=st.sampled_from([0.5, 0.3, 0.05]),
)
def test_the_correction_covers_what_a_block_charges_above_its_losses(shares, rounds, largest):
    """Q_k grows by at most L_k + R_k S: −h − ln(1 − h) ≤ .773 h² for |h| ≤ ½, which .273 h² + ½B and D make up."""
    radius, R = 2.0, hedges.radii(2.0)
    hedge = hedges.HedgeState.zeros((), np, np.float64)._replace(clip=np.asarray(1.0), squares=np.asarray(3.0))
    alpha = float(hedges.inverse_rate(hedge))
    losses = largest * alpha * R * np.array(shares)
    block = hedge._replace(block_losses=losses, block_squares=losses**2 / rounds)
    closed = hedges.close_block(block, np.full(9, 1 / 9), radius)
    assert np.all(closed.losses - losses <= R * float(closed.correction) * (1 + 1e-9) + 1e-12)


def test_the_correction_is_nearly_attained():
    R, hedge = hedges.radii(1.0), hedges.HedgeState.zeros((), np, np.float64)._replace(clip=np.asarray(1.0))
    losses = R  # h = ½: α = 2
    closed = hedges.close_block(hedge._replace(block_losses=losses, block_squares=losses**2), np.full(9, 1 / 9), 1.0)
    excess = (closed.losses - losses) / R
    assert np.all(excess <= float(closed.correction))
    assert excess[0] == pytest.approx(float(closed.correction), rel=1e-3)  # 2 (ln 2 − ½) against 1.546/4


def test_rounds_before_the_first_loss_are_counted_with_their_price():
    """One push, then silence: α stays 0, p stays π, and without the count of λ_t g(x_t) the bounds are false."""
    problem = linear_problem(400)
    learner = MixedAFTRL.for_problem(problem, typical_size=1e3, theta_0=1e4, priced=True)
    state, left, costs = learner.init(), 0.0, np.zeros((300, 400))
    costs[0] = 0.05
    for cost in costs:
        seen = observe(problem, state.x, [cost])
        left += float(seen.loss) + float(state.multiplier[0] * seen.constraint)
        state = learner.update(state, seen)
    bounds, R = learner.scale.primal_bounds(learner.prox, state.scale), hedges.radii(learner.prox.over.radius)
    against = left + R[:8]  # the best x of each ball has Σ f_t(x) = −R_k
    assert np.all(against <= bounds[:8])
    assert against[7] > 50 * (bounds - state.scale.unpriced)[7]
    assert not np.any(state.scale.hedge.losses)
