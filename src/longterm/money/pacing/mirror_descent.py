"""Dual mirror descent for budgets (Balseiro, Lu, Mirrokni 2020), with caps, floors and hard money.

The problem, with values v_t seen before acting, costs c_t, and money that is worth κ elsewhere:

    max Σ (v_t − κ c_t) x_t    with   floor ≤ Σ c_t x_t ≤ budget,   0 ≤ x_t ≤ 1.

With one *price of money* π, bid v_t/π in a second-price auction. With ρ = budget/T and ℓ = floor/T,

    π_{t+1} = the point of [ π_t ⊕ η(paid_t − ρ),  π_t ⊕ η(paid_t − ℓ) ] nearest to κ,

with π ⊕ a = π + a (Euclidean mirror) or π · e^a (entropic mirror). docs/proofs/pacing.md derives it.

Needs: the horizon T; for independent and identically distributed requests a step of order 1/√T (`calibrated` sets it).
Guarantees (`regret_bound`, `floor_shortfall`; proofs in docs/proofs/pacing.md): the cap always; the floor up to
`floor_shortfall` whenever demand allows; regret O(√T) against the hindsight optimum, in expectation, for i.i.d.
requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, like
from longterm._base.exact_sum import ExactSum
from longterm._base.selection import maximum, minimum, where
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.money.budgets import in_range, positive_in_range
from longterm.money.pacing.base import Outcome, Pacer
from longterm.money.pacing.price_history import PriceHistory
from longterm.money.prices import Mirror, mirror_step


class MirrorDescentState(NamedTuple):
    """The round, the price π_t and the payments."""

    round: Array
    price: Array
    spent: ExactSum


@dataclass(frozen=True, eq=False)
class DualMirrorDescent(Pacer[MirrorDescentState]):
    """A pacer with one price of money, moved after every request.

    Parameters
    ----------
    budget, floor : float or array
        The most that may be spent, and the least.
    horizon : int
        T, the requests of a day.
    step, start : float or array
        η, and π_1, the first price of money.
    mirror : {"entropic", "euclidean"}
        Multiply the price, or add to it.
    cost_weight : float or array
        κ: the value of a unit of money elsewhere. 0 counts values only; 1, with values in money, is profit.

    Examples
    --------
    >>> from longterm.money.pacing.base import Outcome
    >>> from longterm.money.pacing.mirror_descent import DualMirrorDescent
    >>> pacer = DualMirrorDescent(budget=20.0, horizon=10, step=0.1, start=0.5, mirror="euclidean")
    >>> state = pacer.init()
    >>> float(pacer.act(state, 3.0))  # 3 / 0.5
    6.0
    >>> state = pacer.settle(state, Outcome(paid=4.0))  # 2 above the rate: the price rises by 0.2
    >>> float(state.price), float(pacer.remaining(state))
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
        validate.validate_fields(self, positive_in_range, "budget", "step", "start")
        validate.validate_fields(self, in_range, "floor", "cost_weight")
        if self.mirror not in ("euclidean", "entropic"):
            raise InputError("mirror", f"{self.mirror!r} is not known", "Choose 'euclidean' or 'entropic'")
        if np.any(np.asarray(self.floor) > np.asarray(self.budget)):
            raise InputError(
                "floor", f"{self.floor} is above the budget {self.budget}", "Give a floor of at most the budget"
            )

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
        """Return a pacer with first price and step from past prices.

        The first bid b for a request of mean value v̄ is v̄/κ, the best without constraints, brought between the bids
        that spend the floor's rate and the cap's; π_1 = v̄/b. The step balances the two terms of the entropic regret
        bound, π δ²/(2η) + η π T sd²/2: η = δ/(sd(b) √T). δ = `trust` is the expected error of the first price,
        |ln(π*/π_1)| (0.3: a factor of 1.35). The Euclidean step is that times π_1.
        """
        horizon = validate.dimension("horizon", horizon)
        rate = np.asarray(positive_in_range("budget", budget)) / horizon
        floor_rate = np.asarray(in_range("floor", floor)) / horizon
        with np.errstate(divide="ignore"):
            free = np.asarray(history.mean_value) / np.asarray(in_range("cost_weight", cost_weight))
        least = np.where(floor_rate > 0, history.bid_for(floor_rate), 0.0)
        bid = np.clip(free, least, history.bid_for(rate))
        start = history.mean_value / bid
        scale = 1.0 if mirror == "entropic" else start
        deviation = history.deviation(bid)
        deviation = np.where(deviation > 0, deviation, bid)  # if all past prices are equal
        step = validate.positive_scalar("trust", trust) * scale / (deviation * np.sqrt(horizon))
        return cls(budget, horizon, step, start, mirror, floor, cost_weight)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> MirrorDescentState:
        first, (price,) = self._start(batch_shape, xp, dtype, self.start)
        return MirrorDescentState(first, price, self._no_spending(batch_shape, xp))

    def price(self, state: MirrorDescentState) -> Array:
        return state.price

    def raw_bid(self, state: MirrorDescentState, value: Array, left: Array) -> Array:
        return value_bid(value, state.price, left)

    def accept(self, state: MirrorDescentState, value: Array, cost: Array) -> Array:
        """Return whether to take an offer at a posted price: the argmax of (v − π c) x over {0, 1}, if affordable."""
        return (value >= state.price * cost) & (cost <= self.remaining(state))

    def update(self, state: MirrorDescentState, outcome: Outcome) -> MirrorDescentState:
        price, paid = state.price, like(outcome.paid, state.price)
        lowest = self._moved(price, paid - like(self.rate, price))
        highest = self._moved(price, paid - like(self.floor / self.horizon, price))
        anchor = like(self.cost_weight, price) + 0.0 * price  # of the price's type, also where the anchor is reached
        anchored = maximum(lowest, minimum(highest, anchor))
        return MirrorDescentState(state.round + 1, anchored, state.spent.add(outcome.paid))

    def _moved(self, price: Array, excess: Array) -> Array:
        return mirror_step(self.mirror, price, like(self.step, price) * excess, like(self.start, price))


def value_bid(value: Array, price: Array, left: Array) -> Array:
    """Return v/π, or all the money left if that is less; also at a price ≤ 0, where every request is wanted."""
    is_below = value < price * left
    return where(is_below, value / where(is_below, price, 1.0), left)


# The guarantees as numbers. The proofs are in docs/proofs/pacing.md.


def regret_bound(pacer: DualMirrorDescent, largest_value: float, largest_cost: float) -> Hyper:
    """Bound the expected distance from the hindsight optimum, for i.i.d. requests with v ≤ v̄ and c ≤ c̄.

    Euclidean mirror, no floor, κ = 0, with ρ = budget/T ≤ c̄:

        c̄ v̄/ρ + max(π_1, v̄/ρ)²/(2η) + η T c̄²/2,

    which is O(√T) for η of order 1/√T and a budget in proportion to T.

    Parameters
    ----------
    pacer : DualMirrorDescent
        Euclidean mirror, no floor, no cost weight.
    largest_value, largest_cost : float
        v̄ and c̄.

    Returns
    -------
    float or numpy.ndarray
        In the currency of the values.

    Examples
    --------
    >>> from longterm.money.pacing.mirror_descent import DualMirrorDescent, regret_bound
    >>> pacer = DualMirrorDescent(budget=5e3, horizon=10_000, step=0.02, start=1.0, mirror="euclidean")
    >>> regret_bound(pacer, largest_value=1.0, largest_cost=1.0)
    202.0
    """
    others = np.asarray(pacer.floor) + np.asarray(pacer.cost_weight)
    if pacer.mirror != "euclidean" or np.any(others > 0):
        raise InputError(
            "pacer",
            "has entropic steps, a floor or a cost weight, and the bound covers none of them",
            "Use mirror='euclidean', floor=0 and cost_weight=0",
        )
    v = validate.positive_scalar("largest_value", largest_value)
    c = validate.positive_scalar("largest_cost", largest_cost)
    if np.any(np.asarray(pacer.rate) > c):
        raise InputError(
            "largest_cost",
            f"{c} is lower than the budget per request, {pacer.rate}, so the budget cannot be spent",
            "Give the largest cost of a request",
        )
    ratio, step = v / np.asarray(pacer.rate), np.asarray(pacer.step)
    bound = c * ratio + np.maximum(pacer.start, ratio) ** 2 / (2 * step) + step * pacer.horizon * c**2 / 2
    return bound if bound.ndim else float(bound)


def floor_shortfall(pacer: DualMirrorDescent, *, buy_all_price: float = 0.0) -> Hyper:
    """Bound the amount by which the floor can be missed, for any sequence of requests whose demand allows it.

    Euclidean (π_1 − π₀)/η + ℓ, entropic ln(π_1/π₀)/η + ℓ, where at the price π₀ = `buy_all_price` every request is
    bought (0 for the Euclidean mirror; smallest value / largest cost in general). Demand allows the floor if from every
    request to the last all offers cost at least ℓ = floor/T per request on average; add the missing demand otherwise.
    To be certain of a floor L, ask for one higher by this much, and leave one request's cost between that and the
    budget.

    Parameters
    ----------
    pacer : DualMirrorDescent
        With a floor.
    buy_all_price : float
        π₀: the price of money at which every request is bought.

    Returns
    -------
    float or numpy.ndarray
        In the currency of the floor.

    Examples
    --------
    >>> from longterm.money.pacing.mirror_descent import DualMirrorDescent, floor_shortfall
    >>> pacer = DualMirrorDescent(100.0, 50, step=0.1, start=1.2, mirror="euclidean", floor=60.0, cost_weight=1.0)
    >>> round(floor_shortfall(pacer), 9)
    13.2
    """
    lowest = validate.non_negative_scalar("buy_all_price", buy_all_price)
    if pacer.mirror == "entropic" and lowest == 0:
        raise InputError(
            "buy_all_price",
            "is 0, which an entropic price never reaches",
            "Give the smallest value divided by the largest cost",
        )
    start = np.asarray(pacer.start)
    distance = start - lowest if pacer.mirror == "euclidean" else np.log(start / (lowest or 1.0))
    shortfall = np.maximum(distance, 0.0) / np.asarray(pacer.step) + np.asarray(pacer.floor) / pacer.horizon
    return shortfall if shortfall.ndim else float(shortfall)
