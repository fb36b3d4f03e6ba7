"""Replay a log against a pacer: second-price auctions, request by request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.pacing.auctions import Auctions
from longterm.pacing.base import Outcome, Pacer


@dataclass(frozen=True)
class Run:
    """What happened, auction by auction: the auctions first, then the pacers of a batch."""

    auctions: Auctions
    paid: FloatArray
    won: FloatArray
    """1 where the auction was won, 0 elsewhere."""
    price: FloatArray
    """The price of money in force."""

    @property
    def spent(self) -> FloatArray:
        """The total paid."""
        return np.asarray(self.paid.sum(axis=0))

    @property
    def value(self) -> FloatArray:
        """The sum of the values won: the clicks that the predictions promise."""
        return np.tensordot(self.auctions.values, self.won, axes=(0, 0))

    @property
    def clicks(self) -> FloatArray:
        """The clicks that came."""
        return np.tensordot(self.auctions.clicks, self.won, axes=(0, 0))


def play(pacer: Pacer[Any], auctions: Auctions) -> Run:
    """Let the pacer bid for every request; it wins where its bid is at least the market price, and pays that price.

    >>> from longterm.pacing import Auctions, DualMirrorDescent, play
    >>> log = Auctions(clicks=[0, 1, 0], prices=[4, 9, 3], values=[2.0, 2.0, 2.0])
    >>> pacer = DualMirrorDescent(budget=9.0, horizon=3, step=0.1, start=0.25, mirror="euclidean")
    >>> run = play(pacer, log)  # bids 8; 2/0.35 = 5.7 (lost); 2/0.05 = 40, but only 5 are left
    >>> run.paid, run.price.round(2)
    (array([4., 0., 3.]), array([0.25, 0.35, 0.05]))
    """
    state = pacer.init()
    shape = (len(auctions), *pacer.batch_shape)
    paid, price = np.empty(shape), np.empty(shape)
    won = np.empty(shape)
    for t, (value, cost) in enumerate(zip(auctions.values.tolist(), auctions.prices.tolist(), strict=True)):
        price[t] = pacer.price(state)
        won[t] = pacer.bid(state, value) >= cost
        paid[t] = won[t] * cost
        state = pacer.update(state, Outcome(paid[t], value, cost))
    return Run(auctions, paid, won, price)
