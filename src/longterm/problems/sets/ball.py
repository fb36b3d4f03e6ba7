"""The Euclidean ball."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import SHORT_ROW, Array, FloatArray, as_column, like, namespace, norm, safe_norm, scale_rows
from longterm._base.selection import clamp_min
from longterm.problems.sets.base import Set

SQUARE_MARGIN = 1e-5
"""A squared length below the squared radius by this share is inside, in float32 and float64."""


@dataclass(frozen=True, eq=False, init=False)
class Ball(Set):
    """Keep decisions within a distance of a centre.

    The set is {x : ‖x − centre‖₂ ≤ radius}.

    Projections are accurate for every radius that is a normal float (float64: 1e-307 to 1e307) and for any x.

    Parameters
    ----------
    dimension : int
        The number of coordinates of a decision (d).
    radius : float
        The largest distance from the centre (R).
    centre : array_like of shape (d,), optional
        The origin by default.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.sets import Ball
    >>> Ball(2, radius=1.0).project(np.array([[3.0, 4.0], [0.1, 0.2]]))
    array([[0.6, 0.8],
           [0.1, 0.2]])
    """

    dimension: int
    radius: float = 1.0
    centre: FloatArray = field(default_factory=lambda: np.zeros(()))
    _about_origin: bool = field(init=False, repr=False)

    def __init__(self, dimension: int, radius: float = 1.0, centre: ArrayLike = 0.0) -> None:
        d = validate.dimension("dimension", dimension)
        r = validate.positive_scalar("radius", radius)
        if np.ndim(centre) == 0 and centre == 0:
            middle = np.broadcast_to(np.float64(0.0), (d,))  # takes no memory per coordinate
        else:
            middle = validate.vector("centre", centre, d)
        about_origin = not np.any(middle)
        validate.set_frozen(self, dimension=d, radius=r, diameter=2 * r, centre=middle, _about_origin=about_origin)

    def project(self, x: Array) -> Array:
        if self._about_origin:
            return self._shrink(x)
        centre = like(self.centre, x)
        return centre + self._shrink(x - centre)

    @cached_property  # not a field: stored learners are compared by their fields
    def _unit(self) -> float:
        """Return a power of two that scales lengths so that their squares neither overflow nor underflow.

        It is 1 for radii near 1. Extreme radii are scaled far below 1, to leave range for distant points.
        """
        exponent = math.frexp(self.radius)[1]
        if abs(exponent) <= 20:
            return 1.0
        return 2.0**-exponent if abs(exponent) <= 100 else 2.0 ** max(min(-exponent - 400, 1000), -1000)

    def _contains_few(self, offset: Array) -> bool:
        """Return True for a few points that are all well inside. It is faster than computing their norms."""
        if not (type(offset) is np.ndarray and offset.ndim == 2 and 0 < len(offset) <= SHORT_ROW and self._unit == 1.0):
            return False
        reach = self.radius * self.radius * (1 - SQUARE_MARGIN)
        total = np.vdot(offset, offset)  # unlike vecdot, vdot does not warn of overflow
        return bool(total < reach or (total < math.inf and max(np.vecdot(offset, offset).tolist()) < reach))

    def _shrink(self, offset: Array) -> Array:
        # Inside the ball the factor is reach / reach = 1, so the point is returned bit for bit.
        reach = self.radius * self._unit
        if type(offset) is np.ndarray and offset.ndim == 1 and offset.dtype == np.float64 and reach == self.radius:
            distance = math.sqrt(np.vdot(offset, offset))
            if distance <= reach:
                return offset.copy()
            if distance < math.inf:
                return offset * (reach / distance)
        if self._contains_few(offset):
            return offset.copy()
        with np.errstate(over="ignore"):  # overflowing points are projected by _shrink_distant
            return self._shrink_all(offset, reach)

    def _shrink_all(self, offset: Array, reach: float) -> Array:
        near = norm(offset if self._unit == 1.0 else offset * self._unit)
        if not isinstance(offset, np.ndarray):
            xp = namespace(offset)
            shrunk = offset * as_column(reach / xp.maximum(near, reach))
            return xp.where(as_column(near < math.inf), shrunk, self._shrink_distant_compiled(offset))
        farthest = near if near.ndim == 0 else np.maximum.reduce(near, axis=None, initial=0.0)
        if farthest <= reach:
            return offset.copy()
        shrunk = scale_rows(reach / clamp_min(near, reach), offset)
        if farthest < np.inf:
            return shrunk
        return np.where(as_column(np.isfinite(near)), shrunk, self._shrink_distant(offset))

    def _shrink_distant_compiled(self, offset: Array) -> Array:
        """Project distant points with one reduction, for compiled code, which evaluates it for every point.

        At usual radii the square of a distance overflows from 2^512 (float32: 2^64) on. A constant factor prevents it.
        """
        if self._unit != 1.0:
            return self._shrink_distant(offset)
        least = 2.0**-9 if "32" in str(offset.dtype) else 2.0**-49
        small = offset * (least * 2.0 ** (-63 if least > 2.0**-40 else -511))
        return small * as_column(self.radius / namespace(offset).maximum(norm(small), least))

    def _shrink_distant(self, offset: Array) -> Array:
        """Project points whose squared distance overflows."""
        xp = namespace(offset)
        largest = xp.max(xp.abs(offset), axis=-1, keepdims=True)
        unit = offset / xp.where(largest > 0, largest, 1.0)
        return unit * as_column(self.radius / xp.maximum(norm(unit), 1.0))

    def extreme_point(self, direction: Array) -> Array:
        size = as_column(safe_norm(direction))
        unit = direction / namespace(direction).where(size > 0, size, 1.0)
        return like(self.centre, direction) + self.radius * unit

    def largest_norm(self, order: int) -> float:
        # max ‖x‖₁ = max over signs s of ⟨s, centre⟩ + radius ‖s‖₂, and ‖s‖₂ = √d.
        reach = self.radius * (np.sqrt(self.dimension) if order == 1 else 1.0)
        return float((0.0 if self._about_origin else np.linalg.norm(self.centre, order)) + reach)
