"""Rows, labels and weights as kernels want them, checked before anything is learned from them.

A kernel that stops half-way through a block would leave a model that has learned half of it. So whatever could stop one
(NaNs, infinities, indices out of range, numbers whose squares overflow) is refused here, for the whole block at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from longterm._arrays import FloatArray
from longterm.errors import InputError, NonFiniteError

LARGEST_GRADIENT = 1e90
"""Above this, squares of gradients and their sums would come near the largest float."""
NOTHING = np.empty(0)
"""Stands for weights or margins that are not there."""
IN_ORDER = np.empty(0, dtype=np.int64)
"""Stands for the order of the file."""


@dataclass(frozen=True)
class Block:
    """Rows of a matrix: `rows` is a C-ordered array, or (data, indices, indptr) of CSR rows, sorted and unique."""

    rows: Any
    count: int
    largest: float
    """No row has a longer ‖u‖₂."""

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

    def sparse(self) -> Block:
        """The same rows as CSR."""
        matrix = sparse.csr_array(self.rows)
        return Block((matrix.data, matrix.indices, matrix.indptr), self.count, self.largest)


def block_of(X: Any, dimension: int) -> Block:
    """A block from an array or a SciPy sparse matrix of `dimension` columns."""
    return sparse_block(X, dimension) if sparse.issparse(X) else dense_block(X, dimension)


def dense_block(X: Any, dimension: int) -> Block:
    """A block from anything that NumPy takes for a matrix."""
    rows = np.asarray(X)
    if rows.dtype not in (np.float64, np.float32):
        if rows.dtype.kind not in "iubf":
            raise InputError("X", f"has dtype {rows.dtype}", "Give numbers")
        rows = rows.astype(np.float64)
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise InputError("X", f"has shape {rows.shape}", f"Give rows of {dimension} features, shape (n, {dimension})")
    rows = np.ascontiguousarray(rows)
    return Block(rows, len(rows), _longest("X", rows, dimension))


def sparse_block(X: Any, dimension: int) -> Block:
    """A block from a SciPy sparse matrix. Entries that stand for the same place are added up, as SciPy does."""
    matrix = X if X.format == "csr" else X.tocsr()
    if matrix.ndim != 2 or matrix.shape[1] != dimension:
        raise InputError("X", f"has shape {matrix.shape}", f"Give rows of {dimension} features")
    if matrix.dtype not in (np.float64, np.float32):
        if matrix.dtype.kind not in "iubf":
            raise InputError("X", f"has dtype {matrix.dtype}", "Give numbers")
        matrix = matrix.astype(np.float64)
    indices, indptr = matrix.indices, matrix.indptr
    if len(indices) and (indices.min() < 0 or indices.max() >= dimension):
        raise InputError("X", f"has column indices outside 0 … {dimension - 1}", "Check how the matrix was made")
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
    widest = int(np.diff(indptr).max()) if len(indptr) > 1 else 0
    rows = (np.ascontiguousarray(matrix.data), np.ascontiguousarray(indices), np.ascontiguousarray(indptr))
    return Block(rows, matrix.shape[0], _longest("X", matrix.data, widest))


def _sorted_and_unique(indices: NDArray[Any], indptr: NDArray[Any]) -> bool:
    falls = np.diff(indices) <= 0
    if not falls.any():
        return True
    ends = indptr[1:-1] - 1  # from the last entry of a row to the first of the next it may fall
    falls[ends[(ends >= 0) & (ends < len(falls))]] = False
    return not falls.any()


def _longest(name: str, values: NDArray[Any], width: int) -> float:
    """A bound on the length of rows that have at most `width` of these values."""
    if values.size == 0:
        return 0.0
    size = max(float(values.max()), -float(values.min()))
    if not np.isfinite(size):
        raise NonFiniteError(name, "contains NaN or infinity", "Clean the rows first")
    return size * float(np.sqrt(width))


def labels_of(y: Any, count: int, classifies: bool) -> FloatArray:
    """Labels as float64: ±1 for two classes, any finite numbers for regression."""
    labels = np.ascontiguousarray(y, dtype=np.float64)
    if labels.shape != (count,):
        raise InputError("y", f"has shape {labels.shape}", f"Give a label for each of the {count} rows")
    if classifies:
        if not np.all(np.abs(labels) == 1):
            raise InputError("y", "has labels other than −1 and +1", "Use −1 and +1; map 0 and 1 by 2 * y − 1")
    elif not np.isfinite(labels).all():
        raise NonFiniteError("y", "contains NaN or infinity", "Clean the targets first")
    return labels


def weights_of(weights: Any, count: int) -> FloatArray:
    """Weights as float64, at least 0; an empty array where all are 1."""
    if weights is None:
        return NOTHING
    made = np.ascontiguousarray(weights, dtype=np.float64)
    if made.shape != (count,):
        raise InputError("sample_weight", f"has shape {made.shape}", f"Give a weight for each of the {count} rows")
    if not np.isfinite(made).all() or np.any(made < 0):
        raise InputError("sample_weight", "has a negative weight, NaN or infinity", "Give weights of at least 0")
    return made


def whole_numbers(name: str, given: Any) -> NDArray[np.int64]:
    """Row or column numbers as int64. Fractions are not cut off, and true and false are not numbers."""
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "iu" and numbers.size:
        raise InputError(name, f"has dtype {numbers.dtype}", "Give whole numbers")
    return np.ascontiguousarray(numbers, dtype=np.int64)


def is_moderate(longest: float, label: float, weight: float, radius: float) -> bool:
    """Whether no gradient can come near the largest float: |slope| ≤ 2 weight (1 + radius ‖u‖ + |y|), any loss."""
    reach = 1.0 + longest
    return 2.0 * weight * (1.0 + radius * reach + label) * reach <= LARGEST_GRADIENT


def require_moderate(longest: float, label: float, weight: float, radius: float) -> None:
    """Raise if a gradient could."""
    if not is_moderate(longest, label, weight, radius):
        what = f"has numbers so large (rows up to {longest:.3g}) that their squares overflow"
        raise InputError("X", what, "Scale the features, the targets or the weights down")
