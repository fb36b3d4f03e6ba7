"""Tables of named columns, read by pandas: one's own, and two that are known by name.

One's own are CSV, TSV and Parquet files, and data frames, made rows of numbers with labels ±1. By name: UCI Adult, and
the electricity market of New South Wales (ELEC2).
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from csv import QUOTE_NONE
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.data.files import AGAIN, LONGEST_LINE, BoundedText, cached, fetch, opened_text, too_large
from longterm.data.libsvm import read_libsvm
from longterm.data.registry import Arrays, DataSet, Labelled, data_set
from longterm.errors import DataError, InputError, did_you_mean

LABEL_NAMES = ("label", "target", "class", "y")
"""Columns that are taken for the labels of a table of one's own."""
MOST_VALUES = 50
"""A column of text with more values than this, most of them different, is a name and no feature."""
NAMELESS = "Unnamed: "
"""How pandas calls a column without a name, such as the row numbers that it wrote itself."""
LARGEST_TABLE = 2**31
"""Bytes of a table, unless another limit is given."""
BUFFER = 2**20
Missing = Literal["refuse", "drop", "fill"]


def load_table(
    path: str | PathLike[str],
    label: str | None = None,
    *,
    drop: Sequence[str] = (),
    scale: bool = False,
    missing: Missing = "refuse",
    largest: int = LARGEST_TABLE,
) -> Labelled:
    """Rows and labels of a CSV, TSV or Parquet file of your own, with a header.

    Parameters
    ----------
    path : path
        Of the file; a CSV may be compressed, and may have semicolons between its columns.
    label : str, optional
        As for `from_frame`.
    drop : sequence of str
        As for `from_frame`.
    scale : bool
        As for `from_frame`.
    missing : {"refuse", "drop", "fill"}
        As for `from_frame`.
    largest : int
        Bytes of text, or eight for each cell of a Parquet file, beyond which it is refused before it is read: a small
        compressed file may hold a table that fills the memory.

    Returns
    -------
    Labelled
        The rows and their labels ±1.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longterm.data import load_table
    >>> file = Path(tempfile.mkdtemp()) / "customers.csv"
    >>> lines = ["customer,age,plan,left", "C1,30,basic,no", "C2,50,team,yes"]
    >>> size = file.write_text(chr(10).join(lines))
    >>> rows = load_table(file, label="left", drop=["customer"])
    >>> rows
    Labelled('customers.csv', 2 rows, 3 features, no = −1, yes = +1)
    >>> rows.columns
    ('age', 'plan=basic', 'plan=team')
    """
    file = Path(path)
    if not file.is_file():
        raise DataError(file, "is not here", "Give the path of a CSV, TSV or Parquet file")
    if not is_table(file):
        raise DataError(file, "is not called .csv, .tsv or .parquet", "Rename it, or use read_libsvm or from_frame")
    return read_own(file, label, drop, scale, missing, validate.count("largest", largest))


def from_frame(
    frame: Any,
    label: str | None = None,
    *,
    drop: Sequence[str] = (),
    scale: bool = False,
    missing: Missing = "refuse",
    name: str = "data frame",
) -> Labelled:
    """Rows and labels of a data frame; columns of text or categories become one column for each value.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row for each example; or what has a method `to_pandas`, as the frames of Polars and tables of Arrow do.
    label : str, optional
        The column of the labels, of which there are two (the larger, or later in the alphabet, becomes +1; `classes` of
        the result has both). Left out: the only column that is called label, target, class or y.
    drop : sequence of str
        Columns to leave out: numbers of customers, dates.
    scale : bool
        Whether to divide each column by its largest size: a budget of weights wants columns of like size. In a stream,
        where that is not known, ``BudgetLinearLearner(…, scale_features=True)`` finds it.
    missing : {"refuse", "drop", "fill"}
        What to do about empty cells: say where they are, leave such rows out, or fill them, with the median of a column
        of numbers and with the value "missing" in one of text. Rows without a label are left out by both.
    name : str
        As messages call it.

    Returns
    -------
    Labelled
        The rows and their labels ±1.

    Examples
    --------
    >>> import pandas as pd
    >>> from longterm.data import from_frame
    >>> rows = from_frame(pd.DataFrame({"age": [30, 50], "city": ["Bern", "Rome"], "label": ["no", "yes"]}))
    >>> rows.features, rows.labels
    (array([[30.,  1.,  0.],
           [50.,  0.,  1.]]), array([-1.,  1.]))
    """
    pd: Any = import_module("pandas")
    frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    if not isinstance(frame, pd.DataFrame):
        remedy = "Give a pandas or Polars frame; arrays go straight to a learner"
        raise InputError("frame", f"is a {type(frame).__name__}, not a data frame", remedy)
    if isinstance(drop, str):
        raise InputError("drop", f"{drop!r} is one word", f"Give a list: [{drop!r}]")
    if missing not in get_args(Missing):
        raise InputError("missing", f"{missing!r} is not known", f"Choose from {list(get_args(Missing))}")
    columns = [str(column) for column in frame.columns]
    for column in (*drop, *(() if label is None else (label,))):
        if column not in columns:
            what = f"has no column {column!r}{did_you_mean(column, columns)}"
            raise DataError(name, what, f"Choose from {columns[:12]}")
    frame = frame.set_axis(columns, axis=1).drop(columns=list(drop))
    chosen = _label_column(frame, label, name)
    frame = _filled(frame, chosen, missing, name)
    classes, codes = np.unique(frame[chosen].to_numpy(), return_inverse=True)
    if len(classes) != 2:
        what = f"column {chosen!r} has {len(classes)} different labels"
        raise DataError(name, what, "Give rows of two classes, or name another column")
    rest = frame.drop(columns=chosen)
    for column in rest:
        _require_a_feature(rest[column], column, name)
    wide = pd.get_dummies(rest, prefix_sep="=", dtype=float)
    features = wide.to_numpy(dtype=np.float64)
    if not np.isfinite(features).all():
        row, place = np.argwhere(~np.isfinite(features))[0]
        what = f"column {wide.columns[place]!r} is {features[row, place]}"
        raise DataError(name, what, "Give finite numbers", line=int(row) + 2)
    if scale:
        largest = np.abs(features).max(axis=0, initial=0.0)
        features = features / np.where(largest > 0, largest, 1.0)
    called = tuple(str(one) for one in classes)
    return Labelled(name, features, np.where(codes == 1, 1.0, -1.0), tuple(map(str, wide.columns)), called)


def _label_column(frame: Any, label: str | None, name: str) -> str:
    if label is not None:
        return label
    named = [column for column in frame.columns if column.lower() in LABEL_NAMES]
    if len(named) != 1:
        what = f"has {len(named) or 'no'} columns that may be the label, among {list(frame.columns)[:12]}"
        remedy = f"Name it (label=…), or call one column, and no other, one of {', '.join(LABEL_NAMES)}"
        raise DataError(name, what, remedy)
    return str(named[0])


def _filled(frame: Any, label: str, missing: Missing, name: str) -> Any:
    """The frame without empty cells: refused, left out or filled."""
    empty = frame.isna()
    bad = empty.any(axis=1).to_numpy()
    if not bad.any():
        return frame
    if missing == "refuse":
        row = int(bad.argmax())
        column = frame.columns[int(empty.iloc[row].to_numpy().argmax())]
        others = f", and {int(bad.sum()) - 1} more rows have empty cells" if bad.sum() > 1 else ""
        remedy = (
            "Leave such rows out (missing=drop), or fill them, with medians and a value of their own (missing=fill)"
        )
        raise DataError(name, f"column {column!r} is empty{others}", remedy, line=row + 2)
    frame = frame[~bad] if missing == "drop" else frame[frame[label].notna()]
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


def _require_a_feature(values: Any, column: str, name: str) -> None:
    """Row numbers, dates and names are no features."""
    types = import_module("pandas").api.types
    leave_out = f"Leave it out (drop={column!r})"
    if column.startswith(NAMELESS):
        raise DataError(name, f"column {column!r} has no name, as row numbers have none", f"{leave_out}, or name it")
    if types.is_numeric_dtype(values):
        return
    if types.is_datetime64_any_dtype(values) or types.is_timedelta64_dtype(values):
        raise DataError(name, f"column {column!r} has dates", f"{leave_out}, or make numbers of it")
    different = values.nunique()
    if different > max(MOST_VALUES, len(values) // 2):
        what = f"column {column!r} has {different} different values in {len(values)} rows, and each would be a feature"
        raise DataError(name, what, f"{leave_out}, or make numbers of it")


def is_table(path: Path) -> bool:
    """Whether the file's name is that of a table."""
    return bool({".csv", ".tsv", ".parquet"} & {suffix.lower() for suffix in path.suffixes})


def read_own(
    path: Path,
    label: str | None,
    drop: Sequence[str],
    scale: bool,
    missing: Missing,
    largest: int = LARGEST_TABLE,
) -> Labelled:
    """The rows of a table, or of a file in LIBSVM's format."""
    try:
        if is_table(path):
            return from_frame(_frame(path, largest), label, drop=drop, scale=scale, missing=missing, name=path.name)
        features, labels = read_libsvm(path)
    except MemoryError:
        raise DataError(path, "does not fit into the memory", "Give fewer rows or columns") from None
    classes = np.unique(labels)
    if len(classes) != 2:
        raise DataError(path, f"has {len(classes)} different labels", "Give a file of two classes")
    return Labelled(path.name, features, np.where(labels == classes[1], 1.0, -1.0))


def _frame(path: Path, largest: int) -> Any:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    try:
        pd: Any = import_module("pandas")
    except ImportError as error:
        raise ImportError("CSV and Parquet files need pandas: pip install 'longterm[experiments]'") from error
    try:
        if ".parquet" in suffixes:
            import_module("pyarrow")
            shape = import_module("pyarrow.parquet").read_metadata(path)
            if 8 * shape.num_rows * shape.num_columns > largest:
                raise too_large(path, largest)
            return pd.read_parquet(path)
        how = {"sep": "\t"} if ".tsv" in suffixes else _separators(path)
        if suffixes[-1] in (".zip", ".zst", ".tar"):  # which pandas opens
            return pd.read_csv(path, **how)
        with opened_text(path) as stream:
            return pd.read_csv(io.BufferedReader(BoundedText(path, stream, largest), BUFFER), **how)
    except DataError:
        raise
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'longterm[parquet]'") from error
    except UnicodeDecodeError as error:
        raise DataError(path, f"is not UTF-8 ({error})", "Save it as UTF-8") from error
    except (ValueError, OSError) as error:  # parsers raise kinds of ValueError
        raise DataError(path, f"cannot be read ({error})", "Give a table with a header") from error


def _separators(path: Path) -> dict[str, str]:
    """Commas; or semicolons where the header has them, and then perhaps commas for decimal points."""
    with opened_text(path) as file:
        header, row = file.readline(LONGEST_LINE), file.readline(LONGEST_LINE)
    if header.count(b";") <= header.count(b","):
        return {"sep": ","}
    return {"sep": ";", "decimal": "," if re.search(rb"(^|;)-?\d+,\d+(;|\s*$)", row) else "."}


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
