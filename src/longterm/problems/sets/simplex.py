"""Simplices, and matrices whose rows lie on a simplex."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, max_keepdims, namespace, sums_of_largest
from longterm.problems.sets.base import Set


def project_onto_simplex(x: Array, total: float) -> Array:
    """Project x, along the last axis, onto {x ≥ 0, Σ x = total}.

    The projection is [x − τ]₊. Let S_k be the sum of the k largest entries. (S_k − total)/k increases until k is the
    number of positive entries of the projection and decreases after it, so τ is its maximum over k.
    """
    xp = namespace(x)
    x = x - max_keepdims(x)  # does not change the result, and avoids cancellation for large x
    counts = like(_counts(x.shape[-1]), x)
    threshold = max_keepdims((sums_of_largest(x) - total) / counts)
    return xp.maximum(x - threshold, 0.0)


def _less_mean(x: Array) -> Array:
    """Return x less its mean along the last axis."""
    return x - namespace(x).sum(x, axis=-1, keepdims=True) / x.shape[-1]


@lru_cache
def _counts(size: int) -> FloatArray:
    return validate.frozen(np.arange(1.0, size + 1))


def vertex_of_simplex(direction: Array, total: float) -> Array:
    """Return the vertex of the simplex that maximises ⟨direction, x⟩. The lowest index wins ties."""
    xp = namespace(direction)
    best = xp.argmax(direction, axis=-1, keepdims=True)
    hit = xp.arange(direction.shape[-1], dtype=best.dtype) == best
    return total * xp.astype(hit, direction.dtype)


def _stochastic_half_spaces(dimension: int, sums: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
    """Return (A, b) of x ≥ 0 and `sums` x = total, written as A x ≤ b."""
    matrix = np.concatenate([-np.eye(dimension), sums, -sums])
    return matrix, np.concatenate([np.zeros(dimension), np.full(len(sums), total), np.full(len(sums), -total)])


@dataclass(frozen=True, eq=False)
class Simplex(Set):
    """Keep decisions to shares that are not negative and add up to a total.

    The set is {x ≥ 0 : Σ_i x_i = total}.

    Parameters
    ----------
    dimension : int
        The number of coordinates of a decision (d).
    total : float
        The sum of the coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.sets import Simplex
    >>> Simplex(3).project(np.array([1.0, 0.5, -2.0]))
    array([0.75, 0.25, 0.  ])
    """

    dimension: int
    total: float = 1.0

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        total = validate.positive_scalar("total", self.total)
        validate.set_frozen(
            self,
            dimension=dimension,
            total=total,
            centre=validate.frozen(np.full(dimension, total / dimension)),
            radius=float(total * np.sqrt(1 - 1 / dimension)),
            diameter=float(total * np.sqrt(2)) if dimension > 1 else 0.0,
        )

    def project(self, x: Array) -> Array:
        return project_onto_simplex(x, self.total)

    def tangent(self, direction: Array) -> Array:
        return _less_mean(direction)

    def extreme_point(self, direction: Array) -> Array:
        return vertex_of_simplex(direction, self.total)

    def half_spaces(self) -> tuple[FloatArray, FloatArray]:
        return _stochastic_half_spaces(self.dimension, np.ones((1, self.dimension)), self.total)

    def largest_norm(self, order: int) -> float:
        return self.total


@dataclass(frozen=True, eq=False)
class RowStochastic(Set):
    """Keep each row of a matrix a probability distribution.

    The set has the rows × columns matrices X ≥ 0, flattened, whose rows each sum to 1.

    The centre is √(rows (1 − 1/columns)) from each vertex, which is more than half the diameter √(2 rows).

    Parameters
    ----------
    rows, columns : int
        The size of the matrix.

    Examples
    --------
    >>> from longterm.problems.sets import RowStochastic
    >>> B = RowStochastic(8, 8)
    >>> round(B.radius**2, 12), round(B.diameter**2, 12)
    (7.0, 16.0)
    """

    rows: int
    columns: int

    def __post_init__(self) -> None:
        rows, columns = validate.dimension("rows", self.rows), validate.dimension("columns", self.columns)
        validate.set_frozen(
            self,
            dimension=rows * columns,
            centre=validate.frozen(np.full(rows * columns, 1 / columns)),
            radius=float(np.sqrt(rows * (1 - 1 / columns))),
            diameter=float(np.sqrt(2 * rows)) if columns > 1 else 0.0,
        )

    def _as_matrix(self, x: Array) -> Array:
        return namespace(x).reshape(x, (*x.shape[:-1], self.rows, self.columns))

    def _flat(self, matrix: Array) -> Array:
        return namespace(matrix).reshape(matrix, (*matrix.shape[:-2], self.dimension))

    def project(self, x: Array) -> Array:
        return self._flat(project_onto_simplex(self._as_matrix(x), 1.0))

    def tangent(self, direction: Array) -> Array:
        return self._flat(_less_mean(self._as_matrix(direction)))

    def extreme_point(self, direction: Array) -> Array:
        return self._flat(vertex_of_simplex(self._as_matrix(direction), 1.0))

    def half_spaces(self) -> tuple[FloatArray, FloatArray]:
        return _stochastic_half_spaces(self.dimension, np.repeat(np.eye(self.rows), self.columns, axis=1), 1.0)

    def largest_norm(self, order: int) -> float:
        return float(self.rows if order == 1 else np.sqrt(self.rows))
