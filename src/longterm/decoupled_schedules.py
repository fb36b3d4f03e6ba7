"""Schedules for learners that take the multiplier's part exactly: θ_t need not know about η_t.

A-OGD ties θ_t to η_t G² (condition C2) to pay for the gradient λ_t ∇g in its step. Where an argmin holds g itself
there is nothing to pay for, and any θ_0 > 0 will do (`docs/aftrl.md`):

    θ_t = θ_0 / t^β,   μ_t = 1 / (θ_t (t + 1)),   and an η_t of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from longterm import _validate as validate
from longterm._arrays import Array, like, namespace
from longterm._validate import Hyper
from longterm.schedules import Schedule, Steps


@dataclass(frozen=True, eq=False)
class DecoupledSchedule(Schedule):
    """For convex losses: η_t = step/√t.

    >>> import numpy as np
    >>> from longterm.decoupled_schedules import DecoupledSchedule
    >>> steps = DecoupledSchedule(step=1.0, theta_0=3.0, beta=0.5).at(np.asarray(4), np.zeros(1))
    >>> tuple(round(float(step), 6) for step in steps)
    (1.5, 0.5, 0.133333)
    """

    step: Hyper
    theta_0: Hyper
    beta: Hyper = 2 / 3
    gradient_bound: Hyper | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        validate.remember(
            self,
            step=validate.positive("step", self.step),
            theta_0=validate.positive("theta_0", self.theta_0),
            beta=validate.open_unit_interval("beta", self.beta),
        )

    def at(self, t: Array, x: Array) -> Steps:
        t = namespace(x).astype(t, x.dtype)
        theta = like(self.theta_0, x) / t ** like(self.beta, x)
        return Steps(theta, like(self.step, x) / t**0.5, 1 / (theta * (t + 1)))


@dataclass(frozen=True, eq=False)
class StronglyConvexDecoupledSchedule(Schedule):
    """For σ-strongly convex losses: η_t = 1/(σt)."""

    strong_convexity: Hyper
    theta_0: Hyper
    beta: Hyper = 2 / 3
    gradient_bound: Hyper | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        validate.remember(
            self,
            strong_convexity=validate.positive("strong_convexity", self.strong_convexity),
            theta_0=validate.positive("theta_0", self.theta_0),
            beta=validate.open_unit_interval("beta", self.beta),
        )

    def at(self, t: Array, x: Array) -> Steps:
        t = namespace(x).astype(t, x.dtype)
        theta = like(self.theta_0, x) / t ** like(self.beta, x)
        return Steps(theta, 1 / (like(self.strong_convexity, x) * t), 1 / (theta * (t + 1)))
