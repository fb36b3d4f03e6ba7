"""Dual mirror descent with a plan: spend in proportion to what a request deserves, not evenly.

`DualMirrorDescent` aims at ρ = budget/T for every request. The best in hindsight does not: it keeps one price of
money all day, and spends little while requests are poor. But the value v_t of a request is known before the bid,
and the histogram of past prices says what a bid v_t/π_1 for it is expected to cost,

    S_1(v) = E[c · 1(c ≤ v/π_1)].

So the rule plans τ_t for the request at hand: of what is left, the share that this request has in all that is
expected from now on, itself included,

    τ_t = remaining_t · S_1(v_t) / ( (T − t + 1) m_t ),      m_t = ( T S_1(v̄) + Σ_{s≤t} S_1(v_s) ) / (T + t),
    π_{t+1} = π_t e^{η (paid_t − τ_t)}.

m_t is the mean of S_1 over the requests so far and over the history, which counts as `history_days` days (here one) of
T requests with the mean value v̄.

Why: let prices be those of the histogram, whatever the values do, and π_1 the right price: Σ S_1(v_t) = budget. With
the plan τ_t = S_1(v_t), E[paid_t − τ_t] = 0 at π_1 *for every request*, and not only on the average of a day: each
D_t(π) = E[v_t − π c]₊ + π τ_t has its minimum there. Poor requests in the morning do not move the price. Where π_1
or the history is wrong, the factor remaining/((T − t + 1) m_t) hands on what was not spent.
Needs: the horizon; past prices; the value of every request, also in `settle`.
Guarantees: the cap, always (`Pacer`). `regret_bound` is for the even plan; for this
one we have none. It expects requests to come to be worth what those of the history and of today were: where the mean
value of the rest of the day is another, it saves too much or too little for it.
Targets that change with the request are not new: Jiang, Li and Zhang (arXiv 2012.06961) and Balseiro, Kumar, Mirrokni,
Sivan and Wang (arXiv 2302.02006) take them from a model or a sample of each period.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.pacing.auctions import PriceHistory
from longterm.pacing.base import Outcome, Pacer
from longterm.pacing.mirror_descent import DualMirrorDescent, affordable, entropic_step


class PlannedState(NamedTuple):
    """(t, π_t, what is left, Σ_{s<t} S_1(v_s))."""

    round: Array
    price: Array
    remaining: Array
    expected: Array


@dataclass(frozen=True, eq=False)
class PlannedMirrorDescent(Pacer[PlannedState]):
    """The price of money, moved by what a request cost more than planned for its value.

    Parameters
    ----------
    budget, step, start : float or array
        The most that may be spent, η, and π_1, the first price of money.
    horizon : int
        T, the requests of a day.
    history : PriceHistory
        Past prices, which the plan is made of.
    history_days : float or array
        How many days of T requests the history counts for against today, in the mean that the plan expects.

    Examples
    --------
    >>> from longterm.pacing import Outcome, PlannedMirrorDescent, PriceHistory
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
        validate.fields(self, validate.dimension, "horizon")
        validate.fields(self, validate.positive, "budget", "step", "start", "history_days")

    @classmethod
    def calibrated(
        cls, budget: Hyper, horizon: int, history: PriceHistory, *, trust: float = 0.3, history_days: Hyper = 1.0
    ) -> PlannedMirrorDescent:
        """First price and step as `DualMirrorDescent.calibrated` has them."""
        even = DualMirrorDescent.calibrated(budget, horizon, history, trust=trust)
        return cls(budget, horizon, even.step, even.start, history, history_days)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> PlannedState:
        price, remaining, nothing = self._of_each(batch_shape, xp, dtype, self.start, self.budget, 0.0)
        return PlannedState(xp.asarray(1, dtype=xp.int64), price, remaining, nothing)

    def price(self, state: PlannedState) -> Array:
        return state.price

    def unguarded_bid(self, state: PlannedState, value: Array) -> Array:
        return affordable(value, state.price, state.remaining)

    def settle(self, state: PlannedState, outcome: Outcome) -> PlannedState:
        if outcome.value is None:
            what = "lacks the value of the request"
            raise InputError("outcome", what, "The plan is made from it: give value=, or use DualMirrorDescent")
        return super().settle(state, outcome)

    def update(self, state: PlannedState, outcome: Outcome) -> PlannedState:
        xp, t = namespace(state.price), namespace(state.price).astype(state.round, state.price.dtype)
        start, rate = like(self.start, state.price), like(self.rate, state.price)
        this = self.history.expected_payment(outcome.value / start)
        of_a_mean_request = self.history.expected_payment(self.history.mean_value / (start + 0 * state.price))
        expected = state.expected + this
        # A first price at which no past request would have been bought still leaves a plan: hence the rate.
        past = self.horizon * like(self.history_days, state.price)
        mean = (past * xp.maximum(of_a_mean_request, 1e-9 * rate) + expected) / (past + t)
        to_come = xp.maximum(self.horizon - t + 1, 1.0) * mean
        planned = state.remaining * this / to_come
        move = like(self.step, t) * (outcome.paid - planned)
        return PlannedState(
            round=state.round + 1,
            price=entropic_step(state.price, move, start),
            remaining=state.remaining - outcome.paid,
            expected=expected,
        )
