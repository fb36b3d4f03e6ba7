"""The record of an object: what people have changed of it, when, by whom and why.

An entry is written in the transaction that makes the change. So the record has an entry if and only if the change was
made. A ledger also has its closed holds in its record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from longterm.errors import RESTORE, DatabaseError
from longterm.storage import schema as sql
from longterm.storage.clock import DAY
from longterm.storage.database import Database
from longterm.storage.schema import Statement

RECORD_SECONDS = 90 * DAY
"""The time for which entries are kept. A ledger has its own."""
SECOND = 1_000_000
"""Microseconds."""
LATEST = 2.0**62 / SECOND
"""A time that is later than all."""
Value = int | float | str | None


class RecordEntry(NamedTuple):
    """An entry of a record.

    Parameters
    ----------
    time : float
        Seconds since 1970.
    what : str
        "settled", "released", "expired", "corrected", "reset" or "renamed", or the name of the limit that was changed,
        such as "limit", "per_request" or "period".
    account, key : str
        The account of a ledger or the budget of a chooser, and the key of the hold or the token of the round, if there
        are any.
    old, new : number or str, optional
        Of a closed hold or round, the amount held and the cost. Otherwise the value before and after; None: not set.
    who, note : str
        Who made the call, and the reason given.
    """

    time: float
    what: str
    account: str
    key: str
    old: Any
    new: Any
    who: str
    note: str


def entry(
    what: str, old: Value, new: Value, *, account: str = "", key: str = "", who: str = "", note: str = ""
) -> RecordEntry:
    """Return an entry that has no time yet."""
    return RecordEntry(0.0, what, account, key, old, new, who, note)


def changed_limits(old: Mapping[str, Value], new: Mapping[str, Value], who: str, note: str) -> list[RecordEntry]:
    """Return an entry for each limit that differs. Names of limits may begin with that of a budget and a point."""
    found = []
    for name, value in new.items():
        if old[name] != value:
            account, _, what = name.rpartition(".")
            found.append(entry(what, old[name], value, account=account, who=who, note=note))
    return found


def insertions(name: str, now: float, entries: Sequence[RecordEntry]) -> list[Statement]:
    """Return the statements that write entries of an object."""
    return [insertion(name, one._replace(time=now)) for one in entries]


def insertion(name: str, new: RecordEntry, correction: str | None = None, moved: Sequence[str] = ()) -> Statement:
    """Return the statement that writes an entry. `correction` and `moved` are those of a ledger's correction."""
    values = json.dumps(new.old), json.dumps(new.new)
    made = round(new.time * SECOND), new.what, new.account, new.key, *values, new.who, new.note
    return sql.INSERT_ENTRY, (*made, json.dumps(moved), correction, name, name)


class Recorded(NamedTuple):
    """A change with the entries that it adds to the record of its object."""

    change: Any
    entries: Sequence[RecordEntry]

    def statements(self, copy: Any, name: str, now: float) -> Sequence[Statement]:
        """Return the statements that write it, and that delete entries which are too old."""
        prune = sql.DELETE_ENTRIES, (name, int((now - RECORD_SECONDS) * SECOND))
        return [*self.change.statements(copy, name, now), *insertions(name, now, self.entries), prune]

    def apply(self, copy: Any) -> None:
        """Apply it to a copy."""
        self.change.apply(copy)


def read_entries(database: Database, name: str, since: float, most: int) -> list[RecordEntry]:
    """Return the entries of an object since a time, the newest first."""
    found = []
    for made, what, account, key, old, new, who, note in database.read(
        sql.READ_ENTRIES, name, int(since * SECOND), most
    ):
        texts = what, account, key, who, note
        if type(made) is not int or not all(isinstance(text, str) for text in texts):
            raise contradicts(database)
        values = read_value(database, old), read_value(database, new)
        found.append(RecordEntry(made / SECOND, what, account, key, *values, who, note))
    return found


def read_value(database: Database, stored: Any) -> Any:
    """Return a number, a text or None from an entry."""
    try:
        value = json.loads(stored)
    except (ValueError, TypeError, RecursionError):
        raise contradicts(database) from None
    if not isinstance(value, (int, float, str, type(None))):
        raise contradicts(database)
    return value


def contradicts(database: Database) -> DatabaseError:
    """Return the error for an entry that makes no sense."""
    return DatabaseError(database.path, "corrupted", "an entry of the record is inconsistent", RESTORE)
