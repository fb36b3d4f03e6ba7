"""LIBSVM's text format: a row is ``label index:value index:value …``, indices from 1, increasing.

Blocks of lines are taken apart by array operations. Only a block in which something is wrong is read line by line, to
say where and what.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longterm._arrays import FloatArray
from longterm.data.files import AGAIN, blocks_of_lines
from longterm.errors import DataError

LARGEST_INDEX = 2**31 - 1
SPACE, NEWLINE, COLON = 32, 10, 58


class Rows(NamedTuple):
    """Rows in the compressed sparse form: row i has the entries starts[i] … starts[i + 1]."""

    labels: FloatArray
    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    """Counted from 0."""
    values: FloatArray

    def matrix(self, features: int) -> csr_array[np.float64]:
        """The features as a sparse matrix."""
        return csr_array((self.values, self.columns, self.starts), shape=(len(self.labels), features))


def read_libsvm(path: str | Path, features: int | None = None) -> tuple[csr_array[np.float64], FloatArray]:
    r"""Features (sparse) and labels of a file in LIBSVM's format: plain, bz2, gzip or xz.

    What is wrong with the file is an error that names the line.

    Parameters
    ----------
    path : str or pathlib.Path
        Of the file.
    features : int, optional
        The number of columns; left out, the largest index.

    Returns
    -------
    tuple of scipy.sparse.csr_array and numpy.ndarray
        Features and labels.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longterm.data import read_libsvm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "tiny"
    ...     _ = file.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    ...     features, labels = read_libsvm(file)
    >>> features.toarray(), labels
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]]), array([ 1., -1.]))
    """
    rows = parse_libsvm(Path(path), features)
    width = features if features is not None else int(rows.columns.max(initial=-1)) + 1
    return rows.matrix(width), rows.labels


def parse_libsvm(path: Path, features: int | None = None) -> Rows:
    """All rows of the file."""
    limit = LARGEST_INDEX if features is None else features
    parts = []
    for first_line, text in blocks_of_lines(path):
        part = _parse_block(text, limit)
        parts.append(_parse_lines(text, limit, path, first_line) if part is None else part)
    if not sum(len(part.labels) for part in parts):
        raise DataError(path, "has no rows", AGAIN)
    labels, starts, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Rows(labels, np.concatenate([[0], np.cumsum(starts)]), columns, values)


def _parse_block(text: bytes, limit: int) -> Rows | None:
    """The rows of a block, `starts` being the number of entries of each; None where anything is not as it should be."""
    raw = np.frombuffer(text, dtype=np.uint8)
    blank = raw <= SPACE
    (starts,) = np.nonzero(~blank & np.concatenate([[True], blank[:-1]]))
    (ends,) = np.nonzero(raw == NEWLINE)
    (colons,) = np.nonzero(raw == COLON)
    line = np.searchsorted(ends, starts)
    is_label = np.diff(line, prepend=-1) > 0
    colons_in = np.bincount(np.searchsorted(starts, colons, side="right") - 1, minlength=len(starts))
    if not np.array_equal(colons_in, ~is_label):
        return None
    numbers = _numbers(text.replace(b":", b" "))
    if numbers is None or len(numbers) != len(starts) + len(colons) or not np.all(np.isfinite(numbers)):
        return None
    first = np.zeros(len(numbers), dtype=np.bool_)  # an entry is two numbers, a label one
    first[np.flatnonzero(is_label) * 2 - np.arange(np.count_nonzero(is_label))] = True
    index, values = numbers[~first].reshape(-1, 2).T
    (labels_at,) = np.nonzero(is_label)
    entries = np.diff(labels_at, append=len(starts)) - 1
    row_begins = np.cumsum(entries)[:-1]
    rises = np.diff(index) > 0
    rises[row_begins[(row_begins > 0) & (row_begins < len(index))] - 1] = True
    whole = (index >= 1) & (index <= limit) & (index == np.floor(index))
    if not np.all(rises) or not np.all(whole):
        return None
    return Rows(numbers[first], entries, index.astype(np.int32) - np.int32(1), values)


def _numbers(text: bytes) -> FloatArray | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.fromstring(text, sep=" ")
        except (ValueError, DeprecationWarning):  # NumPy's way to say that it met something else
            return None


def _parse_lines(text: bytes, limit: int, path: Path, first_line: int) -> Rows:
    """The same, line by line: slow, but it knows what is wrong and where."""
    labels, entries, columns, values = [], [], [], []
    for number, line in enumerate(text.split(b"\n"), start=first_line):
        words = line.decode("utf-8", errors="backslashreplace").split()
        if not words:
            continue
        labels.append(_finite(words[0], "label", path, number))
        entries.append(len(words) - 1)
        before = 0
        for word in words[1:]:
            index, colon, value = word.partition(":")
            if not colon:
                raise DataError(path, f"{word[:40]!r} is not index:value", AGAIN, line=number)
            if not index.isdecimal() or not 1 <= int(index) <= limit:
                what = f"the index {index[:40]!r} is not a whole number from 1 to {limit}"
                raise DataError(path, what, AGAIN, line=number)
            if int(index) <= before:
                raise DataError(path, f"index {index} comes after {before}", AGAIN, line=number)
            before = int(index)
            columns.append(before - 1)
            values.append(_finite(value, "value", path, number))
    return Rows(
        np.array(labels, dtype=np.float64),
        np.array(entries, dtype=np.int64),
        np.array(columns, dtype=np.int32),
        np.array(values, dtype=np.float64),
    )


def _finite(word: str, what: str, path: Path, line: int) -> float:
    try:
        number = float(word)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise DataError(path, f"the {what} {word[:40]!r} is not a finite number", AGAIN, line=line)
    return number
