"""Rows, labels and weights as kernels want them, checked before anything is learned from them.

A kernel that stops half-way through a block would leave a model that has learned half of it. So whatever could stop one
(NaNs, infinities, indices out of range, numbers whose squares overflow) is refused here, for the whole block at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from longterm._arrays import FloatArray
from longterm.errors import InputError, NonFiniteError
from longterm.linear_model.kernels.round import LONGEST_GRADIENT
from longterm.linear_model.kernels.rule import NO_NUMBERS

IN_ORDER = np.empty(0, dtype=np.int64)
"""Stands for the order of the file."""


@dataclass(frozen=True)
class RowBlock:
    """Rows of a matrix: `rows` is a C-ordered array, or (data, indices, indptr) of CSR rows, sorted and unique."""

    rows: Any
    count: int
    longest: float
    """No row has a longer ‖u‖₂."""
    first_round: int | None = None
    """The round of row 0, where rows are learned in their order."""

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are CSR."""
        return isinstance(self.rows, tuple)

    def part(self, start: int, stop: int) -> Any:
        """Rows start … stop − 1."""
        if self.is_sparse:
            data, indices, indptr = self.rows
            return data, indices, indptr[start : stop + 1]
        return self.rows[start:stop]

    def to_sparse(self) -> RowBlock:
        """The same rows as CSR."""
        matrix = sparse.csr_array(self.rows)
        return RowBlock((matrix.data, matrix.indices, matrix.indptr), self.count, self.longest, self.first_round)


def row_block(X: Any, dimension: int, first_round: int | None = None) -> RowBlock:
    """A block from an array or a SciPy sparse matrix of `dimension` columns.

    Errors name the row, and its round where that of row 0 is given.
    """
    return _sparse_block(X, dimension, first_round) if sparse.issparse(X) else _dense_block(X, dimension, first_round)


def _dense_block(X: Any, dimension: int, first_round: int | None) -> RowBlock:
    rows = np.asarray(X)
    if rows.dtype not in (np.float64, np.float32):
        if rows.dtype.kind not in "iubf":
            raise InputError("X", f"has dtype {rows.dtype}", "Give numbers")
        rows = rows.astype(np.float64)
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise InputError("X", f"has shape {rows.shape}", f"Give rows of {dimension} features, shape (n, {dimension})")
    rows = np.ascontiguousarray(rows)
    size = _largest(rows)
    if not np.isfinite(size):
        row = int((~np.isfinite(rows)).any(axis=1).argmax())
        raise _not_finite(row, first_round)
    return RowBlock(rows, len(rows), size * math.sqrt(dimension), first_round)


def _sparse_block(X: Any, dimension: int, first_round: int | None) -> RowBlock:
    """Entries that stand for the same place are added up, as SciPy does."""
    matrix = X if X.format == "csr" else X.tocsr()
    if matrix.ndim != 2 or matrix.shape[1] != dimension:
        raise InputError("X", f"has shape {matrix.shape}", f"Give rows of {dimension} features")
    if matrix.dtype not in (np.float64, np.float32):
        if matrix.dtype.kind not in "iubf":
            raise InputError("X", f"has dtype {matrix.dtype}", "Give numbers")
        matrix = matrix.astype(np.float64)
    indices, indptr = matrix.indices, matrix.indptr
    if len(indices) and (indices.min() < 0 or indices.max() >= dimension):
        row = _row_of((indices < 0) | (indices >= dimension), indptr)
        what = f"row {row} has column indices outside 0 … {dimension - 1}"
        raise InputError("X", what, "Check how the matrix was made", round=_round_of(row, first_round))
    fits = len(indptr) == matrix.shape[0] + 1 and indptr[0] == 0 and indptr[-1] <= min(len(indices), len(matrix.data))
    if not fits or np.any(np.diff(indptr) < 0):
        raise InputError("X", "has row pointers that do not fit its entries", "Check how the matrix was made")
    if indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64):  # kernels want one kind for both
        matrix = sparse.csr_array((matrix.data, indices, indptr), shape=matrix.shape)
        indices, indptr = matrix.indices, matrix.indptr
    if not _sorted_and_unique(indices, indptr):
        matrix = matrix.copy()
        matrix.has_canonical_format = False
        matrix.sum_duplicates()
        indices, indptr = matrix.indices, matrix.indptr
    size, widest = _largest(matrix.data), int(np.diff(indptr).max()) if len(indptr) > 1 else 0
    if not np.isfinite(size):
        raise _not_finite(_row_of(~np.isfinite(matrix.data), indptr), first_round)
    rows = (np.ascontiguousarray(matrix.data), np.ascontiguousarray(indices), np.ascontiguousarray(indptr))
    return RowBlock(rows, matrix.shape[0], size * math.sqrt(widest), first_round)


def _sorted_and_unique(indices: NDArray[Any], indptr: NDArray[Any]) -> bool:
    falls = np.diff(indices) <= 0
    if not falls.any():
        return True
    ends = indptr[1:-1] - 1  # from the last entry of a row to the first of the next it may fall
    falls[ends[(ends >= 0) & (ends < len(falls))]] = False
    return not falls.any()


def _largest(values: NDArray[Any]) -> float:
    """The largest |value|; NaN or infinite where a value is."""
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def _row_of(entries: NDArray[np.bool_], indptr: NDArray[Any]) -> int:
    """The row of the first entry that is meant."""
    return int(np.searchsorted(indptr, int(entries.argmax()), side="right")) - 1


def _round_of(row: int, first_round: int | None) -> int | None:
    return None if first_round is None else first_round + row


def _not_finite(row: int, first_round: int | None) -> NonFiniteError:
    what = f"row {row} holds NaN or infinity"
    return NonFiniteError("X", what, "Clean the rows first", round=_round_of(row, first_round))


def labels_for(y: Any, count: int, classifies: bool) -> FloatArray:
    """Labels as float64: ±1 for two classes, any finite numbers for regression."""
    labels = np.ascontiguousarray(y, dtype=np.float64)
    if labels.shape != (count,):
        raise InputError("y", f"has shape {labels.shape}", f"Give a label for each of the {count} rows")
    if classifies:
        wrong = np.abs(labels) != 1
        if wrong.any():
            row = int(wrong.argmax())
            what = f"{labels[row]:g} is the label of row {row}"
            raise InputError("y", what, "Use −1 and +1; map 0 and 1 by 2 * y − 1")
    elif not np.isfinite(labels).all():
        row = int((~np.isfinite(labels)).argmax())
        raise NonFiniteError("y", f"the target of row {row} is NaN or infinity", "Clean the targets first")
    return labels


def weights_for(weights: Any, count: int) -> FloatArray:
    """Weights as float64, at least 0; an empty array where all are 1."""
    if weights is None:
        return NO_NUMBERS
    made = np.ascontiguousarray(weights, dtype=np.float64)
    if made.shape != (count,):
        raise InputError("sample_weight", f"has shape {made.shape}", f"Give a weight for each of the {count} rows")
    wrong = ~((made >= 0) & (made < np.inf))
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError("sample_weight", f"{made[row]:g} is the weight of row {row}", "Give weights of at least 0")
    return made


def whole_numbers(name: str, given: Any) -> NDArray[np.int64]:
    """Row or column numbers as int64. Fractions are not cut off, and true and false are not numbers."""
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "iu" and numbers.size:
        raise InputError(name, f"has dtype {numbers.dtype}", "Give whole numbers")
    return np.ascontiguousarray(numbers, dtype=np.int64)


def is_row(indices: NDArray[Any], values: NDArray[Any], dimension: int) -> bool:
    """Whether these are columns of a row, in order, each once, with a value for each."""
    if values.ndim != 1 or values.shape != indices.shape:
        return False
    if len(indices) == 0:
        return True
    return bool(indices[0] >= 0 and indices[-1] < dimension and (indices[1:] > indices[:-1]).all())


def is_moderate(longest: float, label: float, weight: float, radius: float) -> bool:
    """Whether no gradient can come near the largest float: |slope| ≤ 2 weight (1 + radius ‖u‖ + |y|), any loss."""
    reach = 1.0 + longest
    return 2.0 * weight * (1.0 + radius * reach + label) * reach <= LONGEST_GRADIENT


def require_moderate(block: RowBlock, labels: FloatArray, weights: FloatArray, radius: float) -> None:
    """Raise if a number of the block is too large to be learned from; `radius` is that of the decisions."""
    if block.count == 0:
        return
    label, weight = _largest(labels), float(weights.max()) if len(weights) else 1.0
    if not is_moderate(block.longest, label, weight, radius + 2 * label):
        row = int(np.abs(block.rows).max(axis=1).argmax()) if not block.is_sparse else _largest_row(block)
        what = f"has numbers so large that their squares overflow (rows up to {block.longest:.3g} long: see row {row})"
        raise InputError(
            "X", what, "Scale the features, the targets or the weights down", round=_round_of(row, block.first_round)
        )


def _largest_row(block: RowBlock) -> int:
    data, _, indptr = block.rows
    return _row_of(np.abs(data) == _largest(data), indptr)
