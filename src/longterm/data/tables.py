"""Tables of the user: CSV, TSV and Parquet files, and data frames, as rows of numbers with their labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np

from longterm._base import validate
from longterm._base.extras import import_optional
from longterm._base.messages import did_you_mean
from longterm.data.encoder import Missing, as_frame, fill_empty_cells, fit_encoder, require_distinct
from longterm.data.labelled import Labelled
from longterm.data.libsvm import read_libsvm
from longterm.data.reading import MAX_LINE, default_limit, open_text, too_large
from longterm.errors import DataError, InputError

LABEL_NAMES = ("label", "target", "class", "y")
"""The names of columns that are taken as labels by default."""
MAX_COLUMNS = 100_000
"""The limit on the columns of a table. Each takes about a kilobyte in pandas."""


def load_table(
    path: str | PathLike[str],
    label: str | None = None,
    *,
    drop: str | Sequence[str] = (),
    scale: bool = False,
    missing: Missing = "refuse",
    max_bytes: int | None = None,
) -> Labelled:
    """Read rows and labels from a CSV, TSV or Parquet file with a header.

    Parameters
    ----------
    path : path
        The file. A CSV may be compressed (bz2, gzip, xz) and may use semicolons.
    label, drop, scale, missing : optional
        As for `from_frame`.
    max_bytes : int, optional
        A limit on the decompressed bytes, checked while a CSV is read and in the metadata of a Parquet file. By default
        256 MiB, or 20 times the file's size if that is more.

    Returns
    -------
    Labelled
        The rows and their labels as they are written. ``encoder`` turns new rows into the same features, ``signs``
        has the labels as ±1, and ``fit`` fits a linear model that is saved with the encoder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longterm.data.tables import load_table
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
        raise DataError(file, "does not exist", "Give the path of a CSV, TSV or Parquet file")
    if not is_table(file):
        raise DataError(file, "does not end in .csv, .tsv or .parquet", "Rename it, or use read_libsvm or from_frame")
    limit = None if max_bytes is None else validate.count("max_bytes", max_bytes)
    return read_file(file, label, drop, scale, missing, limit)


def from_frame(
    frame: Any,
    label: str | None = None,
    *,
    drop: str | Sequence[str] = (),
    scale: bool = False,
    missing: Missing = "refuse",
    name: str = "data frame",
) -> Labelled:
    """Return rows and labels of a data frame. Columns of text or categories become one feature for each value.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row for each example. Objects with a method `to_pandas` are accepted, such as Polars frames.
    label : str, optional
        The column of the labels, with two values. The larger, or later in the alphabet, becomes +1. By default the only
        column called label, target, class or y.
    drop : str or sequence of str
        Columns to leave out, for example identifiers and dates.
    scale : bool
        Divide each feature by its largest absolute value. A budget on weights needs features of similar size.
    missing : {"refuse", "drop", "fill"}
        The treatment of empty cells: raise an error, drop the rows, or fill numbers with the column's median and text
        with "missing". Both "drop" and "fill" drop rows without a label.
    name : str
        The name in messages.

    Examples
    --------
    >>> import pandas as pd
    >>> from longterm.data.tables import from_frame
    >>> rows = from_frame(pd.DataFrame({"age": [30, 50], "city": ["Bern", "Rome"], "label": ["no", "yes"]}))
    >>> rows.features, rows.labels
    (array([[30.,  1.,  0.],
           [50.,  0.,  1.]]), array(['no', 'yes'], dtype='<U3'))
    """
    frame = as_frame(frame)
    columns = list(frame.columns)
    drop = [drop] if isinstance(drop, str) else list(drop)
    if missing not in get_args(Missing):
        raise InputError("missing", f"{missing!r} is not known", f"Choose from {list(get_args(Missing))}")
    for column in (*drop, *(() if label is None else (label,))):
        if column not in columns:
            what = f"has no column {column!r}{did_you_mean(column, columns)}"
            raise DataError(name, what, f"Choose from {_shortened(columns)}")
    frame = frame.drop(columns=list(drop))
    require_distinct(list(frame.columns), name)
    chosen = _label_column(frame, label, name)
    frame = fill_empty_cells(frame, chosen, missing, name)
    try:
        classes, codes = np.unique(frame[chosen].to_numpy(), return_inverse=True)
    except TypeError as error:
        what = f"the labels in column {chosen!r} cannot be sorted ({error})"
        raise DataError(name, what, "Give two numbers or two words") from error
    if len(classes) != 2:
        what = f"column {chosen!r} has {len(classes)} different labels"
        raise DataError(name, what, "Give rows of two classes, or name another column")
    encoder, features = fit_encoder(frame.drop(columns=chosen), scale, missing, name)
    written = np.array(classes.tolist())  # texts as an array of texts, not of objects
    labels = written[codes] if written.ndim == 1 else classes[codes]
    return Labelled(name, features, labels, encoder.columns, tuple(str(one) for one in classes), encoder)


def _label_column(frame: Any, label: str | None, name: str) -> str:
    if label is not None:
        return label
    named = [column for column in frame.columns if column.lower() in LABEL_NAMES]
    if len(named) != 1:
        what = f"has {len(named) or 'no'} columns that may be the label, among {_shortened(list(frame.columns))}"
        remedy = f"Name it (label=…), or rename exactly one column to one of {', '.join(LABEL_NAMES)}"
        raise DataError(name, what, remedy)
    return str(named[0])


def _shortened(columns: Sequence[str]) -> str:
    """Return at most twelve names, with an ellipsis if there are more."""
    return "[" + ", ".join(map(repr, columns[:12])) + (", …]" if len(columns) > 12 else "]")


def is_table(path: Path) -> bool:
    """Return True if the file's name is that of a table."""
    return bool({".csv", ".tsv", ".parquet"} & {suffix.lower() for suffix in path.suffixes})


def read_file(
    path: Path, label: str | None, drop: str | Sequence[str], scale: bool, missing: Missing, limit: int | None = None
) -> Labelled:
    """Read the rows of a table, or of a file in LIBSVM's format."""
    try:
        if is_table(path):
            return from_frame(_read_frame(path, limit), label, drop=drop, scale=scale, missing=missing, name=path.name)
        features, labels = read_libsvm(path, max_bytes=limit)
    except MemoryError:
        raise DataError(path, "does not fit into the memory", "Give fewer rows or columns") from None
    classes = np.unique(labels)
    if len(classes) != 2:
        raise DataError(path, f"has {len(classes)} different labels", "Give a file of two classes")
    return Labelled(path.name, features, np.where(labels == classes[1], 1.0, -1.0))


def _read_frame(path: Path, limit: int | None) -> Any:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    pandas: Any = import_optional("pandas", "CSV and Parquet files need pandas", "experiments")
    if suffixes[-1] in (".zip", ".zst", ".tar"):
        raise DataError(path, f"is a {suffixes[-1]} archive", "Decompress it, or use .gz, .bz2 or .xz")
    try:
        if ".parquet" in suffixes:
            return _read_parquet(path, default_limit(path) if limit is None else limit)
        separators = {"sep": "\t"} if ".tsv" in suffixes else _separators(path, limit)
        with open_text(path, limit) as stream:
            columns = stream.peek(MAX_LINE).partition(b"\n")[0].count(separators["sep"].encode()) + 1
            if columns > MAX_COLUMNS:
                raise DataError(path, f"has more than {MAX_COLUMNS} columns", "Give fewer columns")
            return pandas.read_csv(stream, **separators)
    except DataError:
        raise
    except UnicodeDecodeError as error:
        raise DataError(path, f"is not UTF-8 ({error})", "Save it as UTF-8") from error
    except (ValueError, OSError) as error:  # parsers raise kinds of ValueError
        raise DataError(path, f"cannot be read ({error})", "Give a table with a header") from error


def _read_parquet(path: Path, limit: int) -> Any:
    """Read a Parquet file after a look at its metadata. Text is read as categories, which repeat no values."""
    arrow, parquet = (
        import_optional(name, "Parquet files need pyarrow", "parquet") for name in ("pyarrow", "pyarrow.parquet")
    )
    file = parquet.ParquetFile(path)
    metadata, schema = file.metadata, file.schema_arrow
    for field in schema:
        if arrow.types.is_nested(field.type):
            raise DataError(path, f"column {field.name!r} has lists or records", "Give numbers, text or categories")
    uncompressed = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    if max(uncompressed, 8 * metadata.num_rows * metadata.num_columns) > limit:
        raise too_large(path, limit)
    if metadata.num_columns > MAX_COLUMNS:
        raise DataError(path, f"has more than {MAX_COLUMNS} columns", "Give fewer columns")
    texts = [f.name for f in schema if arrow.types.is_string(f.type) or arrow.types.is_large_string(f.type)]
    return parquet.ParquetFile(path, read_dictionary=texts).read().to_pandas()


def _separators(path: Path, limit: int | None) -> dict[str, str]:
    """Return a comma, or a semicolon if the header has more of them, then with the decimal mark of the first row."""
    with open_text(path, limit) as file:
        header, row = file.readline(MAX_LINE), file.readline(MAX_LINE)
    if header.count(b";") <= header.count(b","):
        return {"sep": ","}
    return {"sep": ";", "decimal": "," if re.search(rb"(^|;)-?\d+,\d+(;|\s*$)", row) else "."}
