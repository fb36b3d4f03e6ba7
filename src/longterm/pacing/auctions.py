"""Logs of auctions: the real one from its file, and invented ones of the same shape.

A line of the file is one auction: whether the ad was clicked (0 or 1), the market price (what the winner pays:
the highest bid of the others) and the click rate that a model predicted from the request.
"""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError

LOG = "ipinyou_2997_test.theta.txt.gz"
"""The test log of campaign 2997 of iPinYou: 156,063 auctions, 530 clicks, total price 8,617,148."""
FOLDER_VARIABLE = "LONGTERM_DATA"


@dataclass(frozen=True, eq=False)
class Auctions:
    """A log, in the order of arrival: three arrays of one length.

    >>> from longterm.pacing import Auctions
    >>> log = Auctions(clicks=[0, 1], prices=[70, 6], values=[0.002, 0.003])
    >>> len(log), log.total_price
    (2, 76.0)
    """

    clicks: FloatArray
    """1 where the ad was clicked, 0 elsewhere. Nobody knows it before the auction is over."""
    prices: FloatArray
    """What the winner pays, in the currency of the log. Not known when the bid is made."""
    values: FloatArray
    """The predicted click rate: what a request is worth. Known when the bid is made."""

    def __post_init__(self) -> None:
        prices = validate.vector("prices", self.prices)
        for name in ("clicks", "prices", "values"):
            array = validate.vector(name, getattr(self, name), len(prices))
            if np.any(array < 0):
                raise InputError(name, f"is negative in auction {int(np.argmax(array < 0)) + 1}", "Give numbers ≥ 0")
            validate.remember(self, **{name: array})

    def __len__(self) -> int:
        return len(self.prices)

    def shuffled(self, seed: int) -> Auctions:
        """The same auctions in random order: what drift there was is gone."""
        order = np.random.default_rng(seed).permutation(len(self))
        return Auctions(self.clicks[order], self.prices[order], self.values[order])

    @property
    def total_price(self) -> float:
        """What it would cost to win every auction."""
        return float(self.prices.sum())


def find_data(name: str, path: str | Path | None = None) -> Path:
    """The file `name`: at `path`, in the folder that LONGTERM_DATA names, or in ../shared/data beside a checkout."""
    if path is not None:
        candidates = [Path(path)]
    else:
        folders = [os.environ.get(FOLDER_VARIABLE), Path(__file__).parents[3].parent / "shared" / "data"]
        candidates = [Path(folder) / name for folder in folders if folder]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise InputError(
        "path",
        f"no file at {', '.join(str(candidate) for candidate in candidates)}",
        f"Get {name} (the test log of iPinYou campaign 2997 is data/ipinyou-data/2997/test.theta.txt of the GitHub "
        f"repository han-cai/rlb-dp, its totals are info.json beside it), put it into a folder and name that folder "
        f"in the environment variable {FOLDER_VARIABLE}, or pass path=; synthetic_auctions() needs no file",
    )


def load_auctions(path: str | Path | None = None) -> Auctions:
    """Read a log (gzip or plain text), by default the real one; a bad line is an error that names it."""
    found = find_data(LOG, path)
    opened = gzip.open if found.suffix == ".gz" else open
    rows: list[tuple[float, float, float]] = []
    try:
        with opened(found, "rt", encoding="ascii") as lines:
            rows.extend(_parsed(line, found, number) for number, line in enumerate(lines, start=1))
    except (EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(
            "path",
            f"{found} cannot be read after line {len(rows)} ({error})",
            "The file is cut off or damaged: get it again",
        ) from None
    if not rows:
        raise InputError("path", f"{found} is empty", "Get the file again")
    clicks, prices, values = np.asarray(rows).T
    return Auctions(clicks, prices, values)


def _parsed(line: str, file: Path, number: int) -> tuple[float, float, float]:
    fields = line.split()
    try:
        click, price, value = (float(field) for field in fields)
    except ValueError:
        reason = f"has {len(fields)} fields, not 3" if len(fields) != 3 else f"{line.strip()!r} is not three numbers"
    else:
        if click not in (0.0, 1.0):
            reason = f"click is {fields[0]}, not 0 or 1"
        elif not 0 <= price < float("inf"):
            reason = f"price is {fields[1]}"
        elif not 0 <= value <= 1:
            reason = f"predicted click rate is {fields[2]}, not in [0, 1]"
        elif not line.endswith("\n"):
            reason = "is cut off: it does not end in a newline"
        else:
            return click, price, value
    raise InputError("path", f"{file}, line {number}: {reason}", "Each line holds: click price rate")


def synthetic_auctions(rounds: int, seed: int, *, drift: float = 1.0) -> Auctions:
    """An invented log: whole prices 1 to 300 with a long tail, dearer where the click rate is higher.

    Click rates are log-normal about 0.4 %; from the first auction to the last their level grows by the factor
    `drift` (1: independent and identically distributed requests, what the theorem asks for).
    """
    rng = np.random.default_rng(seed)
    rounds = validate.dimension("rounds", rounds)
    drift = validate.positive_scalar("drift", drift)
    talent = rng.standard_normal(rounds)
    values = np.minimum(0.0035 * np.exp(0.4 * talent) * drift ** np.linspace(-0.5, 0.5, rounds), 1.0)
    noise = 0.4 * talent + np.sqrt(1 - 0.4**2) * rng.standard_normal(rounds)
    prices = np.clip(np.round(35 * np.exp(noise)), 1, 300)
    return Auctions((rng.random(rounds) < values).astype(np.float64), prices, values)
