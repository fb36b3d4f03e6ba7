"""First-price auctions: landscapes by hand and against the truth, never overspending, the theorem, the real log."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import InputError
from longterm.errors import NonFiniteError, OverspentWarning
from longterm.money import Auctions, FirstPricePacer, Outcome, best_in_hindsight, replay_auctions
from longterm.money.pacing.landscapes import LostPrices, SeenPrices, WonOrLost

GRID = np.arange(11.0)
KINDS = {"seen": SeenPrices, "lost": LostPrices, "won": WonOrLost}


def learned(landscape, bids, prices, cell=0):
    counts = landscape.init()
    for bid, price in zip(bids, prices, strict=True):
        won = bid >= price
        told = price if isinstance(landscape, SeenPrices) or not won else None
        counts = landscape.learn(counts, cell, bid, won, told)
    return landscape.chance(counts, cell)


def test_the_product_limit_by_hand():
    # Grid 0 … 3. Bids 1, 1, 2, 0 against prices 1 (won), 3 (lost), 2 (won), 2 (lost).
    found = learned(LostPrices(np.arange(4.0), weight=0.0), [1, 1, 2, 0], [1, 3, 2, 2])
    # from the top: price 3 is 1 of the 4 at risk (b ≤ 2, d ≤ 3): G(2) = 3/4; price 2 is 1 of the 2 with b ≤ 1, d ≤
    # 2: G(1) = 3/8; price 1 was never lost, none at risk with b ≤ 0, d ≤ 1: G(0) = 3/8.
    np.testing.assert_allclose(found, [0.375, 0.375, 0.75, 1.0])


def test_a_price_beyond_the_grid_is_out_of_reach():
    for kind in (SeenPrices, LostPrices):
        found = learned(kind(np.arange(4.0), weight=0.0), [0, 0, 0, 0], [1, 2, 9, 9])
        np.testing.assert_allclose(found, [0.0, 0.25, 0.5, 0.5])


def test_isotonic_by_hand():
    """The first fit has ¼ at 1.5, where ½ and 0 are pooled, and 1 at 3. Its lines count for four auctions a bid."""
    found = learned(WonOrLost(np.arange(4.0), weight=0.0, smooth=4.0), [1, 1, 2, 2, 3], [1, 5, 5, 5, 1])
    np.testing.assert_allclose(found, [0.0, (1 + 4 / 6) / 6, (0 + 4 / 2) / 6, 1.0])
    with pytest.raises(InputError, match="straight"):
        WonOrLost(np.arange(4.0), straight=2.0)
    untried = learned(WonOrLost(np.arange(4.0), straight=0.3), [], [])  # one block: its line goes from 0 to its middle
    np.testing.assert_allclose(untried, 0.7 + 0.3 * np.minimum(np.arange(4.0) / 1.5, 1.0))


@pytest.mark.parametrize("name", list(KINDS))
def test_every_landscape_finds_the_law_of_prices(name):
    rng = np.random.default_rng(0)
    prices = rng.integers(0, 11, 20_000)
    bids = rng.integers(0, 11, 20_000)
    found = learned(KINDS[name](GRID, weight=0.0), bids, prices)
    np.testing.assert_allclose(found, np.arange(1, 12) / 11, atol=0.025)
    assert np.all(np.diff(found) >= -1e-12)


def test_censored_prices_are_used_better_than_wins_alone():
    rng = np.random.default_rng(1)
    errors = {"lost": [], "won": []}
    for _ in range(10):
        prices, bids = rng.integers(0, 11, 600), rng.integers(2, 9, 600)
        for name, kind in (("lost", LostPrices), ("won", WonOrLost)):
            found = learned(kind(GRID, weight=0.0), bids, prices)
            errors[name].append(np.abs(found - np.arange(1, 12) / 11)[2:9].max())
    assert np.mean(errors["lost"]) < np.mean(errors["won"])


def test_a_cell_that_saw_little_leans_on_all():
    landscape = SeenPrices(GRID, cells=2, weight=10.0)
    counts = landscape.init()
    for _ in range(100):
        counts = landscape.learn(counts, 0, 0.0, False, 4.0)
    assert landscape.chance(counts, 1)[4] == 1.0  # all it knows is the other cell
    for _ in range(1000):
        counts = landscape.learn(counts, 1, 0.0, False, 8.0)
    assert landscape.chance(counts, 1)[4] < 0.02
    assert landscape.chance(counts, 0)[4] > 0.9


def pacer(kind="seen", budget=100.0, horizon=50, grid=GRID, **options):
    options = {"start": 0.2, "step": 0.05, "mean_value": 3.0} | options
    return FirstPricePacer(budget, horizon, KINDS[kind](grid, cells=options.pop("cells", 3)), **options)


def test_the_bid_maximises_what_it_says_and_the_price_moves_as_it_says():
    made = pacer(budget=40.0, horizon=10, cells=1, mirror="euclidean", start=0.5, step=0.1, replan=False)
    state = made.init()
    for price in (2.0, 2.0, 5.0, 7.0):
        state = made.settle(state, Outcome(0.0, 3.0, price, 0.0))
    assert state.price == pytest.approx(0.0)
    state = state._replace(price=0.5)
    # G: 2 → ½, 5 → ¾, 7 → 1. (6 − b/2)G: 2 → 2.5, 5 → 2.625, 7 → 2.5
    assert made.act(state, 6.0) == 5.0
    after = made.settle(state, Outcome(5.0, 6.0, 4.0, 5.0))
    assert (after.price, made.remaining(after)) == (pytest.approx(0.5 + 0.1 * (5 - 4)), 35.0)
    entropic = pacer(budget=40.0, horizon=10, start=0.5, step=0.1)
    moved = entropic.settle(entropic.init(), Outcome(6.0, 3.0, 4.0, 6.0))
    assert moved.price == pytest.approx(0.5 * np.exp(0.1 * (6 - 4) / 4))


@pytest.mark.parametrize("name", list(KINDS))
@examples(60)
@given(
    requests=st.lists(st.tuples(st.floats(0, 20), st.integers(0, 15)), min_size=1, max_size=60),
    budget=st.integers(1, 60),
    replan=st.booleans(),
    mirror=st.sampled_from(["entropic", "euclidean"]),
)
def test_no_sequence_overspends(name, requests, budget, replan, mirror):
    values, prices = np.array(requests, dtype=float).T
    made = pacer(name, float(budget), len(values), replan=replan, mirror=mirror)
    run = replay_auctions(made, Auctions(values, prices))
    assert run.paid.sum() <= budget
    np.testing.assert_array_equal(run.paid, np.where(run.bids >= prices, run.bids, 0.0))


def test_regret_is_below_the_theorem_on_iid_auctions():
    rng = np.random.default_rng(5)
    T, rho = 4000, 1.5
    regrets = []
    law = np.arange(1, 12) / 11
    for _ in range(3):
        values, prices = rng.uniform(0, 10, T), rng.integers(0, 11, T).astype(float)
        made = FirstPricePacer(
            rho * T,
            T,
            SeenPrices(GRID, weight=0.0),
            start=1.0,
            step=10 / rho / 10 / np.sqrt(T),
            mirror="euclidean",
            replan=False,
        )
        run = replay_auctions(made, Auctions(values, prices))
        duals = [
            ((values[:, None] - lam * GRID) * law).max(axis=1).sum() + lam * rho * T for lam in np.linspace(0, 5, 101)
        ]
        regrets.append(min(duals) - run.value)
    assert np.mean(regrets) <= made.bound(10.0)
    assert made.bound(10.0) < np.mean(duals[0])  # it says something
    with pytest.raises(InputError, match="theorem does not cover"):
        pacer().bound(10.0)


def test_conditioning_on_the_request_is_where_the_gain_is():
    rng = np.random.default_rng(3)
    T = 8000
    good = rng.random(T) < 0.5  # good requests are dear, as on the real log
    values = np.where(good, 0.01, 0.003) * rng.uniform(0.8, 1.2, T)
    log = Auctions(values, np.where(good, rng.integers(40, 70, T), rng.integers(3, 12, T)))
    budget = float(np.floor(log.total_price / 4))
    best = best_in_hindsight(log.values, log.prices, budget).objective
    shares = {}
    for cells in (1, 10):
        made = FirstPricePacer(budget, T, SeenPrices(np.arange(101.0), cells=cells), 2e-4, 0.01, mean_value=0.005)
        run = replay_auctions(made, log)
        assert 0.97 * budget <= run.paid.sum() <= budget
        shares[cells] = run.value / best
    assert shares[1] + 0.05 < shares[10] < 1.0


@pytest.mark.parametrize("mirror", ["entropic", "euclidean"])
def test_what_was_spent_is_spent_and_open_bids_are_held_back(mirror):
    made = pacer(budget=10.0, horizon=5, start=0.01, mirror=mirror)
    state = made.settle(made.init(), Outcome(0.0, 100.0, 1.0, 0.0))  # lost: what it takes to win is known now
    assert made.act(state, 100.0) == made.act(state, 100.0, hold=9.0) == 1.0
    assert made.act(state, 100.0, hold=9.5) == 0.0
    with pytest.warns(OverspentWarning, match="paid in round 2: .* is recorded[.] It is 1e[+]50 over budget"):
        state = made.settle(state, Outcome(1e50, 100.0, 1.0, 1e50))
    assert made.overspent(state) == 1e50
    assert np.isfinite(state.price)
    assert made.act(state, 100.0) == 0.0
    with pytest.raises(InputError, match="hold in round 3"):
        made.act(state, 100.0, hold=-1.0)


def test_bad_input_is_refused():
    made = pacer()
    state = made.init()
    with pytest.raises(NonFiniteError, match="value in round 1"):
        made.act(state, np.nan)
    with pytest.raises(InputError, match="value in round 1"):
        made.act(state, -1.0)
    with pytest.raises(InputError, match="price: is missing"):
        made.settle(state, Outcome(2.0, 1.0, bid=2.0, won=True))
    with pytest.raises(InputError, match="won in round 1"):
        made.settle(state, Outcome(2.0, 1.0, bid=2.0))
    with pytest.raises(InputError, match="bids"):
        SeenPrices(np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="mirror"):
        pacer(mirror="round")
