"""Affine constraints of a large matrix, of which only the rows are read that a few nearby points can violate."""

from __future__ import annotations

import numpy as np

from longterm._base.arrays import FloatArray

MOST = 0.25
"""The largest share of the rows that is copied out of the matrix. For more, all rows are read in place."""


class ScreenedRows:
    """‖v‖² and Σ_j v_j a_j with v = [A y − b]₊, for points y that lie near those of the first call.

    ⟨a_j, y⟩ − b_j ≤ ⟨a_j, y₀⟩ − b_j + ‖a_j‖ ‖y − y₀‖, so a row where the right side is negative is not violated at y.
    The first call reads all rows, and later ones those that may be violated. The sums have as many terms as v.

    Parameters
    ----------
    matrix : array of shape (m, d)
        A.
    limit, lengths : array of shape (m,)
        b and ‖a_j‖.
    """

    def __init__(self, matrix: FloatArray, limit: FloatArray, lengths: FloatArray) -> None:
        self._matrix, self._limit, self._lengths = matrix, limit, lengths
        self._first: tuple[FloatArray, FloatArray] | None = None

    def __call__(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ‖v‖², shape (...), and Σ_j v_j a_j, shape (..., d)."""
        points = x.reshape(-1, x.shape[-1])
        if self._first is None:
            values = np.stack([self._matrix @ y - self._limit for y in points])
            self._first = points, values
            parts = [self._pulled(self._matrix, row) for row in values]
        else:
            parts = [self._near(*args) for args in zip(points, *self._first, strict=True)]
        squares, pulled = (np.stack(part) for part in zip(*parts, strict=True))
        return squares.reshape(x.shape[:-1]), pulled.reshape(x.shape)

    def _near(self, y: FloatArray, first: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both for one point, from the first point and its values."""
        away = y - first
        near = np.flatnonzero(values + np.sqrt(away @ away) * self._lengths > 0)
        rows, limit = self._matrix, self._limit
        if len(near) <= MOST * len(rows):
            rows, limit = rows[near], limit[near]
        return self._pulled(rows, rows @ y - limit)

    def _pulled(self, rows: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ‖v‖² and Σ_j v_j a_j over these rows."""
        broken = np.flatnonzero(values > 0)
        v = values[broken]
        if len(broken) <= MOST * len(rows):
            return v @ v, v @ rows[broken]
        return v @ v, np.maximum(values, 0.0) @ rows
