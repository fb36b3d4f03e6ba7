"""Boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, namespace
from longterm.errors import InputError
from longterm.problems.sets.base import Set


@dataclass(frozen=True, eq=False, init=False)
class Box(Set):
    """Keep each coordinate of a decision between a lower and an upper limit.

    The set is {x : lower ≤ x ≤ upper}, coordinatewise.

    Parameters
    ----------
    lower, upper : array_like of shape (d,)
        The limits of each coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.sets import Box
    >>> Box([-1.0, 0.0], [1.0, 2.0]).project(np.array([5.0, -3.0]))
    array([1., 0.])
    """

    lower: FloatArray
    upper: FloatArray

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        low = validate.vector("lower", lower)
        high = validate.vector("upper", upper, len(low))
        if np.any(low > high):
            k = int(np.argmax(low > high))
            raise InputError("lower", f"exceeds upper in coordinate {k} ({low[k]} > {high[k]})", "Swap the two")
        diameter = float(np.linalg.norm(high - low))
        validate.set_frozen(
            self,
            lower=low,
            upper=high,
            dimension=len(low),
            centre=validate.frozen((low + high) / 2),
            radius=diameter / 2,
            diameter=diameter,
        )

    @classmethod
    def cube(cls, dimension: int, lower: float, upper: float) -> Box:
        """Return the box with the same interval for every coordinate."""
        d = validate.dimension("dimension", dimension)
        return cls(np.full(d, float(lower)), np.full(d, float(upper)))

    def project(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.minimum(xp.maximum(x, like(self.lower, x)), like(self.upper, x))

    def extreme_point(self, direction: Array) -> Array:
        lower, upper = like(self.lower, direction), like(self.upper, direction)
        return namespace(direction).where(direction > 0, upper, lower)

    def half_spaces(self) -> tuple[FloatArray, FloatArray]:
        each = np.eye(self.dimension)
        return np.concatenate([each, -each]), np.concatenate([self.upper, -self.lower])

    def largest_norm(self, order: int) -> float:
        return float(np.linalg.norm(np.maximum(np.abs(self.lower), np.abs(self.upper)), order))
