"""Boxes: an interval for each coordinate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, namespace
from longterm.errors import InputError
from longterm.sets.base import Set


@dataclass(frozen=True, eq=False)
class Box(Set):
    """{x : lower ≤ x ≤ upper}, coordinate by coordinate.

    Parameters
    ----------
    lower, upper : array_like of shape (d,)
        The bounds of each coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.sets import Box
    >>> Box([-1.0, 0.0], [1.0, 2.0]).project(np.array([5.0, -3.0]))
    array([1., 0.])
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        lower = validate.vector("lower", self.lower)
        upper = validate.vector("upper", self.upper, len(lower))
        if np.any(lower > upper):
            k = int(np.argmax(lower > upper))
            raise InputError("lower", f"exceeds upper in coordinate {k} ({lower[k]} > {upper[k]})", "Swap the two")
        diameter = float(np.linalg.norm(upper - lower))
        validate.remember(
            self,
            lower=lower,
            upper=upper,
            dimension=len(lower),
            centre=validate.frozen((lower + upper) / 2),
            radius=diameter / 2,
            diameter=diameter,
        )

    @classmethod
    def cube(cls, dimension: int, lower: float, upper: float) -> Box:
        """The same interval for every coordinate."""
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
