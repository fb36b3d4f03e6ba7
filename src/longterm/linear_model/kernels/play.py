"""A block of rows, and one row, played by a compiled rule: rows in their order, margins, the trace.

One round of each rule, `play_row`, is in the rule's own file. Kernels close over the number of their rule, and Numba
chooses the file by it when it compiles: closing over functions, it would compile anew in every process.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from numba import float32, float64, from_dtype, int32, int64, types
from numba.extending import overload

from longterm.linear_model.kernels import aftrl, aogd, penalised_ftrl, sparse_aftrl
from longterm.linear_model.kernels.compile import OPTIONS, compiled, keep_under, sources
from longterm.linear_model.kernels.layout import (
    ADDRESSES,
    AFTRL,
    AOGD,
    PENALISED_FTRL,
    SPARSE_AFTRL,
    TRACE,
    memory_at,
)
from longterm.linear_model.kernels.rows import AHEAD, bare, fetch, number_of_rows
from longterm.storage.compiled import readonly

RULES: Any = {AOGD: aogd, AFTRL: aftrl, PENALISED_FTRL: penalised_ftrl, SPARSE_AFTRL: sparse_aftrl}
NUMBA_TYPES = {"float32": float32, "float64": float64, "int32": int32, "int64": int64}


def begin(rule: Any, memory: Any, rows: Any, first: Any) -> Any:
    """Make what rounds need and the state does not hold; what the rule wants to know of the row played first."""


def play_row(rule: Any, memory: Any, rows: Any, k: Any, following: Any, ahead: Any, label: Any, weight: Any) -> Any:
    """Play row k, before row `following`: whether it was played (else nothing was changed), and its margin.

    `ahead` is what the rule wanted to know of row k; last comes what it wants to know of the row that follows.
    """


def active(rule: Any, memory: Any) -> Any:
    """How many coordinates of x_t are not 0."""


@overload(begin, prefer_literal=True, jit_options=OPTIONS)
def _begin(rule, memory, rows, first):
    if not isinstance(rule, types.IntegerLiteral):
        return None
    chosen = RULES[rule.literal_value].begin
    return lambda rule, memory, rows, first: chosen(memory, rows, first)


@overload(play_row, prefer_literal=True, jit_options=OPTIONS)
def _play_row(rule, memory, rows, k, following, ahead, label, weight):
    if not isinstance(rule, types.IntegerLiteral):
        return None
    chosen = RULES[rule.literal_value].play_row
    return lambda rule, memory, rows, k, following, ahead, label, weight: chosen(
        memory, rows, k, following, ahead, label, weight
    )


@overload(active, prefer_literal=True, jit_options=OPTIONS)
def _active(rule, memory):
    if not isinstance(rule, types.IntegerLiteral):
        return None
    chosen = RULES[rule.literal_value].active
    return lambda rule, memory: chosen(memory)


@cache
def block_kernel(rule: int, values: str, indices: str | None = None) -> Any:
    """The rule for rows of this dtype, CSR if the dtype of indices is given.

    Called as kernel(addresses, rows, order, labels, weights, record, trace, margins); empty arrays stand for no order,
    no weights, nothing to record and no margins wanted. It returns how many rows it played: fewer than it was given
    where the next one must be refused, and then the state is that before this row.
    """
    digest = sources()

    def play(addresses, given_rows, given_order, given_labels, given_weights, record, trace, given_margins):
        keep_under(digest)
        rows, order, labels = bare(given_rows), bare(given_order), bare(given_labels)
        weights, margins = bare(given_weights), bare(given_margins)
        memory = memory_at(rule, addresses)
        s = memory.scalars[0]
        shuffled = len(order) > 0
        count = len(order) if shuffled else number_of_rows(rows)
        recorded = 0
        while recorded < len(record) and record[recorded] < s.round:
            recorded += 1
        if count == 0:
            return 0
        ahead = begin(rule, memory, rows, order[0] if shuffled else 0)
        for i in range(count):
            k = order[i] if shuffled else i
            if shuffled and i + AHEAD < count:
                fetch(rows, labels, order[i + AHEAD])
            following = k if i + 1 == count else order[i + 1] if shuffled else i + 1
            recording = recorded < len(record) and record[recorded] == s.round
            if recording:
                line = trace[recorded]
                line.round, line.nonzeros, line.multiplier = s.round, active(rule, memory), s.multiplier
            weight = weights[k] if len(weights) > 0 else 1.0
            played, margin, ahead = play_row(rule, memory, rows, k, following, ahead, labels[k], weight)
            if not played:
                return i
            if len(margins) > 0:
                margins[i] = margin
            if recording:
                line = trace[recorded]
                line.loss, line.signed_violation = s.loss_sum, s.signed_violation
                line.hard_violation, line.squared_violation = s.hard_violation, s.squared_violation
                recorded += 1
            s.round += 1
        return count

    rows: Any = readonly(NUMBA_TYPES[values], 2)
    if indices is not None:
        rows = types.Tuple(
            (readonly(NUMBA_TYPES[values]), readonly(NUMBA_TYPES[indices]), readonly(NUMBA_TYPES[indices]))
        )
    numbers, whole, trace = readonly(float64), readonly(int64), from_dtype(TRACE)[::1]
    return compiled(play, (readonly(from_dtype(ADDRESSES)), rows, whole, numbers, numbers, whole, trace, float64[::1]))


@cache
def row_kernel(rule: int) -> Any:
    """The rule for one row of float64: kernel(addresses, row, label, weight) is the margin from before it was learned.

    NaN: the row is refused, and nothing was changed.
    """
    digest = sources()

    def play(addresses, row, label, weight):
        keep_under(digest)
        memory = memory_at(rule, addresses)
        rows = bare(row).reshape((1, len(row)))
        played, margin, _ = play_row(rule, memory, rows, 0, 0, begin(rule, memory, rows, 0), label, weight)
        if not played:
            return math.nan
        memory.scalars[0].round += 1
        return margin

    return compiled(play, (readonly(from_dtype(ADDRESSES)), readonly(float64), float64, float64))


@cache
def sparse_row_kernel() -> Any:
    """The same for a sparse row, float64 at int64: kernel(addresses, indices, values, label, weight)."""
    digest, rule = sources(), SPARSE_AFTRL

    def play(addresses, indices, values, label, weight):
        keep_under(digest)
        if not sparse_aftrl.is_canonical(values, indices, addresses[0].dimension):
            return math.nan
        memory = memory_at(rule, addresses)
        rows = bare(values), bare(indices)
        played, margin, _ = play_row(rule, memory, rows, 0, 0, begin(rule, memory, rows, 0), label, weight)
        if not played:
            return math.nan
        memory.scalars[0].round += 1
        return margin

    whole, numbers = readonly(int64), readonly(float64)
    return compiled(play, (readonly(from_dtype(ADDRESSES)), whole, numbers, float64, float64))
