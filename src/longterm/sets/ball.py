"""The Euclidean ball, the paper's enclosing set."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FEW, Array, FloatArray, at_least, column, length, like, namespace, norm, scaled
from longterm.sets.base import Set

ROUNDING = 1e-5
"""Of squared lengths in float32 or float64, with room to spare."""


@dataclass(frozen=True, eq=False)
class Ball(Set):
    """{x : ‖x − centre‖₂ ≤ radius}.

    Projections are right at every radius that is a normal float (float64: 1e-307 to 1e307), however far away the point.

    Parameters
    ----------
    dimension : int
        d.
    radius : float
        R.
    centre : array_like of shape (d,), optional
        Left out, the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.sets import Ball
    >>> Ball(2, radius=1.0).project(np.array([[3.0, 4.0], [0.1, 0.2]]))
    array([[0.6, 0.8],
           [0.1, 0.2]])
    """

    dimension: int
    radius: float = 1.0
    centre: FloatArray = field(default_factory=lambda: np.zeros(()))
    _about_origin: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        radius = validate.positive_scalar("radius", self.radius)
        given = np.asarray(self.centre)
        if given.ndim == 0 and given == 0:
            centre = np.broadcast_to(np.float64(0.0), (dimension,))  # one number, however many coordinates
        else:
            centre = validate.vector("centre", given, dimension)
        validate.remember(
            self,
            dimension=dimension,
            radius=radius,
            diameter=2 * radius,
            centre=centre,
            _about_origin=not np.any(centre),
        )

    def project(self, x: Array) -> Array:
        if self._about_origin:
            return self._shrink(x)
        centre = like(self.centre, x)
        return centre + self._shrink(x - centre)

    @cached_property  # not a field: those are what a stored learner is compared by
    def _unit(self) -> float:
        """A power of two, which rounds nothing, that brings lengths to where their squares are floats.

        1 for radii about 1; for others what brings them near 1, and extreme ones so low that far points fit above.
        """
        exponent = math.frexp(self.radius)[1]
        if abs(exponent) <= 20:
            return 1.0
        return 2.0**-exponent if abs(exponent) <= 100 else 2.0 ** max(min(-exponent - 400, 1000), -1000)

    def _surely_holds_few(self, offset: Array) -> bool:
        """Whether these are a few points, all inside with room to spare: seen without arrays of their lengths."""
        if not (type(offset) is np.ndarray and offset.ndim == 2 and 0 < len(offset) <= FEW and self._unit == 1.0):
            return False
        reach = self.radius * self.radius * (1 - ROUNDING)
        together = np.vdot(offset, offset)  # at least each of them; of squares that overflow `vecdot` would warn
        return bool(together < reach or (together < math.inf and max(np.vecdot(offset, offset).tolist()) < reach))

    def _shrink(self, offset: Array) -> Array:
        # Inside the ball the factor is reach / reach, exactly 1: the point comes back bit for bit.
        reach = self.radius * self._unit
        if type(offset) is np.ndarray and offset.ndim == 1 and offset.dtype == np.float64 and reach == self.radius:
            # One point: the same arithmetic on one number. `dot` warns of squares that overflow, `vdot` does not.
            away = math.sqrt(np.vdot(offset, offset))
            if away <= reach:
                return offset.copy()
            if away < math.inf:
                return offset * (reach / away)
        if self._surely_holds_few(offset):
            return offset.copy()
        with np.errstate(over="ignore"):  # such points are worked out once more
            return self._shrink_all(offset, reach)

    def _shrink_all(self, offset: Array, reach: float) -> Array:
        near = norm(offset if self._unit == 1.0 else offset * self._unit)
        if not isinstance(offset, np.ndarray):
            xp = namespace(offset)
            shrunk = offset * column(reach / xp.maximum(near, reach))
            return xp.where(column(near < math.inf), shrunk, self._compiled_from_afar(offset))
        farthest = near if near.ndim == 0 else np.maximum.reduce(near, axis=None, initial=0.0)
        if farthest <= reach:
            return offset.copy()
        shrunk = scaled(reach / at_least(near, reach), offset)
        if farthest < np.inf:
            return shrunk
        return np.where(column(np.isfinite(near)), shrunk, self._from_afar(offset))

    def _compiled_from_afar(self, offset: Array) -> Array:
        """`_from_afar` where it is worked out for every point: with one reduction, which goes along with `near`.

        At usual radii the square of a distance overflows from 2^512 (float32: 2^64) on; a constant brings all those to
        where it does not.
        """
        if self._unit != 1.0:
            return self._from_afar(offset)
        least = 2.0**-9 if "32" in str(offset.dtype) else 2.0**-49
        small = offset * (least * 2.0 ** (-63 if least > 2.0**-40 else -511))
        return small * column(self.radius / namespace(offset).maximum(norm(small), least))

    def _from_afar(self, offset: Array) -> Array:
        """The projection of points so far away that the square of their distance overflows."""
        xp = namespace(offset)
        largest = xp.max(xp.abs(offset), axis=-1, keepdims=True)
        unit = offset / xp.where(largest > 0, largest, 1.0)
        return unit * column(self.radius / xp.maximum(norm(unit), 1.0))

    def extreme_point(self, direction: Array) -> Array:
        size = column(length(direction))
        unit = direction / namespace(direction).where(size > 0, size, 1.0)
        return like(self.centre, direction) + self.radius * unit

    def largest_norm(self, order: int) -> float:
        # max ‖x‖₁ = max over signs s of ⟨s, centre⟩ + radius ‖s‖₂, and ‖s‖₂ = √d.
        reach = self.radius * (np.sqrt(self.dimension) if order == 1 else 1.0)
        return float((0.0 if self._about_origin else np.linalg.norm(self.centre, order)) + reach)
