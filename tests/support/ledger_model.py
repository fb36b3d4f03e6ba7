"""An exact model of a ledger, and random calls of several replicas that are compared with it.

    python tests/support/ledger_model.py [SECONDS] [SEED] [URL]

The model is written from the documentation: integers for amounts, fractions for what a rate replenishes. Every answer
and every error is compared with it, and after every call all balances, open holds and the record.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from clocks import ManualClock
from longterm import Ledger
from longterm.errors import (
    ClosedHoldError,
    InputError,
    InUseError,
    LongtermError,
    OutOfBudgetError,
    RepeatedPositionError,
    TokenError,
)
from longterm.money import (
    EXP3IX,
    Budget,
    Chooser,
    DualMirrorDescent,
    HedgeDual,
    LeasedAccount,
    LivePacer,
    PrimalDual,
    SharedAccount,
)
from replica_model import DisagreementError, Order, crossed

REMEMBER = 3600
MAX_AGE = 50.0
ABSURD = 100
SHORT = (1 / 64, 0.25, 0.5, 1.0)
LONG = (30.0, 3600.0, 3600.0, 40_000.0, 400_000.0)
ZONES = ("UTC", "Europe/Berlin", "America/New_York")


@dataclass
class Account:
    limit: int
    parent: str | None = None
    reserve: int | None = None
    period: str | None = None
    zone: str = "UTC"
    rate: int = 0
    spent: Fraction = Fraction(0)
    held: int = 0
    exposed: int = 0
    since: tuple[int, ...] = ()
    updated: Fraction = Fraction(0)
    others: dict[tuple[int, ...], Fraction] = field(default_factory=dict)

    def label(self, now: Fraction) -> tuple[int, ...]:
        """The period that a time is in, as numbers that grow."""
        day = datetime.fromtimestamp(int(now), ZoneInfo(self.zone)).date()
        if self.period == "week":
            return day.isocalendar()[:2]
        return (day.year, day.month, day.day) if self.period == "day" else (day.year, day.month)

    def at(self, now: Fraction) -> tuple[Fraction, tuple[int, ...], Fraction]:
        """What is spent at a time, in which period, and until when it was replenished. A read changes nothing."""
        if self.period is not None:
            sums = self.others | {self.since: self.spent}
            label = max(self.label(now), min(sums))
            return sums.get(label, Fraction(0)), label, now
        if self.rate and now > self.updated:
            return max(self.spent - self.rate * (now - self.updated), Fraction(0)), self.since, now
        return self.spent, self.since, self.updated

    def units(self, now: Fraction) -> int:
        return ceil(self.at(now)[0])

    def add(self, now: Fraction, spent: int, held: int, exposed: int) -> None:
        sums = self.others | {self.since: self.spent}
        before, self.since, self.updated = self.at(now)
        if self.period is not None:
            last = sorted(sums | {self.since: before})[-4:]
            self.others = {label: sums[label] for label in last if label in sums and label != self.since}
        self.spent = max(before + spent, Fraction(0))
        self.held += held
        self.exposed += exposed


@dataclass
class Hold:
    account: str
    asked: int
    amount: int
    largest: int
    opened: Fraction
    expires: Fraction | None
    is_lease: bool
    spent: int = 0
    status: str = "open"
    closed: Fraction | None = None
    answer: int = 0
    corrections: list[tuple[str | None, int, int, tuple[str, ...]]] = field(default_factory=list)


class Model:
    """What a ledger does, in a few lines for each call."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.holds: dict[str, Hold] = {}
        self.archive: list[Hold] = []
        self.position = -1

    def chain(self, name: str) -> Iterator[tuple[str, Account]]:
        at: str | None = name
        while at is not None:
            yield at, self.accounts[at]
            at = self.accounts[at].parent

    def tick(self, now: Fraction) -> None:
        """Close what has expired."""
        for hold in self.holds.values():
            if hold.status == "open" and not hold.is_lease and hold.expires is not None and hold.expires <= now:
                self.close(now, hold, hold.spent, "expired", hold.expires)

    def close(self, now: Fraction, hold: Hold, actual: int, status: str, closed: Fraction) -> None:
        for _, account in self.chain(hold.account):
            account.add(now, actual - hold.spent, -hold.amount, -hold.largest)
        hold.amount = hold.largest = 0
        hold.spent, hold.status, hold.closed = actual, status, closed

    def add_account(self, now: Fraction, name: str, limit: int, **given: Any) -> None:
        account = Account(limit, **given)
        account.since = () if account.period is None else account.label(now)
        account.updated = now
        self.accounts[name] = account

    def hold(
        self,
        now: Fraction,
        account: str,
        amount: int,
        key: str,
        seconds: Fraction | None = None,
        *,
        lease: bool = False,
    ) -> int:
        known = old = self.holds.get(key)
        if known is not None and known.status in ("settled", "released") and known.closed + REMEMBER <= now:
            known = None
        if known is not None:
            if (known.account, known.asked) != (account, amount) or known.status == "released":
                raise InputError("key", "model", "model")
            if known.status != "expired":
                return known.answer
        for name, found in self.chain(account):
            left = found.limit - found.units(now)
            exposure = 2**62 if found.reserve is None else max(left + found.reserve - found.exposed, 0)
            if amount > 0 and amount > left - found.held:
                raise OutOfBudgetError(name, amount, max(left - found.held, 0))
            if amount > exposure:
                raise OutOfBudgetError(name, amount, exposure)
        for _, found in self.chain(account):
            found.add(now, 0, amount, amount)
        if old is not None and known is None:
            self.archive.append(old)
        expires = None if seconds is None else now + seconds
        fresh = Hold(account, amount, amount, amount, now, expires, lease, answer=amount)
        fresh.spent = known.spent if known is not None else 0
        self.holds[key] = fresh
        return amount

    def find(self, key: str) -> Hold:
        if key not in self.holds:
            raise InputError("key", "model", "model")
        return self.holds[key]

    def settle_message(self, now: Fraction, key: str, actual: int, number: int) -> None:
        if number <= self.position:
            raise RepeatedPositionError("position", "model", "model")
        self.settle(now, key, actual)
        self.position = number

    def settle(self, now: Fraction, key: str, actual: int, *, force: bool = False) -> None:
        hold = self.find(key)
        if hold.status == "settled" and hold.spent == actual:
            return
        if hold.status in ("settled", "released"):
            raise ClosedHoldError("key", "model", "model")
        if not force and actual > ABSURD * max(hold.asked, 1):
            raise InputError("key", "model", "model")
        self.close(now, hold, actual, "settled", now)

    def release(self, now: Fraction, key: str, *, force: bool = False) -> None:
        hold = self.find(key)
        if hold.status == "released":
            return
        if hold.status == "settled":
            raise ClosedHoldError("key", "model", "model")
        if hold.is_lease and not force and hold.expires > now:
            raise InputError("key", "model", "model")
        self.close(now, hold, hold.spent, "released", now)

    def report(self, now: Fraction, key: str, spent: int, held: int | None = None, *, force: bool = False) -> None:
        hold = self.find(key)
        is_closed = hold.status in ("settled", "released")
        if (not hold.is_lease and (is_closed or held is not None)) or (
            not force and spent > ABSURD * max(hold.asked, 1)
        ):
            raise InputError("key", "model", "model")
        if hold.status == "released":
            if spent > (hold.corrections[-1][2] if hold.corrections else hold.spent):
                self.correct(now, key, spent, force=True)
            return
        more = max(spent - hold.spent, 0)
        rest = max(hold.amount - more, 0) if held is None else min(hold.amount, held)
        for _, account in self.chain(hold.account):
            account.add(now, more, rest - hold.amount, rest - hold.largest)
        hold.spent += more
        hold.amount = hold.largest = rest
        if held == 0 and hold.status == "open":
            hold.status, hold.closed = "settled", now

    def correct(
        self, now: Fraction, key: str, actual: int, correction: str | None = None, *, force: bool = False
    ) -> tuple[int, int, tuple[str, ...]]:
        hold = self.find(key)
        for own, old, new, moved in hold.corrections:
            if own is not None and own == correction:
                if new != actual:
                    raise InputError("correction", "model", "model")
                return old, new, moved
        if hold.status not in ("settled", "released") or (not force and actual > ABSURD * max(hold.asked, 1)):
            raise InputError("key", "model", "model")
        old = hold.corrections[-1][2] if hold.corrections else hold.spent
        moved = []
        for name, account in self.chain(hold.account):
            if account.period is not None and account.label(hold.closed) < account.at(now)[1]:
                moved.append(name)
            if actual != old:
                account.add(now, actual - old, 0, 0)
        hold.corrections.append((correction, old, actual, tuple(moved)))
        return old, actual, tuple(moved)

    def set_limit(self, now: Fraction, name: str, limit: int, reserve: int | None = None) -> None:
        account = self.accounts[name]
        account.limit, account.reserve = limit, account.reserve if reserve is None else reserve

    def set_period(self, now: Fraction, name: str, period: str | None, timezone: str, rate: int) -> None:
        account = self.accounts[name]
        if (account.period, account.zone, account.rate) != (period, timezone, rate):
            account.spent = Fraction(account.units(now))
            account.period, account.zone, account.rate = period, timezone, rate
            account.since = () if period is None else account.label(now)
            account.updated, account.others = now, {}

    def reset(self, now: Fraction, name: str, spent: int) -> None:
        account = self.accounts[name]
        account.add(now, 0, 0, 0)
        account.spent, account.updated = Fraction(spent), now


def rule() -> PrimalDual:
    return PrimalDual(EXP3IX(2), HedgeDual(), Budget(1e9, largest=1e3), horizon=10**6)


def pacer_rule() -> DualMirrorDescent:
    return DualMirrorDescent(budget=1e6, horizon=1000, step=0.1, start=1.0, mirror="euclidean")


class Waiting(NamedTuple):
    """An open choice or bid: its object, its hold in the ledger, and the time at which it was opened."""

    name: str
    is_bid: bool
    choice: Any
    key: str
    amount: int
    bound: float
    opened: float


class Search:
    """Random calls of several replicas, compared with the model after every one."""

    def __init__(self, url: str, seed: int, replicas: int = 3) -> None:
        self.dice, self.url, self.name = random.Random(seed), url, f"ledger {seed} {time.time_ns()}"
        self.clock, self.model = ManualClock(), Model()
        self.ledgers = [self.open() for _ in range(replicas)]
        self.is_calm = self.dice.random() < 0.5
        self.keys: list[str] = []
        self.leases: list[tuple[Any, int]] = []
        self.choices: list[Waiting] = []
        self.calls: list[str] = []
        self.gathered: list[tuple[str, Callable[[], Any], Callable[[], Any]]] | None = None
        dice = self.dice
        parents: list[str | None] = [None]
        for name in ("root", "left", "right", "leaf", "twig"):
            parent = dice.choice(parents) if name != "root" else None
            period = dice.choice([None, None, "day", "week", "month"])
            given = {
                "parent": parent,
                "period": period,
                "rate": 0 if period else dice.choice([0, 0, 1, 7]),
                "reserve": dice.choice([None, None, 0, 50]),
            }
            limit, zone = dice.randrange(50, 400), dice.choice(ZONES) if period else "UTC"
            self.ledgers[0].add_account(name, limit, timezone=zone, **given)
            self.model.add_account(self.now, name, limit, zone=zone, **given)
            parents.append(name)
        self.objects = [self.start(number) for number in (0, 1, 0, 1)]

    @property
    def now(self) -> Fraction:
        return Fraction(int(self.clock.wall() * 1e6), 10**6)

    def open(self) -> Ledger:
        times = {"remember": float(REMEMBER), "keep": 1e8}
        return Ledger.open(self.url, name=self.name, durability="relaxed", clock=self.clock, **times)

    def start(self, number: int) -> tuple[Any, str, int]:
        """Open a chooser or a pacer on an account, with one account object for all."""
        account, units = ("leaf", "right")[number], 100
        shared = SharedAccount(account, units=units, ledger=self.name)
        options: dict[str, Any] = {"account": shared, "durability": "relaxed", "clock": self.clock, "max_age": MAX_AGE}
        if number == 0:
            return Chooser.open(self.url, rule(), name=f"{self.name} c", **options), account, units
        return LivePacer.open(self.url, pacer_rule(), name=f"{self.name} p", **options), account, units

    def close(self) -> None:
        for ledger in self.ledgers:
            ledger.close()
        for found, _, _ in self.objects:
            found.close()

    # --- comparing ---------------------------------------------------------------------------------------------

    def compare(self, what: str, real: Callable[[], Any], model: Callable[[], Any]) -> Any:
        """Make a call, compare its answer or error with the model's, and then everything that can be seen."""
        if self.gathered is not None:
            self.gathered.append((what, real, model))
            return None
        self.calls.append(what)
        self.model.tick(self.now)
        expected, found = attempt(model), attempt(real)
        if describe(found) != describe(expected):
            raise self.differs(f"{what}: {found!r}, not {expected!r}")
        self.look()
        return None if isinstance(found, LongtermError) else found

    def look(self) -> None:
        ledger = self.dice.choice(self.ledgers)
        self.model.tick(self.now)
        balances = {name: tuple(balance) for name, balance in ledger.accounts.items()}
        expected = {name: (one.limit, one.units(self.now), one.held) for name, one in self.model.accounts.items()}
        if balances != expected:
            raise self.differs(f"balances {balances}, not {expected}")
        if self.dice.random() < 0.2:
            listed = sorted((one.key, one.account, one.held, one.spent) for one in ledger.open_holds())
            held = sorted(
                (key, one.account, one.amount, one.spent)
                for key, one in self.model.holds.items()
                if one.status == "open"
            )
            if listed != held:
                raise self.differs(f"open holds {listed}, not {held}")
            record = ledger.record(most=10**6)
            closed = sorted((one.key, one.what, one.old, one.new) for one in record if one.what in STATUS)
            known = [(key, one) for key, one in self.model.holds.items() if one.status != "open"]
            kept = sorted((key, one.status, one.answer, one.spent) for key, one in known)
            if [one for one in kept if one not in closed] or len(closed) != len(kept) + len(self.model.archive):
                raise self.differs(f"the record {closed}, not {kept}")
            corrected = sum(one.what == "corrected" for one in record)
            if corrected != sum(len(one.corrections) for one in [*self.model.holds.values(), *self.model.archive]):
                raise self.differs(f"{corrected} corrections")

    def differs(self, what: str) -> DisagreementError:
        return DisagreementError("\n".join([*self.calls[-25:], what]))

    # --- calls -------------------------------------------------------------------------------------------------

    def key(self) -> str:
        """A new key, or one that was used before."""
        if self.keys and self.dice.random() < 0.5:
            return self.dice.choice(self.keys[-12:])
        self.keys.append(f"k{len(self.keys)}")
        return self.keys[-1]

    def step(self) -> None:
        kinds = (
            *[self.hold] * 6, *[self.settle] * 5, *[self.settle_message] * 2, self.release, self.report,
            self.correct, self.correct, self.lease, self.spend, self.spend, self.end_lease, self.move, self.move,
            self.change, self.reopen, self.act, self.act, self.settle_choice, self.settle_choice,
            *[self.together] * 3,
        )  # fmt: skip
        self.dice.choice(kinds)()

    def together(self) -> None:
        """Make several calls of one replica in one transaction, perhaps crossed by a call of another replica."""
        dice, ledgers, count = self.dice, self.ledgers, len(self.keys)
        kinds = [*[self.hold] * 8, *[self.settle] * 8, self.settle_message, self.release, self.report, self.correct]
        if dice.random() < 0.3:  # the group is the first to see that holds have expired
            self.clock.advance(dice.choice([1.0, 60.0]))
        self.ledgers, self.gathered = [dice.choice(ledgers)], []
        (ledger,) = self.ledgers
        try:
            for _ in range(dice.choice([2, 3, 6, 20])):
                dice.choice([*kinds, self.change])()
            others = [one for one in ledgers if one is not ledger]
            gathered, self.ledgers, self.gathered = self.gathered, others, []
            self.hold()
            crossing = self.gathered[0] if dice.random() < 0.4 else None
        finally:
            self.ledgers, self.gathered = ledgers, None
        self.calls += [f"together: {what}" for what, _, _ in gathered]
        keys = [dice.choice([None, *self.keys[count - 12 :]]) for _ in gathered]
        done: list[Any] = []

        def cross() -> None:
            if crossing is not None:
                self.calls.append(f"crossed by {crossing[0]}")
                done.append((crossing, attempt(crossing[1])))

        order = Order()
        with crossed(ledger._replica, cross, order, is_late=dice.random() < 0.5):
            calls = [partial(order.noted, place, real) for place, (_, real, _) in enumerate(gathered)]
            answers = ledger.commit_group(calls, keys)
        for (what, _, model), found in order.sort(list(zip(gathered, answers, strict=True)), done):
            self.model.tick(self.now)
            wanted = attempt(model)
            if isinstance(found, Exception) and not isinstance(found, LongtermError):
                raise found
            if describe(found) != describe(wanted):
                raise self.differs(f"{what}: {found!r}, not {wanted!r}")
        self.look()

    def account(self) -> str:
        return self.dice.choice(list(self.model.accounts))

    def hold(self) -> None:
        dice, key, ledger = self.dice, self.key(), self.dice.choice(self.ledgers)
        known = self.model.holds.get(key)
        account, amount = self.account(), dice.choice([0, 1, 10, dice.randrange(100)])
        if known is not None and dice.random() < 0.8:
            account, amount = known.account, known.asked
        seconds = dice.choice([None, 1.0, 60.0, 100_000.0])
        life = None if seconds is None else Fraction(seconds)
        self.compare(
            f"hold({account!r}, {amount}, {key!r}, seconds={seconds})",
            lambda: ledger.hold(account, amount, key, seconds=seconds),
            lambda: self.model.hold(self.now, account, amount, key, life),
        )

    def cost(self, key: str) -> int:
        known = self.model.holds.get(key)
        asked = known.asked if known else 10
        again = known.spent if known else 3
        return self.dice.choice([asked, again, self.dice.randrange(asked + 1), asked + 3, ABSURD * max(asked, 1) + 1])

    def settle(self) -> None:
        key, ledger, force = self.key(), self.dice.choice(self.ledgers), self.dice.random() < 0.1
        cost = self.cost(key)
        self.compare(
            f"settle({key!r}, {cost}, force={force})",
            lambda: ledger.settle(key, cost, force=force),
            lambda: self.model.settle(self.now, key, cost, force=force),
        )

    def settle_message(self) -> None:
        """A message of a queue brings a cost; it may come again, or after a later one."""
        key, ledger = self.key(), self.dice.choice(self.ledgers)
        cost, number = self.cost(key), max(len(self.calls) + self.dice.choice([-20, -5, 0, 0, 5]), 0)
        self.compare(
            f"settle({key!r}, {cost}, position=('orders', {number}))",
            lambda: ledger.settle(key, cost, position=("orders", number)),
            lambda: self.model.settle_message(self.now, key, cost, number),
        )
        if self.gathered is None and self.dice.choice(self.ledgers).last_position("orders") != self.model.position:
            raise self.differs(f"the last position is not {self.model.position}")

    def release(self) -> None:
        key, ledger, force = self.key(), self.dice.choice(self.ledgers), self.dice.random() < 0.3
        if self.leases and self.dice.random() < 0.3:
            key = self.dice.choice(self.leases)[0].key
        self.compare(
            f"release({key!r}, force={force})",
            lambda: ledger.release(key, force=force),
            lambda: self.model.release(self.now, key, force=force),
        )

    def report(self) -> None:
        key, ledger = self.key(), self.dice.choice(self.ledgers)
        cost = self.cost(key)
        self.compare(
            f"report({key!r}, {cost})",
            lambda: ledger.report(key, cost),
            lambda: self.model.report(self.now, key, cost),
        )

    def correct(self) -> None:
        key, ledger, own = self.key(), self.dice.choice(self.ledgers), self.dice.choice([None, "a", "b"])
        cost = self.cost(key)

        def real() -> tuple[int, int, tuple[str, ...]]:
            found = ledger.correct(key, cost, correction=own)
            return found.old, found.new, found.moved

        model = lambda: self.model.correct(self.now, key, cost, own)  # noqa: E731
        self.compare(f"correct({key!r}, {cost}, correction={own!r})", real, model)

    def lease(self) -> None:
        dice, ledger = self.dice, self.dice.choice(self.ledgers)
        account, amount, seconds = self.account(), dice.randrange(60), dice.choice([10.0, 3600.0])
        made: list[Any] = []

        def real() -> int:
            made.append(ledger.lease(account, amount, seconds))
            return amount

        def model() -> int:
            return self.model.hold(self.now, account, amount, "lease", Fraction(seconds), lease=True)

        self.compare_lease(f"lease({account!r}, {amount}, {seconds})", real, model, made)

    def compare_lease(self, what: str, real: Callable[[], int], model: Callable[[], int], made: list[Any]) -> None:
        """Compare as always, once the model knows the key that was drawn."""

        def named() -> int:
            answer = real()
            self.model.holds[made[0].key] = self.model.holds.pop("lease")
            return answer

        self.compare(what, named, model)
        if made:
            made[0]._timer.cancel()  # it would close the lease as real time passes
            self.leases.append((made[0], made[0].amount))

    def spend(self) -> None:
        """Spend from a lease in memory, or hold and settle there: within the slice and its time."""
        if not self.leases:
            return
        lease, amount = self.dice.choice(self.leases)
        self.spend_in_a_child(lease)
        before, is_over, units = lease.spent + lease.held, lease.is_over, self.dice.randrange(30)
        if self.dice.random() < 0.5:
            taken = lease.hold(units) if self.dice.random() < 0.5 else lease.spend(units)
            self.calls.append(f"{lease.key}: spend or hold {units}: {taken}")
            if taken != (not is_over and before + units <= amount) or lease.spent + lease.held > max(amount, before):
                raise self.differs("a lease spent what it has not")
        elif lease.held:
            held = self.dice.randrange(lease.held + 1)
            cost = self.dice.choice([held, self.dice.randrange(held + 1)])
            spent, rest = lease.spent + cost, lease.held - held
            ended = lease.is_ended
            self.compare(
                f"{lease.key}: settle({held}, {cost})",
                lambda: lease.settle(held, cost),
                lambda: self.model.report(self.now, lease.key, spent, rest, force=True) if ended else None,
            )

    def spend_in_a_child(self, lease: Any) -> None:
        """Every use of the copy that a fork made is refused, and changes nothing."""
        before, lease._process = lease._process, 0
        try:
            for call in (lambda: lease.spend(1), lambda: lease.hold(1), lambda: lease.settle(0, 1), lease.close):
                if not isinstance(attempt(call), InUseError):
                    raise self.differs(f"{lease.key} was used in a child")
        finally:
            lease._process = before

    def end_lease(self) -> None:
        """Report, close, or lose a lease."""
        if not self.leases:
            return
        place = self.dice.randrange(len(self.leases))
        lease, _ = self.leases[place]
        kind = self.dice.choice(["report", "close", "die"])
        if kind == "report" and not lease.is_ended:
            spent = lease.spent
            model = lambda: self.model.report(self.now, lease.key, spent, force=True)  # noqa: E731
            self.compare(f"{lease.key}: report()", lease.report, model)
        elif kind == "close":
            spent, held = lease.spent, lease.held
            model = lambda: self.model.report(self.now, lease.key, spent, held, force=True)  # noqa: E731
            self.compare(f"{lease.key}: close()", lease.close, model)
        elif kind == "die":
            die(lease)
            del self.leases[place]
            self.calls.append(f"{lease.key}: its holder died")

    def move(self) -> None:
        seconds = self.dice.choice(SHORT if self.is_calm else (*SHORT, *LONG))
        if self.dice.random() < 0.1:
            self.clock.step(-max(seconds, 2.0))  # a server's time is not read for less
        else:
            self.clock.advance(seconds)
        self.calls.append(f"the time is {self.clock.wall()}")
        self.look()

    def change(self) -> None:
        dice, ledger, account = self.dice, self.dice.choice(self.ledgers), self.account()
        kind = dice.choice(["limit", "period", "reset", "reset"])
        if kind == "limit":
            limit, reserve = dice.randrange(50, 500), dice.choice([None, 0, 30])
            real: Callable[[], Any] = lambda: ledger.set_limit(account, limit, reserve=reserve)  # noqa: E731
            self.compare(f"set_limit({account!r}, {limit}, {reserve})", real,
                         lambda: self.model.set_limit(self.now, account, limit, reserve))  # fmt: skip
        elif kind == "period":
            period, zone = dice.choice([None, "day", "week", "month"]), dice.choice(ZONES)
            rate = 0 if period else dice.choice([0, 3])
            real = lambda: ledger.set_period(account, period, timezone=zone, rate=rate)  # type: ignore[arg-type] # noqa: E731
            self.compare(f"set_period({account!r}, {period!r}, {zone!r}, {rate})", real,
                         lambda: self.model.set_period(self.now, account, period, zone, rate))  # fmt: skip
        else:
            spent = dice.choice([0, dice.randrange(100)])
            self.compare(f"reset({account!r}, {spent})", lambda: ledger.reset(account, spent),
                         lambda: self.model.reset(self.now, account, spent))  # fmt: skip

    def reopen(self) -> None:
        place = self.dice.randrange(len(self.ledgers))
        if any(lease.ledger is self.ledgers[place] for lease, _ in self.leases):
            return
        self.ledgers[place].close()
        self.ledgers[place] = self.open()
        self.calls.append("a replica was closed and opened again")

    def act(self) -> None:
        """A chooser or a pacer takes money from an account in its own transaction."""
        found, account, units = self.dice.choice(self.objects)
        self.give_up(found_name(found))
        money = self.dice.randrange(0, 60) / units + self.dice.choice([0.0, 0.004])
        if isinstance(found, Chooser):
            choice = found.act(costs=[money, money])
            amount = ceil(Fraction(str(round(money, 3))) * units)
            is_open = choice.action is not None
        else:
            choice = found.bid(money)
            money = choice.amount
            amount, is_open = ceil(Fraction(choice.amount) * units - Fraction(1, 10**6)), True
        key, model = f"{found_name(found)} {choice}", self.model
        self.calls.append(f"{type(found).__name__} holds {amount}: {is_open}")
        try:
            model.hold(self.now, account, amount, key)
            admitted = True
        except OutOfBudgetError:
            admitted = False
        if admitted != is_open:
            raise self.differs(f"admitted is {is_open}, not {admitted}")
        if is_open:
            is_bid, opened = isinstance(found, LivePacer), self.clock.wall()
            self.choices.append(Waiting(found_name(found), is_bid, choice, key, amount, money, opened))
        self.look()

    def settle_choice(self) -> None:
        if not self.choices:
            return
        waiting = self.dice.choice(self.choices)
        found = self.dice.choice([found for found, _, _ in self.objects if found_name(found) == waiting.name])
        self.give_up(waiting.name)
        cost, choice = self.dice.randrange(waiting.amount + 1), str(waiting.choice)
        money, is_skipped = min(cost / 100, waiting.bound), self.dice.random() < 0.2
        if is_skipped:
            cost = 0 if waiting.is_bid else waiting.amount  # the money held back counts
        arguments = (choice,) if is_skipped else (choice, money) if waiting.is_bid else (choice, 0.5, money)
        call = found.skip if is_skipped else found.settle
        self.calls.append(f"{waiting.key} costs {cost}")
        if waiting not in self.choices:
            if not isinstance(attempt(lambda: call(*arguments)), TokenError):
                raise self.differs(f"{waiting.key} has expired and was settled")
        else:
            call(*arguments)
            self.choices.remove(waiting)
            self.model.settle(self.now, waiting.key, cost)
        self.look()

    def give_up(self, name: str) -> None:
        """Close the choices and bids of an object that are too old, as its next call does. They count in full."""
        self.model.tick(self.now)
        for waiting in [one for one in self.choices if one.name == name]:
            if waiting.opened < self.clock.wall() - MAX_AGE:
                self.choices.remove(waiting)
                self.model.settle(self.now, waiting.key, waiting.amount)


STATUS = ("settled", "released", "expired")


def die(lease: Any) -> None:
    """Do what the death of a holder does: nobody will ever report."""
    lease._is_settled = True


def found_name(found: Any) -> str:
    return str(found._replica.name)


def attempt(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except LongtermError as error:
        return error


def describe(answer: Any) -> Any:
    """What must agree: an answer, or the kind of an error and what it says about money."""
    if isinstance(answer, OutOfBudgetError):
        return "out of budget", answer.account, answer.available
    return type(answer) if isinstance(answer, LongtermError) else answer


def search(url: str, seed: int, calls: int) -> None:
    """Make so many random calls. Raise a DisagreementError at the first difference."""
    found = Search(url, seed)
    try:
        for _ in range(calls):
            found.step()
    finally:
        found.close()


def honest(url: str, seed: int, calls: int) -> int:
    """Spend with leased and shared objects that keep their bounds, and count every unit that was really spent."""
    dice, clock, name = random.Random(seed), ManualClock(), f"honest {seed} {time.time_ns()}"
    limit = 200
    ledgers = [Ledger.open(url, name=name, durability="relaxed", clock=clock) for _ in range(3)]
    ledgers[0].add_account("all", limit)
    for part in "ab":
        ledgers[0].add_account(part, 150, parent="all")
    accounts = [LeasedAccount(ledger, dice.choice("ab"), slice=20, units=10, seconds=60.0) for ledger in ledgers]
    choosers: list[Any] = [Chooser(rule(), account=account, clock=clock) for account in accounts[:2]]
    choosers.append(LivePacer(pacer_rule(), account=accounts[2], clock=clock))
    shared = SharedAccount("a", units=10, ledger=name)
    choosers.append(Chooser.open(url, rule(), name=f"{name} c", account=shared, durability="relaxed", clock=clock))
    waiting: list[tuple[Any, Any, int]] = []
    spent = 0
    try:
        for _ in range(calls):
            if waiting and dice.random() < 0.45:
                chooser, choice, amount = waiting.pop(dice.randrange(len(waiting)))
                cost = dice.randrange(amount + 1)
                if isinstance(chooser, LivePacer):
                    chooser.settle(choice, min(cost / 10, choice.amount))
                else:
                    chooser.settle(choice, 0.5, cost / 10)
                spent += cost
            elif dice.random() < 0.1:
                clock.advance(dice.choice([1.0, 30.0, 61.0, 100.0, 10_000.0]))
            elif dice.random() < 0.03:
                clock.step(dice.choice([-1000.0, 1000.0]))
            else:
                chooser, amount = dice.choice(choosers), dice.choice([0, 1, 5, dice.randrange(25)])
                if isinstance(chooser, LivePacer):
                    choice = chooser.bid(amount / 10)
                    waiting.append((chooser, choice, ceil(Fraction(choice.amount) * 10 - Fraction(1, 10**6))))
                    continue
                choice = chooser.act(costs=[amount / 10, amount / 10])
                if choice.action is not None:
                    waiting.append((chooser, choice, amount))
            committed = spent + sum(amount for _, _, amount in waiting)
            balance = dice.choice(ledgers).balance("all")
            if not committed <= balance.spent + balance.held <= limit:
                raise DisagreementError(f"seed {seed}: {committed} of {balance}")
        for account in accounts:
            account.close()
        for chooser, choice, amount in waiting:
            if chooser is choosers[-1]:
                chooser.settle(choice, 0.5, amount / 10)
            spent += amount
        if ledgers[0].balance("all") != (limit, spent, 0):
            raise DisagreementError(f"seed {seed}: {spent} was spent, {ledgers[0].balance('all')}")
    finally:
        for closing in (*ledgers, choosers[-1]):
            closing.close()
    return spent


def main(arguments: list[str]) -> int:
    seconds, seed = float(arguments[0]) if arguments else 60.0, int(arguments[1]) if len(arguments) > 1 else 0
    end, runs = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        while time.monotonic() < end:
            url = arguments[2] if len(arguments) > 2 else f"{folder}/{runs}.db"
            for kind in (search, honest):
                try:
                    kind(url, seed + runs, 150)
                except Exception as error:
                    sys.stdout.write(f"{kind.__name__}, seed {seed + runs}\n{error}\n")
                    raise
            runs += 1
    sys.stdout.write(f"{runs} runs of 150 calls and {runs} honest ones: no disagreement\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
