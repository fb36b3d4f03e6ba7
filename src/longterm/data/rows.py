"""Rows with labels, as arrays: a data set by its name, the sample of the package, and rows that many processes share.

For the last, dense files in the cache folder are mapped into memory: a worker asks for a data set by its name and gets
the pages that the others have read already; nothing is sent to it. A file's name ends in a checksum of its content.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from longterm._arrays import FloatArray
from longterm.data.files import cache_folder, cached, fetch, file_hash, write_cached
from longterm.data.libsvm import Rows, parse_libsvm
from longterm.data.registry import DATA_SETS, Arrays, Labelled, data_set
from longterm.data.tables import Missing, is_table, read_own
from longterm.errors import InputError, did_you_mean

SAMPLE = "sample"
"""The name of the rows that come with the package."""
LARGEST = 2**32
"""Bytes of features beyond which rows are not made dense."""

# The ranges of the ten measurements in the whole of Covertype.
LOWEST = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0], dtype=np.float64)
HIGHEST = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173], dtype=np.float64)
WILDERNESS_AREAS, SOIL_TYPES = 4, 40


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


def load_mapped(
    name: str,
    label: str | None = None,
    *,
    drop: Sequence[str] = (),
    scale: bool = False,
    missing: Missing = "refuse",
) -> Labelled:
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
    missing : {"refuse", "drop", "fill"}
        As for `from_frame`, for a table of your own.

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
    if (label is not None or drop or missing != "refuse") and (
        name == SAMPLE or name in DATA_SETS or not is_table(path)
    ):
        remedy = "Leave them out, or give a CSV, TSV or Parquet file"
        raise InputError("label, drop, missing", f"{name!r} has no named columns", remedy)
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
    scale = scale and is_table(path)
    how = (label, sorted(drop), scale, *(() if missing == "refuse" else (missing,)))
    if how != (None, [], False):  # the same file read otherwise is other rows
        key += f"{zlib.crc32(repr(how).encode()):08x}"
    return _mapped(path.name, key, lambda: read_own(path, label, drop, scale, missing))


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
