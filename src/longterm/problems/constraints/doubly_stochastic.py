"""Doubly-stochastic matrices, flattened: X ≥ 0, X 1 = 1, Xᵀ 1 = 1, written as p² + 4p affine inequalities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from longterm._base import validate
from longterm._base.arrays import ROUNDING, Array, FloatArray, dot, like, namespace, rows_at
from longterm.errors import InputError
from longterm.problems.constraints.affine import Affine
from longterm.problems.constraints.base import Constraint
from longterm.problems.projections.base import Projection
from longterm.problems.projections.birkhoff import project_onto_doubly_stochastic
from longterm.problems.sets import Ball, Box, RowStochastic, Set

MAX_SIZE = 10_000
"""The largest p. A decision then takes 800 MB."""
MAX_TABLE_SIZE = 24
"""Up to this p the gradients are stored in a table of at most 4 MB, which makes A-OGD 1.2 times faster."""


@dataclass(frozen=True, eq=False)
class DoublyStochastic(Constraint):
    """Keep a matrix doubly stochastic: no negative entries, and all rows and columns sum to 1.

    The p × p matrix is flattened. The constraints are, in this order: −X_ij ≤ 0 (p² of them, row by row), row sums − 1
    ≤ 0, 1 − row sums ≤ 0, then the same for the columns. The lowest index wins where several are equally violated.

    It equals `Affine` with the same matrix, but does not store p⁴ numbers.

    Parameters
    ----------
    size : int
        The number of rows of the matrix (p).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import DoublyStochastic
    >>> g = DoublyStochastic(2)
    >>> g.values(np.array([1.0, 0.5, 0.25, 0.5]))[4:]
    array([ 0.5 , -0.25, -0.5 ,  0.25,  0.25,  0.  , -0.25, -0.  ])
    """

    size: int
    _gradients: FloatArray | None = field(init=False, repr=False)
    _ones: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        p = validate.dimension("size", self.size)
        if p > MAX_SIZE:
            raise InputError("size", f"{p} means {p * p} numbers in each decision", f"Give at most {MAX_SIZE}")
        validate.set_frozen(self, dimension=p * p, count=p * p + 4 * p)
        small = p <= MAX_TABLE_SIZE
        table = validate.frozen(np.concatenate([-np.eye(p * p), *self._sum_gradients()])) if small else None
        validate.set_frozen(self, _gradients=table, _ones=validate.frozen(np.ones(p)))

    def _sum_gradients(self) -> Iterator[FloatArray]:
        """Yield the gradients of the 4p sums, shape (1, d), one by one to save memory."""
        p = self.size
        for sign, axis in ((1.0, 0), (-1.0, 0), (1.0, 1), (-1.0, 1)):
            for k in range(p):
                matrix = np.zeros((p, p))
                matrix[(k, slice(None)) if axis == 0 else (slice(None), k)] = sign
                yield matrix.reshape(1, -1)

    def _supports_of_sums(self, over: Set, sign: float) -> FloatArray:
        return np.concatenate([over.support(sign * gradient) for gradient in self._sum_gradients()])

    def values(self, x: Array, *parameters: Array) -> Array:
        return self._entries_and_sums(x, 1.0)

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        return self._entries_and_sums(direction, 0.0)

    def _row_and_column_sums(self, x: Array) -> tuple[Array, Array]:
        matrix = namespace(x).reshape(x, (*x.shape[:-1], self.size, self.size))
        ones = like(self._ones, x)
        return matrix @ ones, ones @ matrix  # several times faster than sums over short axes

    def _entries_and_sums(self, x: Array, total: float) -> Array:
        """Return −X_ij, then the sums of the rows and of the columns less `total`, each with both signs."""
        rows, columns = self._row_and_column_sums(x)
        if total:
            rows, columns = rows - total, columns - total
        return namespace(x).concat([-x, rows, -rows, columns, -columns], axis=-1)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        xp = namespace(x)
        p, d = self.size, self.dimension
        signed = xp.reshape(weights[..., d:], (*weights.shape[:-1], 2, 2, p))
        sums = signed[..., 0, :] - signed[..., 1, :]
        from_sums = xp.reshape(sums[..., 0, :, None] + sums[..., 1, None, :], (*weights.shape[:-1], d))
        return from_sums - weights[..., :d]

    def squared_excess(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        # Of each pair ±(sum − 1) the positive one is violated: v₊ − v₋ = sum − 1 and v₊² + v₋² = (sum − 1)².
        xp = namespace(x)
        entries = xp.minimum(x, 0.0)
        rows, columns = (sums - 1.0 for sums in self._row_and_column_sums(x))
        pulled = entries + xp.reshape(rows[..., :, None] + columns[..., None, :], x.shape)
        return dot(entries, entries) + dot(rows, rows) + dot(columns, columns), pulled

    def gradient_of(self, x: Array, index: Array, *parameters: Array) -> Array:
        if self._gradients is None:
            return super().gradient_of(x, index)
        return rows_at(like(self._gradients, x), index)

    @property
    def is_affine(self) -> bool:
        return True

    def as_affine(self) -> Affine:
        matrix = np.concatenate([-np.eye(self.dimension), *self._sum_gradients()])
        return Affine(matrix, -self.values(np.zeros(self.dimension)))

    def least_values(self, over: Set) -> FloatArray:
        """Return lower bounds of the sums, and −∞ for the p² entries."""
        sums = -self._supports_of_sums(over, -1.0) - np.repeat([1.0, -1.0, 1.0, -1.0], self.size)
        return np.concatenate([np.full(self.dimension, -np.inf), sums])

    def projection(self, over: Set) -> Projection | None:
        if self._is_inside(over):
            return partial(project_onto_doubly_stochastic, size=self.size)
        return super().projection(over)

    def _is_inside(self, over: Set) -> bool:
        """Return True if `over` is known to contain every permutation matrix, hence every doubly-stochastic matrix."""
        from scipy.optimize import linear_sum_assignment

        if isinstance(over, Ball):
            # ‖P − C‖² = p + ‖C‖² − 2⟨P, C⟩ is largest for the permutation of least cost.
            centre = over.centre.reshape(self.size, self.size)
            least = centre[linear_sum_assignment(centre)].sum()
            farthest = np.sqrt(self.size + np.sum(centre**2) - 2 * least)
            return bool(farthest <= over.radius * (1 + ROUNDING))
        if isinstance(over, Box):
            return bool(np.all(over.lower <= 0) and np.all(over.upper >= 1))
        return isinstance(over, RowStochastic) and over.rows == self.size

    def gradient_bound(self, over: Set) -> float:
        return float(np.sqrt(self.size))

    def value_bound(self, over: Set) -> float:
        # Each sum occurs with both signs, so its support bounds |g_j|. Entries need both directions.
        sums = self._supports_of_sums(over, 1.0) - np.repeat([1.0, -1.0, 1.0, -1.0], self.size)
        if isinstance(over, Ball):  # its support of ±e_k has a closed form
            return float(max(sums.max(), np.abs(over.centre).max() + over.radius))
        entries = [over.support(sign * entry) for entry in self._entries() for sign in (1.0, -1.0)]
        return float(max(sums.max(), *entries))

    def _entries(self) -> Iterator[FloatArray]:
        for k in range(self.dimension):
            entry = np.zeros(self.dimension)
            entry[k] = 1.0
            yield entry
