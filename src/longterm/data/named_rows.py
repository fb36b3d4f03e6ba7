"""Rows with labels as arrays: data sets by name, the package's sample, and memory-mapped rows.

Mapped rows are dense files in the cache folder, so that several processes share the same memory. The name of a file
ends with a checksum of its content.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from longterm._base.arrays import FloatArray
from longterm._base.messages import did_you_mean
from longterm.data.cache import file_hash, load_cached, write_cached
from longterm.data.encoder import Missing
from longterm.data.labelled import Labelled
from longterm.data.libsvm import parse_libsvm
from longterm.data.locations import cache_folder, fetch
from longterm.data.registry import DATA_SETS, Arrays, data_set
from longterm.data.tables import is_table, read_file
from longterm.errors import InputError

SAMPLE = "sample"
"""The name of the package's sample."""
MAX_DENSE_BYTES = 2**32
"""The limit on the bytes of a dense array of features."""

# The ranges of the ten measurements in the whole of Covertype.
LOWEST = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0], dtype=np.float64)
HIGHEST = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173], dtype=np.float64)
WILDERNESS_AREAS, SOIL_TYPES = 4, 40


def load(name: str) -> Labelled:
    """Load a data set by name. Download it if it is not local.

    ijcnn1 and covtype are dense arrays of float64 (covtype: 251 MB), a9a and sector are sparse.

    Parameters
    ----------
    name : str
        The name of a data set, as in `longterm data list`.

    Returns
    -------
    Labelled
        The rows with labels.
    """
    data = data_set(name)
    if data.form == "columns":
        raise InputError("name", f"{name!r} is a table of named columns", "Use load_adult or load_elec2")

    def check(path: Path, arrays: Arrays) -> None:
        data.check(path, arrays, len(arrays["values"]))

    arrays = load_cached(name, fetch(name), lambda path: parse_libsvm(path, data.features), check)
    labels = arrays["labels"]
    matrix = csr_array((arrays["values"], arrays["columns"], arrays["starts"]), shape=(len(labels), data.features))
    signs = np.where(labels == data.positive, 1.0, -1.0) if data.classes == 2 else labels
    return Labelled(name, matrix.toarray() if data.form == "dense" else matrix, signs)


def load_sample() -> Labelled:
    """Load the package's sample: 6,000 rows with the 54 columns of LIBSVM's scaled covtype. Nothing is downloaded.

    The label is +1 for cover type 2 and −1 for others.

    Returns
    -------
    Labelled
        The rows with labels.

    Examples
    --------
    >>> from longterm.data.named_rows import load_sample
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
    """Load the rows of a data set of two classes as a dense, read-only, memory-mapped array, with labels ±1.

    Parameters
    ----------
    name : str
        "sample", the name of a data set, or the path of a file: CSV, TSV or Parquet with a header, or LIBSVM's format,
        where the larger label becomes +1.
    label, drop, scale, missing : optional
        As for `from_frame`, for a table of your own.

    Returns
    -------
    Labelled
        The rows with labels.

    Examples
    --------
    >>> from longterm.data.named_rows import load_mapped
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
        return _load_mapped(name, DATA_SETS[name].sha256[:16], lambda: load(name), lambda: fetch(name))
    if not path.is_file():
        known = [SAMPLE, *sorted(n for n, d in DATA_SETS.items() if d.classes == 2 and d.form != "columns")]
        what = f"{name!r} is neither a data set nor a file{did_you_mean(name, known)}"
        raise InputError("data", what, f"Choose from {known}, or give a path")
    key = file_hash(path)[:16]
    scale = scale and is_table(path)
    options = (label, sorted(drop), scale, missing)
    if options != (None, [], False, "refuse"):  # the same file with other options has other rows
        key += f"{zlib.crc32(repr(options).encode()):08x}"
    return _load_mapped(path.name, key, lambda: read_file(path, label, drop, scale, missing), lambda: path)


def _load_mapped(name: str, key: str, read: Callable[[], Labelled], source: Callable[[], Path]) -> Labelled:
    stem = cache_folder() / "rows" / f"{name}.{key}"
    features, labels = _load_part(stem, "features"), _load_part(stem, "labels")
    if features is None or labels is None:
        rows = read()
        n, d = rows.features.shape
        if 8 * n * d > MAX_DENSE_BYTES:
            what = f"{name!r} would take {8 * n * d / 2**30:.0f} GiB as a dense array"
            raise InputError("data", what, "Choose a data set with fewer columns")
        if len(np.unique(rows.labels)) != 2:
            raise InputError("data", f"{name!r} has more than two classes", "Choose a data set of two classes")
        dense = rows.features.toarray() if hasattr(rows.features, "toarray") else rows.features
        features, labels = (
            _save_part(stem, part, array, source()) for part, array in (("features", dense), ("labels", rows.signs))
        )
    return Labelled(name, features, labels)


def _load_part(stem: Path, part: str) -> FloatArray | None:
    """Return the array of a cached file, or None if there is no file with a correct checksum."""
    for path in sorted(stem.parent.glob(f"{stem.name}.{part}.*.npy")) if stem.parent.is_dir() else ():
        try:
            array: FloatArray = np.load(path, mmap_mode="r")
        except (OSError, ValueError, EOFError):
            continue
        if path.name == _file_name(stem, part, array):
            return array
    return None


def _save_part(stem: Path, part: str, array: FloatArray, source: Path) -> FloatArray:
    target = stem.with_name(_file_name(stem, part, array))
    write_cached(target, lambda file: np.save(file, np.ascontiguousarray(array)), source)
    return np.asarray(np.load(target, mmap_mode="r"))


def _file_name(stem: Path, part: str, array: FloatArray) -> str:
    shape = "x".join(map(str, array.shape))
    return f"{stem.name}.{part}.{shape}.{zlib.crc32(np.ascontiguousarray(array).data):08x}.npy"
