"""Replay a log of auctions with a pacer: one loop for every rule, second price or first price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.money.pacing.auctions import Auctions
from longterm.money.pacing.base import Outcome, Pacer


@dataclass(frozen=True)
class PacingRun:
    """The bids and payments of a run, auction by auction; the pacers of a batch on the later axes.

    Parameters
    ----------
    auctions : Auctions
        The log.
    bids : array
        The bids.
    paid : array
        The payments, 0 for a lost auction.
    won : array
        1 where the auction was won, 0 elsewhere.
    price : array
        The price of money when the bid was made.
    """

    auctions: Auctions
    bids: FloatArray
    paid: FloatArray
    won: FloatArray
    price: FloatArray

    def __repr__(self) -> str:
        if self.paid.ndim > 1:
            return f"PacingRun({len(self.auctions)} auctions, {self.paid.shape[1:]} pacers)"
        totals = f"spent {float(self.spent):.4g}, won {int(self.won.sum())} worth {float(self.value):.4g}"
        return f"PacingRun({len(self.auctions)} auctions, {totals}, clicks {float(self.clicks):g})"

    @property
    def spent(self) -> FloatArray:
        """The total paid."""
        return np.asarray(self.paid.sum(axis=0))

    @property
    def value(self) -> FloatArray:
        """The sum of the values won."""
        return np.tensordot(self.auctions.values, self.won, axes=(0, 0))

    @property
    def clicks(self) -> FloatArray:
        """The number of clicks won."""
        return np.tensordot(self.auctions.clicks, self.won, axes=(0, 0))


def replay_auctions(pacer: Pacer[Any], auctions: Auctions) -> PacingRun:
    """Bid for every request of a log. A bid of at least the market price wins.

    A winner pays the market price, or its own bid where the pacer is made for first-price auctions.

    Parameters
    ----------
    pacer : Pacer
        The bidder.
    auctions : Auctions
        The log.

    Returns
    -------
    PacingRun
        The bids and payments.

    Examples
    --------
    >>> from longterm.money.pacing.auctions import Auctions
    >>> from longterm.money.pacing.mirror_descent import DualMirrorDescent
    >>> from longterm.money.pacing.auction_replay import replay_auctions
    >>> log = Auctions(values=[2.0, 2.0, 2.0], prices=[4, 9, 3])
    >>> pacer = DualMirrorDescent(budget=9.0, horizon=3, step=0.1, start=0.25, mirror="euclidean")
    >>> run = replay_auctions(pacer, log)  # bids 8; 2/0.35 = 5.7 (lost); 2/0.05 = 40, but only 5 are left
    >>> run.paid, run.price.round(2)
    (array([4., 0., 3.]), array([0.25, 0.35, 0.05]))
    """
    state, shape = pacer.init(), (len(auctions), *pacer.batch_shape)
    bids, paid, won, price = (np.empty(shape) for _ in range(4))
    for t, (value, market) in enumerate(zip(auctions.values.tolist(), auctions.prices.tolist(), strict=True)):
        price[t] = pacer.price(state)
        bids[t] = bid = pacer.bid(state, value)
        won[t] = is_won = bid >= market
        paid[t] = is_won * (bid if pacer.is_first_price else market)
        state = pacer.update(state, Outcome(paid[t], value, market, bid, is_won))
    return PacingRun(auctions, bids, paid, won, price)
