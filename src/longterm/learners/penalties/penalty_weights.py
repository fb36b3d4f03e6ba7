"""Weights of the prox-penalty step as a slot: w_t, with a queue where a rule has one (`RECOO`, `COLDQ`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like
from longterm._base.per_learner import PerLearner
from longterm._base.validate import Hyper
from longterm.problems.constants import Constants
from longterm.theory.assumptions import Assumption
from longterm.theory.step_sums import power_sum


class PenaltyWeights(PerLearner, ABC):
    """The weights w_t of the penalty, with a queue where the rule has one."""

    @abstractmethod
    def weight(self, t: Array, queue: Array) -> Array:
        """Return w_t, given Q_t."""

    def before_step(self, t: Array, queue: Array, constraint: Array) -> Array:
        """Return Q_t from the queue of the state, given g_t(x_t)."""
        return queue

    def after_step(self, t: Array, queue: Array, constraint: Array) -> Array:
        """Return the queue of the next state, given g_t(x_{t+1})."""
        return queue

    @abstractmethod
    def lower_bound(self) -> tuple[Hyper, Hyper]:
        """Return (w, e) with w_t ≥ w t^e in every round."""

    def assumptions(self, power: Hyper) -> tuple[Assumption, ...]:
        """Return the conditions under which α_t/w_t does not increase, checked."""
        return ()

    def residual(self, c: Constants, T: FloatArray, alpha: Hyper, power: Hyper, regret: FloatArray) -> FloatArray:
        """Return H_T, a bound on Σ_{t≤T} [g_t(x_{t+1})]₊, given P_T."""
        weight, exponent = (np.asarray(part) for part in self.lower_bound())
        first, decay = np.asarray(alpha), np.asarray(power)
        losses = c.loss_range * power_sum(T, exponent)
        losses = losses + c.loss_gradient_bound**2 / (4 * first) * power_sum(T, exponent + decay)
        return np.asarray((losses + first * c.radius**2) / weight)


@dataclass(frozen=True, eq=False)
class GrowingWeights(PenaltyWeights):
    """Weights w_t = w_0 t^{1+growth}, without a queue. Both numbers are above 0."""

    w_0: Hyper
    growth: Hyper = 0.5

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "w_0", "growth")

    def weight(self, t: Array, queue: Array) -> Array:
        return like(self.w_0, t) * t ** (1 + like(self.growth, t))

    def lower_bound(self) -> tuple[Hyper, Hyper]:
        return self.w_0, 1 + self.growth

    def assumptions(self, power: Hyper) -> tuple[Assumption, ...]:
        statement, remedy = "α_t/w_t does not increase (power ≤ 1 + growth)", "Raise growth, or lower power"
        return (Assumption.worst(statement, power, 1 + np.asarray(self.growth), remedy),)
