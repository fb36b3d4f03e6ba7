"""A description of everything in a database, without the learners and rules that it was made with."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from longterm._base.messages import did_you_mean
from longterm.errors import DatabaseError, InputError
from longterm.storage import schema as sql
from longterm.storage.database import Database
from longterm.storage.packing import MalformedError, unpack_checked
from longterm.storage.record import RecordEntry, entry, insertions, read_entries
from longterm.storage.replica import LONGEST_NAME
from longterm.storage.tokens import EPOCH_BITS, Token

INTERNAL = "server "
"""Kinds that begin with this are for what a service keeps for itself, such as its counters."""


class StoredObject(NamedTuple):
    """One object of a database.

    Parameters
    ----------
    name, kind : str
        Its name, and "live learner", "live pacer", "live intervals", "fleet", "chooser" or "ledger".
    rounds : int
        The number of rounds or requests.
    open : int
        The number of open rounds, choices or holds.
    spent, held : dict of str to number, or None
        The money: of a ledger by account, of a chooser or pacer by "", or by "0", "1", … if it has several budgets.
    changed : float
        The time of the last change, in seconds since 1970.
    """

    name: str
    kind: str
    rounds: int
    open: int
    spent: dict[str, float] | None
    held: dict[str, float] | None
    changed: float


def describe(url: str | PathLike[str]) -> list[StoredObject]:
    """Return the objects of a database, by name.

    Parameters
    ----------
    url : path or str
        A file of SQLite, or a URL ``postgresql://…``.

    Raises
    ------
    DatabaseError
        If the database cannot be read.
    """
    database = Database(url, "relaxed", create=False)
    try:
        found = []
        for name, kind, changed, state, rounds in database.read(sql.OBJECTS):
            spent: dict[str, float] | None = None
            held: dict[str, float] | None = None
            if kind == "ledger":
                rows = database.read(sql.READ_MONEY, name)
                spent = {account: amount for account, amount, _ in rows}
                held = {account: amount for account, _, amount in rows}
                ((open_rounds,),) = database.read(sql.COUNT_HOLDS, name)
            else:
                ((open_rounds,),) = database.read(sql.COUNT_OPEN, name)
            if kind == "chooser":
                spent, held = _chooser_money(state)
            if kind == "live pacer":
                spent, held = _pacer_money(state, database.read(sql.READ_OPEN, name))
            found.append(StoredObject(name, kind, rounds, open_rounds, spent, held, changed))
        return found
    finally:
        database.close()


def read_definition(url: str | PathLike[str], name: str) -> tuple[str, dict[str, Any]]:
    """Return the kind of an object and the arguments that it was created with, as they are stored.

    Parameters
    ----------
    url : path or str
        A file of SQLite, or a URL ``postgresql://…``.
    name : str
        The object.

    Returns
    -------
    kind, arguments

    Raises
    ------
    InputError
        If the database has no object with this name.
    DatabaseError
        If the database cannot be read.
    """
    database = Database(url, "relaxed", create=False)
    try:
        rows = database.read(sql.READ_OBJECT, name)
        if not rows:
            known = [found[0] for found in database.read(sql.OBJECTS)]
            what = f"the database has no object {name!r}{did_you_mean(name, known)}"
            raise InputError("name", what, f"Choose from {known}")
        return rows[0][0], json.loads(rows[0][1])
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise DatabaseError(database.path, "corrupted", f"{name!r} has no definition", "Restore a backup") from None
    finally:
        database.close()


def read_open_rounds(url: str | PathLike[str], name: str, most: int) -> list[tuple[str, float]]:
    """Return the tokens of an object's open rounds and their ages in seconds, the oldest first."""
    database = Database(url, "relaxed", create=False)
    try:
        rows = sorted(database.rounds(sql.READ_OPEN, name), key=lambda row: row.number)[:most]
        now = database.seconds()
        return [(str(Token(row.number, epoch=row.epoch)), now - row.opened) for row in rows]
    finally:
        database.close()


def read_record(url: str | PathLike[str], name: str, since: float, most: int) -> list[RecordEntry]:
    """Return what people have changed of an object since a time, the newest first; of a ledger without its holds."""
    database = Database(url, "relaxed", create=False)
    try:
        return read_entries(database, name, since, most)
    finally:
        database.close()


def rename(
    url: str | PathLike[str],
    old: str,
    new: str,
    *,
    who: str = "",
    note: str = "",
    on_rename: Callable[[Database, str, str], None] | None = None,
) -> None:
    """Give an object another name. Stop the services that use it first: they know the old name.

    Parameters
    ----------
    url : path or str
        A file of SQLite, or a URL ``postgresql://…``.
    old, new : str
        Its name and the new one, which must be free.
    who, note : str
        Who gives it and why, for its record.
    on_rename : callable, optional
        A function of the database and both names, which renames more in the same transaction.

    Raises
    ------
    InputError
        If there is no such object, a service keeps it for itself, or the new name is taken or cannot be one.
    DatabaseError
        If the database cannot be written.
    """
    if not 0 < len(new) <= LONGEST_NAME or not new.isprintable():
        raise InputError("new", f"{new!r:.60} is not a name", f"Give a text of 1 to {LONGEST_NAME} characters")
    database = Database(url, "commit", create=False)
    try:
        with database.locked(old):
            kinds = {found[0]: found[1] for found in database.read(sql.OBJECTS)}
            known = [name for name, kind in kinds.items() if not kind.startswith(INTERNAL)]
            if old not in known:
                missing = f"the database has no object {old!r}{did_you_mean(old, known)}"
                what = f"the service keeps {old!r} for itself, under this name" if old in kinds else missing
                raise InputError("old", what, f"Choose from {known}")
            if new in kinds:
                raise InputError("new", f"{new!r} is the name of another object", "Choose a free name")
            database.write_locked([(statement, (new, old)) for statement in sql.RENAME_OBJECT])
            # The keys of an object's holds in a ledger are its name and a token. Others may begin with its name.
            start, dash = len(old) + 2, len(old) + 2 + EPOCH_BITS // 4
            given = f"{new} ", start, start - 1, f"{old} ", start, dash, dash, dash + 1
            database.write_locked([(statement, given) for statement in sql.RENAME_HOLDS])
            database.write_locked(insertions(new, database.seconds(), [entry("renamed", old, new, who=who, note=note)]))
            if on_rename is not None:
                on_rename(database, old, new)
    finally:
        database.close()


def _chooser_money(state: Any) -> tuple[dict[str, float] | None, dict[str, float] | None]:
    """Return the money of a chooser that is spent, and that is held for open choices."""
    try:
        spent, committed = _sums(state, "spent", "committed")
    except (MalformedError, LookupError, TypeError, ValueError):
        return None, None
    return _by_budget(spent), _by_budget(np.maximum(committed - spent, 0.0))


def _pacer_money(state: Any, rounds: list[Any]) -> tuple[dict[str, float] | None, dict[str, float] | None]:
    """Return the money of a pacer that is spent, and the sum of its open bids."""
    try:
        (spent,) = _sums(state, "spent")
        bids = [np.frombuffer(content, "<f8")[0] for *_, content in rounds]
    except (MalformedError, LookupError, TypeError, ValueError):
        return None, None
    return _by_budget(spent), {"": math.fsum(bids)}


def _sums(state: Any, *names: str) -> list[Any]:
    """Return compensated sums of a stored state, one number for each budget."""
    _, arrays = unpack_checked(state)
    return [np.atleast_1d(arrays[f"state.{name}.total"] + arrays[f"state.{name}.correction"]) for name in names]


def _by_budget(amounts: Any) -> dict[str, float]:
    return {"" if len(amounts) == 1 else str(index): amount for index, amount in enumerate(amounts.tolist())}
