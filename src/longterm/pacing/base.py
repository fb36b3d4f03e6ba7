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
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from longterm._arrays import Array, namespace, to_numpy
from longterm._validate import Hyper
from longterm.errors import InputError, NonFiniteError
from longterm.theory.per_learner import PerLearner

PLAIN = frozenset({float, int, np.float64})


class Outcome(NamedTuple):
    """What an auction taught. Only a pacer that says so reads more than `paid`."""

    paid: Array
    """What was paid, shape (...,): 0 if lost."""
    value: Array = None
    """The value of the request, again."""
    price: Array = None
    """The market price, also of a lost auction, where the exchange tells it."""


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

    def bid(self, state: S, value: Array) -> Array:
        """`act` without the checks: what engines and traced loops call."""
        wanted = self.unguarded_bid(state, value)
        if type(wanted) is np.float64 and type(state.remaining) is np.float64:
            return min(wanted, state.remaining)
        return namespace(wanted).minimum(wanted, state.remaining)

    def act(self, state: S, value: Array) -> Array:
        """The bid for a request of this value: never above what is left."""
        if not _is_plain(value):
            _require("value", value, state)
        return self.bid(state, value)

    def settle(self, state: S, outcome: Outcome) -> S:
        """The state after an auction, once its outcome has been checked. `state` itself never changes."""
        for name, number in zip(Outcome._fields, outcome, strict=True):
            if number is not None and not _is_plain(number):
                _require(name, number, state)
        if type(state.remaining) is np.float64 and _is_plain(outcome.paid):
            too_much = outcome.paid > state.remaining
        else:
            too_much = np.any(to_numpy(outcome.paid) > to_numpy(state.remaining))
        if too_much:
            raise InputError(
                "paid",
                f"{outcome.paid} is more than what was left, {state.remaining}",
                "A bid never exceeds what is left, so check what the exchange charged",
                round=_round(state),
            )
        return self.update(state, outcome)


def _is_plain(number: Array) -> bool:
    """Whether this is one sound number, seen without making an array of it; what is not is looked at closely."""
    return type(number) in PLAIN and 0 <= number < math.inf  # NaN is neither


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
