"""Logs of auctions, from files and synthetic."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.messages import did_you_mean, warn_caller
from longterm.errors import DataError, InputError

Missing = Literal["drop", "refuse"]
MAX_NAMED = 30
"""Columns listed in a message."""
_MISSING = {"na", "n/a", "nan", "null", "none"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, eq=False)
class Auctions:
    """A log of auctions in the order of arrival: their values, prices and clicks.

    Parameters
    ----------
    values : array_like of shape (n,)
        The value of a request, a predicted click rate for example. Known when the bid is made.
    prices : array_like of shape (n,)
        The market prices, in the currency of the log. Not known when the bid is made.
    clicks : array_like of shape (n,), optional
        1 where the ad was clicked, 0 elsewhere. Known after the auction only.

    Examples
    --------
    >>> from longterm.money.pacing.auctions import Auctions
    >>> log = Auctions(values=[0.002, 0.003], prices=[70, 6], clicks=[0, 1])
    >>> len(log), log.total_price
    (2, 76.0)
    >>> log[:1]  # a part of the day: the past to learn from, the rest to play
    Auctions(1 auctions, total price 70, mean value 0.002, clicks 0)
    """

    values: FloatArray
    prices: FloatArray
    clicks: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        prices = validate.vector("prices", self.prices)
        if np.size(self.clicks) == 0:
            validate.set_frozen(self, clicks=np.zeros(len(prices)))
        for name in ("values", "prices", "clicks"):
            array = validate.vector(name, getattr(self, name), len(prices))
            if np.any(array < 0):
                raise InputError(name, f"is negative in auction {int(np.argmax(array < 0)) + 1}", "Give numbers ≥ 0")
            validate.set_frozen(self, **{name: array})

    @classmethod
    def from_csv(
        cls,
        path: str | PathLike[str],
        *,
        values: str = "value",
        prices: str = "price",
        clicks: str | None = None,
        missing: Missing = "drop",
    ) -> Auctions:
        """Read a CSV file with a header and one auction in each line, in the order of arrival.

        Parameters
        ----------
        path : str or path
            The file, in UTF-8.
        values, prices : str
            The columns of the values and of the market prices.
        clicks : str, optional
            The column of the clicks; by default "click", if there is such a column.
        missing : {"drop", "refuse"}
            Leave out lines with an empty cell, with a warning, or raise. NA, NaN, null and None count as empty.
        """
        try:
            with Path(path).open(newline="", encoding="utf-8-sig") as file:
                rows = csv.DictReader(file)
                columns = _columns(list(rows.fieldnames or ()), values, prices, clicks, path)
                table = [_numbers(row, columns, path, rows.line_num) for row in rows]
        except OSError as error:
            raise DataError(path, f"cannot be read ({error})", "Give a CSV file with a header") from error
        except UnicodeDecodeError as error:
            raise DataError(
                path, f"is not UTF-8 ({error.reason})", "Convert it to UTF-8, for example with iconv"
            ) from error
        except csv.Error as error:
            raise DataError(path, f"is not a CSV file ({error})", "Give a CSV file with a header") from error
        return cls(*_complete_rows(np.asarray(table).reshape(-1, len(columns)), missing, path).T)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        values: str = "value",
        prices: str = "price",
        clicks: str | None = None,
        missing: Missing = "drop",
    ) -> Auctions:
        """Take the columns of a data frame, one auction in each row, in the order of arrival; as `from_csv`."""
        columns = _columns(list(map(str, frame.columns)), values, prices, clicks, "data frame")
        try:
            table = np.column_stack([np.asarray(frame[column], dtype=np.float64) for column in columns])
        except (TypeError, ValueError) as error:
            what = f"the columns {columns} are not all numbers ({error})"
            raise DataError("data frame", what, "Convert them, for example with pandas.to_numeric") from error
        return cls(*_complete_rows(table, missing, "data frame").T)

    def __len__(self) -> int:
        return len(self.prices)

    def __getitem__(self, part: slice) -> Auctions:
        if not isinstance(part, slice):
            raise InputError(
                "auctions",
                f"{part!r} is not a slice",
                "Select auctions with a slice such as log[:1000]. For one number use log.values[0]",
            )
        return Auctions(self.values[part], self.prices[part], self.clicks[part])

    def __repr__(self) -> str:
        mean = self.values.mean() if len(self) else 0.0
        words = f"total price {self.total_price:.4g}, mean value {mean:.4g}, clicks {self.clicks.sum():g}"
        return f"Auctions({len(self)} auctions, {words})"

    def shuffled(self, seed: int) -> Auctions:
        """Return the same auctions in random order, without drift."""
        order = np.random.default_rng(seed).permutation(len(self))
        return Auctions(self.values[order], self.prices[order], self.clicks[order])

    @property
    def total_price(self) -> float:
        """The price of all auctions together."""
        return float(self.prices.sum())


def _columns(names: list[str], values: str, prices: str, clicks: str | None, source: str | PathLike[str]) -> list[str]:
    """Return the columns to read; raise if one is not in the table."""
    clicks = "click" if clicks is None and "click" in names else clicks
    columns = [values, prices, *([] if clicks is None else [clicks])]
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise DataError(source, f"has one column, {names[0]!r:.60}", "Separate columns by commas")
    for wanted in columns:
        if wanted not in names:
            shown = ", ".join(map(repr, names[:MAX_NAMED])) + (", …" if len(names) > MAX_NAMED else "")
            what = f"has no column {wanted!r}{did_you_mean(wanted, names)}; there are {shown}"
            raise DataError(source, what, "Name the columns of values, prices and clicks")
    return columns


def _numbers(row: dict[str, Any], columns: list[str], path: str | PathLike[str], line: int) -> list[float]:
    """Return the numbers of one line, NaN for an empty cell."""
    texts = [(row[name] or "").strip() for name in columns]
    texts = ["" if text.lower() in _MISSING else text for text in texts]
    for name, text in zip(columns, texts, strict=True):
        if text and not _NUMBER.fullmatch(text):
            raise DataError(path, f"{name} is {text!r}, not a number", "Give a number", line=line)
    return [float(text or "nan") for text in texts]


def _complete_rows(table: FloatArray, missing: Missing, source: str | PathLike[str]) -> FloatArray:
    """Return the rows without NaN; warn about the others, or raise."""
    if missing not in get_args(Missing):
        raise InputError("missing", f"{missing!r} is not known", "Choose 'drop' or 'refuse'")
    complete = ~np.isnan(table).any(axis=1)
    lacking = len(table) - int(complete.sum())
    if lacking and missing == "refuse":
        first = int(np.argmin(complete)) + 1
        what = f"{lacking} of {len(table)} rows have an empty cell, first row {first}"
        raise DataError(source, what, "Fill or remove them, or use missing='drop' (--missing drop)")
    if lacking == len(table):
        raise DataError(source, "has no auctions", "Give at least one complete row")
    if lacking:
        warn_caller(f"{source}: {lacking} of {len(table)} rows have an empty cell and are left out", UserWarning)
    return table[complete]


def synthetic_auctions(rounds: int, seed: int, *, drift: float = 1.0) -> Auctions:
    """Draw a log: whole prices 1 to 300 with a long tail, higher where the click rate is higher.

    Click rates are log-normal about 0.4 %. Without drift, requests are independent and identically distributed, as the
    theorem assumes.

    Parameters
    ----------
    rounds : int
        The number of auctions.
    seed : int
        The seed of the draws.
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
    quality = rng.standard_normal(rounds)
    values = np.minimum(0.0035 * np.exp(0.4 * quality) * drift ** np.linspace(-0.5, 0.5, rounds), 1.0)
    noise = 0.4 * quality + np.sqrt(1 - 0.4**2) * rng.standard_normal(rounds)
    prices = np.clip(np.round(35 * np.exp(noise)), 1, 300)
    return Auctions(values, prices, (rng.random(rounds) < values).astype(np.float64))
