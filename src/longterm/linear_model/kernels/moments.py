"""Sums over the features of rows, row after row: the same bits however the rows are split into blocks."""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import float64, int64

from longterm._base.compiling import readonly
from longterm.linear_model.kernels.compile import compiled, source_digest, use


@cache
def dense_moments() -> Any:
    """Return the kernel (rows, slopes, roots, squares, counts, sums, steepness) that adds rows to these sums.

    With u_j clipped to ±roots_j it adds u_j² to the squares, 1 to the counts where u_j is not 0, and u_j to the sums.
    The squared slope of the row's loss is added to the steepness of the features that are not 0, and to the last, of
    all rows.
    """
    digest = source_digest()

    def add(rows, slopes, roots, squares, counts, sums, steepness):
        use(digest)
        for i in range(len(rows)):
            steep = slopes[i] * slopes[i]
            steepness[rows.shape[1]] += steep
            for j in range(rows.shape[1]):
                u = min(max(rows[i, j], -roots[j]), roots[j])
                squares[j] += u * u
                counts[j] += 1.0 if u != 0.0 else 0.0
                steepness[j] += steep if u != 0.0 else 0.0
                sums[j] += u

    numbers, sums = readonly(float64), float64[::1]
    return compiled(add, (readonly(float64, 2), numbers, numbers, sums, sums, sums, sums))


@cache
def sparse_moments() -> Any:
    """Return the kernel (data, columns, bounds, squares, counts) that adds the entries of CSR rows to these sums."""
    digest = source_digest()

    def add(data, columns, bounds, squares, counts):
        use(digest)
        for i in range(len(data)):
            j = columns[i]
            squares[j] += min(data[i] * data[i], bounds[j])
            counts[j] += 1.0 if data[i] != 0.0 else 0.0

    numbers = readonly(float64)
    return compiled(add, (numbers, readonly(int64), numbers, float64[::1], float64[::1]))
