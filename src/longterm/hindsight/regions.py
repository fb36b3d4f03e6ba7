"""Sets that Newton's method can minimise over: cheap to project onto, with a certificate for every point.

**The elastic-net ball** E = {l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ ρ}: `project_onto_elastic_net`, and the Frank–Wolfe gap of
`certificates`.

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
from typing import Protocol

import numpy as np

from longterm._arrays import FloatArray
from longterm.constraints import ElasticNetBudget
from longterm.hindsight.certificates import elastic_net_gap, support_of_elastic_net
from longterm.projections import project_onto_elastic_net

MOST_STEPS = 200
EXACT = 1e-12
"""A point within this share of the slab's width of its plane is on it."""


class Region(Protocol):
    """A bounded convex set about 0."""

    @property
    def radius(self) -> float:
        """No point is farther from 0."""

    def project(self, x: FloatArray) -> FloatArray:
        """Nearest points, (k, d)."""

    def gap(self, x: FloatArray, gradient: FloatArray) -> FloatArray:
        """A bound on the largest ⟨gradient, x − s⟩ over s in the set, (k,)."""


@dataclass(frozen=True, eq=False)
class ElasticNetBall:
    """All that the budget allows."""

    budget: ElasticNetBudget

    @property
    def radius(self) -> float:
        """No point is farther from 0."""
        return self.budget.enclosing_ball().radius

    def project(self, x: FloatArray) -> FloatArray:
        """Nearest points."""
        return np.asarray(project_onto_elastic_net(x, self.budget.budget, self.budget.l1, self.budget.l2))

    def gap(self, x: FloatArray, gradient: FloatArray) -> FloatArray:
        """The Frank–Wolfe gap."""
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
        """Where ⟨direction, ·⟩ is largest on the ball: soft(direction, l1 ν)/(l2 ν), the ν of `certificates`."""
        g, size = self.budget, np.abs(direction)
        squares = np.cumsum(np.sort(size, axis=1)[:, ::-1] ** 2, axis=1)
        counts = np.arange(1, direction.shape[1] + 1)
        nu = np.sqrt((squares / (counts * g.l1**2 + 2 * g.budget * g.l2)).max(axis=1, keepdims=True))
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
        for _ in range(MOST_STEPS):
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
