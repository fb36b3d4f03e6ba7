"""Affine constraints of a large matrix, of which only the rows are read in float64 that a point may violate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm._base.selection import clamp_to_divisor

MOST = 0.25
"""The largest share of the rows that is copied out of the matrix. For more, all rows are read in place."""
Sums = tuple[FloatArray, FloatArray]
"""‖v‖², shape (...), and Σ_j v_j a_j, shape (..., d)."""


class ScreenedRows:
    """‖v‖² and Σ_j v_j a_j with v = [A y − b]₊.

    It computes the cosines of y with all a_j in float32, at half the cost. An error is at most ε(d + 2), with the ε
    of float32. A row with (cosine + ε(d + 2)) ‖y‖ ≤ b_j/‖a_j‖ is not violated. The others are read in float64.

    Parameters
    ----------
    matrix : array of shape (m, d)
        A.
    limit : array of shape (m,)
        b.
    """

    def __init__(self, matrix: FloatArray, limit: FloatArray) -> None:
        lengths = clamp_to_divisor(np.linalg.norm(matrix, axis=1))
        self._matrix, self._limit = matrix, limit
        self._directions: NDArray[np.float32] = (matrix / lengths[:, None]).astype(np.float32)
        self._distances = limit / lengths
        self._error = float(np.finfo(np.float32).eps) * (matrix.shape[1] + 2)

    def nearby(self) -> Callable[[FloatArray], Sums]:
        """Return the function of points of shape (..., d). It computes a point that has not moved only once."""
        last: dict[int, tuple[FloatArray, Sums]] = {}

        def sums_at(k: int, y: FloatArray) -> Sums:
            if k not in last or not np.array_equal(last[k][0], y):
                last[k] = y, self._sums(y)
            return last[k][1]

        def squared_excess(x: FloatArray) -> Sums:
            found = [sums_at(k, y) for k, y in enumerate(x.reshape(-1, x.shape[-1]))]
            squares, pulled = (np.stack(part) for part in zip(*found, strict=True))
            return squares.reshape(x.shape[:-1]), pulled.reshape(x.shape)

        return squared_excess

    def _sums(self, y: FloatArray) -> Sums:
        """Return both for one point."""
        length = clamp_to_divisor(np.sqrt(y @ y))
        cosines = self._directions @ (y / length).astype(np.float32)
        near = np.flatnonzero((cosines + self._error) * length > self._distances)
        rows, limit = self._matrix, self._limit
        if len(near) <= MOST * len(rows):
            rows, limit = rows[near], limit[near]
        v = np.maximum(rows @ y - limit, 0.0)
        return v @ v, v @ rows
