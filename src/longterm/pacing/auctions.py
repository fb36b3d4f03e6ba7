"""Logs of auctions, invented ones among them, and what an earlier log leaves behind.

`PriceHistory` is what is known before the day begins: the prices of past auctions, and the mean value of a request.
From these come a first price of money and a step. If every request had the mean value v̄, a bid b would win the auctions
with price ≤ b, and spend per request

    S(b) = E[p · 1(p ≤ b)],   with deviation   sd(b) = √( E[p² · 1(p ≤ b)] − S(b)² ).

So the bid that spends a rate ρ is S⁻¹(ρ). That requests differ in value, and that dear requests are the valuable
ones, is left to the pacer to find out.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, namespace, rows_at
from longterm._validate import Hyper
from longterm.errors import DataError, InputError, did_you_mean


@dataclass(frozen=True, eq=False)
class Auctions:
    """A log, in the order of arrival: three arrays of one length.

    Parameters
    ----------
    clicks : array_like of shape (n,)
        1 where the ad was clicked, 0 elsewhere. Nobody knows it before the auction is over.
    prices : array_like of shape (n,)
        What the winner pays, in the currency of the log. Not known when the bid is made.
    values : array_like of shape (n,)
        The predicted click rate: what a request is worth. Known when the bid is made.

    Examples
    --------
    >>> from longterm.pacing import Auctions
    >>> log = Auctions(clicks=[0, 1], prices=[70, 6], values=[0.002, 0.003])
    >>> len(log), log.total_price
    (2, 76.0)
    >>> log[:1]  # a part of the day: yesterday's to learn from, today's to play
    Auctions(1 auctions, total price 70, mean value 0.002, clicks 0)
    """

    clicks: FloatArray
    prices: FloatArray
    values: FloatArray

    def __post_init__(self) -> None:
        prices = validate.vector("prices", self.prices)
        for name in ("clicks", "prices", "values"):
            array = validate.vector(name, getattr(self, name), len(prices))
            if np.any(array < 0):
                raise InputError(name, f"is negative in auction {int(np.argmax(array < 0)) + 1}", "Give numbers ≥ 0")
            validate.set_frozen(self, **{name: array})

    @classmethod
    def from_csv(
        cls, path: str | PathLike[str], *, values: str = "value", prices: str = "price", clicks: str | None = "click"
    ) -> Auctions:
        """A log of one's own: a CSV file with a header, an auction in each line, in the order of arrival.

        Parameters
        ----------
        path : str or path
        values, prices : str
            The columns of what a request is worth and of the market price.
        clicks : str, optional
            The column of what came of it; None, or a column that is not there: none came.

        Returns
        -------
        Auctions
        """
        try:
            with Path(path).open(newline="", encoding="utf-8-sig") as file:
                rows = csv.DictReader(file)
                names = list(rows.fieldnames or ())
                for wanted in (values, prices):
                    if wanted not in names:
                        what = f"has no column {wanted!r}{did_you_mean(wanted, names)}; there are {names}"
                        raise DataError(path, what, "Name the columns: values=…, prices=…, clicks=…")
                told = [name for name in (values, prices, clicks) if name in names]
                table = [[_number(row[name], name, path, rows.line_num) for name in told] for row in rows]
        except OSError as error:
            raise DataError(path, f"cannot be read ({error})", "Give a CSV file with a header") from error
        if not table:
            raise DataError(path, "has no auctions", "Give at least one line below the header")
        columns = dict(zip(told, np.asarray(table, dtype=np.float64).T, strict=True))
        came = columns[clicks] if clicks in columns else np.zeros(len(table))
        return cls(clicks=came, prices=columns[prices], values=columns[values])

    def __len__(self) -> int:
        return len(self.prices)

    def __getitem__(self, part: slice) -> Auctions:
        """The auctions of a slice."""
        if not isinstance(part, slice):
            raise InputError("auctions", f"{part!r} is no slice", "Give one, log[:1000]; log.values[0] is one number")
        return Auctions(self.clicks[part], self.prices[part], self.values[part])

    def __repr__(self) -> str:
        mean = self.values.mean() if len(self) else 0.0
        words = f"total price {self.total_price:.4g}, mean value {mean:.4g}, clicks {self.clicks.sum():g}"
        return f"Auctions({len(self)} auctions, {words})"

    def shuffled(self, seed: int) -> Auctions:
        """The same auctions in random order: what drift there was is gone."""
        order = np.random.default_rng(seed).permutation(len(self))
        return Auctions(self.clicks[order], self.prices[order], self.values[order])

    @property
    def total_price(self) -> float:
        """What it would cost to win every auction."""
        return float(self.prices.sum())


def _number(text: str | None, column: str, path: str | PathLike[str], line: int) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise DataError(path, f"{column} is {text!r}, not a number", "Give a number", line=line) from None


def synthetic_auctions(rounds: int, seed: int, *, drift: float = 1.0) -> Auctions:
    """An invented log: whole prices 1 to 300 with a long tail, dearer where the click rate is higher.

    Click rates are log-normal about 0.4 %. Without drift, requests are independent and identically distributed: what
    the theorem asks for.

    Parameters
    ----------
    rounds : int
        How many auctions.
    seed : int
        Of the draws.
    drift : float
        The factor by which click rates grow from the first auction to the last.

    Returns
    -------
    Auctions
        The log.
    """
    rng = np.random.default_rng(seed)
    rounds = validate.dimension("rounds", rounds)
    drift = validate.positive_scalar("drift", drift)
    talent = rng.standard_normal(rounds)
    values = np.minimum(0.0035 * np.exp(0.4 * talent) * drift ** np.linspace(-0.5, 0.5, rounds), 1.0)
    noise = 0.4 * talent + np.sqrt(1 - 0.4**2) * rng.standard_normal(rounds)
    prices = np.clip(np.round(35 * np.exp(noise)), 1, 300)
    return Auctions((rng.random(rounds) < values).astype(np.float64), prices, values)


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
        validate.set_frozen(self, prices=prices, counts=counts, mean_value=mean_value)

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
