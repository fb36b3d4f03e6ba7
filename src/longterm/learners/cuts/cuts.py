"""Cuts: projections onto the half-space that linearised constraints leave.

With ĝ_j(z) = g_j(x) + ⟨∇g_j(x), z − x⟩ and v = [ĝ(y)]₊, a point y is cut by the half-space {z : ⟨v, ĝ(z)⟩ ≤ 0}. It
contains every x* with g(x*) ≤ 0, because a linearisation lies below g and v ≥ 0. Points and x* lie in the hyperplanes
that hold B, so only the part u of Σ_j v_j ∇g_j that is parallel to B matters (`Set.tangent`). The distance of y from
the half-space is d = ‖v‖²/‖u‖ ≥ ‖v‖/L, and the squared distance of y to x* falls by at least d². Points are
(K, ..., d), with the experts first, so that a constraint's maps broadcast over them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from longterm._base.arrays import (
    ROUNDING,
    Array,
    FloatArray,
    all_below_if_concrete,
    any_true,
    as_column,
    as_float,
    dot,
    dots,
    least_divisor,
    namespace,
    repeat_while,
    where_rows,
)
from longterm._base.selection import clamp_to_divisor
from longterm.problems.constraints import Constraint
from longterm.problems.sets import Set

PARALLEL_SQUARE = 1e-9
"""Two normals are parallel if the squared sine of their angle is at most this."""
NORMAL_TO_B = 1e-9
"""A gradient is orthogonal to B if at most this share of its length is parallel to B."""


class Cut(NamedTuple):
    """The half-space {z : ⟨normal, z − y⟩ ≤ −excess} of each point y."""

    excess: Array
    """Shape (K, ...), at least 0."""
    normal: Array
    """Shape (K, ..., d), or (..., d) where all points have the same."""
    square: Array
    """‖normal‖², positive."""

    def distance(self) -> Array:
        """Return the distance of each point from its half-space, shape (K, ...)."""
        return self.excess / namespace(self.normal).sqrt(self.square)

    def project(self, y: Array) -> Array:
        """Project each point onto its half-space."""
        return y - as_column(self.excess / self.square) * self.normal

    def project_after(self, last: Cut, outside: Array, y: Array, least: float) -> Array:
        """Project each point y = Π_B(outside) onto its half-space and the boundary that it was put on, together.

        That boundary has the normal b. It is outside − y, a normal of B, where the projection onto B moved the point by
        more than `least`, and elsewhere the normal of the cut before, `last`. Where b does not point against the cut,
        or the cut before did not move the point, this half-space alone decides. Elsewhere the point moves along the
        part of the normal that is orthogonal to b.
        """
        xp, gap = namespace(y), outside - y
        moved = dot(gap, gap)
        is_outside = moved > least**2
        b = xp.where(as_column(is_outside), gap, last.normal)
        product = dot(self.normal, b)
        share = xp.minimum(product, 0.0) / clamp_to_divisor(xp.where(is_outside, moved, last.square))
        square = self.square - share * product
        together = (square > PARALLEL_SQUARE * self.square) & (is_outside | (last.excess > 0))
        share = share * xp.astype(together, y.dtype)
        length = self.excess / xp.where(together, square, self.square)
        return y - as_column(length) * (self.normal - as_column(share) * b)


Cutter = Callable[[Array], Cut]
"""From points (K, ..., d) to their cuts."""


def parallel_part(gradient: Array, over: Set) -> tuple[Array, Array, Array | float]:
    """Return the part u of a gradient that is parallel to B = `over`, ‖u‖², and 1, or 0 where u is rounding only.

    Where the gradient is orthogonal to B, as that of Σ_i x_i on a simplex, the constraint has one value on all of B.
    Points of B are then not moved: the direction of u is arbitrary.
    """
    u = over.tangent(gradient)
    square = dots(u, u)
    if u is gradient:
        return u, square, 1.0
    return u, square, as_float(square > NORMAL_TO_B**2 * dots(gradient, gradient), gradient)


def cut_by_one(x: Array, value: Array, gradient: Array, over: Set) -> Cutter:
    """Return the cuts by one constraint linearised at x, for points of B = `over`."""
    normal, square, moves = parallel_part(gradient, over)
    offset, square = value - dots(normal, x), clamp_to_divisor(square)

    def cut(y: Array) -> Cut:
        return Cut(moves * namespace(x).maximum(offset + dots(y, normal), 0.0), normal, square)

    return cut


def cut_jointly(
    x: Array, values: Array, pullback: Callable[[Array], Array], pushforward: Callable[[Array], Array], over: Set
) -> Cutter:
    """Return the cuts by several constraints linearised at x, weighed by v, for points of B = `over`."""
    xp, least = namespace(x), least_divisor(x)

    def cut(y: Array) -> Cut:
        broken = xp.maximum(values + pushforward(y - x), 0.0)
        normal, square, moves = parallel_part(pullback(broken), over)
        return Cut(moves * dot(broken, broken), normal, xp.maximum(square, least))

    return cut


def cut_by_affine(constraint: Constraint, x: Array, over: Set) -> Cutter:
    """Return the cuts by affine constraints, evaluated at the points themselves, for points of B = `over`."""
    xp, least, squared_excess = namespace(x), least_divisor(x), constraint.squared_excess_nearby(x)

    def cut(y: Array) -> Cut:
        excess, gradient = squared_excess(y)
        normal, square, moves = parallel_part(gradient, over)
        return Cut(moves * excess, normal, xp.maximum(square, least))

    return cut


def cut_point(constraint: Constraint, over: Set, x: FloatArray, most: int) -> FloatArray:
    """Cut one point by a fixed g, linearised where the point is, until it satisfies g; at most `most` times."""
    for _ in range(most):
        excess, gradient = constraint.squared_excess(x)
        normal, square, moves = parallel_part(gradient, over)
        square = max(float(square), np.finfo(np.float64).tiny)
        if not moves or excess**2 <= square * (ROUNDING * over.diameter) ** 2:
            break
        x = over.project(x - excess / square * normal)
    return x


def cut_times(y: Array, cutter: Cutter, over: Set, most: int) -> Array:
    """Cut the points `most` times, each time followed by the projection onto B."""
    for i in range(most):
        cut = cutter(y)
        if i > 0 and all_below_if_concrete(cut.distance(), ROUNDING * over.diameter):
            break  # this cut would move nothing, and so would those after it
        y = over.project(cut.project(y))
    return y


def cut_until(
    y: Array,
    first: Cutter,
    cutter_at: Callable[[Array], Cutter],
    distance: Callable[[Array], Array],
    tolerance: Array,
    over: Set,
    most: int,
) -> tuple[Array, Array, Array]:
    """Cut the points until a mean distance is at most `tolerance`, at most `most` times.

    Parameters
    ----------
    y : Array
        The points, shape (K, ..., d).
    first : Cutter
        The first cut.
    cutter_at : callable
        From the points to the cutter of each further cut.
    distance : callable
        From the distances (K, ...) of the points from their half-spaces to their mean (...).
    tolerance : Array
        The largest mean distance that is left.
    over : Set
        B.
    most : int
        The largest number of cuts.

    Returns
    -------
    points, unfinished, left : Array
        `unfinished`, shape (...), is true where more cuts were needed. `left` is the mean distance that is left.
    """
    least = ROUNDING * over.diameter

    def next_cut(y: Array) -> tuple[Cut, Array]:
        """Return the next cut, and whether it is needed."""
        cut = cutter_at(y)(y)
        return cut, distance(cut.distance()) > tolerance

    def step(loop: tuple[Any, ...]) -> tuple[Any, ...]:
        y, outside, last, cut, needed = loop
        outside = cut.project_after(last, outside, y, least)
        y = where_rows(needed, over.project(outside), y)
        return y, outside, cut, *next_cut(y)

    cut = first(y)
    outside = cut.project(y)
    inside = over.project(outside)
    start = (inside, outside, cut, *next_cut(inside))
    loop = repeat_while(lambda loop: any_true(loop[-1]), step, start, most - 1, y)
    return loop[0], loop[-1], distance(loop[3].distance())
