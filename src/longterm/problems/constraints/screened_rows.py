"""Affine constraints of a large matrix, of which only the rows are read in float64 that a point may violate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm._base.selection import clamp_to_divisor

MOST = 0.25
"""The largest share of the rows that is copied out of the matrix. For more, all rows are read in place."""
FEW = 0.15
"""The largest share of the rows that is read because a point has moved. For more, all cosines are computed again."""
Sums = tuple[FloatArray, FloatArray]
"""‖v‖², shape (...), and Σ_j v_j a_j, shape (..., d)."""


class ScreenedRows:
    """‖v‖² and Σ_j v_j a_j with v = [A y − b]₊.

    It computes the cosines of y with all a_j in float32, at half the cost. An error is at most ε(d + 2), with the ε
    of float32. So y has at least the distance b_j/‖a_j‖ − (cosine + ε(d + 2)) ‖y‖ from the plane of row j, and a point
    at most that far from y does not violate it. The other rows are read in float64.

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
        self._offsets = limit / lengths
        self._error = float(np.finfo(np.float32).eps) * (matrix.shape[1] + 2)

    def nearby(self) -> Callable[[FloatArray], Sums]:
        """Return the function of points of shape (..., d), which uses the distances of the points before.

        It computes a point that has not moved only once. If a point has moved little, the distances from its earlier
        place tell which rows it may violate.
        """
        last: dict[int, tuple[FloatArray, float, FloatArray]] = {}
        screened: dict[int, tuple[FloatArray, FloatArray]] = {}

        def rows_near(k: int, y: FloatArray) -> NDArray[np.intp]:
            if k in screened:
                place, distances = screened[k]
                move = y - place
                near = np.flatnonzero(distances < np.sqrt(move @ move))
                if len(near) <= FEW * len(distances):
                    return near
            screened[k] = y, self._distances(y)
            return np.flatnonzero(screened[k][1] < 0)

        def squared_excess(x: FloatArray) -> Sums:
            squares, pulled = np.empty(x.shape[:-1]), np.empty(x.shape)
            each, rows = squares.reshape(-1), pulled.reshape(-1, x.shape[-1])
            for k, y in enumerate(x.reshape(rows.shape)):
                if k not in last or not np.array_equal(last[k][0], y):
                    last[k] = y, *self._sums(y, rows_near(k, y))
                _, each[k], rows[k] = last[k]
            return squares, pulled

        return squared_excess

    def _distances(self, y: FloatArray) -> FloatArray:
        """Return a lower bound of the distance of a point from the plane of each row, negative beyond it."""
        length = clamp_to_divisor(np.sqrt(y @ y))
        cosines = self._directions @ (y / length).astype(np.float32)
        return np.asarray(self._offsets - (cosines + self._error) * length)

    def _sums(self, y: FloatArray, near: NDArray[np.intp]) -> tuple[float, FloatArray]:
        """Return both for one point that violates no row but those of the indices `near`."""
        rows, limit = self._matrix, self._limit
        if len(near) <= MOST * len(rows):
            rows, limit = rows[near], limit[near]
        v = np.maximum(rows @ y - limit, 0.0)
        return float(v @ v), v @ rows
