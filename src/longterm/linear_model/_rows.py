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
from longterm.linear_model.kernels.layout import ORDINARY
from longterm.linear_model.kernels.round import LONGEST_GRADIENT
from longterm.linear_model.kernels.rule import NO_NUMBERS

TOO_LARGE = "Scale the features, the targets or the weights down"
IN_ORDER = np.empty(0, dtype=np.int64)
"""Stands for the order of the file."""


@dataclass(frozen=True)
class RowBlock:
    """Rows of a matrix: `rows` is a C-ordered array, or (data, indices, indptr) of CSR rows, sorted and unique."""

    rows: Any
    count: int
    longest: float
    """No row is longer, as `lengths` measures them."""
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

    def lengths(self) -> FloatArray:
        """A bound on ‖u‖ for every row: its largest entry times the square root of how many are not 0.

        The same to the last bit for an array, for CSR rows, and for a row alone.
        """
        return lengths_of(self.rows)

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
    size = at_least_largest(rows)
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
    size, widest = at_least_largest(matrix.data), int(np.diff(indptr).max()) if len(indptr) > 1 else 0
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


def largest(values: NDArray[Any]) -> float:
    """The largest |value|; NaN or infinite where a value is."""
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def at_least_largest(values: NDArray[Any]) -> float:
    """No less than the largest |value|, as a rule the root of the sum of squares; NaN or infinite where a value is.

    One pass in place of two, which for rows of a hundred numbers took half as long as learning them.
    """
    flat = values.reshape(-1)
    with np.errstate(over="ignore"):
        root = 1.001 * math.sqrt(float(flat.dot(flat)))  # sums of float32 are rounded
    return root if 1 / ORDINARY <= root <= ORDINARY else largest(values)


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


def lengths_of(rows: Any) -> FloatArray:
    """What `RowBlock.lengths` says of an array of rows, or of (data, indices, indptr)."""
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


def is_moderate(length: Any, distance: Any, weight: Any, radius: Any, most: float = LONGEST_GRADIENT) -> Any:
    """The range of numbers, defined once: 2w(1 + ϱ(1 + ‖u‖) + |y|)(1 + ‖u‖) ≤ 1e90, with w at least 1.

    ‖u‖ is measured as `lengths_of` does; where the intercept's interval is about the first target, that one's size is
    added to |y|; ϱ is the radius of the weights and the largest intercept added up. The left side is at least as long
    as any gradient, of any loss, and no sum of squares of such comes near the largest float. Numbers, or arrays of
    them.
    """
    reach = 1.0 + length
    heavy = np.maximum(weight, 1.0) if isinstance(weight, np.ndarray) else max(weight, 1.0)
    return 2.0 * heavy * (1.0 + radius * reach + distance) * reach <= most


def immoderate(
    rows: Any,
    longest: float,
    distances: FloatArray,
    weights: FloatArray,
    radii: FloatArray,
    order: NDArray[np.int64] = IN_ORDER,
    most: float = LONGEST_GRADIENT,
) -> int | None:
    """Which of these rows, played in this order, is the first that is out of range; None if none is.

    `longest` is a bound on the lengths; the other three have a number for each row played, but that weights may be
    empty.
    """
    if len(distances) == 0:
        return None
    weight = float(weights.max()) if len(weights) else 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        if is_moderate(longest, float(distances.max()), weight, float(radii.max()), most):
            return None
        lengths = lengths_of(rows)
        lengths = lengths if order is IN_ORDER else lengths[order]
        wrong = ~is_moderate(lengths, distances, weights if len(weights) else np.ones(1), radii, most)
    return int(wrong.argmax()) if wrong.any() else None


def require_moderate(
    block: RowBlock,
    distances: FloatArray,
    weights: FloatArray,
    radii: FloatArray,
    order: NDArray[np.int64] = IN_ORDER,
) -> None:
    """Raise if a row of the block is out of range. Arguments are those of `immoderate`."""
    place = immoderate(block.rows, block.longest, distances, weights, radii, order)
    if place is not None:
        row = place if order is IN_ORDER else int(order[place])
        what = f"has numbers so large that their squares overflow (rows up to {block.longest:.3g} long: see row {row})"
        raise InputError("X", what, TOO_LARGE, round=_round_of(row, block.first_round))
