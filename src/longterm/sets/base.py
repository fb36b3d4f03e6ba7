"""What an enclosing set B must be able to do.

B is the simple set that the learner projects onto in every round; the constraint set
X = {g ≤ 0} lies inside it and is never projected onto. Everything the theory asks of B is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from longterm._arrays import Array, FloatArray, dot, length
from longterm._display import Shown

SAME = 1e-9
"""Sets that differ by this share of their size are one."""
AXES_TRIED = 256
"""Up to this dimension every axis is looked along."""


class Set(Shown, ABC):
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
        return length(x - self.project(x)) <= tolerance * self.diameter

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
