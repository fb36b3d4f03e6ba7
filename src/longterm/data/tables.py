"""Tables of named columns, read by pandas: UCI Adult, and the electricity market of New South Wales (ELEC2)."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from csv import QUOTE_NONE
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.data.files import AGAIN, cached, fetch, opened_text
from longterm.data.registry import Arrays, DataSet, data_set
from longterm.errors import DataError, InputError

ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
ADULT_NUMBERS = frozenset({"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"})
ADULT_LABELS = {"<=50K": -1.0, ">50K": 1.0}

ELEC2_COLUMNS = ("period", "nsw_price", "nsw_demand", "vic_price", "vic_demand", "transfer")
"""The publisher calls them feat_1 … feat_6; these are what Harries (1999) measured, in the same order."""


@dataclass(frozen=True, eq=False)
class Adult:
    """UCI Adult.

    Parameters
    ----------
    columns : dict of str to array
        By the publisher's names, numbers as integers and words as strings.
    labels : array of shape (n,)
        +1 above 50K, −1 below.
    """

    columns: dict[str, NDArray[Any]]
    labels: FloatArray


@dataclass(frozen=True, eq=False)
class Elec2:
    """ELEC2, a row for each half hour in order, all scaled to [0, 1] by the publisher.

    Until May 1997 Victoria had no market of its own: its price, demand and the transfer are constants there.

    Parameters
    ----------
    period : array of shape (n,)
        The time of day: 0 at midnight, 1 for the last half hour.
    nsw_price, nsw_demand, vic_price, vic_demand, transfer : array of shape (n,)
        Of New South Wales, of Victoria, and between them.
    labels : array of shape (n,)
        +1 where the price of New South Wales is above its mean of the last 24 hours, −1 where it is not.
    """

    period: FloatArray
    nsw_price: FloatArray
    nsw_demand: FloatArray
    vic_price: FloatArray
    vic_demand: FloatArray
    transfer: FloatArray
    labels: FloatArray


def load_adult(part: Literal["train", "test"] = "train") -> Adult:
    """UCI Adult, the training or the test part, downloaded where it is not here.

    Parameters
    ----------
    part : {"train", "test"}
        Which of the publisher's two files.

    Returns
    -------
    Adult
        Its columns and labels.
    """
    if part not in ("train", "test"):
        raise InputError("part", f"{part!r} is not a part", "Choose 'train' or 'test'")
    data = data_set("adult" if part == "train" else "adult.test")
    arrays = _columns(data, parse_adult, ADULT_COLUMNS)
    words = {
        name: arrays[name].astype(np.str_) if arrays[name].dtype.kind == "S" else arrays[name] for name in ADULT_COLUMNS
    }
    return Adult(words, arrays["labels"])


def load_elec2() -> Elec2:
    """ELEC2, downloaded where it is not here: 45,312 half hours.

    Returns
    -------
    Elec2
        Its columns and labels.
    """
    data = data_set("elec2")
    arrays = _columns(data, parse_elec2, ELEC2_COLUMNS)
    return Elec2(
        **{name: arrays[name] for name in ELEC2_COLUMNS},
        labels=np.where(arrays["labels"] == data.positive, 1.0, -1.0),
    )


def _columns(data: DataSet, parse: Callable[[Path], dict[str, NDArray[Any]]], names: Sequence[str]) -> Arrays:
    """What the data set's file holds, checked, from the cache where it is there."""

    def check(path: Path, arrays: Arrays) -> None:
        data.check(path, arrays, sum(arrays[name].size for name in names))

    return cached(data.name, fetch(data.name), parse, check)


def parse_adult(path: Path) -> dict[str, NDArray[Any]]:
    """A column of each name, numbers as integers and words as bytes, and the labels: +1 above 50K, −1 below.

    The publisher's test file begins with a line that is no row, and ends its incomes with a full stop.
    """
    table = _read_table(path, ADULT_COLUMNS, comment="|")
    table["income"] = table["income"].str.rstrip(".")
    wrong = {name: ~table[name].str.isdigit() for name in ADULT_COLUMNS if name in ADULT_NUMBERS}
    _refuse_first(path, table, wrong | {"income": ~table["income"].isin(ADULT_LABELS)})
    columns: dict[str, NDArray[Any]] = {
        name: table[name].to_numpy(dtype=np.int64 if name in ADULT_NUMBERS else np.bytes_) for name in ADULT_COLUMNS
    }
    return columns | {"labels": table["income"].map(ADULT_LABELS).to_numpy(dtype=np.float64)}


def parse_elec2(path: Path) -> dict[str, NDArray[Any]]:
    """A column of each name, and the labels: 1 where the price is above its mean of the last day, else 0."""
    names = (*ELEC2_COLUMNS, "labels")
    table = _read_table(path, names, header=True)
    numbers = table.apply(import_module("pandas").to_numeric, errors="coerce")
    _refuse_first(path, table, {name: ~np.isfinite(numbers[name]) for name in names})
    return {name: numbers[name].to_numpy(dtype=np.float64) for name in names}


def _read_table(path: Path, names: Sequence[str], *, header: bool = False, comment: str = "\0") -> Any:
    """A pandas frame of words, by line; lines that are empty, or begin with `comment`, are no rows."""
    try:
        pandas: Any = import_module("pandas")
    except ImportError as error:
        raise ImportError("tables need pandas: pip install 'longterm[experiments]'") from error
    with opened_text(path) as stream:
        lines = stream.read().decode(errors="replace").splitlines()[header:]
    rows = {k: line for k, line in enumerate(lines, 1 + header) if line.strip() and not line.startswith(comment)}
    if not rows:
        raise DataError(path, "has no rows", AGAIN)
    for number, line in rows.items():  # pandas would fill what is missing
        if line.count(",") + 1 != len(names):
            raise DataError(path, f"has {line.count(',') + 1} columns, not {len(names)}", AGAIN, line=number)
    text = io.StringIO("\n".join(rows.values()))
    table = pandas.read_csv(text, header=None, names=names, dtype=str, keep_default_na=False, quoting=QUOTE_NONE)
    return table.apply(lambda column: column.str.strip()).set_axis(list(rows))


def _refuse_first(path: Path, table: Any, wrong: dict[str, Any]) -> None:
    """Raise for the first line that has a wrong value."""
    first = [(int(mask.idxmax()), name) for name, mask in wrong.items() if mask.any()]
    if first:
        line, name = min(first, key=lambda one: one[0])
        raise DataError(path, f"{name} is {table[name][line]!r}", AGAIN, line=line)
