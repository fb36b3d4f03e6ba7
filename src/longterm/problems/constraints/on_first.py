"""A constraint on the first coordinates. The others, for example an intercept, are free within the enclosing set.

    g(x, b) = g₁(x),   (x, b) in B = B₁ × B₂.

The bounds D and G_g are those of g₁ on B₁. The part of a learner's step that belongs to b separates:

    argmin_{(x, b) ∈ B} ⟨z, (x, b)⟩ + ⟨Λ, g₁(x)⟩ + (a/2)‖(x, b)‖² = ( argmin for x, Π_{B₂}(−z_b/a) ).

In the theorems R² becomes R₁² + R₂², and the losses' gradients gain the coordinates of b.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, namespace
from longterm._base.registered import registered
from longterm.problems.constraints.base import Constraint
from longterm.problems.constraints.prox import PenaltyProx, Prox
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Ball, Product, Set


@dataclass(frozen=True, eq=False)
class OnFirstCoordinates(Constraint):
    """Keep a constraint on some coordinates only, for example not on the intercept of a model.

    The constraint reads the first coordinates of x.

    Parameters
    ----------
    constraint : Constraint
        The constraint on the first coordinates.
    free : int
        The number of coordinates after them, which are not constrained.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import ElasticNetBudget, OnFirstCoordinates
    >>> from longterm.problems.sets import Box, Product
    >>> budget = ElasticNetBudget(2, budget=1.5)
    >>> g = OnFirstCoordinates(budget, free=1)
    >>> B = Product([budget.enclosing_ball(), Box([-10.0], [10.0])])
    >>> g.values(np.array([1.0, 0.0, 7.0])), g.value_bound(B)
    (array([0.]), 1.5)
    >>> g.prox(B).argmin(np.array([-3.0, 0.5, 2.0]), np.array([1.0]), np.asarray(1.0))
    array([ 1.,  0., -2.])
    """

    constraint: Constraint
    free: int = 1

    def __post_init__(self) -> None:
        free = validate.count("free", self.free)
        validate.set_frozen(
            self,
            free=free,
            dimension=self.constraint.dimension + free,
            count=self.constraint.count,
            parameters=dict(self.constraint.parameters),
        )

    def values(self, x: Array, *parameters: Array) -> Array:
        return self.constraint.values(self.first(x), *parameters)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        pulled = self.constraint.pullback(self.first(x), weights, *parameters)
        zeros = namespace(x).zeros((*pulled.shape[:-1], self.free), dtype=pulled.dtype)
        return namespace(x).concat([pulled, zeros], axis=-1)

    def gradient_bound(self, over: Set) -> float:
        return self.constraint.gradient_bound(self._first_set(over))

    def value_bound(self, over: Set) -> float:
        return self.constraint.value_bound(self._first_set(over))

    def least_values(self, over: Set) -> FloatArray:
        return self.constraint.least_values(self._first_set(over))

    def prox(self, over: Set) -> Prox | None:
        parts = self._parts(over)
        inner = None if parts is None else self.constraint.prox(parts[0])
        if parts is None or inner is None:
            return None
        if isinstance(inner, PenaltyProx):
            return FirstPenaltyProx(self, over, inner, parts[1])
        return FirstProx(self, over, inner, parts[1])

    def projection(self, over: Set) -> Projection | None:
        parts = self._parts(over)
        inner = None if parts is None else self.constraint.projection(parts[0])
        if parts is None or inner is None:
            return None
        return partial(_project_parts, first=inner, dimension=self.constraint.dimension, rest=parts[1])

    def first(self, x: Array) -> Array:
        """Return the coordinates that g depends on."""
        return x[..., : self.constraint.dimension]

    def others(self, x: Array) -> Array:
        """Return the free coordinates."""
        return x[..., self.constraint.dimension :]

    def _parts(self, over: Set) -> tuple[Set, Set] | None:
        """Return B₁ and B₂, or None if the set is not such a product."""
        if not isinstance(over, Product):
            return None
        for n in range(1, len(over.factors)):
            if sum(factor.dimension for factor in over.factors[:n]) == self.constraint.dimension:
                first, rest = over.factors[:n], over.factors[n:]
                return first[0] if n == 1 else Product(first), rest[0] if len(rest) == 1 else Product(rest)
        return None

    def _first_set(self, over: Set) -> Set:
        """Return B₁, or a ball that contains the first coordinates of every point of the set."""
        parts = self._parts(over)
        return Ball(self.constraint.dimension, over.radius, self.first(over.centre)) if parts is None else parts[0]


@dataclass(frozen=True, eq=False)
class FirstProx(Prox):
    """The prox of `OnFirstCoordinates`: that of g₁ on the first coordinates, a projection on the others."""

    constraint: OnFirstCoordinates
    over: Set
    inner: Prox
    rest: Set

    def argmin(self, slope: Array, weights: Array, curvature: Array) -> Array:
        x = self.inner.argmin(self.constraint.first(slope), weights, curvature)
        free = self.rest.project(-self.constraint.others(slope) / as_column(curvature))
        return namespace(slope).concat([x, free], axis=-1)

    def values_norm_bound(self) -> float:
        return self.inner.values_norm_bound()


@dataclass(frozen=True, eq=False)
class FirstPenaltyProx(FirstProx, PenaltyProx):
    """The same where the prox of g₁ knows the least weight of the penalty."""

    inner: PenaltyProx

    def least_weight(self, slope: Array, curvature: Array) -> Array:
        return self.inner.least_weight(self.constraint.first(slope), curvature)

    @property
    def reach(self) -> float:
        return self.inner.reach

    @property
    def set_holds_budget(self) -> bool:
        return self.inner.set_holds_budget


@registered("first_and_others")
def _project_parts(x: Array, first: Projection, dimension: int, rest: Set) -> Array:
    """Project the first coordinates by `first` and the others onto `rest`."""
    return namespace(x).concat([first(x[..., :dimension]), rest.project(x[..., dimension:])], axis=-1)
