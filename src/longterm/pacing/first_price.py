r"""First-price auctions under a budget: bid to win what is worth the money, not what it is worth.

A winner pays its own bid. With the price of money λ and the landscape Ĝ(· | z) of the request's cell,

    b_t = smallest argmax over the grid of (v_t − (κ + λ_t) b) Ĝ(b | z_t),        cut to what is left,

and λ moves with what was *paid* (Wang, Yang, Deng and Kong 2023 use the estimate b Ĝ(b); a landscape that drifts
then makes λ wrong, and what was paid is unbiased whatever Ĝ is):

    euclidean   λ_{t+1} = [λ_t + η (paid_t − ρ_t)]₊           entropic   λ_{t+1} = λ_t e^{η (paid_t − ρ_t)/ρ_t}

with ρ_t = what is left / requests left (`replan`) or budget/T. A request's cell is its value's, on a logarithmic
scale: values and prices are correlated, and that is where shading can gain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.pacing.auctions import Auctions
from longterm.pacing.base import Engine, is_compiled, sound_number, warn_of_overspending
from longterm.pacing.compiled import can_play_first_price, play_first_price_compiled
from longterm.pacing.landscapes import Counts, Landscape, SeenPrices
from longterm.pacing.mirror_descent import FARTHEST, LONGEST_MOVE


class FirstPriceState(NamedTuple):
    """What a first-price bidder remembers."""

    round: int
    price: float
    """λ, the price of money."""
    remaining: float
    counts: Counts


@dataclass(frozen=True, eq=False)
class FirstPricePacer:
    """Bid in first-price auctions with a hard budget.

    Parameters
    ----------
    budget : float
        The total that may be paid. Bids are never above what is left, so no sequence overspends.
    horizon : int
        T, the requests expected.
    landscape : Landscape
        How wins are learned: `SeenPrices`, `LostPrices` or `WonOrLost`.
    start : float
        λ_1, the value that a unit of money should bring.
    step : float
        η.
    mirror : {"entropic", "euclidean"}
        How λ moves.
    replan : bool
        Plan with what is left.
    cost_weight : float
        κ: 0 maximises value, 1 value less payments.
    mean_value : float
        The value of a usual request; cells are bands of value about it.
    spread : float
        The cells span values from mean_value/spread to mean_value·spread.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.pacing import FirstPricePacer, SeenPrices
    >>> pacer = FirstPricePacer(20.0, 10, SeenPrices(np.arange(11.0)), start=0.5, step=0.1, mean_value=4.0)
    >>> state = pacer.init()
    >>> for price in (3.0, 3.0, 6.0):
    ...     state = pacer.settle(state, 4.0, pacer.act(state, 4.0), price)
    >>> pacer.act(state, 4.0)  # 3 wins two of three for (4 − 3λ), 6 all for (4 − 6λ)
    3.0
    """

    budget: float
    horizon: int
    landscape: Landscape
    start: float
    step: float
    mirror: Literal["entropic", "euclidean"] = "entropic"
    replan: bool = True
    cost_weight: float = 0.0
    mean_value: float = 1.0
    spread: float = 4.0

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "budget", "start", "step", "mean_value", "spread")
        validate.validate_fields(self, validate.non_negative_scalar, "cost_weight")
        validate.count("horizon", self.horizon)
        if self.mirror not in ("entropic", "euclidean"):
            raise InputError("mirror", f"{self.mirror!r} is not known", "Choose 'entropic' or 'euclidean'")
        if self.spread <= 1:
            raise InputError("spread", f"{self.spread} is not above 1", "Give 4, for example")

    def init(self) -> FirstPriceState:
        """Before the first request."""
        return FirstPriceState(1, self.start, self.budget, self.landscape.init())

    def cell(self, value: float) -> int:
        """The band of a value."""
        return int(self.cells(value))

    def cells(self, values: ArrayLike) -> NDArray[np.int64]:
        """The bands of many values."""
        place = (np.log(np.maximum(np.asarray(values) / self.mean_value, 1e-300)) / np.log(self.spread) + 1) / 2
        return np.asarray(np.clip(place * self.landscape.cells, 0, self.landscape.cells - 1)).astype(np.int64)

    def act(self, state: FirstPriceState, value: float, *, hold: float = 0.0) -> float:
        """The bid for a request of this value: on the grid, never above what is left and not held back.

        Parameters
        ----------
        state : FirstPriceState
            The state.
        value : float
            What the request is worth.
        hold : float
            The sum of the bids that have not been answered yet: so much is not bid a second time.
        """
        value = sound_number("value", value, state.round)
        left = state.remaining - sound_number("hold", hold, state.round)
        bids = self.landscape.bids
        chances = self.landscape.chance(state.counts, self.cell(value))
        payoff = (value - (self.cost_weight + state.price) * bids) * chances
        payoff = np.where(bids <= left, payoff, -np.inf)
        return float(bids[int(payoff.argmax())])

    def settle(
        self, state: FirstPriceState, value: float, bid: float, price: float | None, won: bool | None = None
    ) -> FirstPriceState:
        """The state after an auction. A charge above what is left is recorded, with an OverspentWarning.

        Parameters
        ----------
        state : FirstPriceState
            Before.
        value, bid : float
            Of this request.
        price : float or None
            The highest bid of the others, where it is told.
        won : bool, optional
            Whether it was won; by default bid ≥ price.
        """
        value, bid = sound_number("value", value, state.round), sound_number("bid", bid, state.round)
        if price is not None:
            price = sound_number("price", price, state.round)
        if won is None:
            if price is None:
                raise InputError("won", "and price are both missing", "Give one of them", round=state.round)
            won = bid >= price
        paid = bid if won else 0.0
        if paid > max(state.remaining, 0.0):
            warn_of_overspending(paid, state.remaining, paid - state.remaining, state.round)
        left = max(self.horizon - state.round + 1, 1)
        plan = state.remaining / left if self.replan else self.budget / self.horizon
        if self.mirror == "euclidean":
            moved = max(state.price + self.step * (paid - plan), 0.0)
        elif plan > 0:
            move = min(self.step * (paid - plan) / plan, LONGEST_MOVE)  # one absurd payment must not make it infinite
            moved = min(state.price * math.exp(move), max(FARTHEST * self.start, state.price))
        else:
            moved = state.price
        counts = self.landscape.learn(state.counts, self.cell(value), bid, won, price)
        return FirstPriceState(state.round + 1, moved, state.remaining - paid, counts)

    def overspent(self, state: FirstPriceState) -> float:
        """By how much more was charged than the budget; 0 where it was not."""
        return max(-state.remaining, 0.0)

    def bound(self, largest_value: float) -> float:
        r"""Regret against the best budget-keeping strategy that knows the law of prices, in expectation.

        For i.i.d. requests with value ≤ v̄ independent of the price, prices on the grid, `SeenPrices` with one cell,
        Euclidean steps without replanning, κ = 0:

            b̄v̄/ρ + max(λ_1, v̄/ρ)²/(2η) + ηT b̄²/2 + 4v̄ √(πT/2).

        *Proof.* As for second price (docs/pacing.md) with payments ≤ b̄, the end of the grid; the bid is best for Ĝ
        and not for G, which costs at most 2 sup|Ĝ − G| times the largest (v − λb) in play, v̄; E sup|Ĝ_n − G| ≤
        √(π/(2n)) (Dvoretzky–Kiefer–Wolfowitz–Massart, integrated), and Σ 1/√n ≤ 2√T. ∎
        """
        exact = isinstance(self.landscape, SeenPrices) and self.landscape.cells == 1
        if not exact or self.mirror != "euclidean" or self.replan or self.cost_weight:
            raise InputError(
                "landscape",
                "no theorem covers this bidder",
                "It is for SeenPrices with one cell, mirror='euclidean', replan=False, cost_weight=0",
            )
        v, T, rho, most = largest_value, self.horizon, self.budget / self.horizon, float(self.landscape.bids[-1])
        return float(
            most * v / rho
            + max(self.start, v / rho) ** 2 / (2 * self.step)
            + self.step * T * most**2 / 2
            + 4 * v * np.sqrt(np.pi * T / 2)
        )


class FirstPriceRun(NamedTuple):
    """What happened, auction by auction.

    Parameters
    ----------
    bids : array, shape (T,)
        What was bid.
    paid : array, shape (T,)
        What was paid: the bid where it won, else 0.
    won : array of bool, shape (T,)
        Whether the bid won.
    price : array, shape (T,)
        λ, in force when the bid was made.
    value : float
        Σ of the values won.
    """

    bids: FloatArray
    paid: FloatArray
    won: np.ndarray[Any, np.dtype[np.bool_]]
    price: FloatArray
    value: float


def play_first_price(pacer: FirstPricePacer, auctions: Auctions, *, engine: Engine = "auto") -> FirstPriceRun:
    """Replay a log as first-price auctions: a bid wins where it is at least the market price, and is paid.

    Parameters
    ----------
    pacer : FirstPricePacer
        The bidder. It is told as much of the market prices as its landscape learns from.
    auctions : Auctions
        The log.
    engine : {"auto", "numpy", "compiled"}
        "numpy" is the reference: `act` and `settle`, auction by auction. "compiled" (extra `linear`) is the same on
        plain numbers, about thirty times faster. "auto" takes it where it is there.

    Returns
    -------
    FirstPriceRun
        What happened, auction by auction.
    """
    compiled = is_compiled(engine, pacer.landscape, ready=can_play_first_price(pacer.landscape))
    bids, price = (_compiled_bids if compiled else _reference_bids)(pacer, auctions)
    taken = bids >= auctions.prices
    return FirstPriceRun(bids, np.where(taken, bids, 0.0), taken, price, float(auctions.values[taken].sum()))


def _compiled_bids(pacer: FirstPricePacer, auctions: Auctions) -> tuple[FloatArray, FloatArray]:
    return play_first_price_compiled(
        pacer.landscape,
        auctions.values,
        auctions.prices,
        pacer.cells(auctions.values),
        (pacer.budget, pacer.horizon, pacer.start, pacer.step, pacer.cost_weight),
        pacer.mirror == "euclidean",
        pacer.replan,
    )


def _reference_bids(pacer: FirstPricePacer, auctions: Auctions) -> tuple[FloatArray, FloatArray]:
    T = len(auctions)
    bids, price = np.empty(T), np.empty(T)
    tells = isinstance(pacer.landscape, SeenPrices)
    state = pacer.init()
    for t, (value, market) in enumerate(zip(auctions.values.tolist(), auctions.prices.tolist(), strict=True)):
        price[t] = state.price
        bids[t] = bid = pacer.act(state, value)
        won = bid >= market
        state = pacer.settle(state, value, bid, market if tells or not won else None, won)
    return bids, price
