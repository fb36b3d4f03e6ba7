"""A constraint in other units."""

from __future__ import annotations

from dataclasses import dataclass

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray
from longterm.problems.constraints.affine import Affine
from longterm.problems.constraints.base import Constraint, Linearised
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Set


@dataclass(frozen=True, eq=False)
class Scaled(Constraint):
    """Make a learner react faster or slower to a constraint by multiplying it with a factor.

    The values, gradients and bounds of the constraint are multiplied by the factor.

    Learners with one G for losses and constraints react slowly to a g whose gradients are much shorter than the
    losses'. A-OGD's pull towards {g ≤ 0} grows with the square of the factor, and its steps do not shrink while factor
    · G_g ≤ G_f. Traces report factor · g.

    Parameters
    ----------
    constraint : Constraint
        The constraint that is multiplied.
    factor : float
        The factor, above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.constraints import L2Budget, Scaled
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
        return None if same is None else Affine(self.factor * same.matrix, self.factor * same.limit)

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
