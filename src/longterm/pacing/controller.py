"""The hand-written rule: bid in proportion to the value, and turn the bids up or down with the spend error.

    bid_t = base · (v_t / v̄) · m,      m = 1 + gain · (planned − spent)/budget, kept within [0.1, 10],

with planned = ρ (t − 1), an even spender's total, and m reset every `every` requests, as a job that runs each quarter
of an hour would do. Gain 10: one per cent of the budget behind plan, and bids go up by ten per cent.

It is nearly dual mirror descent: the entropic rule without a floor is bid = (v/π_1) e^{η (planned − spent)}, so
this is its first-order expansion with gain = η · budget, held for a while. What theory adds is the gain. No
guarantee but the hard budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, namespace
from longterm._validate import Hyper
from longterm.pacing.auctions import PriceHistory
from longterm.pacing.base import Outcome, Pacer, play

SMALLEST, LARGEST = 0.1, 10.0
GAINS = (10.0, 20.0, 30.0, 50.0, 100.0, 200.0)
"""Those that `tuned_controller` tries."""


class ControllerState(NamedTuple):
    """(t, m, what is left)."""

    round: Array
    factor: Array
    remaining: Array


@dataclass(frozen=True, eq=False)
class ProportionalController(Pacer[ControllerState]):
    """A bid factor in proportion to the spend error.

    Parameters
    ----------
    budget, base_bid, gain : float or array
        The most that may be spent, the bid for a mean request on plan, and how much the factor moves with the error.
    horizon, every : int
        T, the requests of a day, and after how many of them the factor is reset.
    mean_value : float
        Of a request.

    Examples
    --------
    >>> from longterm.pacing import Outcome, ProportionalController
    >>> pacer = ProportionalController(100.0, 10, base_bid=8.0, mean_value=0.5, gain=2.0, every=1)
    >>> state = pacer.settle(pacer.init(), Outcome(paid=0.0))  # 10 behind plan: m = 1 + 2 · 0.1
    >>> round(float(pacer.act(state, 0.5)), 9)
    9.6
    """

    budget: Hyper
    horizon: int
    base_bid: Hyper
    mean_value: float
    gain: Hyper
    every: int

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.dimension, "horizon", "every")
        validate.validate_fields(self, validate.positive, "budget", "base_bid")
        validate.validate_fields(self, validate.positive_scalar, "mean_value")
        validate.validate_fields(self, validate.non_negative, "gain")

    @classmethod
    def calibrated(
        cls, budget: Hyper, horizon: int, history: PriceHistory, *, gain: Hyper = 30.0, adjustments: int = 96
    ) -> ProportionalController:
        """The base bid from past prices, as for dual mirror descent; 96 adjustments: one each quarter of an hour."""
        base = history.bid_for(np.asarray(budget) / horizon)
        return cls(budget, horizon, base, history.mean_value, gain, max(1, horizon // adjustments))

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> ControllerState:
        factor, remaining = self._of_each(batch_shape, xp, dtype, 1.0, self.budget)
        return ControllerState(xp.asarray(1, dtype=xp.int64), factor, remaining)

    def unguarded_bid(self, state: ControllerState, value: Array) -> Array:
        return value / self.price(state)

    def price(self, state: ControllerState) -> Array:
        return self.mean_value / (like(self.base_bid, state.factor) * state.factor)

    def update(self, state: ControllerState, outcome: Outcome) -> ControllerState:
        xp, remaining = namespace(state.factor), state.remaining - outcome.paid
        budget = like(self.budget, remaining)
        planned = budget * (xp.astype(state.round, remaining.dtype) / self.horizon)
        factor = 1 + like(self.gain, remaining) * (planned - (budget - remaining)) / budget
        factor = xp.minimum(xp.maximum(factor, SMALLEST), LARGEST)
        return ControllerState(
            round=state.round + 1,
            factor=xp.where(state.round % self.every == 0, factor, state.factor),
            remaining=remaining,
        )


def tuned_controller(
    budgets: ArrayLike,
    horizon: int,
    history: PriceHistory,
    *,
    adjustments: int = 96,
    gains: Sequence[float] = GAINS,
    days: int = 3,
    seed: int = 0,
) -> ProportionalController:
    """Tuned as its owner would, on days made from the training histogram only.

    For each budget the gain that wins most over the practice days (largest sum of ln value).

    Parameters
    ----------
    budgets : array_like
        One for each controller of the batch.
    horizon : int
        T, the requests of a day.
    history : PriceHistory
        What the practice days are drawn from.
    adjustments : int
        How often a day the factor is reset.
    gains : sequence of float
        Those that are tried.
    days : int
        Practice days.
    seed : int
        Of the first practice day.

    Returns
    -------
    ProportionalController
        A gain for each budget.
    """
    wanted = np.atleast_1d(np.asarray(budgets, dtype=np.float64))
    grid = ProportionalController.calibrated(
        np.broadcast_to(wanted, (len(gains), len(wanted))).copy(),
        horizon,
        history,
        gain=np.asarray(gains)[:, None],
        adjustments=adjustments,
    )
    score: FloatArray = np.zeros((len(gains), len(wanted)))
    for day in range(days):
        score = score + np.log(play(grid, history.draw(horizon, seed + day)).value)
    best = np.asarray(gains)[score.argmax(axis=0)]
    return ProportionalController.calibrated(wanted, horizon, history, gain=best, adjustments=adjustments)
