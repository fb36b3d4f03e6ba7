"""LIBSVM's text format, read by scikit-learn: a row is ``label index:value index:value …``, with increasing indices."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.extras import import_optional
from longterm.data.reading import open_text
from longterm.errors import DataError

REMEDY = "Download the file again, or convert it"


class _CountedLines:
    """The lines of a text with their count, for scikit-learn's parser, which does not report line numbers."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        for line in self._stream:
            self.count += 1
            yield line

    def read(self, size: int = -1) -> bytes:
        """Read bytes. scikit-learn requires this method of a file, but does not call it."""
        return self._stream.read(size)


def read_libsvm(
    path: str | Path, features: int | None = None, *, max_bytes: int | None = None
) -> tuple[csr_array[np.float64], FloatArray]:
    r"""Read features (sparse) and labels of a file in LIBSVM's format: plain, bz2, gzip or xz.

    Parameters
    ----------
    path : str or pathlib.Path
        The file. Indices start at 1.
    features : int, optional
        The number of columns. By default the largest index.
    max_bytes : int, optional
        A limit on the decompressed bytes. By default 256 MiB, or 20 times the file's size if that is more.

    Returns
    -------
    tuple of scipy.sparse.csr_array and numpy.ndarray
        Features and labels.

    Raises
    ------
    DataError
        If the file is malformed or exceeds its limit, with the line number.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longterm.data.libsvm import read_libsvm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "tiny"
    ...     _ = file.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    ...     features, labels = read_libsvm(file)
    >>> features.toarray(), labels
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]]), array([ 1., -1.]))
    """
    limit = None if max_bytes is None else validate.count("max_bytes", max_bytes)
    width = None if features is None else validate.dimension("features", features)
    matrix, labels = _parse(Path(path), width, limit)
    return csr_array(matrix), labels


def parse_libsvm(path: Path, features: int | None = None) -> dict[str, NDArray[Any]]:
    """Return the labels and the compressed sparse rows of a file: starts, columns (from 0) and values."""
    matrix, labels = _parse(path, features, None)
    starts, columns = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return {"labels": labels, "starts": starts, "columns": columns, "values": matrix.data}


def _parse(path: Path, features: int | None, limit: int | None) -> tuple[Any, FloatArray]:
    load: Any = import_optional("sklearn.datasets", "LIBSVM files need scikit-learn", "linear").load_svmlight_file
    with open_text(path, limit) as stream:
        lines = _CountedLines(stream)
        try:
            matrix, labels = load(lines, n_features=features, zero_based=False, dtype=np.float64)
        except (ValueError, OverflowError, IndexError) as error:
            if lines.count == 0:
                raise DataError(path, "has no rows", REMEDY) from error
            raise DataError(path, f"is not in LIBSVM's format ({error})", REMEDY, line=lines.count) from error
    if len(labels) == 0:
        raise DataError(path, "has no rows", REMEDY)
    if not np.isfinite(labels).all() or not np.isfinite(matrix.data).all():
        finite = np.isfinite(np.asarray(matrix.sum(axis=1)).ravel()) & np.isfinite(labels)
        raise DataError(path, f"row {int(np.argmin(finite)) + 1} holds a number that is not finite", REMEDY)
    return matrix, labels
