"""Dual mirror descent with a plan: spend in proportion to what a request deserves, not evenly.

`DualMirrorDescent` aims at ρ = budget/T for every request. The best in hindsight keeps one price of money all day, and
spends little while requests are poor. The histogram of past prices gives the expected cost of a bid v_t/π_1,

    S_1(v) = E[c · 1(c ≤ v/π_1)].

A request deserves the share S_1(v_t) / ((T − t + 1) m_t) of what is to be spent from now on, where m_t is the mean of
S_1 over the requests so far and over the history, which counts as `history_days` days (here one) of T requests with
the mean value v̄:

    m_t = ( T S_1(v̄) + Σ_{s≤t} S_1(v_s) ) / (T + t).

The plan expects the rest of the day to be worth what the history and today were: with n = T − t + 1 and
s_t = ρ(t − 1) − Σ_{r<t} τ_r, what it has saved, request t deserves (ρn + s_t) S_1(v_t) / (n m_t).

**Guard.** Today may differ from the history, and a plan that waits for better requests, which never come, wins less
than an even one. Valued at the pacer's own prices, the plan has cost B_t = Σ_{r<t} π_r (ρ − τ_r) so far. It may cost at
most the part ε = `tolerance` of the value V_t that was won, and less as the day ends:

    τ_t ≥ ρ − [ε V_t (1 − t/T) − B_t] / π_t,      0 ≤ τ_t ≤ ρ + s_t,        π_{t+1} = π_t e^{η (paid_t − τ_t)}.

So what the plan has gained may be risked again, and where it has lost its allowance it is even.

Needs: the horizon; past prices; the value of every request, also in `settle`.
Guarantees: the cap, always. On every sequence, the value won is at least 1/(1 + ε) times that of the best that spends ρ
on each request, less `spending_plan_bound`, which is O(√T) if τ_t is bounded. Proof: docs/proofs/pacing.md. `plan`
returns τ_t.

Targets that change with the request are not new: Jiang, Li and Zhang (arXiv 2012.06961) and Balseiro, Kumar, Mirrokni,
Sivan and Wang (arXiv 2302.02006) take them from a model or a sample of each period.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, as_float, like
from longterm._base.exact_sum import ExactSum
from longterm._base.selection import maximum, minimum, where
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.money.budgets import in_range, positive_in_range
from longterm.money.pacing.base import Outcome, Pacer
from longterm.money.pacing.mirror_descent import DualMirrorDescent, value_bid
from longterm.money.pacing.price_history import PriceHistory
from longterm.money.prices import entropic_step

TOLERANCE = 0.003
"""The part of the value won that a plan may cost beside the even pace."""


class PlannedState(NamedTuple):
    """The state before request t."""

    round: Array
    price: Array
    """π_t, the price of money."""
    spent: ExactSum
    expected: Array
    """Σ_{r<t} S_1(v_r)."""
    saved: Array
    """s_t = ρ(t − 1) − Σ_{r<t} τ_r."""
    cost: Array
    """B_t = Σ_{r<t} π_r (ρ − τ_r), what the plan has cost."""
    won: Array
    """V_t, the value of the requests paid for."""


@dataclass(frozen=True, eq=False)
class PlannedMirrorDescent(Pacer[PlannedState]):
    """A pacer with a spending plan: it saves money while requests are poor, and spends it on better ones.

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
    tolerance : float
        ε: the part of the value won that the plan may cost beside the even pace. 0 is the even plan. Larger numbers
        gain more on days like the history, and lose more if demand falls for good.

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
    >>> float(pacer.plan(state, 0.1))  # a bid of 5 is not expected to win, but nothing is won yet that may be risked
    10.0
    """

    budget: Hyper
    horizon: int
    step: Hyper
    start: Hyper
    history: PriceHistory
    history_days: Hyper = 1.0
    tolerance: Hyper = TOLERANCE

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.dimension, "horizon")
        validate.validate_fields(self, positive_in_range, "budget", "step", "start", "history_days")
        validate.validate_fields(self, in_range, "tolerance")

    @classmethod
    def calibrated(
        cls,
        budget: Hyper,
        horizon: int,
        history: PriceHistory,
        *,
        trust: float = 0.3,
        history_days: Hyper = 1.0,
        tolerance: Hyper = TOLERANCE,
    ) -> PlannedMirrorDescent:
        """Return a pacer with the first price and step of `DualMirrorDescent.calibrated`."""
        even = DualMirrorDescent.calibrated(budget, horizon, history, trust=trust)
        return cls(budget, horizon, even.step, even.start, history, history_days, tolerance)

    @property
    def past_requests(self) -> Hyper:
        """The number of requests that the history counts for."""
        return self.horizon * self.history_days

    def past_payments(self, start: Array) -> Array:
        """Return the expected payments of the past requests at the first price.

        They are positive even if no past request would have been bought at that price, so that there is a plan.
        """
        mean_request = like(self.history.expected_payment(self.history.mean_value / start), start)
        return like(self.past_requests, start) * maximum(mean_request, 1e-9 * like(self.rate, start))

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> PlannedState:
        first, (price, none) = self._start(batch_shape, xp, dtype, self.start, 0.0)
        return PlannedState(first, price, self._no_spending(batch_shape, xp), none, none, none, none)

    def renewed(self, state: PlannedState, spent: ExactSum) -> PlannedState:
        none = self.init().expected
        return super().renewed(state, spent)._replace(expected=none, saved=none, cost=none, won=none)

    def price(self, state: PlannedState) -> Array:
        return state.price

    def raw_bid(self, state: PlannedState, value: Array, left: Array) -> Array:
        return value_bid(value, state.price, left)

    def settle(self, state: PlannedState, outcome: Outcome) -> PlannedState:
        if outcome.value is None:
            what = "has no value"
            raise InputError("outcome", what, "Pass value=, from which the plan is made, or use DualMirrorDescent")
        return super().settle(state, outcome)

    def plan(self, state: PlannedState, value: Array) -> Array:
        """Return τ_t, the spending that is planned for a request of this value.

        Examples
        --------
        >>> history = PriceHistory([10.0, 20.0], [1, 1], mean_value=0.2)
        >>> pacer = PlannedMirrorDescent(100.0, 10, step=0.1, start=0.02, history=history)
        >>> state = pacer.init()
        >>> float(pacer.plan(state, 0.2)), float(pacer.plan(state, 0.1))  # nothing is won yet, so nothing is risked
        (10.0, 10.0)
        """
        price, t = state.price, as_float(state.round, state.price)
        rate, rest, this = like(self.rate, price), maximum(self.horizon - t, 0.0), self._deserved(state, value)
        mean = (self.past_payments(self._first(price)) + state.expected + this) / (like(self.past_requests, price) + t)
        deserved = (rate * (rest + 1.0) + state.saved) * this / ((rest + 1.0) * mean)
        allowed = like(self.tolerance, price) * state.won * (rest / self.horizon) - state.cost
        least = maximum(rate - allowed / price, 0.0)
        return minimum(maximum(deserved, least), rate + state.saved)

    def _first(self, price: Array) -> Array:
        """Return the first price, with the type and shape of the present one."""
        return like(self.start, price) + 0.0 * price

    def _deserved(self, state: PlannedState, value: Array) -> Array:
        """Return S_1(v), the expected payment for a request of this value at the first price."""
        return like(self.history.expected_payment(value / self._first(state.price)), state.price)

    def update(self, state: PlannedState, outcome: Outcome) -> PlannedState:
        price, planned = state.price, self.plan(state, outcome.value)
        paid, beside = like(outcome.paid, price), like(self.rate, price) - planned
        return PlannedState(
            state.round + 1,
            entropic_step(price, like(self.step, price) * (paid - planned), self._first(price)),
            state.spent.add(outcome.paid),
            state.expected + self._deserved(state, outcome.value),
            state.saved + beside,
            state.cost + price * beside,
            state.won + where(paid > 0, like(outcome.value, price), 0.0),
        )


def spending_plan_bound(
    pacer: PlannedMirrorDescent,
    *,
    largest_value: float,
    largest_cost: float,
    largest_plan: float | None = None,
) -> float:
    """Bound the value lost against the best that spends ρ = budget/T on each request, on every sequence of requests.

    With v ≤ v̄, c ≤ c̄, τ_t ≤ τ̄, d = max(c̄, τ̄) and r = v̄/ρ, the value won times 1 + ε is at least

        Σ_t v_t min(1, ρ/c_t) − ( r c̄ + A/η + 2ηd v̄ T ) / (1 − ηd),      A = max(π_1, r ln(r/π_1) − r + π_1).

    The sum is the most that one can win by spending ρ in expectation on each request. With η of order 1/√T and a budget
    in proportion to T the bound is O(√T). Requires ηd < 1.

    Parameters
    ----------
    pacer : PlannedMirrorDescent
        Gives budget, horizon, η and π_1, single numbers.
    largest_value, largest_cost : float
        v̄ and c̄.
    largest_plan : float, optional
        τ̄. Default: the larger of c̄ and ρ. The bound does not hold if a plan was larger.

    Returns
    -------
    float
        In the currency of the values.

    Examples
    --------
    >>> from longterm.money.pacing.planned import spending_plan_bound
    >>> history = PriceHistory([0.5, 1.0], [1, 1], mean_value=1.0)
    >>> pacer = PlannedMirrorDescent(5e3, 10_000, step=0.01, start=2.0, history=history)
    >>> round(spending_plan_bound(pacer, largest_value=1.0, largest_cost=1.0), 1)
    406.1
    """
    v = validate.positive_scalar("largest_value", largest_value)
    c = validate.positive_scalar("largest_cost", largest_cost)
    step, start, rate = (
        validate.positive_scalar(name, value)
        for name, value in (("step", pacer.step), ("start", pacer.start), ("budget", pacer.rate))
    )
    most = max(c, rate) if largest_plan is None else validate.positive_scalar("largest_plan", largest_plan)
    size, ratio = step * max(c, most), v / rate
    if size >= 1:
        raise InputError(
            "step", f"{step:g} times the largest cost is {size:g}, which is not below 1", "Use a smaller step"
        )
    divergence = max(start, ratio * math.log(ratio / start) - ratio + start)
    return (ratio * c + divergence / step + 2 * size * v * pacer.horizon) / (1 - size)
