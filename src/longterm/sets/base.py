"""What an enclosing set B must be able to do, and the Euclidean ball, the paper's.

B is the simple set that the learner projects onto in every round; the constraint set
X = {g ≤ 0} lies inside it and is never projected onto. Everything the theory asks of B is here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from longterm import _validate as validate
from longterm._arrays import (
    SHORT_ROW,
    Array,
    FloatArray,
    as_column,
    clamp_min,
    dot,
    like,
    namespace,
    norm,
    safe_norm,
    scale_rows,
)
from longterm._display import ReprMixin

SAME = 1e-9
"""Sets that differ by this share of their size are one."""
AXES_TRIED = 256
"""Up to this dimension every axis is looked along."""


class Set(ReprMixin, ABC):
    """A closed convex bounded set of vectors, batched over leading axes."""

    dimension: int
    """d, the length of the vectors."""
    centre: FloatArray
    """The point x_1 that learners start from, shape (d,)."""
    radius: float
    """max ‖x − centre‖ over the set: what bounds ‖x_1 − x*‖ in the theorems."""
    diameter: float
    """Δ = max ‖x − y‖ over the set."""

    @abstractmethod
    def project(self, x: Array) -> Array:
        """The Euclidean projection of x, shape (..., d)."""

    @abstractmethod
    def extreme_point(self, direction: Array) -> Array:
        """A maximiser of ⟨direction, x⟩ over the set, shape (..., d)."""

    @abstractmethod
    def largest_norm(self, order: int) -> float:
        """Max ‖x‖₁ (order 1) or max ‖x‖₂ (order 2) over the set, exactly."""

    def half_spaces(self) -> tuple[FloatArray, FloatArray] | None:
        """(A, b) with the set = {A x ≤ b}, where it is a polyhedron; None where it is not."""
        return None

    def support(self, direction: Array) -> Array:
        """Max ⟨direction, x⟩ over the set, shape (...,)."""
        return dot(direction, self.extreme_point(direction))

    def contains(self, x: Array, tolerance: float = 1e-9) -> Array:
        """Whether x is in the set, up to `tolerance` times the diameter; shape (...,)."""
        return safe_norm(x - self.project(x)) <= tolerance * self.diameter

    def same_as(self, other: Set) -> bool:
        """Whether the two are one set, as far as their extents along the axes and in 32 other directions tell.

        Two convex sets are equal where their support functions are; a set inside another, or sticking out of it,
        differs in some direction, and a fixed sample of directions meets it.
        """
        if self is other:
            return True
        if self.dimension != other.dimension or abs(self.diameter - other.diameter) > SAME * self.diameter:
            return False
        directions = np.random.default_rng(0).standard_normal((32, self.dimension))
        if self.dimension <= AXES_TRIED:
            directions = np.concatenate([directions, np.eye(self.dimension), -np.eye(self.dimension)])
        directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
        apart = np.abs(np.asarray(self.support(directions)) - np.asarray(other.support(directions)))
        return bool(np.all(apart <= SAME * (self.diameter + np.abs(np.asarray(self.support(directions))))))

    def sample(self, rng: np.random.Generator, count: int) -> FloatArray:
        """`count` points of the set, for probing: the centre, extreme points, and mixtures of them.

        Extreme points are where gradients and values are largest, so half the sample is there,
        in random directions, along the axes and in the corners' directions.
        """
        directions = rng.standard_normal((3, count, self.dimension))
        axes = np.arange(count) % 3 == 1
        corners = np.arange(count) % 3 == 2
        one_hot = np.eye(self.dimension)[np.arange(count) % self.dimension]
        signs = np.where(np.arange(count) // self.dimension % 2 == 0, 1.0, -1.0)[:, None]
        directions[0, axes] = (signs * one_hot)[axes]
        directions[0, corners] = np.sign(directions[0, corners])
        extremes = np.asarray(self.extreme_point(directions))
        weights = rng.dirichlet(np.ones(3), size=count)
        weights[: (count + 1) // 2] = [1.0, 0.0, 0.0]
        points = np.einsum("nk,knd->nd", weights, extremes)
        if count > 1:
            points[-1] = self.centre
        return np.asarray(self.project(points))


SQUARE_MARGIN = 1e-5
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
        validate.set_frozen(
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
        if not (type(offset) is np.ndarray and offset.ndim == 2 and 0 < len(offset) <= SHORT_ROW and self._unit == 1.0):
            return False
        reach = self.radius * self.radius * (1 - SQUARE_MARGIN)
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
            shrunk = offset * as_column(reach / xp.maximum(near, reach))
            return xp.where(as_column(near < math.inf), shrunk, self._compiled_from_afar(offset))
        farthest = near if near.ndim == 0 else np.maximum.reduce(near, axis=None, initial=0.0)
        if farthest <= reach:
            return offset.copy()
        shrunk = scale_rows(reach / clamp_min(near, reach), offset)
        if farthest < np.inf:
            return shrunk
        return np.where(as_column(np.isfinite(near)), shrunk, self._from_afar(offset))

    def _compiled_from_afar(self, offset: Array) -> Array:
        """`_from_afar` where it is worked out for every point: with one reduction, which goes along with `near`.

        At usual radii the square of a distance overflows from 2^512 (float32: 2^64) on; a constant brings all those to
        where it does not.
        """
        if self._unit != 1.0:
            return self._from_afar(offset)
        least = 2.0**-9 if "32" in str(offset.dtype) else 2.0**-49
        small = offset * (least * 2.0 ** (-63 if least > 2.0**-40 else -511))
        return small * as_column(self.radius / namespace(offset).maximum(norm(small), least))

    def _from_afar(self, offset: Array) -> Array:
        """The projection of points so far away that the square of their distance overflows."""
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
