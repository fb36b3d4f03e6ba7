r"""A price that is planned on recent requests, without a step size, a first price or a horizon.

Every `every` requests the price λ is solved for: the smallest λ ≥ 0 at which the recent requests that the primal
remembers, each routed by argmax_a r̂(a) − λ ĉ(a) with the present predictions and list prices, would have cost the
target on average.
Under a `Ceiling` of ρ per request the target is

    min(ρ + [left − reserve]₊/recovery, 2 ρ),

where `left` is the money that could be spent now and `reserve` the largest bound of the actions that the last price
uses for at least 5 % of the requests. So unspent money is used over the next `recovery` requests, but for what the
guard needs to allow those actions. Under a `Budget` the target is that of the rule.

**Target for rewards** (`least_reward` = α): λ is the *largest* price at which the average reward on the window is at
least α + Q/recovery, with the deficit Q ← [Q + α − r]₊ of rewards so far. That is the cheapest mixture of actions whose
average reward is α in the long run (MESS+ minimises V·cost + Q(α − r̂) instead).

**Guarantees.** None for the price: on i.i.d. or slowly changing contexts its error is that of the predictions and of
the window. The guard of the rule is exact on every sequence and does not depend on the price.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.money.choosing.duals import Dual, Setting, Situation

PRECISION = 0.005
"""The relative precision of the price."""
LOWEST_PRICE = 1e-15
"""Prices below this part of the largest price count as 0."""
LEAST_USE = 0.05
"""The share of the requests from which on an action's bound counts for the reserve."""
HIGHEST_TARGET = 2.0
"""The largest target, in ceilings."""


class PlanState(NamedTuple):
    """The price λ and the deficit Q of rewards, shape (1,) each."""

    price: FloatArray
    deficit: FloatArray


@dataclass(frozen=True)
class PlannedPrice(Dual):
    """Set the price at which the recent requests would have cost what they may.

    It needs one budget, announced costs and a linear primal.

    Parameters
    ----------
    every : int
        The number of requests between two plans.
    recovery : float
        The number of requests over which unspent money, or a deficit of rewards, is made up for.
    least_reward : float, optional
        α: keep the average reward at least this high, as cheaply as possible.
    """

    every: int = 16
    recovery: float = 200.0
    least_reward: float | None = None

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.count, "every")
        validate.validate_fields(self, validate.positive_scalar, "recovery")
        validate.validate_fields(self, validate.non_negative_scalar, "least_reward", optional=True)
        if self.least_reward is not None and self.least_reward > 1:
            raise InputError("least_reward", f"{self.least_reward} is not in [0, 1]", "Give a number such as 0.9")

    def fitted(self, setting: Setting) -> Self:
        if setting.resources != 1:
            raise InputError(
                "budgets",
                f"{setting.resources} budgets cannot be planned together",
                "Give one budget, or use EntropicDual",
            )
        return self

    def init(self, setting: Setting) -> Any:
        return PlanState(np.zeros(1), np.zeros(1))

    def prices(self, state: Any, setting: Setting) -> FloatArray:
        price: FloatArray = state.price
        return price

    def clipped(self, state: Any, setting: Setting) -> Any:
        return state._replace(price=np.minimum(state.price, setting.radius))

    def update(self, state: Any, gradient: FloatArray, setting: Setting) -> Any:
        return state

    def regret(self, setting: Setting, total_delay: float = 0.0) -> float:
        raise InputError(
            "dual", "is a PlannedPrice, for which no regret bound is known", "Use HedgeDual or EuclideanDual"
        )

    def reward(self, state: Any, reward: float) -> Any:
        if self.least_reward is None:
            return state
        return state._replace(deficit=np.maximum(state.deficit + self.least_reward - reward, 0.0))

    def require_sound(self, state: Any) -> None:
        if state.deficit[0] < 0:
            raise ValueError("a deficit is negative")

    def plans_in(self, round: int) -> bool:
        # The first requests are planned one by one, because the window is nearly empty.
        return round < self.every or round % self.every == 0

    def plan(self, state: Any, situation: Situation, setting: Setting) -> Any:
        prediction = situation.recent()
        rewards, costs = prediction.rewards.T, prediction.costs[:, :, 0].T
        if not situation.in_use.all():
            rewards = np.where(situation.in_use[:, None], rewards, -np.inf)
        if self.least_reward is None:
            target = self._target(float(state.price[0]), rewards, costs, situation)
            price = _boundary(lambda payoff: _chosen(costs, payoff) <= target, rewards, costs, state.price, setting)[1]
        else:
            goal = min(self.least_reward + float(state.deficit[0]) / self.recovery, 1.0)
            price = _boundary(lambda payoff: _chosen(rewards, payoff) < goal, rewards, costs, state.price, setting)[0]
        return state._replace(price=np.array([price]))

    def _target(self, price: float, rewards: FloatArray, costs: FloatArray, situation: Situation) -> float:
        """Return the average cost to plan for."""
        rate, left = float(situation.target[0]), float(situation.left[0])
        if not situation.is_ceiling:
            return rate
        chosen = np.bincount((rewards - price * costs).argmax(axis=0), minlength=len(rewards))
        used = situation.bounds[chosen >= LEAST_USE * rewards.shape[1]]
        unused = max(left - float(used.max(initial=0.0)), 0.0)
        return min(rate + unused / self.recovery, HIGHEST_TARGET * rate)


def _chosen(outcomes: FloatArray, payoff: FloatArray) -> float:
    """Return the mean outcome (K, rows) of the actions with the best payoff."""
    return float(outcomes[payoff.argmax(axis=0), np.arange(payoff.shape[1])].mean())


def _boundary(
    is_high: Callable[[FloatArray], bool], rewards: FloatArray, costs: FloatArray, last: FloatArray, setting: Setting
) -> tuple[float, float]:
    """Return two close prices between which `is_high` of the payoffs turns true; the search begins at the last one."""

    def holds(price: float) -> bool:
        return is_high(rewards - price * costs)

    if holds(0.0):
        return 0.0, 0.0
    highest = setting.radius
    low = high = min(max(float(last[0]), LOWEST_PRICE * highest), highest)
    while high < highest and not holds(high):
        low, high = high, min(4.0 * high, highest)
    while low > LOWEST_PRICE * highest and holds(low):
        low, high = low / 4.0, low
    while high > low * (1 + PRECISION):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
