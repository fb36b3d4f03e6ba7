"""One row, compiled: a block of one row mostly costs the handing over of arrays, and a row needs fewer.

A learner's own arrays are the same from row to row. They are handed over as one array of their `places` in memory: each
array that Numba takes from Python costs as much as learning ten coordinates.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import carray, float64, int64  # type: ignore[attr-defined]
from numpy.typing import NDArray

from longterm.linear_model import _aftrl, _aftrl_sparse, _aogd, _penalised_ftrl
from longterm.linear_model._compile import compiled, helper, pointer, readonly

_play_aftrl, _play_aogd = helper(_aftrl.play), helper(_aogd.play)
_play_penalised_ftrl, _step_sparse = helper(_penalised_ftrl.play), helper(_aftrl_sparse.step)


def places(*arrays: NDArray[Any]) -> NDArray[np.int64]:
    """Address and length of each array. Whoever keeps this must keep the arrays."""
    return np.array([number for array in arrays for number in (array.ctypes.data, len(array))], dtype=np.int64)


@helper
def floats_at(places, i):
    """Array i of these places, of float64."""
    return carray(pointer(places[2 * i]), (places[2 * i + 1],), np.float64)


@helper
def whole_at(places, i):
    """Array i of these places, of int64."""
    return carray(pointer(places[2 * i]), (places[2 * i + 1],), np.int64)


@helper
def _around(row, label, weight):
    """What a kernel wants of one row: rows, order, labels, weights; then nothing to record, and room for margins."""
    nothing, whole, room = np.empty(0, dtype=np.int64), row.reshape((1, len(row))), np.empty(3)
    room[0], room[1] = label, weight
    return whole, nothing, room[:1], room[1:2], nothing, room[:0].reshape((0, 6)), room[2:]


def aftrl(places, row, label, weight):
    """The margin before learning; NaN if the row is refused, and then nothing was changed."""
    p, rounds, vector, numbers = floats_at(places, 0), whole_at(places, 1), floats_at(places, 2), floats_at(places, 3)
    rows, order, labels, weights, record, trace, margins = _around(row, label, weight)
    played = _play_aftrl(rows, order, labels, weights, p, rounds, vector, numbers, record, trace, margins)
    return margins[0] if played else math.nan


def aogd(places, row, label, weight):
    """The same."""
    p, rounds, vector, numbers = floats_at(places, 0), whole_at(places, 1), floats_at(places, 2), floats_at(places, 3)
    rows, order, labels, weights, record, trace, margins = _around(row, label, weight)
    played = _play_aogd(rows, order, labels, weights, p, rounds, vector, numbers, record, trace, margins)
    return margins[0] if played else math.nan


def penalised_ftrl(places, row, label, weight):
    """The same."""
    p, rounds, vector, numbers = floats_at(places, 0), whole_at(places, 1), floats_at(places, 2), floats_at(places, 3)
    rows, order, labels, weights, record, trace, margins = _around(row, label, weight)
    played = _play_penalised_ftrl(rows, order, labels, weights, p, rounds, vector, numbers, record, trace, margins)
    return margins[0] if played else math.nan


def aftrl_sparse(places, indices, values, label, weight):
    """The same for a sparse row, on the memory of `sparse`."""
    p, rounds, memory, numbers = floats_at(places, 0), whole_at(places, 1), floats_at(places, 2), floats_at(places, 4)
    heap = whole_at(places, 3).view(np.uint64)
    return _step_sparse(indices, values, label, weight, p, rounds, memory, heap, numbers)


@cache
def step(rule: str) -> Any:
    """The compiled rule for one row of float64: step(places, row, label, weight)."""
    function = {"aftrl": aftrl, "aogd": aogd, "penalised_ftrl": penalised_ftrl}[rule]
    return compiled(function, (readonly(int64), readonly(float64), float64, float64))


@cache
def sparse_step() -> Any:
    """A-FTRL for one row of float64 at int64: sparse_step()(places, indices, values, label, weight)."""
    return compiled(aftrl_sparse, (readonly(int64), readonly(int64), readonly(float64), float64, float64))
