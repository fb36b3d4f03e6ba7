"""A description of everything in a database, without the learners and rules that it was made with."""

from __future__ import annotations

from contextlib import suppress
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from longterm.service.rounds import split_state, unwritten
from longterm.storage import schema as sql
from longterm.storage.database import Database
from longterm.storage.packing import MalformedError, unpack_checked


class StoredObject(NamedTuple):
    """One object of a database.

    Parameters
    ----------
    name, kind : str
        Its name, and "live learner", "chooser" or "ledger".
    rounds : int
        The number of rounds or requests.
    open : int
        The number of open rounds, choices or holds.
    spent, held : list of number or None
        The money, one number for each budget or account; None for objects other than choosers and ledgers.
    changed : float
        The time of the last change, in seconds since 1970.
    """

    name: str
    kind: str
    rounds: int
    open: int
    spent: list[float] | None
    held: list[float] | None
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
        for name, kind, version, changed, state, rounds in database.read(sql.OBJECTS):
            spent: list[float] | None = None
            held: list[float] | None = None
            if kind == "ledger":
                rows = database.read(sql.READ_MONEY, name)
                spent, held = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [])
                ((open_rounds,),) = database.read(sql.COUNT_HOLDS, name)
            else:
                numbers = {number for (number,) in database.read(sql.OPEN_ROUNDS, name)}
                with suppress(TypeError, ValueError):  # not an object with rounds
                    numbers -= {number for number, _ in unwritten(version, split_state(state)[1])}
                open_rounds = len(numbers)
            if kind == "chooser":
                spent, held = _money(state)
            found.append(StoredObject(name, kind, rounds, open_rounds, spent, held, changed))
        return found
    finally:
        database.close()


def _money(state: Any) -> tuple[list[float] | None, list[float] | None]:
    """Return the money of a chooser that is spent, and that is held for open choices."""
    try:
        _, arrays = unpack_checked(split_state(state)[0])
        spent, committed = (
            np.atleast_1d(arrays[f"state.{part}.total"] + arrays[f"state.{part}.correction"])
            for part in ("spent", "committed")
        )
        return spent.tolist(), np.maximum(committed - spent, 0.0).tolist()
    except (MalformedError, LookupError, TypeError, ValueError):
        return None, None
