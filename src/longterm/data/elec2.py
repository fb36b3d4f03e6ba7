"""ELEC2: half-hourly prices and demands of the electricity market of New South Wales and Victoria, 1996 to 1998."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.data.cache import cached
from longterm.data.files import fetch
from longterm.data.registry import Arrays, data_set
from longterm.data.text import AGAIN, blocks_of_lines
from longterm.errors import DataError

COLUMNS = ("period", "nsw_price", "nsw_demand", "vic_price", "vic_demand", "transfer")
"""The publisher calls them feat_1 … feat_6; these are what Harries (1999) measured, in the same order."""


@dataclass(frozen=True, eq=False)
class Elec2:
    """ELEC2, a row for each half hour in order, all scaled to [0, 1] by the publisher.

    Until May 1997 Victoria had no market of its own: its price, demand and the transfer are constants there.
    """

    period: FloatArray
    """The time of day: 0 at midnight, 1 for the last half hour."""
    nsw_price: FloatArray
    nsw_demand: FloatArray
    vic_price: FloatArray
    vic_demand: FloatArray
    transfer: FloatArray
    labels: FloatArray
    """+1 where the price of New South Wales is above its mean of the last 24 hours, −1 where it is not."""


def parse_elec2(path: Path) -> dict[str, NDArray[Any]]:
    """A column of each name, and the labels: 1 where the price is above its mean of the last day, else 0."""
    rows: list[list[float]] = []
    for first_line, text in blocks_of_lines(path):
        for number, line in enumerate(text.splitlines(), start=first_line):
            if number == 1 or not line.strip():
                continue
            words = line.split(b",")
            if len(words) != len(COLUMNS) + 1:
                raise DataError(path, f"has {len(words)} columns, not {len(COLUMNS) + 1}", AGAIN, line=number)
            try:
                rows.append([float(word) for word in words])
            except ValueError as error:
                raise DataError(path, str(error), AGAIN, line=number) from None
    if not rows:
        raise DataError(path, "has no rows", AGAIN)
    table = np.array(rows)
    return {name: table[:, k].copy() for k, name in enumerate(COLUMNS)} | {"labels": table[:, -1].copy()}


def load_elec2() -> Elec2:
    """ELEC2, downloaded where it is not here: 45,312 half hours."""
    data = data_set("elec2")

    def check(path: Path, arrays: Arrays) -> None:
        data.check(path, arrays, sum(arrays[name].size for name in COLUMNS))

    arrays = cached(data.name, fetch(data.name), parse_elec2, check)
    return Elec2(
        **{name: arrays[name] for name in COLUMNS},
        labels=np.where(arrays["labels"] == data.positive, 1.0, -1.0),
    )
