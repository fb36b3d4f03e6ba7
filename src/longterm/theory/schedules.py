"""Schedules: θ_t, η_t and μ_t as functions of the round t (Table 1 of the paper, and others).

θ_t is the weight of the penalty θ_t λ²/2 in the Lagrangian, η_t the step of x and μ_t the step of λ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_float, like, namespace
from longterm._base.per_learner import PerLearner
from longterm._base.validate import Hyper
from longterm.errors import InputError, ScheduleError


class Steps(NamedTuple):
    """The three numbers of one round."""

    theta: Array
    eta: Array
    mu: Array


class Schedule(PerLearner, ABC):
    """A function t ↦ (θ_t, η_t, μ_t). Its numbers may be arrays over the leading axes, one for each learner."""

    gradient_bound: Hyper | None
    """The G that the steps were made for, or None. A longer gradient breaks C2."""

    strong_convexity: Hyper = 0.0
    """The σ that the losses must have; 0 if the steps were made for any convex losses."""

    @abstractmethod
    def at(self, t: Array, x: Array) -> Steps:
        """Return the steps of round t, an integer array, in the library and dtype of x."""


@dataclass(frozen=True, eq=False)
class ConvexSchedule(Schedule):
    """The convex column of Table 1, for any enclosing set of diameter Δ (2R on the paper's ball).

        θ_t = 3ΔG/t^β,   η_t = Δ/(2G t^β),   μ_t = 1/(θ_t (t + 1))

    >>> import numpy as np
    >>> from longterm.theory.schedules import ConvexSchedule
    >>> steps = ConvexSchedule(diameter=2.0, gradient_bound=1.0, beta=0.5).at(np.asarray(4), np.zeros(1))
    >>> tuple(round(float(step), 6) for step in steps)
    (3.0, 0.5, 0.066667)
    """

    diameter: Hyper
    gradient_bound: Hyper
    beta: Hyper = 2 / 3

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "diameter", "gradient_bound")
        validate.validate_fields(self, validate.trade_off, "beta")

    def at(self, t: Array, x: Array) -> Steps:
        t = as_float(t, x)
        decay = t ** like(self.beta, x)
        theta = like(3 * self.diameter * self.gradient_bound, x) / decay
        eta = like(self.diameter / (2 * self.gradient_bound), x) / decay
        return Steps(theta, eta, 1 / (theta * (t + 1)))


@dataclass(frozen=True, eq=False)
class StronglyConvexSchedule(Schedule):
    """The strongly convex column of Table 1: θ_t = 6G²/(σ t^β), η_t = 1/(σ t), μ_t = 1/(θ_t (t + 1))."""

    gradient_bound: Hyper
    strong_convexity: Hyper = field()
    beta: Hyper = 2 / 3

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "gradient_bound", "strong_convexity")
        validate.validate_fields(self, validate.trade_off, "beta")

    def at(self, t: Array, x: Array) -> Steps:
        t = as_float(t, x)
        theta = like(6 * self.gradient_bound**2 / self.strong_convexity, x) / t ** like(self.beta, x)
        return Steps(theta, 1 / (like(self.strong_convexity, x) * t), 1 / (theta * (t + 1)))


@dataclass(frozen=True, eq=False)
class ConstantSchedule(Schedule):
    """Constant θ, η and μ."""

    theta: Hyper
    eta: Hyper
    mu: Hyper
    gradient_bound: Hyper | None = None

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.non_negative, "theta")
        validate.validate_fields(self, validate.positive, "eta", "mu")
        validate.validate_fields(self, validate.positive, "gradient_bound", optional=True)

    def at(self, t: Array, x: Array) -> Steps:
        one = as_float(t, x) ** 0
        return Steps(like(self.theta, x) * one, like(self.eta, x) * one, like(self.mu, x) * one)


@dataclass(frozen=True, eq=False)
class CustomSchedule(Schedule):
    """Three functions of t, each from an array of rounds (as floats) to an array. `theta` may be `lambda t: 6 / t`."""

    theta: Callable[[Array], Array]
    eta: Callable[[Array], Array]
    mu: Callable[[Array], Array]
    gradient_bound: Hyper | None = None

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "gradient_bound", optional=True)
        rounds = np.unique(np.concatenate([np.arange(1, 1001), 2 ** np.arange(10, 40)]))
        with np.errstate(all="ignore"):
            steps = self.at(rounds, np.zeros(1))
        require_positive_steps(rounds, *(np.broadcast_to(step, rounds.shape) for step in steps))

    def at(self, t: Array, x: Array) -> Steps:
        xp = namespace(x)
        t = xp.astype(t, x.dtype)
        theta, eta, mu = (like(xp.asarray(step(t)), x) for step in (self.theta, self.eta, self.mu))
        return Steps(theta, eta, mu)


@dataclass(frozen=True, eq=False)
class PenaltySchedule(Schedule):
    """Steps η_t = step/t^decay for a penalty [g]₊²/(2θ_t) in place of the multiplier, θ_t = factor · curvature · η_t.

    `curvature` is the L of ‖Σ_j w_j ∇g_j(x)‖² ≤ L‖w‖², so L/θ_t is the curvature of the penalty, and 1/factor the
    share of it that a step takes. A dual step with μ_t = 1/θ_t forgets λ_t: [λ + μ(g − θλ)]₊ = [g]₊/θ.
    """

    step: Hyper
    decay: Hyper
    curvature: Hyper
    factor: Hyper = 2.0
    strong_convexity: Hyper = 0.0
    """The σ of steps 1/(σt); 0 where they are made for any convex losses."""
    gradient_bound: Hyper | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "step", "decay", "curvature", "factor")
        validate.validate_fields(self, validate.non_negative, "strong_convexity")
        if np.any(np.asarray(self.factor) <= 1):
            raise InputError("factor", f"{self.factor!r} is not above 1", "Give 2, which makes the bound smallest")

    def at(self, t: Array, x: Array) -> Steps:
        t = as_float(t, x)
        eta = like(self.step, x) / t ** like(self.decay, x)
        theta = like(self.factor, x) * like(self.curvature, x) * eta
        return Steps(theta, eta, 1 / theta)


def require_positive_steps(rounds: NDArray[np.int64], theta: FloatArray, eta: FloatArray, mu: FloatArray) -> None:
    """Raise unless η_t and μ_t are positive, θ_t is at least 0, and all are finite; rounds on the leading axis."""
    valid = {"theta": theta >= 0, "eta": eta > 0, "mu": mu > 0}
    for (name, good), values in zip(valid.items(), (theta, eta, mu), strict=True):
        good = good & np.isfinite(values)
        if not np.all(good):
            t = int(rounds[np.argmin(good.reshape(len(rounds), -1).all(axis=1))])
            what = f"is {float(values[~good].flat[0]):g}"
            raise ScheduleError(name, what, "η_t and μ_t must be positive, θ_t at least 0, all finite", round=t)
