"""Rows with labels, as arrays: a data set by its name, the sample of the package, and rows that many processes share.

For the last, dense files in the cache folder are mapped into memory: a worker asks for a data set by its name and gets
the pages that the others have read already; nothing is sent to it. A file's name ends in a checksum of its content.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.data.cache import cached, file_hash, write_cached
from longterm.data.files import cache_folder, fetch
from longterm.data.libsvm import Rows, parse_libsvm, read_libsvm
from longterm.data.registry import DATA_SETS, Arrays, data_set
from longterm.errors import DataError, InputError, did_you_mean

SAMPLE = "sample"
"""The name of the rows that come with the package."""
LABEL_NAMES = ("label", "target", "class", "y")
"""Columns that are taken for the labels of a table of one's own."""
MOST_VALUES = 50
"""A column of text with more values than this, most of them different, is a name and no feature."""
LARGEST = 2**32
"""Bytes of features beyond which rows are not made dense."""

# The ranges of the ten measurements in the whole of Covertype.
LOWEST = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0], dtype=np.float64)
HIGHEST = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173], dtype=np.float64)
WILDERNESS_AREAS, SOIL_TYPES = 4, 40


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with labels.

    Parameters
    ----------
    name : str
        Of the data set.
    features : array of shape (n, d)
        Dense, or a SciPy sparse matrix for the sets whose form is "sparse" (a9a, sector).
    labels : array of shape (n,)
        Of two classes ±1; of more, the numbers of the classes.
    columns : tuple of str
        The names of the features, where the source has names.
    """

    name: str
    features: Any
    labels: FloatArray
    columns: tuple[str, ...] = ()

    def __repr__(self) -> str:
        rows, features = self.features.shape
        return f"Labelled({self.name!r}, {rows} rows, {features} features, {len(np.unique(self.labels))} classes)"


def load(name: str) -> Labelled:
    """The data set of this name, downloaded where it is not here.

    ijcnn1 and covtype come as dense arrays of float64 (covtype: 251 MB), a9a and sector as sparse matrices.

    Parameters
    ----------
    name : str
        Of a data set: `longterm data list` shows them.

    Returns
    -------
    Labelled
        Rows with labels.
    """
    data = data_set(name)
    if data.form == "columns":
        raise InputError("name", f"{name!r} is a table of named columns", "Use load_adult or load_elec2")

    def check(path: Path, arrays: Arrays) -> None:
        data.check(path, arrays, len(arrays["values"]))

    arrays = cached(name, fetch(name), lambda path: parse_libsvm(path, data.features)._asdict(), check)
    matrix = Rows(**arrays).matrix(data.features)
    labels = arrays["labels"]
    signs = np.where(labels == data.positive, 1.0, -1.0) if data.classes == 2 else labels
    return Labelled(name, matrix.toarray() if data.form == "dense" else matrix, signs)


def load_sample() -> Labelled:
    """6,000 rows in the 54 columns of LIBSVM's scaled covtype; label +1 for cover type 2, −1 for the others.

    Ten measurements scaled to [0, 1] by the ranges of the whole set, then one column for each wilderness area and each
    soil type. Nothing is downloaded.

    Returns
    -------
    Labelled
        Rows with labels.

    Examples
    --------
    >>> from longterm.data import load_sample
    >>> sample = load_sample()
    >>> sample.features.shape, int((sample.labels == 1).sum())
    ((6000, 54), 2905)
    """
    packed = files("longterm.data").joinpath("covtype-sample.csv.gz").read_bytes()
    table = np.loadtxt(gzip.decompress(packed).decode().splitlines(), delimiter=",", skiprows=1)
    measured = (table[:, :10] - LOWEST) / (HIGHEST - LOWEST)
    area = table[:, 10, None] == np.arange(1, WILDERNESS_AREAS + 1)
    soil = table[:, 11, None] == np.arange(1, SOIL_TYPES + 1)
    labels = np.where(table[:, 12] == 2, 1.0, -1.0)
    return Labelled("covtype sample", np.concatenate([measured, area, soil], axis=1), labels)


def load_mapped(name: str, label: str | None = None, *, drop: Sequence[str] = (), scale: bool = False) -> Labelled:
    """The rows of a data set of two classes as a dense array (n, d), read-only, and labels ±1.

    Parameters
    ----------
    name : str
        "sample", a data set's name, or the path of a file: CSV, TSV or Parquet with a header, or LIBSVM's format (the
        larger label becomes +1).
    label : str, optional
        As for `from_frame`, for a table of your own.
    drop : sequence of str
        As for `from_frame`, for a table of your own.
    scale : bool
        As for `from_frame`, for a table of your own; other rows stay as they are.

    Returns
    -------
    Labelled
        Rows with labels.

    Examples
    --------
    >>> from longterm.data import load_mapped
    >>> rows = load_mapped("sample")
    >>> rows.features.shape, rows.features.flags.writeable
    ((6000, 54), False)
    """
    path = Path(name)
    if (label is not None or drop) and (name == SAMPLE or name in DATA_SETS or not _is_table(path)):
        remedy = "Leave them out, or give a CSV, TSV or Parquet file"
        raise InputError("label, drop", f"{name!r} has no named columns", remedy)
    if name == SAMPLE:
        sample = load_sample()
        sample.features.flags.writeable = False
        return sample
    if name in DATA_SETS:
        return _mapped(name, DATA_SETS[name].sha256[:16], lambda: load(name))
    if not path.is_file():
        known = [SAMPLE, *sorted(n for n, d in DATA_SETS.items() if d.classes == 2 and d.form != "columns")]
        what = f"{name!r} is neither a data set nor a file{did_you_mean(name, known)}"
        raise InputError("data", what, f"Choose from {known}, or give a path")
    key = file_hash(path)[:16]
    scale = scale and _is_table(path)
    if label is not None or drop or scale:  # the same file read otherwise is other rows
        key += f"{zlib.crc32(repr((label, sorted(drop), scale)).encode()):08x}"
    return _mapped(path.name, key, lambda: _own_file(path, label, drop, scale))


def load_table(
    path: str | PathLike[str], label: str | None = None, *, drop: Sequence[str] = (), scale: bool = False
) -> Labelled:
    """Rows and labels of a CSV, TSV or Parquet file of your own, with a header.

    Parameters
    ----------
    path : path
        Of the file; a CSV may be compressed.
    label : str, optional
        As for `from_frame`.
    drop : sequence of str
        As for `from_frame`.
    scale : bool
        As for `from_frame`.

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
    Labelled('customers.csv', 2 rows, 3 features, 2 classes)
    >>> rows.columns
    ('age', 'plan=basic', 'plan=team')
    """
    file = Path(path)
    if not file.is_file():
        raise DataError(file, "is not here", "Give the path of a CSV, TSV or Parquet file")
    if not _is_table(file):
        raise DataError(file, "is not called .csv, .tsv or .parquet", "Rename it, or use read_libsvm or from_frame")
    return _own_file(file, label, drop, scale)


def from_frame(
    frame: Any,
    label: str | None = None,
    *,
    drop: Sequence[str] = (),
    scale: bool = False,
    name: str = "data frame",
) -> Labelled:
    """Rows and labels of a pandas data frame; columns of text or categories become one column for each value.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row for each example.
    label : str, optional
        The column of the labels, of which there are two (the larger becomes +1). Left out: the only column that is
        called label, target, class or y.
    drop : sequence of str
        Columns to leave out: numbers of customers, dates.
    scale : bool
        Whether to divide each column by its largest size: a budget of weights wants columns of like size. In a stream,
        where that is not known, ``BudgetLinearLearner(…, scale_features=True)`` finds it.
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

    columns = [str(column) for column in frame.columns]
    if isinstance(drop, str):
        raise InputError("drop", f"{drop!r} is one word", f"Give a list: [{drop!r}]")
    for column in (*drop, *(() if label is None else (label,))):
        if column not in columns:
            what = f"has no column {column!r}{did_you_mean(column, columns)}"
            raise DataError(name, what, f"Choose from {columns[:12]}")
    frame = frame.set_axis(columns, axis=1).drop(columns=list(drop))
    named = [column for column in frame.columns if column.lower() in LABEL_NAMES]
    if label is None and len(named) != 1:
        what = f"has {len(named) or 'no'} columns that may be the label, among {list(frame.columns)[:12]}"
        remedy = f"Name it (label=…), or call one column, and no other, one of {', '.join(LABEL_NAMES)}"
        raise DataError(name, what, remedy)
    chosen = named[0] if label is None else label
    _require_filled(frame, name)
    classes, codes = np.unique(frame[chosen].to_numpy(), return_inverse=True)
    if len(classes) != 2:
        what = f"column {chosen!r} has {len(classes)} different labels"
        raise DataError(name, what, "Give rows of two classes, or name another column")
    rest = frame.drop(columns=chosen)
    for column in rest.select_dtypes(exclude=["number", "bool"]):
        values = rest[column].nunique()
        if values > max(MOST_VALUES, len(rest) // 2):
            what = f"column {column!r} has {values} different values in {len(rest)} rows, and each would be a feature"
            raise DataError(name, what, f"Leave it out (drop={column}), or make numbers of it")
    wide = pd.get_dummies(rest, prefix_sep="=", dtype=float)
    features = wide.to_numpy(dtype=np.float64)
    if scale:
        largest = np.abs(features).max(axis=0, initial=0.0)
        features = features / np.where(largest > 0, largest, 1.0)
    return Labelled(name, features, np.where(codes == 1, 1.0, -1.0), tuple(map(str, wide.columns)))


def _require_filled(frame: Any, name: str) -> None:
    """No cell may be empty: the first that is, and how many rows have one."""
    missing = frame.isna()
    bad = missing.any(axis=1).to_numpy()
    if bad.any():
        row = int(bad.argmax())
        column = frame.columns[int(missing.iloc[row].to_numpy().argmax())]
        others = f", and {int(bad.sum()) - 1} more rows have empty cells" if bad.sum() > 1 else ""
        remedy = "Fill them (frame.fillna), or leave such rows out (frame.dropna)"
        raise DataError(name, f"column {column!r} is empty{others}", remedy, line=row + 2)


def _is_table(path: Path) -> bool:
    return bool({".csv", ".tsv", ".parquet"} & {suffix.lower() for suffix in path.suffixes})


def _own_file(path: Path, label: str | None, drop: Sequence[str], scale: bool) -> Labelled:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if _is_table(path):
        try:
            pd: Any = import_module("pandas")
        except ImportError as error:
            raise ImportError("CSV and Parquet files need pandas: pip install 'longterm[experiments]'") from error
        try:
            if ".parquet" in suffixes:
                frame = pd.read_parquet(path)
            else:
                frame = pd.read_csv(path, sep="\t" if ".tsv" in suffixes else ",")
        except (ValueError, pd.errors.ParserError) as error:
            raise DataError(path, f"cannot be read ({error})", "Give a table with a header") from error
        return from_frame(frame, label, drop=drop, scale=scale, name=path.name)
    features, labels = read_libsvm(path)
    classes = np.unique(labels)
    if len(classes) != 2:
        raise DataError(path, f"has {len(classes)} different labels", "Give a file of two classes")
    return Labelled(path.name, features, np.where(labels == classes[1], 1.0, -1.0))


def _mapped(name: str, key: str, read: Callable[[], Labelled]) -> Labelled:
    stem = cache_folder() / "rows" / f"{name}.{key}"
    features, labels = _load_part(stem, "features"), _load_part(stem, "labels")
    if features is None or labels is None:
        rows = read()
        n, d = rows.features.shape
        if 8 * n * d > LARGEST:
            what = f"{name!r} would take {8 * n * d / 2**30:.0f} GiB as a dense array"
            raise InputError("data", what, "Choose one with fewer columns")
        if len(np.unique(rows.labels)) != 2:
            raise InputError("data", f"{name!r} has more than two classes", "Choose a data set of two classes")
        dense = rows.features.toarray() if hasattr(rows.features, "toarray") else rows.features
        features, labels = _save_part(stem, "features", dense), _save_part(stem, "labels", rows.labels)
    return Labelled(name, features, labels)


def _load_part(stem: Path, part: str) -> FloatArray | None:
    """The array of that file, if there is one and it is what its name says."""
    for path in sorted(stem.parent.glob(f"{stem.name}.{part}.*.npy")) if stem.parent.is_dir() else ():
        try:
            array: FloatArray = np.load(path, mmap_mode="r")
        except (OSError, ValueError, EOFError):
            continue
        if path.name == _file_name(stem, part, array):
            return array
    return None


def _save_part(stem: Path, part: str, array: FloatArray) -> FloatArray:
    target = stem.with_name(_file_name(stem, part, array))
    write_cached(target, lambda file: np.save(file, np.ascontiguousarray(array)))
    return np.asarray(np.load(target, mmap_mode="r"))


def _file_name(stem: Path, part: str, array: FloatArray) -> str:
    shape = "x".join(map(str, array.shape))
    return f"{stem.name}.{part}.{shape}.{zlib.crc32(np.ascontiguousarray(array).data):08x}.npy"
