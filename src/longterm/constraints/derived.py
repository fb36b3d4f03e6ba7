"""Constraints made from other functions: in other units, smooth, or a user's own.

Smooth constraints: the argmin that holds them, by a fixed number of projected gradient steps.

argmin_B ⟨z, x⟩ + ⟨Λ, g(x)⟩ + (a/2)‖x‖² is a-strongly convex, and its gradient is (a + L ΣΛ_j)-Lipschitz where that of
every g_j is L-Lipschitz. Steps of length 2/(2a + LΣΛ_j) bring any two points together by the factor (κ − 1)/(κ + 1), κ
= 1 + LΣΛ_j/a, so N of them find the argmin up to

    Δ ( (κ − 1)/(κ + 1) )^N.

Plain array operations without a branch: they are compiled like the rest. They never leave B, so g need only be known
there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, namespace
from longterm.constraints.base import Affine, Constraint, Linearised
from longterm.constraints.prox import Prox
from longterm.errors import InputError
from longterm.projections import Projection
from longterm.sets import Set


@dataclass(frozen=True, eq=False)
class Scaled(Constraint):
    """factor · g: feasible where g is, with every value, gradient and bound multiplied.

    Methods whose steps come from one G for losses and constraints hardly feel a g whose gradients are much shorter
    than the losses': A-OGD's pull towards {g ≤ 0} grows with the square of the factor, and as long as factor · G_g
    ≤ G_f no step gets shorter for it. Traces then speak of factor · g; divide by it.

    Parameters
    ----------
    constraint : Constraint
        g.
    factor : float
        Above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.constraints import L2Budget, Scaled
    >>> Scaled(L2Budget(2, budget=1.0), 10.0).values(np.array([3.0, 4.0]))
    array([40.])
    """

    constraint: Constraint
    factor: float

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "factor")
        validate.set_frozen(
            self,
            dimension=self.constraint.dimension,
            count=self.constraint.count,
            parameters=dict(self.constraint.parameters),
        )

    def values(self, x: Array, *parameters: Array) -> Array:
        return self.factor * self.constraint.values(x, *parameters)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        return self.constraint.pullback(x, self.factor * weights, *parameters)

    def pushforward(self, x: Array, direction: Array, *parameters: Array) -> Array:
        return self.factor * self.constraint.pushforward(x, direction, *parameters)

    def linearised(self, x: Array, *parameters: Array) -> Linearised:
        values, pullback, pushforward = self.constraint.linearised(x, *parameters)
        return Linearised(
            self.factor * values,
            lambda weights: pullback(self.factor * weights),
            lambda direction: self.factor * pushforward(direction),
        )

    def gradient_of(self, x: Array, index: Array, *parameters: Array) -> Array:
        return self.factor * self.constraint.gradient_of(x, index, *parameters)

    def as_affine(self) -> Affine | None:
        same = self.constraint.as_affine()
        return None if same is None else Affine(self.factor * same.matrix, self.factor * same.offset)

    def affine_rounds(self, rounds: int, *parameters: Array) -> tuple[FloatArray, FloatArray] | None:
        same = self.constraint.affine_rounds(rounds, *parameters)
        return None if same is None else (self.factor * same[0], self.factor * same[1])

    def least_values(self, over: Set) -> FloatArray:
        return self.factor * self.constraint.least_values(over)

    def projection(self, over: Set) -> Projection | None:
        return self.constraint.projection(over)

    def gradient_bound(self, over: Set) -> float:
        return self.factor * self.constraint.gradient_bound(over)

    def value_bound(self, over: Set) -> float:
        return self.factor * self.constraint.value_bound(over)


@dataclass(frozen=True, eq=False)
class CustomConstraint(Constraint):
    """One convex g of the user's own.

    The facts are declared, not derived: `longterm.challenge` looks for a point that proves them wrong. Put several
    together with `Stack`.

    Parameters
    ----------
    dimension : int
        d.
    function, derivative : callable
        g and a (sub)gradient: of x, shape (..., d), and the parameters of the round, to shapes (...,) and (..., d).
    declared_gradient_bound, declared_bound : float
        G_g and D on the enclosing set.
    parameters : mapping of str to tuple of int
        Name and trailing shape of each parameter of a round, in order; none for a fixed g.
    """

    dimension: int
    function: Callable[..., Array]
    derivative: Callable[..., Array]
    declared_gradient_bound: float
    declared_bound: float
    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.dimension, "dimension")
        validate.validate_fields(self, validate.positive_scalar, "declared_gradient_bound", "declared_bound")
        validate.set_frozen(self, count=1, parameters=dict(self.parameters))

    def values(self, x: Array, *parameters: Array) -> Array:
        return as_column(namespace(x).asarray(self.function(x, *parameters)))

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        return weights * self.derivative(x, *parameters)

    def gradient_bound(self, over: Set) -> float:
        return self.declared_gradient_bound

    def value_bound(self, over: Set) -> float:
        return self.declared_bound


@dataclass(frozen=True, eq=False)
class Smooth(Constraint):
    """The same functions, with Lipschitz gradients on B, and hence with a prox on every set.

    For learners that hold g itself in their steps: `YuNeely`, `ProximalAOGD`, `AFTRL`.

    Parameters
    ----------
    constraint : Constraint
        The functions, fixed.
    smoothness : float
        L, the Lipschitz constant of their gradients.
    steps : int
        N, the gradient steps of one prox.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.constraints import CustomConstraint, Smooth
    >>> from longterm.sets import Box
    >>> square = CustomConstraint(2, lambda x: x[..., 0] ** 2 - 1, lambda x: 2 * x * np.array([1.0, 0.0]), 4.0, 3.0)
    >>> prox = Smooth(square, smoothness=2.0).prox(Box.cube(2, -2.0, 2.0))
    >>> prox.argmin(np.array([-4.0, 1.0]), np.array([0.5]), np.asarray(1.0)).round(9)  # −4 + x + x = 0
    array([ 2., -1.])
    """

    constraint: Constraint
    smoothness: float
    steps: int = 60

    def __post_init__(self) -> None:
        if self.constraint.parameters:
            what = "has parameters of the round, and its argmin is wanted before they are known"
            raise InputError("constraint", what, "Give a constraint that stays the same")
        validate.validate_fields(self, validate.positive_scalar, "smoothness")
        validate.validate_fields(self, validate.count, "steps")
        validate.set_frozen(self, dimension=self.constraint.dimension, count=self.constraint.count)

    def values(self, x: Array, *parameters: Array) -> Array:
        return self.constraint.values(x)

    def pullback(self, x: Array, weights: Array, *parameters: Array) -> Array:
        return self.constraint.pullback(x, weights)

    def gradient_bound(self, over: Set) -> float:
        return self.constraint.gradient_bound(over)

    def value_bound(self, over: Set) -> float:
        return self.constraint.value_bound(over)

    def least_values(self, over: Set) -> FloatArray:
        return self.constraint.least_values(over)

    def as_affine(self) -> Affine | None:
        return self.constraint.as_affine()

    def projection(self, over: Set) -> Projection | None:
        return self.constraint.projection(over)

    def prox(self, over: Set) -> Prox:
        closed = self.constraint.prox(over)
        return SmoothProx(self, over) if closed is None else closed


@dataclass(frozen=True, eq=False)
class SmoothProx(Prox):
    """The argmin by projected gradient steps."""

    constraint: Smooth
    over: Set

    def argmin(self, slope: Array, weights: Array, curvature: Array) -> Array:
        a = as_column(curvature)
        length = 2 / (2 * a + self.constraint.smoothness * namespace(slope).sum(weights, axis=-1, keepdims=True))
        x = self.over.project(-slope / a)
        for _ in range(self.constraint.steps):
            x = self.over.project(x - length * (slope + a * x + self.constraint.pullback(x, weights)))
        return x

    def error(self, total_weight: FloatArray, curvature: FloatArray) -> FloatArray:
        steepness = self.constraint.smoothness * np.asarray(total_weight) / np.asarray(curvature)  # κ − 1
        return np.asarray(self.over.diameter * (steepness / (steepness + 2)) ** self.constraint.steps)
