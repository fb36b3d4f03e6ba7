"""ELEC2: half-hourly prices and demands of the electricity market of New South Wales and Victoria, 1996 to 1998."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm.data.text import AGAIN, blocks_of_lines
from longterm.errors import DataError

COLUMNS = ("period", "nsw_price", "nsw_demand", "vic_price", "vic_demand", "transfer")
"""The publisher calls them feat_1 … feat_6; these are what Harries (1999) measured, in the same order."""


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
