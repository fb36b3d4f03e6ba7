"""The state of the numerical search: the best feasible point, the lower bound, and the planes below F and g.

With F = Σ_{s≤t} f_s and S = tσ, every visited point x_i gives planes a_i + ⟨A_i, y⟩ ≤ F(y) and c_k + ⟨C_k, y⟩ ≤ g(y).
For weights u_i ≥ 0 with sum 1 and μ_k ≥ 0, Σ u_i (a_i + ⟨A_i, y⟩ + ½ S‖y − x_i‖²) + Σ μ_k (c_k + ⟨C_k, y⟩) is at most
F(y) on X = {g ≤ 0} ∩ B. Its minimum over B is a valid lower bound for any weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.hindsight.base import FEASIBILITY, Solution, total_loss
from longterm.hindsight.gaps import certified_gap
from longterm.problems import Problem
from longterm.problems.sets import Set
from longterm.problems.streams.base import Block

PLANES_PER_COORDINATE = 6
"""The number of planes kept for each coordinate, besides those of the latest bound."""
GAP_ROUNDING = 1e-13
"""A gap within this share of ‖∇F‖ Δ is rounding."""


@dataclass(eq=False)
class Search:
    """The best feasible point, the lower bound, and the planes."""

    problem: Problem
    block: Block
    relative_gap: float
    x: FloatArray | None = None
    value: float = np.inf
    lower: float = -np.inf
    inner: FloatArray | None = None
    """A point with g < 0, if one was found."""
    empty: bool = False
    slopes: list[FloatArray] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    points: list[FloatArray] = field(default_factory=list)
    """The slopes A_i and heights a_i of F's planes, and the points where they touch F."""
    limit_slopes: list[FloatArray] = field(default_factory=list)
    limit_heights: list[float] = field(default_factory=list)
    """The slopes C_k and heights c_k of g's planes."""
    used: tuple[FloatArray, FloatArray] = field(default_factory=lambda: (np.zeros(0), np.zeros(0)))
    """The weights u and μ of the latest bound."""

    def __post_init__(self) -> None:
        self.over: Set = self.problem.enclosing_set
        self.curvature = self.block.rounds * self.problem.loss.strong_convexity
        self.slack = FEASIBILITY * self.problem.constants.constraint_bound
        self.affine = self.problem.constraint.as_affine()
        if self.affine is not None:
            self.limit_slopes, self.limit_heights = list(self.affine.matrix), list(-self.affine.limit)

    @property
    def done(self) -> bool:
        """True if the gap is small enough, or rounding."""
        if self.x is None:
            return self.empty
        rounding = GAP_ROUNDING * self.over.diameter * max(float(np.linalg.norm(slope)) for slope in self.slopes)
        return self.value - self.lower <= max(self.relative_gap * abs(self.value), rounding)

    def solution(self) -> Solution | None:
        """Return the best point with its certified gap, or None."""
        if self.x is None:
            return None
        return Solution(self.x, self.value, max(0.0, self.value - self.lower))

    def loss(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return F and ∇F at x."""
        return total_loss(self.problem, x, self.block)

    def constraint(self, x: FloatArray) -> FloatArray:
        """Return g_1 … g_m at x."""
        return np.asarray(self.problem.constraint.values(x), dtype=np.float64)

    def visit(self, x: FloatArray) -> None:
        """Evaluate a point of B: add planes of F and g, and update the best feasible point."""
        x = np.asarray(self.over.project(np.asarray(x, dtype=np.float64)))
        value, gradient = self.loss(x)
        if not np.isfinite(value) or not np.all(np.isfinite(gradient)):
            return
        self.slopes.append(gradient)
        self.heights.append(value - float(gradient @ x))
        self.points.append(x)
        values = self.constraint(x)
        worst = float(values.max())
        if self.affine is None:
            self._add_limits(x, values)
        if worst < -self.slack and (self.inner is None or worst < float(self.constraint(self.inner).max())):
            self.inner = x
        if worst <= self.slack:
            self.offer(x, value)
        elif self.inner is not None:
            # By convexity, this combination with the interior point has g ≤ 0.
            depth = -float(self.constraint(self.inner).max())
            mixed = x + worst / (worst + depth) * (self.inner - x)
            if float(self.constraint(mixed).max()) <= self.slack:
                self.offer(mixed, self.loss(mixed)[0])

    def _add_limits(self, x: FloatArray, values: FloatArray) -> None:
        """Add the planes of the d + 1 largest constraints."""
        largest = np.argsort(-values, kind="stable")[: len(x) + 1]
        slopes = self.problem.constraint.gradient_of(np.broadcast_to(x, (len(largest), len(x))), largest)
        for j, slope in zip(largest, np.asarray(slopes, dtype=np.float64), strict=True):
            self.limit_slopes.append(slope)
            self.limit_heights.append(float(values[j] - slope @ x))

    def offer(self, x: FloatArray, value: float) -> None:
        """Update the best point with a feasible one."""
        if value < self.value:
            self.x, self.value = x, value

    def combine(self, shares: FloatArray, multipliers: FloatArray) -> None:
        """Update the lower bound with these weights u and μ of the planes."""
        u, mu = np.maximum(shares, 0.0), np.maximum(multipliers, 0.0)
        if not u.sum() > 0 or not np.all(np.isfinite(u)) or not np.all(np.isfinite(mu)):
            return
        u, points = u / u.sum(), np.array(self.points)
        level, slope = float(u @ np.array(self.heights)), u @ np.array(self.slopes)
        if len(mu):
            level, slope = level + float(mu @ np.array(self.limit_heights)), slope + mu @ np.array(self.limit_slopes)
        self.used = u, mu
        S = self.curvature
        bound = level - float(self.over.support(-slope))
        if S > 0:
            # Σ u_i S/2 ‖y − x_i‖² = S/2 ‖y‖² − S⟨Σ u_i x_i, y⟩ + S/2 Σ u_i ‖x_i‖²
            slope, level = slope - S * (u @ points), level + S / 2 * float(u @ np.vecdot(points, points))
            y = np.asarray(self.over.project(-slope / S))
            bound = max(bound, level + float(slope @ y) + S / 2 * float(y @ y))
        self.lower = max(self.lower, bound)

    def model(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the slopes and heights of F's planes, and (C, −c) of {C y ≤ −c}."""
        limits = np.array(self.limit_slopes).reshape(-1, self.over.dimension)
        return np.array(self.slopes), np.array(self.heights), limits, -np.array(self.limit_heights)

    def drop_old_planes(self) -> None:
        """Drop the oldest planes that the latest bound does not use, if there are many."""
        most = PLANES_PER_COORDINATE * (self.over.dimension + 10)
        lists: tuple[tuple[list[Any], ...], ...] = (
            (self.slopes, self.heights, self.points),
            (self.limit_slopes, self.limit_heights),
        )
        for planes, weights in zip(lists, self.used, strict=True):
            fixed = self.affine is not None and planes is lists[1]
            if len(planes[0]) <= most or fixed:
                continue
            needed = np.flatnonzero(weights > 0).tolist()
            recent = range(len(planes[0]) - most // 2, len(planes[0]))
            kept = sorted({*needed, *recent})
            for part in planes:
                part[:] = [part[k] for k in kept]

    def certify(self) -> None:
        """Update the lower bound with the certificate of the best point."""
        if self.x is None:
            return
        value, gradient = self.loss(self.x)
        self.lower = max(self.lower, value - float(certified_gap(self.problem, self.x, gradient)))
        if self.curvature > 0 and not self.done:
            self.lower = max(self.lower, _strongly_convex_bound(self, value, gradient))


def _strongly_convex_bound(search: Search, value: float, gradient: FloatArray) -> float:
    """Maximise min_B F(x) + ⟨r, y − x⟩ + ½ S‖y − x‖² + ⟨μ, g(x)⟩ over μ ≥ 0 with L-BFGS-B. Return the best value."""
    from scipy.optimize import minimize

    x, S, over = search.x, search.curvature, search.over
    assert x is not None
    values = search.constraint(x)
    largest = np.argsort(-values, kind="stable")[: 4 * len(x)]
    values = values[largest]
    slopes = np.asarray(search.problem.constraint.gradient_of(np.broadcast_to(x, (len(largest), len(x))), largest))
    size = max(float(np.linalg.norm(gradient)), 1e-300)
    best = -np.inf

    def negative(mu: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        r = gradient + size * mu @ slopes
        y = np.asarray(over.project(x - r / S)) - x
        bound = value + float(r @ y) + S / 2 * float(y @ y) + size * float(mu @ values)
        best = max(best, bound)
        return (value - bound) / size, -(slopes @ y + values)

    minimize(negative, np.zeros(len(values)), jac=True, bounds=[(0, None)] * len(values), method="L-BFGS-B")
    return best
