"""Objects without a copy in memory, such as ledgers: their calls read rows and write rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from longterm.errors import LongtermError
from longterm.storage import schema as sql
from longterm.storage.clock import SYSTEM, Clock
from longterm.storage.database import Database
from longterm.storage.engine import ConflictError
from longterm.storage.group_commit import ATTEMPTS, LOCKED_CALLS, without_replaced
from longterm.storage.positions import Position, put_position
from longterm.storage.replica import Replica
from longterm.storage.schema import Statement


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
        """The version that the last call wrote; None if it may be another one."""
        self.prefetch: Callable[[Database, Sequence[str]], None] | None = None
        """Read the rows that calls with these keys will ask for."""
        self._version: int | None = None
        """The version before the present call; None if it has a lock."""

    def run(self, work: Callable[..., Any], *arguments: Any, position: Position | None = None) -> Any:
        """Return what a function of a database does in one transaction, in which no other process has the object.

        Every transaction that writes must raise the version of the object. With a position, as `apply_message`.
        """
        guard, database = self.guard, self.database
        assert database is not None
        if position is not None:
            work = partial(self._work_once, position, work)
        if self._is_in_group:
            return self._take_turn(self._run_in_group, database, work, *arguments)
        with guard.wait():
            guard.owner = threading.get_ident()
            try:
                database.end_collecting()  # in case an interrupt has left it on
                self._locked_calls -= self._locked_calls > 0
                if database.is_postgres and not self._locked_calls:
                    try:
                        return self._run_unlocked(database, work, *arguments)
                    except ConflictError:
                        self._locked_calls = LOCKED_CALLS
                self._last_version = None
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

    # --- queries first, and one statement that writes ----------------------------------------------------------

    def _run_unlocked(self, database: Database, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do the same with queries first and one statement that writes, which saves half of the round trips.

        The statement names the version before the first query. It changes nothing if another process has written since.

        Raises
        ------
        ConflictError
            If another process has written, or a query follows what it writes. Nothing has changed.
        """
        self._begin_group(database, is_locked=False)
        try:
            collected = database.collect()
            found = work(database, *arguments)
        except LongtermError:  # it may be due to rows of two moments
            database.end_collecting()
            self._write_group(database, (), is_locked=False)
            raise
        finally:
            database.end_collecting()
        self._write_group(database, collected.statements, is_locked=False)
        return found

    def _run_in_group(self, database: Database, work: Callable[..., Any], *arguments: Any) -> Any:
        """Make one call of a group. What it has collected is forgotten if it raises."""
        collected = self._group
        assert collected is not None
        mark = collected.mark()
        self._is_torn = True
        try:
            found = work(database, *arguments)
        except Exception:
            collected.undo(mark)
            self._is_torn = False
            raise
        self._is_torn = False
        return found

    def _begin_group(self, database: Database, *, is_locked: bool) -> None:
        if self._last_version is None and not is_locked:
            rows = database.read(sql.READ_TOUCHED, self.name)
            if not rows:
                raise ConflictError
            self._last_version = rows[0][0]
        self._version, self._last_version = self._last_version, None

    def _prepare_group(self, database: Database, keys: Sequence[str]) -> None:
        if self.prefetch is not None and keys:
            self.prefetch(database, keys)

    def _write_group(self, database: Database, statements: Sequence[Statement], *, is_locked: bool) -> None:
        version, touched = self._version, (sql.TOUCH_OBJECT, self.name)
        others = [one for one in without_replaced(statements) if (one[0], one[1][-1]) != touched]
        if is_locked:
            if statements:
                database.write_if_current([(sql.TOUCH_OBJECT, (database.seconds(), self.name)), *others])
            return
        assert version is not None
        if not statements:
            if database.read(sql.READ_TOUCHED, self.name) != [(version,)]:
                raise ConflictError
        elif database.write([(sql.TOUCH_IF_CURRENT, (database.seconds(), self.name, version)), *others]):
            version += 1
        else:
            raise ConflictError
        self._last_version = version

    def _accept_group(self) -> None:
        """Do nothing: there is no copy."""

    def _undo_group(self) -> None:
        self._last_version = None

    def _end_group(self) -> None:
        """Do nothing: there is no copy."""
