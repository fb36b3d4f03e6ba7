"""UCI Adult: comma-separated lines of 15 columns, ages and wages of the US census of 1994."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm.data.text import AGAIN, blocks_of_lines
from longterm.errors import DataError

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
NUMBERS = frozenset({"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"})
LABELS = {b"<=50K": -1.0, b">50K": 1.0}


def parse_adult(path: Path) -> dict[str, NDArray[Any]]:
    """A column of each name, numbers as integers and words as bytes, and the labels: +1 above 50K, −1 below.

    The publisher's test file begins with a line that is no row, and ends its incomes with a full stop.
    """
    rows: list[list[bytes]] = []
    for first_line, text in blocks_of_lines(path):
        for number, line in enumerate(text.splitlines(), start=first_line):
            if not line.strip() or line.startswith(b"|"):
                continue
            words = [word.strip() for word in line.split(b",")]
            words[-1] = words[-1].rstrip(b".")
            if len(words) != len(COLUMNS):
                raise DataError(path, f"has {len(words)} columns, not {len(COLUMNS)}", AGAIN, line=number)
            for name, word in zip(COLUMNS, words, strict=True):
                if (name in NUMBERS and not word.isdigit()) or (name == "income" and word not in LABELS):
                    raise DataError(path, f"{name} is {word.decode(errors='replace')!r}", AGAIN, line=number)
            rows.append(words)
    if not rows:
        raise DataError(path, "has no rows", AGAIN)
    columns: dict[str, NDArray[Any]] = {
        name: np.array(words, dtype=np.int64 if name in NUMBERS else np.bytes_)
        for name, words in zip(COLUMNS, zip(*rows, strict=True), strict=True)
    }
    return columns | {"labels": np.array([LABELS[words[-1]] for words in rows])}
