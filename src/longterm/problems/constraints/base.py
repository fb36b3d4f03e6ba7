"""The base class of constraints g ≤ 0.

A constraint is a vector of m convex functions g_1 … g_m, fixed or with parameters of the round. Learners use its
values, the gradient of one g_j, and the pullback λ ↦ Σ_j λ_j ∇g_j, never a Jacobian.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longterm._base.arrays import Array, FloatArray, as_column, dot, first_true, namespace
from longterm._base.display import ReprMixin
from longterm.problems.constraints.prox import AffineProx, Prox
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Set

if TYPE_CHECKING:
    from longterm.problems.constraints.affine import Affine


class Linearised(NamedTuple):
    """The values and derivatives of g_1 … g_m at one x."""

    values: Array
    """(g_1(x), …, g_m(x)), shape (..., m)."""
    pullback: Callable[[Array], Array]
    """λ ↦ Σ_j λ_j ∇g_j(x), from shape (..., m) to (..., d)."""
    pushforward: Callable[[Array], Array]
    """v ↦ (⟨∇g_j(x), v⟩)_j, from shape (..., d) to (..., m)."""


class Constraint(ReprMixin, ABC):
    """Evaluate the constraints of a round, their gradients and bounds: the base class of all constraints.

    It has m convex functions. A decision is feasible if all of them are at most 0. Methods are batched over leading
    axes.
    """

    dimension: int
    count: int
    """m, the number of functions."""

    parameters: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    """The name and trailing shape of each parameter of a round, in order. Empty if g is fixed."""

    @abstractmethod
    def values(self, x: Array, *parameters: Array) -> Array:
        """Return (g_1(x), …, g_m(x)), shape (..., m)."""

    @abstractmethod
    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        """Return Σ_j weights_j ∇g_j(x) for weights of shape (..., m), shape (..., d)."""

    @abstractmethod
    def gradient_bound(self, over: Set) -> float:
        """Return G_g, an upper bound on the (sub)gradient norms of all g_j on the set."""

    @abstractmethod
    def value_bound(self, over: Set) -> float:
        """Return D, an upper bound on |g_j| on the set for all j."""

    def as_affine(self) -> Affine | None:
        """Return the same functions as A x ≤ b, or None if they are not affine or not fixed."""
        return None

    @property
    def is_affine(self) -> bool:
        """True if `as_affine` returns a constraint. Constraints with large matrices answer without building them."""
        return self.as_affine() is not None

    def affine_rounds(self, rounds: int, *parameters: Array) -> tuple[FloatArray, FloatArray] | None:
        """Return (A, b), shapes (rounds, m, d) and (rounds, m), with g = A_s x − b_s in round s, or None.

        The parameters are those of all rounds, with rounds on the leading axis.
        """
        affine = None if self.parameters else self.as_affine()
        if affine is None:
            return None
        matrix, limit = affine.matrix, affine.limit
        return np.broadcast_to(matrix, (rounds, *matrix.shape)), np.broadcast_to(limit, (rounds, *limit.shape))

    def least_values(self, over: Set) -> FloatArray:
        """Return lower bounds of g_1 … g_m on the set, shape (m,), for a fixed g.

        The default is the minimum of the tangents at the centre. Constraints that know their minimum override it.
        """
        centre = np.broadcast_to(over.centre, (self.count, self.dimension))
        slopes = np.asarray(self.gradient_of(centre, np.arange(self.count)), dtype=np.float64)
        values = np.asarray(self.values(over.centre), dtype=np.float64)
        return np.asarray(values - np.vecdot(slopes, centre) - over.support(-slopes))

    def projection(self, over: Set) -> Projection | None:
        """Return the exact projection onto X = {g ≤ 0} ∩ over, or None if none is known."""
        affine = self.as_affine()
        return None if affine is None else affine.projection(over)

    def linearised(self, x: Array, *parameters: Array) -> Linearised:
        """Return values, pullback and pushforward at x. Constraints override it to share work between them."""
        return Linearised(
            self.values(x, *parameters),
            lambda weights: self.pullback(x, weights, *parameters),
            lambda direction: self.pushforward(x, direction, *parameters),
        )

    def squared_excess(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        """Return ‖v‖² and half its gradient Σ_j v_j ∇g_j(x), where v = [g(x)]₊."""
        values, pullback, _ = self.linearised(x, *parameters)
        excess = namespace(x).maximum(values, 0.0)
        return dot(excess, excess), pullback(excess)

    def squared_excess_nearby(self, x: Array) -> Callable[[Array], tuple[Array, Array]]:
        """Return `squared_excess` for a few points near each other, like x. Constraints override it to share work."""
        return self.squared_excess

    def prox(self, over: Set) -> Prox | None:
        """Return the prox of these functions on a set (`problems.constraints.prox`), or None if it has no closed form.

        Affine functions have one on every set.
        """
        return None if self.as_affine() is None else AffineProx(self, over)

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        """Return (⟨∇g_1(x), direction⟩, …, ⟨∇g_m(x), direction⟩), shape (..., m), the transpose of the pullback."""
        xp = namespace(x)
        if self.count == 1:
            return as_column(dot(direction, self.pullback(x, xp.ones((1,), dtype=x.dtype), *parameters)))
        index = xp.zeros(x.shape[:-1], dtype=xp.int64)
        slopes = [dot(self.gradient_of(x, index + j, *parameters), direction) for j in range(self.count)]
        return xp.stack(slopes, axis=-1)

    def gradient_of(self, x: Array, index: Array, *parameters: Array) -> Array:
        """Return ∇g_index(x) for one integer index per learner, shape (..., d)."""
        return self.pullback(x, one_hot(index, self.count, x), *parameters)


def one_hot(index: Array, count: int, x: Array) -> Array:
    """Return unit vectors with 1 at the index, in x's dtype, shape index.shape + (count,)."""
    xp = namespace(x)
    return xp.astype(xp.arange(count, dtype=index.dtype) == as_column(index), x.dtype)


def max_with_index(values: Array, tolerance: float) -> tuple[Array, Array]:
    """Return max_j of (..., m) values and the lowest j within `tolerance` of it.

    Exact ties are common: many constraints of a doubly-stochastic matrix are equal. The tolerance keeps rounding, which
    differs between a batch and a single run, from changing the index.

    >>> import numpy as np
    >>> value, index = max_with_index(np.array([0.3, 0.5, 0.5 + 1e-12]), 1e-9)
    >>> float(value), int(index)
    (0.500000000001, 1)
    """
    xp = namespace(values)
    top = xp.max(values, axis=-1, keepdims=True)
    return top[..., 0], first_true(values >= top - tolerance)
