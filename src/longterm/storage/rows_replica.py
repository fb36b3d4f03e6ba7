"""Objects without a copy in memory, such as ledgers: their calls read rows and write rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from longterm.errors import LongtermError
from longterm.storage import schema as sql
from longterm.storage.clock import SYSTEM, Clock
from longterm.storage.database import Database
from longterm.storage.engine import ConflictError
from longterm.storage.positions import Position, put_position
from longterm.storage.replica import ATTEMPTS, LOCKED_CALLS, Replica


class NoCopy:
    """The copy of an object whose calls read what they need from the database.

    Parameters
    ----------
    kind : str
        The kind of object.
    """

    version = asked = 0

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def is_due(self, now: float) -> bool:
        """Return False."""
        return False

    def encode(self) -> bytes:
        """Return no bytes."""
        return b""

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        """Do nothing."""


class RowsReplica(Replica[NoCopy]):
    """A replica of an object whose calls read what they need from the database.

    Parameters
    ----------
    kind : str
        The kind of object.
    definition, clock
        As for `Replica`.
    """

    def __init__(self, kind: str, definition: dict[str, Any], *, clock: Clock = SYSTEM) -> None:
        super().__init__(NoCopy(kind), definition, clock=clock)
        self._last_version: int | None = None
        """The version that the last call wrote without a lock; None if it may be another one."""

    def run(self, work: Callable[..., Any], *arguments: Any, position: Position | None = None) -> Any:
        """Return what a function of a database does in one transaction, in which no other process has the object.

        Every transaction that writes must raise the version of the object. With a position, as `apply_message`.
        """
        guard, database = self.guard, self.database
        assert database is not None
        if position is not None:
            work = partial(self._work_once, position, work)
        with guard.wait():
            guard.owner = threading.get_ident()
            try:
                self._locked_calls -= self._locked_calls > 0
                if database.is_postgres and not self._locked_calls:
                    try:
                        return self._run_unlocked(database, work, *arguments)
                    except ConflictError:
                        self._last_version, self._locked_calls = None, LOCKED_CALLS
                for _ in range(ATTEMPTS):
                    try:
                        with database.locked(self.name):
                            return work(database, *arguments)
                    except ConflictError:
                        continue
                raise self._unwritable(database)
            finally:
                guard.owner = 0

    def _work_once(self, position: Position, work: Callable[..., Any], database: Database, *arguments: Any) -> Any:
        self.require_new(position)
        touch = sql.TOUCH_OBJECT, (database.seconds(), self.name)  # `work` may have nothing to write
        found = work(database, *arguments)
        database.write_locked([put_position(self.name, position), touch])
        return found

    def _run_unlocked(self, database: Database, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do the same with queries first and one statement that writes, which saves half of the round trips.

        The statement names the version before the first query. It changes nothing if another process has written since.

        Raises
        ------
        ConflictError
            If another process has written, or a query follows what it writes. Nothing has changed.
        """
        version = self._last_version
        if version is None:
            rows = database.read(sql.READ_TOUCHED, self.name)
            if not rows:
                raise ConflictError
            version = rows[0][0]
        self._last_version = None
        try:
            with database.collecting() as collected:
                found = work(database, *arguments)
        except LongtermError:  # it may be due to rows of two moments
            self._require_version(database, version)
            raise
        if collected:
            touched = sql.TOUCH_OBJECT, self.name
            others = [one for one in collected if (one[0], one[1][-1]) != touched]
            guarded = sql.TOUCH_IF_CURRENT, (database.seconds(), self.name, version)
            if not database.write([guarded, *others]):
                raise ConflictError
            self._last_version = version + 1
        else:
            self._require_version(database, version)
        return found

    def _require_version(self, database: Database, version: int) -> None:
        """Raise a ConflictError if the object has another version."""
        if database.read(sql.READ_TOUCHED, self.name) != [(version,)]:
            raise ConflictError
        self._last_version = version
