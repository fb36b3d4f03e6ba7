"""Rows, labels and weights as the kernels take them, checked before anything is learned.

Everything that a kernel cannot take (NaN, infinity, indices out of range, numbers whose squares overflow) is refused
here, for a whole block at once, so that no block is learned in part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from longterm._base.arrays import FloatArray
from longterm.errors import InputError, NonFiniteError

NO_NUMBERS = np.empty(0)
IN_ORDER = np.empty(0, dtype=np.int64)
"""Stands for the order of the rows themselves."""
LONGEST_GRADIENT = 1e90
"""No gradient may be longer, so that squares of gradients and their sums stay far below the largest float."""
TOO_LARGE = "Scale the features, the targets or the weights down"


@dataclass(frozen=True)
class RowBlock:
    """Rows of a matrix: `rows` is a C-ordered array, or (data, indices, indptr) of CSR rows, sorted and unique."""

    rows: Any
    count: int
    longest: float
    """A bound on the length of every row, as `row_lengths` measures it."""
    first_round: int | None = None
    """The round of row 0, where rows are learned in their own order."""

    @property
    def is_sparse(self) -> bool:
        """True if the rows are CSR."""
        return isinstance(self.rows, tuple)

    @property
    def width(self) -> int:
        """The mean number of stored numbers in a row, rounded up."""
        return -(-len(self.rows[0]) // max(self.count, 1)) if self.is_sparse else self.rows.shape[1]

    def part(self, start: int, stop: int) -> Any:
        """Return rows start … stop − 1."""
        if self.is_sparse:
            data, indices, indptr = self.rows
            first, last = indptr[start], indptr[stop]
            return data[first:last], indices[first:last], indptr[start : stop + 1] - first
        return self.rows[start:stop]

    def take(self, chosen: NDArray[np.int64]) -> Any:
        """Return these rows in this order."""
        if not self.is_sparse:
            return np.take(self.rows, chosen, axis=0)
        data, indices, indptr = self.rows
        starts, sizes = indptr[chosen].astype(np.int64), np.diff(indptr)[chosen].astype(np.int64)
        ends = np.cumsum(sizes)
        entries = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - sizes), sizes)
        return data[entries], indices[entries], np.append(0, ends).astype(indptr.dtype)


def to_sparse(rows: Any) -> Any:
    """Return rows, an array or CSR, as CSR."""
    if isinstance(rows, tuple):
        return rows
    matrix = sparse.csr_array(rows)
    return matrix.data, matrix.indices, matrix.indptr


def to_dense(rows: Any, dimension: int) -> NDArray[Any]:
    """Return rows, an array or CSR, as an array."""
    if not isinstance(rows, tuple):
        made: NDArray[Any] = rows
        return made
    return np.asarray(sparse.csr_array(rows, shape=(len(rows[2]) - 1, dimension)).toarray())


def row_block(X: Any, dimension: int, first_round: int | None = None) -> RowBlock:
    """Return a block of rows from an array or a SciPy sparse matrix of `dimension` columns.

    Errors name the row, and its round if that of row 0 is given.
    """
    return _sparse_block(X, dimension, first_round) if sparse.issparse(X) else _dense_block(X, dimension, first_round)


def _dense_block(X: Any, dimension: int, first_round: int | None) -> RowBlock:
    rows = _as_floats(_as_array(X))
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise InputError("X", f"has shape {rows.shape}", f"Give rows of {dimension} features, shape (n, {dimension})")
    rows = np.ascontiguousarray(rows)
    size = max_abs_bound(rows)
    if not np.isfinite(size):
        row = int((~np.isfinite(rows)).any(axis=1).argmax())
        raise _not_finite(row, first_round)
    return RowBlock(rows, len(rows), size * math.sqrt(dimension), first_round)


def _as_array(X: Any) -> Any:
    """Return an array. A data frame with columns of Arrow's or nullable types becomes float64, NaN for empty cells."""
    if hasattr(X, "columns") and not all(isinstance(dtype, np.dtype) for dtype in getattr(X, "dtypes", ())):
        try:
            return X.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):  # text
            pass
    return np.asarray(X)


def _as_floats(X: Any) -> Any:
    """Return an array or a sparse matrix as float64 or float32."""
    if X.dtype.kind not in "iubf":
        raise InputError("X", f"has dtype {X.dtype}", "Give numbers")
    return X if X.dtype in (np.float64, np.float32) else X.astype(np.float64)


def _sparse_block(X: Any, dimension: int, first_round: int | None) -> RowBlock:
    """Return a block from a sparse matrix. Duplicate entries are added up, as SciPy does."""
    matrix = X if X.format == "csr" else X.tocsr()
    if matrix.ndim != 2 or matrix.shape[1] != dimension:
        raise InputError("X", f"has shape {matrix.shape}", f"Give rows of {dimension} features")
    matrix = _as_floats(matrix)
    indices, indptr = matrix.indices, matrix.indptr
    if len(indices) and (indices.min() < 0 or indices.max() >= dimension):
        row = _row_of((indices < 0) | (indices >= dimension), indptr)
        what = f"row {row} has column indices outside 0 … {dimension - 1}"
        raise InputError("X", what, "Check how the matrix was made", round=_round_of(row, first_round))
    fits = len(indptr) == matrix.shape[0] + 1 and indptr[0] == 0 and indptr[-1] <= min(len(indices), len(matrix.data))
    if not fits or np.any(np.diff(indptr) < 0):
        raise InputError("X", "has row pointers that do not fit its entries", "Check how the matrix was made")
    if indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64):  # kernels want one dtype for both
        matrix = sparse.csr_array((matrix.data, indices, indptr), shape=matrix.shape)
        indices, indptr = matrix.indices, matrix.indptr
    if not _sorted_and_unique(indices, indptr):
        matrix = matrix.copy()
        matrix.has_canonical_format = False
        matrix.sum_duplicates()
        indices, indptr = matrix.indices, matrix.indptr
    size, widest = max_abs_bound(matrix.data), int(np.diff(indptr).max()) if len(indptr) > 1 else 0
    if not np.isfinite(size):
        raise _not_finite(_row_of(~np.isfinite(matrix.data), indptr), first_round)
    rows = (np.ascontiguousarray(matrix.data), np.ascontiguousarray(indices), np.ascontiguousarray(indptr))
    return RowBlock(rows, matrix.shape[0], size * math.sqrt(widest), first_round)


def _sorted_and_unique(indices: NDArray[Any], indptr: NDArray[Any]) -> bool:
    falls = np.diff(indices) <= 0
    if not falls.any():
        return True
    ends = indptr[1:-1] - 1  # between the last entry of a row and the first of the next, indices may fall
    falls[ends[(ends >= 0) & (ends < len(falls))]] = False
    return not falls.any()


def _row_of(entries: NDArray[np.bool_], indptr: NDArray[Any]) -> int:
    """Return the row of the first marked entry."""
    return int(np.searchsorted(indptr, int(entries.argmax()), side="right")) - 1


def _round_of(row: int, first_round: int | None) -> int | None:
    return None if first_round is None else first_round + row


def _not_finite(row: int, first_round: int | None) -> NonFiniteError:
    what = f"row {row} holds NaN or infinity"
    return NonFiniteError("X", what, "Clean the rows first", round=_round_of(row, first_round))


def labels_for(y: Any, count: int, classifies: bool) -> FloatArray:
    """Return labels as float64: ±1 for two classes, any finite numbers for regression."""
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
    """Return weights of at least 0 as float64; an empty array if none are given."""
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
    """Return row or column numbers as int64. Fractions and booleans are refused."""
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "iu" and numbers.size:
        raise InputError(name, f"has dtype {numbers.dtype}", "Give whole numbers")
    return np.ascontiguousarray(numbers, dtype=np.int64)


def order_for(order: Any, count: int) -> NDArray[np.int64]:
    """Return the numbers of rows in the order to learn them; IN_ORDER for None."""
    if order is None:
        return IN_ORDER
    numbers = whole_numbers("order", order)
    if numbers.ndim != 1 or np.any((numbers < 0) | (numbers >= count)):
        raise InputError("order", "contains something that is not the number of a row", f"Use 0 … {count - 1}")
    return numbers


def is_row(indices: NDArray[Any], values: NDArray[Any], dimension: int) -> bool:
    """Return True if these are the columns of a row in increasing order, with a value for each."""
    if values.ndim != 1 or values.shape != indices.shape:
        return False
    if len(indices) == 0:
        return True
    return bool(indices[0] >= 0 and indices[-1] < dimension and (indices[1:] > indices[:-1]).all())


# --- the range of numbers -------------------------------------------------------------------------------------


def max_abs(values: NDArray[Any]) -> float:
    """Return the largest |value|; NaN or infinity if a value is."""
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def max_abs_bound(values: NDArray[Any]) -> float:
    """Return a bound on the largest |value|; NaN or infinity if a value is.

    As a rule it is the root of the sum of squares, which takes one pass over the values instead of two.
    """
    flat = values.reshape(-1)
    with np.errstate(over="ignore"):
        root = 1.001 * math.sqrt(float(flat.dot(flat)))  # sums of float32 are rounded
    return root if 1e-12 <= root <= 1e12 else max_abs(values)


def row_lengths(rows: Any) -> FloatArray:
    """Return a bound on ‖u‖ for every row: its largest entry times the root of its number of non-zeros.

    It has the same bits for an array, for CSR rows, and for a row alone.
    """
    if not isinstance(rows, tuple):
        sizes, counts = np.abs(rows).max(axis=1, initial=0.0), np.count_nonzero(rows, axis=1)
    else:
        data, _, indptr = rows
        filled = np.flatnonzero(np.diff(indptr))
        sizes, counts = np.zeros(len(indptr) - 1), np.zeros(len(indptr) - 1, dtype=np.int64)
        if len(filled):
            within, starts = data[indptr[0] : indptr[-1]], indptr[filled] - indptr[0]
            sizes[filled] = np.maximum.reduceat(np.abs(within), starts)
            counts[filled] = np.add.reduceat((within != 0).astype(np.int64), starts)
    with np.errstate(over="ignore"):
        made: FloatArray = sizes.astype(np.float64) * np.sqrt(counts)
    return made


def in_range(length: Any, distance: Any, weight: Any, radius: Any, bound: float = LONGEST_GRADIENT) -> Any:
    """Return True where a row is in range: 2w(1 + ϱ(1 + ‖u‖) + |y|)(1 + ‖u‖) ≤ bound, with w at least 1.

    This is the one definition of the range of numbers, for floats or arrays. The left side bounds the length of the
    gradient of any loss. `length` is ‖u‖ as `row_lengths` has it, or a bound on it; `distance` is |y|, plus the size of
    the first target where the intercept's interval is about that; `radius` is ϱ, that of the weights' ball plus the
    largest intercept.
    """
    reach = 1.0 + length
    heavy = max(weight, 1.0) if isinstance(weight, float) else np.maximum(weight, 1.0)
    return 2.0 * heavy * (1.0 + radius * reach + distance) * reach <= bound


def all_in_range(
    longest: float, distances: FloatArray, weights: FloatArray, radius: float, bound: float = LONGEST_GRADIENT
) -> bool:
    """Return True if even a row of the length `longest` is in range with the largest distance and weight."""
    heaviest = float(weights.max()) if len(weights) else 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        return len(distances) == 0 or bool(in_range(longest, float(distances.max()), heaviest, radius, bound))


def first_out_of_range(
    rows: Any,
    distances: FloatArray,
    weights: FloatArray,
    radius: float,
    order: NDArray[np.int64] = IN_ORDER,
    bound: float = LONGEST_GRADIENT,
) -> int | None:
    """Return the place of the first row, learned in this order, that is not `in_range`; None if all are."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = row_lengths(rows)
        lengths = lengths if order is IN_ORDER else lengths[order]
        wrong = ~in_range(lengths, distances, weights if len(weights) else 1.0, radius, bound)
    return int(wrong.argmax()) if wrong.any() else None


def require_in_range(
    block: RowBlock,
    distances: FloatArray,
    weights: FloatArray,
    radius: float,
    order: NDArray[np.int64] = IN_ORDER,
) -> None:
    """Raise InputError if a row of the block is out of range. The arguments are those of `first_out_of_range`."""
    if all_in_range(block.longest, distances, weights, radius):
        return
    place = first_out_of_range(block.rows, distances, weights, radius, order)
    if place is not None:
        row = place if order is IN_ORDER else int(order[place])
        what = f"has numbers so large that their squares overflow (rows up to {block.longest:.3g} long: see row {row})"
        raise InputError("X", what, TOO_LARGE, round=_round_of(row, block.first_round))
