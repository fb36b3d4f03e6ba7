r"""Return on spend: Σ value won ≥ τ · Σ paid, with or without a budget.

Values are divided by τ, so that the target is Σ g_t ≥ 0 with g_t = v_t x_t − paid_t. The Lagrangian (1+λ)v x −
(λ+μ) paid + μρ is maximised by truthful bidding for the value v(1+λ)/(λ+μ) in a second-price auction:

    joint     bid v (1+λ)/(λ+μ)
    guarded   bid min(joint bid, v + Σ g so far)         the return is never below its target, on any sequence

    λ_{t+1} = λ_t e^{−α g_t},     μ_{t+1} = [μ_t + η(paid_t − ρ)]₊ with a budget, else 0

Bids are cut to `largest_bid` and to the money left.

**Theorem** (the rule is of Feng, Padmanabhan and Wang 2022; the bounds are derived here). ḡ ≥ |g_t|, αḡ ≤ ½.

(i) *Every* sequence, any payment rule with paid ≤ bid ≤ p̄, `joint`: Σ(paid − v x) ≤ (1/α) ln[(max(λ_1,
αv̄e^{αp̄}) + (e−1)αv̄T)/λ_1]. (ii) i.i.d. requests, second price, no cap on bids in the way, `joint`: OPT − E value
≤ (λ_1/α + 2αḡv̄T)/(1 − αḡ), and with a budget (v̄/ρ)²/(2η) + ηTp̄²/2 + p̄v̄/ρ more.

The proof is in docs/proofs/pacing.md.

`guarded` bids less. It keeps (i) with 0 and has no regret theorem: with a strict target none is possible without slack
(Vaze and Sinha 2025).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray
from longterm._base.exact_sum import ExactSum
from longterm.errors import InputError
from longterm.money.budgets import positive_scalar_in_range
from longterm.money.pacing.auction_replay import PacingRun
from longterm.money.pacing.base import Outcome, Pacer, has_won
from longterm.money.pacing.landscapes import Landscape, PriceCounts
from longterm.money.prices import entropic_step

SLACK_GUARD = 1e-12
"""The guarded bid stays below the slack by this factor, because values divided by the target are rounded."""


class ReturnState(NamedTuple):
    """The state of a bidder with a target for its return."""

    round: Array
    multiplier: float
    """λ, the price of the return."""
    price: float
    """μ, the price of money."""
    slack: ExactSum
    """Σ g, the distance of the return from its target, in money."""
    spent: ExactSum
    counts: PriceCounts | None


@dataclass(frozen=True, eq=False)
class ReturnOnSpend(Pacer[ReturnState]):
    """A bidder that wins at least `target` times the value of its payments. One bidder only, no batches.

    Parameters
    ----------
    target : float
        τ.
    horizon : int
        T.
    largest_value : float
        v̄, of a request, in money. A higher value is bid for as if it were v̄, so that (i) holds for it, too.
    largest_bid : float
        p̄: bids are cut to it. (If the return does not bind, λ → 0 and v(1 + 1/λ) has no limit of its own.)
    budget : float, optional
        The total that may be paid; never exceeded.
    rule : {"joint", "guarded"}
        See above.
    landscape : Landscape, optional
        For first-price auctions: the bid maximises ((1+λ)v − (λ+μ)b) Ĝ(b) over the grid.
    start : float
        λ_1.
    step, price_step : float, optional
        α and η. Default: those that balance the theorem's terms.

    Examples
    --------
    >>> from longterm.money.pacing.base import Outcome
    >>> from longterm.money.pacing.return_on_spend import ReturnOnSpend
    >>> pacer = ReturnOnSpend(target=2.0, horizon=100, largest_value=10.0, largest_bid=20.0)
    >>> state = pacer.init()
    >>> float(pacer.act(state, 4.0))  # 4/2 · (1 + 1)/1
    4.0
    >>> state = pacer.settle(state, Outcome(paid=3.0, value=4.0, won=True))
    >>> float(state.slack.value)  # 4/2 − 3
    -1.0
    """

    target: float
    horizon: int
    largest_value: float
    largest_bid: float
    budget: float | None = None  # type: ignore[assignment]
    rule: Literal["joint", "guarded"] = "joint"
    landscape: Landscape | None = None
    start: float = 1.0
    step: float | None = None
    price_step: float | None = None

    def __post_init__(self) -> None:
        validate.validate_fields(self, positive_scalar_in_range, "target", "largest_value", "largest_bid", "start")
        validate.count("horizon", self.horizon)
        if self.rule not in ("joint", "guarded"):
            raise InputError("rule", f"{self.rule!r} is not known", "Choose 'joint' or 'guarded'")
        validate.validate_fields(self, positive_scalar_in_range, "budget", "step", "price_step", optional=True)
        _ = self._steps  # it raises if a default is out of range

    @cached_property
    def _steps(self) -> tuple[float, float]:
        """α and η; η is 0 without a budget. They follow a budget and a horizon that change."""
        value, most, T = self._value, self.largest_bid, self.horizon
        reach = max(value, most)
        default = min(math.sqrt(self.start / (2 * reach * value * T)), 0.5 / reach)
        step = positive_scalar_in_range("step", default if self.step is None else self.step)
        if self.budget is None:
            return step, 0.0
        default = value / (self.budget / T * most * math.sqrt(T))
        return step, positive_scalar_in_range("price_step", default if self.price_step is None else self.price_step)

    @property
    def _value(self) -> float:
        """v̄ in units of the target."""
        return self.largest_value / self.target

    @property
    def is_first_price(self) -> bool:
        return self.landscape is not None

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> ReturnState:
        counts = None if self.landscape is None else self.landscape.init()
        return ReturnState(np.int64(1), self.start, 0.0, ExactSum.zeros(), ExactSum.zeros(), counts)

    def price(self, state: ReturnState) -> Array:
        return state.price

    def remaining(self, state: ReturnState) -> Array:
        return math.inf if self.budget is None else super().remaining(state)

    def overspent(self, state: ReturnState) -> Array:
        return 0.0 if self.budget is None else super().overspent(state)

    def act(self, state: ReturnState, value: Array, *, hold: Array = 0.0) -> Array:
        """Return the bid for a request of this value in money. The guarded rule also holds back from the slack."""
        if self.rule == "guarded" and hold:
            state = state._replace(slack=state.slack.add(-float(hold)))
        return super().act(state, value, hold=hold)

    def raw_bid(self, state: ReturnState, value: Array, left: Array) -> Array:
        v = min(value, self.largest_value) / self.target
        lam, mu = state.multiplier, state.price
        most = max(min(self.largest_bid, left), 0.0)
        if self.rule == "guarded":
            most = min(most, (v + max(float(state.slack.value), 0.0)) * (1 - SLACK_GUARD))
        if self.landscape is not None:
            assert state.counts is not None
            bids = self.landscape.bids
            payoff = ((1 + lam) * v - (lam + mu) * bids) * self.landscape.chance(state.counts, 0)
            return bids[int(np.where(bids <= most, payoff, -np.inf).argmax())]
        factor = (1 + lam) / (lam + mu) if lam + mu > 0 else math.inf
        return float(min(v * factor if v > 0 else 0.0, most))

    def settle(self, state: ReturnState, outcome: Outcome) -> ReturnState:
        if outcome.value is None:
            raise InputError("outcome", "has no value", "Pass value=, from which the return is computed")
        return super().settle(state, outcome._replace(won=has_won(outcome, int(state.round))))

    def update(self, state: ReturnState, outcome: Outcome) -> ReturnState:
        step, price_step = self._steps
        paid, won, mu, counts = float(outcome.paid), bool(outcome.won), state.price, state.counts
        gain = (float(outcome.value) / self.target if won else 0.0) - paid
        if self.budget is not None:
            mu = max(mu + price_step * (paid - self.budget / self.horizon), 0.0)
        if self.landscape is not None:
            assert counts is not None
            counts = self.landscape.learn(counts, 0, float(outcome.bid), won, outcome.price)
        lam = float(entropic_step(state.multiplier, -step * gain, self.start))
        return ReturnState(state.round + 1, lam, mu, state.slack.add(gain), state.spent.add(paid), counts)

    def correct(self, state: ReturnState, before: Array, after: Array) -> ReturnState:
        """Return the state after a payment was replaced by another one: the slack changes by as much."""
        return super().correct(state, before, after)._replace(slack=state.slack.add(before).add(-after))

    def slack(self, run: PacingRun) -> FloatArray:
        """Return Σ g after each auction of a run, in units of value/τ."""
        return np.cumsum(run.auctions.values * run.won / self.target - run.paid)

    def violation_bound(self) -> float:
        """Return part (i): a bound on Σ paid − Σ value/τ for every sequence; 0 for the guarded rule."""
        if self.rule == "guarded":
            return 0.0
        a, v, most, start = self._steps[0], self._value, self.largest_bid, self.start
        top = max(start, a * v * np.exp(a * most)) + (math.e - 1) * a * v * self.horizon
        return float(np.log(top / start) / a)

    def regret_bound(self) -> float:
        """Return part (ii), in units of value/τ: i.i.d. requests, second price, `largest_bid` cuts nothing."""
        if self.rule != "joint" or self.landscape is not None:
            raise InputError(
                "rule", "has no regret theorem in this setting", "Use rule='joint' in second-price auctions"
            )
        (a, eta), v, most, T = self._steps, self._value, self.largest_bid, self.horizon
        reach = max(v, most)
        if a * reach > 0.5:
            raise InputError(
                "step",
                f"{a:g} is above 1/(2ḡ) = {0.5 / reach:g}, the largest that the theorem allows",
                "Leave step= out to use the theorem's step",
            )
        bound = (self.start / a + 2 * a * reach * v * T) / (1 - a * reach)
        if self.budget is not None:
            rho = self.budget / T
            bound += (v / rho) ** 2 / (2 * eta) + eta * T * most**2 / 2 + most * v / rho
        return float(bound)
