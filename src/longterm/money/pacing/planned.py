"""Dual mirror descent with a plan: spend in proportion to what a request deserves, not evenly.

`DualMirrorDescent` aims at ρ = budget/T for every request. The best in hindsight keeps one price of money all day, and
spends little while requests are poor. The histogram of past prices gives the expected cost of a bid v_t/π_1,

    S_1(v) = E[c · 1(c ≤ v/π_1)].

The plan τ_t for a request is the share of the money left that it has in all that is expected from now on,

    τ_t = remaining_t · S_1(v_t) / ( (T − t + 1) m_t ),      m_t = ( T S_1(v̄) + Σ_{s≤t} S_1(v_s) ) / (T + t),
    π_{t+1} = π_t e^{η (paid_t − τ_t)}.

m_t is the mean of S_1 over the requests so far and over the history, which counts as `history_days` days (here one) of
T requests with the mean value v̄.

Needs: the horizon; past prices; the value of every request, also in `settle`. Guarantees: the cap, always. There is no
regret bound for this plan. It expects the rest of the day to be worth what the history and today were. Targets that
change with the request are not new: Jiang, Li and Zhang (arXiv 2012.06961) and Balseiro, Kumar, Mirrokni, Sivan and
Wang (arXiv 2302.02006) take them from a model or a sample of each period.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, as_float, like
from longterm._base.exact_sum import ExactSum
from longterm._base.selection import maximum
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.money.pacing.base import Outcome, Pacer
from longterm.money.pacing.mirror_descent import DualMirrorDescent, value_bid
from longterm.money.pacing.price_history import PriceHistory
from longterm.money.prices import entropic_step


class PlannedState(NamedTuple):
    """The round, the price π_t, the payments and Σ_{s<t} S_1(v_s)."""

    round: Array
    price: Array
    spent: ExactSum
    expected: Array


@dataclass(frozen=True, eq=False)
class PlannedMirrorDescent(Pacer[PlannedState]):
    """A pacer whose price of money moves by the payment beyond the plan for the request's value.

    Parameters
    ----------
    budget, step, start : float or array
        The most that may be spent, η, and π_1, the first price of money.
    horizon : int
        T, the requests of a day.
    history : PriceHistory
        Past prices, from which the plan is made.
    history_days : float or array
        The weight of the history against today, in days of T requests.

    Examples
    --------
    >>> from longterm.money.pacing.base import Outcome
    >>> from longterm.money.pacing.price_history import PriceHistory
    >>> from longterm.money.pacing.planned import PlannedMirrorDescent
    >>> history = PriceHistory([10.0, 20.0], [1, 1], mean_value=0.2)
    >>> pacer = PlannedMirrorDescent(100.0, 10, step=0.1, start=0.02, history=history)  # the mean request: bid 10
    >>> state = pacer.init()
    >>> float(pacer.act(state, 0.4)), float(pacer.act(state, 0.1))
    (20.0, 5.0)
    >>> state = pacer.settle(state, Outcome(paid=0.0, value=0.1))  # a bid of 5 was not expected to win: no surprise
    >>> float(state.price), float(state.expected)
    (0.02, 0.0)
    """

    budget: Hyper
    horizon: int
    step: Hyper
    start: Hyper
    history: PriceHistory
    history_days: Hyper = 1.0

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.dimension, "horizon")
        validate.validate_fields(self, validate.positive, "budget", "step", "start", "history_days")

    @classmethod
    def calibrated(
        cls, budget: Hyper, horizon: int, history: PriceHistory, *, trust: float = 0.3, history_days: Hyper = 1.0
    ) -> PlannedMirrorDescent:
        """Return a pacer with the first price and step of `DualMirrorDescent.calibrated`."""
        even = DualMirrorDescent.calibrated(budget, horizon, history, trust=trust)
        return cls(budget, horizon, even.step, even.start, history, history_days)

    @property
    def past_requests(self) -> Hyper:
        """The number of requests that the history counts for."""
        return self.horizon * self.history_days

    def past_payments(self, start: Array) -> Array:
        """Return the expected payments of the past requests at the first price.

        They are positive even if no past request would have been bought at that price, so that there is a plan.
        """
        mean_request = self.history.expected_payment(self.history.mean_value / start)
        return like(self.past_requests, start) * maximum(mean_request, 1e-9 * like(self.rate, start))

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> PlannedState:
        first, (price, none) = self._start(batch_shape, xp, dtype, self.start, 0.0)
        return PlannedState(first, price, self._no_spending(batch_shape, xp), none)

    def price(self, state: PlannedState) -> Array:
        return state.price

    def raw_bid(self, state: PlannedState, value: Array, left: Array) -> Array:
        return value_bid(value, state.price, left)

    def settle(self, state: PlannedState, outcome: Outcome) -> PlannedState:
        if outcome.value is None:
            what = "lacks the value of the request"
            raise InputError("outcome", what, "The plan is made from it: give value=, or use DualMirrorDescent")
        return super().settle(state, outcome)

    def update(self, state: PlannedState, outcome: Outcome) -> PlannedState:
        price, t = state.price, as_float(state.round, state.price)
        start = like(self.start, price) + 0.0 * price
        this = like(self.history.expected_payment(outcome.value / start), price)
        expected = state.expected + this
        mean = (self.past_payments(start) + expected) / (like(self.past_requests, price) + t)
        to_come = maximum(self.horizon - t + 1.0, 1.0) * mean
        remaining = like(like(self.budget, state.spent.total) - state.spent.value, price)
        move = like(self.step, price) * (like(outcome.paid, price) - remaining * this / to_come)
        return PlannedState(state.round + 1, entropic_step(price, move, start), state.spent.add(outcome.paid), expected)
