"""What a constraint g ≤ 0 must be able to do; and affine ones, A x ≤ b, fixed or changing from round to round.

A constraint object is a *vector* of m convex functions g_1 … g_m, fixed or with parameters of the
round (g_t). Never a Jacobian: a learner sees the values, the gradient of one chosen g_j, and the
pullback λ ↦ Σ_j λ_j ∇g_j.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, dot, first_true, like, namespace, rows_at, times_table
from longterm._display import ReprMixin
from longterm.constraints.prox import AffineProx, Prox
from longterm.projections import Polyhedron, Projection
from longterm.sets import Ball, Set


class Linearised(NamedTuple):
    """g_1 … g_m as they are seen from one x."""

    values: Array
    """(g_1(x), …, g_m(x)), shape (..., m)."""
    pullback: Callable[[Array], Array]
    """λ ↦ Σ_j λ_j ∇g_j(x), from shape (..., m) to (..., d)."""
    pushforward: Callable[[Array], Array]
    """v ↦ (⟨∇g_j(x), v⟩)_j, from shape (..., d) to (..., m)."""


class Constraint(ReprMixin, ABC):
    """m convex functions, feasible where all are ≤ 0, batched over leading axes."""

    dimension: int
    count: int
    """m, the number of functions."""

    parameters: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    """Name and trailing shape of each parameter of one round, in order; none where g is fixed."""

    @abstractmethod
    def values(self, x: Array, *parameters: Array) -> Array:
        """(g_1(x), …, g_m(x)), shape (..., m)."""

    @abstractmethod
    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        """Σ_j weights_j ∇g_j(x) for weights of shape (..., m), shape (..., d)."""

    @abstractmethod
    def gradient_bound(self, over: Set) -> float:
        """G_g: no (sub)gradient of any g_j on the set is longer."""

    @abstractmethod
    def value_bound(self, over: Set) -> float:
        """D: max |g_j| on the set, over all j."""

    def as_affine(self) -> Affine | None:
        """The same functions as A x ≤ b, where they are affine and fixed; None where they are not."""
        return None

    @property
    def is_affine(self) -> bool:
        """Whether `as_affine` finds them; a constraint whose matrix is large says so without making it."""
        return self.as_affine() is not None

    def affine_rounds(self, rounds: int, *parameters: Array) -> tuple[FloatArray, FloatArray] | None:
        """(A, b), shapes (rounds, m, d) and (rounds, m), with g = A_s x − b_s in round s; None where g is not affine.

        The parameters are those of all the rounds, rounds on the leading axis.
        """
        affine = None if self.parameters else self.as_affine()
        if affine is None:
            return None
        matrix, offset = affine.matrix, affine.offset
        return np.broadcast_to(matrix, (rounds, *matrix.shape)), np.broadcast_to(offset, (rounds, *offset.shape))

    def least_values(self, over: Set) -> FloatArray:
        """Numbers, shape (m,), that g_1 … g_m are nowhere below on the set; for a fixed g.

        Here they are those of the tangents at the centre, which no convex function is below. A constraint that knows
        its minimum says so instead.
        """
        centre = np.broadcast_to(over.centre, (self.count, self.dimension))
        slopes = np.asarray(self.gradient_of(centre, np.arange(self.count)), dtype=np.float64)
        values = np.asarray(self.values(over.centre), dtype=np.float64)
        return np.asarray(values - np.vecdot(slopes, centre) - over.support(-slopes))

    def projection(self, over: Set) -> Projection | None:
        """Π onto X = {g ≤ 0} ∩ over, where it is known how to find the nearest point exactly; None where it is not."""
        affine = self.as_affine()
        return None if affine is None else affine.projection(over)

    def linearised(self, x: Array, *parameters: Array) -> Linearised:
        """All that is asked of g at one x: together, for a constraint where they share their work."""
        return Linearised(
            self.values(x, *parameters),
            lambda weights: self.pullback(x, weights, *parameters),
            lambda direction: self.pushforward(x, direction, *parameters),
        )

    def squared_excess(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        """‖v‖² and Σ_j v_j ∇g_j(x) with v = [g(x)]₊: by how much all together are broken, and half its gradient."""
        values, pullback, _ = self.linearised(x, *parameters)
        broken = namespace(x).maximum(values, 0.0)
        return dot(broken, broken), pullback(broken)

    def prox(self, over: Set) -> Prox | None:
        """The argmin over a set that holds these functions themselves, where it has a closed form (`constraints.prox`).

        Affine functions have one on every set.
        """
        return None if self.as_affine() is None else AffineProx(self, over)

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        """(⟨∇g_1(x), direction⟩, …, ⟨∇g_m(x), direction⟩), shape (..., m): the pullback's transpose.

        Written for any constraint, one gradient after another; affine ones have it as one product.
        """
        xp = namespace(x)
        if self.count == 1:
            return as_column(dot(direction, self.pullback(x, xp.ones((1,), dtype=x.dtype), *parameters)))
        index = xp.zeros(x.shape[:-1], dtype=xp.int64)
        slopes = [dot(self.gradient_of(x, index + j, *parameters), direction) for j in range(self.count)]
        return xp.stack(slopes, axis=-1)

    def gradient_of(self, x: Array, index: Array, *parameters: Array) -> Array:
        """∇g_index(x) for an integer index per learner, shape (..., d)."""
        return self.pullback(x, one_hot(index, self.count, x), *parameters)


def one_hot(index: Array, count: int, x: Array) -> Array:
    """1 at the index, 0 elsewhere, in x's dtype; shape index.shape + (count,)."""
    xp = namespace(x)
    return xp.astype(xp.arange(count, dtype=index.dtype) == as_column(index), x.dtype)


def largest(values: Array, tolerance: float) -> tuple[Array, Array]:
    """max_j of (..., m) values, and the *lowest* j within `tolerance` of it.

    Exact ties are generic (a doubly-stochastic matrix makes many constraints equal), and rounding
    would break them one way in a batch and another way in a single run. The tolerance makes the
    choice the same.

    >>> import numpy as np
    >>> value, index = largest(np.array([0.3, 0.5, 0.5 + 1e-12]), 1e-9)
    >>> float(value), int(index)
    (0.500000000001, 1)
    """
    xp = namespace(values)
    top = xp.max(values, axis=-1, keepdims=True)
    return top[..., 0], first_true(values >= top - tolerance)


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
        validate.set_frozen(self, matrix=matrix, offset=offset, count=len(matrix), dimension=matrix.shape[1])

    def values(self, x: Array, *parameters: Array) -> Array:
        return x @ like(self.matrix, x).T - like(self.offset, x)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        return times_table(weights, like(self.matrix, x))

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        return times_table(direction, like(self.matrix, x).T)

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
        validate.validate_fields(self, validate.positive_scalar, "row_norm")
        validate.validate_fields(self, validate.non_negative_scalar, "offset_bound")
        validate.set_frozen(
            self, dimension=dimension, count=count, parameters={"matrix": (count, dimension), "offset": (count,)}
        )

    def values(self, x: Array, *parameters: Array) -> Array:
        matrix, offset = parameters
        return namespace(x).vecdot(matrix, x[..., None, :]) - offset

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        matrix, _ = parameters
        return namespace(x).sum(as_column(weights) * matrix, axis=-2)

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
