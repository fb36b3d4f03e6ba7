"""Sums over the features of rows, row after row: the same bits however the rows are split into blocks."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from numba import boolean, float64, int64

from longterm._base.compiling import readonly
from longterm.linear_model.kernels.compile import compiled, source_digest, use

LARGEST = 1e60
"""Squares of features count as at most this, and the first one of a feature as at least 1/LARGEST."""
OUTLIER = 100.0
"""A square counts as at most OUTLIER times the usual one, or the first one."""


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
def scale_entries() -> Any:
    """Return the kernel that adds the entries of CSR rows to sums over columns, and scales them.

    It takes (data, columns, meets, typical, prior, usual, factors, bounds, squares, counts, scaled, met). With `meets`
    a column that is not 0 for the first time gets the factor usual · exp(−½(ln u² − typical)/(1 + prior)). Such
    columns are written to `met`, and their number is returned.
    """
    digest = source_digest()

    def add(data, columns, meets, typical, prior, usual, factors, bounds, squares, counts, scaled, met):
        use(digest)
        found = 0
        for i in range(len(data)):
            j, u = columns[i], data[i]
            if u != 0.0:
                if counts[j] == 0.0:
                    met[found] = j
                    found += 1
                    if meets:
                        square = min(max(u * u, 1.0 / LARGEST), LARGEST)
                        factors[j] = usual * math.exp(-0.5 * (math.log(square) - typical) / (1.0 + prior))
                        bounds[j] = OUTLIER * square
                squares[j] += min(u * u, bounds[j])
                counts[j] += 1.0
            scaled[i] = u * factors[j]
        return found

    numbers, sums = readonly(float64), float64[::1]
    given = numbers, readonly(int64), boolean, float64, float64, float64
    return compiled(add, (*given, sums, sums, sums, sums, sums, int64[::1]))
