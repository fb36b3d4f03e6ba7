"""The base class of enclosing sets B.

A learner projects onto B in every round. The constraint set X = {g ≤ 0} ∩ B is never projected onto.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from longterm._base.arrays import Array, FloatArray, dot, safe_norm
from longterm._base.display import ReprMixin

EQUAL_TOLERANCE = 1e-9
"""Sets whose supports differ by at most this share of their diameter count as equal."""
MAX_AXES = 256
"""Up to this dimension sets are compared along every axis."""


class Set(ReprMixin, ABC):
    """Describe where decisions may lie, and project onto it: the base class of all sets.

    A set is closed, convex and bounded. Its methods are batched over leading axes.
    """

    dimension: int
    """d, the length of the vectors."""
    centre: FloatArray
    """The learners' first point x_1, shape (d,)."""
    radius: float
    """max ‖x − centre‖ over the set, the bound of ‖x_1 − x*‖ in the theorems."""
    diameter: float
    """Δ = max ‖x − y‖ over the set."""

    @abstractmethod
    def project(self, x: Array) -> Array:
        """Return the Euclidean projection of x, shape (..., d)."""

    @abstractmethod
    def extreme_point(self, direction: Array) -> Array:
        """Return a maximiser of ⟨direction, x⟩ over the set, shape (..., d)."""

    @abstractmethod
    def largest_norm(self, order: int) -> float:
        """Return the exact maximum of ‖x‖₁ (order 1) or ‖x‖₂ (order 2) over the set."""

    def tangent(self, direction: Array) -> Array:
        """Return the part of a direction that is parallel to the set: all of it unless the set lies in a hyperplane."""
        return direction

    def half_spaces(self) -> tuple[FloatArray, FloatArray] | None:
        """Return (A, b) with the set = {A x ≤ b}, or None if the set is not a polyhedron."""
        return None

    def support(self, direction: Array) -> Array:
        """Return the maximum of ⟨direction, x⟩ over the set, shape (...,)."""
        return dot(direction, self.extreme_point(direction))

    def contains(self, x: Array, tolerance: float = 1e-9) -> Array:
        """Return True where x is in the set up to `tolerance` times the diameter, shape (...,)."""
        return safe_norm(x - self.project(x)) <= tolerance * self.diameter

    def same_as(self, other: Set) -> bool:
        """Return True if both sets have the same support function along the axes and in 32 fixed random directions.

        Convex sets are equal if and only if their support functions are equal in all directions.
        """
        if self is other:
            return True
        if self.dimension != other.dimension or abs(self.diameter - other.diameter) > EQUAL_TOLERANCE * self.diameter:
            return False
        directions = np.random.default_rng(0).standard_normal((32, self.dimension))
        if self.dimension <= MAX_AXES:
            directions = np.concatenate([directions, np.eye(self.dimension), -np.eye(self.dimension)])
        directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
        one, two = np.asarray(self.support(directions)), np.asarray(other.support(directions))
        return bool(np.all(np.abs(one - two) <= EQUAL_TOLERANCE * (self.diameter + np.abs(one))))

    def sample(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return `count` points of the set: extreme points, convex combinations of them, and the centre.

        Half of the points are extreme points, because gradients and values are largest there. Their directions are
        random, along the axes, or towards the corners of a box.
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
