"""Cuts: projections onto the half-space that linearised constraints leave.

With ĝ_j(z) = g_j(x) + ⟨∇g_j(x), z − x⟩ and v = [ĝ(y)]₊, a point y is cut by the half-space {z : ⟨v, ĝ(z)⟩ ≤ 0}. It
contains every x* with g(x*) ≤ 0, because a linearisation lies below g and v ≥ 0. The distance of y from it is
d = ‖v‖²/‖Σ_j v_j ∇g_j‖ ≥ ‖v‖/L, and the squared distance of y to x* falls by at least d². Points are (K, ..., d), with
the experts first, so that a constraint's maps broadcast over them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from longterm._arrays import Array, as_column, clamp_to_divisor, dot, dots, least_divisor, namespace
from longterm.constraints import Constraint

PARALLEL = 1e-9
"""Two normals are parallel if the squared sine of their angle is at most this."""


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

    def active_normal(self, outside: Array, y: Array, least: float) -> Array:
        """Return b such that {z : ⟨b, z − y⟩ ≤ 0} holds B or this half-space, where y = Π_B(outside) after this cut.

        It is outside − y, a normal of B, where the projection onto B moved the point by more than `least`. Elsewhere y
        lies on the boundary of this half-space, or, without an excess, b is 0.
        """
        xp, gap = namespace(y), outside - y
        normal = xp.where(as_column(self.excess > 0), self.normal, xp.zeros_like(gap))
        return xp.where(as_column(dot(gap, gap) > least**2), gap, normal)

    def project_within(self, y: Array, b: Array) -> Array:
        """Project each point onto its half-space and {z : ⟨b, z − y⟩ ≤ 0} together.

        Where b is 0 or does not point against the cut, the first half-space alone decides.
        """
        xp, b_square, product = namespace(y), dot(b, b), dot(self.normal, b)
        determinant = self.square * b_square - product**2
        both = (product < 0) & (determinant > PARALLEL * self.square * b_square)
        divisor = xp.where(both, determinant, self.square)
        along = self.excess * xp.where(both, b_square, xp.ones_like(b_square)) / divisor
        back = xp.where(both, -self.excess * product / divisor, xp.zeros_like(product))
        return y - as_column(along) * self.normal - as_column(back) * b


Cutter = Callable[[Array], Cut]
"""From points (K, ..., d) to their cuts."""


def cut_by_one(x: Array, value: Array, normal: Array) -> Cutter:
    """Return the cuts by one constraint linearised at x."""
    offset, square = value - dots(normal, x), clamp_to_divisor(dots(normal, normal))

    def cut(y: Array) -> Cut:
        return Cut(namespace(x).maximum(offset + dots(y, normal), 0.0), normal, square)

    return cut


def cut_jointly(
    x: Array, values: Array, pullback: Callable[[Array], Array], pushforward: Callable[[Array], Array]
) -> Cutter:
    """Return the cuts by several constraints linearised at x, weighed by v."""
    xp, least = namespace(x), least_divisor(x)

    def cut(y: Array) -> Cut:
        broken = xp.maximum(values + pushforward(y - x), 0.0)
        normal = pullback(broken)
        return Cut(dot(broken, broken), normal, xp.maximum(dot(normal, normal), least))

    return cut


def cut_by_affine(constraint: Constraint, x: Array) -> Cutter:
    """Return the cuts by affine constraints, evaluated at the points themselves."""
    xp, least = namespace(x), least_divisor(x)

    def cut(y: Array) -> Cut:
        excess, normal = constraint.squared_excess(y)
        return Cut(excess, normal, xp.maximum(dot(normal, normal), least))

    return cut
