"""The interface of pacers: see the request, bid, then learn what was paid.

A learner decides x_t before it knows the round. A pacer sees the request first. Like a learner it is a frozen set of
hyper-parameters with pure functions on an explicit state:

    state = pacer.init()
    bid   = pacer.act(state, value)                    # value: what the request is worth, known before the auction
    state = pacer.settle(state, Outcome(paid))         # paid: 0 if the auction was lost

**The budget is hard.** `act` never bids more than is left, and a bidder pays at most its bid, so no sequence of
requests overspends under any rule. Money is a compensated sum in float64 (`longterm.money.budgets`), also where the
prices are float32. If answers come late, several bids are open at once: give their sum as `hold`. If an exchange
charges more than is left, `settle` records it with an OverspentWarning and stops bidding.

Pacers never change and states are values, so any number of threads may use them.
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from longterm._base.arrays import Array, float_dtype, like, to_numpy
from longterm._base.exact_sum import ExactSum
from longterm._base.per_learner import PerLearner
from longterm._base.selection import maximum, minimum
from longterm._base.validate import Hyper
from longterm.errors import InputError, NonFiniteError, OverspentWarning
from longterm.money.budgets import LARGEST_NUMBER, out_of_range


class Outcome(NamedTuple):
    """The outcome of an auction. Most pacers read `paid` alone.

    Parameters
    ----------
    paid : array of shape (...,)
        The payment: 0 if lost.
    value : array of shape (...,), optional
        The value of the request.
    price : array of shape (...,), optional
        The market price (the highest bid of the others), also of a lost auction, if the exchange reports it.
    bid : array of shape (...,), optional
        The bid.
    won : array of bool of shape (...,), optional
        True if the auction was won; by default bid ≥ price, where these are given.
    """

    paid: Array
    value: Array = None
    price: Array = None
    bid: Array = None
    won: Array = None


class PacerState(Protocol):
    """The part of the state that every pacer has."""

    @property
    def round(self) -> Array:
        """t, an integer array, counted from 1."""

    @property
    def spent(self) -> ExactSum:
        """The sum of all payments, shape (...,)."""


S = TypeVar("S", bound=PacerState)


class Pacer(PerLearner, ABC, Generic[S]):
    """A rule for bidding under a total budget. Hyper-parameters may be arrays: a fleet of campaigns is one pacer."""

    budget: Hyper
    """The total that may be spent."""
    horizon: int
    """T, the number of requests expected."""

    @property
    def is_first_price(self) -> bool:
        """True if a winner pays its bid; False if it pays the market price."""
        return False

    @abstractmethod
    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> S:
        """Return the state before the first request."""

    @abstractmethod
    def raw_bid(self, state: S, value: Array, left: Array) -> Array:
        """Return the bid of the rule with `left` to spend. Pure array arithmetic, no checks."""

    @abstractmethod
    def update(self, state: S, outcome: Outcome) -> S:
        """Return the state after an auction. Pure array arithmetic, no checks."""

    @abstractmethod
    def price(self, state: S) -> Array:
        """Return the price of money: the value that a unit of money has to bring."""

    @property
    def rate(self) -> Hyper:
        """ρ = budget / T, the spending of an even spender per request."""
        return self.budget / self.horizon

    def remaining(self, state: S) -> Array:
        """Return the money that can be bid without exceeding the budget; negative if it is overspent."""
        return state.spent.remaining(like(self.budget, state.spent.total))

    def overspent(self, state: S) -> Array:
        """Return the excess of the payments over the budget, or 0."""
        return maximum(state.spent.value - like(self.budget, state.spent.total), 0.0)

    def bid(self, state: S, value: Array, hold: Array = 0.0) -> Array:
        """Return the bid without checks, as engines and traced loops need it."""
        left = self.remaining(state) - hold
        return maximum(minimum(self.raw_bid(state, value, left), left), 0.0)

    def act(self, state: S, value: Array, *, hold: Array = 0.0) -> Array:
        """Return the bid for a request of this value: never above the money that is left and not held back.

        Parameters
        ----------
        state : PacerState
            The state.
        value : array
            The value of the request.
        hold : array
            The sum of the bids that have not been answered yet.

        Returns
        -------
        array
            The bid, at least 0.

        Examples
        --------
        >>> from longterm.money.pacing.mirror_descent import DualMirrorDescent
        >>> pacer = DualMirrorDescent(budget=10.0, horizon=2, step=0.1, start=0.5, mirror="euclidean")
        >>> first = pacer.act(pacer.init(), 4.0)
        >>> float(first), float(pacer.act(pacer.init(), 4.0, hold=first))  # the first may yet cost 8
        (8.0, 2.0)
        """
        held = _nonnegative("hold", hold, state, sys.float_info.max)
        return self.bid(state, _nonnegative("value", value, state), held)

    def settle(self, state: S, outcome: Outcome) -> S:
        """Return the state after an auction, once its outcome has been checked. `state` itself never changes.

        A payment above the money that is left is recorded, with an OverspentWarning. Where warnings are errors, the
        exception has the new state as its attribute `state`, so that the payment is not lost.
        """
        paid, value, price, bid, won = outcome
        paid = _nonnegative("paid", paid, state)
        value, price, bid = (
            None if number is None else _nonnegative(name, number, state)
            for name, number in (("value", value), ("price", price), ("bid", bid))
        )
        after = self.update(state, Outcome(paid, value, price, bid, won))
        excess = self.overspent(after)
        if _is_any((excess > 0) & (paid > 0)):
            warning = OverspentWarning(
                f"paid in round {_round(state)}: {paid} is more than the money that was left, {self.remaining(state)}. "
                f"The charge is recorded. It is {excess} over budget, so the pacer stops bidding. Check what the "
                "exchange charged, and hold back what open bids may cost with act(…, hold=)."
            )
            warning.state = after  # type: ignore[attr-defined]
            warnings.warn(warning, stacklevel=2)
        return after

    def correct(self, state: S, before: Array, after: Array) -> S:
        """Return the state after a payment was replaced by another one. The price stays."""
        old: Any = state
        return old._replace(spent=old.spent.replaced(before, after))  # type: ignore[no-any-return]

    def renewed(self, state: S, spent: ExactSum) -> S:
        """Return the state in another period, in which this was spent: it begins, and what was learned stays."""
        after: Any = state
        return after._replace(round=self.init().round, spent=spent)  # type: ignore[no-any-return]

    def _start(self, batch_shape: tuple[int, ...], xp: Any, dtype: Any, *numbers: Hyper) -> tuple[Array, list[Array]]:
        """Return the first round and hyper-parameters as arrays of a first state, NumPy's single ones as scalars."""
        shape, kind = np.broadcast_shapes(batch_shape, self.batch_shape), float_dtype(xp, dtype)
        arrays = [xp.broadcast_to(xp.asarray(number, dtype=kind), shape) for number in numbers]
        if xp is np:
            return np.int64(1), [array[()] for array in arrays]
        return xp.asarray(1, dtype=xp.int64), arrays

    def _no_spending(self, batch_shape: tuple[int, ...], xp: Any) -> ExactSum:
        """Return an empty ledger for each pacer of the batch."""
        return ExactSum.zeros(np.broadcast_shapes(batch_shape, self.batch_shape), xp=xp)


def has_won(outcome: Outcome, round: int) -> bool:
    """Return whether an auction was won, or raise an InputError if the outcome does not say so."""
    if outcome.won is not None:
        return bool(outcome.won)
    if outcome.bid is None or outcome.price is None:
        raise InputError(
            "won",
            "cannot be derived, since bid or price is missing too",
            "Give won=, or give both bid= and price=",
            round=round,
        )
    return bool(outcome.bid >= outcome.price)


def _nonnegative(name: str, number: Array, state: PacerState, most: float = LARGEST_NUMBER) -> Array:
    """Return a number, or one for each pacer, that is finite, at least 0 and at most `most`."""
    if isinstance(number, (int, float)) and 0 <= number <= most:
        return float(number)
    numbers, shape = to_numpy(number), tuple(state.spent.total.shape)
    if not np.all(np.isfinite(numbers)):
        raise NonFiniteError(
            name,
            f"is {number}, which is not finite",
            "Correct it or leave this auction out. The state is unchanged",
            round=_round(state),
        )
    if np.any(numbers < 0):
        raise InputError(name, f"{number} is negative", f"Give a {name} of at least 0", round=_round(state))
    if np.any(numbers > np.float64(most)):
        raise out_of_range(name, number, _round(state))
    if numbers.shape not in ((), shape):
        raise InputError(
            name,
            f"has shape {numbers.shape}, but the pacers have shape {shape}",
            "Give one number for each pacer, or one for all",
            round=_round(state),
        )
    return number


def _is_any(condition: Array) -> bool:
    return bool(condition) if isinstance(condition, (bool, np.bool_)) else bool(to_numpy(condition).any())


def _round(state: PacerState) -> int:
    return int(np.max(to_numpy(state.round)))
