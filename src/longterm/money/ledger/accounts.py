"""Accounts and holds of a ledger as values: what a period, a rate, a hold and a cost do to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from longterm.errors import InputError, OutOfBudgetError
from longterm.storage.replica import LONGEST_NAME
from longterm.storage.tokens import require_key

LARGEST = 2**62
"""Amounts and limits are smaller, so that sums fit into 64 bits."""
OPEN, SETTLED, RELEASED, EXPIRED = range(4)
"""The status of a hold."""
SECOND = 1_000_000
"""Microseconds."""
Period = Literal["day", "week", "month"]
PERIODS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}


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


@dataclass(frozen=True)
class Account:
    """A row of `longterm_accounts`. `exposed` is the sum of the largest costs of open holds."""

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

    def require_sound(self) -> None:
        """Raise a ValueError unless a stored account makes sense."""
        numbers = self.maximum, self.reserve or 0, self.rate, self.spent, self.held, self.exposed, self.updated
        texts = self.name, self.zone, self.since, self.parent or ""
        sound = all(type(number) is int and 0 <= number < LARGEST for number in numbers)
        if not sound or not all(isinstance(text, str) for text in texts) or self.period not in (None, *PERIODS):
            raise ValueError(f"account {self.name!r:.60} makes no sense")

    def at(self, now: int) -> Account:
        """Return the account with what a new period or the replenishment changes. A clock set back changes nothing."""
        if self.period is not None:
            since = period_of(self.period, self.zone, now)
            return replace(self, spent=0, since=since, updated=now) if since > self.since else self
        if self.rate and now > self.updated:
            back = self.rate * (now - self.updated) // SECOND
            # Advance only by the time that was used, so that no fraction of a unit is lost.
            updated = now if back >= self.spent else self.updated + back * SECOND // self.rate
            return replace(self, spent=max(self.spent - back, 0), updated=updated)
        return self

    def room(self) -> tuple[int, int]:
        """Return the largest amount that can be held, and the largest cost that a request may have."""
        left = self.maximum - self.spent
        exposure = LARGEST if self.reserve is None else left + self.reserve - self.exposed
        return max(left - self.held, 0), max(exposure, 0)

    def holding(self, amount: int, largest: int) -> Account:
        """Return the account with one more hold, or raise an OutOfBudgetError."""
        free, exposure = self.room()
        if amount > free:
            raise OutOfBudgetError(self.name, amount, free)
        if largest > exposure:
            raise OutOfBudgetError(self.name, largest, exposure)
        return self.changed(0, amount, largest)

    def changed(self, spent: int, held: int, exposed: int) -> Account:
        """Return the account with these increments. Spending is at least 0 after a new period."""
        return replace(self, spent=max(self.spent + spent, 0), held=self.held + held, exposed=self.exposed + exposed)


class Hold(NamedTuple):
    """A row of `longterm_holds`."""

    key: str
    account: str
    amount: int
    largest: int
    group: str | None
    spent: int
    status: int
    opened: int
    expires: int | None

    def require_sound(self) -> None:
        """Raise a ValueError unless a stored hold makes sense."""
        numbers = self.amount, self.largest, self.spent, self.opened, 0 if self.expires is None else self.expires
        sound = all(type(number) is int and 0 <= number < LARGEST for number in numbers)
        texts = isinstance(self.account, str) and isinstance(self.group or "", str)
        if not (sound and texts and self.status in (OPEN, SETTLED, RELEASED, EXPIRED)):
            raise ValueError(f"hold {self.key!r:.60} makes no sense")


def require_amount(name: str, value: Any) -> int:
    """Return a whole number of units, or raise an InputError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < LARGEST // 2:
        remedy = "Give a whole number of units of at least 0, such as millionths of a cent"
        raise InputError(name, f"{value!r:.60} is not an amount", remedy)
    return int(value)


def require_name(argument: str, value: Any) -> str:
    """Return the name of an account or a group, or raise an InputError."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or "\0" in value:
        raise InputError(argument, f"{value!r:.60} is not a name", f"Give a text of 1 to {LONGEST_NAME} characters")
    return value


def require_hold_key(key: Any) -> str:
    """Return the key of a hold, or raise an InputError."""
    found = require_key(key)
    if found is None:
        raise InputError("key", "is missing", "Give a text that names the request")
    return found


def require_seconds(value: float) -> int:
    """Return a time in microseconds, or raise an InputError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise InputError("seconds", f"{value!r} is not a time", "Give seconds above 0")
    return int(value * SECOND)


def require_zone(timezone: str) -> ZoneInfo:
    """Return a time zone, or raise an InputError."""
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InputError("timezone", f"{timezone!r:.60} is not known", "Give a name such as 'Europe/Berlin'") from None


def period_of(period: str, timezone: str, now: int) -> str:
    """Return the name of the period that a time is in; later periods have larger names."""
    return datetime.fromtimestamp(now / SECOND, require_zone(timezone)).strftime(PERIODS[period])


def elapsed(period: str | None, timezone: str, now: int) -> float:
    """Return the share of the present period that is over; 1 without a period."""
    if period is None:
        return 1.0
    local = datetime.fromtimestamp(now / SECOND, require_zone(timezone))
    start = local.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "week":
        start -= timedelta(days=start.weekday())
    start = start.replace(day=1) if period == "month" else start
    next_month = (start + timedelta(days=32)).replace(day=1)
    end = next_month if period == "month" else start + timedelta(days=7 if period == "week" else 1)
    return (local.timestamp() - start.timestamp()) / (end.timestamp() - start.timestamp())
