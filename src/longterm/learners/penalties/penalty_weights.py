"""Weights w_t of the prox-penalty step, as a slot.

`GrowingWeights` has no queue. `RectifiedQueue` and `ForgettingQueue` are the rules of two articles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, namespace
from longterm._base.per_learner import PerLearner
from longterm._base.validate import Hyper
from longterm.learners.interface.needs import Need
from longterm.problems.constants import Constants
from longterm.theory.assumptions import Assumption
from longterm.theory.step_sums import power_sum


class PenaltyWeights(PerLearner, ABC):
    """The weights w_t of the penalty, with a queue where the rule has one."""

    needs: ClassVar[frozenset[Need]] = frozenset()
    """The needs of the rule beyond those of the step."""

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


@dataclass(frozen=True, eq=False)
class RectifiedQueue(PenaltyWeights):
    """The rectified queue of RECOO (Guo, Liu, Wei, Ying, NeurIPS 2022): w_t = Q_t γ_t.

        Q_{t+1} = max( Q_t + γ_t [g_t(x_{t+1})]₊, η_{t+1} ),     Q_1 = η_1

    The queue grows by the violation of the *new* point under the *old* constraint. γ_t = gamma t^gamma_power and
    η_t = floor t^floor_power. We know the rule from a paper that restates it. **The article's γ_t and η_t are not known
    to us.** Where gamma_power is at least the power of α_t, α_t/w_t does not increase.
    """

    gamma: Hyper
    floor: Hyper
    gamma_power: Hyper = 1.0
    floor_power: Hyper = 0.5

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "gamma", "floor")
        validate.validate_fields(self, validate.non_negative, "gamma_power", "floor_power")

    def weight(self, t: Array, queue: Array) -> Array:
        return queue * self._gamma(t)

    def before_step(self, t: Array, queue: Array, constraint: Array) -> Array:
        return namespace(queue).maximum(queue, like(self.floor, t) * t ** like(self.floor_power, t))

    def after_step(self, t: Array, queue: Array, constraint: Array) -> Array:
        return queue + self._gamma(t) * namespace(queue).maximum(constraint, 0.0)

    def _gamma(self, t: Array) -> Array:
        return like(self.gamma, t) * t ** like(self.gamma_power, t)

    def lower_bound(self) -> tuple[Hyper, Hyper]:
        return self.gamma * self.floor, self.gamma_power + self.floor_power

    def assumptions(self, power: Hyper) -> tuple[Assumption, ...]:
        statement, remedy = "α_t/γ_t does not increase (power ≤ gamma_power)", "Raise gamma_power, or lower power"
        return (Assumption.worst(statement, power, self.gamma_power, remedy),)


@dataclass(frozen=True, eq=False)
class ForgettingQueue(PenaltyWeights):
    """The queue of COLDQ (Wang, Yan, Liu, AAAI 2025), which forgets and has a floor: w_t = Q_t.

        Q_t = max( (1 − 1/T) Q_{t−1} + [g_t(x_t)]₊, γ ),     Q_1 = γ = floor

    The article has γ = eT with 0 < e < D, and a queue for each constraint. Here one queue sums the largest violation.
    """

    horizon: int
    floor: Hyper

    needs = frozenset({Need.HORIZON})

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.count, "horizon")
        validate.validate_fields(self, validate.positive, "floor")

    def weight(self, t: Array, queue: Array) -> Array:
        return queue

    def before_step(self, t: Array, queue: Array, constraint: Array) -> Array:
        xp, floor = namespace(queue), like(self.floor, queue) + 0 * queue
        decayed = (1 - 1 / self.horizon) * queue + xp.maximum(constraint, 0.0)
        return xp.where(t > 1, xp.maximum(decayed, floor), floor)

    def lower_bound(self) -> tuple[Hyper, Hyper]:
        return self.floor, 0.0

    def residual(self, c: Constants, T: FloatArray, alpha: Hyper, power: Hyper, regret: FloatArray) -> FloatArray:
        """Return (P_T + F T)/γ. No condition on α_t is needed."""
        return np.asarray((regret + c.loss_range * T) / np.asarray(self.floor))
