"""What is known before the day begins: the prices of past auctions, and the mean value of a request.

From these come a first price of money and a step. If every request had the mean value v̄, a bid b would
win the auctions with price ≤ b, and spend per request

    S(b) = E[p · 1(p ≤ b)],   with deviation   sd(b) = √( E[p² · 1(p ≤ b)] − S(b)² ).

So the bid that spends a rate ρ is S⁻¹(ρ). That requests differ in value, and that dear requests are the valuable
ones, is left to the pacer to find out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, namespace, rows_at
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.pacing.auctions import Auctions


@dataclass(frozen=True, eq=False)
class PriceHistory:
    """A histogram of past prices.

    Parameters
    ----------
    prices, counts : array_like of shape (k,)
        The prices, increasing, and how often each was seen.
    mean_value : float
        Of a past request.

    Examples
    --------
    >>> from longterm.pacing import PriceHistory
    >>> history = PriceHistory(prices=[10.0, 20.0, 40.0], counts=[5, 3, 2], mean_value=0.004)
    >>> float(history.spend_rate(20.0)), float(history.bid_for(11.0))
    (11.0, 20.0)
    """

    prices: FloatArray
    counts: FloatArray
    mean_value: float

    def __post_init__(self) -> None:
        prices = validate.vector("prices", self.prices)
        counts = validate.vector("counts", self.counts, len(prices))
        if np.any(np.diff(prices) <= 0) or prices[0] < 0:
            raise InputError("prices", "are not increasing from at least 0", "Sort them, and add up equal ones")
        if np.any(counts < 0) or counts @ prices <= 0:
            raise InputError("counts", "have nothing at any positive price", "Count at least one paid auction")
        mean_value = validate.positive_scalar("mean_value", self.mean_value)
        validate.remember(self, prices=prices, counts=counts, mean_value=mean_value)

    def __repr__(self) -> str:
        between = f"prices {self.prices[0]:.4g} to {self.prices[-1]:.4g}"
        return f"PriceHistory({self.counts.sum():g} auctions, {between}, mean value {self.mean_value:.4g})"

    @classmethod
    def of(cls, auctions: Auctions) -> PriceHistory:
        """The history that an earlier log leaves behind."""
        prices, counts = np.unique(auctions.prices, return_counts=True)
        return cls(prices, counts.astype(np.float64), float(auctions.values.mean()))

    def _moment(self, bid: Hyper, power: int) -> FloatArray:
        """E[p^power · 1(p ≤ bid)]."""
        return np.asarray(self._sums(power)[np.searchsorted(self.prices, bid, side="right")])

    def _sums(self, power: int) -> FloatArray:
        share = self.counts / self.counts.sum()
        return np.concatenate([[0.0], np.cumsum(share * self.prices**power)])

    @cached_property
    def _payments(self) -> FloatArray:
        return self._sums(1)

    def expected_payment(self, bid: Array) -> Array:
        """S(b) for bids in any array library, once for every request: what `spend_rate` says."""
        if isinstance(bid, (float, np.floating, np.ndarray)):
            return self._payments[np.searchsorted(self.prices, bid, side="right")]
        xp = namespace(bid)
        place = xp.searchsorted(like(self.prices, bid), xp.reshape(bid, (-1,)), side="right")
        return rows_at(like(self._payments, bid), xp.reshape(place, bid.shape))

    def spend_rate(self, bid: Hyper) -> FloatArray:
        """S(b): the expected payment of one request at this bid."""
        return self._moment(bid, 1)

    def deviation(self, bid: Hyper) -> FloatArray:
        """sd(b): the standard deviation of the payment of one request at this bid."""
        return np.sqrt(np.maximum(self._moment(bid, 2) - self.spend_rate(bid) ** 2, 0.0))

    def bid_for(self, rate: Hyper) -> FloatArray:
        """The lowest past price b with S(b) ≥ rate; the highest of all where no bid spends that much."""
        paid = self.prices[(self.counts > 0) & (self.prices > 0)]
        # A rate is a quotient of rounded numbers: equal to S(b) up to rounding counts as equal.
        index = np.searchsorted(self.spend_rate(paid), np.asarray(rate) * (1 - 1e-12))
        return np.asarray(paid[np.minimum(index, len(paid) - 1)])

    def draw(self, rounds: int, seed: int, *, spread: float = 0.4) -> Auctions:
        """A day to practise on: prices drawn from the histogram, values log-normal about their mean.

        The histogram knows nothing of values beyond their mean: the spread is an assumption, and values are drawn
        independently of prices. Clicks are drawn from the values.
        """
        rng = np.random.default_rng(seed)
        prices = rng.choice(self.prices, size=rounds, p=self.counts / self.counts.sum())
        values = self.mean_value * np.exp(spread * rng.standard_normal(rounds) - spread**2 / 2)
        return Auctions((rng.random(rounds) < values).astype(np.float64), prices, values)
