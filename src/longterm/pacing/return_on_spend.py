r"""Return on spend: Σ value won ≥ τ · Σ paid, with or without a budget.

Values are divided by τ, so that the target is Σ g_t ≥ 0 with g_t = v_t x_t − paid_t. The Lagrangian (1+λ)v x −
(λ+μ) paid + μρ is maximised by truthful bidding for the value v(1+λ)/(λ+μ) in a second-price auction:

    joint     bid v (1+λ)/(λ+μ)
    min       bid v · min((1+λ)/λ, 1/μ)                  (two pacers, the lower bid counts)
    guarded   bid min(joint bid, v + Σ g so far)         the return is never below its target, on any sequence

    λ_{t+1} = λ_t e^{−α g_t},     μ_{t+1} = [μ_t + η(paid_t − ρ)]₊ with a budget, else 0;     bids are cut to
    `largest_bid` and to what is left.

**Theorem** (Feng, Padmanabhan and Wang 2022 have the rule; this is derived). ḡ ≥ |g_t|, αḡ ≤ ½.

(i) *Every* sequence, any payment rule with paid ≤ bid ≤ p̄, `joint` or `min`: Σ(paid − v x) ≤ (1/α) ln[(max(λ_1,
αv̄e^{αp̄}) + (e−1)αv̄T)/λ_1]. (ii) i.i.d. requests, second price, no cap on bids in the way, `joint`: OPT − E value
≤ (λ_1/α + 2αḡv̄T)/(1 − αḡ), and with a budget (v̄/ρ)²/(2η) + ηTp̄²/2 + p̄v̄/ρ more.

*Proof.* (i) The sum is (1/α) ln(λ_{T+1}/λ_1), exactly. A win pays at most v(1 + 1/λ), so g ≥ −v/λ and λ_{t+1} ≤ λ_t
e^{αv̄/λ_t}: at most λ_t + (e−1)αv̄ where λ_t ≥ αv̄, and at most αv̄ e^{αp̄} where λ_t < αv̄, because g ≥ −p̄.
(Min-pacing bids at most v(1 + 1/λ) too.) (ii) v x = L_t(λ_t, μ_t) − λ_t g_t − μ_t(ρ − paid_t) and E L_t ≥ OPT/T by
weak duality. From e^{−y} ≤ 1 − y + y², λ_t g_t ≤ (λ_t − λ_{t+1})/α + αλ_t g_t²; where g < 0, λ_t|g_t| ≤ v̄; so Σλ_t
g_t² ≤ ḡ(Σλ_t g_t + 2Tv̄), and (1 − αḡ) Σλ_t g_t ≤ λ_1/α + 2αḡv̄T. The budget's part is that of docs/pacing.md. ∎
(`guarded` bids less; it keeps (i) with 0 and has no regret theorem: with a strict target none is possible without
slack, Vaze and Sinha 2025.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import ROUNDING, FloatArray
from longterm.errors import InputError
from longterm.pacing.auctions import Auctions
from longterm.pacing.base import sound_number, warn_of_overspending
from longterm.pacing.landscapes import Counts, Landscape
from longterm.pacing.mirror_descent import FARTHEST, LONGEST_MOVE


class ReturnState(NamedTuple):
    """What the bidder remembers."""

    round: int
    multiplier: float
    """λ, the price of the return."""
    price: float
    """μ, the price of money."""
    slack: float
    """Σ g: how far the return is above its target, in money."""
    remaining: float
    """Of the budget; infinite without one."""
    counts: Counts | None


@dataclass(frozen=True, eq=False)
class ReturnOnSpend:
    """Bid so that what is won is worth at least `target` times what is paid.

    Parameters
    ----------
    target : float
        τ.
    horizon : int
        T.
    largest_value : float
        v̄, of a request, in money. One that is worth more is bid for as if it were worth v̄, so that (i) holds for it,
        too.
    largest_bid : float
        p̄: bids are cut to it. (Where the return does not bind, λ → 0 and v(1 + 1/λ) has no limit of its own.)
    budget : float, optional
        The total that may be paid; never exceeded.
    rule : {"joint", "min", "guarded"}
        See the module.
    landscape : Landscape, optional
        For first-price auctions: bids maximise ((1+λ)v − (λ+μ)b) Ĝ(b). (i) still holds, because such a bid is at
        most v(1+λ)/(λ+μ).
    start : float
        λ_1.
    step, price_step : float, optional
        α and η; by default those that balance the theorem.

    Examples
    --------
    >>> from longterm.pacing import ReturnOnSpend
    >>> pacer = ReturnOnSpend(target=2.0, horizon=100, largest_value=10.0, largest_bid=20.0)
    >>> state = pacer.init()
    >>> pacer.act(state, 8.0)  # 8 is worth 4 at this target; bid 4 (1 + 1/λ)
    8.0
    >>> state = pacer.settle(state, 8.0, won=True, paid=6.0)
    >>> state.slack, round(state.multiplier, 3)
    (-2.0, 1.014)
    """

    target: float
    horizon: int
    largest_value: float
    largest_bid: float
    budget: float | None = None
    rule: Literal["joint", "min", "guarded"] = "joint"
    landscape: Landscape | None = None
    start: float = 1.0
    step: float | None = None
    price_step: float | None = None

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "target", "largest_value", "largest_bid", "start")
        validate.count("horizon", self.horizon)
        if self.rule not in ("joint", "min", "guarded"):
            raise InputError("rule", f"{self.rule!r} is not known", "Choose 'joint', 'min' or 'guarded'")
        if self.landscape is not None and self.rule == "min":
            raise InputError("rule", "'min' is for second price", "Take 'joint' or 'guarded' with a landscape")
        value, most, T = self._value, self.largest_bid, self.horizon
        reach = max(value, most)
        if self.step is None:
            usual = min(np.sqrt(self.start / (2 * reach * value * T)), 0.5 / reach)
            validate.set_frozen(self, step=float(usual))
        validate.validate_fields(self, validate.positive_scalar, "step")
        if self.budget is not None:
            budget = validate.positive_scalar("budget", self.budget)
            usual = value / (budget / T * most * np.sqrt(T)) if self.price_step is None else self.price_step
            validate.set_frozen(self, budget=budget, price_step=validate.positive_scalar("price_step", float(usual)))

    @property
    def _value(self) -> float:
        return self.largest_value / self.target

    def init(self) -> ReturnState:
        """Before the first request."""
        left = np.inf if self.budget is None else self.budget
        return ReturnState(1, self.start, 0.0, 0.0, left, None if self.landscape is None else self.landscape.init())

    def act(self, state: ReturnState, value: float, *, hold: float = 0.0) -> float:
        """The bid for a request of this value (in money, before the target): never above what is left.

        Parameters
        ----------
        state : ReturnState
            The state.
        value : float
            What the request is worth.
        hold : float
            The sum of the bids that have not been answered yet: so much is not bid a second time. The guarded rule
            holds it back from the slack of the return as well.
        """
        v = min(sound_number("value", value, state.round), self.largest_value) / self.target
        lam, mu = state.multiplier, state.price
        held = sound_number("hold", hold, state.round)
        most = max(min(self.largest_bid, state.remaining - held), 0.0)
        if self.rule == "guarded":
            most = min(most, (v + max(state.slack - held, 0.0)) * (1 - ROUNDING))
        if self.landscape is not None:
            assert state.counts is not None
            bids = self.landscape.bids
            payoff = ((1 + lam) * v - (lam + mu) * bids) * self.landscape.chance(state.counts, 0)
            return float(bids[int(np.where(bids <= most, payoff, -np.inf).argmax())])
        if self.rule == "min":
            factor = min((1 + lam) / lam if lam > 0 else np.inf, 1 / mu if mu > 0 else np.inf)
        else:
            factor = (1 + lam) / (lam + mu) if lam + mu > 0 else np.inf
        return float(min(v * factor if v > 0 else 0.0, most))

    def settle(
        self, state: ReturnState, value: float, *, won: bool, paid: float, bid: float = 0.0, price: float | None = None
    ) -> ReturnState:
        """The state after an auction; `bid` and `price` are for a landscape only.

        A charge above what is left is recorded, with an OverspentWarning.
        """
        v, paid = sound_number("value", value, state.round) / self.target, sound_number("paid", paid, state.round)
        if paid > max(state.remaining, 0.0):
            warn_of_overspending(paid, state.remaining, paid - state.remaining, state.round)
        assert self.step is not None
        gain = (v if won else 0.0) - paid
        mu = state.price
        if self.budget is not None:
            assert self.price_step is not None
            mu = max(mu + self.price_step * (paid - self.budget / self.horizon), 0.0)
        counts = state.counts
        if self.landscape is not None:
            assert counts is not None
            counts = self.landscape.learn(counts, 0, bid, won, price)
        growth = math.exp(min(-self.step * gain, LONGEST_MOVE))  # one absurd payment must not make it infinite
        moved = min(state.multiplier * growth, max(FARTHEST * self.start, state.multiplier))
        return ReturnState(state.round + 1, moved, mu, state.slack + gain, state.remaining - paid, counts)

    def overspent(self, state: ReturnState) -> float:
        """By how much more was charged than the budget; 0 where it was not."""
        return max(-state.remaining, 0.0)

    def violation_bound(self) -> float:
        """Part (i): how far Σ paid can be above Σ value/τ, on every sequence. 0 for the guarded rule."""
        if self.rule == "guarded":
            return 0.0
        assert self.step is not None
        a, v, most, start = self.step, self._value, self.largest_bid, self.start
        top = max(start, a * v * np.exp(a * most)) + (math.e - 1) * a * v * self.horizon
        return float(np.log(top / start) / a)

    def regret_bound(self) -> float:
        """Part (ii), in units of value/τ: independent requests, second price, `largest_bid` cuts nothing."""
        if self.rule != "joint" or self.landscape is not None:
            raise InputError("rule", "no regret theorem", "It is for rule='joint' in second-price auctions")
        assert self.step is not None
        a, v, most, T = self.step, self._value, self.largest_bid, self.horizon
        reach = max(v, most)
        if a * reach > 0.5:
            raise InputError("step", f"{a:g} is above 1/(2ḡ) = {0.5 / reach:g}", "Leave it out")
        bound = (self.start / a + 2 * a * reach * v * T) / (1 - a * reach)
        if self.budget is not None:
            assert self.price_step is not None
            rho, eta = self.budget / T, self.price_step
            bound += (v / rho) ** 2 / (2 * eta) + eta * T * most**2 / 2 + most * v / rho
        return float(bound)


class ReturnRun(NamedTuple):
    """What happened, auction by auction.

    Parameters
    ----------
    bids : array, shape (T,)
        What was bid.
    paid : array, shape (T,)
        What was paid.
    won : array, shape (T,)
        1 where the bid won, else 0.
    value : float
        Σ of the values won, in money.
    slack : array, shape (T,)
        Σ g after each auction, in units of value/τ.
    """

    bids: FloatArray
    paid: FloatArray
    won: FloatArray
    value: float
    slack: FloatArray


def play_return(pacer: ReturnOnSpend, auctions: Auctions) -> ReturnRun:
    """Replay a log: second price, or first price where the pacer has a landscape.

    Parameters
    ----------
    pacer : ReturnOnSpend
        The bidder.
    auctions : Auctions
        The log, its values in money.

    Returns
    -------
    ReturnRun
        What happened, auction by auction.
    """
    T = len(auctions)
    bids, paid, won, slack = np.empty(T), np.empty(T), np.empty(T), np.empty(T)
    state = pacer.init()
    for t, (value, market) in enumerate(zip(auctions.values.tolist(), auctions.prices.tolist(), strict=True)):
        bids[t] = bid = pacer.act(state, value)
        won[t] = bid >= market
        paid[t] = (market if pacer.landscape is None else bid) if won[t] else 0.0
        state = pacer.settle(state, value, won=bool(won[t]), paid=float(paid[t]), bid=bid, price=market)
        slack[t] = state.slack
    return ReturnRun(bids, paid, won, float(auctions.values @ won), slack)
