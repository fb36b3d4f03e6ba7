"""Two pacers to compare with: the rule that people write by hand, and A-OGD on a mixture of prices.

They have the hard budget of every pacer. `examples/pacing.py` runs them beside dual mirror descent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from longterm import AOGD, Problem, observe
from longterm._base.exact_sum import ExactSum
from longterm.errors import InputError
from longterm.money import Outcome, Pacer, PriceHistory, replay_auctions
from longterm.problems.constraints import VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Simplex

SMALLEST_FACTOR, LARGEST_FACTOR = 0.1, 10.0
GAINS = (10.0, 20.0, 30.0, 50.0, 100.0, 200.0)
"""The gains that `tuned_controller` tries."""
GOLDEN = (5**0.5 - 1) / 2


class ControllerState(NamedTuple):
    """The round, the factor m and the payments."""

    round: Any
    factor: Any
    spent: ExactSum


@dataclass(frozen=True, eq=False)
class ProportionalController(Pacer[ControllerState]):
    """Bid in proportion to the value, with a factor that follows the spend error.

        bid_t = base · (v_t / v̄) · m,      m = 1 + gain · (planned − spent)/budget, kept within [0.1, 10],

    with planned = ρ (t − 1), an even spender's total, and m reset every `every` requests, like a job that runs each
    quarter of an hour. It is nearly dual mirror descent: the entropic rule without a floor is bid = (v/π_1) e^{η
    (planned − spent)}, so this is its first-order expansion with gain = η · budget. Theory supplies the gain.

    Parameters
    ----------
    budget, base_bid, gain : float or array
        The most that may be spent, the bid for a mean request on plan, and the change of the factor per error.
    horizon, every : int
        T, the requests of a day, and the number of requests after which the factor is reset.
    mean_value : float
        The mean value of a request.

    Examples
    --------
    >>> pacer = ProportionalController(100.0, 10, base_bid=8.0, mean_value=0.5, gain=2.0, every=1)
    >>> state = pacer.settle(pacer.init(), Outcome(paid=0.0))  # 10 behind plan: m = 1 + 2 · 0.1
    >>> round(float(pacer.act(state, 0.5)), 9)
    9.6
    """

    budget: Any
    horizon: int
    base_bid: Any
    mean_value: float
    gain: Any
    every: int

    @classmethod
    def calibrated(
        cls, budget: Any, horizon: int, history: PriceHistory, *, gain: Any = 30.0, adjustments: int = 96
    ) -> ProportionalController:
        """Return a controller with the base bid from past prices; 96 adjustments are one each quarter of an hour."""
        base = history.bid_for(np.asarray(budget) / horizon)
        return cls(budget, horizon, base, history.mean_value, gain, max(1, horizon // adjustments))

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> ControllerState:
        shape = np.broadcast_shapes(batch_shape, self.batch_shape)
        return ControllerState(1, np.ones(shape)[()], ExactSum.zeros(shape))

    def raw_bid(self, state: ControllerState, value: Any, left: Any) -> Any:
        return value / self.price(state)

    def price(self, state: ControllerState) -> Any:
        return self.mean_value / (self.base_bid * state.factor)

    def update(self, state: ControllerState, outcome: Outcome) -> ControllerState:
        spent, factor = state.spent.add(outcome.paid), state.factor
        if state.round % self.every == 0:
            planned = self.budget * (state.round / self.horizon)
            factor = 1 + self.gain * (planned - spent.value) / self.budget
            factor = np.clip(factor, SMALLEST_FACTOR, LARGEST_FACTOR)
        return ControllerState(state.round + 1, factor, spent)


def tuned_controller(
    budgets: Any,
    horizon: int,
    history: PriceHistory,
    *,
    adjustments: int = 96,
    gains: Sequence[float] = GAINS,
    days: int = 3,
    seed: int = 0,
) -> ProportionalController:
    """Return a controller with the gain of the largest sum of ln value over days drawn from the history."""
    wanted = np.atleast_1d(np.asarray(budgets, dtype=np.float64))
    grid = ProportionalController.calibrated(
        np.broadcast_to(wanted, (len(gains), len(wanted))).copy(),
        horizon,
        history,
        gain=np.asarray(gains)[:, None],
        adjustments=adjustments,
    )
    score = np.zeros((len(gains), len(wanted)))
    for day in range(days):
        score = score + np.log(replay_auctions(grid, history.draw(horizon, seed + day)).value)
    best = np.asarray(gains)[score.argmax(axis=0)]
    return ProportionalController.calibrated(wanted, horizon, history, gain=best, adjustments=adjustments)


class PriceMixtureState(NamedTuple):
    """The state of A-OGD, and the payments."""

    learner: Any
    spent: ExactSum

    @property
    def round(self) -> Any:
        """The round t, counted from 1."""
        return self.learner.round


@dataclass(frozen=True, eq=False)
class PriceMixture(Pacer[PriceMixtureState]):
    """A-OGD over a grid of prices of money, with the long-term constraint "spend ρ per request".

    The value and the spend of a fixed price π are step functions of π, so no theorem of online convex optimisation
    covers a learner whose decision is π itself. A *mixture* of prices is linear. Let π_1 … π_K be a grid about
    π_start, x a point of the simplex, and bid v_t/π_k, at most u = `highest_bid`, with probability x_k. With w_k = 1
    where that bid wins the market price c_t,

        f_t(x) = −(min(v_t/π_start, u)/u) · Σ_k x_k w_k      minus the expected value won, in money, in units of u
        g_t(x) = (c_t/u) · Σ_k x_k w_k − ρ/u                 the expected spend, less its share of the budget

    are linear with gradients at most √K long. A-OGD on the simplex has Theorem 1 against every mixture x with g_t(x) ≤
    0 in every round. For i.i.d. requests E[g_t(x)] ≤ 0 is enough, in expectation: λ_t depends on the past only, so
    E[λ_t g_t(x)] = E[λ_t] E[g_t(x)] ≤ 0. The theorem does not cover the hard budget nor spending too little.

    The draw of k is u_t = offset + 0.618… t mod 1. With `offset` uniform each u_t is uniform, and x_t does not depend
    on the draws, so expected value and spend are those of f_t and g_t. It needs the market price of every auction.

    Parameters
    ----------
    budget, start, highest_bid : float or array
        The most that may be spent, the middle of the grid of prices, and the highest bid.
    horizon : int
        T, the requests of a day.
    ratios : tuple of float
        The grid, as multiples of `start`, increasing.
    beta, offset : float
        A-OGD's β, and a draw from the uniform distribution on [0, 1).
    """

    budget: Any
    horizon: int
    start: Any
    highest_bid: Any
    ratios: tuple[float, ...] = tuple(np.geomspace(0.7, 1.4, 4).tolist())
    beta: float = 2 / 3
    offset: float = 0.5

    @classmethod
    def calibrated(cls, budget: Any, horizon: int, history: PriceHistory, *, offset: float = 0.5) -> PriceMixture:
        """Return a pacer around the first price of dual mirror descent, with bids up to four times its first."""
        bid = np.asarray(history.bid_for(np.asarray(budget) / horizon))
        highest = np.minimum(4 * bid, history.prices[-1])
        return cls(budget, horizon, history.mean_value / bid, highest, offset=offset)

    @cached_property
    def problem(self) -> Problem:
        """The problem of the learner; the same for every budget, since money is counted in highest bids."""
        K = len(self.ratios)
        reach = K**0.5
        return Problem(Simplex(K), Linear(K, reach), VaryingAffine(K, 1, reach, 1.0), name="mixture of prices")

    @cached_property
    def learner(self) -> AOGD:
        """A-OGD with the convex schedule of Table 1."""
        return AOGD.for_problem(self.problem, beta=self.beta)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> PriceMixtureState:
        shape = np.broadcast_shapes(batch_shape, self.batch_shape)
        return PriceMixtureState(self.learner.init(shape), ExactSum.zeros(shape))

    def price(self, state: PriceMixtureState) -> Any:
        """Return the geometric mean of the mixture."""
        return self.start * np.exp(state.learner.x @ np.log(self.ratios))

    def raw_bid(self, state: PriceMixtureState, value: Any, left: Any) -> Any:
        x = state.learner.x
        draw = (self.offset + GOLDEN * int(state.round)) % 1.0
        # x_k is the length of the k-th piece of [0, 1]; the last piece absorbs rounding.
        chosen = np.sum(np.cumsum(x, axis=-1)[..., :-1] <= draw, axis=-1)
        return np.minimum(value / (self.start * np.asarray(self.ratios)[chosen]), self.highest_bid)

    def update(self, state: PriceMixtureState, outcome: Outcome) -> PriceMixtureState:
        feedback = self.feedback(state, outcome)
        return PriceMixtureState(self.learner.update(state.learner, feedback), state.spent.add(outcome.paid))

    def settle(self, state: PriceMixtureState, outcome: Outcome) -> PriceMixtureState:
        if outcome.value is None or outcome.price is None:
            raise InputError("outcome", "lacks the value or the market price", "Give value= and price=")
        settled = super().settle(state, outcome)
        return settled._replace(learner=self.learner.tell(state.learner, self.feedback(state, outcome)))

    def feedback(self, state: PriceMixtureState, outcome: Outcome) -> Any:
        """Return f_t and g_t at x_t, from the value and the market price."""
        x = state.learner.x
        unit = np.broadcast_to(np.asarray(self.highest_bid, dtype=np.float64), x.shape[:-1])
        worth, price = np.asarray(outcome.value / (self.start * unit)), np.asarray(outcome.price / unit)
        won = (np.minimum(worth[..., None] / np.asarray(self.ratios), 1.0) >= price[..., None]).astype(np.float64)
        cost = -np.minimum(worth, 1.0)[..., None] * won
        spend = (price[..., None] * won)[..., None, :]
        return observe(self.problem, x, [cost], [spend, np.asarray(self.rate / unit)[..., None]])
