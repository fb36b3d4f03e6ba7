"""Dual mirror descent for budgets (Balseiro, Lu, Mirrokni 2020), with caps, floors and hard money.

The problem, with values v_t seen before acting, costs c_t, and money that is worth κ elsewhere:

    max Σ (v_t − κ c_t) x_t    with   floor ≤ Σ c_t x_t ≤ budget,   0 ≤ x_t ≤ 1.

Multipliers μ ≥ 0 of the cap and ν ≥ 0 of the floor enter as one *price of money* π = κ + μ − ν:

    Lagrangian   Σ (v_t − π c_t) x_t + μ · budget − ν · floor,

so the best x_t is 1 where v_t ≥ π c_t. In a second-price auction c_t is the market price, unknown but not ours
to move: bidding v_t/π wins exactly the auctions with c_t ≤ v_t/π. Of μ and ν at least one is 0 at the optimum
(lower both by the same: π stays, the dual falls by (budget − floor) each), so the dual is a function of π
alone, and with ρ = budget/T, ℓ = floor/T,

    D(π) = E[v − π c]₊ + ρ [π − κ]₊ − ℓ [κ − π]₊.

One mirror step per request on −paid_t · π + (the rest of D, kept as it is) has the closed form

    π_{t+1} = the point of [ π_t ⊕ η(paid_t − ρ),  π_t ⊕ η(paid_t − ℓ) ] nearest to κ,

with π ⊕ a = π + a (Euclidean mirror) or π · e^a (entropic mirror). For κ = 0 and no floor that is the paper's
π_{t+1} = [π_t − η(ρ − paid_t)]₊, or π_t e^{−η(ρ − paid_t)}. In words: a request that cost more than ρ makes
money dearer, one that cost less makes it cheaper, never below κ unless the floor is in danger.

Needs: the horizon T; for independent and identically distributed requests a step of order 1/√T (`calibrated`
sets it). Guarantees (`regret_bound`, `floor_shortfall`; docs/pacing.md): the cap always; the floor up to
`floor_shortfall` whenever demand allows; regret O(√T) against the hindsight optimum, in expectation, for i.i.d.
requests.

**With a plan** (`PlannedMirrorDescent`): spend in proportion to what a request deserves, not evenly.

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
from math import exp
from typing import Any, Literal, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.pacing.auctions import PriceHistory
from longterm.pacing.base import PLAIN, Number, Outcome, Pacer

Mirror = Literal["euclidean", "entropic"]
LONGEST_MOVE, FARTHEST = 30.0, 1e20
"""The entropic price moves by at most e^±30 in a step, and stays within 10^±20 of its start: finite in float32 too."""


class DualState(NamedTuple):
    """(t, π_t, what is left)."""

    round: Array
    price: Array
    remaining: Array


@dataclass(frozen=True, eq=False)
class DualMirrorDescent(Pacer[DualState]):
    """The price of money, one number, moved after every request.

    Parameters
    ----------
    budget, floor : float or array
        The most that may be spent, and the least.
    horizon : int
        T, the requests of a day.
    step, start : float or array
        η, and π_1, the first price of money.
    mirror : {"entropic", "euclidean"}
        Whether the price is multiplied or added to.
    cost_weight : float or array
        κ: what a unit of money is worth elsewhere. 0 counts values only; 1, with values in money, is profit.

    Examples
    --------
    >>> from longterm.pacing import DualMirrorDescent, Outcome
    >>> pacer = DualMirrorDescent(budget=20.0, horizon=10, step=0.1, start=0.5, mirror="euclidean")
    >>> state = pacer.init()
    >>> float(pacer.act(state, 3.0))  # 3 / 0.5
    6.0
    >>> state = pacer.settle(state, Outcome(paid=4.0))  # 2 above the rate: the price rises by 0.2
    >>> float(state.price), float(state.remaining)
    (0.7, 16.0)
    """

    budget: Hyper
    horizon: int
    step: Hyper
    start: Hyper
    mirror: Mirror = "entropic"
    floor: Hyper = 0.0
    cost_weight: Hyper = 0.0

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.dimension, "horizon")
        validate.validate_fields(self, validate.positive, "budget", "step", "start")
        validate.validate_fields(self, validate.non_negative, "floor", "cost_weight")
        if self.mirror not in ("euclidean", "entropic"):
            raise InputError("mirror", f"{self.mirror!r} is not known", "Choose 'euclidean' or 'entropic'")
        if np.any(np.asarray(self.floor) > np.asarray(self.budget)):
            raise InputError("floor", f"{self.floor} is above the budget {self.budget}", "Ask for a floor ≤ budget")

    @classmethod
    def calibrated(
        cls,
        budget: Hyper,
        horizon: int,
        history: PriceHistory,
        *,
        mirror: Mirror = "entropic",
        trust: float = 0.3,
        floor: Hyper = 0.0,
        cost_weight: Hyper = 0.0,
    ) -> DualMirrorDescent:
        """First price and step from past prices.

        The first bid b for a request of mean value v̄ is v̄/κ, the best without constraints, brought between
        the bids that spend the floor's rate and the cap's; π_1 = v̄/b. The step balances the two terms of the
        entropic regret bound, π δ²/(2η) + η π T sd²/2: η = δ/(sd(b) √T), where δ = `trust` says how far π_1 may
        be off, as |ln(π*/π_1)| (0.3: a factor of 1.35). The Euclidean step is that times π_1.
        """
        rate, floor_rate = np.asarray(budget) / horizon, np.asarray(floor) / horizon
        with np.errstate(divide="ignore"):
            free = np.asarray(history.mean_value) / np.asarray(cost_weight, dtype=np.float64)
        least = np.where(floor_rate > 0, history.bid_for(floor_rate), 0.0)
        bid = np.clip(free, least, history.bid_for(rate))
        start = history.mean_value / bid
        scale = 1.0 if mirror == "entropic" else start
        deviation = history.deviation(bid)
        deviation = np.where(deviation > 0, deviation, bid)  # all past prices are one
        step = validate.positive_scalar("trust", trust) * scale / (deviation * np.sqrt(horizon))
        return cls(budget, horizon, step, start, mirror, floor, cost_weight)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> DualState:
        price, remaining = self._of_each(batch_shape, xp, dtype, self.start, self.budget)
        return DualState(xp.asarray(1, dtype=xp.int64), price, remaining)

    def price(self, state: DualState) -> Array:
        return state.price

    def unguarded_bid(self, state: DualState, value: Array) -> Array:
        if type(state.price) is Number and type(value) in PLAIN:  # one live bid: no arrays to hold one number
            _, price, left = state
            price = float(price)
            return Number(value / price) if value < price * float(left) else Number(left)
        return affordable(value, state.price, state.remaining)

    def accept(self, state: DualState, value: Array, cost: Array) -> Array:
        """The decision where the cost is known beforehand (a posted price): take it, or leave it.

        The argmax of (v − π c) x over {0, 1}, if the money is there. Values may be negative here.
        """
        return (value >= state.price * cost) & (cost <= state.remaining)

    def update(self, state: DualState, outcome: Outcome) -> DualState:
        paid = outcome.paid
        if type(state.price) is Number and type(paid) in PLAIN and type(self.step) is float:
            return self._plain_update(state, float(paid))
        xp = namespace(state.price)
        lowest = self._moved(state.price, paid - like(self.rate, state.price))
        highest = self._moved(state.price, paid - like(self.floor / self.horizon, state.price))
        anchor = like(self.cost_weight, state.price)
        return DualState(
            round=state.round + 1,
            price=xp.maximum(lowest, xp.minimum(highest, anchor)),
            remaining=state.remaining - paid,
        )

    def _plain_update(self, state: DualState, paid: float) -> DualState:
        """The same for one pacer, in numbers."""
        t, money, left = state
        price = float(money)
        anchor: float = self.cost_weight  # type: ignore[assignment]
        new = self._plain_move(price, paid - self.budget / self.horizon)  # type: ignore[arg-type]
        if anchor > new:
            floor = self._plain_move(price, paid - self.floor / self.horizon)  # type: ignore[arg-type]
            new = max(new, min(floor, anchor))
        return tuple.__new__(DualState, (t + 1, Number(new), left - paid))  # in half the time of its name

    def _plain_move(self, price: float, excess: float) -> float:
        """π ⊕ η · excess, of numbers; compared by `if`, in half the time of min and max."""
        start: float = self.start  # type: ignore[assignment]
        move: float = self.step * excess  # type: ignore[assignment]
        if self.mirror == "euclidean":
            return price + move
        if not -LONGEST_MOVE <= move <= LONGEST_MOVE:
            move = LONGEST_MOVE if move > 0 else -LONGEST_MOVE
        new = price * exp(move)
        if start / FARTHEST <= new <= start * FARTHEST:
            return new
        return start / FARTHEST if new < start else start * FARTHEST

    def _moved(self, price: Array, excess: Array) -> Array:
        move = like(self.step, price) * excess
        return price + move if self.mirror == "euclidean" else entropic_step(price, move, like(self.start, price))


def affordable(value: Array, price: Array, remaining: Array) -> Array:
    """v/π, or all that is left where that is less; so also at a price ≤ 0, where every request is wanted."""
    xp = namespace(price)
    enough = value < price * remaining
    return xp.where(enough, value / xp.where(enough, price, 1.0), remaining)


def entropic_step(price: Array, move: Array, start: Array) -> Array:
    """π e^move. One absurd payment must not make the price infinite, from where it could never come back."""
    xp = namespace(price)
    factor = xp.exp(xp.minimum(xp.maximum(move, -LONGEST_MOVE), LONGEST_MOVE))
    return xp.minimum(xp.maximum(price * factor, start / FARTHEST), start * FARTHEST)


# What it promises, as numbers. The proofs are in docs/pacing.md.


def regret_bound(pacer: DualMirrorDescent, largest_value: float, largest_cost: float) -> Hyper:
    """How far below the hindsight optimum the expected value can be, for i.i.d. requests with v ≤ v̄ and c ≤ c̄.

    Euclidean mirror, no floor, κ = 0, with ρ = budget/T ≤ c̄:

        c̄ v̄/ρ + max(π_1, v̄/ρ)²/(2η) + η T c̄²/2,

    which is O(√T) for η of order 1/√T and a budget in proportion to T.

    Parameters
    ----------
    pacer : DualMirrorDescent
        Euclidean mirror, no floor, no cost weight.
    largest_value : float
        v̄.
    largest_cost : float
        c̄.

    Returns
    -------
    float or numpy.ndarray
        In the currency of the values.

    Examples
    --------
    >>> from longterm.pacing import DualMirrorDescent, regret_bound
    >>> pacer = DualMirrorDescent(budget=5e3, horizon=10_000, step=0.02, start=1.0, mirror="euclidean")
    >>> regret_bound(pacer, largest_value=1.0, largest_cost=1.0)
    202.0
    """
    others = np.asarray(pacer.floor) + np.asarray(pacer.cost_weight)
    if pacer.mirror != "euclidean" or np.any(others > 0):
        raise InputError("pacer", "has another mirror, a floor or a cost weight", "This bound is for none of these")
    v = validate.positive_scalar("largest_value", largest_value)
    c = validate.positive_scalar("largest_cost", largest_cost)
    if np.any(np.asarray(pacer.rate) > c):
        raise InputError("largest_cost", f"{c} is below the rate {pacer.rate}", "Such a budget cannot be spent")
    ratio = v / np.asarray(pacer.rate)
    bound = (
        c * ratio
        + np.maximum(pacer.start, ratio) ** 2 / (2 * np.asarray(pacer.step))
        + np.asarray(pacer.step) * pacer.horizon * c**2 / 2
    )
    return bound if bound.ndim else float(bound)


def floor_shortfall(pacer: DualMirrorDescent, *, everything_at: float = 0.0) -> Hyper:
    """By how much the floor can be missed, for any sequence of requests whose demand allows it.

    Euclidean (π_1 − π₀)/η + ℓ, entropic ln(π_1/π₀)/η + ℓ, where at the price π₀ = `everything_at` every request
    is bought (0, for the Euclidean mirror; smallest value / largest cost in general). "Demand allows it": from
    every request to the last, all that is offered costs at least ℓ = floor/T per request on average; what it
    lacks is to be added. To be certain of a floor L, ask for one higher by this much, and leave one request's
    cost between that and the budget.

    Parameters
    ----------
    pacer : DualMirrorDescent
        With a floor.
    everything_at : float
        π₀: the price of money at which every request is bought.

    Returns
    -------
    float or numpy.ndarray
        In the currency of the floor.

    Examples
    --------
    >>> from longterm.pacing import DualMirrorDescent, floor_shortfall
    >>> pacer = DualMirrorDescent(100.0, 50, step=0.1, start=1.2, mirror="euclidean", floor=60.0, cost_weight=1.0)
    >>> round(floor_shortfall(pacer), 9)
    13.2
    """
    lowest = validate.non_negative_scalar("everything_at", everything_at)
    if pacer.mirror == "entropic" and lowest == 0:
        raise InputError("everything_at", "an entropic price never is 0", "Give smallest value / largest cost")
    start = np.asarray(pacer.start)
    way = start - lowest if pacer.mirror == "euclidean" else np.log(start / (lowest or 1.0))
    shortfall = np.maximum(way, 0.0) / np.asarray(pacer.step) + np.asarray(pacer.floor) / pacer.horizon
    return shortfall if shortfall.ndim else float(shortfall)


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
        validate.validate_fields(self, validate.dimension, "horizon")
        validate.validate_fields(self, validate.positive, "budget", "step", "start", "history_days")

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
