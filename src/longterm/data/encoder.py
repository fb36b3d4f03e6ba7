"""Encoding of data frames as rows of numbers.

Columns of numbers come first, in their order. Each column of text or categories then becomes one 0-1 feature per value.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

from longterm._base.arrays import FloatArray
from longterm._base.extras import import_optional
from longterm.errors import DataError, IdentifierWarning, InputError, ManyFeaturesWarning

Missing = Literal["refuse", "drop", "fill"]
MANY_VALUES = 50
"""A column of text with more values raises a warning, or an error if most of its values are different."""
MAX_FEATURE_BYTES = 2**32
"""The limit on the bytes of the encoded features."""
UNNAMED = "Unnamed: "
"""The prefix of pandas' names for columns without a name, such as row numbers."""
IDENTIFIER = re.compile(r"(^|[^a-z])(id|uuid|key|index|number|no|nr)$")
FEW_NAMED = 10
"""Rows from which on a column named like an identifier is reported; without such a name MANY_VALUES."""
DATE = re.compile(
    r"\s*(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4}))([ T]\d{1,2}:\d{2}.*)?\s*", re.ASCII
)


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """The encoding of a table, for new rows with the same columns.

    Parameters
    ----------
    numbers : tuple of str
        The columns of numbers.
    values : dict of str to tuple of str
        The values of each column of text. Other values in new rows become zeros.
    fills : dict of str to float
        The medians of the columns of numbers, used if `missing` is "fill".
    scale : array of shape (d,)
        The divisors of the features.
    missing : {"refuse", "drop", "fill"}
        The treatment of empty cells. In new rows "drop" acts like "refuse", so that rows and predictions correspond.

    Examples
    --------
    >>> import pandas as pd
    >>> from longterm.data.tables import from_frame
    >>> rows = from_frame(pd.DataFrame({"age": [30, 50], "city": ["Bern", "Rome"], "label": [0, 1]}))
    >>> rows.encoder.transform(pd.DataFrame({"city": ["Rome", "Oslo"], "age": [20, 40]}))
    array([[20.,  0.,  1.],
           [40.,  0.,  0.]])
    """

    numbers: tuple[str, ...]
    values: dict[str, tuple[str, ...]]
    fills: dict[str, float]
    scale: FloatArray
    missing: Missing

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the features."""
        return (*self.numbers, *(f"{column}={value}" for column, values in self.values.items() for value in values))

    def transform(self, frame: Any, name: str = "data frame") -> FloatArray:
        """Return the features of new rows.

        Parameters
        ----------
        frame : pandas.DataFrame
            Rows with the columns of the table, in any order. Others are ignored.
        name : str
            The name in messages.
        """
        frame = as_frame(frame)
        lacking = [column for column in (*self.numbers, *self.values) if column not in frame.columns]
        if lacking:
            raise DataError(name, f"lacks the columns {lacking[:12]}", "Give the columns of the encoded table")
        frame = frame[[*self.numbers, *self.values]]
        if self.missing == "fill":
            frame = frame.fillna(dict(self.fills))
        else:
            require_no_empty_cells(frame, name)
        return _encode(frame, self, name)


def fit_encoder(frame: Any, scale: bool, missing: Missing, name: str) -> tuple[TableEncoder, FloatArray]:
    """Return the encoder of a frame without empty cells, and its features."""
    types = import_module("pandas").api.types
    for column in frame.columns:
        _require_feature(frame[column], column, name)
    numbers = tuple(column for column in frame.columns if types.is_numeric_dtype(frame[column]))
    texts = [column for column in frame.columns if column not in numbers]
    values = {column: tuple(sorted({str(value) for value in frame[column]})) for column in texts}
    count = len(numbers) + sum(map(len, values.values()))
    if 8 * count * len(frame) > MAX_FEATURE_BYTES:
        what = f"needs {8 * count * len(frame) / 2**30:.0f} GiB for {count} features of {len(frame)} rows"
        raise DataError(name, what, "Drop text columns with many values (drop=…), or give fewer rows")
    fills = {column: float(np.median(frame[column].to_numpy(dtype=np.float64))) for column in numbers}
    encoder = TableEncoder(numbers, values, fills, np.ones(count), missing)
    features = _encode(frame, encoder, name)
    if not scale:
        return encoder, features
    largest = np.abs(features).max(axis=0, initial=0.0)
    divisors = np.where(largest > 0, largest, 1.0)
    return TableEncoder(numbers, values, fills, divisors, missing), features / divisors


def _encode(frame: Any, encoder: TableEncoder, name: str) -> FloatArray:
    features = np.zeros((len(frame), len(encoder.scale)))
    for place, column in enumerate(encoder.numbers):
        try:
            features[:, place] = frame[column].to_numpy(dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                name, f"column {column!r} does not contain numbers ({error})", "Give numbers, as in the first table"
            ) from error
    finite = np.isfinite(features)
    if not finite.all():
        row, place = np.argwhere(~finite)[0]
        what = f"column {encoder.numbers[place]!r} is {features[row, place]}"
        raise DataError(name, what, "Give finite numbers", line=int(row) + 2)
    first = len(encoder.numbers)
    for column, values in encoder.values.items():
        places = {value: place for place, value in enumerate(values, first)}
        text = frame[column].astype(object).where(frame[column].notna(), "missing")
        at = np.array([places.get(str(value), -1) for value in text], dtype=np.int64)
        (known,) = np.nonzero(at >= 0)
        features[known, at[known]] = 1.0
        first += len(values)
    return features / encoder.scale


def as_frame(frame: Any) -> Any:
    """Return a pandas frame with column names as text, from pandas or from an object with `to_pandas`."""
    pandas: Any = import_optional("pandas", "tables need pandas", "experiments")
    frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    if not isinstance(frame, pandas.DataFrame):
        remedy = "Give a pandas or Polars frame; for arrays, use a learner directly"
        raise InputError("frame", f"is a {type(frame).__name__}, not a data frame", remedy)
    return frame.set_axis([str(column) for column in frame.columns], axis=1)


def fill_empty_cells(frame: Any, label: str, missing: Missing, name: str) -> Any:
    """Return the frame without empty cells: refuse them, drop their rows, or fill them."""
    if missing == "refuse":
        require_no_empty_cells(frame, name)
        return frame
    empty = frame.isna()
    frame = frame[~empty.any(axis=1)] if missing == "drop" else frame[~empty[label]]
    if frame.empty:
        raise DataError(name, "has an empty cell in every row", "Fill them (missing=fill), or drop the empty columns")
    for column in frame.columns[frame.isna().any()]:
        values = frame[column]
        if values.isna().all():
            raise DataError(name, f"column {column!r} is empty in every row", f"Leave it out (drop={column})")
        if import_module("pandas").api.types.is_numeric_dtype(values):
            values = values.astype("float64")
            filled = values.fillna(values.median())
        else:
            filled = values.astype(object).fillna("missing")
        frame = frame.assign(**{column: filled})
    return frame


def require_no_empty_cells(frame: Any, name: str) -> None:
    """Raise DataError with the line and column of the first empty cell."""
    empty = frame.isna()
    rows = empty.any(axis=1).to_numpy()
    if rows.any():
        row = int(rows.argmax())
        column = frame.columns[int(empty.iloc[row].to_numpy().argmax())]
        others = f", and {int(rows.sum()) - 1} more rows have empty cells" if rows.sum() > 1 else ""
        remedy = (
            "Leave such rows out (missing=drop), or fill empty cells by medians and the word 'missing' (missing=fill)"
        )
        raise DataError(name, f"column {column!r} is empty{others}", remedy, line=row + 2)


def require_distinct(columns: Sequence[str], name: str) -> None:
    """Raise DataError if two columns have the same name."""
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise DataError(name, f"has two columns {twice[0]!r}", "Rename one of them")


def _looks_like_an_identifier(values: Any, column: str) -> bool:
    """Return True for whole numbers that are all different, if there are many or the column is named like one."""
    if len(values) < (FEW_NAMED if IDENTIFIER.search(column.lower()) else MANY_VALUES):
        return False
    numbers = values.to_numpy(dtype=np.float64)
    return bool((numbers == np.floor(numbers)).all()) and len(np.unique(numbers)) == len(numbers)


def _require_feature(values: Any, column: str, name: str) -> None:
    """Raise DataError if a column cannot be a feature: row numbers, dates, lists, complex numbers, identifiers."""
    types = import_module("pandas").api.types
    remedy = f"Leave it out (drop={column!r})"
    if column.startswith(UNNAMED):
        raise DataError(name, f"column {column!r} has no name", f"{remedy}, or name it")
    if types.is_complex_dtype(values):
        raise DataError(name, f"column {column!r} has complex numbers", f"{remedy}, or give real and imaginary parts")
    if types.is_numeric_dtype(values):
        if _looks_like_an_identifier(values, column):
            what = f"{name}: column {column!r} looks like an identifier: its whole numbers are all different"
            warnings.warn(f"{what}. {remedy}, unless its size means something.", IdentifierWarning, stacklevel=5)
        return
    dates = f"{remedy}, or replace it by numbers, such as the month or the days since a date"
    if values.dtype.kind in "mM" or str(values.dtype).startswith("period"):
        raise DataError(name, f"column {column!r} has dates", dates)
    try:
        different = list(values.unique())
    except TypeError:  # lists and other values without a hash
        kind = type(next(value for value in values if getattr(type(value), "__hash__", None) is None)).__name__
        raise DataError(name, f"column {column!r} has cells of type {kind}", f"{remedy}, or give text") from None
    if all(DATE.fullmatch(str(value)) for value in different):
        raise DataError(name, f"column {column!r} has dates", dates)
    if len(different) > MANY_VALUES:
        what = f"column {column!r} has {len(different)} different values in {len(values)} rows"
        if len(different) > len(values) // 2:
            raise DataError(name, f"{what}, and each would be a feature", f"{remedy}, or replace it by numbers")
        warnings.warn(f"{name}: {what}, and each is a feature. {remedy}.", ManyFeaturesWarning, stacklevel=5)
