"""A description of everything in a database, without the learners and rules that it was made with."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple

import numpy as np

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
        The money, one number for each budget or account; None for learners.
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
        for name, kind, _, changed, state, rounds in database.read(sql.OBJECTS):
            arrays = _arrays(state)
            spent: list[float] | None = None
            held: list[float] | None = None
            if kind == "ledger":
                rows = database.read(sql.READ_MONEY, name)
                spent, held = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [])
                ((open_rounds,),) = database.read(sql.COUNT_HOLDS, name)
            elif "counters" in arrays:  # a live learner, whose closed rounds are written later than its state
                open_rounds = rounds - int(np.sum(arrays["counters"][:3]))
            else:
                spent, held = _money(arrays)
                ((open_rounds,),) = database.read(sql.COUNT_ROUNDS, name)
            found.append(StoredObject(name, kind, rounds, open_rounds, spent, held, changed))
        return found
    finally:
        database.close()


def _arrays(state: Any) -> dict[str, Any]:
    try:
        return unpack_checked(state)[1] if isinstance(state, bytes) else {}
    except MalformedError:
        return {}


def _money(arrays: dict[str, Any]) -> tuple[list[float] | None, list[float] | None]:
    """Return the money of a chooser that is spent, and that is held for open choices."""
    if "state.spent.total" not in arrays:
        return None, None
    sums = {part: arrays[f"state.{part}.total"] + arrays[f"state.{part}.correction"] for part in ("spent", "committed")}
    held = np.maximum(sums["committed"] - sums["spent"], 0.0)
    return np.atleast_1d(sums["spent"]).tolist(), np.atleast_1d(held).tolist()
