"""Pacers in a service: bids for requests as they come, payments as they become known, state in a database."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np

from longterm._base import validate
from longterm._base.display import ReprMixin
from longterm._base.states import state_leaves
from longterm.errors import InputError
from longterm.money.ledger.accounts import ABSURD
from longterm.money.ledger.spending import SharedAccount, Spending
from longterm.money.pacing.base import Outcome, Pacer
from longterm.storage.clock import DAY, SYSTEM, Clock
from longterm.storage.database import Durability, RoundRow
from longterm.storage.packing import StatePacker, raw_bytes, require_sound, restored_state, unpack_checked
from longterm.storage.replica import Metrics, Replica, Stored
from longterm.storage.rounds import CORRECTED, DONE, SKIPPED, NoChange, OpenRound, RoundChange, RoundsCopy, Window
from longterm.storage.tokens import Token, require_key

CHANGEABLE = ("budget", "horizon")
"""What may be changed of a pacer while it is used."""


@dataclass(frozen=True)
class LiveBid(ReprMixin):
    """A bid with the token of its request; ``str(bid)`` is the token's text.

    Parameters
    ----------
    amount : float
        The bid.
    value : float
        The value of the request.
    token : Token
        Give it, or its text, to `settle` or `skip`.
    """

    amount: float
    value: float
    token: Token

    def __str__(self) -> str:
        return str(self.token)


class PacerCopy(RoundsCopy[Any, tuple[float, float]]):
    """A copy of a live pacer: the state of the rule, and open bids as (amount, value)."""

    kind = "live pacer"
    remedy = "Pass the bid that bid() returned, or str() of it"
    closed_kept = 100_000

    def __init__(self, pacer: Pacer[Any], window: Window) -> None:
        super().__init__(pacer.init(), window)
        self.pacer, self._start = pacer, self.state
        if any(np.ndim(leaf) for leaf in state_leaves(self.state.spent).values()):
            raise InputError(
                "pacer",
                "paces several campaigns at once",
                "Give a pacer of one campaign. Open one LivePacer for each campaign",
            )
        self._packer = StatePacker(self.state, {}, {})

    @property
    def held(self) -> float:
        """The sum of the open bids."""
        return self.held_without(())

    def held_without(self, expired: Collection[int]) -> float:
        """Return the sum of the open bids but those that have expired."""
        return math.fsum(found.content[0] for number, found in self.open.items() if number not in expired)

    def encode_state(self, state: Any) -> bytes:
        return self._packer.encode(state, b"")

    def decode_state(self, data: bytes, asked: int) -> Any:
        _, arrays = unpack_checked(data)
        state = restored_state(self._start, arrays)
        require_sound(self._start, state)
        price = np.asarray(self.pacer.price(state))
        if not (np.all(np.isfinite(price)) and np.all(price >= 0) and np.all(state.spent.value >= 0)):
            raise ValueError("a price or the money spent is below 0 or not finite")
        return state

    def encode_round(self, content: tuple[float, float]) -> bytes:
        return raw_bytes(np.array(content, dtype=np.float64))

    def record(self, content: Any) -> bytes:
        """Return all payments of a closed bid: a bid that was skipped or has expired has paid 0."""
        return content if isinstance(content, bytes) else raw_bytes(np.array([*content[2:], 0.0][:1]))

    def decode_round(self, row: RoundRow) -> tuple[float, float]:
        amount, value = np.frombuffer(row.content, dtype="<f8").tolist()
        if not (0 <= amount < math.inf and 0 <= value < math.inf):
            raise ValueError("a bid is not a finite number of at least 0")
        return amount, value

    def require_rounds(self, state: Any, rounds: dict[int, OpenRound[tuple[float, float]]], asked: int) -> None:
        held = math.fsum(found.content[0] for found in rounds.values())
        if held > float(self.pacer.budget) * (1 + 1e-9):
            raise ValueError("open bids are above the budget")


class LivePacer(Stored[PacerCopy]):
    """A pacer for a service: any thread or process may bid, and settle the auction later.

    Open bids are held back, so the budget is never exceeded if no auction costs more than its bid. This constructor
    keeps the state in memory, for one process. `LivePacer.open` keeps it in a database, which processes share.

    Parameters
    ----------
    pacer : Pacer
        The rule, for one campaign.
    account : LeasedAccount, optional
        An account of a ledger from which the money is leased as well.
    max_in_flight : int
        The largest number of open bids; `bid` raises a WindowFullError when it is reached.
    expire_after : int, optional
        The age, in requests since, at which an open bid expires: its money is free again.
    max_age : float, optional
        The age in seconds at which it expires, by whichever call comes next.
    remember : float
        The seconds for which an idempotency key is remembered; at least while its bid is open.
    clock : Clock
        The time; tests give their own.

    Examples
    --------
    >>> from longterm.money.pacing.live_pacer import LivePacer
    >>> from longterm.money.pacing.mirror_descent import DualMirrorDescent
    >>> live = LivePacer(DualMirrorDescent(budget=10.0, horizon=2, step=0.1, start=0.5, mirror="euclidean"))
    >>> first, second = live.bid(4.0), live.bid(4.0)
    >>> first.amount, second.amount  # the first may yet cost 8
    (8.0, 2.0)
    >>> live.settle(str(first), paid=3.0)
    >>> live.skip(second)
    >>> live.spent, live.held
    (3.0, 0.0)
    """

    def __init__(
        self,
        pacer: Pacer[Any],
        *,
        account: Spending | None = None,
        max_in_flight: int = 100_000,
        expire_after: int | None = None,
        max_age: float | None = None,
        remember: float = DAY,
        clock: Clock = SYSTEM,
    ) -> None:
        self.pacer = pacer
        self._spending = account
        copy = PacerCopy(pacer, Window.of(max_in_flight, expire_after, max_age, remember))
        self._replica = Replica(copy, {"pacer": pacer}, may_fork=False, clock=clock)
        self._replica.expire = self._expiring
        for name in CHANGEABLE:
            self._replica.changeable[f"pacer.{name}"] = partial(self._adopt, name)

    @classmethod
    def open(
        cls,
        url: str | PathLike[str],
        pacer: Pacer[Any],
        *,
        name: str = "pacer",
        durability: Durability = "commit",
        account: SharedAccount | None = None,
        max_in_flight: int = 100_000,
        expire_after: int | None = None,
        max_age: float | None = None,
        remember: float = DAY,
        follow: bool = False,
        clock: Clock = SYSTEM,
    ) -> Self:
        """Return the pacer with this name in a database, or create it there.

        Parameters
        ----------
        url : path or str
            A file for SQLite, or a URL ``postgresql://…`` (extra `postgres`).
        pacer : Pacer
            With the hyper-parameters that the stored one was created with.
        name : str
            Its name in the database.
        durability : {"commit", "relaxed"}
            As for `LiveLearner.open`.
        account : SharedAccount, optional
            An account of a ledger in the same database. A bid is at most what the account has left, and is held there
            in the same transaction. Objects that name one account share its limit.
        max_in_flight, expire_after, max_age, remember, clock
            As for a new pacer; give the same in every process.
        follow : bool
            Use the budget and the horizon of the database where they were changed, in place of the rule's. With False
            another budget is an error. What `change` changes later is followed in any case.

        Raises
        ------
        DatabaseError
            If the database cannot be used, or holds another object with this name.
        """
        live = cls(
            pacer,
            account=account,
            max_in_flight=max_in_flight,
            expire_after=expire_after,
            max_age=max_age,
            remember=remember,
            clock=clock,
        )
        live._replica.follows = follow
        live._replica.attach(url, name, durability)
        database = live._replica.database
        if account is not None and database is not None:
            live._spending = account.attach(database, name)
            live._replica.changes_others = True
        return live

    def __repr__(self) -> str:
        return f"LivePacer({self.pacer!r}, spent={self.spent:g}, held={self.held:g})"

    def bid(self, value: float, key: str | None = None) -> LiveBid:
        """Bid for a request, with the money that is neither spent nor held for open bids.

        Parameters
        ----------
        value : float
            The value of the request.
        key : str, optional
            An idempotency key: a request with the key of another one returns its bid, for as long as `remember` says.
        """
        change = self._replica.transact(self._bidding, value, require_key(key))
        amount, worth = change.round.content
        return LiveBid(amount, worth, Token(change.number, None, change.round.epoch))

    def _bidding(
        self, value: float, key: str | None
    ) -> RoundChange[Any, tuple[float, float]] | NoChange[tuple[float, float]]:
        replica, copy, now = self._replica, self._replica.copy, self._replica.now()
        known = copy.repeated(key, now)
        if known is not None:
            return known
        expired = copy.outnumbered()
        copy.require_window(expired)
        worth = validate.non_negative_scalar("value", value)
        amount = float(self.pacer.act(copy.state, worth, hold=copy.held_without(expired)))
        for number in expired:
            self._pay(number, copy.open[number].epoch, 0.0)
        if self._spending is not None:
            amount = max(min(amount, *self._spending.room(amount)), 0.0)
        change = copy.opening(copy.state, (amount, worth), replica.epoch, key, expired, now=now)
        if self._spending is not None:
            self._spending.hold(str(Token(change.number, None, replica.epoch)), amount, amount)
        return change

    def _expiring(self, now: float) -> RoundChange[Any, tuple[float, float]]:
        """Return the change that closes the bids which are too old."""
        copy = self._replica.copy
        expired = copy.outdated(now)
        for number in expired:
            self._pay(number, copy.open[number].epoch, 0.0)
        return copy.expiry(copy.state, expired)

    def settle(
        self,
        bid: LiveBid | Token | str,
        paid: float,
        *,
        price: float | None = None,
        won: bool | None = None,
        force: bool = False,
    ) -> None:
        """Take the payment of a bid, in any order.

        Parameters
        ----------
        bid : LiveBid, Token or str
            What `bid` returned, its token, or the token's text.
        paid : float
            The payment: 0 if the auction was lost.
        price : float, optional
            The market price, if the exchange reports it.
        won : bool, optional
            True if the auction was won.
        force : bool
            Accept a payment above 100 times the bid, or above the budget for a bid of 0.

        Raises
        ------
        TokenError
            If the bid is unknown, or was settled or skipped already.
        InputError
            If a number cannot be used.
        """
        self._replica.transact(self._settling, bid, paid, price, won, force)

    def _settling(
        self, bid: LiveBid | Token | str, paid: float, price: float | None, won: bool | None, force: bool
    ) -> RoundChange[Any, tuple[float, float]]:
        copy = self._replica.copy
        number, found = copy.find(bid, self._replica.now())
        amount, value = found.content
        paid = validate.non_negative_scalar("paid", paid)
        price = None if price is None else validate.non_negative_scalar("price", price)
        if not force:
            self._require_plausible(number, paid, amount)
        state = self.pacer.settle(copy.state, Outcome(paid, value, price, amount, won))
        self._pay(number, found.epoch, paid)
        content: Any = amount, value, paid
        return copy.changing(state, number, found._replace(content=content), DONE)

    def _require_plausible(self, number: int, paid: float, amount: float) -> None:
        most = ABSURD * amount if amount > 0 else float(self.pacer.budget or math.inf)
        if paid > most:
            remedy = "Check it, and give force=True if it is right"
            raise InputError("paid", f"{paid:g} is far above the bid of {amount:g}", remedy, round=number)

    def correct(
        self, bid: LiveBid | Token | str, paid: float, *, correction: str | None = None, force: bool = False
    ) -> None:
        """Replace the payment of a bid that was settled, skipped or has expired. Both payments stay in the record.

        The money spent changes, here and in the account, and the price stays as it is. The last 100,000 bids can be
        corrected.

        Parameters
        ----------
        bid : LiveBid, Token or str
            The bid.
        paid : float
            The right payment.
        correction : str, optional
            The key of the correction: a repeated call with it has no effect.
        force : bool
            Accept a payment above the budget.
        """
        self._replica.transact(self._correcting, bid, paid, require_key(correction), force)

    def _correcting(
        self, bid: LiveBid | Token | str, paid: float, correction: str | None, force: bool
    ) -> RoundChange[Any, tuple[float, float]] | NoChange[tuple[float, float]]:
        copy, now = self._replica.copy, self._replica.now()
        known = copy.repeated(correction, now, is_correction=True)
        number, epoch, record = copy.closed(bid)
        paid = validate.non_negative_scalar("paid", paid)
        if not force:
            self._require_plausible(number, paid, 0.0)
        content: Any = record + raw_bytes(np.array([paid]))
        if known is not None:
            stored: Any = known.round.content
            if known.number != number or stored[-8:] != content[-8:]:
                what = f"{correction!r} is the key of a different correction"
                raise InputError("correction", what, "Use a new key for each correction")
            return known
        before = float(np.frombuffer(record, "<f8")[-1])
        if self._spending is not None:
            self._spending.correct(str(Token(number, None, epoch)), paid, correction)
        state = self.pacer.correct(copy.state, paid - before)
        return copy.changing(state, number, OpenRound(content, epoch, now), CORRECTED, correction)

    def skip(self, bid: LiveBid | Token | str) -> None:
        """Give up a bid that took part in no auction. Its money is free again, and nothing is learned."""
        self._replica.transact(self._skipping, bid)

    def _skipping(self, bid: LiveBid | Token | str) -> RoundChange[Any, tuple[float, float]]:
        copy = self._replica.copy
        number, found = copy.find(bid, self._replica.now())
        self._pay(number, found.epoch, 0.0)
        return copy.closing(number, copy.state, SKIPPED)

    def _pay(self, number: int, epoch: int, paid: float) -> None:
        """Settle a bid in the account."""
        if self._spending is not None:
            self._spending.settle(str(Token(number, None, epoch)), paid)

    def change(self, *, budget: float | None = None, horizon: int | None = None) -> None:
        """Change the budget or the horizon, here and in all processes that use this pacer.

        What was spent counts. The price goes on from where it is, and moves towards the new plan.

        Parameters
        ----------
        budget : float, optional
            The new budget for the whole campaign.
        horizon : int, optional
            The new number of requests.

        Raises
        ------
        InputError
            If a value cannot be used, or the budget is below the open bids.
        """
        given = {"budget": budget, "horizon": horizon}
        changes = {f"pacer.{name}": value for name, value in given.items() if value is not None}

        def check() -> None:
            held = self._replica.copy.held
            if budget is not None and not budget >= held:
                raise InputError(
                    "budget", f"{budget} is lower than what open bids hold, {held}", "Settle or skip them first"
                )

        self._replica.redefine(changes, check)

    def _adopt(self, name: str, value: Any) -> dict[str, Any]:
        rule: Any = self.pacer  # every pacer is a dataclass
        self.pacer = self._replica.copy.pacer = replace(rule, **{name: value})
        return {"pacer": self.pacer}

    @property
    def state(self) -> Any:
        """The state of the rule."""
        return self._replica.look(lambda: self._replica.copy.state)

    @property
    def spent(self) -> float:
        """The sum of the payments."""
        return float(self.state.spent.value)

    @property
    def held(self) -> float:
        """The sum of the open bids."""
        return float(self._replica.look(lambda: self._replica.copy.held))

    def metrics(self) -> Metrics:
        """Return figures for monitoring. `plan` is the money that an even spender would have spent by now."""
        figures: Metrics = self._replica.look(self._metrics)
        return figures

    def _metrics(self) -> Metrics:
        copy, pacer = self._replica.copy, self.pacer
        limit, share = float(pacer.budget), min(copy.asked / pacer.horizon, 1.0)
        return {
            "requests": copy.asked,
            "open": len(copy.open),
            "spent": float(copy.state.spent.value),
            "held": copy.held,
            "limit": limit,
            "plan": limit * share,
            "overshoot": float(pacer.overspent(copy.state)),
            "price": float(pacer.price(copy.state)),
        }

    @property
    def in_flight(self) -> tuple[Token, ...]:
        """The tokens of open bids, oldest first."""
        found: tuple[Token, ...] = self._replica.look(self._replica.copy.tokens)
        return found
