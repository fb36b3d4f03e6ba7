"""Accounts and holds of a ledger as values: what a period, a rate, a hold and a cost do to them."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np

from longterm._base.display import TextTable
from longterm._base.messages import shown
from longterm.errors import InputError, OutOfBudgetError
from longterm.money.periods import PERIODS, Period, period_of, require_period, require_zone, turned
from longterm.storage.replica import LONGEST_NAME

LARGEST = 2**62
"""Amounts and limits are smaller, so that sums fit into 64 bits."""
LONGEST_NOTE = 1000
ROUNDING = 2.0**-50
"""The relative rounding error of a product with `units`."""
STATUS = ("open", "settled", "released", "expired")
OPEN, SETTLED, RELEASED, EXPIRED = range(4)
"""The status of a hold."""
ABSURD = 100
IF_RIGHT = "Check it. If it is right, make the same call with force"
"""The remedy for a cost above this."""
"""A cost above this multiple of the largest cost given to `hold` needs `force=True`."""
SECOND = 1_000_000
"""Microseconds."""


class Balance(NamedTuple):
    """An account at one moment, in units.

    Parameters
    ----------
    limit : int
        The limit.
    spent : int
        The amount settled, in the present period if there is one, or not replenished yet.
    held : int
        The amount of open holds.
    """

    limit: int
    spent: int
    held: int

    @property
    def available(self) -> int:
        """The largest amount that the account itself can hold; its parents may have less."""
        return max(self.limit - self.spent - self.held, 0)

    def _repr_html_(self) -> str:
        rows = [(name, f"{getattr(self, name):,}") for name in ("limit", "spent", "held", "available")]
        return TextTable(("", ""), rows, title="Balance").to_html()


class AccountSettings(NamedTuple):
    """What a person decides about an account.

    Parameters
    ----------
    limit : int
        The limit, in units.
    parent : str, optional
        The account that it belongs to.
    period : {"day", "week", "month"}, optional
        The limit is for this period.
    timezone : str
        Where periods begin.
    rate : int
        Units a second by which the money spent is replenished.
    reserve : int, optional
        The largest amount by which the spend may exceed the limit.
    """

    limit: int
    parent: str | None
    period: Period | None
    timezone: str
    rate: int
    reserve: int | None


def _are_amounts(numbers: tuple[Any, ...]) -> bool:
    """Return whether all of these are integers that a sum may have."""
    return set(map(type, numbers)) == {int} and min(numbers) >= 0 and max(numbers) < LARGEST


class Account(NamedTuple):
    """A row of `longterm_accounts`.

    `exposed` is the sum of the largest costs of open holds. `part` is what was replenished beyond whole units, in
    millionths of one. `total` is all that was ever spent: it never falls, whatever periods, resets and corrections do,
    so that a rate can be taken of it. `since` is the present period, and `others` has the money spent in other periods,
    as JSON.
    """

    name: str
    parent: str | None
    maximum: int
    reserve: int | None
    period: str | None
    zone: str
    rate: int
    spent: int
    held: int
    exposed: int
    since: str
    updated: int
    part: int
    total: int
    others: str = ""

    def require_sound(self) -> None:
        """Raise a ValueError unless a stored account makes sense."""
        amounts = self.maximum, self.reserve or 0, self.rate, self.spent, self.held
        numbers = *amounts, self.exposed, self.updated, self.part, self.total
        texts = self.name, self.zone, self.since, self.others, self.parent or ""
        known = set(map(type, texts)) == {str} and self.period in (None, *PERIODS)
        if not (known and _are_amounts((*numbers, *self.sums().values()))):
            raise ValueError(f"account {self.name!r:.60} is inconsistent")

    def sums(self) -> dict[str, int]:
        """Return the money spent in the present period and in others, by period."""
        others = json.loads(self.others) if self.others else {}
        if not isinstance(others, dict):
            raise ValueError(f"account {self.name!r:.60} has no other periods")
        return {**others, self.since: self.spent}

    def at(self, now: int) -> Account:
        """Return the account with what another period or the replenishment changes."""
        if self.period is not None:
            name = self.period_at(now)
            if name == self.since:
                return self
            since, sums = turned(self.sums(), name, 0)
            return self._replace(spent=sums.pop(since), since=since, updated=now, others=json.dumps(sums))
        if self.rate and now > self.updated:
            back, part = divmod(self.part + self.rate * (now - self.updated), SECOND)
            is_empty = back >= self.spent
            return self._replace(spent=0 if is_empty else self.spent - back, updated=now, part=0 if is_empty else part)
        return self

    def period_at(self, now: int) -> str:
        """Return the name of the period that a time is in; empty without a period."""
        return "" if self.period is None else period_of(self.period, self.zone, now / SECOND)

    def has_ended(self, then: int) -> bool:
        """Return whether the period that a time was in is over."""
        return self.period_at(then) < self.since

    def settings(self) -> AccountSettings:
        """Return what a person decides about the account."""
        period: Any = self.period
        return AccountSettings(self.maximum, self.parent, period, self.zone, self.rate, self.reserve)

    def room(self) -> tuple[int, int]:
        """Return the largest amount that can be held, and the largest cost of a request; below 0 if overspent."""
        left = self.maximum - self.spent
        return left - self.held, LARGEST if self.reserve is None else left + self.reserve - self.exposed

    def holding(self, amount: int, largest: int) -> Account:
        """Return the account with one more hold, or raise an OutOfBudgetError. What costs nothing is admitted."""
        free, exposure = self.room()
        if largest > 0 and amount > free:
            raise OutOfBudgetError(self.name, amount, max(free, 0))
        if largest > max(exposure, 0):
            raise OutOfBudgetError(self.name, largest, max(exposure, 0))
        return self.changed(0, amount, largest)

    def changed(self, spent: int, held: int, exposed: int) -> Account:
        """Return the account with these increments. Spending is at least 0 after a new period."""
        rest = max(self.spent + spent, 0)
        return self._replace(
            spent=rest,
            held=self.held + held,
            exposed=self.exposed + exposed,
            part=self.part if rest else 0,
            total=min(self.total + max(spent, 0), LARGEST - 1),
        )


class Hold(NamedTuple):
    """A row of `longterm_holds`.

    `asked` and `answer` are the largest cost and the amount held of the first call, and stay. `amount` and `largest`
    are what is held at present. `spent` is what was reported, or the cost that was settled.
    """

    key: str
    account: str
    amount: int
    largest: int
    asked: int
    answer: int
    group: str | None
    spent: int
    status: int
    is_lease: int
    opened: int
    expires: int | None
    closed: int | None
    who: str

    def require_sound(self) -> None:
        """Raise a ValueError unless a stored hold makes sense."""
        amounts = self.amount, self.largest, self.asked, self.answer, self.spent
        numbers = *amounts, self.status, self.is_lease, self.opened, self.expires or 0, self.closed or 0
        texts = isinstance(self.account, str) and isinstance(self.group or "", str) and isinstance(self.who, str)
        known = self.status in (OPEN, SETTLED, RELEASED, EXPIRED) and (self.status == OPEN) == (self.closed is None)
        if not (_are_amounts(numbers) and texts and known):
            raise ValueError(f"hold {self.key!r:.60} is inconsistent")

    def has_expired(self, now: int) -> bool:
        """Return whether an open hold's time is over. A lease counts until its holder reports."""
        return self.status == OPEN and not self.is_lease and self.expires is not None and self.expires <= now

    def is_forgotten(self, since: int) -> bool:
        """Return whether the hold was settled or released at a time or before it, so that its key is free again."""
        return self.status in (SETTLED, RELEASED) and self.closed is not None and self.closed <= since


class OpenHold(NamedTuple):
    """An open hold or lease at one moment.

    Parameters
    ----------
    key, account : str
        Its key and its account.
    held, spent : int
        The amount that is still held, and the amount reported as spent so far, in units.
    age : float
        Seconds since it was opened.
    ends_in : float, optional
        Seconds until it ends; below 0 for a lease whose holder has not reported after its end.
    is_lease : bool
        True for a lease.
    who : str
        Who opened it.
    """

    key: str
    account: str
    held: int
    spent: int
    age: float
    ends_in: float | None
    is_lease: bool
    who: str


class LedgerCorrection(NamedTuple):
    """The effect of `Ledger.correct`.

    Parameters
    ----------
    account, key : str
        The account and the hold.
    old, new : int
        The cost that counted before, and the one that counts now.
    moved : tuple of str
        Accounts in which the period of the settlement is over. They were corrected in their present period.
    """

    account: str
    key: str
    old: int
    new: int
    moved: tuple[str, ...]


def require_amount(name: str, value: Any) -> int:
    """Return a whole number of units, or raise an InputError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < LARGEST // 2:
        remedy = f"Give a whole number of units from 0 to {LARGEST // 2 - 1}, such as millionths of a cent"
        raise InputError(name, f"{shown(value)} is not an amount", remedy)
    return int(value)


def to_units(argument: str, money: Any, units: float) -> int:
    """Return an amount of money in whole units, rounded up.

    A product that is above a whole number by a rounding error only counts as that number.
    """
    is_number = isinstance(money, (int, float, np.integer, np.floating)) and not isinstance(money, bool)
    try:
        product = float(money) * units if is_number else math.nan
    except OverflowError:
        product = math.inf
    if not 0 <= product < LARGEST // 2:
        raise InputError(argument, f"{shown(money)} is not an amount of money", "Give a finite number of at least 0")
    whole = round(product)
    return whole if product - whole <= product * ROUNDING else whole + 1


def require_plausible(hold: Hold, name: str, actual: int) -> int:
    """Return a cost, or raise an InputError if it is absurd beside the largest cost that was announced."""
    if actual > ABSURD * max(hold.asked, 1):
        what = f"{actual} is more than {ABSURD} times {hold.asked}, the largest cost given to hold"
        raise InputError(name, what, IF_RIGHT)
    return actual


def require_text(argument: str, value: Any, longest: int = LONGEST_NAME) -> str:
    """Return a text that every database can store, such as the name of an account, or raise an InputError."""
    if not isinstance(value, str) or not 0 < len(value) <= longest or not _is_storable(value):
        what = f"{shown(value)} is not a name"
        raise InputError(argument, what, f"Give a text of 1 to {longest} characters without NUL and surrogates")
    return value


def require_note(argument: str, value: Any) -> str:
    """Return a text for the record, which may be empty, or raise an InputError."""
    return value if isinstance(value, str) and not value else require_text(argument, value, LONGEST_NOTE)


def _is_storable(text: str) -> bool:
    return "\0" not in text and (text.isascii() or text.encode(errors="ignore").decode() == text)


def require_seconds(value: Any, name: str = "seconds") -> int:
    """Return a time in microseconds, or raise an InputError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise InputError(name, f"{shown(value)} is not a duration", "Give a number of seconds above 0")
    return max(int(value * SECOND), 1)


def require_renewal(period: Any, timezone: Any, rate: int) -> None:
    """Raise an InputError unless a limit can be for this period, or be replenished at this rate."""
    if require_period(period) is not None and rate:
        raise InputError("rate", "is given together with a period", "Give only one of them")
    require_zone(timezone)


def require_settings(limit: Any, parent: Any, period: Any, timezone: Any, rate: Any, reserve: Any) -> AccountSettings:
    """Return the settings of an account, or raise an InputError."""
    limit, rate = require_amount("limit", limit), require_amount("rate", rate)
    reserve = None if reserve is None else require_amount("reserve", reserve)
    parent = None if parent is None else require_text("parent", parent)
    require_renewal(period, timezone, rate)
    return AccountSettings(limit, parent, period, timezone, rate, reserve)
