"""Smooth convex functions over a set X whose projection is cheap: a proximal Newton method, and two such sets.

    s_k     ≈ argmin_{s ∈ X} ⟨∇F(x_k), s − x_k⟩ + ½ ⟨s − x_k, H_k (s − x_k)⟩        H_k ≈ ∇²F(x_k)
    x_{k+1} = x_k + α_k (s_k − x_k),     α_k = 1, ½, ¼, … until F falls enough

The model is minimised by projected gradient steps with momentum (FISTA; Beck, Teboulle 2009), started anew where the
momentum points uphill (O'Donoghue, Candès 2015). That reads no data. It stops at 1/100 of the Frank–Wolfe gap of x_k,
which is that of the model at x_k, too. H_k need not be exact: one from a sample of the rows costs a fraction, and
leaves linear convergence with a small factor. Where a step does not bring the gap down to a quarter, the sample grows.

The method ends when the Frank–Wolfe gap, a certificate, is small enough, and in no other way: out of steps, it raises,
unless the gap is small beside the loss at 0.

**The elastic-net ball** E = {l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ ρ}: `project_onto_elastic_net`, and the Frank–Wolfe gap of
`hindsight.base`.

**Its part in a slab** {|⟨v, x⟩| ≤ c}. Both questions have a scalar multiplier τ, the push against v. With s the side
on which the answer for E alone leaves the slab,

    nearest point to w:   Π_E(w − s τ v)                  τ = 0 if that is in the slab, else s⟨v, ·⟩ = c there
    max of ⟨q, ·⟩:        max_E ⟨q − s τ v, ·⟩ + τ c       bounds it for every τ ≥ 0, and best if the maximiser
                                                         is in the slab at τ = 0, or has s⟨v, ·⟩ = c

As τ grows, s⟨v, ·⟩ falls: regula falsi finds the τ of all rows together. The projection is taken from the inner side of
the slab's plane; and the bound is true for every τ, so rounding cannot make it false.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.constraints import ElasticNetBudget
from longterm.errors import LongtermError
from longterm.hindsight.base import elastic_net_gap, multiplier, support_of_elastic_net
from longterm.projections import project_onto_elastic_net

MOST_STEPS = 200
MOST_MODEL_STEPS = 5000
MODEL_ACCURACY = 0.01
SLOW = 0.25
"""A step that leaves more of the gap than this calls for a better H."""
NEGLIGIBLE = 1e-3
"""Out of steps, this share of the loss at 0 stands for a least loss that is below it."""
SUFFICIENT = 1e-3
"""The share of the decrease predicted to first order that a step has to bring."""
MOST_PROBES = 200
"""Pushes that are tried against the slab."""
EXACT = 1e-12
"""A point within this share of the slab's width of its plane is on it."""


class Evaluation(NamedTuple):
    """F and ∇F of several functions, each at its own point."""

    value: FloatArray
    gradient: FloatArray


class Functions(Protocol):
    """k smooth convex functions, evaluated together."""

    def evaluate(self, which: NDArray[np.intp], x: FloatArray) -> Evaluation:
        """Values and gradients of these functions, each at its own row of x."""

    def curvature(self, which: int, x: FloatArray, level: int) -> FloatArray:
        """H ≈ ∇²F of one function at one point; better at a higher level, and exact from some level on."""


@dataclass(frozen=True)
class Minimum:
    """Points (k, d), their values and certified gaps (k,), and how many steps it took."""

    x: FloatArray
    value: FloatArray
    gap: FloatArray
    steps: int


def minimise(functions: Functions, region: ElasticNetBall, start: FloatArray, relative_gap: float) -> Minimum:
    """Minimise k functions over the region, each from its own row of `start`, until gap ≤ relative_gap · |value|.

    Out of steps, NEGLIGIBLE of the value at the origin may stand for |value|: rows that can be told apart have a least
    loss near 0, and rounding keeps a gap from being small beside that.
    """
    x = region.project(start)
    value, gradient = functions.evaluate(np.arange(len(x)), x)
    gap = region.gap(x, gradient)
    level, length, target = 0, np.ones(len(x)), x.copy()
    for steps in range(MOST_STEPS):
        unfinished = ~(gap <= relative_gap * np.abs(value))  # nothing that is not a number passes
        (todo,) = np.nonzero(unfinished)
        if not len(todo):
            return Minimum(x, value, gap, steps)
        (fresh,) = np.nonzero(unfinished & (length == 1))  # the others still shorten their last step
        if len(fresh):
            H = np.stack([functions.curvature(int(j), x[j], level) for j in fresh])
            target[fresh] = _model_minimum(region, x[fresh], gradient[fresh], H, gap[fresh])
        trial = x[todo] + length[todo, None] * (target[todo] - x[todo])
        there = functions.evaluate(todo, trial)
        promised = SUFFICIENT * np.vecdot(gradient[todo], trial - x[todo])
        accepted = there.value <= value[todo] + promised + 1e-14 * np.abs(value[todo])
        better, points = todo[accepted], trial[accepted]
        before = gap.copy()
        x[better], value[better], gradient[better] = points, there.value[accepted], there.gradient[accepted]
        gap[better] = region.gap(points, gradient[better])
        length[todo] = np.where(accepted, 1.0, length[todo] / 2)
        level += bool(np.any(gap[todo] > SLOW * before[todo]))
    origin = functions.evaluate(np.arange(len(x)), region.project(np.zeros_like(x)))
    worst = float((gap / np.maximum(np.abs(value), NEGLIGIBLE * np.abs(origin.value))).max())
    if worst <= relative_gap:
        return Minimum(x, value, gap, MOST_STEPS)
    raise LongtermError(
        f"the certified gap is still {worst:.3g} of the loss after {MOST_STEPS} Newton steps. "
        "Bring the columns of the data to similar sizes, or make the budget smaller"
    )


def _model_minimum(
    region: ElasticNetBall, x: FloatArray, gradient: FloatArray, H: FloatArray, gap: FloatArray
) -> FloatArray:
    """Minimise ⟨gradient, s − x⟩ + ½ ⟨s − x, H (s − x)⟩ over the region, each row to MODEL_ACCURACY of its gap."""

    def slope(at: FloatArray) -> FloatArray:
        return np.asarray(gradient + (H @ (at - x)[..., None])[..., 0])

    # Where there is next to no curvature, a step of a million radii is as good as any longer one.
    flat = np.linalg.norm(gradient, axis=1) / (1e6 * region.radius)
    rate = 1 / np.maximum(np.linalg.eigvalsh(H)[:, -1], flat)[:, None]
    s = ahead = x
    momentum = np.ones((len(x), 1))
    for step in range(1, MOST_MODEL_STEPS + 1):
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
    """All that the budget allows."""

    budget: ElasticNetBudget

    @property
    def radius(self) -> float:
        """No point is farther from 0."""
        return self.budget.enclosing_ball().radius

    def project(self, x: FloatArray) -> FloatArray:
        """Nearest points, (k, d)."""
        return np.asarray(project_onto_elastic_net(x, self.budget.budget, self.budget.l1, self.budget.l2))

    def gap(self, x: FloatArray, gradient: FloatArray) -> FloatArray:
        """The Frank–Wolfe gap: a bound on the largest ⟨gradient, x − s⟩ over s in the set, (k,)."""
        return np.asarray(elastic_net_gap(x, gradient, self.budget.budget, self.budget.l1, self.budget.l2))


@dataclass(frozen=True, eq=False)
class ElasticNetSlab(ElasticNetBall):
    """What the budget allows between the planes ⟨normal, x⟩ = ±limit; l2 > 0."""

    normal: FloatArray
    limit: float

    def project(self, x: FloatArray) -> FloatArray:
        """Nearest points."""
        ball = ElasticNetBall(self.budget)
        return self._pushed(lambda push: ball.project(x - push[:, None] * self.normal), len(x))[1]

    def gap(self, x: FloatArray, gradient: FloatArray) -> FloatArray:
        """The Frank–Wolfe gap, with the best push."""

        def shifted(push: FloatArray) -> FloatArray:
            return -gradient - push[:, None] * self.normal

        push, _ = self._pushed(lambda push: self._extreme(shifted(push)), len(x))
        g = self.budget
        highest = support_of_elastic_net(shifted(push), g.budget, g.l1, g.l2) + np.abs(push) * self.limit
        return np.asarray(np.maximum(np.vecdot(gradient, x) + highest, 0.0))

    def _extreme(self, direction: FloatArray) -> FloatArray:
        """Where ⟨direction, ·⟩ is largest on the ball: soft(direction, l1 ν)/(l2 ν), the ν of `hindsight.base`."""
        g, size = self.budget, np.abs(direction)
        nu = multiplier(size, g.budget, g.l1, g.l2)[:, None]
        above = np.sign(direction) * np.maximum(size - g.l1 * nu, 0.0)
        return np.asarray(above / (g.l2 * np.where(nu > 0, nu, 1.0)))

    def _pushed(self, answer: Callable[[FloatArray], FloatArray], count: int) -> tuple[FloatArray, FloatArray]:
        """The least push (with its sign) for which the answer is in the slab, and that answer."""
        answered = answer(np.zeros(count))
        side, excess = np.sign(answered @ self.normal), np.abs(answered @ self.normal) - self.limit
        outside = excess > 0
        if not np.any(outside):
            return np.zeros(count), answered

        def probe(push: FloatArray) -> tuple[FloatArray, FloatArray]:
            there = answer(side * push)
            return there, side * (there @ self.normal) - self.limit

        low, above = np.zeros(count), excess
        high = np.where(outside, excess / max(float(self.normal @ self.normal), 1e-300), 0.0)
        answered, slack = probe(high)
        while np.any(short := outside & (slack > 0)):
            low, above, high = np.where(short, high, low), np.where(short, slack, above), np.where(short, 2, 1) * high
            answered, slack = probe(high)
        below, last = slack, np.zeros(count)
        for _ in range(MOST_PROBES):
            todo = outside & (slack < -EXACT * self.limit) & (high - low > EXACT * high)
            if not np.any(todo):
                break
            # Regula falsi; an end that stays counts half as much the next time (the Illinois rule), so that both move.
            middle = np.where(todo, (high * above - low * below) / np.where(todo, above - below, 1.0), high)
            there, value = probe(middle)
            inner, outer = todo & (value <= 0), todo & (value > 0)
            answered = np.where(inner[:, None], there, answered)
            low, high, slack = (
                np.where(outer, middle, low),
                np.where(inner, middle, high),
                np.where(inner, value, slack),
            )
            above = np.where(outer, value, np.where(inner & (last > 0), above / 2, above))
            below = np.where(inner, value, np.where(outer & (last < 0), below / 2, below))
            last = np.where(inner, 1.0, -1.0)
        return side * high, answered
