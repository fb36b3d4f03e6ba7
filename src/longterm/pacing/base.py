"""See the request, then act: the interface of pacers, beside the ask/tell of learners.

A learner decides x_t before it knows the round. A pacer sees the request first, then bids, then learns what the
auction cost it. Like a learner it is a frozen bundle of hyper-parameters with pure functions on an explicit
state:

    state = pacer.init()
    bid   = pacer.act(state, value)                    # value: what the request is worth, known before the auction
    state = pacer.settle(state, Outcome(paid))         # paid: 0 if lost

The budget is hard. `act` never bids more than is left, and a bidder pays at most its bid, so no sequence of
requests and no rule can overspend; the guard stands here, once, and not in the rules. (Whole units of money are
exact. Fractions are exact up to the rounding of the subtractions.)

Where answers come late several bids are open at once, and together they may exceed what is left: give their sum as
`hold`, and they cannot. Should an exchange charge more than what is left all the same, it is recorded, because what was
spent is spent: `settle` warns, `overspent` says by how much, and nothing more is bid.

A pacer never changes, and a state is a value: any number of threads may use them. Which state comes after which is for
the caller to keep in order.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from longterm._arrays import Array, namespace, to_numpy
from longterm._validate import Hyper
from longterm.errors import InputError, NonFiniteError, OverspentWarning
from longterm.theory.per_learner import PerLearner

PLAIN, NOTHING = frozenset({float, int, np.float64}), np.float64(0.0)
"""Types of one number, which need no array; one such number."""


NO_HOLD = 0.0


class Outcome(NamedTuple):
    """What an auction taught. Only a pacer that says so reads more than `paid`.

    Parameters
    ----------
    paid : array of shape (...,)
        What was paid: 0 if lost.
    value : array of shape (...,), optional
        The value of the request, again.
    price : array of shape (...,), optional
        The market price, also of a lost auction, where the exchange tells it.
    """

    paid: Array
    value: Array = None
    price: Array = None


class PacerState(Protocol):
    """Every state knows the round about to come and what is left of the budget."""

    @property
    def round(self) -> Array:
        """t, an integer array, counted from 1."""

    @property
    def remaining(self) -> Array:
        """What is left of the budget, shape (...,)."""


S = TypeVar("S", bound=PacerState)


class Pacer(PerLearner, ABC, Generic[S]):
    """A rule for bidding under a total budget. Hyper-parameters may be arrays: a fleet of campaigns is one pacer."""

    budget: Hyper
    """The total that may be spent."""
    horizon: int
    """T, the number of requests expected."""

    @abstractmethod
    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> S:
        """The state before the first request."""

    @abstractmethod
    def unguarded_bid(self, state: S, value: Array) -> Array:
        """The rule: what to bid if money were no object. Pure array arithmetic, no checks."""

    @abstractmethod
    def update(self, state: S, outcome: Outcome) -> S:
        """The rule: the state after the auction. Pure array arithmetic, no checks."""

    @abstractmethod
    def price(self, state: S) -> Array:
        """The price of money in force: the value that a unit of money has to bring."""

    @property
    def rate(self) -> Hyper:
        """ρ = budget / T, what an even spender spends per request."""
        return self.budget / self.horizon

    def bid(self, state: S, value: Array, hold: Array = NO_HOLD) -> Array:
        """`act` without the checks: what engines and traced loops call."""
        wanted = self.unguarded_bid(state, value)
        if type(wanted) is np.float64 and type(state.remaining) is np.float64 and type(hold) in PLAIN:
            # One live bid. Floats of Python are compared in a third of the time.
            amount, left = float(wanted), float(state.remaining) - hold
            if amount <= left:
                return wanted if amount > 0.0 else NOTHING
            return np.float64(left) if left > 0.0 else NOTHING
        xp = namespace(wanted)
        bid = xp.minimum(wanted, state.remaining - hold)
        return xp.maximum(bid, xp.zeros_like(bid))

    def act(self, state: S, value: Array, *, hold: Array = NO_HOLD) -> Array:
        """The bid for a request of this value: never above what is left and not held back.

        Parameters
        ----------
        state : PacerState
            The state.
        value : array
            What the request is worth.
        hold : array
            The sum of the bids that have not been answered yet: so much is not bid a second time.

        Returns
        -------
        array
            The bid, at least 0.

        Examples
        --------
        >>> from longterm.pacing import DualMirrorDescent
        >>> pacer = DualMirrorDescent(budget=10.0, horizon=2, step=0.1, start=0.5, mirror="euclidean")
        >>> first = pacer.act(pacer.init(), 4.0)
        >>> float(first), float(pacer.act(pacer.init(), 4.0, hold=first))  # the first may yet cost 8
        (8.0, 2.0)
        """
        if not (type(value) in PLAIN and 0 <= value < math.inf):
            _require("value", value, state)
        if hold is not NO_HOLD and not _is_plain(hold):
            _require("hold", hold, state)
        return self.bid(state, value, hold)

    def overspent(self, state: S) -> Array:
        """By how much more was charged than the budget; 0 where it was not."""
        xp = namespace(state.remaining)
        return xp.maximum(-state.remaining, xp.zeros_like(state.remaining))

    def settle(self, state: S, outcome: Outcome) -> S:
        """The state after an auction, once its outcome has been checked. `state` itself never changes.

        A charge above what is left is recorded, with an OverspentWarning that says by how much.
        """
        paid, value, price = outcome
        is_one = type(state.remaining) is np.float64 and type(paid) in PLAIN and value is None and price is None
        if is_one and 0 <= paid <= float(state.remaining):  # seen without making arrays; NaN is neither
            return self.update(state, outcome)
        for name, number in zip(Outcome._fields, outcome, strict=True):
            if number is not None and not _is_plain(number):
                _require(name, number, state)
        left, paid = to_numpy(state.remaining), to_numpy(paid)
        if np.any(paid > np.maximum(left, 0.0)):
            warn_of_overspending(outcome.paid, state.remaining, np.maximum(paid - left, 0.0), _round(state))
        return self.update(state, outcome)


def warn_of_overspending(paid: Array, left: Array, over: Array, round: int) -> None:
    """What `settle` of every pacer says of a charge above what is left, which it records."""
    what = f"paid in round {round}: {paid} is more than what was left, {left}"
    remedy = "Check what the exchange charged, and hold back what open bids may cost: act(…, hold=)"
    more = f"It is recorded: {over} over budget, and nothing more is bid"
    warnings.warn(f"{what}. {more}. {remedy}.", OverspentWarning, stacklevel=3)


def _is_plain(number: Array) -> bool:
    """Whether this is one sound number, seen without making an array of it; what is not is looked at closely."""
    return type(number) in PLAIN and 0 <= number < math.inf  # NaN is neither


def sound_number(name: str, value: float, t: int) -> float:
    """A single number of round t, finite and at least 0."""
    if not np.isfinite(value):
        raise NonFiniteError(name, f"is {value}", "Leave this auction out; the state is as it was", round=t)
    if value < 0:
        raise InputError(name, f"{value} is negative", f"Give a {name} of at least 0", round=t)
    return float(value)


def _require(name: str, number: Array, state: PacerState) -> None:
    """Finite, at least 0, one number for each pacer or one for all."""
    numbers = to_numpy(number)
    if not np.all(np.isfinite(numbers)):
        raise NonFiniteError(
            name, f"is {number}", "Leave this auction out; the state is as it was", round=_round(state)
        )
    if np.any(numbers < 0):
        raise InputError(name, f"{number} is negative", f"Give a {name} of at least 0", round=_round(state))
    if numbers.shape not in ((), tuple(state.remaining.shape)):
        raise InputError(
            name,
            f"has shape {numbers.shape}, the pacers have {tuple(state.remaining.shape)}",
            "Give one number for each pacer, or one for all",
            round=_round(state),
        )


def _round(state: PacerState) -> int:
    return int(np.max(to_numpy(state.round)))
