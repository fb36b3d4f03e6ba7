"""Closed forms that hold a constraint itself, not its gradient: where there is one, learners can take it exactly.

For a slope z, weights Λ ≥ 0 and a curvature a > 0,

    argmin_{x ∈ B} ⟨z, x⟩ + Σ_j Λ_j g_j(x) + (a/2) ‖x‖².

About another point v it is the same with z − a v for z: (a/2)‖x − v‖² is (a/2)‖x‖² − a⟨v, x⟩ and a constant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longterm._arrays import Array, FloatArray, as_column, namespace, norm
from longterm.sets import Box, Set

if TYPE_CHECKING:
    from longterm.constraints.base import Constraint
    from longterm.constraints.budgets import ElasticNetBudget, L2Budget


class Prox(ABC):
    """The argmin of one constraint on one set. Everything is batched over leading axes."""

    constraint: Constraint
    over: Set

    @abstractmethod
    def argmin(self, slope: Array, weights: Array, curvature: Array) -> Array:
        """The x above, from slopes (..., d), weights (..., m) and curvatures (...,)."""

    def error(self, total_weight: FloatArray, curvature: FloatArray) -> FloatArray:
        """How far `argmin` can be from the true one where Σ_j Λ_j is at most `total_weight`: 0 for a closed form."""
        return np.zeros(np.broadcast_shapes(np.shape(total_weight), np.shape(curvature)))

    def values_norm_bound(self) -> float:
        """Bounds ‖(g_1(x), …, g_m(x))‖₂ on the set: D itself where there is one constraint."""
        return float(np.sqrt(self.constraint.count) * self.constraint.value_bound(self.over))


class PenaltyProx(Prox):
    """The same for one constraint's positive part [g]₊, where {g ≤ 0} lies inside the set.

    argmin_B ⟨z, x⟩ + W [g(x)]₊ + (a/2)‖x‖² is the argmin for g with a weight ν in [0, W]: the smallest one that makes
    g ≤ 0, or W if that is smaller.
    """

    @abstractmethod
    def least_weight(self, slope: Array, curvature: Array) -> Array:
        """The smallest ν ≥ 0 whose argmin has g ≤ 0, shape (...,); 0 where no weight is needed."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """The largest ‖x‖ with g(x) ≤ 0, attained along every axis."""

    @property
    def set_holds_budget(self) -> bool:
        """Whether {g ≤ 0} lies inside the set, a ball about 0 or a box."""
        B = self.over
        inner = min(B.upper.min(), -B.lower.max()) if isinstance(B, Box) else B.radius
        return bool(inner >= self.reach * (1 - 1e-9))


@dataclass(frozen=True, eq=False)
class AffineProx(Prox):
    """Affine constraints on any set, a weight for each: x = Π_B( −(z + AᵀΛ)/a )."""

    constraint: Constraint
    over: Set

    def argmin(self, slope: Array, weights: Array, curvature: Array) -> Array:
        # The gradients Aᵀ are the same everywhere, so any point, here the slope, will do to ask for them.
        return self.over.project(-(slope + self.constraint.pullback(slope, weights)) / as_column(curvature))

    def values_norm_bound(self) -> float:
        affine = self.constraint.as_affine()
        if affine is None:
            return super().values_norm_bound()
        A, b = affine.matrix, affine.offset
        by_rows = np.maximum(self.over.support(A) - b, self.over.support(-A) + b)
        whole = np.linalg.norm(A, 2) * self.over.radius + np.linalg.norm(A @ self.over.centre - b)
        return float(min(np.linalg.norm(by_rows), whole))


@dataclass(frozen=True, eq=False)
class ElasticNetProx(PenaltyProx):
    """l1‖x‖₁ + ½ l2‖x‖² − ρ on a ball about 0 or a box: x = Π_B( soft(−z, Λ l1) / (a + Λ l2) ), zeros exact.

    >>> import numpy as np
    >>> from longterm.constraints import ElasticNetBudget
    >>> g = ElasticNetBudget(3, budget=1.0)
    >>> prox = g.prox(g.enclosing_ball())
    >>> slope, one = np.array([-3.0, 2.0, 0.5]), np.asarray(1.0)
    >>> weight = prox.least_weight(slope, one)
    >>> x = prox.argmin(slope, weight[None], one)
    >>> x.round(3), bool(np.abs(g.values(x)) < 1e-12)
    (array([ 0.6, -0.2,  0. ]), True)
    """

    constraint: ElasticNetBudget
    over: Set

    def argmin(self, slope: Array, weights: Array, curvature: Array) -> Array:
        maximum, threshold = namespace(slope).maximum, weights * self.constraint.l1
        soft = maximum(-slope - threshold, 0.0) - maximum(slope - threshold, 0.0)
        return self.over.project(soft / (as_column(curvature) + weights * self.constraint.l2))

    @property
    def reach(self) -> float:
        return self.constraint.enclosing_ball().radius

    def least_weight(self, slope: Array, curvature: Array) -> Array:
        # Let n count the largest |z_k|, V₁ and V₂ their sum and sum of squares. While just these are not 0, the ν with
        # g = 0 solves (l2/2)κν² + aκν = C, κ = n l1² + 2ρ l2, C = a l1 V₁ + (l2/2) V₂ − ρa². Each n gives a ν; too
        # many or too few coordinates give one that is too small, so the largest is right (docs/aftrl.md).
        xp = namespace(slope)
        l1, l2, budget = self.constraint.l1, self.constraint.l2, self.constraint.budget
        a = as_column(curvature)
        sizes = xp.sort(xp.abs(slope), axis=-1, descending=True)
        n = xp.astype(xp.arange(1, sizes.shape[-1] + 1), slope.dtype)
        kappa = n * l1**2 + 2 * budget * l2
        sums, squares = xp.cumulative_sum(sizes, axis=-1), xp.cumulative_sum(sizes * sizes, axis=-1)
        excess = xp.maximum(a * l1 * sums + 0.5 * l2 * squares - budget * a * a, 0.0)
        ak = a * kappa
        return xp.max(2 * excess / (ak + xp.sqrt(ak * ak + 2 * l2 * kappa * excess)), axis=-1)


@dataclass(frozen=True, eq=False)
class L2Prox(PenaltyProx):
    """‖x‖₂ − ρ on a ball about 0: −z shortened by Λ, divided by a, then Π_B."""

    constraint: L2Budget
    over: Set

    def argmin(self, slope: Array, weights: Array, curvature: Array) -> Array:
        length = as_column(norm(slope))
        xp = namespace(slope)
        share = xp.maximum(length - weights, 0.0) / xp.where(length > 0, length, 1.0)
        return self.over.project(-slope * share / as_column(curvature))

    def least_weight(self, slope: Array, curvature: Array) -> Array:
        return namespace(slope).maximum(norm(slope) - curvature * self.constraint.budget, 0.0)

    @property
    def reach(self) -> float:
        return self.constraint.budget
