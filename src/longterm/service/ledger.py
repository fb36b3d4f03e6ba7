"""Ledgers: accounts with limits that many processes share, in whole units.

An amount is a whole number of a unit that you choose, such as a millionth of a cent, so sums are exact. Before a
request its largest cost is held. Afterwards the actual cost is settled, or the hold is released. An account may belong
to another one, and a hold counts for all of them.

**Admission.** A hold h is admitted iff spent + Σ open holds + h ≤ limit. Then for every sequence of calls the final
spend is at most limit + Σ (cost − hold)₊, over the requests open at the last admission. *Proof*: after the last
admission, spent + Σ holds ≤ limit. No request is admitted later, so the final spend is spent + Σ costs of the open
requests. That is spent + Σ holds + Σ (costs − holds) ≤ limit + Σ (cost − hold)₊. ∎ With holds that are never too
small the limit is kept. A hold that expires counts as 0 from then on.

A limit may be for a day, a week or a month: then `spent` is what was settled in it, and open holds of earlier periods
count. Or it is replenished at a rate: then `spent` falls at that rate, down to 0.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from longterm.errors import DatabaseError, InputError, OutOfBudgetError
from longterm.service.tokens import require_key
from longterm.storage import database as sql
from longterm.storage.database import Database, Durability
from longterm.storage.replica import LONGEST_NAME, Metrics, Replica, Stored

KIND = "ledger"
LARGEST = 2**62
"""Amounts and limits are smaller, so that sums fit into 64 bits."""
OPEN, SETTLED, RELEASED, EXPIRED = range(4)
"""The status of a hold."""
MAX_DEPTH = 8
KEEP_DAYS = 7
"""Closed holds are kept for this time, so that repeated calls are recognised."""
PRUNE_EVERY = 256
SECOND = 1_000_000
"""Microseconds."""
Period = Literal["day", "week", "month"]
_FORMATS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}


class LedgerCopy:
    """A ledger keeps no copy of its state: every call reads the accounts that it needs."""

    kind = KIND
    version = asked = 0

    def encode(self) -> bytes:
        """Return no bytes."""
        return b""

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        """Do nothing."""


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
class _Account:
    name: str
    parent: str | None
    maximum: int
    period: str | None
    zone: str
    rate: int
    spent: int
    held: int
    since: str
    updated: int

    def at(self, now: int) -> _Account:
        """Return the account with what a new period or the replenishment changes. A clock set back changes nothing."""
        if self.period is not None:
            since = _period(self.period, self.zone, now)
            return replace(self, spent=0, since=since, updated=now) if since > self.since else self
        if self.rate and now > self.updated:
            back = self.rate * (now - self.updated) // SECOND
            # Advance only by the time that was used, so that no fraction of a unit is lost.
            updated = now if back >= self.spent else self.updated + back * SECOND // self.rate
            return replace(self, spent=max(self.spent - back, 0), updated=updated)
        return self


class _Hold(NamedTuple):
    key: str
    account: str
    amount: int
    spent: int
    status: int
    opened: int
    expires: int | None


class Ledger(Stored[LedgerCopy]):
    """Accounts with limits, shared by the processes that open the same database.

    Make it with `Ledger.open`. Every call is one transaction, and may be repeated: it takes effect once for its key.

    Parameters
    ----------
    unit : str
        The unit of all amounts.

    Examples
    --------
    >>> import tempfile
    >>> from longterm import Ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(folder.name + "/service.db", unit="cent")
    >>> ledger.add_account("organisation", limit=1000)
    >>> ledger.add_account("team", limit=600, parent="organisation")
    >>> ledger.hold("team", 400, key="request 1")
    >>> ledger.settle("request 1", 250)
    >>> ledger.balance("organisation")
    Balance(limit=1000, spent=250, held=0)
    >>> ledger.hold("team", 400, key="request 2")
    Traceback (most recent call last):
    ...
    longterm.errors.OutOfBudgetError: account 'team' cannot hold 400: 350 are available. Wait for open holds to be \
settled, or for its period to end, or raise its limit.
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self._replica = Replica(LedgerCopy(), {"unit": unit})
        self._calls = 0

    @classmethod
    def open(
        cls, url: str | PathLike[str], *, unit: str = "unit", name: str = "ledger", durability: Durability = "commit"
    ) -> Self:
        """Return the ledger with this name in a database, or create it there.

        Parameters
        ----------
        url : path or str
            A file for SQLite, or a URL ``postgresql://…`` (extra `postgres`).
        unit : str
            The unit of all amounts, such as "microcent". A stored ledger is opened only with the same.
        name : str
            Its name in the database.
        durability : {"commit", "relaxed"}
            "commit": a call is on the disk before it returns. "relaxed": it survives the death of the process.

        Returns
        -------
        Ledger
            The ledger.

        Raises
        ------
        DatabaseError
            If the database cannot be used, or holds another object with this name.
        """
        if not isinstance(unit, str) or not 0 < len(unit) <= LONGEST_NAME:
            raise InputError("unit", f"{unit!r:.60} is not a unit", "Give a text, 'microcent' for example")
        ledger = cls(unit)
        ledger._replica.attach(url, name, durability)
        return ledger

    def __repr__(self) -> str:
        return f"Ledger({self._replica.name!r}, unit={self.unit!r})"

    # --- accounts --------------------------------------------------------------------------------------------

    def add_account(
        self,
        name: str,
        limit: int,
        *,
        parent: str | None = None,
        period: Period | None = None,
        timezone: str = "UTC",
        rate: int = 0,
    ) -> None:
        """Add an account. If it exists with the same arguments, only its limit changes.

        Parameters
        ----------
        name : str
            Its name.
        limit : int
            The limit of the money spent and held.
        parent : str, optional
            An account that this one belongs to. A hold counts for both.
        period : {"day", "week", "month"}, optional
            The limit is for this period.
        timezone : str
            Where periods begin, such as "Europe/Berlin".
        rate : int
            Units a second by which the money spent is replenished. Not with a period.

        Raises
        ------
        InputError
            If an argument cannot be used, or the account exists with others.
        """
        name = _require_name("name", name)
        limit, rate = _require_amount("limit", limit), _require_amount("rate", rate)
        if period is not None and period not in _FORMATS:
            raise InputError("period", f"{period!r} is not known", f"Choose one of {list(_FORMATS)}")
        if period is not None and rate:
            raise InputError("rate", "and a period are given", "Give one of them")
        _zone(timezone)
        self._replica.run(self._add_account, name, limit, parent, period, timezone, rate)

    def _add_account(
        self,
        database: Database,
        name: str,
        limit: int,
        parent: str | None,
        period: str | None,
        timezone: str,
        rate: int,
    ) -> None:
        ledger, now = self._replica.name, database.now()
        if parent is not None and len(self._chain(database, parent, "parent")) >= MAX_DEPTH:
            raise InputError("parent", f"{parent!r} has {MAX_DEPTH} accounts above it", "Use fewer levels")
        rows = database.read(sql.READ_ACCOUNT, ledger, name)
        if not rows:
            since = "" if period is None else _period(period, timezone, now)
            given = ledger, name, parent, limit, period, timezone, rate, since, now
            database.write_locked([(sql.INSERT_ACCOUNT, given)], 1)
            return
        known = self._account(database, rows[0])
        if (known.parent, known.period, known.zone, known.rate) != (parent, period, timezone, rate):
            raise InputError(
                "name", f"{name!r} exists with another parent, period, timezone or rate", "Use another name"
            )
        database.write_locked([(sql.SET_MAXIMUM, (limit, ledger, name))], 1)

    def balance(self, account: str) -> Balance:
        """Return the limit of an account, and the amounts spent and held."""
        found: Balance = self._replica.run(self._balance, _require_name("account", account))
        return found

    def _balance(self, database: Database, account: str) -> Balance:
        now = database.now()
        self._expire(database, now)
        found = self._chain(database, account, "account")[0].at(now)
        return Balance(found.maximum, found.spent, found.held)

    @property
    def accounts(self) -> Mapping[str, Balance]:
        """The balances of all accounts, by name."""
        found: dict[str, Balance] = self._replica.run(self._balances)
        return MappingProxyType(found)

    def _balances(self, database: Database) -> dict[str, Balance]:
        now = database.now()
        self._expire(database, now)
        rows = [self._account(database, row).at(now) for row in database.read(sql.READ_ACCOUNTS, self._replica.name)]
        return {row.name: Balance(row.maximum, row.spent, row.held) for row in rows}

    def metrics(self) -> Metrics:
        """Return figures for monitoring; those of money are by account.

        `plan` is the money that an even spender would have spent by now in the present period, `overshoot` the money
        spent above a limit.
        """
        figures: Metrics = self._replica.run(self._metrics)
        return figures

    def _metrics(self, database: Database) -> Metrics:
        now = database.now()
        self._expire(database, now)
        ((open_holds,),) = database.read(sql.COUNT_HOLDS, self._replica.name)
        rows = [self._account(database, row).at(now) for row in database.read(sql.READ_ACCOUNTS, self._replica.name)]
        return {
            "open": open_holds,
            "spent": {row.name: row.spent for row in rows},
            "held": {row.name: row.held for row in rows},
            "limit": {row.name: row.maximum for row in rows},
            "plan": {row.name: row.maximum * _elapsed(row.period, row.zone, now) for row in rows},
            "overshoot": {row.name: max(row.spent - row.maximum, 0) for row in rows},
        }

    # --- holds -----------------------------------------------------------------------------------------------

    def hold(self, account: str, amount: int, key: str, *, seconds: float | None = None) -> None:
        """Hold an amount in an account and all accounts that it belongs to.

        Parameters
        ----------
        account : str
            The account.
        amount : int
            In units.
        key : str
            Names the hold. A repeated call with the same key has no effect.
        seconds : float, optional
            The hold expires after this time: the amount is available again, and a later `settle` still counts.

        Raises
        ------
        OutOfBudgetError
            If spent + held + amount would exceed the limit of one of them.
        InputError
            If an argument cannot be used, or the key belongs to another account or amount.
        """
        life = None if seconds is None else _require_seconds(seconds)
        given = _require_name("account", account), _require_amount("amount", amount), _require_hold_key(key), life
        self._replica.run(self._hold, *given)

    def _hold(self, database: Database, account: str, amount: int, key: str, life: int | None) -> None:
        ledger, now = self._replica.name, database.now()
        known = self._find(database, key)
        if known is not None:
            if known.account != account or (known.status == OPEN and known.amount + known.spent != amount):
                raise InputError("key", f"{key!r} holds another amount, or another account's", "Use a key once")
            return
        self._expire(database, now)
        chain = [one.at(now) for one in self._chain(database, account, "account")]
        for one in chain:
            if one.spent + one.held + amount > one.maximum:
                raise OutOfBudgetError(one.name, amount, max(one.maximum - one.spent - one.held, 0))
        self._write(database, [replace(one, held=one.held + amount) for one in chain])
        expires = None if life is None else now + life
        database.write_locked([(sql.INSERT_HOLD, (ledger, key, account, amount, now, expires))], 1)
        self._calls += 1
        if self._calls % PRUNE_EVERY == 0:
            database.write_locked([(sql.DELETE_HOLDS, (ledger, now - KEEP_DAYS * 86_400 * SECOND))], 0)

    def settle(self, key: str, actual: int) -> None:
        """Replace a hold by the actual cost, which may be larger or smaller.

        Parameters
        ----------
        key : str
            The hold. An expired one can still be settled. A repeated call has no effect.
        actual : int
            The whole cost, in units, reported parts included.

        Raises
        ------
        InputError
            If there is no such hold, or it was released, or settled with another cost.
        """
        self._replica.run(self._settle, _require_hold_key(key), _require_amount("actual", actual))

    def _settle(self, database: Database, key: str, actual: int) -> None:
        hold = self._require_hold(database, key)
        if hold.status == SETTLED and hold.spent == actual:
            return
        if hold.status in (SETTLED, RELEASED):
            how = f"settled with {hold.spent}" if hold.status == SETTLED else "released"
            raise InputError("key", f"{key!r} was {how} already", "Settle a hold once")
        self._close(database, hold, actual, SETTLED)

    def release(self, key: str) -> None:
        """Give back a hold. A repeated call has no effect.

        Parameters
        ----------
        key : str
            The hold.

        Raises
        ------
        InputError
            If there is no such hold, or it was settled.
        """
        self._replica.run(self._release, _require_hold_key(key))

    def _release(self, database: Database, key: str) -> None:
        hold = self._require_hold(database, key)
        if hold.status == SETTLED:
            raise InputError("key", f"{key!r} was settled already", "Release only holds that cost nothing")
        if hold.status == OPEN:
            self._close(database, hold, hold.spent, RELEASED)

    def report(self, key: str, spent: int) -> None:
        """Record the part of an open hold that was spent so far. The rest stays held.

        Parameters
        ----------
        key : str
            The hold.
        spent : int
            The total so far. A repeated call has no effect.
        """
        self._replica.run(self._report, _require_hold_key(key), _require_amount("spent", spent))

    def _report(self, database: Database, key: str, spent: int) -> None:
        hold = self._require_hold(database, key)
        if hold.status not in (OPEN, EXPIRED):
            raise InputError("key", f"{key!r} is not open", "Report only what an open hold spends")
        more = max(spent - hold.spent, 0)
        held = min(more, hold.amount) if hold.status == OPEN else 0
        now = database.now()
        chain = [one.at(now) for one in self._chain(database, hold.account, "account")]
        self._write(database, [replace(one, spent=one.spent + more, held=one.held - held) for one in chain])
        given = hold.amount - held, hold.spent + more, hold.status, self._replica.name, key
        database.write_locked([(sql.UPDATE_HOLD, given)], 1)

    def lease(self, account: str, amount: int, seconds: float) -> Lease:
        """Hold a slice of an account for this process, which then spends from memory.

        At every moment Σ spent + Σ leases ≤ limit. The slice of a process that dies counts until its end and then comes
        back, less what it reported.

        Parameters
        ----------
        account : str
            The account.
        amount : int
            The slice, in units.
        seconds : float
            The time limit.

        Returns
        -------
        Lease
            The slice.

        Raises
        ------
        OutOfBudgetError
            As for `hold`.
        """
        begin = time.monotonic()  # before the transaction, so that the slice ends here before it ends in the ledger
        key = f"lease {secrets.token_hex(12)}"
        self.hold(account, amount, key, seconds=seconds)
        return Lease(self, key, amount, begin + seconds)

    # --- inside a transaction --------------------------------------------------------------------------------

    def _close(self, database: Database, hold: _Hold, actual: int, status: int) -> None:
        """Write the end of a hold: it holds nothing, and has spent `actual` in all."""
        now = database.now()
        held = hold.amount if hold.status == OPEN else 0
        chain = [one.at(now) for one in self._chain(database, hold.account, "account")]
        more = actual - hold.spent
        changed = [replace(one, spent=max(one.spent + more, 0), held=one.held - held) for one in chain]
        self._write(database, changed)
        database.write_locked([(sql.UPDATE_HOLD, (0, actual, status, self._replica.name, hold.key))], 1)

    def _expire(self, database: Database, now: int) -> None:
        """Give back the holds whose time is over."""
        while rows := database.read(sql.READ_EXPIRED, self._replica.name, now):
            for row in rows:
                hold = self._hold_of(database, row)
                self._close(database, hold, hold.spent, EXPIRED)

    def _write(self, database: Database, accounts: list[_Account]) -> None:
        ledger = self._replica.name
        for one in accounts:
            if not (0 <= one.held < LARGEST and 0 <= one.spent < LARGEST):
                raise self._corrupted(
                    database, f"account {one.name!r} would hold {one.held} and have spent {one.spent}"
                )
        statements = [(sql.UPDATE_ACCOUNT, (a.spent, a.held, a.since, a.updated, ledger, a.name)) for a in accounts]
        database.write_locked([*statements, (sql.TOUCH_OBJECT, (time.time(), ledger))], len(statements) + 1)

    def _chain(self, database: Database, account: str, argument: str) -> list[_Account]:
        """Return an account and all that it belongs to."""
        chain: list[_Account] = []
        name: str | None = account
        while name is not None:
            rows = database.read(sql.READ_ACCOUNT, self._replica.name, name)
            if not rows:
                raise InputError(argument, f"there is no account {name!r}", "Add it with add_account")
            chain.append(self._account(database, rows[0]))
            name = chain[-1].parent
            if len(chain) > MAX_DEPTH + 1:
                raise self._corrupted(database, f"account {account!r} belongs to itself")
        return chain

    def _account(self, database: Database, row: Any) -> _Account:
        account = _Account(*row)
        numbers = account.maximum, account.rate, account.spent, account.held, account.updated
        texts = account.name, account.zone, account.since
        sound = all(type(number) is int and 0 <= number < LARGEST for number in numbers)
        sound = sound and all(isinstance(text, str) for text in texts) and account.period in (None, *_FORMATS)
        if not sound or not (account.parent is None or isinstance(account.parent, str)):
            raise self._corrupted(database, f"account {account.name!r:.60} makes no sense")
        return account

    def _hold_of(self, database: Database, row: Any) -> _Hold:
        hold = _Hold(*row)
        numbers = hold.amount, hold.spent, hold.opened, 0 if hold.expires is None else hold.expires
        sound = all(type(number) is int and 0 <= number < LARGEST for number in numbers)
        if not sound or hold.status not in (OPEN, SETTLED, RELEASED, EXPIRED) or not isinstance(hold.account, str):
            raise self._corrupted(database, f"hold {hold.key!r:.60} makes no sense")
        return hold

    def _find(self, database: Database, key: str) -> _Hold | None:
        rows = database.read(sql.READ_HOLD, self._replica.name, key)
        return self._hold_of(database, rows[0]) if rows else None

    def _require_hold(self, database: Database, key: str) -> _Hold:
        hold = self._find(database, key)
        if hold is None:
            raise InputError("key", f"there is no hold {key!r}", "Give the key of a hold")
        return hold

    def _corrupted(self, database: Database, what: str) -> DatabaseError:
        return DatabaseError(database.path, "corrupted", what, "Restore a backup")


class Lease:
    """A slice of an account that one process spends from memory. Threads may share it.

    `Ledger.lease` makes it. Use it in a ``with`` statement, or call `close`.

    Parameters
    ----------
    ledger : Ledger
        The ledger that holds the slice.
    key : str
        The key of its hold.
    amount : int
        The slice, in units.
    end : float
        The time at which it ends, by `time.monotonic`.
    """

    def __init__(self, ledger: Ledger, key: str, amount: int, end: float) -> None:
        self._ledger, self._key, self._end = ledger, key, end
        self._lock = threading.Lock()
        self.amount = amount
        self.spent = 0
        """The units spent so far."""

    @property
    def available(self) -> int:
        """The units left; 0 after the end."""
        return self.amount - self.spent if time.monotonic() < self._end else 0

    def spend(self, amount: int) -> bool:
        """Spend an amount if it is left and the time is not over. Return whether it was spent."""
        amount = _require_amount("amount", amount)
        with self._lock:
            if amount > self.available:
                return False
            self.spent += amount
            return True

    def report(self) -> None:
        """Tell the ledger what was spent so far. A process that dies loses only what it did not report."""
        self._ledger.report(self._key, self.spent)

    def close(self) -> None:
        """Settle the slice: what was not spent comes back."""
        with self._lock:
            self._end = -1.0
        self._ledger.settle(self._key, self.spent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _require_amount(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < LARGEST // 2:
        remedy = "Give a whole number of units of at least 0, such as millionths of a cent"
        raise InputError(name, f"{value!r:.60} is not an amount", remedy)
    return int(value)


def _require_name(argument: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or "\0" in value:
        raise InputError(argument, f"{value!r:.60} is not a name", f"Give a text of 1 to {LONGEST_NAME} characters")
    return value


def _require_hold_key(key: Any) -> str:
    found = require_key(key)
    if found is None:
        raise InputError("key", "is missing", "Give a text that names the request")
    return found


def _require_seconds(value: float) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise InputError("seconds", f"{value!r} is not a time", "Give seconds above 0")
    return int(value * SECOND)


def _zone(timezone: str) -> ZoneInfo:
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InputError("timezone", f"{timezone!r:.60} is not known", "Give 'UTC' or 'Europe/Berlin'") from None


def _period(period: str, timezone: str, now: int) -> str:
    """Return the name of the period that a time is in; later periods have larger names."""
    return datetime.fromtimestamp(now / SECOND, _zone(timezone)).strftime(_FORMATS[period])


def _elapsed(period: str | None, timezone: str, now: int) -> float:
    """Return the share of the present period that is over; 1 without a period."""
    if period is None:
        return 1.0
    local = datetime.fromtimestamp(now / SECOND, _zone(timezone))
    start = local.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "week":
        start -= timedelta(days=start.weekday())
    start = start.replace(day=1) if period == "month" else start
    next_month = (start + timedelta(days=32)).replace(day=1)
    end = next_month if period == "month" else start + timedelta(days=7 if period == "week" else 1)
    return (local.timestamp() - start.timestamp()) / (end.timestamp() - start.timestamp())
