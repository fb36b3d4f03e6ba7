r"""First-price auctions under a budget, where a winner pays its own bid.

With the price of money λ and the landscape Ĝ(· | z) of the request's cell,

    b_t = smallest argmax over the grid of (v_t − (κ + λ_t) b) Ĝ(b | z_t),        cut to the money left,

and λ moves with the *payment*. (Wang, Yang, Deng and Kong 2023 use the estimate b Ĝ(b). A landscape that drifts then
makes λ wrong; the payment is unbiased whatever Ĝ is.)

    euclidean   λ_{t+1} = [λ_t + η (paid_t − ρ_t)]₊           entropic   λ_{t+1} = λ_t e^{η (paid_t − ρ_t)/ρ_t}

with ρ_t = money left / requests left (`replan`) or budget/T. The cell of a request is a band of its value on a
logarithmic scale: values and prices are correlated, and shading gains from that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base import validate
from longterm._base.arrays import Array
from longterm._base.exact_sum import ExactSum
from longterm._base.selection import maximum
from longterm.errors import InputError
from longterm.money.budgets import positive_scalar_in_range, scalar_in_range
from longterm.money.pacing.base import Outcome, Pacer, has_won
from longterm.money.pacing.landscapes import Landscape, PriceCounts, SeenPrices
from longterm.money.prices import Mirror, mirror_step


class FirstPriceState(NamedTuple):
    """The round, the price of money λ, the payments and the histograms of the landscape."""

    round: Array
    price: Array
    spent: ExactSum
    counts: PriceCounts


@dataclass(frozen=True, eq=False)
class FirstPricePacer(Pacer[FirstPriceState]):
    """A bidder in first-price auctions with a hard budget. One bidder only, no batches.

    Parameters
    ----------
    budget : float
        The total that may be paid. Bids are never above the money left, so no sequence overspends.
    horizon : int
        T, the requests expected.
    landscape : Landscape
        The estimate of winning probabilities: `SeenPrices`, `LostPrices` or `WonOrLost`.
    start : float
        λ_1, the value that a unit of money should bring.
    step : float
        η.
    mirror : {"entropic", "euclidean"}
        Multiply λ, or add to it.
    replan : bool
        Plan with the money left.
    cost_weight : float
        κ: 0 maximises value, 1 value less payments.
    mean_value : float
        The value of a usual request, in the middle of the cells.
    spread : float
        The cells span values from mean_value/spread to mean_value·spread.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.money.pacing.base import Outcome
    >>> from longterm.money.pacing.first_price import FirstPricePacer
    >>> from longterm.money.pacing.landscapes import SeenPrices
    >>> pacer = FirstPricePacer(20.0, 10, SeenPrices(np.arange(11.0)), start=0.5, step=0.1, mean_value=4.0)
    >>> state = pacer.init()
    >>> for price in (3.0, 3.0, 6.0):
    ...     bid = pacer.act(state, 4.0)
    ...     state = pacer.settle(state, Outcome(bid if bid >= price else 0.0, 4.0, price, bid))
    >>> float(pacer.act(state, 4.0))  # 3 wins two of three for (4 − 3λ), 6 all for (4 − 6λ)
    3.0
    """

    budget: float
    horizon: int
    landscape: Landscape
    start: float
    step: float
    mirror: Mirror = "entropic"
    replan: bool = True
    cost_weight: float = 0.0
    mean_value: float = 1.0
    spread: float = 4.0

    def __post_init__(self) -> None:
        validate.validate_fields(self, positive_scalar_in_range, "budget", "start", "step", "mean_value", "spread")
        validate.validate_fields(self, scalar_in_range, "cost_weight")
        validate.count("horizon", self.horizon)
        if self.mirror not in ("entropic", "euclidean"):
            raise InputError("mirror", f"{self.mirror!r} is not known", "Choose 'entropic' or 'euclidean'")
        if self.spread <= 1:
            raise InputError("spread", f"{self.spread} is not above 1", "Give a number such as 4")

    @property
    def is_first_price(self) -> bool:
        return True

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> FirstPriceState:
        return FirstPriceState(np.int64(1), np.float64(self.start), ExactSum.zeros(), self.landscape.init())

    def price(self, state: FirstPriceState) -> Array:
        return state.price

    def cells(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the cells of values."""
        place = (np.log(np.maximum(np.asarray(values) / self.mean_value, 1e-300)) / np.log(self.spread) + 1) / 2
        return np.asarray(np.clip(place * self.landscape.cells, 0, self.landscape.cells - 1)).astype(np.int64)

    def raw_bid(self, state: FirstPriceState, value: Array, left: Array) -> Array:
        bids, chances = self.landscape.bids, self.landscape.chance(state.counts, int(self.cells(value)))
        payoff = (value - (self.cost_weight + state.price) * bids) * chances
        return bids[int(np.where(bids <= left, payoff, -np.inf).argmax())]

    def settle(self, state: FirstPriceState, outcome: Outcome) -> FirstPriceState:
        if outcome.value is None or outcome.bid is None:
            what = "has no value or no bid"
            raise InputError("outcome", what, "Pass value= and bid=, from which the landscape is learned")
        return super().settle(state, outcome._replace(won=has_won(outcome, int(state.round))))

    def update(self, state: FirstPriceState, outcome: Outcome) -> FirstPriceState:
        plan = self.budget / self.horizon
        if self.replan:
            plan = (self.budget - state.spent.value) / maximum(float(self.horizon - state.round + 1), 1.0)
        excess, price = outcome.paid - plan, state.price
        if self.mirror == "euclidean":
            price = maximum(mirror_step("euclidean", price, self.step * excess, self.start), 0.0)
        elif plan > 0:
            price = mirror_step("entropic", price, self.step * excess / plan, self.start)
        auction = float(outcome.bid), bool(outcome.won), outcome.price
        counts = self.landscape.learn(state.counts, int(self.cells(outcome.value)), *auction)
        return FirstPriceState(state.round + 1, price, state.spent.add(outcome.paid), counts)

    def bound(self, largest_value: float) -> float:
        r"""Bound the expected regret against the best budget-keeping strategy that knows the law of prices.

        For i.i.d. requests with value ≤ v̄ independent of the price, prices on the grid, `SeenPrices` with one cell,
        Euclidean steps without replanning, κ = 0:

            b̄v̄/ρ + max(λ_1, v̄/ρ)²/(2η) + ηT b̄²/2 + 4v̄ √(πT/2).

        The proof is in docs/proofs/pacing.md.
        """
        exact = isinstance(self.landscape, SeenPrices) and self.landscape.cells == 1
        if not exact or self.mirror != "euclidean" or self.replan or self.cost_weight:
            raise InputError(
                "pacer",
                "has settings that the theorem does not cover",
                "Use SeenPrices with one cell, mirror='euclidean', replan=False, cost_weight=0",
            )
        v, T, rho, most = largest_value, self.horizon, self.budget / self.horizon, float(self.landscape.bids[-1])
        mirror = max(self.start, v / rho) ** 2 / (2 * self.step) + self.step * T * most**2 / 2
        return float(most * v / rho + mirror + 4 * v * np.sqrt(np.pi * T / 2))
