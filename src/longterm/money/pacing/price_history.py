"""The prices of past auctions, from which pacers take a first price of money and a step.

If every request had the mean value v̄, a bid b would win the auctions with price ≤ b, and spend per request

    S(b) = E[p · 1(p ≤ b)],   with deviation   sd(b) = √( E[p² · 1(p ≤ b)] − S(b)² ).

So the bid that spends a rate ρ is S⁻¹(ρ). The pacer learns during the day that requests differ in value, and that
valuable requests are expensive.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, namespace, rows_at
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.money.budgets import in_range, positive_scalar_in_range
from longterm.money.pacing.auctions import Auctions


@dataclass(frozen=True, eq=False)
class PriceHistory:
    """A histogram of past prices.

    Parameters
    ----------
    prices, counts : array_like of shape (k,)
        The prices, increasing, and the number of auctions at each.
    mean_value : float
        The mean value of a past request.

    Examples
    --------
    >>> from longterm.money.pacing.price_history import PriceHistory
    >>> history = PriceHistory(prices=[10.0, 20.0, 40.0], counts=[5, 3, 2], mean_value=0.004)
    >>> float(history.expected_payment(20.0)), float(history.bid_for(11.0))
    (11.0, 20.0)
    """

    prices: FloatArray
    counts: FloatArray
    mean_value: float

    def __post_init__(self) -> None:
        prices = validate.vector("prices", self.prices)
        counts = validate.vector("counts", self.counts, len(prices))
        if np.any(np.diff(prices) <= 0) or prices[0] < 0:
            raise InputError("prices", "are not increasing from at least 0", "Sort them and merge equal prices")
        in_range("prices", prices)
        in_range("counts", counts)
        if counts @ prices <= 0:
            raise InputError("counts", "are 0 at every positive price", "Count at least one paid auction")
        mean_value = positive_scalar_in_range("mean_value", self.mean_value)
        validate.set_frozen(self, prices=prices, counts=counts, mean_value=mean_value)

    def __repr__(self) -> str:
        between = f"prices {self.prices[0]:.4g} to {self.prices[-1]:.4g}"
        return f"PriceHistory({self.counts.sum():g} auctions, {between}, mean value {self.mean_value:.4g})"

    @classmethod
    def of(cls, auctions: Auctions) -> PriceHistory:
        """Return the history of an earlier log."""
        prices, counts = np.unique(auctions.prices, return_counts=True)
        return cls(prices, counts.astype(np.float64), float(auctions.values.mean()))

    def _sums(self, power: int) -> FloatArray:
        """Return E[p^power · 1(p ≤ b)] for b below all prices, and at each of them."""
        share = self.counts / self.counts.sum()
        return np.concatenate([[0.0], np.cumsum(share * self.prices**power)])

    @cached_property
    def _payments(self) -> FloatArray:
        return self._sums(1)

    def expected_payment(self, bid: Array) -> Array:
        """Return S(b), the expected payment of one request at this bid, for bids of any array library."""
        if isinstance(bid, (float, np.floating, np.ndarray)):
            return self._payments[np.searchsorted(self.prices, bid, side="right")]
        xp = namespace(bid)
        place = xp.searchsorted(like(self.prices, bid), xp.reshape(bid, (-1,)), side="right")
        return rows_at(like(self._payments, bid), xp.reshape(place, bid.shape))

    def deviation(self, bid: Hyper) -> FloatArray:
        """Return sd(b), the standard deviation of the payment of one request at this bid."""
        square = self._sums(2)[np.searchsorted(self.prices, bid, side="right")]
        return np.asarray(np.sqrt(np.maximum(square - self.expected_payment(np.asarray(bid)) ** 2, 0.0)))

    def bid_for(self, rate: Hyper) -> FloatArray:
        """Return the lowest past price b with S(b) ≥ rate, or the highest price if no bid spends that much."""
        paid = self.prices[(self.counts > 0) & (self.prices > 0)]
        # A rate is a quotient of rounded numbers, so equality is meant up to rounding.
        index = np.searchsorted(self.expected_payment(paid), np.asarray(rate) * (1 - 1e-12))
        return np.asarray(paid[np.minimum(index, len(paid) - 1)])

    def draw(self, rounds: int, seed: int, *, spread: float = 0.4) -> Auctions:
        """Draw a day of auctions for practice: prices from the histogram, log-normal values, clicks from the values.

        The histogram has only the mean of the values. Their `spread` is an assumption, and they are drawn independently
        of the prices.
        """
        rng = np.random.default_rng(seed)
        prices = rng.choice(self.prices, size=rounds, p=self.counts / self.counts.sum())
        values = self.mean_value * np.exp(spread * rng.standard_normal(rounds) - spread**2 / 2)
        return Auctions(values, prices, (rng.random(rounds) < values).astype(np.float64))
