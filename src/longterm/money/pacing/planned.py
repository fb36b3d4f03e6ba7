"""Dual mirror descent with a plan: spend in proportion to what a request deserves, not evenly.

`DualMirrorDescent` aims at ρ = budget/T for every request. The best in hindsight keeps one price of money all day, and
spends little while requests are poor. The histogram of past prices gives the expected cost of a bid v_t/π_1,

    S_1(v) = E[c · 1(c ≤ v/π_1)].

A request deserves the share S_1(v_t) / ((T − t + 1) m_t) of what is to be spent from now on, where m_t is the mean of
S_1 over the requests so far and over the history, which counts as `history_days` days (here one) of T requests with
the mean value v̄:

    m_t = ( T S_1(v̄) + Σ_{s≤t} S_1(v_s) ) / (T + t).

**Guard.** Today may differ from the history: a plan that waits for better requests, which never come, wins less than an
even one. So the plan τ_t is even for the most part, it is never ahead of the even pace, and it saves little. With
s_t = ρ(t − 1) − Σ_{r<t} τ_r, what it has saved, and with φ = `even_share` and ω = `leeway`,

    τ_t = φ ρ + (1 − φ) (ρ(T − t + 1) + s_t) S_1(v_t) / ((T − t + 1) m_t),
    brought between ρ + s_t − ωρ(T − t) and ρ + s_t,        π_{t+1} = π_t e^{η (paid_t − τ_t)}.

The plan depends on the requests up to t and not on what the pacer paid: it is *predictable*. It never allots less than
φρ, the first t plans add up to at most ρt, and what is saved for the rest of the day is at most the part ω of an even
spender's money for it. At the horizon the plans add up to the budget.

Needs: the horizon; past prices; the value of every request, also in `settle`.
Guarantees: the cap, always. `spending_plan_bound` holds on every sequence, against the best that spends τ_t on each
request. `plan` returns τ_t, so that a caller can add it up. Proof: docs/proofs/pacing.md.

The plan expects the rest of the day to be worth what the history and today were. Targets that change with the request
are not new: Jiang, Li and Zhang (arXiv 2012.06961) and Balseiro, Kumar, Mirrokni, Sivan and Wang (arXiv 2302.02006)
take them from a model or a sample of each period.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, as_float, like
from longterm._base.exact_sum import ExactSum
from longterm._base.selection import maximum, minimum
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.money.pacing.base import Outcome, Pacer
from longterm.money.pacing.mirror_descent import DualMirrorDescent, value_bid
from longterm.money.pacing.price_history import PriceHistory
from longterm.money.prices import entropic_step

EVEN_SHARE, LEEWAY = 0.75, 0.03
"""Chosen on the log of docs/benchmarks/pacing.md, so that no cell there is more than 0.3 % behind the even pace."""


class PlannedState(NamedTuple):
    """The round, the price π_t, the payments, Σ_{r<t} S_1(v_r), and s_t = ρ(t − 1) − Σ_{r<t} τ_r."""

    round: Array
    price: Array
    spent: ExactSum
    expected: Array
    saved: Array


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
    even_share : float
        φ in [0, 1], the part of the plan that is even. 1 is the even plan.
    leeway : float
        ω: what is saved for the rest of the day is at most this part of an even spender's money for it. Larger numbers
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
    >>> state = pacer.settle(state, Outcome(paid=0.0, value=0.1))  # a bid of 5 was not expected to win
    >>> float(state.saved)  # three quarters of the plan are even; at most 0.03 · 10 · 9 may be saved
    2.5
    """

    budget: Hyper
    horizon: int
    step: Hyper
    start: Hyper
    history: PriceHistory
    history_days: Hyper = 1.0
    even_share: Hyper = EVEN_SHARE
    leeway: Hyper = LEEWAY

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.dimension, "horizon")
        validate.validate_fields(self, validate.positive, "budget", "step", "start", "history_days")
        validate.validate_fields(self, validate.non_negative, "even_share", "leeway")
        if np.any(np.asarray(self.even_share) > 1):
            raise InputError("even_share", f"{self.even_share} is above 1", "Give a share of the plan, such as 0.75")

    @classmethod
    def calibrated(
        cls,
        budget: Hyper,
        horizon: int,
        history: PriceHistory,
        *,
        trust: float = 0.3,
        history_days: Hyper = 1.0,
        even_share: Hyper = EVEN_SHARE,
        leeway: Hyper = LEEWAY,
    ) -> PlannedMirrorDescent:
        """Return a pacer with the first price and step of `DualMirrorDescent.calibrated`."""
        even = DualMirrorDescent.calibrated(budget, horizon, history, trust=trust)
        return cls(budget, horizon, even.step, even.start, history, history_days, even_share, leeway)

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
        return PlannedState(first, price, self._no_spending(batch_shape, xp), none, none)

    def renewed(self, state: PlannedState, spent: ExactSum) -> PlannedState:
        none = self.init().expected
        return super().renewed(state, spent)._replace(expected=none, saved=none)

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
        >>> float(pacer.plan(state, 0.2)), round(float(pacer.plan(state, 0.1)), 9)  # all rounds alike; a poor one
        (10.0, 7.5)
        """
        price, t = state.price, as_float(state.round, state.price)
        rate, rest, this = like(self.rate, price), maximum(self.horizon - t, 0.0), self._deserved(state, value)
        mean = (self.past_payments(self._first(price)) + state.expected + this) / (like(self.past_requests, price) + t)
        even, most = like(self.even_share, price), rate + state.saved
        deserved = (rate * (rest + 1.0) + state.saved) * this / ((rest + 1.0) * mean)
        least = most - like(self.leeway, price) * rate * rest
        return minimum(maximum(even * rate + (1.0 - even) * deserved, least), most)

    def _first(self, price: Array) -> Array:
        """Return the first price, with the type and shape of the present one."""
        return like(self.start, price) + 0.0 * price

    def _deserved(self, state: PlannedState, value: Array) -> Array:
        """Return S_1(v), the expected payment for a request of this value at the first price."""
        return like(self.history.expected_payment(value / self._first(state.price)), state.price)

    def update(self, state: PlannedState, outcome: Outcome) -> PlannedState:
        price, planned = state.price, self.plan(state, outcome.value)
        move = like(self.step, price) * (like(outcome.paid, price) - planned)
        return PlannedState(
            state.round + 1,
            entropic_step(price, move, self._first(price)),
            state.spent.add(outcome.paid),
            state.expected + self._deserved(state, outcome.value),
            state.saved + (like(self.rate, price) - planned),
        )


def spending_plan_bound(
    pacer: PlannedMirrorDescent,
    *,
    largest_value: float,
    largest_cost: float,
    smallest_plan: float | None = None,
    largest_plan: float | None = None,
    planned: float | None = None,
) -> float:
    """Bound the value lost against the best that spends the plan, on every sequence of requests.

    With v ≤ v̄, c ≤ c̄, ρ ≤ τ_t ≤ τ̄, d = max(c̄, τ̄) and r = v̄/ρ, the value won is at least

        Σ_t v_t min(1, τ_t/c_t) − ( r (c̄ + [Σ τ_t − budget]₊) + A/η + 2ηd v̄ T ) / (1 − ηd),
        A = max(π_1, r ln(r/π_1) − r + π_1).

    The sum is the most that one can win by spending τ_t in expectation on request t, for each t. With η of order 1/√T
    the loss is O(√T), since Σ τ_t ≤ budget and τ_t ≥ φ budget/T. Requires ηd < 1.

    Parameters
    ----------
    pacer : PlannedMirrorDescent
        Gives budget, horizon, η and π_1, single numbers.
    largest_value, largest_cost : float
        v̄ and c̄.
    smallest_plan : float, optional
        ρ: no request is planned less. Default: φ budget/T, which no plan is below.
    largest_plan : float, optional
        τ̄. Default: c̄.
    planned : float, optional
        Σ τ_t, or a bound on it. Default: the budget.

    Returns
    -------
    float
        In the currency of the values.

    Examples
    --------
    >>> from longterm.money.pacing.planned import spending_plan_bound
    >>> history = PriceHistory([0.5, 1.0], [1, 1], mean_value=1.0)
    >>> pacer = PlannedMirrorDescent(5e3, 10_000, step=0.01, start=2.0, history=history)
    >>> round(spending_plan_bound(pacer, largest_value=1.0, largest_cost=1.0, smallest_plan=0.25), 1)
    408.1
    """
    v = validate.positive_scalar("largest_value", largest_value)
    c = validate.positive_scalar("largest_cost", largest_cost)
    if smallest_plan is None:
        smallest_plan = float(np.asarray(pacer.even_share) * np.asarray(pacer.rate))
    least = validate.positive_scalar("smallest_plan", smallest_plan)
    most = c if largest_plan is None else validate.positive_scalar("largest_plan", largest_plan)
    step, start = (
        validate.positive_scalar(name, value) for name, value in (("step", pacer.step), ("start", pacer.start))
    )
    budget = validate.positive_scalar("budget", pacer.budget)
    excess = max(0.0, (budget if planned is None else validate.positive_scalar("planned", planned)) - budget)
    if least > most:
        raise InputError(
            "smallest_plan", f"{least:g} is above the largest plan, {most:g}", "Give a larger largest_plan="
        )
    size, ratio = step * max(c, most), v / least
    if size >= 1:
        raise InputError(
            "step", f"{step:g} times the largest cost is {size:g}, which is not below 1", "Use a smaller step"
        )
    divergence = max(start, ratio * math.log(ratio / start) - ratio + start)
    return (ratio * (c + excess) + divergence / step + 2 * size * v * pacer.horizon) / (1 - size)
