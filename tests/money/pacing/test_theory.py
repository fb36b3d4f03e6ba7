"""What pacers promise: hindsight is exact, nobody beats it, and the theorems hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from longterm import InputError
from longterm.money import (
    Auctions,
    DualMirrorDescent,
    Outcome,
    PlannedMirrorDescent,
    PriceHistory,
    best_in_hindsight,
    replay_auctions,
    synthetic_auctions,
)
from longterm.money.pacing.mirror_descent import floor_shortfall, regret_bound
from longterm.money.pacing.planned import spending_plan_bound
from longterm.theory import theorem_1
from pacers import NAMES, pacers
from pacing_baselines import PriceMixture

# --- hindsight ------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), count=st.integers(1, 25), zero=st.booleans())
def test_hindsight_is_the_linear_programme(seed, count, zero):
    rng = np.random.default_rng(seed)
    values, costs = rng.integers(0, 9, count).astype(float), rng.integers(0 if zero else 1, 9, count).astype(float)
    costs[0] += 1
    budget, kappa = float(rng.uniform(0.1, 1.2) * costs.sum()), float(rng.choice([0.0, 0.5, 1.0, 2.0]))
    floor = float(rng.choice([0.0, rng.uniform(0, min(budget, costs.sum()))]))
    best = best_in_hindsight(values, costs, budget, floor=floor, cost_weight=kappa)
    solved = linprog(
        -(values - kappa * costs), A_ub=np.stack([costs, -costs]), b_ub=[budget, -floor], bounds=[(0, 1)] * count
    )
    assert best.objective == pytest.approx(-solved.fun, abs=1e-8)
    assert best.upper_bound == pytest.approx(best.objective, abs=1e-8)
    assert floor - 1e-9 <= best.spent <= budget + 1e-9
    assert np.sum((best.taken > 0) & (best.taken < 1)) <= 1


def test_hindsight_refuses_a_floor_that_cannot_be_spent():
    with pytest.raises(InputError, match="floor"):
        best_in_hindsight([1.0], [2.0], budget=5.0, floor=3.0)


@pytest.mark.parametrize("name", NAMES)
def test_nobody_beats_hindsight(name):
    log = synthetic_auctions(500, seed=3)
    run = replay_auctions(pacers(2000.0, len(log))[name], log)
    assert run.value <= best_in_hindsight(log.values, log.prices, 2000.0).upper_bound * (1 + 1e-12)


# --- theorems -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_the_regret_bound_holds_on_iid_requests_and_is_not_empty(share):
    T, regrets = 3000, []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        log = Auctions(rng.uniform(0, 1, T), rng.uniform(0, 1, T))
        budget = share * T / 2
        pacer = DualMirrorDescent(budget, T, step=(1 / share) / np.sqrt(T), start=0.1, mirror="euclidean")
        best = best_in_hindsight(log.values, log.prices, budget)
        regrets.append(best.objective - float(replay_auctions(pacer, log).value))
    bound = regret_bound(pacer, largest_value=1.0, largest_cost=1.0)
    assert np.mean(regrets) <= bound
    assert bound < best.objective or share < 0.2


def test_the_regret_bound_covers_a_start_that_is_far_off():
    T, budget, rng = 3000, 600.0, np.random.default_rng(1)
    log = Auctions(rng.uniform(0, 1, T), rng.uniform(0, 1, T))
    pacer = DualMirrorDescent(budget, T, step=0.05, start=10.0, mirror="euclidean")  # 1000 rounds until it bids at all
    regret = best_in_hindsight(log.values, log.prices, budget).objective - float(replay_auctions(pacer, log).value)
    bound = regret_bound(pacer, 1.0, 1.0)
    assert 0.2 * bound < regret <= bound


def test_regret_grows_like_the_root_of_the_horizon():
    regrets = []
    for T in (1000, 16_000):
        log = synthetic_auctions(T, seed=11)
        budget = 0.2 * log.total_price
        best = best_in_hindsight(log.values, log.prices, budget)
        past = PriceHistory.of(synthetic_auctions(2000, seed=12))
        regrets.append(
            best.objective - float(replay_auctions(DualMirrorDescent.calibrated(budget, T, past), log).value)
        )
    assert regrets[1] < 8 * regrets[0]  # 16 times the rounds: 4 by the theorem, 16 if it failed


@pytest.mark.slow
def test_the_mixture_keeps_its_constants_and_its_theorem():
    log = synthetic_auctions(1500, seed=4)
    budget = 0.1 * log.total_price
    pacer = PriceMixture.calibrated(budget, len(log), PriceHistory.of(synthetic_auctions(2000, seed=8)))
    state, spend = pacer.init(), 0.0
    for value, price in zip(log.values, log.prices, strict=True):
        spend += float(pacer.feedback(state, Outcome(0.0, value, price)).constraint)
        state = pacer.settle(state, Outcome(0.0, value, price))  # `tell` refuses gradients above √K
    assert spend <= float(theorem_1(pacer.problem.constants, len(log), pacer.beta).violation)
    assert float(pacer.settle(state, Outcome(0.0, 1e3, 1.0)).learner.x.sum()) == pytest.approx(1)  # counted as u
    with pytest.raises(InputError, match="market price"):
        pacer.settle(state, Outcome(0.0))


def test_the_mixtures_draw_is_unbiased():
    made = {"budget": 1e6, "horizon": 10, "start": 0.5, "highest_bid": 10.0, "ratios": (0.5, 1.0, 2.0)}
    state = PriceMixture(**made).settle(PriceMixture(**made).init(), Outcome(4.0, 3.0, 4.0))
    x = state.learner.x
    bids = [float(PriceMixture(**made, offset=u).bid(state, 1.0)) for u in (np.arange(2000) + 0.5) / 2000]
    shares = [np.mean(np.isclose(bids, bid)) for bid in (4.0, 2.0, 1.0)]  # 1/(0.5 · 0.5), 1/0.5, 1/(0.5 · 2)
    np.testing.assert_allclose(shares, x, atol=1e-3)


def test_the_floor_shortfall_of_the_entropic_mirror_needs_a_price():
    with pytest.raises(InputError, match="buy_all_price"):
        floor_shortfall(DualMirrorDescent(10.0, 5, 0.1, 1.0, floor=5.0))
    with pytest.raises(InputError, match="pacer"):
        regret_bound(DualMirrorDescent(10.0, 5, 0.1, 1.0), 1.0, 5.0)


@given(seed=st.integers(0, 10**6), mirror=st.sampled_from(["euclidean", "entropic"]), kappa=st.floats(0.0, 1.0))
def test_the_floor_holds_where_everything_is_bought_above_the_price_of_money(seed, mirror, kappa):
    """π₀ = 1 ≥ κ: between the two the price may fall although all is bought. Costs lie between ℓ = 1 and ρ = 4."""
    rng, T = np.random.default_rng(seed), 60
    costs = rng.uniform(1.0, rng.uniform(1.0, 8.0), T)
    start = float(rng.uniform(1.0, 4.0))
    pacer = DualMirrorDescent(4.0 * T, T, 0.05, start, mirror=mirror, floor=float(T), cost_weight=kappa)
    state, spent = pacer.init(), 0.0
    for cost in costs:  # every value is its cost, so that the bid at a price of 1 or less wins
        paid = float(cost) if float(pacer.act(state, float(cost))) >= cost else 0.0
        state, spent = pacer.settle(state, Outcome(paid)), spent + paid
    assert T - spent <= floor_shortfall(pacer, buy_all_price=1.0) + 1e-9


def test_the_order_of_payments_tells_where_money_is_worth_something_elsewhere():
    def last_price(payments, kappa):
        pacer = DualMirrorDescent(20.0, 10, 0.1, 1.1, cost_weight=kappa)
        state = pacer.init()
        for paid in payments:
            state = pacer.settle(state, Outcome(paid))
        return float(state.price)

    assert last_price((0.0, 5.0), 0.0) == pytest.approx(last_price((5.0, 0.0), 0.0))
    assert last_price((0.0, 5.0), 1.0) == pytest.approx(np.exp(0.3))  # held at κ = 1 after the first
    assert last_price((5.0, 0.0), 1.0) == pytest.approx(1.1 * np.exp(0.1))


@given(seed=st.integers(0, 10**6), kappa=st.sampled_from([0.0, 1.0]))
def test_hindsight_drops_no_auction_by_rounding(seed, kappa):
    rng = np.random.default_rng(seed)
    values, costs = rng.random(60) * 2, rng.random(60)
    best = best_in_hindsight(values, costs, 1e6, cost_weight=kappa)
    assert best.objective == pytest.approx(np.maximum(values - kappa * costs, 0).sum(), rel=1e-12)
    assert best.objective == pytest.approx(best.upper_bound, rel=1e-12)


class EvenPlan(PlannedMirrorDescent):
    """The plan that costs nothing. Its bound is nearly attained to a half."""

    def plan(self, state, value):
        return np.float64(self.rate)


@given(
    seed=st.integers(0, 10**6),
    T=st.integers(2, 300),
    step=st.floats(1e-3, 0.9),
    start=st.floats(0.05, 0.5),
    adversary=st.sampled_from(["random", "just too dear", "just affordable", "poor, then rich", "rich, then poor"]),
    share=st.floats(0.02, 1.5),
    even=st.booleans(),
    tolerance=st.sampled_from([0.0, 0.003, 0.3, 3.0]),
)
def test_the_bound_of_a_spending_plan_holds_on_every_sequence(seed, T, step, start, adversary, share, even, tolerance):
    """Also where the money ends early. What the plan has cost is never above its allowance."""
    rng = np.random.default_rng(seed)
    history = PriceHistory(np.linspace(0.1, 1.0, 10), np.ones(10), mean_value=0.7)
    kind = EvenPlan if even else PlannedMirrorDescent
    pacer = kind(share * T * 0.5, T, step=step / 4, start=start, history=history, tolerance=tolerance)
    state, won, best, largest, cost = pacer.init(), 0.0, 0.0, pacer.rate, 0.0
    for t in range(T):
        value, price = rng.uniform(0.05, 1.0), rng.uniform(0.01, 1.0)
        if adversary == "poor, then rich":
            value = 0.1 if t < T // 2 else 1.0
        elif adversary == "rich, then poor":
            value = 1.0 if t < T // 2 else 0.1
        elif adversary != "random":
            price = min(1.0, value / float(state.price) * (1.001 if adversary == "just too dear" else 0.999))
        plan = float(pacer.plan(state, value))
        cost, largest = cost + float(state.price) * (pacer.rate - plan), max(largest, plan)
        best += value * min(1.0, pacer.rate / price)
        assert cost <= tolerance * won + 1e-9 * (1 + won)
        paid = price if float(pacer.act(state, value)) >= price else 0.0
        won += value * (paid > 0)
        state = pacer.settle(state, Outcome(paid=paid, value=value))
    if pacer.step * max(1.0, largest) < 1:
        bound = spending_plan_bound(pacer, largest_value=1.0, largest_cost=1.0, largest_plan=largest)
        assert (1 + tolerance) * won >= best - bound


def test_the_bound_of_a_spending_plan_is_not_empty_and_needs_small_steps():
    history, T = PriceHistory(np.linspace(0.1, 1.0, 10), np.ones(10), mean_value=0.7), 20_000
    pacer = PlannedMirrorDescent(0.1 * T, T, step=0.005, start=1.0, history=history)
    facts = {"largest_value": 1.0, "largest_cost": 1.0}
    assert spending_plan_bound(pacer, **facts) < 0.2 * T
    by_hand = (10.0 + (10 * np.log(10) - 9) / 0.005 + 2 * 0.005 * T) / 0.995
    assert spending_plan_bound(pacer, **facts) == pytest.approx(by_hand)
    with pytest.raises(InputError) as refused:
        spending_plan_bound(pacer, **facts, largest_plan=300.0)
    assert refused.value.argument == "step"
