"""Smooth constraints, whose prox is computed by projected gradient steps.

argmin_B ⟨z, x⟩ + ⟨Λ, g(x)⟩ + (a/2)‖x‖² is a-strongly convex. Its gradient is (a + L ΣΛ_j)-Lipschitz if the gradient of
every g_j is L-Lipschitz. Steps of length 2/(2a + L ΣΛ_j) contract distances by (κ − 1)/(κ + 1), κ = 1 + L ΣΛ_j/a.
N steps therefore find the argmin up to Δ ((κ − 1)/(κ + 1))^N. The steps stay in B, so g need only be defined there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, namespace
from longterm.errors import InputError
from longterm.problems.constraints.affine import Affine
from longterm.problems.constraints.base import Constraint
from longterm.problems.constraints.prox import Prox
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Set


@dataclass(frozen=True, eq=False)
class Smooth(Constraint):
    """Give any smooth constraint a proximal map, for learners whose steps contain the constraint itself.

    Such learners are `YuNeely`, `ProximalAOGD` and `AFTRL`. The map is computed by gradient steps.

    Parameters
    ----------
    constraint : Constraint
        The fixed constraint, with Lipschitz gradients.
    smoothness : float
        The Lipschitz constant of the gradients (L).
    steps : int
        The number of gradient steps for each map (N).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import CustomConstraint, Smooth
    >>> from longterm.problems.sets import Box
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
            what = "has parameters of the round, but its prox is needed before they are known"
            raise InputError("constraint", what, "Give a fixed constraint")
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
    """The prox by projected gradient steps."""

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
