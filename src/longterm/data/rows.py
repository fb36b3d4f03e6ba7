"""Rows with labels, as arrays: a data set by its name, the sample of the package, and rows that many processes share.

For the last, dense files in the cache folder are mapped into memory: a worker asks for a data set by its name and gets
the pages that the others have read already; nothing is sent to it. A file's name ends in a checksum of its content.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
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
    """

    name: str
    features: Any
    labels: FloatArray


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


def load_mapped(name: str) -> Labelled:
    """The rows of a data set of two classes as a dense array (n, d), read-only, and labels ±1.

    Parameters
    ----------
    name : str
        "sample", a data set's name, or the path of a file: CSV, TSV or Parquet with a column called
        label, or LIBSVM's format (the larger label becomes +1).

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
    if name == SAMPLE:
        sample = load_sample()
        sample.features.flags.writeable = False
        return sample
    if name in DATA_SETS:
        return _mapped(name, DATA_SETS[name].sha256[:16], lambda: load(name))
    path = Path(name)
    if not path.is_file():
        known = [SAMPLE, *sorted(n for n, d in DATA_SETS.items() if d.classes == 2 and d.form != "columns")]
        what = f"{name!r} is neither a data set nor a file{did_you_mean(name, known)}"
        raise InputError("data", what, f"Choose from {known}, or give a path")
    return _mapped(path.name, file_hash(path)[:16], lambda: _own_file(path))


def from_frame(frame: Any, label: str | None = None, *, name: str = "data frame") -> Labelled:
    """Rows and labels of a pandas data frame; columns of text or categories become one column for each value.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row for each example.
    label : str, optional
        The column of the labels, of which there are two (the larger becomes +1). Left out: the only column that is
        called label, target, class or y.
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
    named = [column for column in columns if column.lower() in LABEL_NAMES]
    if label is None and len(named) != 1:
        what = f"has no column that is plainly the label among {columns[:12]}"
        raise DataError(name, what, f"Call it one of {', '.join(LABEL_NAMES)}, and no other so")
    chosen = named[0] if label is None else label
    if chosen not in columns:
        raise DataError(name, f"has no column {chosen!r}{did_you_mean(chosen, columns)}", f"Choose from {columns[:12]}")
    frame = frame.set_axis(columns, axis=1)
    missing = frame.isna()
    if missing.to_numpy().any():
        row = int(missing.any(axis=1).to_numpy().argmax())
        column = columns[int(missing.iloc[row].to_numpy().argmax())]
        raise DataError(name, f"column {column!r} is empty", "Fill it, or leave the row out", line=row + 2)
    classes, codes = np.unique(frame[chosen].to_numpy(), return_inverse=True)
    if len(classes) != 2:
        what = f"column {chosen!r} has {len(classes)} different labels"
        raise DataError(name, what, "Give rows of two classes, or name another column")
    features = pd.get_dummies(frame.drop(columns=chosen), dtype=float).to_numpy(dtype=np.float64)
    return Labelled(name, features, np.where(codes == 1, 1.0, -1.0))


def _own_file(path: Path) -> Labelled:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if {".csv", ".tsv", ".parquet"} & set(suffixes):
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
        return from_frame(frame, name=path.name)
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
