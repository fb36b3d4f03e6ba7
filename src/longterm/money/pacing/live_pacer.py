"""Pacers in a service: bids for requests as they come, payments as they become known, state in a database."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from longterm._base.display import ReprMixin
from longterm._base.exact_sum import ExactSum
from longterm._base.states import state_leaves
from longterm.errors import ExpiredTokenError, InputError, TokenError
from longterm.money.budgets import (
    LARGEST_RATIO,
    LARGEST_STORED,
    out_of_proportion,
    positive_scalar_in_range,
    scalar_in_range,
)
from longterm.money.ledger.accounts import ABSURD, IF_RIGHT, require_note
from longterm.money.ledger.spending import LeasedAccount, SharedAccount, Spending, require_leased, require_shared
from longterm.money.pacing.base import Outcome, Pacer
from longterm.money.periods import (
    KEPT,
    Period,
    elapsed,
    period_bounds,
    period_number,
    require_period,
    require_zone,
    turned,
)
from longterm.storage.clock import DAY, SYSTEM, Clock
from longterm.storage.database import RoundRow
from longterm.storage.engine import Durability
from longterm.storage.packing import StatePacker, raw_bytes, require_sound, restored_state, unpack_checked
from longterm.storage.positions import require_position
from longterm.storage.record import Recorded, changed_limits, entry
from longterm.storage.replica import Redefinition, Replica
from longterm.storage.rounds import (
    CORRECTED,
    DONE,
    EXPIRED,
    NOTHING,
    SKIPPED,
    NoChange,
    OpenRound,
    RoundChange,
    RoundsCopy,
    Window,
)
from longterm.storage.schema import OPEN
from longterm.storage.stored_object import Metrics, Stored
from longterm.storage.tokens import Token, require_key

CHANGEABLE = ("budget", "horizon")
"""What may be changed of a pacer's rule while it is used."""


class CampaignState(NamedTuple):
    """The state of a live pacer."""

    rule: Any
    """The state of the rule in the present period."""
    since: int = 0
    """The number of the present period; 0 if there is none."""
    others: Mapping[int, ExactSum] = {}
    """The payments of other periods by number."""
    total: float = 0.0
    """All that was ever spent, rounded: a sum that never falls, whatever periods, resets and corrections do."""


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
    refused : bool
        True if the bid is 0 because no money is left. The rule may also bid 0 with money left: then this is False.
    """

    amount: float
    value: float
    token: Token
    refused: bool = False

    def __str__(self) -> str:
        return str(self.token)


class PacerCopy(RoundsCopy[CampaignState, tuple[float, float]]):
    """A copy of a live pacer: the state of the rule, the payments by period, and open bids as (amount, value)."""

    kind = "live pacer"
    remedy = "Pass the bid that bid() returned, or str() of it"
    closed_kept = 100_000

    def __init__(self, pacer: Pacer[Any], window: Window, period: Period | None, timezone: str) -> None:
        super().__init__(CampaignState(pacer.init()), window)
        self.pacer, self._start = pacer, self.state.rule
        self.period, self.timezone = period, timezone
        self._present = 0, math.inf, -math.inf
        """The number of a period, its beginning and its end."""
        if any(np.ndim(leaf) for leaf in state_leaves(self._start.spent).values()):
            raise InputError(
                "pacer",
                "paces several campaigns at once",
                "Give a pacer of one campaign. Open one LivePacer for each campaign",
            )
        others = {"periods": np.zeros(KEPT, np.int64), "payments": np.zeros((KEPT, 2)), "total": np.zeros(1)}
        self._packer = StatePacker(self._start, {}, others)

    @property
    def limit(self) -> float:
        """The budget; infinite for a rule that has none."""
        budget: Any = self.pacer.budget
        return math.inf if budget is None else float(budget)

    @property
    def held(self) -> float:
        """The sum of the open bids."""
        return self.held_without(())

    def held_without(self, expired: Collection[int]) -> float:
        """Return the sum of the open bids but those that have expired."""
        return math.fsum(found.content[0] for number, found in self.open.items() if number not in expired)

    # --- periods ---------------------------------------------------------------------------------------------

    def use_period(self, period: Period | None, timezone: str) -> None:
        """Renew the budget in every such period from now on. What was spent counts in the present one."""
        self.period, self.timezone, self._present = period, timezone, (0, math.inf, -math.inf)

    def period_at(self, now: float) -> int:
        """Return the number of the period that a time is in; 0 if there is none."""
        if self.period is not None and not self._present[1] <= now < self._present[2]:
            bounds = period_bounds(self.period, self.timezone, now)
            self._present = period_number(self.period, self.timezone, now), *bounds
        return self._present[0]

    def is_due(self, now: float) -> bool:
        return super().is_due(now) or self.state_at(now) is not self.state

    def state_at(self, now: float) -> CampaignState:
        """Return the state in the period that a time is in. It is the same object in the present period."""
        rule, since, others, _ = self.state
        number = self.period_at(now)
        if number == since:
            return self.state
        if len(str(number)) != len(str(since)):  # the first period, or of another kind
            return self.state._replace(since=number, others={})
        since, sums = turned({**others, since: rule.spent}, number, ExactSum.zeros())
        if since == self.state.since:  # a clock that is set back begins no period
            return self.state
        return self.state._replace(rule=self.pacer.renewed(rule, sums.pop(since)), since=since, others=sums)

    def refusal(self, number: int, status: int | None) -> TokenError:
        """Return the error for a bid with this status."""
        if status == EXPIRED and number > self.asked - self.closed_kept:
            what = "it has expired, so it counts as paid in full"
            return ExpiredTokenError(number, what, "Say what was paid with correct, and use a larger max_age")
        return super().refusal(number, status)

    # --- storage ---------------------------------------------------------------------------------------------

    def encode_state(self, state: CampaignState) -> bytes:
        periods, payments = np.zeros(KEPT, "<i8"), np.zeros((KEPT, 2), "<f8")
        periods[0] = state.since
        for place, (number, spent) in enumerate(sorted(state.others.items()), 1):
            periods[place], payments[place] = number, spent
        total = np.array([state.total], "<f8")
        return self._packer.encode(state.rule, periods.tobytes() + payments.tobytes() + total.tobytes())

    def decode_state(self, data: bytes, asked: int) -> CampaignState:
        _, arrays = unpack_checked(data)
        rule = restored_state(self._start, arrays)
        require_sound(self._start, rule)
        if not 0 <= rule.spent.value <= LARGEST_STORED:
            raise ValueError("the money spent is out of range")
        if not abs(self.pacer.price(rule)) <= LARGEST_STORED:  # with a floor it may be below 0
            raise ValueError("the price is out of range")
        since, *numbers = arrays["periods"].tolist()
        others = {number: ExactSum(*sums) for number, sums in zip(numbers, arrays["payments"][1:], strict=True)}
        others.pop(0, None)
        known = since, *others
        if min(known) < 0 or not all(0 <= sums.value < math.inf for sums in others.values()):
            raise ValueError("the payments of a period contradict each other")
        (total,) = arrays["total"].tolist()
        if not 0 <= total <= LARGEST_STORED:
            raise ValueError("the sum of all payments is out of range")
        return CampaignState(rule, since, others, total)

    def encode_round(self, content: tuple[float, float]) -> bytes:
        return raw_bytes(np.array(content, dtype=np.float64))

    def record(self, content: Any) -> bytes:
        """Return all payments of a closed bid: one that has expired counts with its amount."""
        return content if isinstance(content, bytes) else raw_bytes(np.array([content[2 if len(content) > 2 else 0]]))

    def state_without(self, state: CampaignState, expired: Iterable[int]) -> CampaignState:
        """Return the state after bids have expired: each counts as paid in full, and the price stays."""
        for number in expired:
            amount = self.open[number].content[0]
            rule = self.pacer.correct(state.rule, 0.0, amount)
            state = state._replace(rule=rule, total=state.total + amount)
        return state

    def decode_round(self, row: RoundRow) -> tuple[float, float]:
        amount, value = np.frombuffer(row.content, dtype="<f8").tolist()
        if not (0 <= amount < math.inf and 0 <= value < math.inf):
            raise ValueError("a bid is not a finite number of at least 0")
        return amount, value

    def require_rounds(
        self, state: CampaignState, rounds: dict[int, OpenRound[tuple[float, float]]], asked: int
    ) -> None:
        held = math.fsum(found.content[0] for found in rounds.values())
        if held > self.limit * (1 + 1e-9):
            raise ValueError("open bids are above the budget")


class LivePacer(Stored[PacerCopy]):
    """A pacer for a service: any thread or process may bid, and settle the auction later.

    Open bids are held back, and those that expire count in full, so the budget is never exceeded if no auction costs
    more than its bid. This constructor
    keeps the state in memory, for one process. `LivePacer.open` keeps it in a database, which processes share.

    With a `period`, the budget and the horizon are for one day, week or month, and a campaign runs for months under one
    name. A new period begins with the whole budget, and the price goes on from where it is. A payment counts in the
    period in which it is settled, and open bids of earlier periods stay held.

    Parameters
    ----------
    pacer : Pacer
        The rule, for one campaign.
    period : {"day", "week", "month"}, optional
        The budget is renewed in every such period. Default: one budget for the whole campaign.
    timezone : str
        Where periods begin, such as "Europe/Berlin".
    account : LeasedAccount, optional
        An account of a ledger from which the money is leased as well.
    max_in_flight : int
        The largest number of open bids; `bid` raises a WindowFullError when it is reached.
    expire_after : int, optional
        The age, in requests since, at which an open bid expires: it counts as paid in full until `correct` says what
        was paid. So the budget is kept whatever is reported late. Call `settle(bid, 0)` for an auction that was lost.
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
        period: Period | None = None,
        timezone: str = "UTC",
        account: LeasedAccount | None = None,
        max_in_flight: int = 100_000,
        expire_after: int | None = None,
        max_age: float | None = None,
        remember: float = DAY,
        clock: Clock = SYSTEM,
    ) -> None:
        self.pacer = pacer
        self._spending: Spending | None = require_leased(account)
        require_zone(timezone)
        window = Window.of(max_in_flight, expire_after, max_age, remember)
        copy = PacerCopy(pacer, window, require_period(period), timezone)
        self._replica = Replica(copy, self._definition(copy), may_fork=False, clock=clock)
        self._replica.expire = self._expiring
        self._replica.definition.changeable = [*(f"pacer.{name}" for name in CHANGEABLE), "period", "timezone"]
        self._replica.definition.adopt = self._adopt

    @classmethod
    def open(
        cls,
        url: str | PathLike[str],
        pacer: Pacer[Any],
        *,
        name: str = "pacer",
        period: Period | None = None,
        timezone: str = "UTC",
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
        period, timezone
            As for a new pacer.
        durability : {"commit", "relaxed"}
            As for `LiveLearner.open`.
        account : SharedAccount, optional
            An account of a ledger in the same database. A bid is at most what the account has left, and is held there
            in the same transaction. Objects that name one account share its limit.
        max_in_flight, expire_after, max_age, remember, clock
            As for a new pacer; give the same in every process.
        follow : bool
            Use the budget, horizon, period and time zone of the database, in place of those given. With False, values
            that the pacer had before `change` give way to the present ones, and other values are an error.

        Raises
        ------
        DatabaseError
            If the database cannot be used, or holds another object with this name.
        """
        shared = require_shared(account, name)
        live = cls(
            pacer,
            period=period,
            timezone=timezone,
            max_in_flight=max_in_flight,
            expire_after=expire_after,
            max_age=max_age,
            remember=remember,
            clock=clock,
        )
        live._replica.definition.follows = follow
        live._replica.attach(url, name, durability)
        database = live._replica.database
        if shared is not None and database is not None:
            live._spending = shared.attach(database, name)
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
        pacer, state = self.pacer, self._replica.copy.state.rule
        refused = amount == 0 and float(pacer.raw_bid(state, worth, float(pacer.budget or math.inf))) > 0
        return LiveBid(amount, worth, Token(change.number, epoch=change.round.epoch), refused)

    def _bidding(
        self, value: float, key: str | None
    ) -> RoundChange[Any, tuple[float, float]] | NoChange[tuple[float, float]]:
        replica, copy, now = self._replica, self._replica.copy, self._replica.now()
        known = copy.repeated(key, now)
        if known is not None:
            return known
        expired = copy.outnumbered()
        copy.require_window(expired)
        worth = scalar_in_range("value", value)
        state = copy.state_without(copy.state, expired)
        amount = float(self.pacer.act(state.rule, worth, hold=copy.held_without(expired)))
        self._pay_expired(expired)
        if self._spending is not None:
            amount = max(min(amount, *self._spending.room(amount)), 0.0)
        change = copy.opening(state, (amount, worth), replica.epoch, key, expired, now=now)
        if self._spending is not None:
            self._spending.hold(str(Token(change.number, epoch=replica.epoch)), amount, amount)
        return change

    def _expiring(self, now: float) -> RoundChange[Any, tuple[float, float]]:
        """Return the change that closes the bids which are too old, and begins a new period."""
        copy = self._replica.copy
        expired = copy.outdated(now)
        self._pay_expired(expired)
        return copy.expiry(copy.state_without(copy.state_at(now), expired), expired)

    def settle(
        self,
        bid: LiveBid | Token | str,
        paid: float,
        *,
        price: float | None = None,
        won: bool | None = None,
        force: bool = False,
        position: tuple[str, int] | None = None,
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
        position : (str, int), optional
            The partition of a queue and the number of the message there. A message counts once, however often the
            queue delivers it. Numbers must grow along a partition.

        Raises
        ------
        TokenError
            If the bid is unknown, or was settled or skipped already.
        RepeatedPositionError
            If the object has applied this position, or a later one of the partition.
        InputError
            If a number cannot be used.
        """
        self._replica.apply_message(require_position(position), self._settling, bid, paid, price, won, force)

    def _settling(
        self, bid: LiveBid | Token | str, paid: float, price: float | None, won: bool | None, force: bool
    ) -> RoundChange[Any, tuple[float, float]]:
        copy = self._replica.copy
        number, found = copy.find(bid, self._replica.now())
        amount, value = found.content
        paid = scalar_in_range("paid", paid)
        price = None if price is None else scalar_in_range("price", price)
        self._require_plausible(number, paid, amount, force=force)
        rule = self.pacer.settle(copy.state.rule, Outcome(paid, value, price, amount, won))
        self._pay(number, found.epoch, paid)
        content: Any = amount, value, paid
        state = copy.state._replace(rule=rule, total=copy.state.total + paid)
        return copy.changing(state, number, found._replace(content=content), DONE)

    def _require_plausible(self, number: int, paid: float, amount: float, *, force: bool) -> None:
        limit = self._replica.copy.limit
        if paid > LARGEST_RATIO * max(limit, amount):
            raise out_of_proportion("paid", paid, number)
        if not force and paid > (ABSURD * amount if amount > 0 else limit):
            raise InputError("paid", f"{paid:g} is far above the bid of {amount:g}", IF_RIGHT, round=number)

    def correct(
        self,
        bid: LiveBid | Token | str,
        paid: float,
        *,
        correction: str | None = None,
        force: bool = False,
        who: str = "",
        note: str = "",
    ) -> None:
        """Replace the payment of a bid that was settled, skipped or has expired. Both payments stay in the record.

        The money spent changes, here and in the account, and the price stays as it is. With a `period` it changes in
        the present period, and does not fall below 0. The last 100,000 bids can be corrected.

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
        who, note : str
            Who makes the correction and why, for `record`.
        """
        said = require_note("who", who), require_note("note", note)
        self._replica.transact(self._correcting, bid, paid, require_key(correction), force, *said)

    def _correcting(
        self, bid: LiveBid | Token | str, paid: float, correction: str | None, force: bool, who: str, note: str
    ) -> Recorded | NoChange[tuple[float, float]]:
        copy, now = self._replica.copy, self._replica.now()
        known = copy.repeated(correction, now, is_correction=True)
        number, epoch, record = copy.closed(bid)
        paid = scalar_in_range("paid", paid)
        self._require_plausible(number, paid, 0.0, force=force)
        content: Any = record + raw_bytes(np.array([paid]))
        if known is not None:
            stored: Any = known.round.content
            if known.number != number or stored[-8:] != content[-8:]:
                what = f"{correction!r} is the key of a different correction"
                raise InputError("correction", what, "Use a new key for each correction")
            return known
        before = float(np.frombuffer(record, "<f8")[-1])
        key = str(Token(number, epoch=epoch))
        if self._spending is not None:
            self._spending.correct(key, paid, who, note)
        rule = self.pacer.correct(copy.state.rule, before, paid)
        state = copy.state._replace(rule=rule, total=copy.state.total + max(paid - before, 0.0))
        change = copy.changing(state, number, OpenRound(content, epoch, now), CORRECTED, correction)
        return Recorded(change, [entry("corrected", before, paid, key=key, who=who, note=note)])

    def skip(self, bid: LiveBid | Token | str, *, who: str = "", note: str = "") -> None:
        """Give up a bid that took part in no auction. Its money is free again, and nothing is learned.

        Parameters
        ----------
        bid : LiveBid, Token or str
            The bid.
        who, note : str
            Who gives it up and why. With either, `record` has an entry.
        """
        self._replica.transact(self._skipping, bid, require_note("who", who), require_note("note", note))

    def _skipping(
        self, bid: LiveBid | Token | str, who: str, note: str
    ) -> RoundChange[Any, tuple[float, float]] | Recorded:
        copy = self._replica.copy
        number, found = copy.find(bid, self._replica.now())
        self._pay(number, found.epoch, 0.0)
        content: Any = *found.content, 0.0
        change = copy.changing(copy.state, number, found._replace(content=content), SKIPPED)
        if not who and not note:
            return change
        key = str(Token(number, epoch=found.epoch))
        return Recorded(change, [entry("released", found.content[0], 0.0, key=key, who=who, note=note)])

    def _pay_expired(self, expired: Iterable[int]) -> None:
        """Settle bids that have expired in the account, with what they hold."""
        for number in expired:
            amount, _ = self._replica.copy.open[number].content
            self._pay(number, self._replica.copy.open[number].epoch, amount)

    def _pay(self, number: int, epoch: int, paid: float) -> None:
        """Settle a bid in the account."""
        if self._spending is not None:
            self._spending.settle(str(Token(number, epoch=epoch)), paid)

    def reset(self, spent: float = 0.0, *, who: str = "", note: str = "") -> None:
        """Set the money that counts as spent, in the present period if there is one. Open bids and the price stay.

        Parameters
        ----------
        spent : float
            The money that counts as spent from now on.
        who, note : str
            Who makes the change and why, for `record`.
        """
        said = require_note("who", who), require_note("note", note)
        self._replica.transact(self._resetting, scalar_in_range("spent", spent), *said)

    def _resetting(self, spent: float, who: str, note: str) -> Recorded:
        copy = self._replica.copy
        before = float(copy.state.rule.spent.value)
        rule = copy.state.rule._replace(spent=ExactSum.zeros().add(np.float64(spent)))
        change = copy.changing(copy.state._replace(rule=rule), 0, NOTHING.round, OPEN)
        return Recorded(change, [entry("reset", before, spent, who=who, note=note)])

    def change(
        self,
        *,
        budget: float | None = None,
        horizon: int | None = None,
        period: Period | Literal[""] | None = None,
        timezone: str | None = None,
        who: str = "",
        note: str = "",
    ) -> None:
        """Change what a person decides about a campaign, here and in all processes that use this pacer.

        What was spent counts, in the present period if there is one. The price goes on from where it is, and moves
        towards the new plan.

        Parameters
        ----------
        budget : float, optional
            The new budget, for the whole campaign or for a period.
        horizon : int, optional
            The new number of requests, likewise.
        period : {"day", "week", "month", ""}, optional
            The budget is renewed in every such period from now on; "": never.
        timezone : str, optional
            Where periods begin.
        who, note : str
            Who makes the change and why, for `record`.

        Raises
        ------
        InputError
            If a value cannot be used, or the budget is below the open bids.
        """
        given = {"budget": budget, "horizon": horizon}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if budget is not None:
            positive_scalar_in_range("budget", budget)
        renewed = require_period(None if isinstance(period, str) and not period else period)
        require_note("who", who), require_note("note", note)
        if timezone is not None:
            require_zone(timezone)

        def plan() -> Redefinition:
            copy, held = self._replica.copy, self._replica.copy.held
            rule: Any = copy.pacer  # every pacer is a dataclass
            if budget is not None and not budget >= held:
                raise InputError(
                    "budget", f"{budget} is lower than what open bids hold, {held}", "Settle or skip them first"
                )
            new = replace(rule, **changes)
            definition = self._definition(copy) | {"pacer": new}
            if period is not None:
                definition["period"] = renewed
            if timezone is not None:
                definition["timezone"] = timezone
            times = {"period": copy.period, "timezone": copy.timezone}
            before = {name: getattr(rule, name) for name in CHANGEABLE} | times
            after = {name: getattr(new, name) for name in CHANGEABLE} | {name: definition[name] for name in times}
            return Redefinition(definition, None, changed_limits(before, after, who, note))

        self._replica.redefine(plan)

    def _adopt(self, stored: dict[str, Any]) -> None:
        copy = self._replica.copy
        rule: Any = copy.pacer
        self.pacer = copy.pacer = replace(rule, **{name: stored["pacer"][name] for name in CHANGEABLE})
        copy.use_period(stored["period"], stored["timezone"])

    @staticmethod
    def _definition(copy: PacerCopy) -> dict[str, Any]:
        return {"pacer": copy.pacer, "period": copy.period, "timezone": copy.timezone}

    @property
    def period(self) -> Period | None:
        """The period in which the budget is renewed."""
        return self._replica.copy.period

    @property
    def timezone(self) -> str:
        """The time zone in which periods begin."""
        return self._replica.copy.timezone

    @property
    def state(self) -> Any:
        """The state of the rule."""
        return self._replica.look(lambda: self._replica.copy.state.rule)

    @property
    def spent(self) -> float:
        """The sum of the payments, in the present period if there is one."""
        return float(self.state.spent.value)

    @property
    def held(self) -> float:
        """The sum of the open bids."""
        return float(self._replica.look(lambda: self._replica.copy.held))

    def metrics(self) -> Metrics:
        """Return figures for monitoring. `plan` is the money that an even spender would have spent by now.

        It is spent evenly over the requests of the horizon, or over the time of a period. A rule without a budget has
        no `limit` and no `plan`. `total` is all that was ever spent: it never falls.
        """
        figures: Metrics = self._replica.look(self._metrics)
        return figures

    def _metrics(self) -> Metrics:
        copy, pacer = self._replica.copy, self.pacer
        state, total = copy.state.rule, copy.state.total
        share = min(copy.asked / pacer.horizon, 1.0)
        if copy.period is not None:
            share = elapsed(copy.period, copy.timezone, self._replica.now())
        limits = {} if math.isinf(copy.limit) else {"limit": copy.limit, "plan": copy.limit * share}
        return {
            "requests": copy.asked,
            "open": len(copy.open),
            "spent": float(state.spent.value),
            "total": total,
            "held": copy.held,
            **limits,
            "overshoot": float(pacer.overspent(state)),
            "price": float(pacer.price(state)),
        }

    @property
    def in_flight(self) -> tuple[Token, ...]:
        """The tokens of open bids, oldest first."""
        found: tuple[Token, ...] = self._replica.look(self._replica.copy.tokens)
        return found
