"""Pacers: worked by hand, never overspending, the same in any shape, floors met."""

import warnings
from fractions import Fraction
from itertools import pairwise

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import InputError
from longterm.errors import NonFiniteError, OverspentWarning
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
from longterm.money.pacing.mirror_descent import floor_shortfall
from pacers import HISTORY, NAMES, pacers
from pacing_baselines import ProportionalController, tuned_controller

LIBRARY = [name for name in NAMES if name not in ("controller", "mixture")]
"""The pacers of the library; the others are NumPy baselines of the examples."""


# --- by hand --------------------------------------------------------------------------------------------------


def test_euclidean_rounds_by_hand():
    pacer = DualMirrorDescent(budget=20.0, horizon=10, step=0.1, start=0.5, mirror="euclidean")  # ρ = 2
    state = pacer.init()
    assert pacer.act(state, 3.0) == 6.0  # 3 / 0.5
    state = pacer.settle(state, Outcome(5.0))  # 0.5 + 0.1 · (5 − 2)
    assert (float(state.price), float(pacer.remaining(state)), int(state.round)) == (pytest.approx(0.8), 15.0, 2)
    assert pacer.act(state, 40.0) == 15.0  # 50, but 15 are left
    for _ in range(4):
        state = pacer.settle(state, Outcome(0.0))  # 0.2 down each time, not below 0
    assert float(state.price) == pytest.approx(0.0, abs=1e-12)
    assert pacer.act(pacer.settle(state, Outcome(0.0)), 1e-9) == 15.0  # money is free: bid what is left


def test_entropic_rounds_by_hand():
    pacer = DualMirrorDescent(budget=20.0, horizon=10, step=0.1, start=0.5, mirror="entropic")
    state = pacer.settle(pacer.init(), Outcome(5.0))
    assert float(state.price) == pytest.approx(0.5 * np.exp(0.3))
    assert float(pacer.settle(state, Outcome(0.0)).price) == pytest.approx(0.5 * np.exp(0.1))


def test_planned_rounds_by_hand():
    # S_1(v): a bid of v/0.02 pays 0 below 10, 10/2 from 10 on, 10/2 + 20/2 from 20 on. The mean request bids 10: 5.
    history = PriceHistory([10.0, 20.0], [1, 1], mean_value=0.2)
    pacer = PlannedMirrorDescent(60.0, 4, step=0.1, start=0.02, history=history, tolerance=0.4)
    state = pacer.settle(pacer.init(), Outcome(15.0, value=0.3))  # nothing is won before: 15 is planned
    assert (float(state.saved), float(state.cost), float(state.won), float(state.price)) == (0.0, 0.0, 0.3, 0.02)
    # S_1 = 0 and nothing is deserved; 0.4 · 0.3 · 2/4 = 0.06 may be risked, which is 3 at a price of 0.02.
    state = pacer.settle(state, Outcome(0.0, value=0.1))
    assert (float(state.saved), float(state.cost)) == pytest.approx((3.0, 0.06))
    assert float(state.price) == pytest.approx(0.02 * np.exp(-1.2), rel=1e-12)
    # S_1 = 15, m_3 = (4·5 + 5 + 0 + 15)/7: (15·2 + 3) · 15/(2 · 40/7) = 43, but at most what an even one has left.
    assert float(pacer.plan(state, 0.5)) == pytest.approx(18.0)
    state = pacer.settle(state, Outcome(20.0, value=0.5))
    assert float(state.price) == pytest.approx(0.02 * np.exp(-1.2 + 0.1 * (20 - 18)), rel=1e-12)
    assert (float(pacer.remaining(state)), float(state.expected), int(state.round)) == (25.0, 20.0, 4)
    assert float(state.saved) == pytest.approx(0.0, abs=1e-12)
    for _ in range(5):  # beyond the horizon there is still a plan: the next request is the last
        state = pacer.settle(state, Outcome(0.0, value=0.2))
    assert np.isfinite(float(state.price))
    with pytest.raises(InputError, match=r"outcome: has no value"):
        pacer.settle(state, Outcome(0.0))


def test_a_plan_in_float32_stays_in_float32():
    pacer = PlannedMirrorDescent(60.0, 4, step=0.1, start=0.02, history=PriceHistory([10.0, 20.0], [1, 1], 0.2))
    state = pacer.init((2,), dtype=np.float32)
    for paid in (15.0, 0.0):
        state = pacer.settle(state, Outcome(np.full(2, paid, np.float32), value=np.full(2, 0.3, np.float32)))
    assert {getattr(state, name).dtype for name in ("price", "expected", "saved", "cost", "won")} == {np.dtype("f4")}


def test_a_plan_ignores_poor_requests_and_an_even_one_does_not():
    """Prices as in the history, values poor for a while: the planned price stays where it was right."""
    rng = np.random.default_rng(3)
    T = 20_000
    values = 0.01 * np.where(np.arange(T) < 0.4 * T, 0.6, 1.0)
    log = Auctions(values, rng.choice(HISTORY.prices, T, p=HISTORY.counts / HISTORY.counts.sum()))
    start = 0.01 / 30.0  # the mean request bids 30
    budget = float(np.sum(HISTORY.expected_payment(values / start)))  # so this is the right price
    pacer = PlannedMirrorDescent(budget, T, 5e-5, start, HISTORY, history_days=100.0, tolerance=10.0)
    planned = replay_auctions(pacer, log)
    even = replay_auctions(DualMirrorDescent(budget, T, 5e-5, start), log)
    best = best_in_hindsight(log.values, log.prices, budget).objective
    off, off_even = (np.abs(np.log(run.price / start))[: -T // 10].mean() for run in (planned, even))
    assert off < 0.3 * off_even
    assert best - planned.value < 0.2 * (best - even.value)


plans = st.builds(
    lambda budget, step, tolerance, days: PlannedMirrorDescent(
        budget, 30, step, 0.02, PriceHistory([10.0, 20.0], [1, 1], 0.2), days, tolerance
    ),
    st.floats(1.0, 900.0),
    st.floats(1e-3, 0.02),
    st.floats(0.0, 2.0),
    st.floats(0.1, 10.0),
)


@given(pacer=plans, values=st.lists(st.floats(1e-3, 2.0), min_size=30, max_size=30), seed=st.integers(0, 99))
def test_a_plan_is_never_ahead_of_the_even_pace_and_even_where_nothing_may_be_risked(pacer, values, seed):
    rng, state, planned, tolerance = np.random.default_rng(seed), pacer.init(), 0.0, 1e-9 * pacer.budget
    for t, value in enumerate(values, start=1):
        plan = float(pacer.plan(state, value))
        planned += plan
        assert plan >= 0
        assert planned <= pacer.rate * t + tolerance
        if float(state.won) * pacer.tolerance == 0 and float(state.cost) >= 0:
            assert plan >= pacer.rate - tolerance
        paid = min(float(rng.uniform(0, 5)) * rng.integers(0, 2), float(pacer.remaining(state)))
        state = pacer.settle(state, Outcome(paid, value))
    assert float(state.saved) == pytest.approx(pacer.budget - planned, abs=tolerance)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_plan_is_hardly_behind_the_even_pace_if_values_change_for_good(factor):
    """A plan that waits for the values of the history loses up to 15 %."""
    log, past = synthetic_auctions(6000, seed=5), PriceHistory.of(synthetic_auctions(6000, seed=6))
    shocked = Auctions(log.values * np.where(np.arange(6000) < 3000, 1.0, factor), log.prices)
    budgets = log.total_price / np.array([2, 8, 32])
    planned, even = (
        replay_auctions(kind.calibrated(budgets, 6000, past), shocked)
        for kind in (PlannedMirrorDescent, DualMirrorDescent)
    )
    assert np.all(planned.value >= 0.997 * even.value)
    bold = PlannedMirrorDescent.calibrated(budgets, 6000, past, tolerance=10.0)
    assert factor > 1 or np.all(replay_auctions(bold, shocked).value < 0.99 * even.value)


def test_the_price_leaves_its_anchor_only_for_the_cap_or_the_floor():
    pacer = DualMirrorDescent(
        40.0, 10, step=0.1, start=1.0, mirror="euclidean", floor=20.0, cost_weight=1.0
    )  # ρ 4, ℓ 2
    state = pacer.init()
    prices = [1.0]
    for paid in (3.0, 6.0, 4.0, 0.0, 0.0, 3.0):
        state = pacer.settle(state, Outcome(paid))
        prices.append(float(state.price))
    # 3 is between ℓ and ρ: stay; 6: + 0.2; 4: stay; 0 twice: − 0.4 to the anchor and no further, then − 0.2; 3: + 0.1.
    assert prices == pytest.approx([1.0, 1.0, 1.2, 1.2, 1.0, 0.8, 0.9])


def test_the_mirror_step_minimises_what_it_says():
    rng = np.random.default_rng(0)
    grid = np.linspace(0.001, 6.0, 600_001)
    for mirror in ("euclidean", "entropic"):
        for _ in range(20):
            price, paid, step = rng.uniform(0.2, 3), rng.uniform(0, 10), rng.uniform(0.01, 0.1)
            kappa, (ell, rho) = rng.uniform(0.2, 2), np.sort(rng.uniform(0, 10, 2))
            pacer = DualMirrorDescent(rho * 10, 10, step, price, mirror, ell * 10, kappa)
            moved = float(pacer.update(pacer.init(), Outcome(paid)).price)
            distance = (grid - price) ** 2 / 2 if mirror == "euclidean" else grid * np.log(grid / price) - grid + price
            dual = -paid * grid + rho * np.maximum(grid - kappa, 0) - ell * np.maximum(kappa - grid, 0)
            assert moved == pytest.approx(grid[np.argmin(dual + distance / step)], abs=2e-5)


def test_posted_prices():
    pacer = DualMirrorDescent(budget=10.0, horizon=5, step=0.1, start=2.0)
    state = pacer.init()
    assert bool(pacer.accept(state, 6.0, 3.0))  # 6 ≥ 2 · 3
    assert not bool(pacer.accept(state, 5.9, 3.0))
    assert not bool(pacer.accept(state, 1e9, 10.5))  # not the money


def test_controller_by_hand():
    pacer = ProportionalController(100.0, 10, base_bid=8.0, mean_value=0.5, gain=2.0, every=2)
    state = pacer.settle(pacer.init(), Outcome(40.0))
    assert pacer.act(state, 1.0) == 16.0  # not yet adjusted
    state = pacer.settle(state, Outcome(0.0))  # planned 20, spent 40: m = 1 − 2 · 0.2
    assert pacer.act(state, 1.0) == pytest.approx(9.6)


# --- never overspends -----------------------------------------------------------------------------------------

requests = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 300)), min_size=1, max_size=60)


@pytest.mark.parametrize("name", NAMES)
@given(requests=requests, budget=st.integers(1, 2000))
def test_no_sequence_of_requests_overspends(name, requests, budget):
    values, prices = np.array(requests).T
    run = replay_auctions(pacers(float(budget), len(values))[name], Auctions(values, prices))
    assert run.spent <= budget  # whole units of money: exact
    assert np.all(run.paid == run.won * prices)


@pytest.mark.parametrize("name", NAMES)
@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=60), budget=st.floats(1e-3, 1e6))
def test_an_exchange_that_always_charges_the_whole_bid_takes_the_budget_and_no_more(name, values, budget):
    pacer = pacers(budget, len(values))[name]
    state, total = pacer.init(), Fraction(0)
    for value in values:
        bid = float(pacer.act(state, value))
        assert bid >= 0
        state = pacer.settle(state, Outcome(bid, value, bid))
        total += Fraction(bid)
        assert total <= budget  # the exact sum, without any tolerance


@pytest.mark.parametrize("name", NAMES)
def test_what_was_spent_is_spent(name):
    """A charge above what is left is recorded, and nothing more is bid."""
    pacer = pacers(100.0, 10)[name]
    state = pacer.settle(pacer.init(), Outcome(60.0, 0.01, 60.0))
    with pytest.warns(
        OverspentWarning, match=r"paid in round 2: .* more than the money that was left, 40.*20.* over budget"
    ):
        state = pacer.settle(state, Outcome(60.0, 0.01, 60.0))
    assert float(pacer.remaining(state)) == -20.0
    assert float(pacer.overspent(state)) == 20.0
    for value in (0.0, 0.01, 1e6):
        assert float(pacer.act(state, value)) == 0.0
    state = pacer.settle(state, Outcome(0.0, 0.01, 1.0))  # lost: no more is owed
    with pytest.warns(OverspentWarning, match=r"25.* over budget"):
        state = pacer.settle(state, Outcome(5.0, 0.01, 5.0))
    assert float(pacer.overspent(state)) == 25.0
    assert float(pacer.overspent(pacer.init())) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_a_payment_is_not_lost_where_warnings_are_errors(name):
    pacer = pacers(100.0, 10)[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OverspentWarning) as caught:
            pacer.settle(pacer.init(), Outcome(130.0, 0.01, 130.0))
    assert float(pacer.overspent(caught.value.state)) == 30.0
    assert int(caught.value.state.round) == 2


@pytest.mark.parametrize("name", LIBRARY)
def test_money_is_exact_in_a_float32_state(name):
    """Payments of 1 beside 4·10⁷ are below the resolution of float32."""
    pacer = pacers(4e7, 10**8)[name]
    state = pacer.init(dtype=np.float32)
    state = pacer.settle(state, Outcome(4e7 - 3, 0.01, 1.0))
    for _ in range(3):
        state = pacer.settle(state, Outcome(1.0, 0.01, 1.0))
    assert float(pacer.remaining(state)) == 0.0
    assert float(pacer.act(state, 1e6)) == 0.0
    assert np.asarray(pacer.price(state)).dtype == np.float32


@pytest.mark.parametrize("name", NAMES)
@given(values=st.lists(st.integers(1, 50), min_size=1, max_size=40), budget=st.integers(1, 300))
def test_open_bids_that_are_held_back_cannot_overspend(name, values, budget):
    """Every answer comes after the last request, and every bid is charged whole."""
    pacer, held = pacers(float(budget), len(values))[name], 0.0
    state, bids = pacer.init(), []
    for value in values:
        bids.append(float(pacer.act(state, float(value), hold=held)))
        held += bids[-1]
        assert bids[-1] >= 0
    assert held <= budget * (1 + 1e-12)
    with pytest.raises(InputError, match="hold in round 1"):
        pacer.act(state, 1.0, hold=-1.0)


@pytest.mark.parametrize("name", NAMES)
def test_bad_outcomes_are_refused_and_leave_the_state(name):
    pacer = pacers(100.0, 10)[name]
    state = pacer.init()
    before = [np.array(part) for part in (pacer.remaining(state), pacer.price(state))]
    with pytest.raises(NonFiniteError, match="paid in round 1"):
        pacer.settle(state, Outcome(np.nan, 0.01, 1.0))
    with pytest.raises(InputError, match=r"paid in round 1: -1.0 is negative"):
        pacer.settle(state, Outcome(-1.0, 0.01, 1.0))
    with pytest.raises(InputError, match="has shape"):
        pacer.settle(state, Outcome(np.zeros(3), 0.01, 1.0))
    with pytest.raises(NonFiniteError, match="value in round 1"):
        pacer.act(state, np.inf)
    with pytest.raises(InputError, match="value in round 1"):
        pacer.act(state, -0.1)
    assert before == [np.array(part) for part in (pacer.remaining(state), pacer.price(state))]


# --- one definition, any shape --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_row_of_a_batch_is_the_single_run(name):
    log, budgets = synthetic_auctions(400, seed=1), np.array([500.0, 3000.0, 9000.0])
    batch = replay_auctions(pacers(budgets, len(log))[name], log)
    for k, budget in enumerate(budgets):
        single = replay_auctions(pacers(float(budget), len(log))[name], log)
        np.testing.assert_allclose(batch.paid[:, k], single.paid, rtol=1e-9)
        np.testing.assert_allclose(batch.price[:, k], single.price, rtol=1e-9)


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_lines_run_under_the_strict_standard_and_keep_the_dtype(name, dtype):
    xp = array_api_strict
    pacer = pacers(np.array([40.0, 400.0]), 30)[name]
    state, twin = pacer.init(xp=xp, dtype=getattr(xp, dtype)), pacer.init()
    rng = np.random.default_rng(2)
    for value, cost in zip(rng.uniform(0, 0.02, 30), rng.integers(1, 100, 30), strict=True):
        value, cost = (xp.asarray([float(number)] * 2, dtype=getattr(xp, dtype)) for number in (value, cost))
        bid = pacer.bid(state, value)
        paid = xp.where(bid >= cost, cost, xp.zeros_like(cost))
        state = pacer.update(state, Outcome(paid, value, cost))
        twin = pacer.update(twin, Outcome(np.asarray(paid), np.asarray(value), np.asarray(cost)))
    assert pacer.price(state).dtype == getattr(xp, dtype)
    assert state.spent.total.dtype == xp.float64
    if dtype == "float64":
        np.testing.assert_allclose(np.asarray(pacer.price(state)), np.asarray(pacer.price(twin)), rtol=1e-12)


# --- floors ---------------------------------------------------------------------------------------------------


@given(
    data=st.data(),
    mirror=st.sampled_from(["euclidean", "entropic"]),
    step=st.floats(0.01, 0.5),
    kappa=st.floats(0, 3),
    start=st.floats(0.2, 4),
)
def test_a_floor_is_met_up_to_its_shortfall_on_any_sequence_whose_demand_allows_it(data, mirror, step, kappa, start):
    horizon, ell, largest = data.draw(st.integers(5, 40)), 2.0, 12.0
    costs = data.draw(st.lists(st.floats(ell, largest), min_size=horizon, max_size=horizon))
    values = data.draw(st.lists(st.floats(0.5, 5), min_size=horizon, max_size=horizon))
    floor = ell * horizon
    pacer = DualMirrorDescent(floor + largest, horizon, step, start, mirror, floor, kappa)
    run = replay_auctions(pacer, Auctions(values, costs))
    at = 0.0 if mirror == "euclidean" else 0.5 / largest
    assert run.spent >= floor - floor_shortfall(pacer, buy_all_price=at) - 1e-6


def test_a_floor_asked_for_with_its_margin_is_met_and_costs_profit():
    log = synthetic_auctions(4000, seed=5)
    money = Auctions(log.values * 6000, log.prices)
    wanted, budget = 0.5 * log.total_price, 0.9 * log.total_price
    options = {"horizon": len(log), "step": 0.02, "start": 1.0, "mirror": "euclidean", "cost_weight": 1.0}
    free = replay_auctions(DualMirrorDescent(budget, **options), money)
    assert free.spent < wanted  # profit alone would not spend it
    margin = floor_shortfall(DualMirrorDescent(budget, floor=wanted, **options))
    held = replay_auctions(DualMirrorDescent(budget, floor=wanted + margin + 1, **options), money)
    assert wanted <= held.spent <= budget
    assert held.value - held.spent < free.value - free.spent
    best = best_in_hindsight(money.values, money.prices, budget, floor=wanted, cost_weight=1.0)
    assert held.value - held.spent <= best.upper_bound


# --- calibration and tuning -----------------------------------------------------------------------------------


def test_history_by_hand():
    history = PriceHistory([10.0, 20.0, 40.0], [5, 3, 2], mean_value=0.004)
    assert history.expected_payment(np.array([9.0, 10.0, 39.0, 40.0])) == pytest.approx([0.0, 5.0, 11.0, 19.0])
    assert history.deviation(20.0) == pytest.approx(np.sqrt(0.5 * 100 + 0.3 * 400 - 11**2))
    assert history.bid_for(np.array([1.0, 5.0, 5.1, 99.0])).tolist() == [10.0, 10.0, 20.0, 40.0]
    pacer = DualMirrorDescent.calibrated(1100.0, 100, history, trust=0.5)
    assert (float(pacer.start), float(pacer.step)) == pytest.approx((0.0002, 0.05 / 7.0), rel=1e-12)


def test_a_tuned_controller_takes_its_gain_from_practice():
    pacer = tuned_controller([2000.0, 8000.0], 1000, HISTORY, gains=(0.0, 20.0, 1e5), days=1)
    assert pacer.gain.tolist() == [20.0, 20.0]


def test_the_budget_is_used_where_demand_allows_and_drift_costs_value_but_never_money():
    past = PriceHistory.of(synthetic_auctions(5000, seed=21))
    missing = []
    for drift in (1.0, 4.0):
        log = synthetic_auctions(20_000, seed=22, drift=drift)
        budget = np.floor(log.total_price / 8)
        run = replay_auctions(DualMirrorDescent.calibrated(budget, len(log), past), log)
        assert 0.95 * budget <= run.spent <= budget
        missing.append(1 - float(run.value) / best_in_hindsight(log.values, log.prices, budget).objective)
    assert missing[1] > 3 * missing[0]


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"budget": 0.0}, "budget"),
        ({"horizon": 0}, "horizon"),
        ({"step": -1.0}, "step"),
        ({"start": 0.0}, "start"),
        ({"mirror": "round"}, "mirror"),
        ({"floor": 11.0}, "floor"),
        ({"cost_weight": -1.0}, "cost_weight"),
    ],
)
def test_bad_hyper_parameters_are_refused(change, argument):
    good = {"budget": 10.0, "horizon": 5, "step": 0.1, "start": 1.0}
    with pytest.raises(InputError, match=argument):
        DualMirrorDescent(**{**good, **change})


def test_the_price_follows_the_spend_error_exactly():
    """ln π_{T+1} = ln π_1 + η (spent − budget): why the entropic rule spends its budget."""
    log = synthetic_auctions(3000, seed=9)
    pacer = DualMirrorDescent.calibrated(20_000.0, len(log), HISTORY)
    run = replay_auctions(pacer, log)
    spent = np.concatenate([[0.0], np.cumsum(run.paid)])[:-1]
    error = spent - float(pacer.rate) * np.arange(len(log))
    np.testing.assert_allclose(np.log(run.price), np.log(float(pacer.start)) + float(pacer.step) * error, rtol=1e-9)
    assert all(later != earlier for earlier, later in pairwise(run.price.tolist()))
