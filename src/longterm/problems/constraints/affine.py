"""Affine constraints A x ≤ b, fixed or changing from round to round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, dot, like, namespace, rows_at, times_table
from longterm.problems.constraints.base import Constraint
from longterm.problems.constraints.screened_rows import ScreenedRows
from longterm.problems.projections.base import Projection
from longterm.problems.projections.polyhedron import Polyhedron
from longterm.problems.sets import Ball, Set

LARGE = 100_000
"""From this many entries on, `squared_excess_nearby` reads the matrix in part."""


@dataclass(frozen=True, eq=False, init=False)
class Affine(Constraint):
    """Keep linear limits that are the same in every round.

    They are A x ≤ b: one constraint g_j(x) = ⟨a_j, x⟩ − b_j for each row a_j of A.

    Parameters
    ----------
    matrix : array_like of shape (m, d)
        The matrix A, with one row for each limit.
    limit : array_like of shape (m,)
        The right-hand sides b.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import Affine
    >>> from longterm.problems.sets import Ball
    >>> g = Affine([[3.0, 4.0], [-1.0, 0.0]], [1.0, 0.0])
    >>> g.values(np.array([1.0, 1.0]))
    array([ 6., -1.])
    >>> g.gradient_bound(Ball(2)), g.value_bound(Ball(2))
    (5.0, 6.0)
    """

    matrix: FloatArray
    limit: FloatArray

    def __init__(self, matrix: ArrayLike, limit: ArrayLike) -> None:
        rows = validate.matrix("matrix", matrix)
        limits = validate.vector("limit", limit, len(rows))
        validate.set_frozen(self, matrix=rows, limit=limits, count=len(rows), dimension=rows.shape[1])

    def values(self, x: Array, *parameters: Array) -> Array:
        return x @ like(self.matrix, x).T - like(self.limit, x)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        return times_table(weights, like(self.matrix, x))

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        return times_table(direction, like(self.matrix, x).T)

    def gradient_of(self, x: Array, index: Array, *parameters: Array) -> Array:
        return rows_at(like(self.matrix, x), index)

    def squared_excess(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        excess = namespace(x).maximum(self.values(x), 0.0)
        return dot(excess, excess), self.pullback(x, excess)

    def squared_excess_nearby(self, x: Array) -> Callable[[Array], tuple[Array, Array]]:
        if type(x) is not np.ndarray or x.dtype != np.float64 or self.matrix.size < LARGE:
            return self.squared_excess
        return self._screened.nearby()

    @cached_property
    def _screened(self) -> ScreenedRows:
        return ScreenedRows(self.matrix, self.limit)

    def as_affine(self) -> Affine:
        return self

    def least_values(self, over: Set) -> FloatArray:
        return np.asarray(-over.support(-self.matrix) - self.limit)

    def projection(self, over: Set) -> Projection | None:
        if isinstance(over, Ball):
            return Polyhedron(self.matrix, self.limit, over)
        bounds = over.half_spaces()
        if bounds is None:
            return None
        return Polyhedron(np.concatenate([self.matrix, bounds[0]]), np.concatenate([self.limit, bounds[1]]))

    def gradient_bound(self, over: Set) -> float:
        return float(np.linalg.norm(self.matrix, axis=1).max())

    def value_bound(self, over: Set) -> float:
        above = over.support(self.matrix) - self.limit
        below = over.support(-self.matrix) + self.limit
        return float(np.maximum(above, below).max())


@dataclass(frozen=True, eq=False)
class VaryingAffine(Constraint):
    """Keep linear limits that differ from round to round.

    The constraints are g_j(x) = ⟨a_j, x⟩ − b_j. The matrix and the limits are the parameters of a round.

    Parameters
    ----------
    dimension, count : int
        The number of coordinates of a decision, and the number of limits in a round (d and m).
    row_norm, limit_bound : float
        The largest Euclidean norm of a row, and the largest |b_j|.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import VaryingAffine
    >>> g = VaryingAffine(2, 1, row_norm=5.0, limit_bound=1.0)
    >>> g.values(np.array([1.0, 1.0]), np.array([[3.0, 4.0]]), np.array([1.0]))
    array([6.])
    """

    dimension: int
    count: int
    row_norm: float
    limit_bound: float

    def __post_init__(self) -> None:
        dimension, count = validate.dimension("dimension", self.dimension), validate.dimension("count", self.count)
        validate.validate_fields(self, validate.positive_scalar, "row_norm")
        validate.validate_fields(self, validate.non_negative_scalar, "limit_bound")
        validate.set_frozen(
            self, dimension=dimension, count=count, parameters={"matrix": (count, dimension), "limit": (count,)}
        )

    def values(self, x: Array, *parameters: Array) -> Array:
        matrix, limit = parameters
        return namespace(x).vecdot(matrix, x[..., None, :]) - limit

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        matrix, _ = parameters
        return namespace(x).sum(as_column(weights) * matrix, axis=-2)

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        matrix, _ = parameters
        return namespace(x).vecdot(matrix, direction[..., None, :])

    def affine_rounds(self, rounds: int, *parameters: Array) -> tuple[FloatArray, FloatArray]:
        matrix, limit = parameters
        return np.asarray(matrix[:rounds], np.float64), np.asarray(limit[:rounds], np.float64)

    def gradient_bound(self, over: Set) -> float:
        return self.row_norm

    def value_bound(self, over: Set) -> float:
        return self.row_norm * over.largest_norm(2) + self.limit_bound
