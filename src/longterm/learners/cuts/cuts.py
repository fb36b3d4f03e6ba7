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
from longterm.problems.constraints import Constraint
from longterm.problems.sets import Set

PARALLEL_SQUARE = 1e-9
"""Two normals are parallel if the squared sine of their angle is at most this."""
NORMAL_TO_B = 1e-9
"""A gradient is orthogonal to B if at most this share of its length is parallel to B."""


class Cut(NamedTuple):
    """The half-space {z : ⟨normal, z − y⟩ ≤ −distance} of each point y."""

    distance: Array
    """Of the point from its half-space, shape (K, ...)."""
    normal: Array
    """A unit vector, shape (K, ..., d), or (..., d) where all points have the same. 0 where there is none."""

    def project(self, y: Array) -> Array:
        """Project each point onto its half-space."""
        return y - as_column(self.distance) * self.normal

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
        product = xp.minimum(dot(self.normal, b), 0.0)
        share = product / xp.where(is_outside, moved, 1.0)
        square = 1.0 - share * product
        together = (square > PARALLEL_SQUARE) & (is_outside | (last.distance > 0))
        share = xp.where(together, share, 0.0)
        length = self.distance / xp.where(together, square, 1.0)
        return y - as_column(length) * (self.normal - as_column(share) * b)


Cutter = Callable[[Array], Cut]
"""From points (K, ..., d) to their cuts."""


def cut_along(normal: Array, square: Array, excess: Array) -> Cut:
    """Return the cut by {z : ⟨normal, z − y⟩ ≤ −excess}, with square = ‖normal‖²."""
    xp = namespace(normal)
    length = xp.sqrt(xp.maximum(square, least_divisor(normal) ** 2))
    return Cut(excess / length, normal / length[..., None])


def cut_within(over: Set, gradient: Array, excess: Array) -> Cut:
    """Return the cut of points of B = `over` by {z : ⟨gradient, z − y⟩ ≤ −excess}. Its normal is parallel to B.

    Where the gradient is orthogonal to B, as that of Σ_i x_i on a simplex, the constraint has one value on all of B.
    Then points of B are not moved: normal and distance are 0.
    """
    u = over.tangent(gradient)
    square = dots(u, u)
    cut = cut_along(u, square, excess)
    if u is gradient:
        return cut
    moves = as_float(square > NORMAL_TO_B**2 * dots(gradient, gradient), gradient)
    return Cut(moves * cut.distance, as_column(moves) * cut.normal)


def cut_together(over: Set, gradient: Array, square: Array) -> Cut:
    """Return the cuts of points of B = `over` by several constraints, from Σ_j v_j ∇g_j and ‖v‖².

    The square of the first is of the order of g⁴. float64 holds it, since constants are from 1e-60 to 1e60. float32
    holds it after a division by ‖v‖.
    """
    if gradient.dtype == namespace(gradient).float64:
        return cut_within(over, gradient, square)
    length = namespace(square).sqrt(square) + least_divisor(square)
    return cut_within(over, gradient / as_column(length), square / length)


def cut_by_one(x: Array, value: Array, gradient: Array, over: Set) -> Cutter:
    """Return the cuts by one constraint linearised at x, for points of B = `over`."""
    outside, normal = cut_within(over, gradient, value)
    offset = outside - dots(normal, x)

    def cut(y: Array) -> Cut:
        return Cut(namespace(x).maximum(offset + dots(y, normal), 0.0), normal)

    return cut


def cut_jointly(
    x: Array, values: Array, pullback: Callable[[Array], Array], pushforward: Callable[[Array], Array], over: Set
) -> Cutter:
    """Return the cuts by several constraints linearised at x, weighed by v, for points of B = `over`."""
    xp = namespace(x)

    def cut(y: Array) -> Cut:
        broken = xp.maximum(values + pushforward(y - x), 0.0)
        return cut_together(over, pullback(broken), dot(broken, broken))

    return cut


def cut_by_affine(constraint: Constraint, x: Array, over: Set) -> Cutter:
    """Return the cuts by affine constraints, evaluated at the points themselves, for points of B = `over`."""
    squared_excess = constraint.squared_excess_nearby(x)

    def cut(y: Array) -> Cut:
        square, gradient = squared_excess(y)
        return cut_together(over, gradient, square)

    return cut


def cut_point(constraint: Constraint, over: Set, x: FloatArray, most: int) -> FloatArray:
    """Cut one point by a fixed g, linearised where the point is, until it satisfies g; at most `most` times."""
    for _ in range(most):
        square, gradient = constraint.squared_excess(x)
        cut = cut_together(over, gradient, square)
        if cut.distance <= ROUNDING * over.diameter:
            break
        x = over.project(cut.project(x))
    return x


def cut_times(y: Array, cutter: Cutter, over: Set, most: int) -> Array:
    """Cut the points `most` times, each time followed by the projection onto B."""
    for i in range(most):
        cut = cutter(y)
        if i > 0 and all_below_if_concrete(cut.distance, ROUNDING * over.diameter):
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
        return cut, distance(cut.distance) > tolerance

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
    return loop[0], loop[-1], distance(loop[3].distance)
