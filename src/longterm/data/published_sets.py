"""Two published tables: UCI Adult, and the electricity market of New South Wales (ELEC2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm._base.extras import import_optional
from longterm.data.cache import load_cached
from longterm.data.locations import fetch
from longterm.data.reading import open_text
from longterm.data.registry import Arrays, DataSet, data_set
from longterm.errors import DataError, InputError

ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
ADULT_NUMBERS = frozenset({"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"})
ADULT_LABELS = {"<=50K": -1.0, ">50K": 1.0}

ELEC2_COLUMNS = ("period", "nsw_price", "nsw_demand", "vic_price", "vic_demand", "transfer")
"""The publisher calls them feat_1 … feat_6. These are the names of Harries (1999), in the same order."""


@dataclass(frozen=True, eq=False)
class Adult:
    """UCI Adult.

    Parameters
    ----------
    columns : dict of str to array
        The columns by the publisher's names, numbers as integers and text as strings.
    labels : array of shape (n,)
        +1 above 50K, −1 below.
    """

    columns: dict[str, NDArray[Any]]
    labels: FloatArray


@dataclass(frozen=True, eq=False)
class Elec2:
    """ELEC2, one row for each half hour in order, scaled to [0, 1] by the publisher.

    Before May 1997 Victoria had no market: its price, its demand and the transfer are constants there.

    Parameters
    ----------
    period : array of shape (n,)
        The time of day: 0 at midnight, 1 for the last half hour.
    nsw_price, nsw_demand, vic_price, vic_demand, transfer : array of shape (n,)
        Prices and demands of New South Wales and Victoria, and the transfer between them.
    labels : array of shape (n,)
        +1 if the price of New South Wales is above its mean of the last 24 hours, otherwise −1.
    """

    period: FloatArray
    nsw_price: FloatArray
    nsw_demand: FloatArray
    vic_price: FloatArray
    vic_demand: FloatArray
    transfer: FloatArray
    labels: FloatArray


def load_adult(part: Literal["train", "test"] = "train") -> Adult:
    """Load the training or the test part of UCI Adult. Download it if it is not local.

    Parameters
    ----------
    part : {"train", "test"}
        The publisher's file.

    Returns
    -------
    Adult
        Its columns and labels.
    """
    if part not in ("train", "test"):
        raise InputError("part", f"{part!r} is not a part", "Choose 'train' or 'test'")
    data = data_set("adult" if part == "train" else "adult.test")
    arrays = _load(data, parse_adult, ADULT_COLUMNS)
    columns = {name: arrays[name] for name in ADULT_COLUMNS}
    return Adult({n: a.astype(np.str_) if a.dtype.kind == "S" else a for n, a in columns.items()}, arrays["labels"])


def load_elec2() -> Elec2:
    """Load ELEC2, 45,312 half hours. Download it if it is not local.

    Returns
    -------
    Elec2
        Its columns and labels.
    """
    data = data_set("elec2")
    arrays = _load(data, parse_elec2, ELEC2_COLUMNS)
    labels = np.where(arrays["labels"] == data.positive, 1.0, -1.0)
    return Elec2(**{name: arrays[name] for name in ELEC2_COLUMNS}, labels=labels)


def _load(data: DataSet, parse: Callable[[Path], dict[str, NDArray[Any]]], names: Sequence[str]) -> Arrays:
    """Return the checked content of a data set's file, from the cache if possible."""

    def check(path: Path, arrays: Arrays) -> None:
        data.check(path, arrays, sum(arrays[name].size for name in names))

    def parse_or_refuse(path: Path) -> dict[str, NDArray[Any]]:
        try:
            return parse(path)
        except ValueError as error:  # pandas' parsers raise kinds of ValueError
            raise DataError(path, f"cannot be read ({error})", "Download the file again") from error

    return load_cached(data.name, fetch(data.name), parse_or_refuse, check)


def parse_adult(path: Path) -> dict[str, NDArray[Any]]:
    """Return the columns, numbers as integers and text as bytes, and the labels: +1 above 50K, −1 below.

    The publisher's test file starts with a comment, and its incomes end with a full stop.
    """
    table = _read_columns(path, ADULT_COLUMNS, dtype=str, header=None, skipinitialspace=True, comment="|")
    labels = table["income"].str.rstrip(".").map(ADULT_LABELS)
    types = {name: np.int64 if name in ADULT_NUMBERS else np.bytes_ for name in ADULT_COLUMNS}
    table["income"] = table["income"].str.rstrip(".")
    return {name: table[name].to_numpy(dtype=kind) for name, kind in types.items()} | {"labels": labels.to_numpy()}


def parse_elec2(path: Path) -> dict[str, NDArray[Any]]:
    """Return the columns, and the labels: 1 if the price is above its mean of the last day, otherwise 0."""
    names = (*ELEC2_COLUMNS, "labels")
    # pandas before 3.1 rounds some numbers wrongly when it reads floats; converting the text does not.
    table = _read_columns(path, names, dtype=str, header=0)
    return {name: table[name].to_numpy(dtype=np.float64) for name in names}


def _read_columns(path: Path, names: Sequence[str], **options: Any) -> Any:
    """Read a table with pandas. Its content is verified later by its hash."""
    pandas: Any = import_optional("pandas", "tables need pandas", "experiments")
    with open_text(path) as stream:
        return pandas.read_csv(stream, names=list(names), index_col=False, keep_default_na=False, **options)
