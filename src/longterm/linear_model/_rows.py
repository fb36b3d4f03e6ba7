"""One row of a matrix, dense or CSR, as kernels see it. Numba chooses by the type of `rows` when it compiles.

Dense rows are a C-ordered matrix; CSR rows are the tuple (data, indices, indptr). Rows and labels that will be wanted
soon are fetched ahead where the order is not that of memory: it halves the time of a round.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.core.extending import overload

from longterm.linear_model._compile import FASTMATH, prefetch
from longterm.linear_model._lanes import Lanes, lanes

AHEAD = 8
"""How many rows ahead are fetched."""
LINE = 64
"""Bytes that memory hands over at once."""
OPTIONS: Any = {"fastmath": FASTMATH, "error_model": "numpy"}


@lanes(writes=0, sums=2)
def _products(v: Lanes, u: Lanes) -> tuple[Lanes, ...]:
    return v * u, u * u


def number_of_rows(rows: Any) -> Any:
    """How many rows there are."""


def dot_and_length(rows: Any, k: Any, v: Any) -> Any:
    """⟨u, v⟩ and ‖u‖² of row k. NaNs and infinities in u make both of them NaN or infinite."""


def whole_row(rows: Any, k: Any, room: Any) -> Any:
    """Row k as a dense vector; a sparse one is written into `room`, which is 0 everywhere."""


def clear(rows: Any, k: Any, room: Any) -> Any:
    """Make `room` 0 everywhere again."""


def fetch(rows: Any, labels: Any, k: Any) -> Any:
    """Begin to load row k and its label."""


def _is_dense(rows: Any) -> bool:
    return isinstance(rows, types.Array)


@overload(number_of_rows, jit_options=OPTIONS)
def _number_of_rows(rows):
    return (lambda rows: len(rows)) if _is_dense(rows) else (lambda rows: len(rows[2]) - 1)


@overload(dot_and_length, jit_options=OPTIONS)
def _dot_and_length(rows, k, v):
    if _is_dense(rows):
        return lambda rows, k, v: _products(v, rows[k])

    def sparse(rows, k, v):
        data, indices, indptr = rows
        dot = 0.0
        length = 0.0
        for j in range(indptr[k], indptr[k + 1]):
            u = np.float64(data[j])
            dot += u * v[indices[j]]
            length += u * u
        return dot, length

    return sparse


@overload(whole_row, jit_options=OPTIONS)
def _whole_row(rows, k, room):
    if _is_dense(rows):
        return lambda rows, k, room: rows[k]

    def sparse(rows, k, room):
        data, indices, indptr = rows
        for j in range(indptr[k], indptr[k + 1]):
            room[indices[j]] = data[j]
        return room

    return sparse


@overload(clear, jit_options=OPTIONS)
def _clear(rows, k, room):
    if _is_dense(rows):
        return lambda rows, k, room: None

    def sparse(rows, k, room):
        _, indices, indptr = rows
        for j in range(indptr[k], indptr[k + 1]):
            room[indices[j]] = 0.0

    return sparse


@overload(fetch, jit_options=OPTIONS)
def _fetch(rows, labels, k):
    if _is_dense(rows):

        def dense(rows, labels, k):
            begin, end = k * rows.strides[0], (k + 1) * rows.strides[0]
            for byte in range(begin, end, LINE):
                prefetch(rows, byte)
            prefetch(rows, end - 1)
            prefetch(labels, k * labels.itemsize)

        return dense

    def sparse(rows, labels, k):
        data, indices, indptr = rows
        for j in range(indptr[k], indptr[k + 1], LINE // 8):
            prefetch(data, j * data.itemsize)
            prefetch(indices, j * indices.itemsize)
        prefetch(labels, k * labels.itemsize)

    return sparse
