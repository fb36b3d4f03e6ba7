"""Sums of the features' squares, row after row: however rows are split into blocks, the same bits."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from numba import float64, int64

from longterm.linear_model.kernels.compile import compiled, keep_under, readonly, sources


@cache
def dense_squares() -> Any:
    """Called as kernel(rows, slopes, most, squares, seen, sums, steepness).

    It adds u_j², at most most_j, 1 where it is not 0, and u_j; and where there are slopes of the rows' losses, their
    squares: those of rows where u_j is not 0, and last of all rows.
    """
    digest = sources()

    def add(rows, slopes, most, squares, seen, sums, steepness):
        keep_under(digest)
        for i in range(len(rows)):
            steep = slopes[i] * slopes[i] if len(slopes) > 0 else 0.0
            steepness[rows.shape[1]] += steep
            for j in range(rows.shape[1]):
                square = min(rows[i, j] * rows[i, j], most[j])
                squares[j] += square
                seen[j] += 1.0 if square > 0.0 else 0.0
                steepness[j] += steep if square > 0.0 else 0.0
                sums[j] += math.copysign(math.sqrt(square), rows[i, j])

    numbers, sums = readonly(float64), float64[::1]
    return compiled(add, (readonly(float64, 2), numbers, numbers, sums, sums, sums, sums))


@cache
def sparse_squares() -> Any:
    """The same for the numbers of CSR rows: kernel(data, columns, most, squares, seen)."""
    digest = sources()

    def add(data, columns, most, squares, seen):
        keep_under(digest)
        for i in range(len(data)):
            j = columns[i]
            square = min(data[i] * data[i], most[j])
            squares[j] += square
            seen[j] += 1.0 if square > 0.0 else 0.0

    numbers = readonly(float64)
    return compiled(add, (numbers, readonly(int64), numbers, float64[::1], float64[::1]))
