r"""Landscapes: how likely a bid wins, learned from what the exchange tells, for each kind of request.

G(b | z) = P(highest bid of the others ≤ b | z) on a grid of bids, z a cell of requests. Three kinds of feedback:

    SeenPrices     the market price of every auction: counts
    LostPrices     the price only of auctions that were lost (a winner pays its own bid and learns nothing more):
                   the product-limit estimator
    WonOrLost      nothing but the result: isotonic regression of wins on bids

A cell that has seen little leans on all cells together, as on `weight` auctions of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError


class Counts(NamedTuple):
    """Two histograms over the grid for each cell, shape (cells + 1, bids); the last row is all cells together."""

    first: FloatArray
    second: FloatArray


@dataclass(frozen=True, eq=False)
class Landscape(ABC):
    """How likely each bid of a grid wins.

    Parameters
    ----------
    bids : array
        The grid, increasing from 0. A price above its end counts as out of reach.
    cells : int
        How many kinds of requests are told apart.
    weight : float
        How many auctions of its own all cells together count for in a cell.
    """

    bids: FloatArray
    cells: int = 1
    weight: float = 20.0

    def __post_init__(self) -> None:
        bids = validate.vector("bids", self.bids)
        if len(bids) < 2 or bids[0] != 0 or np.any(np.diff(bids) <= 0):
            raise InputError("bids", "do not increase from 0", "Give a grid, numpy.arange(301.0) for example")
        validate.set_frozen(self, bids=bids)
        validate.validate_fields(self, validate.count, "cells")
        validate.validate_fields(self, validate.non_negative_scalar, "weight")

    def init(self) -> Counts:
        """Nothing seen."""
        shape = (self.cells + 1, len(self.bids) + 1)
        return Counts(np.zeros(shape), np.zeros(shape))

    def chance(self, counts: Counts, cell: int) -> FloatArray:
        """Ĝ(· | cell) on the grid, non-decreasing."""
        total = float(counts.first[-1].sum() + counts.second[-1].sum())
        lean = self.weight / total if total else 0.0
        return self.estimate(
            counts.first[cell] + lean * counts.first[-1], counts.second[cell] + lean * counts.second[-1]
        )

    def place(self, bid: float) -> int:
        """The last grid bid that is at most `bid`."""
        return int(np.searchsorted(self.bids, bid, side="right")) - 1

    @abstractmethod
    def estimate(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Ĝ on the grid from one cell's histograms."""

    @abstractmethod
    def learn(self, counts: Counts, cell: int, bid: float, won: bool, price: float | None) -> Counts:
        """The histograms after an auction. `price` is that of the market, where it is told."""

    def _price_place(self, price: float) -> int:
        """The first grid bid that wins against this price; one beyond the grid if none does."""
        return int(np.searchsorted(self.bids, price, side="left"))


@dataclass(frozen=True, eq=False)
class SeenPrices(Landscape):
    """Full feedback: the empirical law of prices.

    Parameters
    ----------
    bids : array
        The grid, increasing from 0. A price above its end counts as out of reach.
    cells : int
        How many kinds of requests are told apart.
    weight : float
        How many auctions of its own all cells together count for in a cell.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.pacing import SeenPrices
    >>> prices = SeenPrices(np.arange(4.0))
    >>> counts = prices.init()
    >>> for price in (1.0, 1.0, 3.0, 9.0):
    ...     counts = prices.learn(counts, 0, 0.0, False, price)
    >>> prices.chance(counts, 0)
    array([0.  , 0.5 , 0.5 , 0.75])
    """

    def estimate(self, first: FloatArray, second: FloatArray) -> FloatArray:
        total = np.cumsum(first)
        return np.ones(len(self.bids)) if total[-1] == 0 else np.asarray(total[:-1] / total[-1])

    def learn(self, counts: Counts, cell: int, bid: float, won: bool, price: float | None) -> Counts:
        if price is None:
            raise InputError("price", "is missing", "SeenPrices needs the price of every auction; take LostPrices")
        return counts._replace(first=_counted(counts.first, cell, self._price_place(price)))


@dataclass(frozen=True, eq=False)
class LostPrices(Landscape):
    r"""The price of lost auctions only: the reversed product-limit estimator (Kaplan and Meier 1958, read from the
    top).

    .. math::

        Ĝ(b_{j-1}) = Ĝ(b_j) (1 − e_j/n_j), \qquad n_j = \#\{s: b_s ≤ b_{j-1},\; d_s ≤ b_j\}, \qquad
        e_j = \#\{… d_s > b_{j-1}\}

    Both are observable: a loss shows d_s, and a win at b_s ≤ b_{j−1} implies d_s ≤ b_j. So n_j counts losses with
    d_s ≤ b_j and wins with b_s ≤ b_{j−1}: two histograms are all it needs. Consistent where d_s is independent of
    b_s given the cell. Where nothing was seen (n_j = 0) the lower bid counts as good as the higher: optimism, which
    tries it.

    Parameters
    ----------
    bids : array
        The grid, increasing from 0. A price above its end counts as out of reach.
    cells : int
        How many kinds of requests are told apart.
    weight : float
        How many auctions of its own all cells together count for in a cell.
    """

    def estimate(self, first: FloatArray, second: FloatArray) -> FloatArray:
        lost, won = first, second
        at_risk = np.cumsum(lost)[1:] + np.cumsum(won)[:-1]  # n_j for j = 1 …; the last is beyond the grid
        kept = 1.0 - np.divide(lost[1:], at_risk, out=np.zeros(len(lost) - 1), where=at_risk > 0)
        return np.asarray(np.cumprod(kept[::-1])[::-1])

    def learn(self, counts: Counts, cell: int, bid: float, won: bool, price: float | None) -> Counts:
        if won:
            return counts._replace(second=_counted(counts.second, cell, self.place(bid)))
        if price is None:
            raise InputError("price", "of a lost auction is missing", "Give it, or take WonOrLost")
        return counts._replace(first=_counted(counts.first, cell, self._price_place(price)))


@dataclass(frozen=True, eq=False)
class WonOrLost(Landscape):
    """Wins and losses only: the share won at each bid, made monotone by isotonic regression; 1 where nothing higher
    was tried.

    The fit itself is steps, and a bidder looks for the foot of the highest: few auctions at a lucky bid then decide.
    So there are two fits. Straight lines through the blocks of the first (mean bid, share won) count for `smooth`
    auctions at every bid in the second, and what is returned lies a part `straight` of the way from its steps to the
    lines through its blocks.

    Parameters
    ----------
    bids : array
        The grid, increasing from 0. A price above its end counts as out of reach.
    cells : int
        How many kinds of requests are told apart.
    weight : float
        How many auctions of its own all cells together count for in a cell.
    smooth : float
        How many auctions the lines of the first fit count for at each bid.
    straight : float
        How far from steps (0) to lines (1).
    """

    smooth: float = 10.0
    straight: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.validate_fields(self, validate.positive_scalar, "smooth")
        if not 0 <= self.straight <= 1:
            raise InputError("straight", f"{self.straight} is no part of the way", "Give a number from 0 to 1")

    def estimate(self, first: FloatArray, second: FloatArray) -> FloatArray:
        lost, won = first[:-1], second[:-1]
        _, lines = self._fitted(lost, won)
        steps, lines = self._fitted(lost + self.smooth * (1 - lines), won + self.smooth * lines)
        return (1 - self.straight) * steps + self.straight * lines

    def _fitted(self, lost: FloatArray, won: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Isotonic regression as steps, up to the next bid tried, and as lines through its blocks, from (0, 0)."""
        tried, every = lost + won, np.arange(len(self.bids))
        on = np.flatnonzero(tried > 0)
        if not len(on):
            return np.ones(len(every)), np.ones(len(every))
        fit = isotonic_regression(won[on] / tried[on], weights=tried[on])
        steps = np.append(np.asarray(fit.x), 1.0)[np.searchsorted(on, every)]
        begins = fit.blocks[:-1]
        middle = np.add.reduceat(tried[on] * self.bids[on], begins) / np.add.reduceat(tried[on], begins)
        share = fit.x[begins]
        if middle[0] > 0:
            middle, share = np.append(0.0, middle), np.append(0.0, share)
        return steps, np.where(self.bids > middle[-1], steps, np.interp(self.bids, middle, share))

    def learn(self, counts: Counts, cell: int, bid: float, won: bool, price: float | None) -> Counts:
        place = self.place(bid)
        if won:
            return counts._replace(second=_counted(counts.second, cell, place))
        return counts._replace(first=_counted(counts.first, cell, place))


def _counted(histogram: FloatArray, cell: int, place: int) -> FloatArray:
    counted = histogram.copy()
    counted[cell, place] += 1.0
    counted[-1, place] += 1.0
    return counted
