"""A-OGD on the price of money: a mixture of prices, moved by the long-term constraint "spend ρ per request".

What a fixed price π wins and spends is a step function of π: neither convex nor concave, so no theorem of
online convex optimisation covers a learner whose decision is π itself. A *mixture* of prices is linear. Let
π_1 … π_K be a grid about π_start, x a point of the simplex, and bid v_t/π_k, at most u = `highest_bid`, with
probability x_k. With w_k = 1 where that bid wins the market price c_t,

    f_t(x) = −(min(v_t/π_start, u)/u) · Σ_k x_k w_k      minus the expected value won, as money, in units of u
    g_t(x) = (c_t/u) · Σ_k x_k w_k − ρ/u                 the expected spend, less its share of the budget

are linear with gradients at most √K long, and A-OGD on the simplex (`AOGD.convex`) has the theorem of
`longterm.theory.theorem_1` against every mixture x with g_t(x) ≤ 0 in every round. For i.i.d. requests
E[g_t(x)] ≤ 0 is enough, in expectation: λ_t depends on the past only, so E[λ_t g_t(x)] = E[λ_t] E[g_t(x)] ≤ 0,
and that is the one place where the proof uses feasibility.

So much is exact. Not covered by the theorem: the hard budget (near the end there may be nothing left to bid), and
spending too little (g_t ≤ 0 is all that is asked for).

The draw of k is u_t = offset + 0.618… t mod 1. With `offset` uniform each u_t is uniform, and as x_t does not
depend on the draws, expected value and spend are exactly those of f_t and g_t.

Needs: the market price of every auction, also of those it lost (some exchanges tell it as the minimum bid to win).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, as_column, dot, like, namespace, rows_at
from longterm._validate import Hyper
from longterm.constraints import VaryingAffine
from longterm.errors import InputError
from longterm.learners import AOGD
from longterm.learners.aogd import AOGDState
from longterm.learners.feedback import Feedback, observe
from longterm.losses import Linear
from longterm.pacing.auctions import PriceHistory
from longterm.pacing.base import Outcome, Pacer
from longterm.problems import Problem
from longterm.sets import Simplex

GOLDEN = (5**0.5 - 1) / 2


class MixtureState(NamedTuple):
    """(A-OGD's own state, what is left)."""

    learner: AOGDState
    remaining: Array

    @property
    def round(self) -> Array:
        """T, from the learner."""
        return self.learner.round


@dataclass(frozen=True, eq=False)
class PriceMixture(Pacer[MixtureState]):
    """A-OGD over a grid of prices of money.

    Parameters
    ----------
    budget, start, highest_bid : float or array
        The most that may be spent, the middle of the grid of prices, and the bid that none is above.
    horizon : int
        T, the requests of a day.
    ratios : tuple of float
        The grid, as multiples of `start`, increasing.
    beta, offset : float
        A-OGD's β, and a draw from the uniform distribution on [0, 1).

    Examples
    --------
    >>> from longterm.pacing import Outcome, PriceMixture
    >>> pacer = PriceMixture(budget=20.0, horizon=10, start=0.5, highest_bid=10.0, ratios=(0.5, 1.0, 2.0))
    >>> state = pacer.init()
    >>> float(pacer.act(state, 3.0)), float(pacer.price(state))  # u_1 = 0.118 draws the cheapest price, 0.25
    (10.0, 0.5)
    >>> state = pacer.settle(state, Outcome(paid=4.0, value=3.0, price=4.0))
    >>> state.learner.x.round(3)  # 0.25 and 0.5 won, 1.0 bid 3 and lost
    array([0.415, 0.415, 0.17 ])
    """

    budget: Hyper
    horizon: int
    start: Hyper
    highest_bid: Hyper
    ratios: tuple[float, ...] = tuple(np.geomspace(0.7, 1.4, 4).tolist())
    beta: float = 2 / 3
    offset: float = 0.5

    def __post_init__(self) -> None:
        ratios = validate.positive("ratios", self.ratios)
        if not isinstance(ratios, np.ndarray) or ratios.ndim != 1 or len(ratios) < 2 or np.any(np.diff(ratios) <= 0):
            raise InputError("ratios", f"{self.ratios!r} is not a grid", "Give at least two increasing multiples")
        validate.set_frozen(self, ratios=tuple(ratios.tolist()))
        validate.validate_fields(self, validate.dimension, "horizon")
        validate.validate_fields(self, validate.positive, "budget", "start", "highest_bid")
        validate.validate_fields(self, validate.non_negative_scalar, "offset")

    @classmethod
    def calibrated(cls, budget: Hyper, horizon: int, history: PriceHistory, *, offset: float = 0.5) -> PriceMixture:
        """Grid around the price that dual mirror descent starts from; bids up to four times the mean request's."""
        bid = np.asarray(history.bid_for(np.asarray(budget) / horizon))
        highest = np.minimum(4 * bid, history.prices[-1])
        return cls(budget, horizon, history.mean_value / bid, highest, offset=offset)

    @cached_property
    def problem(self) -> Problem:
        """B, f and g as the library knows them; the same for every budget, as money is counted in highest bids."""
        K = len(self.ratios)
        reach = K**0.5
        return Problem(Simplex(K), Linear(K, reach), VaryingAffine(K, 1, reach, 1.0), name="mixture of prices")

    @cached_property
    def learner(self) -> AOGD:
        """A-OGD, convex column of Table 1."""
        return AOGD.for_problem(self.problem, beta=self.beta)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> MixtureState:
        shape = np.broadcast_shapes(batch_shape, self.batch_shape)
        learner = self.learner.init(shape, xp=xp, dtype=dtype)
        return MixtureState(learner, xp.broadcast_to(xp.asarray(self.budget, dtype=learner.x.dtype), shape))

    def _ratios(self, x: Array) -> Array:
        return namespace(x).asarray(self.ratios, dtype=x.dtype)

    def price(self, state: MixtureState) -> Array:
        """The geometric mean of the mixture."""
        x = state.learner.x
        xp = namespace(x)
        return like(self.start, x) * xp.exp(dot(x, xp.log(self._ratios(x))))

    def unguarded_bid(self, state: MixtureState, value: Array) -> Array:
        x = state.learner.x
        xp = namespace(x)
        draw = (self.offset + GOLDEN * xp.astype(state.round, x.dtype)) % 1.0
        # x_k is the length of the k-th piece of [0, 1]; the last piece takes what rounding leaves.
        before = xp.cumulative_sum(x, axis=-1)[..., :-1]
        chosen = xp.sum(xp.astype(before <= draw, xp.int64), axis=-1)
        ratio = rows_at(self._ratios(x), chosen)
        return xp.minimum(value / (like(self.start, x) * ratio), like(self.highest_bid, x))

    def update(self, state: MixtureState, outcome: Outcome) -> MixtureState:
        feedback = self._feedback(state, outcome)
        return MixtureState(self.learner.update(state.learner, feedback), state.remaining - outcome.paid)

    def settle(self, state: MixtureState, outcome: Outcome) -> MixtureState:
        if outcome.value is None or outcome.price is None:
            raise InputError(
                "outcome",
                "lacks the value or the market price",
                "This pacer learns from every auction: give value= and price=, or use DualMirrorDescent",
            )
        settled = super().settle(state, outcome)
        return settled._replace(learner=self.learner.tell(state.learner, self._feedback(state, outcome)))

    def _feedback(self, state: MixtureState, outcome: Outcome) -> Feedback:
        """f_t and g_t at x_t, from the value and the market price."""
        x = state.learner.x
        xp = namespace(x)
        unit = xp.broadcast_to(xp.asarray(self.highest_bid, dtype=x.dtype), x.shape[:-1])
        worth, price = outcome.value / (like(self.start, x) * unit), outcome.price / unit
        bids = xp.minimum(as_column(worth) / self._ratios(x), 1.0)
        won = xp.astype(bids >= as_column(price), x.dtype)
        cost = as_column(-xp.minimum(worth, 1.0)) * won
        spend = (as_column(price) * won)[..., None, :]
        return observe(self.problem, x, [cost], [spend, as_column(like(self.rate, x) / unit)])
