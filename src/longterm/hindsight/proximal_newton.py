"""A proximal Newton method for smooth convex functions over an elastic-net ball or slab.

    s_k     ≈ argmin_{s ∈ X} ⟨∇F(x_k), s − x_k⟩ + ½ ⟨s − x_k, H_k (s − x_k)⟩        H_k ≈ ∇²F(x_k)
    x_{k+1} = x_k + α_k (s_k − x_k),     α_k = 1, ½, ¼, … until F decreases enough

FISTA (Beck, Teboulle 2009) with restarts (O'Donoghue, Candès 2015) minimises the model, up to 1/100 of the Frank–Wolfe
gap of x_k. H_k may come from a sample of the rows, which gives fast linear convergence. If a step does not reduce the
gap to a quarter, the sample grows. The method stops when the Frank–Wolfe gap, a certificate, is small enough. If it
runs out of steps, it raises an error, unless the gap is small relative to the loss at 0.

**Elastic-net ball** E = {l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ ρ}: `project_onto_elastic_net` and the gap of `certificates`.

**Slab** E ∩ {|⟨v, x⟩| ≤ c}. Projection and gap have a scalar multiplier τ of the plane. With s the side on which the
solution for E alone leaves the slab,

    nearest point to w:   Π_E(w − s τ v)                 τ = 0 if that is in the slab, otherwise s⟨v, ·⟩ = c there
    max of ⟨q, ·⟩:        ≤ max_E ⟨q − s τ v, ·⟩ + τ c    for every τ ≥ 0, with equality if the maximiser is in the slab
                                                        at τ = 0 or has s⟨v, ·⟩ = c

s⟨v, ·⟩ decreases in τ, so regula falsi finds τ. The projection is taken from the inner side of the plane, and the bound
holds for every τ, so rounding cannot make it false.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.errors import LongtermError
from longterm.hindsight.gaps import elastic_net_gap, support_multiplier, support_of_elastic_net
from longterm.problems.constraints import ElasticNetBudget
from longterm.problems.projections.elastic_net import project_onto_elastic_net

MAX_STEPS = 200
MAX_MODEL_STEPS = 5000
MODEL_ACCURACY = 0.01
SLOW = 0.25
"""A step that leaves a larger share of the gap requires a better H."""
NEGLIGIBLE = 1e-3
"""Out of steps, the gap is compared with at least this share of the loss at 0."""
SUFFICIENT_DECREASE = 1e-3
"""The share of the first-order decrease that a step must achieve."""
MAX_PROBES = 200
"""The maximum number of multipliers tried for the slab."""
ON_PLANE = 1e-12
"""A point within this share of the slab's width of a plane counts as on it."""


class Evaluation(NamedTuple):
    """F and ∇F of several functions, each at its own point."""

    value: FloatArray
    gradient: FloatArray


class Functions(Protocol):
    """k smooth convex functions, evaluated together."""

    def evaluate(self, which: NDArray[np.intp], x: FloatArray) -> Evaluation:
        """Return values and gradients of these functions, each at its own row of x."""

    def curvature(self, which: int, x: FloatArray, level: int) -> FloatArray:
        """Return H ≈ ∇²F of one function at one point. Higher levels are more exact."""


@dataclass(frozen=True)
class Minimum:
    """Points (k, d), their values and certified gaps (k,), and the number of steps."""

    x: FloatArray
    value: FloatArray
    gap: FloatArray
    steps: int


def minimise(functions: Functions, region: ElasticNetBall, start: FloatArray, relative_gap: float) -> Minimum:
    """Minimise k functions over the region, each from its own row of `start`, until gap ≤ relative_gap · |value|.

    Out of steps, |value| is replaced by at least NEGLIGIBLE times the value at the origin. Separable rows have a least
    loss near 0, relative to which rounding keeps the gap large.
    """
    x = region.project(start)
    value, gradient = functions.evaluate(np.arange(len(x)), x)
    gap = region.gap(x, gradient)
    level, length, target = 0, np.ones(len(x)), x.copy()
    for steps in range(MAX_STEPS):
        unfinished = ~(gap <= relative_gap * np.abs(value))  # NaN counts as unfinished
        (todo,) = np.nonzero(unfinished)
        if not len(todo):
            return Minimum(x, value, gap, steps)
        (fresh,) = np.nonzero(unfinished & (length == 1))  # the others are still in a line search
        if len(fresh):
            H = np.stack([functions.curvature(int(j), x[j], level) for j in fresh])
            target[fresh] = _model_minimum(region, x[fresh], gradient[fresh], H, gap[fresh])
        trial = x[todo] + length[todo, None] * (target[todo] - x[todo])
        there = functions.evaluate(todo, trial)
        decrease = SUFFICIENT_DECREASE * np.vecdot(gradient[todo], trial - x[todo])
        accepted = there.value <= value[todo] + decrease + 1e-14 * np.abs(value[todo])
        better, points = todo[accepted], trial[accepted]
        before = gap.copy()
        x[better], value[better], gradient[better] = points, there.value[accepted], there.gradient[accepted]
        gap[better] = region.gap(points, gradient[better])
        length[todo] = np.where(accepted, 1.0, length[todo] / 2)
        level += bool(np.any(gap[todo] > SLOW * before[todo]))
    origin = functions.evaluate(np.arange(len(x)), region.project(np.zeros_like(x)))
    worst = float((gap / np.maximum(np.abs(value), NEGLIGIBLE * np.abs(origin.value))).max())
    if worst <= relative_gap:
        return Minimum(x, value, gap, MAX_STEPS)
    raise LongtermError(
        f"the certified gap is still {worst:.3g} of the loss after {MAX_STEPS} Newton steps. "
        "Scale the columns of the data to similar sizes, or make the budget smaller"
    )


def _model_minimum(
    region: ElasticNetBall, x: FloatArray, gradient: FloatArray, H: FloatArray, gap: FloatArray
) -> FloatArray:
    """Minimise ⟨gradient, s − x⟩ + ½ ⟨s − x, H (s − x)⟩ over the region, each row to MODEL_ACCURACY of its gap."""

    def slope(at: FloatArray) -> FloatArray:
        return np.asarray(gradient + (H @ (at - x)[..., None])[..., 0])

    # With almost no curvature, a step of a million radii suffices.
    flat = np.linalg.norm(gradient, axis=1) / (1e6 * region.radius)
    rate = 1 / np.maximum(np.linalg.eigvalsh(H)[:, -1], flat)[:, None]
    s = ahead = x
    momentum = np.ones((len(x), 1))
    for step in range(1, MAX_MODEL_STEPS + 1):
        moved = region.project(ahead - rate * slope(ahead))
        uphill = np.vecdot(ahead - moved, moved - s)[:, None] > 0
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + np.where(uphill, 0.0, (momentum - 1) / grown) * (moved - s)
        s, momentum = moved, np.where(uphill, 1.0, grown)
        if step % 10 == 0 and np.all(region.gap(s, slope(s)) <= MODEL_ACCURACY * gap):
            break
    return s


@dataclass(frozen=True, eq=False)
class ElasticNetBall:
    """The set {g ≤ 0} of an elastic-net budget."""

    budget: ElasticNetBudget

    @property
    def radius(self) -> float:
        """The largest norm in the set."""
        return self.budget.enclosing_ball().radius

    def project(self, x: FloatArray) -> FloatArray:
        """Return the nearest points, (k, d)."""
        return np.asarray(project_onto_elastic_net(x, self.budget.budget, self.budget.l1, self.budget.l2))

    def gap(self, x: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the Frank–Wolfe gap, a bound on max ⟨gradient, x − s⟩ over s in the set, (k,)."""
        return np.asarray(elastic_net_gap(x, gradient, self.budget.budget, self.budget.l1, self.budget.l2))


@dataclass(frozen=True, eq=False)
class ElasticNetSlab(ElasticNetBall):
    """The part of the ball between the planes ⟨normal, x⟩ = ±limit, for l2 > 0."""

    normal: FloatArray
    limit: float

    def project(self, x: FloatArray) -> FloatArray:
        """Return the nearest points, (k, d)."""
        ball = ElasticNetBall(self.budget)
        return self._solve(lambda tau: ball.project(x - tau[:, None] * self.normal), len(x))[1]

    def gap(self, x: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the Frank–Wolfe gap with the best multiplier, (k,)."""

        def shift(tau: FloatArray) -> FloatArray:
            return -gradient - tau[:, None] * self.normal

        tau, _ = self._solve(lambda tau: self._extreme_point(shift(tau)), len(x))
        g = self.budget
        support = support_of_elastic_net(shift(tau), g.budget, g.l1, g.l2) + np.abs(tau) * self.limit
        return np.asarray(np.maximum(np.vecdot(gradient, x) + support, 0.0))

    def _extreme_point(self, direction: FloatArray) -> FloatArray:
        """Return the maximiser of ⟨direction, ·⟩ on the ball: soft(direction, l1 ν)/(l2 ν)."""
        g, size = self.budget, np.abs(direction)
        nu = support_multiplier(size, g.budget, g.l1, g.l2)[:, None]
        above = np.sign(direction) * np.maximum(size - g.l1 * nu, 0.0)
        return np.asarray(above / (g.l2 * np.where(nu > 0, nu, 1.0)))

    def _solve(self, point_of: Callable[[FloatArray], FloatArray], count: int) -> tuple[FloatArray, FloatArray]:
        """Return the smallest signed multipliers whose points are in the slab, and these points."""
        points = point_of(np.zeros(count))
        side, excess = np.sign(points @ self.normal), np.abs(points @ self.normal) - self.limit
        outside = excess > 0
        if not np.any(outside):
            return np.zeros(count), points

        def probe(tau: FloatArray) -> tuple[FloatArray, FloatArray]:
            there = point_of(side * tau)
            return there, side * (there @ self.normal) - self.limit

        low, above = np.zeros(count), excess
        high = np.where(outside, excess / max(float(self.normal @ self.normal), 1e-300), 0.0)
        points, slack = probe(high)
        while np.any(short := outside & (slack > 0)):
            low, above, high = np.where(short, high, low), np.where(short, slack, above), np.where(short, 2, 1) * high
            points, slack = probe(high)
        below, last = slack, np.zeros(count)
        for _ in range(MAX_PROBES):
            todo = outside & (slack < -ON_PLANE * self.limit) & (high - low > ON_PLANE * high)
            if not np.any(todo):
                break
            # Regula falsi with the Illinois rule: the value at an end that stays is halved.
            middle = np.where(todo, (high * above - low * below) / np.where(todo, above - below, 1.0), high)
            there, value = probe(middle)
            inner, outer = todo & (value <= 0), todo & (value > 0)
            points = np.where(inner[:, None], there, points)
            low, high, slack = (
                np.where(outer, middle, low),
                np.where(inner, middle, high),
                np.where(inner, value, slack),
            )
            above = np.where(outer, value, np.where(inner & (last > 0), above / 2, above))
            below = np.where(inner, value, np.where(outer & (last < 0), below / 2, below))
            last = np.where(inner, 1.0, -1.0)
        return side * high, points
