"""Replicas: one process's copy of an object whose state lives in a database.

A call computes a change from the copy, writes it in one transaction, and applies it to the copy. The write names the
version that the change was computed from. If another process has written since, the call reads the state again,
computes the change again, and writes it while it holds the object. So the calls of all threads and processes happen in
the order of the database's transactions.

An exception may be raised at any instruction, by a signal handler for example. The copy is marked stale before the
write, and fresh after the change was applied. A stale copy is read again, so it shows the change if and only if the
transaction was committed. Without a database the change is kept instead and applied again: changes are idempotent.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from longterm.errors import RESTORE, DatabaseError, InputError, InUseError, LongtermError, RepeatedPositionError
from longterm.storage import schema as sql
from longterm.storage.clock import SYSTEM, Clock
from longterm.storage.database import ConflictError, Database, Durability
from longterm.storage.one_thread import OneThread
from longterm.storage.positions import LARGEST_POSITION, START, Position, require_partition, require_position
from longterm.storage.schema import Statement
from longterm.storage.specification import changed_values, difference, specification
from longterm.storage.tokens import EPOCH_BITS

LONGEST_NAME = 200
ATTEMPTS = 100
"""A call that holds the lock of its object conflicts at most with rounds that others open at the same moment."""
LOCKED_CALLS = 16
"""After two processes have written at the same moment, so many calls lock their object first."""
Metrics = dict[str, float | dict[str, float]]
"""Figures for monitoring by name; some are by budget, account or group."""


class Change(Protocol):
    """A change of an object, computed but not yet made."""

    def statements(self, copy: Any, name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return the statements that write it, and how many of the first ones must change one row each."""

    def apply(self, copy: Any) -> None:
        """Put the new values into the copy. Idempotent; it checks nothing."""


class Copy(Protocol):
    """One process's copy of the state of an object."""

    kind: str

    @property
    def version(self) -> int:
        """The version of the state."""

    @property
    def asked(self) -> int:
        """The number of the last round; 0 before the first."""

    def is_due(self, now: float) -> bool:
        """Return whether anything is too old at this time and has to be closed."""

    def encode(self) -> bytes:
        """Return the state as bytes, without the rounds."""

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        """Become what the database holds. Raise a ValueError, LookupError, TypeError or ArithmeticError if forged."""


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


class Positioned(NamedTuple):
    """A change that applies the message at a position of a queue."""

    change: Change
    position: Position
    positions: dict[str, int]
    """The last positions of an object without a database."""

    def statements(self, copy: Any, name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return the statements that write it."""
        statements, guarded = self.change.statements(copy, name, now)
        return [*statements, (sql.PUT_POSITION, (name, *self.position))], guarded

    def apply(self, copy: Any) -> None:
        """Apply it to a copy."""
        self.change.apply(copy)
        self.positions[self.position.partition] = self.position.number


class _Redefinition(NamedTuple):
    """A change of arguments, and of the state, of an object without a database."""

    adopt: Callable[[dict[str, Any]], None]
    definition: dict[str, Any]
    change: Change | None

    def statements(self, copy: Any, name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return nothing: it is never written."""
        return (), 0

    def apply(self, copy: Any) -> None:
        """Use the new values."""
        self.adopt(self.definition)
        if self.change is not None:
            self.change.apply(copy)


C = TypeVar("C", bound=Copy)
R = TypeVar("R", bound=Change)


class Replica(Generic[C]):
    """One process's copy of an object, with the lock and the database that protect it.

    Parameters
    ----------
    copy : Copy
        The state of a new object.
    definition : dict
        The constructor arguments that a stored object is restored with: the learner or rule, for example.
    may_fork : bool
        False: without a database, a forked child may not use its copy.
    clock : Clock
        The time of this machine.
    """

    def __init__(self, copy: C, definition: dict[str, Any], *, may_fork: bool = True, clock: Clock = SYSTEM) -> None:
        self.copy = copy
        self.clock = clock
        self.guard = OneThread(copy.kind)
        self.database: Database | None = None
        self.name = ""
        self.epoch = draw_epoch()
        """A random number of this process's rounds: after a backup was restored, lost rounds stay unknown."""
        self._definition = specification(definition)
        self.changeable: Collection[str] = ()
        """The places of arguments that may be changed in the database."""
        self.adopt: Callable[[dict[str, Any]], None] = lambda stored: None
        """Use the values that a stored definition has for these arguments. Idempotent."""
        self._is_adopting = False
        """True after `adopt` was interrupted: the copy may have values that are not those of its definition."""
        self.follows = False
        """True once the object is open: what other processes change is adopted."""
        self._may_fork = may_fork
        self._is_forked = False
        self._is_stale = False
        self.changes_others = False
        """True if calls change other objects of the database as well, so that all their work is in a transaction."""
        self.expire: Callable[[float], Change] | None = None
        """Return the change that closes what is too old at a time. Every call makes it first, if anything is due."""
        self._positions: dict[str, int] = {}
        """The last positions that this process has applied: all there are, without a database."""
        self._time: float | None = None
        """The time of the present attempt of a call; None between calls."""
        self._unfinished: Change | None = None
        """A change that is being applied without a database."""
        self._last_version: int | None = None
        """The version that the last call of `run` wrote without a lock; None if it may be another one."""
        self._locked_calls = 0
        """Calls of `run` that lock the object at once, because other processes write."""
        _REPLICAS.add(self)

    def attach(self, url: str | PathLike[str], name: str, durability: Durability) -> None:
        """Create the object in a database, or restore it from there."""
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
            raise InputError("name", f"{name!r:.60} is not a name", f"Give a text of 1 to {LONGEST_NAME} characters")
        database = Database(url, durability, clock=self.clock)
        try:
            given = name, self.copy.kind, json.dumps(self._definition), database.seconds(), self.copy.encode()
            database.write([(sql.INSERT_OBJECT, given)], 0)
            self.database, self.name = database, name
            self._read(database)
            self.follows = True
        except BaseException:
            database.close()
            raise

    def now(self) -> float:
        """Return the time in seconds since 1970: the database's if there is one. One attempt of a call has one time."""
        return self._read_time() if self._time is None else self._time

    def _read_time(self) -> float:
        return self.clock.wall() if self.database is None else self.database.seconds()

    def transact(self, compute: Callable[..., R], *arguments: Any) -> R:
        """Compute a change from the present state, write it, apply it, and return it."""
        guard = self.guard
        with guard.wait():
            guard.owner = threading.get_ident()
            try:
                self._time = self._read_time()
                if self._is_stale or self._unfinished is not None:
                    self._repair()
                if self._is_due():
                    self._make(self._expiry)
                return self._make(compute, *arguments)
            finally:
                guard.owner, self._time = 0, None

    def apply_message(self, position: Position | None, compute: Callable[..., Change], *arguments: Any) -> None:
        """Make a change that a message of a queue asks for, once. Without a position it is an ordinary change.

        Raises
        ------
        RepeatedPositionError
            If a message at this position or a later one of the partition was applied.
        """
        if position is not None:
            compute = partial(self._positioned, position, compute)
        self.transact(compute, *arguments)

    def _positioned(self, position: Position, compute: Callable[..., Change], *arguments: Any) -> Positioned:
        self.require_new(position)
        return Positioned(compute(*arguments), position, self._positions)

    def require_new(self, position: Position) -> None:
        """Raise a RepeatedPositionError if a message at this position or a later one was applied."""
        last = self.last_position(position.partition)
        if position.number <= last:
            what = f"{tuple(position)} was applied already; the last position of this partition is {last}"
            remedy = "Acknowledge the message: it counts once. If it is a new one, number positions upwards"
            raise RepeatedPositionError("position", what, remedy)

    def last_position(self, partition: str) -> int:
        """Return the last position of a partition that was applied; -1 before the first."""
        if self.database is None:
            return self._positions.get(partition, START)
        rows = self.database.read(sql.READ_POSITION, self.name, partition)
        last = rows[0][0] if rows else START
        if type(last) is not int or not START <= last <= LARGEST_POSITION:
            what = f"the last position of {partition!r} is {last!r:.40}"
            raise DatabaseError(self.database.path, "corrupted", what, RESTORE)
        return last

    def _make(self, compute: Callable[..., R], *arguments: Any) -> R:
        """Compute a change, write it and apply it."""
        database, copy = self.database, self.copy
        if database is None:
            if self._is_forked and not self._may_fork:
                raise _forked(copy.kind)
            change = compute(*arguments)
            self._unfinished = change
            change.apply(copy)
            self._unfinished = None
            return change
        computed = None
        try:
            if not self.changes_others:
                computed = compute(*arguments)
        except LongtermError:
            if self._is_current(database):
                raise
        self._is_stale = True
        statements, guarded = ((), 0) if computed is None else computed.statements(copy, self.name, self.now())
        if computed is not None and not database.needs_lock(statements) and database.write(statements, guarded):
            change = computed
        else:
            attempt = computed if database.needs_lock(statements) else None
            change = self._make_locked(database, attempt, statements, compute, *arguments)
        change.apply(copy)
        self._is_stale = False
        return change

    def _is_due(self) -> bool:
        """Return whether anything in the copy is too old."""
        may_change = self.database is not None or self._may_fork or not self._is_forked
        return self.expire is not None and may_change and self.copy.is_due(self.now())

    def _expiry(self) -> Change:
        assert self.expire is not None
        return self.expire(self.now())

    def look(self, read: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function finds in the present state."""
        guard = self.guard
        with guard.wait():
            guard.owner = threading.get_ident()
            try:
                self._repair()
                if self.database is not None and not self._is_current(self.database):
                    self._read(self.database)
                if self._is_due():
                    self._make(self._expiry)
                return read(*arguments)
            finally:
                guard.owner, self._time = 0, None  # an expiry that another call crossed has set the time

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
                if database.is_postgres:
                    self._locked_calls = max(self._locked_calls - 1, 0)
                    if not self._locked_calls:
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
        database.write_locked([(sql.PUT_POSITION, (self.name, *position)), touch])
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
            if not database.write([guarded, *others], 1):
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

    def _make_locked(
        self,
        database: Database,
        computed: R | None,
        statements: Sequence[Statement],
        compute: Callable[..., R],
        *arguments: Any,
    ) -> R:
        """Write what was computed. If another process was first: read, compute and write in the same transaction."""
        for _ in range(ATTEMPTS):
            try:
                with database.locked(self.name):
                    if computed is not None:
                        attempt, computed = computed, None
                        if database.write_if_current(statements):
                            return attempt
                    self._time = self._read_time()
                    self._read_object(database, is_known=True)
                    expiry = self._expiry() if self._is_due() else None
                    if expiry is None:
                        change = compute(*arguments)
                    written = change if expiry is None else expiry
                    database.write_locked(*written.statements(self.copy, self.name, self.now()))
            except ConflictError:
                continue
            if expiry is not None:
                expiry.apply(self.copy)
                continue
            return change
        raise self._unwritable(database)

    def _unwritable(self, database: Database) -> DatabaseError:
        """Return the error for rows that exist although the state says that they do not."""
        what = f"the rows of {self.name!r} do not fit its state"
        return DatabaseError(database.path, "corrupted", what, "Restore a backup")

    def _repair(self) -> None:
        """Bring the copy up to date after an interrupt."""
        if self._unfinished is not None:
            self._unfinished.apply(self.copy)
            self._unfinished = None
        if self._is_stale and self.database is not None:
            self.database.rollback()
            self._read(self.database)

    def _is_current(self, database: Database) -> bool:
        """Return whether no other process has written since the copy was read."""
        rows = database.read(sql.READ_VERSION, self.name)
        return bool(rows) and tuple(rows[0]) == (self.copy.version, self.copy.asked)

    def _read(self, database: Database) -> None:
        self._is_stale = True
        with database.snapshot():
            self._read_object(database)
        self._is_stale = False

    def _read_object(self, database: Database, *, is_known: bool = False) -> None:
        """Read the state, inside a transaction, unless the copy is known and nothing has changed since."""
        rows = database.read(sql.READ_OBJECT, self.name)
        if not rows:
            raise DatabaseError(database.path, "missing", f"it has no object {self.name!r} any more", "Open it again")
        kind, stored, version, state, asked = rows[0]
        if is_known and (version, asked) == (self.copy.version, self.copy.asked):
            return
        if kind != self.copy.kind:
            remedy = "Give this object another name"
            raise DatabaseError(database.path, "foreign", f"{self.name!r} is a {kind!r:.40}", remedy)
        try:
            found = json.loads(stored)
            changed = self.follows and changed_values(found, self._definition, self.changeable)
            if self._is_adopting or changed:
                self._adopt(found)
            differs = difference(found, self._definition, "")
            if differs is None:
                if type(version) is not int or type(asked) is not int or not isinstance(state, bytes):
                    raise ValueError("a column has the wrong type")
                self.copy.restore(database, self.name, version, asked, state)
        except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
            what = f"the state of {self.name!r} makes no sense: {error}"
            raise DatabaseError(database.path, "corrupted", what, "Restore a backup") from None
        if differs is not None:
            remedy = "Open it with the arguments that it was created with, or under another name"
            what = f"{self.name!r} was created with other arguments: {differs}"
            if changed_values(found, self._definition, self.changeable):
                remedy = "Open it with follow=True to use the stored values, or under another name"
                what = f"{self.name!r} was created with other arguments, or they were changed since: {differs}"
            raise DatabaseError(database.path, "another definition", what, remedy)

    def _adopt(self, stored: dict[str, Any]) -> None:
        """Take over a definition with other values of arguments that may be changed."""
        self._is_adopting = True
        self.adopt(stored)
        self._definition, self._is_adopting = stored, False

    def redefine(self, plan: Callable[[], tuple[dict[str, Any], Change | None]]) -> None:
        """Change arguments of the object, here and in all processes that use it.

        Parameters
        ----------
        plan : callable
            Returns the arguments of the constructor, which differ in `changeable` only, and the change of the state
            that follows, if there is one. It raises an InputError if the present state forbids them.
        """
        with self.guard.wait():
            self.guard.owner = threading.get_ident()
            try:
                self._repair()
                if self._is_due():
                    self._make(self._expiry)
                database = self.database
                if database is None:
                    arguments, change = plan()
                    self._unfinished = _Redefinition(self._adopt, specification(arguments), change)
                    self._repair()
                else:
                    self._is_stale = True
                    with database.locked(self.name):
                        self._read_object(database)
                        arguments, change = plan()
                        self._adopt(specification(arguments))
                        if change is not None:
                            database.write_locked(*change.statements(self.copy, self.name, database.seconds()))
                        given = json.dumps(self._definition), self.now(), self.name
                        database.write_locked([(sql.REDEFINE_OBJECT, given)], 1)
            finally:
                self.guard.owner, self._time = 0, None

    def hold_for_fork(self) -> bool:
        """Wait for calls in other threads and close the connection. Return whether the lock was acquired."""
        if self.guard.owner == threading.get_ident():  # a signal handler forks inside a call
            return False
        self.guard.lock.acquire()
        if self.database is not None:
            self.database.disconnect()
        return True

    def renew_after_fork(self) -> None:
        """Become another replica, in a forked child."""
        self.guard = OneThread(self.copy.kind)
        self.epoch = draw_epoch()
        if self.database is not None:
            self.database.abandon()
        self._is_stale = self.database is not None
        self._is_forked = True


def _forked(kind: str) -> InUseError:
    what = f"this {kind} is a copy that a fork made, and both copies would spend the whole budget"
    return InUseError(what, "Give it a database with open(), which processes share, or make it after the fork")


class Stored(Generic[C]):
    """An object whose state lives in memory, or in a database that several processes may use."""

    _replica: Replica[C]

    def backup(self, path: str | PathLike[str]) -> None:
        """Write a copy of the whole database to a file, while it is in use.

        Parameters
        ----------
        path : path
            The file, which is replaced atomically.

        Raises
        ------
        InputError
            If the object has no database, or one of PostgreSQL, which has its own tools (pg_dump).
        DatabaseError
            If the copy cannot be written.
        """
        with self._replica.guard.wait():
            if self._replica.database is None:
                raise InputError("path", "this object has no database", "Make it with open()")
            self._replica.database.backup(Path(path))

    def last_position(self, partition: str) -> int:
        """Return the last position of a queue's partition that was applied; -1 before the first.

        Parameters
        ----------
        partition : str
            Its name, as calls with ``position=(partition, number)`` gave it.
        """
        found: int = self._replica.look(self._replica.last_position, require_partition(partition))
        return found

    def check_position(self, position: Any) -> Position | None:
        """Return a position, or None for None. Raise a RepeatedPositionError if it, or a later one, was applied.

        Calls that look at their token before they change the state check the position first: a message that is
        delivered again has one error, whatever became of its round.
        """
        place = require_position(position)
        if place is not None:
            self._replica.look(self._replica.require_new, place)
        return place

    def close(self) -> None:
        """Close the connection. Everything acknowledged is in the database already."""
        with self._replica.guard.wait():
            if self._replica.database is not None:
                self._replica.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def draw_epoch() -> int:
    """Return a random epoch."""
    return secrets.randbelow(2**EPOCH_BITS - 1) + 1


# A connection must not be used on both sides of a fork, since SQLite's locks belong to a process. So it is closed
# before the fork, while no thread is inside a call, and opened again by the next call of either process.

_REPLICAS: weakref.WeakSet[Replica[Any]] = weakref.WeakSet()
_HELD: list[Replica[Any]] = []


def _before_fork() -> None:
    _HELD.extend(replica for replica in list(_REPLICAS) if replica.hold_for_fork())


def _after_fork() -> None:
    while _HELD:
        _HELD.pop().guard.lock.release()


def _after_fork_in_child() -> None:
    _HELD.clear()
    for replica in list(_REPLICAS):
        replica.renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
