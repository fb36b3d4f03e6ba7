"""Trackers: inner learners with a regret bound against comparators that move.

Each sees one gradient d_t a round with ‖d_t‖ ≤ G', and mixes experts that all see the same gradient. `dynamic_regret`
bounds Σ ⟨d_t, x_t − u_t⟩ for all u_1, u_2, … in B with Σ ‖u_t − u_{t−1}‖ ≤ P.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, namespace
from longterm.learners.surrogates.inner import Inner
from longterm.problems.projections.base import Projection
from longterm.problems.sets import Set


@dataclass(frozen=True, eq=False)
class Tracker(Inner):
    """An inner learner for moving comparators, made for T rounds of gradients no longer than G'.

    Its memory has shape (..., N, n): the points of N experts first, then their weights and sums.

    Parameters
    ----------
    enclosing_set : Set
        B.
    gradient_bound : float
        G', which no gradient may exceed.
    horizon : int
        T, the number of rounds it is made for.
    projection : callable, optional
        The projection onto a smaller set that the comparator lies in.
    """

    enclosing_set: Set
    gradient_bound: float
    horizon: int
    projection: Projection | None = None

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "gradient_bound")
        validate.validate_fields(self, validate.count, "horizon")

    @property
    def unit(self) -> float:
        """G'Δ, the largest difference of two points' linear losses."""
        return self.gradient_bound * self.enclosing_set.diameter

    @property
    def levels(self) -> int:
        """The number of lengths 2^k ≤ T of intervals, or blocks, of rounds."""
        return int(math.log2(self.horizon)) + 1

    def project(self, x: Array) -> Array:
        """Project onto the comparator's set, or onto B."""
        return self.enclosing_set.project(x) if self.projection is None else self.projection(x)

    def start(self, x: Array) -> Array:
        return self.project(x)

    @abstractmethod
    def dynamic_regret(self, rounds: FloatArray, path: float) -> FloatArray:
        """Return the bound after t ≤ T rounds against paths of length P."""


def copies(x: Array, count: int) -> Array:
    """Return x once for each expert, shape (..., N, d)."""
    return namespace(x).stack([x] * count, axis=-2)  # a broadcast view would make the memory's layout irregular


def mixture(weights: Array, points: Array) -> Array:
    """Return the weighted mean of points (..., N, d) under weights (..., N) that need not sum to 1.

    The mean of equal points is exactly that point. A rounding error would make one of them look better than the mean.
    """
    first, total = points[..., :1, :], namespace(weights).sum(weights, axis=-1, keepdims=True)
    return first[..., 0, :] + (weights[..., None, :] @ (points - first))[..., 0, :] / total
