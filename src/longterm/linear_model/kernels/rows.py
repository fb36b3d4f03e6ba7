"""Rows of a matrix, dense or CSR, as kernels see them. Numba chooses by the type of `rows` when it compiles.

Dense rows are a C-ordered matrix; CSR rows are the tuple (data, indices, indptr); (data, indices) is one sparse row.
Rows and labels that will be wanted soon are fetched ahead where the order is not that of memory: it halves the time of
a round.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import overload
from numba.np.numpy_support import as_dtype

from longterm.linear_model.kernels.compile import OPTIONS, helper, pointer
from longterm.storage.compiled import prefetch

AHEAD = 8
"""How many rows ahead are fetched."""
LINE = 64
"""Bytes that memory hands over at once."""


def bare(rows: Any) -> Any:
    """The same memory, without the count of its users: to count takes locks, and the processor waits at each of them.

    Whoever calls a kernel holds its arrays until it returns.
    """


def number_of_rows(rows: Any) -> Any:
    """How many rows there are."""


def sparse_row(rows: Any, k: Any) -> Any:
    """Values and column numbers of row k."""


def dot_and_length(rows: Any, k: Any, v: Any) -> Any:
    """⟨u, v⟩ and ‖u‖² of row k. NaNs and infinities in u make both of them NaN or infinite."""


def whole_row(rows: Any, k: Any, room: Any) -> Any:
    """Row k as a dense vector; a sparse one is written into `room`, which is 0 everywhere."""


def clear(rows: Any, k: Any, room: Any) -> Any:
    """Make `room` 0 everywhere again."""


def zeros_like_row(rows: Any, room: Any) -> Any:
    """A row of zeros of the same type as these; `room` has zeros."""


def fetch(rows: Any, labels: Any, k: Any) -> Any:
    """Begin to load row k and its label."""


def is_dense(rows: Any) -> bool:
    """Whether rows of this type of Numba are a matrix."""
    return isinstance(rows, types.Array)


@overload(bare, jit_options=OPTIONS)
def _bare(rows):
    if not is_dense(rows):
        return lambda rows: (bare(rows[0]), bare(rows[1]), bare(rows[2]))
    dtype = as_dtype(rows.dtype)
    return lambda rows: carray(pointer(rows.ctypes.data), rows.shape, dtype)


@overload(number_of_rows, jit_options=OPTIONS)
def _number_of_rows(rows):
    return (lambda rows: len(rows)) if is_dense(rows) else (lambda rows: len(rows[2]) - 1)


@overload(sparse_row, jit_options=OPTIONS)
def _sparse_row(rows, k):
    if len(rows) == 2:
        return lambda rows, k: rows
    return lambda rows, k: (rows[0][rows[2][k] : rows[2][k + 1]], rows[1][rows[2][k] : rows[2][k + 1]])


@helper
def _dense_products(u, v):
    dot = 0.0
    length = 0.0
    for j in range(len(u)):
        value = np.float64(u[j])
        dot += value * v[j]
        length += value * value
    return dot, length


@overload(dot_and_length, jit_options=OPTIONS)
def _dot_and_length(rows, k, v):
    if is_dense(rows):
        return lambda rows, k, v: _dense_products(rows[k], v)

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
    if is_dense(rows):
        return lambda rows, k, room: rows[k]

    def sparse(rows, k, room):
        data, indices, indptr = rows
        for j in range(indptr[k], indptr[k + 1]):
            room[indices[j]] = data[j]
        return room

    return sparse


@overload(clear, jit_options=OPTIONS)
def _clear(rows, k, room):
    if is_dense(rows):
        return lambda rows, k, room: None

    def sparse(rows, k, room):
        _, indices, indptr = rows
        for j in range(indptr[k], indptr[k + 1]):
            room[indices[j]] = 0.0

    return sparse


@overload(zeros_like_row, jit_options=OPTIONS)
def _zeros_like_row(rows, room):
    if rows.dtype == room.dtype:
        return lambda rows, room: room
    return lambda rows, room: np.zeros(rows.shape[1], rows.dtype)


@overload(fetch, jit_options=OPTIONS)
def _fetch(rows, labels, k):
    if is_dense(rows):

        def dense(rows, labels, k):
            begin, end = k * rows.strides[0], (k + 1) * rows.strides[0]
            for byte in range(begin, end, LINE):
                prefetch(rows.ctypes.data + byte)
            prefetch(rows.ctypes.data + end - 1)
            prefetch(labels.ctypes.data + k * labels.itemsize)

        return dense

    def sparse(rows, labels, k):
        data, indices, indptr = rows
        for j in range(indptr[k], indptr[k + 1], LINE // 8):
            prefetch(data.ctypes.data + j * data.itemsize)
            prefetch(indices.ctypes.data + j * indices.itemsize)
        prefetch(labels.ctypes.data + k * labels.itemsize)

    return sparse
