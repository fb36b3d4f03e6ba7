"""LIBSVM's text format: a row is ``label index:value index:value …``, indices from 1, increasing.

The grammar, in ASCII alone and the same wherever a line stands:

    row     [ number { blanks index ":" number } ]           blanks may come first and last, an empty row is none
    index   digits                                           a whole number from 1, above the one before
    number  ["+" | "-"] (digits ["." [digits]] | "." digits) [("e" | "E") ["+" | "-"] digits]         and finite
    blanks  one or more of space, tab, carriage return, vertical tab, form feed

Blocks of lines are held to it by one expression that never looks back, then taken apart by array operations. Only a
block in which something is wrong is read word by word, to say where and what.
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.data.files import AGAIN, LONGEST_LINE, blocks_of_lines
from longterm.errors import DataError

LARGEST_INDEX = 2**31 - 1
SPACE, NEWLINE = 32, 10


def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """Every repetition is possessive (`*+`): what was matched is never given back, so the time is that of one pass.

    Python 3.11 before 3.11.5 takes some of them wrongly; there they are plain. No text can be matched in two ways, so
    it is the same grammar, and what is given back is refused at once.
    """
    if sys.version_info < (3, 11, 5):
        for kind in (b"*", b"+", b"?"):
            pattern = pattern.replace(kind + b"+", kind)
    return re.compile(pattern)


_BLANK = rb"[ \t\r\v\f]"
_NUMBER = rb"[+-]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+"
_ROWS = _compiled(rb"(?:%b*+(?:%b(?:%b++[0-9]++:%b)*+%b*+)?+\n)*+" % (_BLANK, _NUMBER, _BLANK, _NUMBER, _BLANK))
_WORD = _compiled(rb"[^ \t\r\v\f]++")
_ONE_NUMBER = _compiled(_NUMBER)
_INDEX = _compiled(rb"0*+([0-9]{1,10})")


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


def read_libsvm(
    path: str | Path, features: int | None = None, *, longest_line: int = LONGEST_LINE
) -> tuple[csr_array[np.float64], FloatArray]:
    r"""Features (sparse) and labels of a file in LIBSVM's format: plain, bz2, gzip or xz.

    What is wrong with the file is an error that names the line.

    Parameters
    ----------
    path : str or pathlib.Path
        Of the file.
    features : int, optional
        The number of columns; left out, the largest index.
    longest_line : int
        Bytes. A longer line is refused before all of it is read: a small compressed file may hold one that fills the
        memory.

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
    limit = validate.count("longest_line", longest_line)
    rows = parse_libsvm(Path(path), None if features is None else validate.dimension("features", features), limit)
    width = features if features is not None else int(rows.columns.max(initial=-1)) + 1
    return rows.matrix(width), rows.labels


def parse_libsvm(path: Path, features: int | None = None, longest_line: int = LONGEST_LINE) -> Rows:
    """All rows of the file."""
    limit = LARGEST_INDEX if features is None else min(features, LARGEST_INDEX)
    parts = []
    for first_line, text in blocks_of_lines(path, longest_line):
        part = _parse_block(text, limit)
        if part is None:
            raise _fault(text, limit, path, first_line)
        parts.append(part)
    if not sum(len(part.labels) for part in parts):
        raise DataError(path, "has no rows", AGAIN)
    labels, starts, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Rows(labels, np.concatenate([[0], np.cumsum(starts)]), columns, values)


def _parse_block(text: bytes, limit: int) -> Rows | None:
    """The rows of a block, `starts` being the number of entries of each; None where anything is not as it should be."""
    if _ROWS.fullmatch(text) is None:
        return None
    raw = np.frombuffer(text, dtype=np.uint8)
    blank = raw <= SPACE
    (starts,) = np.nonzero(~blank & np.concatenate([[True], blank[:-1]]))
    if len(starts) == 0:  # NumPy would find a number in no text
        return Rows(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0))
    (ends,) = np.nonzero(raw == NEWLINE)
    line = np.searchsorted(ends, starts)
    is_label = np.diff(line, prepend=-1) > 0
    numbers = np.fromstring(text.replace(b":", b" "), sep=" ")
    if not np.all(np.isfinite(numbers)):
        return None
    first = np.zeros(len(numbers), dtype=np.bool_)  # an entry is two numbers, a label one
    first[np.flatnonzero(is_label) * 2 - np.arange(np.count_nonzero(is_label))] = True
    index, values = numbers[~first].reshape(-1, 2).T
    (labels_at,) = np.nonzero(is_label)
    entries = np.diff(labels_at, append=len(starts)) - 1
    row_begins = np.cumsum(entries)[:-1]
    rises = np.diff(index) > 0
    rises[row_begins[(row_begins > 0) & (row_begins < len(index))] - 1] = True
    if not np.all(rises) or not np.all((index >= 1) & (index <= limit)):
        return None
    return Rows(numbers[first], entries, index.astype(np.int32) - np.int32(1), values)


def _fault(text: bytes, limit: int, path: Path, first_line: int) -> DataError:
    """What is wrong with a block, and where: the first thing in it that the grammar does not allow."""
    for number, line in enumerate(text.split(b"\n"), start=first_line):
        before = 0
        for place, found in enumerate(_WORD.finditer(line)):
            word = found.group()
            index, colon, value = word.partition(b":") if place else (b"", b"", word)
            reason = None
            if place:
                digits = _INDEX.fullmatch(index)
                if not colon:
                    reason = f"{_shown(word)} is not index:value"
                elif digits is None or not 1 <= int(digits[1]) <= limit:
                    reason = f"the index {_shown(index)} is not a whole number from 1 to {limit}"
                elif int(digits[1]) <= before:
                    reason = f"index {int(digits[1])} comes after {before}"
                else:
                    before = int(digits[1])
            if reason is None and not (_ONE_NUMBER.fullmatch(value) and math.isfinite(float(value))):
                reason = f"the {'value' if place else 'label'} {_shown(value)} is not a finite number"
            if reason is not None:
                return DataError(path, reason, AGAIN, line=number)
    raise AssertionError("two ways to read a block disagree")


def _shown(word: bytes) -> str:
    """The beginning of a word, as it can be printed."""
    return repr(word[:40].decode("utf-8", errors="backslashreplace"))
