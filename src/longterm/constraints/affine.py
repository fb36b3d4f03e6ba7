"""Affine constraints A x ≤ b: fixed, or with a matrix and a right side of each round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, like, namespace, product, rows_at
from longterm.constraints.base import Constraint
from longterm.projections import Polyhedron, Projection
from longterm.sets import Ball, Set


@dataclass(frozen=True, eq=False)
class Affine(Constraint):
    """g_j(x) = ⟨a_j, x⟩ − b_j.

    Parameters
    ----------
    matrix, offset : array_like
        The rows a_j, shape (m, d), and b, shape (m,).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.constraints import Affine
    >>> from longterm.sets import Ball
    >>> g = Affine([[3.0, 4.0], [-1.0, 0.0]], [1.0, 0.0])
    >>> g.values(np.array([1.0, 1.0]))
    array([ 6., -1.])
    >>> g.gradient_bound(Ball(2)), g.value_bound(Ball(2))
    (5.0, 6.0)
    """

    matrix: FloatArray
    offset: FloatArray

    def __post_init__(self) -> None:
        matrix = validate.matrix("matrix", self.matrix)
        offset = validate.vector("offset", self.offset, len(matrix))
        validate.remember(self, matrix=matrix, offset=offset, count=len(matrix), dimension=matrix.shape[1])

    def values(self, x: Array, *parameters: Array) -> Array:
        return x @ like(self.matrix, x).T - like(self.offset, x)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        return product(weights, like(self.matrix, x))

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        return product(direction, like(self.matrix, x).T)

    def gradient_of(self, x: Array, index: Array, *parameters: Array) -> Array:
        return rows_at(like(self.matrix, x), index)

    def as_affine(self) -> Affine:
        return self

    def least_values(self, over: Set) -> FloatArray:
        return np.asarray(-over.support(-self.matrix) - self.offset)

    def projection(self, over: Set) -> Projection | None:
        if isinstance(over, Ball):
            return Polyhedron(self.matrix, self.offset, over)
        bounds = over.half_spaces()
        if bounds is None:
            return None
        return Polyhedron(np.concatenate([self.matrix, bounds[0]]), np.concatenate([self.offset, bounds[1]]))

    def gradient_bound(self, over: Set) -> float:
        return float(np.linalg.norm(self.matrix, axis=1).max())

    def value_bound(self, over: Set) -> float:
        above = over.support(self.matrix) - self.offset
        below = over.support(-self.matrix) + self.offset
        return float(np.maximum(above, below).max())


@dataclass(frozen=True, eq=False)
class VaryingAffine(Constraint):
    """g_j(x) = ⟨a_j, x⟩ − b_j with a matrix and an offset of the round.

    Parameters
    ----------
    dimension, count : int
        d and m.
    row_norm, offset_bound : float
        Bound ‖a_j‖₂ and |b_j|.
    """

    dimension: int
    count: int
    row_norm: float
    offset_bound: float

    def __post_init__(self) -> None:
        dimension, count = validate.dimension("dimension", self.dimension), validate.dimension("count", self.count)
        validate.remember(
            self,
            dimension=dimension,
            count=count,
            parameters={"matrix": (count, dimension), "offset": (count,)},
            row_norm=validate.positive_scalar("row_norm", self.row_norm),
            offset_bound=validate.non_negative_scalar("offset_bound", self.offset_bound),
        )

    def values(self, x: Array, *parameters: Array) -> Array:
        matrix, offset = parameters
        return namespace(x).vecdot(matrix, x[..., None, :]) - offset

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        matrix, _ = parameters
        return namespace(x).sum(column(weights) * matrix, axis=-2)

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        matrix, _ = parameters
        return namespace(x).vecdot(matrix, direction[..., None, :])

    def affine_rounds(self, rounds: int, *parameters: Array) -> tuple[FloatArray, FloatArray]:
        matrix, offset = parameters
        return np.asarray(matrix[:rounds], np.float64), np.asarray(offset[:rounds], np.float64)

    def gradient_bound(self, over: Set) -> float:
        return self.row_norm

    def value_bound(self, over: Set) -> float:
        return self.row_norm * over.largest_norm(2) + self.offset_bound
