"""Logs of auctions, invented ones among them, and what a pacer makes of one: second price, request by request."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import DataError, InputError, did_you_mean
from longterm.pacing.base import Outcome, Pacer


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
            validate.remember(self, **{name: array})

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


@dataclass(frozen=True)
class Replay:
    """What happened, auction by auction: the auctions first, then the pacers of a batch.

    Parameters
    ----------
    auctions : Auctions
        What was played.
    paid : array
        What was paid, 0 for a lost auction.
    won : array
        1 where the auction was won, 0 elsewhere.
    price : array
        The price of money in force.
    """

    auctions: Auctions
    paid: FloatArray
    won: FloatArray
    price: FloatArray

    def __repr__(self) -> str:
        if self.paid.ndim > 1:
            return f"Replay({len(self.auctions)} auctions, {self.paid.shape[1:]} pacers)"
        totals = f"spent {float(self.spent):.4g}, won {int(self.won.sum())} worth {float(self.value):.4g}"
        return f"Replay({len(self.auctions)} auctions, {totals}, clicks {float(self.clicks):g})"

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


def play(pacer: Pacer[Any], auctions: Auctions, *, engine: Literal["auto", "numpy", "compiled"] = "auto") -> Replay:
    """Let the pacer bid for every request; it wins where its bid is at least the market price, and pays that price.

    Parameters
    ----------
    pacer : Pacer
        Who bids.
    auctions : Auctions
        What is bid for.
    engine : {"auto", "numpy", "compiled"}
        "numpy" is the reference: the pacer's own rule, auction by auction. "compiled" (extra `linear`) is the same a
        hundred times faster, for dual and planned mirror descent and the controller. "auto" takes it where it is there.

    Returns
    -------
    Replay
        What happened.

    Examples
    --------
    >>> from longterm.pacing import Auctions, DualMirrorDescent, play
    >>> log = Auctions(clicks=[0, 1, 0], prices=[4, 9, 3], values=[2.0, 2.0, 2.0])
    >>> pacer = DualMirrorDescent(budget=9.0, horizon=3, step=0.1, start=0.25, mirror="euclidean")
    >>> replay = play(pacer, log)  # bids 8; 2/0.35 = 5.7 (lost); 2/0.05 = 40, but only 5 are left
    >>> replay.paid, replay.price.round(2)
    (array([4., 0., 3.]), array([0.25, 0.35, 0.05]))
    """
    if engine not in ("auto", "numpy", "compiled"):
        raise InputError("engine", f"{engine!r} is not known", "Choose 'auto', 'numpy' or 'compiled'")
    if engine != "numpy":
        from longterm.pacing.compiled import can_play, play_compiled  # knows the pacers, which know this file

        if can_play(pacer):
            return Replay(auctions, *play_compiled(pacer, auctions.values, auctions.prices))
        if engine == "compiled":
            what = f"there is no compiled loop for {type(pacer).__name__}, or no Numba"
            raise InputError("engine", what, "Use engine='numpy', or pip install 'longterm[linear]'")
    state = pacer.init()
    shape = (len(auctions), *pacer.batch_shape)
    paid, price = np.empty(shape), np.empty(shape)
    won = np.empty(shape)
    for t, (value, cost) in enumerate(zip(auctions.values.tolist(), auctions.prices.tolist(), strict=True)):
        price[t] = pacer.price(state)
        won[t] = pacer.bid(state, value) >= cost
        paid[t] = won[t] * cost
        state = pacer.update(state, Outcome(paid[t], value, cost))
    return Replay(auctions, paid, won, price)
