"""Several calls of one object in one transaction, as databases call it: group commit.

Calls that wait for each other in any case, such as those of a server's clients, share a transaction. Each computes its
change from the copy as the calls before it have left it. Then one write names the version before the first call. If
another process was faster, nothing has changed, and all calls are made again under a lock. No answer is returned before
the transaction is committed.

A call that needs a query which would not see what the others have collected is left for the next transaction.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

from longterm.errors import DatabaseError, LongtermError
from longterm.storage import schema as sql
from longterm.storage.database import Collected, Database
from longterm.storage.engine import ConflictError
from longterm.storage.one_thread import OneThread
from longterm.storage.schema import Statement
from longterm.storage.tokens import LONGEST_KEY, is_storable

T = TypeVar("T")
LARGEST_GROUP = 16
"""The largest number of calls in one transaction. More would only make its statements longer."""
ATTEMPTS = 100
"""A call that holds the lock of its object conflicts at most with rounds that others open at the same moment."""
LOCKED_CALLS = 16
"""After another process was first, so many calls lock their object before they compute."""


class _SplitError(Exception):
    """A call has written something, and then needs a query that would not see it.

    Parameters
    ----------
    made : int
        The number of calls before it.
    """

    def __init__(self, made: int) -> None:
        self.made = made


class GroupCommit(ABC):
    """An object of which several calls can be made in one transaction.

    Parameters
    ----------
    kind : str
        The kind of object.
    """

    def __init__(self, kind: str) -> None:
        self.guard = OneThread(kind)
        self.database: Database | None = None
        self.name = ""
        self.changes_others = False
        """True if calls change other objects of the database as well, so that all their work is in a transaction."""
        self._group: Collected | None = None
        """The statements of the calls of a group so far; None outside of a group."""
        self._is_between_calls = False
        """True while a call of this thread joins the group; False inside such a call."""
        self._needs_check = False
        """True if a call of the group has an answer that the write does not check, such as an error."""
        self._is_torn = False
        """True while a call changes the group. If a signal handler raises then, the group is given up."""
        self._locked_calls = 0
        """Calls that lock the object at once, because other processes write."""

    @property
    def commits_groups(self) -> bool:
        """True if several calls can share a transaction."""
        return self.database is not None and not self.changes_others

    def commit_group(self, calls: Sequence[Callable[[], T]], keys: Sequence[str | None] = ()) -> list[T | Exception]:
        """Make calls of this object, one after the other. Return for each what it returns or the exception it raises.

        Parameters
        ----------
        calls : sequence of callable
            Functions that call methods of this object. They are called again if another process was faster.
        keys : sequence of str or None
            The key that each call will name, if any. They are looked up by one query.
        """
        answers: list[T | Exception] = []
        while len(answers) < len(calls):
            here = slice(len(answers), len(answers) + LARGEST_GROUP)
            rest, named = calls[here], keys[here]
            known = [key for key in named if key and is_storable(key) and len(key) <= LONGEST_KEY]  # others are refused
            try:
                made = self._make_group(rest, known) if len(rest) > 1 else []
            except LongtermError as error:
                made = [error] * len(rest)
            answers += made or [_outcome(rest[0])]
        return answers

    def _make_group(self, calls: Sequence[Callable[[], T]], keys: Sequence[str]) -> list[T | Exception]:
        """Make as many of the calls as share a transaction; none if the first one cannot."""
        database = self.database
        if database is None or not self.commits_groups:
            return []
        with self.guard.wait():
            self.guard.owner = threading.get_ident()
            try:
                for _ in range(ATTEMPTS):
                    is_locked = self._locked_calls > 0
                    try:
                        return self._attempt(database, calls, keys, is_locked=is_locked)
                    except _SplitError as split:
                        calls = calls[: split.made]
                        if not calls:
                            return []
                    except ConflictError:
                        self._locked_calls = LOCKED_CALLS
                raise self._unwritable(database)
            finally:
                self._is_between_calls = False
                self._end_group()
                self.guard.owner = 0

    def _attempt(
        self, database: Database, calls: Sequence[Callable[[], T]], keys: Sequence[str], *, is_locked: bool
    ) -> list[T | Exception]:
        self._locked_calls -= is_locked
        self._is_torn = self._needs_check = False
        try:
            with database.locked(self.name) if is_locked else nullcontext():
                self._begin_group(database, is_locked=is_locked)
                try:
                    collected = database.collect()
                    answers = self._answers(database, calls, keys, collected)
                finally:
                    database.end_collecting()
                self._write_group(database, collected.statements, is_locked=is_locked)
            self._accept_group()
        except BaseException:
            self._undo_group()
            raise
        return answers

    def _answers(
        self, database: Database, calls: Sequence[Callable[[], T]], keys: Sequence[str], collected: Collected
    ) -> list[T | Exception]:
        """Make calls until one needs a query that would not see what was collected."""
        answers: list[T | Exception] = []
        self._group = collected
        try:
            self._prepare_group(database, keys)
            self._is_between_calls = True
            for call in calls:
                written = len(collected.statements)
                try:
                    answers.append(call())
                except ConflictError:
                    if len(collected.statements) > written:  # it calls several methods, and would repeat the first ones
                        raise _SplitError(len(answers)) from None
                    break
                except Exception as error:  # whatever it is, the other calls go on
                    if self._is_torn:
                        raise
                    self._needs_check = True
                    answers.append(error)
        finally:
            self._group, self._is_between_calls = None, False
        return answers

    @property
    def _is_in_group(self) -> bool:
        """True if a call of this thread belongs to a group."""
        return self._is_between_calls and self.guard.owner == threading.get_ident()

    def _take_turn(self, work: Callable[..., T], *arguments: Any) -> T:
        """Make one call of a group. A signal handler that calls the object meanwhile is refused."""
        self._is_between_calls = False
        try:
            return work(*arguments)
        finally:
            self._is_between_calls = True

    @abstractmethod
    def _begin_group(self, database: Database, *, is_locked: bool) -> None:
        """Bring the copy up to date, and note what `_write_group` and `_undo_group` need."""

    @abstractmethod
    def _prepare_group(self, database: Database, keys: Sequence[str]) -> None:
        """Read what calls with these keys will ask for, and close what is too old."""

    @abstractmethod
    def _write_group(self, database: Database, statements: Sequence[Statement], *, is_locked: bool) -> None:
        """Write what the calls have collected. Raise a ConflictError, with nothing changed, if another was faster."""

    @abstractmethod
    def _accept_group(self) -> None:
        """Note that the transaction is committed, so that the copy is what the database holds."""

    @abstractmethod
    def _undo_group(self) -> None:
        """Take back the changes of the copy. The transaction may be committed all the same."""

    @abstractmethod
    def _end_group(self) -> None:
        """End the group, whatever has become of it."""

    @abstractmethod
    def _unwritable(self, database: Database) -> DatabaseError:
        """Return the error for rows that exist although the state says that they do not."""


def _outcome(call: Callable[[], T]) -> T | Exception:
    try:
        return call()
    except Exception as error:
        return error


def without_replaced(statements: Sequence[Statement]) -> list[Statement]:
    """Return statements without those whose effect a later one replaces."""
    last: dict[Any, int] = {}
    for place, statement in enumerate(statements):
        if statement[0] in sql.REPLACED:
            last[statement[0], sql.row_written(statement)] = place
    return [
        statement
        for place, statement in enumerate(statements)
        if statement[0] not in sql.REPLACED or last[statement[0], sql.row_written(statement)] == place
    ]


def guarded_once(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements of several changes of one state as those of one change.

    The state is written once, under the condition of the first change that it had the version before all of them. If
    rounds were only opened, the first of them has this condition.
    """
    guards = [one for one in statements if one[0] in (sql.UPDATE_OBJECT, sql.UPDATE_OBJECT_UP_TO)]
    others = [one for one in statements if one[0] not in (sql.UPDATE_OBJECT, sql.UPDATE_OBJECT_UP_TO)]
    if not guards:
        ordered = sorted(others, key=lambda one: one[0] != sql.OPEN_ROUND)
        return [*ordered[:1], *map(_unguarded, ordered[1:])]
    *new, name, _ = guards[-1][1][:5]
    before = guards[0][1][4]
    numbers = [arguments[5] for text, arguments in guards if text == sql.UPDATE_OBJECT_UP_TO]
    guard = sql.UPDATE_OBJECT_UP_TO if numbers else sql.UPDATE_OBJECT
    return [(guard, (*new, name, before, *([min(numbers)] if numbers else []))), *map(_unguarded, others)]


def _unguarded(statement: Statement) -> Statement:
    """Return a statement that opens a round without its condition."""
    text, arguments = statement
    if text != sql.OPEN_ROUND:
        return statement
    *row, name, _ = arguments
    return sql.INSERT_ROUND, (name, *row)
