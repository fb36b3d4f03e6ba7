"""Proximal steps with a constraint itself instead of its gradient, in closed form.

For a slope z, weights Λ ≥ 0 and a curvature a > 0 the prox is

    argmin_{x ∈ B} ⟨z, x⟩ + Σ_j Λ_j g_j(x) + (a/2) ‖x‖².

With (a/2)‖x − v‖² instead of (a/2)‖x‖², replace z by z − a v.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longterm._base.arrays import Array, FloatArray, as_column, namespace, norm
from longterm.problems.sets import Box, Set

if TYPE_CHECKING:
    from longterm.problems.constraints.base import Constraint
    from longterm.problems.constraints.norm_budgets import ElasticNetBudget, L2Budget


class Prox(ABC):
    """The prox of one constraint on one set, batched over leading axes."""

    constraint: Constraint
    over: Set

    @abstractmethod
    def argmin(self, slope: Array, weights: Array, curvature: Array) -> Array:
        """Return the prox of slopes (..., d), weights (..., m) and curvatures (...,), shape (..., d)."""

    def error(self, total_weight: FloatArray, curvature: FloatArray) -> FloatArray:
        """Return a bound on the distance from the exact argmin if Σ_j Λ_j ≤ total_weight. It is 0 for closed forms."""
        return np.zeros(np.broadcast_shapes(np.shape(total_weight), np.shape(curvature)))

    def values_norm_bound(self) -> float:
        """Return an upper bound on ‖(g_1(x), …, g_m(x))‖₂ on the set."""
        return float(np.sqrt(self.constraint.count) * self.constraint.value_bound(self.over))


class PenaltyProx(Prox):
    """A prox that also covers the positive part [g]₊ of one constraint, where {g ≤ 0} lies inside the set.

    argmin_B ⟨z, x⟩ + W [g(x)]₊ + (a/2)‖x‖² is the prox of g with weight min(ν, W), where ν is the smallest weight that
    makes g ≤ 0.
    """

    @abstractmethod
    def least_weight(self, slope: Array, curvature: Array) -> Array:
        """Return the smallest ν ≥ 0 whose prox has g ≤ 0, shape (...,)."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """The largest ‖x‖ with g(x) ≤ 0. It is attained along every axis."""

    @property
    def set_holds_budget(self) -> bool:
        """True if {g ≤ 0} lies inside the set, which is a ball about 0 or a box."""
        B = self.over
        inner = min(B.upper.min(), -B.lower.max()) if isinstance(B, Box) else B.radius
        return bool(inner >= self.reach * (1 - 1e-9))


@dataclass(frozen=True, eq=False)
class AffineProx(Prox):
    """The prox of affine constraints on any set: x = Π_B( −(z + AᵀΛ)/a )."""

    constraint: Constraint
    over: Set

    def argmin(self, slope: Array, weights: Array, curvature: Array) -> Array:
        # The gradients Aᵀ do not depend on the point, so the slope serves as one.
        return self.over.project(-(slope + self.constraint.pullback(slope, weights)) / as_column(curvature))

    def values_norm_bound(self) -> float:
        affine = self.constraint.as_affine()
        if affine is None:
            return super().values_norm_bound()
        A, b = affine.matrix, affine.limit
        by_rows = np.maximum(self.over.support(A) - b, self.over.support(-A) + b)
        whole = np.linalg.norm(A, 2) * self.over.radius + np.linalg.norm(A @ self.over.centre - b)
        return float(min(np.linalg.norm(by_rows), whole))


@dataclass(frozen=True, eq=False)
class ElasticNetProx(PenaltyProx):
    """The prox of l1‖x‖₁ + ½ l2‖x‖² − ρ on a ball about 0 or a box: x = Π_B( soft(−z, Λ l1) / (a + Λ l2) ).

    >>> import numpy as np
    >>> from longterm.problems.constraints import ElasticNetBudget
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
        # Let V₁ and V₂ be the sum and the sum of squares of the n largest |z_k|. If exactly these coordinates are
        # non-zero, the ν with g = 0 solves (l2/2)κν² + aκν = C with κ = n l1² + 2ρ l2 and
        # C = a l1 V₁ + (l2/2) V₂ − ρa². A wrong n gives a smaller ν, so the maximum over n is right
        # (docs/proofs/aftrl.md).
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
    """The prox of ‖x‖₂ − ρ on a ball about 0: x = Π_B( −z [1 − Λ/‖z‖]₊ / a )."""

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
