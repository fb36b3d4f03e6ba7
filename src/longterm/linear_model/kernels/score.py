"""What is compiled besides rounds: the margin of a sparse row, a row in any order, sums of losses that are known, and
of the features' squares.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import carray, float64, from_dtype, int64  # type: ignore[attr-defined]

from longterm.linear_model.kernels.compile import compiled, exact, helper, keep_under, pointer, sources
from longterm.linear_model.kernels.layout import ADDRESSES, SPARSE_AFTRL, memory_at
from longterm.linear_model.kernels.losses import value_and_slope
from longterm.linear_model.kernels.sparse_aftrl import begin, dot_and_length, play_row
from longterm.storage.compiled import readonly


@helper
def unpacked(packed):
    """Columns and values of a row: one array of whole numbers, of which the second half are the bits of the values.

    Each array that Numba takes from Python costs as much as learning ten coordinates.
    """
    count = len(packed) // 2
    address = packed.ctypes.data
    return carray(pointer(address), (count,), np.int64), carray(pointer(address + 8 * count), (count,), np.float64)


@cache
def margin_kernel() -> Any:
    """⟨u, x_t⟩ + b_t for a memory of sparse rows: kernel(addresses, packed), columns within 0 … d − 1."""
    digest, rule = sources(), SPARSE_AFTRL

    def margin(addresses, packed):
        keep_under(digest)
        indices, values = unpacked(packed)
        memory = memory_at(rule, addresses)
        p, s = memory.parameters[0], memory.scalars[0]
        dot, _ = dot_and_length(memory, values, indices, s.multiplier_sum * p.l1)
        return s.scale * dot + s.intercept

    return compiled(margin, (readonly(from_dtype(ADDRESSES)), readonly(int64)))


@cache
def unsorted_row_kernel() -> Any:
    """One sparse row whose columns, each named once and within 0 … d − 1, are in any order.

    Called as kernel(addresses, packed, label, weight); the margin from before it was learned, NaN: refused.
    """
    digest, rule = sources(), SPARSE_AFTRL

    def play(addresses, packed, label, weight):
        keep_under(digest)
        indices, values = unpacked(packed)
        wrong = 0
        for j in range(len(values)):
            wrong |= not abs(values[j]) < math.inf
        if wrong:
            return math.nan
        memory = memory_at(rule, addresses)
        rows = values, indices
        played, margin, _ = play_row(memory, rows, 0, 0, begin(memory, rows, 0), label, weight)
        if not played:
            return math.nan
        memory.scalars[0].round += 1
        return margin

    return compiled(play, (readonly(from_dtype(ADDRESSES)), readonly(int64), float64, float64))


@exact
def plus(total, value):
    """Their sum, in this order: in lanes, blocks would be summed in another one than rows."""
    return total + value


@cache
def losses_kernel() -> Any:
    """`total` and the weighted losses of rows after it, one by one: kernel(code, parameter, margins, labels, weights,
    total); no weights are weights of 1.
    """
    digest = sources()

    def add_losses(code, parameter, margins, labels, weights, total):
        keep_under(digest)
        for i in range(len(margins)):
            value, _ = value_and_slope(code, parameter, margins[i], labels[i])
            total = plus(total, value * (weights[i] if len(weights) > 0 else 1.0))
        return total

    numbers = readonly(float64)
    return compiled(add_losses, (int64, float64, numbers, numbers, numbers, float64))


@cache
def slopes_kernel() -> Any:
    """The same of the losses' slopes, each of which is written to `slopes`, the argument before `total`."""
    digest = sources()

    def add_slopes(code, parameter, margins, labels, weights, slopes, total):
        keep_under(digest)
        for i in range(len(margins)):
            _, slope = value_and_slope(code, parameter, margins[i], labels[i])
            slopes[i] = slope * (weights[i] if len(weights) > 0 else 1.0)
            total = plus(total, slopes[i])
        return total

    numbers = readonly(float64)
    return compiled(add_slopes, (int64, float64, numbers, numbers, numbers, float64[::1], float64))


@cache
def dense_squares() -> Any:
    """Sums over features, row after row: however rows are split into blocks, the same bits.

    Called as kernel(rows, slopes, most, squares, seen, sums, steepness).

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
