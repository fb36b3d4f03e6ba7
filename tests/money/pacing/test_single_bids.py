"""A single live bid, in plain numbers, follows the rule of a batch."""

from __future__ import annotations

import numpy as np
import pytest

from longterm.errors import InputError, NonFiniteError, OverspentWarning
from longterm.money import (
    DualMirrorDescent,
    Outcome,
    PriceHistory,
    synthetic_auctions,
)

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
}


@pytest.mark.parametrize("name", PACERS)
def test_one_live_bid_is_the_rule(name):
    """Plain numbers take another way through the same arithmetic as arrays of one."""
    pacer, batch = PACERS[name](BUDGETS[1]), PACERS[name](BUDGETS[1:2])
    state, states = pacer.init(), batch.init()
    for value, cost in zip(LOG.values[:500].tolist(), LOG.prices[:500].tolist(), strict=True):
        bid, bids = pacer.act(state, value), batch.act(states, value)
        np.testing.assert_allclose(bid, bids[0], rtol=1e-12)
        paid = cost if bid >= cost else 0.0
        state, states = pacer.settle(state, Outcome(paid)), batch.settle(states, Outcome(np.array([paid])))
        np.testing.assert_allclose(
            (state.price, pacer.remaining(state)), (states.price[0], batch.remaining(states)[0]), rtol=1e-12
        )
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
    assert pacer.overspent(state) == BUDGETS[1]
    assert pacer.act(state, 1.0) == 0.0


def test_a_price_at_its_anchor_keeps_its_type():
    pacer = DualMirrorDescent(10.0, 3, step=1.0, start=0.1, mirror="euclidean")
    state = pacer.init()
    for _ in range(3):
        state = pacer.update(state, Outcome(np.float64(0.0)))
        assert (state.price, type(state.price)) == (0.0, np.float64)
