"""Delayed feedback: the theorem holds for random and adversarial delays, and delay has a cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delays import play, regret_in_blocks
from longterm import AOGD, InputError, LiveLearner, Problem
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.named.adversarial import late_reversal
from longterm.problems.sets import Ball
from longterm.theory.delay import gradient_bound_under_delay, lemma_5_delayed
from longterm.theory.paper import lemma_5
from longterm.theory.schedules import ConstantSchedule, ConvexSchedule, StronglyConvexSchedule
from opponents import best_linear
from small_constants import constants
from zoo import D, sets

SETS = sets()
ORDERS = ("in order", "blocks reversed", "oldest last", "random", "random and lossy")


def hostile_costs(problem, rng):
    """Costs that charge for where the learner stands, or for the way it has just gone, and stay for a while."""
    memory = {"cost": None, "before": problem.enclosing_set.centre}

    def at(x, number):
        if memory["cost"] is None or not np.array_equal(x, memory["before"]):
            away = x - (problem.enclosing_set.centre if rng.random() < 0.7 else memory["before"])
            away = away + 1e-3 * rng.standard_normal(x.shape)
            memory["cost"] = problem.loss.cost_norm * away / np.linalg.norm(away)
            memory["before"] = x
        return [memory["cost"]], []

    return at


@pytest.mark.parametrize("name", SETS)
@given(
    beta=st.floats(0.05, 0.95),
    seed=st.integers(0, 10**6),
    rounds=st.integers(1, 120),
    delay=st.integers(0, 12),
    kind=st.sampled_from(ORDERS),
    tuned=st.booleans(),
)
def test_the_theorem_holds_on_every_set_under_every_order(name, beta, seed, rounds, delay, kind, tuned):
    B, rng = SETS[name], np.random.default_rng(seed)
    row = rng.standard_normal((1, D))
    problem = Problem(B, Linear(D, 2.0), Affine(row, row @ B.sample(rng, 3).mean(axis=0) + rng.uniform(0, 0.1)))
    G = problem.constants.gradient_bound
    schedule = ConvexSchedule(B.diameter, gradient_bound_under_delay(G, delay) if tuned else G, beta)
    told, loss, violation = play(problem, AOGD(B, schedule), kind, rounds, delay, rng, hostile_costs(problem, rng))
    if not told:
        return
    regret = loss - best_linear(B, row, problem.constraint.limit, sum(cost for (cost,), _ in told))
    bound = lemma_5_delayed(schedule, problem.constants, len(told), delay)
    assert regret <= float(bound.regret) * (1 + 1e-9)
    assert violation <= float(bound.violation) * (1 + 1e-9)


@given(
    beta=st.floats(0.05, 0.95),
    seed=st.integers(0, 10**6),
    rounds=st.integers(1, 120),
    delay=st.integers(0, 12),
    kind=st.sampled_from(ORDERS),
)
def test_strongly_convex_losses_and_constraints_that_change(beta, seed, rounds, delay, kind):
    rng = np.random.default_rng(seed)
    B = Ball(3, radius=2.0)
    problem = Problem(B, SquaredDistance(3, targets=B), VaryingAffine(3, 2, row_norm=1.0, limit_bound=1.0))
    comparator = rng.uniform(-0.5, 0.5, 3)

    def parameters(x, number):
        normals = rng.standard_normal((2, 3))
        normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
        target = -2 * x / max(np.linalg.norm(x), 1e-3) + 1e-3 * rng.standard_normal(3)
        return [B.project(target)], [normals, np.clip(normals @ comparator, -1, 1)]

    facts = problem.constants
    schedule = StronglyConvexSchedule(gradient_bound_under_delay(facts.gradient_bound, delay), 1.0, beta)
    told, loss, violation = play(problem, AOGD(B, schedule), kind, rounds, delay, rng, parameters)
    if not told:
        return
    regret = loss - sum(float(problem.loss.value_and_gradient(comparator, *p)[0]) for p, _ in told)
    bound = lemma_5_delayed(schedule, facts, len(told), delay)
    assert regret <= float(bound.regret) * (1 + 1e-9)
    assert violation <= float(bound.violation) * (1 + 1e-9)


@pytest.mark.slow
def test_delay_costs_more_than_the_undelayed_theorem_allows_and_no_more_than_the_delayed_one():
    facts, T, beta = late_reversal().constants, 1000, 0.5
    regrets, bounds = [], []
    for delay in (0, 9, 49, 99):
        tuned = ConvexSchedule(2.0, gradient_bound_under_delay(1.0, delay), beta)
        regrets.append(regret_in_blocks(delay, T, tuned))
        bounds.append(float(lemma_5_delayed(tuned, facts, T, delay).regret))
    undelayed = float(lemma_5(ConvexSchedule(2.0, 1.0, beta), facts, T).regret)
    assert bounds[0] == pytest.approx(undelayed)
    assert all(regret <= bound for regret, bound in zip(regrets, bounds, strict=True))
    assert regrets == sorted(regrets)  # the cost of delay is visible
    assert regrets[-1] > undelayed  # so a theorem for delay must say more than Lemma 5
    hasty = regret_in_blocks(99, T, ConvexSchedule(2.0, 1.0, beta))
    assert hasty > 1.5 * regrets[-1]  # steps made without regard to the delay overshoot
    assert hasty > 5 * undelayed


def test_lambda_stays_below_its_bound():
    problem = Problem(Ball(1), Linear(1), Affine([[1.0]], [-1.0]))  # x + 1 ≤ 0: violated as long as x > −1
    schedule = ConvexSchedule(2.0, 1.0, 0.7)
    live = LiveLearner(AOGD(problem.enclosing_set, schedule), problem)
    largest = 0.0
    for t in range(1, 200):
        live.tell(live.ask(), loss_parameters=[np.array([-1.0])])
        largest = max(largest, problem.constants.constraint_bound / (6.0 / t**0.7))
        assert float(live.state.multiplier) <= largest * (1 + 1e-12)


# --- the formula itself -------------------------------------------------------------------------------------


@given(beta=st.floats(0.05, 0.95), T=st.integers(1, 3000))
def test_without_delay_it_is_lemma_5(beta, T):
    schedule, facts = ConvexSchedule(4.0, 3.0, beta), constants(strong_convexity=0.0)
    assert lemma_5_delayed(schedule, facts, T, 0).regret == lemma_5(schedule, facts, T).regret
    assert lemma_5_delayed(schedule, facts, T, 0).violation == pytest.approx(lemma_5(schedule, facts, T).violation)


def test_by_hand():
    # θ = 1, η = 0.01, μ = 0.1, G = 1: C2 under a delay of 3 is 0.01 (1 + 3) + window + 0.1 − 0.5 ≤ 0, window ≤ 0.06.
    schedule = ConstantSchedule(theta=1.0, eta=0.01, mu=0.1)
    facts = constants(loss_gradient_bound=1.0, strong_convexity=0.0)
    plain, late = lemma_5(schedule, facts, 20), lemma_5_delayed(schedule, facts, 20, 3)
    assert float(late.regret - plain.regret) == pytest.approx(2 * 3 * 20 * 0.01)
    # A delay of 40: e_t = 0.01 (1 + 40) + 0.01 (t − 1) + 0.1 − 0.5 > 0 from t = 2 on, and Λ = D/θ = 5.
    unpaid = sum(25 * (0.41 + 0.01 * (t - 1) + 0.1 - 0.5) for t in range(2, 21))
    later = lemma_5_delayed(schedule, facts, 20, 40)
    assert float(later.regret - plain.regret) == pytest.approx(2 * 40 * 20 * 0.01 + unpaid)
    assert float(later.violation) == pytest.approx(np.sqrt(2 * (20 + 10 - 1) * (float(later.regret) + 7 * 20)))


def test_a_decision_is_at_most_twice_the_delay_behind():
    # As above with a delay of 20: e_t = 0.01 (1 + 20) + 0.01 min(t − 1, 40) + 0.1 − 0.5, positive from t = 21 on.
    schedule = ConstantSchedule(theta=1.0, eta=0.01, mu=0.1)
    facts = constants(loss_gradient_bound=1.0, strong_convexity=0.0)
    unpaid = sum(25 * max(0.01 * min(t - 1, 40) - 0.19, 0.0) for t in range(2, 61))
    difference = lemma_5_delayed(schedule, facts, 60, 20).regret - lemma_5(schedule, facts, 60).regret
    assert float(difference) == pytest.approx(2 * 20 * 60 * 0.01 + unpaid)


def test_strong_convexity_adds_its_share():
    schedule = ConstantSchedule(theta=1.0, eta=0.01, mu=0.1)
    facts = constants(loss_gradient_bound=1.0, strong_convexity=0.5)  # c = σΔ/G = 0.5 · 4 = 2
    difference = lemma_5_delayed(schedule, facts, 20, 3).regret - lemma_5(schedule, facts, 20).regret
    assert float(difference) == pytest.approx((2 + 3) * 3 * 20 * 0.01)


def test_steps_for_the_delay_have_no_excess_terms():
    """e_t ≤ 0 for every β ≤ 2/3: below t = 12 by trial (monotone in τ from 2τ ≥ t on), then by docs/proofs/delay.md."""
    facts = constants(strong_convexity=0.0, loss_gradient_bound=1.0)
    for delay in (*range(1, 8), 30, 300):
        G = gradient_bound_under_delay(1.0, delay)
        for beta in (0.05, 0.5, 2 / 3):
            late = lemma_5_delayed(ConvexSchedule(4.0, G, beta), facts, 2000, delay)
            plain = lemma_5(ConvexSchedule(4.0, G, beta), facts, 2000)
            for_that_gradient = lemma_5(
                ConvexSchedule(4.0, G, beta), constants(strong_convexity=0.0, loss_gradient_bound=G), 2000
            )
            t = np.arange(1, 2001)
            assert float(late.regret - plain.regret) == pytest.approx(
                2 * delay * (2 / G * t**-beta).sum(), abs=1e-9, rel=0
            )
            assert late.regret <= for_that_gradient.regret


def test_horizons_and_a_grid_of_beta():
    grid, horizons = np.array([0.3, 0.7]), [10, 100, 70_000]  # more than one chunk of the table
    whole = lemma_5_delayed(ConvexSchedule(4.0, 3.0, grid), constants(strong_convexity=0.0), horizons, 4)
    assert whole.regret.shape == whole.violation.shape == (3, 2)
    for i, T in enumerate(horizons):
        for j, beta in enumerate(grid.tolist()):
            single = lemma_5_delayed(ConvexSchedule(4.0, 3.0, beta), constants(strong_convexity=0.0), T, 4)
            assert float(single.regret) == pytest.approx(whole.regret[i, j])
            assert float(single.violation) == pytest.approx(whole.violation[i, j])


@pytest.mark.parametrize("delay", [-1, 0.5, True])
def test_impossible_delays_are_refused(delay):
    with pytest.raises(InputError) as refused:
        lemma_5_delayed(ConvexSchedule(4.0, 3.0), constants(), 10, delay)
    assert refused.value.argument == "delay"
