"""Squared distances to targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, dot
from longterm.errors import InputError
from longterm.problems.losses.base import Loss
from longterm.problems.sets import Ball, Set


@dataclass(frozen=True, eq=False)
class SquaredDistance(Loss):
    """Stay close to a target that each round announces after the decision.

    The loss is ½ ‖x − target‖², which is 1-strongly convex. The target is the parameter of a round.

    Parameters
    ----------
    dimension : int
        The number of coordinates of a decision (d).
    targets : Set, optional
        A set that contains every target. The enclosing set by default.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.losses import SquaredDistance
    >>> value, gradient = SquaredDistance(2).value_and_gradient(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    >>> float(value), gradient
    (1.0, array([ 1., -1.]))
    """

    dimension: int
    targets: Set | None = None

    strong_convexity = 1.0

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        if self.targets is not None and getattr(self.targets, "dimension", None) != dimension:
            what = f"{self.targets!r} is not a set of dimension {dimension}"
            raise InputError("targets", what, "Give a set that holds every target, Ball(dimension, radius) for example")
        validate.set_frozen(self, dimension=dimension, parameters={"target": (dimension,)})

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        (target,) = parameters
        gradient = x - target
        return 0.5 * dot(gradient, gradient), gradient

    def parameters_towards(self, direction: FloatArray, level: FloatArray, over: Set) -> tuple[FloatArray, ...]:
        targets = over if self.targets is None else self.targets
        return (np.asarray(targets.project(targets.centre + targets.diameter * direction)),)

    def gradient_bound(self, over: Set) -> float:
        if self.targets is None or self.targets is over:
            return over.diameter
        distance = float(np.linalg.norm(over.centre - self.targets.centre))
        return distance + over.radius + self.targets.radius

    def value_range(self, over: Set) -> float:
        farthest = self.gradient_bound(over)
        if isinstance(over, Ball):
            # Distances from a target at distance δ from the centre lie in [δ − R, δ + R]: ½(δ + R)² − ½[δ − R]₊².
            return 0.5 * (farthest**2 - max(farthest - over.diameter, 0.0) ** 2)
        return 0.5 * farthest**2
