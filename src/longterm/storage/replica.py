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

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from longterm.errors import RESTORE, DatabaseError, InputError, InUseError, LongtermError
from longterm.storage import forks
from longterm.storage import schema as sql
from longterm.storage.clock import SYSTEM, Clock
from longterm.storage.database import Database
from longterm.storage.definition import Definition
from longterm.storage.engine import ConflictError, Durability
from longterm.storage.group_commit import ATTEMPTS, GroupCommit, guarded_once, without_replaced
from longterm.storage.one_thread import OneThread
from longterm.storage.positions import LastPositions, Position, Positioned
from longterm.storage.record import RecordEntry, insertions, read_entries
from longterm.storage.schema import Statement
from longterm.storage.tokens import EPOCH_BITS

LONGEST_NAME = 200


class Change(Protocol):
    """A change of an object, computed but not yet made."""

    def statements(self, copy: Any, name: str, now: float) -> Sequence[Statement]:
        """Return the statements that write it. The first names the version, and changes one row or the others none."""

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


class Revertible(Protocol):
    """A copy that can take changes back, as several calls in one transaction need it."""

    def prefetch(self, keys: Sequence[str]) -> None:
        """Look up idempotency keys that calls will name, by one query."""

    def mark(self) -> Mapping[str, Any]:
        """Return what `reset` needs."""

    def reset(self, mark: Mapping[str, Any]) -> None:
        """Become what the copy was when `mark` was called. Idempotent."""


class Redefinition(NamedTuple):
    """Other arguments of an object.

    Parameters
    ----------
    arguments : dict
        Of the constructor. They differ in `Definition.changeable` only.
    change : Change, optional
        The change of the state that follows.
    entries : sequence of RecordEntry
        What is added to the record.
    """

    arguments: dict[str, Any]
    change: Change | None
    entries: Sequence[RecordEntry]


class _Redefined(NamedTuple):
    """A change of arguments, and of the state, of an object without a database. It is never written."""

    redefine: Callable[[dict[str, Any]], None]
    arguments: dict[str, Any]
    change: Change | None

    def statements(self, copy: Any, name: str, now: float) -> Sequence[Statement]:
        """Return nothing."""
        return ()

    def apply(self, copy: Any) -> None:
        """Use the new values."""
        self.redefine(self.arguments)
        if self.change is not None:
            self.change.apply(copy)


C = TypeVar("C", bound=Copy)
R = TypeVar("R", bound=Change)


class Replica(GroupCommit, Generic[C]):
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
        super().__init__(copy.kind)
        self.copy = copy
        self.clock = clock
        self.epoch = draw_epoch()
        """A random number of this process's rounds: after a backup was restored, lost rounds stay unknown."""
        self.definition = Definition(definition)
        self.positions = LastPositions()
        self.expire: Callable[[float], Change] | None = None
        """Return the change that closes what is too old at a time. Every call makes it first, if anything is due."""
        self._may_fork = may_fork
        self._is_forked = False
        self._is_stale = False
        self._time: float | None = None
        """The time of the present attempt of a call; None between calls."""
        self._unfinished: Change | None = None
        """A change that is being applied without a database."""
        self._mark: Mapping[str, Any] = {}
        """The copy before a group of calls; empty once the group was accepted or undone."""
        self._before = 0, 0
        """Its version and its last round."""
        forks.register(self)

    def attach(self, url: str | PathLike[str], name: str, durability: Durability) -> None:
        """Create the object in a database, or restore it from there."""
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
            raise InputError("name", f"{name!r:.60} is not a name", f"Give a text of 1 to {LONGEST_NAME} characters")
        database = Database(url, durability, clock=self.clock)
        try:
            given = name, self.copy.kind, self.definition.encode(), database.seconds(), self.copy.encode()
            database.write([(sql.INSERT_OBJECT, given)])
            self.database, self.name = database, name
            self._read(database)
            self.definition.follows = True
        except BaseException:
            database.close()
            raise

    def now(self) -> float:
        """Return the time in seconds since 1970: the database's if there is one. One attempt of a call has one time."""
        return self._read_time() if self._time is None else self._time

    def _read_time(self) -> float:
        return self.clock.wall() if self.database is None else self.database.seconds()

    # --- calls -----------------------------------------------------------------------------------------------

    def look(self, read: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function finds in the present state."""
        if self._is_in_group:
            self._needs_check = True
            return self._take_turn(read, *arguments)
        guard = self.guard
        with guard.wait():
            guard.owner = threading.get_ident()
            try:
                self._repair()
                if self.database is not None:
                    self.database.require_unmoved()
                    if not self._is_current(self.database):
                        self._read(self.database)
                if self._is_due():
                    self._make(self._expiry)
                return read(*arguments)
            finally:
                guard.owner, self._time = 0, None  # an expiry that another call crossed has set the time

    def transact(self, compute: Callable[..., R], *arguments: Any) -> R:
        """Compute a change from the present state, write it, apply it, and return it."""
        if self._is_in_group:
            change: R = self._take_turn(self._join_group, compute, *arguments)
            return change
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
        return Positioned(compute(*arguments), position, self.positions.here)

    def require_new(self, position: Position) -> None:
        """Raise a RepeatedPositionError if a message at this position or a later one was applied."""
        self.positions.require_new(self.database, self.name, position)

    def last_position(self, partition: str) -> int:
        """Return the last position of a partition that was applied; -1 before the first."""
        return self.positions.last(self.database, self.name, partition)

    def redefine(self, plan: Callable[[], Redefinition]) -> None:
        """Change arguments of the object, here and in all processes that use it.

        Parameters
        ----------
        plan : callable
            Returns the other arguments. It raises an InputError if the present state forbids them.
        """
        if self._is_in_group:
            raise ConflictError
        with self.guard.wait():
            self.guard.owner = threading.get_ident()
            try:
                self._repair()
                if self._is_due():
                    self._make(self._expiry)
                if self.database is None:
                    new = plan()
                    self._unfinished = _Redefined(self.definition.change, new.arguments, new.change)
                    self._repair()
                else:
                    self._redefine_stored(self.database, plan)
            finally:
                self.guard.owner, self._time = 0, None

    def _redefine_stored(self, database: Database, plan: Callable[[], Redefinition]) -> None:
        self._is_stale = True
        for _ in range(ATTEMPTS):
            try:
                with database.locked(self.name):
                    self._read_object(database)
                    if self._is_due():  # rounds that only other processes knew: they end before the change
                        self._write_locked(database, self._expiry())
                        continue
                    new, now = plan(), self.now()
                    self.definition.change(new.arguments)
                    if new.change is not None:
                        self._write_locked(database, new.change)
                    database.write_locked([(sql.REDEFINE_OBJECT, (self.definition.encode(), now, self.name))])
                    database.write_locked(insertions(self.name, now, new.entries))
                    return
            except ConflictError:
                continue
        raise self._unwritable(database)

    # --- the steps of a call ---------------------------------------------------------------------------------

    def _is_due(self) -> bool:
        """Return whether anything in the copy is too old."""
        may_change = self.database is not None or self._may_fork or not self._is_forked
        return self.expire is not None and may_change and self.copy.is_due(self.now())

    def _expiry(self) -> Change:
        assert self.expire is not None
        return self.expire(self.now())

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
        self._locked_calls -= self._locked_calls > 0
        if not self.changes_others and not self._locked_calls:
            try:
                computed = compute(*arguments)
            except LongtermError:
                if self._is_current(database):
                    raise
        self._is_stale = True
        statements = () if computed is None else computed.statements(copy, self.name, self.now())
        if computed is not None and not database.needs_lock(statements) and database.write(statements):
            change = computed
        else:
            attempt = computed if database.needs_lock(statements) else None
            change = self._make_locked(database, attempt, statements, compute, *arguments)
        change.apply(copy)
        self._is_stale = False
        return change

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
                    self._write_locked(database, written)
            except ConflictError:
                continue
            if expiry is not None:
                expiry.apply(self.copy)
                continue
            return change
        raise self._unwritable(database)

    def _write_locked(self, database: Database, change: Change) -> None:
        if not database.write_if_current(change.statements(self.copy, self.name, self.now())):
            raise ConflictError

    def _unwritable(self, database: Database) -> DatabaseError:
        """Return the error for rows that exist although the state says that they do not."""
        what = f"the rows of {self.name!r} do not fit its state"
        return DatabaseError(database.path, "corrupted", what, RESTORE)

    # --- several calls in one transaction ----------------------------------------------------------------------

    def _join_group(self, compute: Callable[..., R], *arguments: Any) -> R:
        """Compute a change, collect what it writes, and apply it."""
        assert self._group is not None
        change = compute(*arguments)
        statements = change.statements(self.copy, self.name, self.now())
        self._is_torn = True
        self._group.statements += statements
        change.apply(self.copy)
        self._is_torn = False
        return change

    def _begin_group(self, database: Database, *, is_locked: bool) -> None:
        if self._mark:  # an interrupt has ended the undoing of a group
            self._undo_group()
        if is_locked:
            self._read_object(database, is_known=not self._is_stale)
        else:
            self._repair()
        self._time = self._read_time()
        self._before = self.copy.version, self.copy.asked
        self._is_stale = True
        self._mark = self._revertible.mark()

    def _prepare_group(self, database: Database, keys: Sequence[str]) -> None:
        self._revertible.prefetch(keys)
        if self._is_due():
            self._join_group(self._expiry)

    def _write_group(self, database: Database, statements: Sequence[Statement], *, is_locked: bool) -> None:
        if self._needs_check and not is_locked and not self._is_current(database, self._before):
            raise ConflictError
        written = guarded_once(without_replaced(statements))
        if not (database.write_if_current(written) if is_locked else database.write(written)):
            raise ConflictError

    def _accept_group(self) -> None:
        self._mark, self._is_stale = {}, False

    def _undo_group(self) -> None:
        self._is_stale = True
        if self._mark:
            self._revertible.reset(self._mark)
            self._mark = {}

    def _end_group(self) -> None:
        self._time = None

    @property
    def _revertible(self) -> Revertible:
        """The copy. Calls share a transaction only if they change nothing but their object: then it can be reverted."""
        return cast("Revertible", self.copy)

    # --- reading ---------------------------------------------------------------------------------------------

    def _repair(self) -> None:
        """Bring the copy up to date after an interrupt."""
        if self._unfinished is not None:
            self._unfinished.apply(self.copy)
            self._unfinished = None
        if self._mark:
            self._undo_group()
        if self._is_stale and self.database is not None:
            self.database.end_collecting()
            self.database.engine.rollback()
            self._read(self.database)

    def _is_current(self, database: Database, known: tuple[int, int] | None = None) -> bool:
        """Return whether the database has this version and last round, by default those of the copy."""
        rows = database.read(sql.READ_VERSION, self.name)
        return bool(rows) and tuple(rows[0]) == (known or (self.copy.version, self.copy.asked))

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
        kind, definition, version, state, asked = rows[0]
        if is_known and (version, asked) == (self.copy.version, self.copy.asked):
            return
        if kind != self.copy.kind:
            remedy = "Give this object another name"
            raise DatabaseError(database.path, "foreign", f"{self.name!r} is a {kind!r:.40}", remedy)
        try:
            is_same = self.definition.accept(definition)
            if is_same:
                if type(version) is not int or type(asked) is not int or not isinstance(state, bytes):
                    raise ValueError("a column has the wrong type")
                self.copy.restore(database, self.name, version, asked, state)
        except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
            what = f"the state of {self.name!r} is inconsistent: {error}"
            raise DatabaseError(database.path, "corrupted", what, RESTORE) from None
        if not is_same:
            raise self.definition.refusal(database.path, self.name, definition)

    def record(self, since: float, most: int) -> list[RecordEntry]:
        """Return what people have changed, the newest first."""
        if self.database is None:
            raise InputError("record", "this object has no database", "Make it with open()")
        return read_entries(self.database, self.name, since, most)

    # --- forks -----------------------------------------------------------------------------------------------

    def hold_for_fork(self) -> bool:
        """Wait for calls in other threads and close the connection. Return whether the lock was acquired."""
        if self.guard.owner == threading.get_ident():  # a signal handler forks inside a call
            return False
        self.guard.lock.acquire()
        if self.database is not None:
            self.database.engine.disconnect()
        return True

    def renew_after_fork(self) -> None:
        """Become another replica, in a forked child."""
        self.guard = OneThread(self.copy.kind)
        self.epoch = draw_epoch()
        if self.database is not None:
            self.database.engine.abandon()
        self._is_stale = self.database is not None
        self._is_forked = True


def _forked(kind: str) -> InUseError:
    what = f"this {kind} is a copy that a fork made, and both copies would spend the whole budget"
    return InUseError(what, "Use open() with a database, which processes may share, or make the object after the fork")


def draw_epoch() -> int:
    """Return a random epoch."""
    return secrets.randbelow(2**EPOCH_BITS - 1) + 1
