"""One dense row, compiled: a block of one row mostly costs the handing over of arrays, and a row needs fewer."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import float64, int64

from longterm.linear_model import _aftrl, _aogd, _penalised_ftrl
from longterm.linear_model._compile import compiled, helper, readonly

_play_aftrl, _play_aogd = helper(_aftrl.play), helper(_aogd.play)
_play_penalised_ftrl = helper(_penalised_ftrl.play)


@helper
def _around(row, label, weight):  # type: ignore[no-untyped-def]
    """What a kernel wants of one row: rows, order, labels, weights; then nothing to record, and room for margins."""
    nothing, whole, room = np.empty(0, dtype=np.int64), row.reshape((1, len(row))), np.empty(3)
    room[0], room[1] = label, weight
    return whole, nothing, room[:1], room[1:2], nothing, room[:0].reshape((0, 6)), room[2:]


def aftrl(row, label, weight, p, round, vector, numbers):  # type: ignore[no-untyped-def]
    """The margin before learning; NaN if the row is refused, and then nothing was changed."""
    rows, order, labels, weights, record, trace, margins = _around(row, label, weight)
    played = _play_aftrl(rows, order, labels, weights, p, round, vector, numbers, record, trace, margins)
    return margins[0] if played else math.nan


def aogd(row, label, weight, p, round, vector, numbers):  # type: ignore[no-untyped-def]
    """The same."""
    rows, order, labels, weights, record, trace, margins = _around(row, label, weight)
    played = _play_aogd(rows, order, labels, weights, p, round, vector, numbers, record, trace, margins)
    return margins[0] if played else math.nan


def penalised_ftrl(row, label, weight, p, round, vector, numbers):  # type: ignore[no-untyped-def]
    """The same."""
    rows, order, labels, weights, record, trace, margins = _around(row, label, weight)
    played = _play_penalised_ftrl(rows, order, labels, weights, p, round, vector, numbers, record, trace, margins)
    return margins[0] if played else math.nan


@cache
def step(rule: str) -> Any:
    """The compiled rule for one row of float64: step(row, label, weight, parameters, *state)."""
    row = readonly(float64)
    function = {"aftrl": aftrl, "aogd": aogd, "penalised_ftrl": penalised_ftrl}[rule]
    return compiled(function, (row, float64, float64, row, int64[::1], float64[::1], float64[::1]))
