r"""Landscapes: estimates of the probability that a bid wins, for each cell of requests.

G(b | z) = P(highest bid of the others ≤ b | z) on a grid of bids, z a cell of requests. Three kinds of feedback:

    SeenPrices     the market price of every auction: an empirical distribution
    LostPrices     the price of lost auctions only: the product-limit estimator
    WonOrLost      nothing but the result: isotonic regression of wins on bids

All cells together count as `weight` auctions in each cell, which matters in cells with little data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.money.budgets import in_range, positive_scalar_in_range, scalar_in_range


class PriceCounts(NamedTuple):
    """Two histograms over the grid, shape (cells + 1, bids + 1); the last row is for all cells together."""

    first: FloatArray
    second: FloatArray


@dataclass(frozen=True, eq=False)
class Landscape(ABC):
    """An estimate of the winning probability of each bid of a grid.

    Parameters
    ----------
    bids : array
        The grid, increasing from 0. A price above its end is out of reach.
    cells : int
        The number of cells of requests.
    weight : float
        The weight of all cells together in one cell, in auctions.
    """

    bids: FloatArray
    cells: int = 1
    weight: float = 20.0

    def __post_init__(self) -> None:
        bids = validate.vector("bids", self.bids)
        in_range("bids", bids[-1:])
        if len(bids) < 2 or bids[0] != 0 or np.any(np.diff(bids) <= 0):
            raise InputError(
                "bids", "are not an increasing grid that starts at 0", "Give a grid such as numpy.arange(301.0)"
            )
        validate.set_frozen(self, bids=bids)
        validate.validate_fields(self, validate.count, "cells")
        validate.validate_fields(self, scalar_in_range, "weight")

    def init(self) -> PriceCounts:
        """Return empty histograms."""
        shape = (self.cells + 1, len(self.bids) + 1)
        return PriceCounts(np.zeros(shape), np.zeros(shape))

    def chance(self, counts: PriceCounts, cell: int) -> FloatArray:
        """Return Ĝ(· | cell) on the grid, non-decreasing."""
        total = float(counts.first[-1].sum() + counts.second[-1].sum())
        share = self.weight / total if total else 0.0
        return self.estimate(
            counts.first[cell] + share * counts.first[-1], counts.second[cell] + share * counts.second[-1]
        )

    def place(self, bid: float) -> int:
        """Return the index of the last grid bid that is at most `bid`."""
        return int(np.searchsorted(self.bids, bid, side="right")) - 1

    @abstractmethod
    def estimate(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return Ĝ on the grid from one cell's histograms."""

    @abstractmethod
    def learn(self, counts: PriceCounts, cell: int, bid: float, won: bool, price: float | None) -> PriceCounts:
        """Return the histograms after an auction. `price` is the market price, if it is known."""

    def _price_place(self, price: float) -> int:
        """Return the index of the first grid bid that wins at this price, or the length of the grid if none does."""
        return int(np.searchsorted(self.bids, price, side="left"))


@dataclass(frozen=True, eq=False)
class SeenPrices(Landscape):
    """The empirical distribution of prices, for full feedback.

    Parameters
    ----------
    bids, cells, weight : array, int, float
        As in `Landscape`.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.money.pacing.landscapes import SeenPrices
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

    def learn(self, counts: PriceCounts, cell: int, bid: float, won: bool, price: float | None) -> PriceCounts:
        if price is None:
            raise InputError(
                "price", "is missing. SeenPrices needs the price of every auction", "Give it, or use LostPrices"
            )
        return counts._replace(first=_incremented(counts.first, cell, self._price_place(price)))


@dataclass(frozen=True, eq=False)
class LostPrices(Landscape):
    r"""The reversed product-limit estimator (Kaplan and Meier 1958), for prices of lost auctions only.

    .. math::

        Ĝ(b_{j-1}) = Ĝ(b_j) (1 − e_j/n_j), \qquad n_j = \#\{s: b_s ≤ b_{j-1},\; d_s ≤ b_j\}, \qquad
        e_j = \#\{… d_s > b_{j-1}\}

    Both are observable: a loss shows d_s, and a win at b_s ≤ b_{j−1} implies d_s ≤ b_j. So n_j counts losses with
    d_s ≤ b_j and wins with b_s ≤ b_{j−1}. The estimator is consistent if d_s is independent of b_s given the cell.
    Where nothing was seen (n_j = 0) the lower bid counts as much as the higher, so that it is tried.

    Parameters
    ----------
    bids, cells, weight : array, int, float
        As in `Landscape`.
    """

    def estimate(self, first: FloatArray, second: FloatArray) -> FloatArray:
        lost, won = first, second
        at_risk = np.cumsum(lost)[1:] + np.cumsum(won)[:-1]  # n_j for j ≥ 1; the last is beyond the grid
        survival = 1.0 - np.divide(lost[1:], at_risk, out=np.zeros(len(lost) - 1), where=at_risk > 0)
        return np.asarray(np.cumprod(survival[::-1])[::-1])

    def learn(self, counts: PriceCounts, cell: int, bid: float, won: bool, price: float | None) -> PriceCounts:
        if won:
            return counts._replace(second=_incremented(counts.second, cell, self.place(bid)))
        if price is None:
            raise InputError(
                "price", "is missing. LostPrices needs the price of every lost auction", "Give it, or use WonOrLost"
            )
        return counts._replace(first=_incremented(counts.first, cell, self._price_place(price)))


@dataclass(frozen=True, eq=False)
class WonOrLost(Landscape):
    """Isotonic regression of wins on bids, for feedback of wins and losses only; 1 above the highest bid tried.

    The fit is a step function, and a bidder would bid at the foot of a step, where few lucky auctions decide. So there
    are two fits. Straight lines through the blocks of the first (mean bid, share won) count as `smooth` auctions at
    every bid in the second. The result is a mixture of the second fit's steps and of the lines through its blocks.

    Parameters
    ----------
    bids, cells, weight : array, int, float
        As in `Landscape`.
    smooth : float
        The weight of the first fit's lines at each bid, in auctions.
    straight : float
        The share of lines in the result: 0 is steps, 1 is lines.
    """

    smooth: float = 10.0
    straight: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.validate_fields(self, positive_scalar_in_range, "smooth")
        if not 0 <= self.straight <= 1:
            raise InputError("straight", f"{self.straight} is not a share", "Give a number from 0 to 1")

    def estimate(self, first: FloatArray, second: FloatArray) -> FloatArray:
        lost, won = first[:-1], second[:-1]
        _, lines = self._fit(lost, won)
        steps, lines = self._fit(lost + self.smooth * (1 - lines), won + self.smooth * lines)
        return (1 - self.straight) * steps + self.straight * lines

    def _fit(self, lost: FloatArray, won: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the isotonic regression as steps and as lines through its blocks, from (0, 0)."""
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

    def learn(self, counts: PriceCounts, cell: int, bid: float, won: bool, price: float | None) -> PriceCounts:
        place = self.place(bid)
        if won:
            return counts._replace(second=_incremented(counts.second, cell, place))
        return counts._replace(first=_incremented(counts.first, cell, place))


def _incremented(histogram: FloatArray, cell: int, place: int) -> FloatArray:
    """Return the histogram with one more auction at a place of a cell."""
    histogram = histogram.copy()
    histogram[cell, place] += 1.0
    histogram[-1, place] += 1.0
    return histogram
