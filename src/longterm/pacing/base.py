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
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, get_args

import numpy as np

from longterm._arrays import Array, FloatArray, float_dtype, namespace, to_numpy
from longterm._validate import Hyper
from longterm.errors import InputError, NonFiniteError, OverspentWarning
from longterm.pacing.auctions import Auctions
from longterm.theory.per_learner import PerLearner

PLAIN, NOTHING = frozenset({float, int, np.float64}), np.float64(0.0)
"""Types of one number, which need no array; one such number."""
INFINITE, Number = math.inf, np.float64
"""By one name: where a bid counts, each look at a module does."""
NO_HOLD = 0.0
Engine = Literal["auto", "numpy", "compiled"]


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

    def _of_each(self, batch_shape: tuple[int, ...], xp: Any, dtype: Any, *numbers: Hyper) -> list[Array]:
        """Numbers as a first state holds them, one for each pacer of the batch."""
        shape, kind = np.broadcast_shapes(batch_shape, self.batch_shape), float_dtype(xp, dtype)
        return [xp.broadcast_to(xp.asarray(number, dtype=kind), shape) for number in numbers]

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
        remaining = state.remaining
        if type(wanted) is Number and type(remaining) is Number and type(hold) in PLAIN:
            # One live bid. Floats of Python are compared in a third of the time.
            amount, left = float(wanted), float(remaining) - hold
            if amount <= left:
                return wanted if amount > 0.0 else NOTHING
            return Number(left) if left > 0.0 else NOTHING
        xp = namespace(wanted)
        bid = xp.minimum(wanted, remaining - hold)
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
        if not (type(value) in PLAIN and 0 <= value < INFINITE):
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
        left = state.remaining
        is_one = value is None and price is None and type(left) is Number and type(paid) in PLAIN
        if is_one and 0.0 <= float(paid) <= float(left):  # seen without making arrays; NaN is neither
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


@dataclass(frozen=True)
class Replay:
    """What happened, auction by auction: the auctions first, then the pacers of a batch.

    Parameters
    ----------
    auctions : Auctions
        What was played.
    paid : array
        What was paid, 0 for a lost auction.
    won : array
        1 where the auction was won, 0 elsewhere.
    price : array
        The price of money in force.
    """

    auctions: Auctions
    paid: FloatArray
    won: FloatArray
    price: FloatArray

    def __repr__(self) -> str:
        if self.paid.ndim > 1:
            return f"Replay({len(self.auctions)} auctions, {self.paid.shape[1:]} pacers)"
        totals = f"spent {float(self.spent):.4g}, won {int(self.won.sum())} worth {float(self.value):.4g}"
        return f"Replay({len(self.auctions)} auctions, {totals}, clicks {float(self.clicks):g})"

    @property
    def spent(self) -> FloatArray:
        """The total paid."""
        return np.asarray(self.paid.sum(axis=0))

    @property
    def value(self) -> FloatArray:
        """The sum of the values won: the clicks that the predictions promise."""
        return np.tensordot(self.auctions.values, self.won, axes=(0, 0))

    @property
    def clicks(self) -> FloatArray:
        """The clicks that came."""
        return np.tensordot(self.auctions.clicks, self.won, axes=(0, 0))


def is_compiled(engine: Engine, rule: object, *, ready: bool) -> bool:
    """Whether a log is played compiled, where that is `ready` for this rule; an InputError where it cannot be."""
    if engine not in get_args(Engine):
        raise InputError("engine", f"{engine!r} is not known", "Choose 'auto', 'numpy' or 'compiled'")
    if engine == "compiled" and not ready:
        what = f"there is no compiled loop for {type(rule).__name__}, or no Numba"
        raise InputError("engine", what, "Use engine='numpy', or pip install 'longterm[linear]'")
    return engine != "numpy" and ready


def play(pacer: Pacer[Any], auctions: Auctions, *, engine: Engine = "auto") -> Replay:
    """Let the pacer bid for every request; it wins where its bid is at least the market price, and pays that price.

    Parameters
    ----------
    pacer : Pacer
        Who bids.
    auctions : Auctions
        What is bid for.
    engine : {"auto", "numpy", "compiled"}
        "numpy" is the reference: the pacer's own rule, auction by auction. "compiled" (extra `linear`) is the same a
        hundred times faster, for dual and planned mirror descent and the controller. "auto" takes it where it is there.

    Returns
    -------
    Replay
        What happened.

    Examples
    --------
    >>> from longterm.pacing import Auctions, DualMirrorDescent, play
    >>> log = Auctions(clicks=[0, 1, 0], prices=[4, 9, 3], values=[2.0, 2.0, 2.0])
    >>> pacer = DualMirrorDescent(budget=9.0, horizon=3, step=0.1, start=0.25, mirror="euclidean")
    >>> replay = play(pacer, log)  # bids 8; 2/0.35 = 5.7 (lost); 2/0.05 = 40, but only 5 are left
    >>> replay.paid, replay.price.round(2)
    (array([4., 0., 3.]), array([0.25, 0.35, 0.05]))
    """
    from longterm.pacing.compiled import can_play, play_compiled  # knows the pacers, which know this file

    if is_compiled(engine, pacer, ready=can_play(pacer)):
        return Replay(auctions, *play_compiled(pacer, auctions.values, auctions.prices))
    state = pacer.init()
    shape = (len(auctions), *pacer.batch_shape)
    paid, price = np.empty(shape), np.empty(shape)
    won = np.empty(shape)
    for t, (value, cost) in enumerate(zip(auctions.values.tolist(), auctions.prices.tolist(), strict=True)):
        price[t] = pacer.price(state)
        won[t] = pacer.bid(state, value) >= cost
        paid[t] = won[t] * cost
        state = pacer.update(state, Outcome(paid[t], value, cost))
    return Replay(auctions, paid, won, price)
