"""Rows and labels as arrays that many processes share: dense files in the cache folder, mapped into memory.

A worker asks for a data set by its name and gets the pages that the others have read already; nothing is sent to it.
A file's name ends in a checksum of its content, and it is there whole or not at all.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from longterm._arrays import FloatArray
from longterm.data.cache import file_hash, write_whole
from longterm.data.files import cache_folder
from longterm.data.libsvm import read_libsvm
from longterm.data.load import Labelled, load
from longterm.data.registry import DATA_SETS
from longterm.data.sample import load_sample
from longterm.errors import DataError, InputError

SAMPLE = "sample"
"""The name of the rows that come with the package."""
LARGEST = 2**32
"""Bytes of features beyond which rows are not made dense."""


def load_mapped(name: str) -> Labelled:
    """The rows of a data set of two classes as a dense array (n, d), read-only, and labels ±1.

    `name` is "sample", a data set's name, or the path of a file in LIBSVM's format (its larger label becomes +1).

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
        raise InputError("data", f"{name!r} is neither a data set nor a file", f"Choose from {known}, or give a path")
    return _mapped(path.name, file_hash(path)[:16], lambda: _own_file(path))


def _own_file(path: Path) -> Labelled:
    features, labels = read_libsvm(path)
    classes = np.unique(labels)
    if len(classes) != 2:
        raise DataError(path, f"has {len(classes)} different labels", "Give a file of two classes")
    return Labelled(path.name, features, np.where(labels == classes[1], 1.0, -1.0))


def _mapped(name: str, key: str, read: Callable[[], Labelled]) -> Labelled:
    stem = cache_folder() / "rows" / f"{name}.{key}"
    features, labels = _found(stem, "features"), _found(stem, "labels")
    if features is None or labels is None:
        rows = read()
        n, d = rows.features.shape
        if 8 * n * d > LARGEST:
            what = f"{name!r} would take {8 * n * d / 2**30:.0f} GiB as a dense array"
            raise InputError("data", what, "Choose one with fewer columns")
        if len(np.unique(rows.labels)) != 2:
            raise InputError("data", f"{name!r} has more than two classes", "Choose a data set of two classes")
        dense = rows.features.toarray() if hasattr(rows.features, "toarray") else rows.features
        features, labels = _kept(stem, "features", dense), _kept(stem, "labels", rows.labels)
    return Labelled(name, features, labels)


def _found(stem: Path, part: str) -> FloatArray | None:
    """The array of that file, if there is one and it is what its name says."""
    for path in sorted(stem.parent.glob(f"{stem.name}.{part}.*.npy")) if stem.parent.is_dir() else ():
        try:
            array: FloatArray = np.load(path, mmap_mode="r")
        except (OSError, ValueError, EOFError):
            continue
        if path.name == _file_name(stem, part, array):
            return array
    return None


def _kept(stem: Path, part: str, array: FloatArray) -> FloatArray:
    target = stem.with_name(_file_name(stem, part, array))
    write_whole(target, lambda file: np.save(file, np.ascontiguousarray(array)))
    return np.asarray(np.load(target, mmap_mode="r"))


def _file_name(stem: Path, part: str, array: FloatArray) -> str:
    shape = "x".join(map(str, array.shape))
    return f"{stem.name}.{part}.{shape}.{zlib.crc32(np.ascontiguousarray(array).data):08x}.npy"
