"""The compiled loops and the single live bid are the reference, to the last auction."""

from __future__ import annotations

import numpy as np
import pytest

from longterm.errors import InputError, NonFiniteError, OverspentWarning
from longterm.pacing import (
    DualMirrorDescent,
    FirstPricePacer,
    LostPrices,
    Outcome,
    PlannedMirrorDescent,
    PriceHistory,
    PriceMixture,
    ProportionalController,
    SeenPrices,
    WonOrLost,
    play,
    play_first_price,
    synthetic_auctions,
)

pytest.importorskip("numba")
LOG = synthetic_auctions(3000, 1, drift=2.0)
HISTORY = PriceHistory.of(synthetic_auctions(3000, 0))
BUDGETS = np.array([0.02, 0.1, 0.4]) * LOG.total_price


def _dual(budget, **options):
    return DualMirrorDescent.calibrated(budget, len(LOG), HISTORY, **options)


PACERS = {
    "entropic": lambda b: _dual(b),
    "euclidean": lambda b: _dual(b, mirror="euclidean"),
    "floor": lambda b: _dual(b, floor=0.9 * b, cost_weight=1e-4),
    "floor, euclidean": lambda b: _dual(b, mirror="euclidean", floor=0.9 * b, cost_weight=1e-4),
    "planned": lambda b: PlannedMirrorDescent.calibrated(b, len(LOG), HISTORY),
    "controller": lambda b: ProportionalController.calibrated(b, len(LOG), HISTORY),
}


@pytest.mark.parametrize("name", PACERS)
@pytest.mark.parametrize("budget", [BUDGETS[1], BUDGETS, BUDGETS.reshape(3, 1)], ids=["one", "three", "column"])
def test_compiled_is_the_reference_to_the_last_auction(name, budget):
    pacer = PACERS[name](budget)
    made, reference = play(pacer, LOG, engine="compiled"), play(pacer, LOG, engine="numpy")
    np.testing.assert_array_equal(made.paid, reference.paid)
    np.testing.assert_array_equal(made.won, reference.won)
    np.testing.assert_allclose(made.price, reference.price, rtol=1e-12)
    assert made.paid.shape == reference.paid.shape
    np.testing.assert_array_equal(play(pacer, LOG).paid, made.paid)


def test_engines_that_are_not_there():
    mixture = PriceMixture.calibrated(BUDGETS[1], len(LOG), HISTORY)
    with pytest.raises(InputError, match="PriceMixture"):
        play(mixture, LOG, engine="compiled")
    with pytest.raises(InputError, match="engine"):
        play(mixture, LOG, engine="fast")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(PACERS)[:4])
def test_one_live_bid_is_the_rule(name):
    """Plain numbers take another way through the same arithmetic as arrays of one."""
    pacer, batch = PACERS[name](BUDGETS[1]), PACERS[name](BUDGETS[1:2])
    state, states = pacer.init(), batch.init()
    for value, cost in zip(LOG.values[:500].tolist(), LOG.prices[:500].tolist(), strict=True):
        bid, bids = pacer.act(state, value), batch.act(states, value)
        np.testing.assert_allclose(bid, bids[0], rtol=1e-12)
        paid = cost if bid >= cost else 0.0
        state, states = pacer.settle(state, Outcome(paid)), batch.settle(states, Outcome(np.array([paid])))
        np.testing.assert_allclose((state.price, state.remaining), (states.price[0], states.remaining[0]), rtol=1e-12)
        assert state.round == states.round
        assert isinstance(state.price, np.float64)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, -1, np.float64("nan")])
def test_plain_numbers_are_checked(bad):
    pacer = PACERS["entropic"](BUDGETS[1])
    state = pacer.settle(pacer.init(), Outcome(0.0))
    with pytest.raises((InputError, NonFiniteError), match="paid"):
        pacer.settle(state, Outcome(bad))
    with pytest.raises((InputError, NonFiniteError), match="value"):
        pacer.act(state, bad)


def test_a_charge_above_what_is_left_is_recorded():
    pacer = PACERS["entropic"](BUDGETS[1])
    state = pacer.settle(pacer.init(), Outcome(0.0))
    with pytest.warns(OverspentWarning):
        state = pacer.settle(state, Outcome(2 * BUDGETS[1]))
    assert state.remaining == -BUDGETS[1]
    assert pacer.act(state, 1.0) == 0.0


@pytest.mark.parametrize("landscape", [SeenPrices, LostPrices, WonOrLost])
@pytest.mark.parametrize("options", [{"step": 0.01}, {"step": 1e-7, "mirror": "euclidean", "replan": False}])
def test_compiled_first_price_bids_are_the_reference(landscape, options):
    """On a coarse grid that ends below some prices, with money that runs short, and on requests of several bands."""
    log = synthetic_auctions(600, 2, drift=2.0)
    pacer = FirstPricePacer(
        0.1 * log.total_price, 600, landscape(np.arange(0.0, 100.0, 3.0), 5), 1e-4, mean_value=0.0035, **options
    )
    one, other = (play_first_price(pacer, log, engine=engine) for engine in ("numpy", "compiled"))
    np.testing.assert_array_equal(one.bids, other.bids)
    np.testing.assert_allclose(one.price, other.price, rtol=1e-12)
    assert one.value == other.value


def test_a_landscape_of_ones_own_is_played_by_the_reference():
    class Own(SeenPrices):
        pass

    log = synthetic_auctions(20, 2)
    pacer = FirstPricePacer(100.0, 20, Own(np.arange(50.0)), 1e-4, 0.01)
    assert len(play_first_price(pacer, log).bids) == 20
    with pytest.raises(InputError, match=r"engine: there is no compiled loop for Own"):
        play_first_price(pacer, log, engine="compiled")
    with pytest.raises(InputError, match=r"engine: 'fast' is not known"):
        play_first_price(pacer, log, engine="fast")
