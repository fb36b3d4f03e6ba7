"""Databases: reading, and writing in transactions, for SQLite and PostgreSQL alike. The tables are in `schema`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from longterm.errors import RESTORE, DatabaseError, InputError
from longterm.storage.clock import SYSTEM, Clock
from longterm.storage.engine import ConflictError, Durability, Engine
from longterm.storage.postgres import PostgresEngine
from longterm.storage.schema import READ_PARTS, Statement
from longterm.storage.shared_time import LocalTime, ServerTime, SharedTime
from longterm.storage.sqlite import SQLiteEngine

T = TypeVar("T")


class Collected:
    """Statements of calls, before the transaction that writes them, and the rows as they leave them.

    Parameters
    ----------
    time : float
        The time of all these calls.
    """

    def __init__(self, time: float) -> None:
        self.time = time
        self.statements: list[Statement] = []
        self.rows: dict[tuple[str, ...], Any] = {}
        """Rows as these statements leave them, and rows that were read and that none of them changes."""
        self.hides_rows = False
        """True if statements may have changed rows that are not in `rows`."""

    def mark(self) -> tuple[int, dict[tuple[str, ...], Any], bool]:
        """Return what `undo` needs."""
        return len(self.statements), dict(self.rows), self.hides_rows

    def undo(self, mark: tuple[int, dict[tuple[str, ...], Any], bool]) -> None:
        """Forget what was collected since `mark` was called."""
        written, self.rows, self.hides_rows = mark
        del self.statements[written:]


class RoundRow(NamedTuple):
    """A row of `longterm_rounds`."""

    number: int
    status: int
    epoch: int
    opened: float
    content: bytes


class Database:
    """A connection to one database, opened when it is first used. Its owner serialises the calls.

    Parameters
    ----------
    url : str or path
        A file for SQLite, or a URL ``postgresql://…``.
    durability : {"commit", "relaxed"}
        "commit": a transaction is on the disk before its call returns. "relaxed": it survives the death of the process,
        but not always that of the machine.
    create : bool
        Make a file that does not exist.
    clock : Clock
        The time of this machine.

    Raises
    ------
    InputError
        If an argument cannot be used.
    DatabaseError
        If the database cannot be opened, or is not one of this library.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        durability: Durability = "commit",
        *,
        create: bool = True,
        clock: Clock = SYSTEM,
    ) -> None:
        if durability not in ("commit", "relaxed"):
            raise InputError("durability", f"{durability!r} is not known", "Choose 'commit' or 'relaxed'")
        text = _require_url(url)
        self.is_postgres = text.startswith(("postgresql://", "postgres://"))
        self.engine: Engine = (
            PostgresEngine(text, durability)
            if self.is_postgres
            else SQLiteEngine(Path(text), durability, create=create)
        )
        self.path: Any = self.engine.path
        """The file, or the URL without its password, for messages."""
        self._time: SharedTime = (ServerTime if self.is_postgres else LocalTime)(self.path, clock, self.read)
        self._collected: Collected | None = None
        """The statements since `collect` was called; None if statements are executed at once."""

    def close(self) -> None:
        """Close the connection for good."""
        self.engine.close()

    def __del__(self) -> None:
        # Python would close the connection itself, and since 3.13 with a warning. Nothing acknowledged is lost.
        with suppress(AttributeError):
            self.engine.disconnect()

    # --- reading ---------------------------------------------------------------------------------------------

    def require_unmoved(self) -> None:
        """Raise a DatabaseError if the database was moved or replaced while it was in use."""
        self.engine.require_unmoved()

    def read(self, sql: str, *arguments: Any) -> list[Any]:
        """Return the rows of a query.

        Raises
        ------
        ConflictError
            If statements were collected, whose effects the query would not see.
        """
        if self._collected is not None and self._collected.statements:
            raise ConflictError
        return self._query(sql, arguments)

    def row(self, key: tuple[str, ...], decode: Callable[[Database, Any], T], sql: str, *arguments: Any) -> T | None:
        """Return what a function makes of the row of a query, as collected statements leave it; None without a row.

        The key names the row, and `write_locked` is given what it becomes. The query is made once for all calls whose
        statements are collected together.

        Raises
        ------
        ConflictError
            If a statement was collected whose rows are not known.
        """
        collected = self._collected
        if collected is not None and key in collected.rows:
            known: T | None = collected.rows[key]
            return known
        if collected is not None and collected.hides_rows:
            raise ConflictError
        rows = self._query(sql, arguments)
        found = decode(self, rows[0]) if rows else None
        self.note_row(key, found)
        return found

    def knows_row(self, key: tuple[str, ...]) -> bool:
        """Return whether `row` needs no query for this key."""
        return self._collected is not None and key in self._collected.rows

    def note_row(self, key: tuple[str, ...], value: Any) -> None:
        """Let `row` return this from now on, while statements are collected."""
        if self._collected is not None:
            self._collected.rows[key] = value

    def _query(self, sql: str, arguments: Sequence[Any]) -> list[Any]:
        engine = self.engine
        try:
            rows: list[Any] = engine.execute(sql, arguments).fetchall()
        except engine.errors as error:
            raise engine.error(error) from None
        return rows

    def rounds(self, sql: str, *arguments: Any) -> list[RoundRow]:
        """Return the rounds of a query. Raise a DatabaseError if a row cannot be one."""
        return self.checked(self.read(sql, *arguments))

    def checked(self, found: list[Any]) -> list[RoundRow]:
        """Return rows as rounds. Raise a DatabaseError if one cannot be one."""
        rows = []
        for number, status, epoch, opened, content in found:
            whole = all(type(value) is int for value in (number, status, epoch))
            if not whole or not isinstance(opened, float) or not isinstance(content, bytes):
                raise DatabaseError(self.path, "corrupted", "a round has the wrong types", RESTORE)
            rows.append(RoundRow(number, status, epoch, opened, content))
        return rows

    def decoded(self, decode: Callable[[RoundRow], T], row: RoundRow) -> T:
        """Return what a function makes of a round that is read outside `restore`. Raise a DatabaseError if forged."""
        try:
            return decode(row)
        except (ValueError, LookupError, TypeError, ArithmeticError) as error:
            what = f"round {row.number} is inconsistent: {error}"
            raise DatabaseError(self.path, "corrupted", what, RESTORE) from None

    def parts(self, name: str, after: int, last: int) -> list[bytes]:
        """Return the parts of an object with numbers in (after, last]. Raise a DatabaseError if one is not bytes."""
        contents = [content for (content,) in self.read(READ_PARTS, name, after, last)]
        if not all(isinstance(content, bytes) for content in contents):
            raise DatabaseError(self.path, "corrupted", "a part has the wrong type", RESTORE)
        return contents

    def seconds(self) -> float:
        """Return the time in seconds since 1970, by one clock for all processes of the database."""
        return self._time.seconds() if self._collected is None else self._collected.time

    def now(self) -> int:
        """Return the same time in microseconds."""
        collected = self._collected
        return int((self._time.seconds() if collected is None else collected.time) * 1e6)

    # --- writing ---------------------------------------------------------------------------------------------

    def write(self, statements: Sequence[Statement]) -> bool:
        """Execute statements in one transaction. Return False, with nothing changed, if the first changes no row."""
        if not statements:
            return True
        engine = self.engine
        engine.require_unmoved()
        try:
            if len(statements) == 1:
                return bool(engine.execute(*statements[0]).rowcount == 1)
            found = engine.write_at_once(statements)
            if found is not None:
                return found
            with self._transaction(engine.begin):
                return self.write_if_current(statements)
        except ConflictError:
            return False
        except engine.errors as error:
            if _is_duplicate(error):
                return False
            raise engine.error(error) from None

    def needs_lock(self, statements: Sequence[Statement]) -> bool:
        """Return whether these statements need a transaction that locks the file."""
        return len(statements) > 1 and not self.is_postgres

    def locked(self, name: str) -> AbstractContextManager[None]:
        """Begin a transaction in which no other process changes this object, and commit it at the end.

        Raises
        ------
        ConflictError
            If another process changed it all the same. Nothing has changed here.
        """
        self._collected = None
        self.engine.require_unmoved()
        return self._transaction(self.engine.begin, name)

    def lock(self, name: str) -> None:
        """Wait, inside a transaction, until no other process changes this object. SQLite has one writer only."""
        self.engine.lock(name)

    def snapshot(self) -> AbstractContextManager[None]:
        """Begin a transaction in which all queries see the same moment."""
        return self._transaction(self.engine.begin_snapshot)

    @contextmanager
    def _transaction(self, begin: str, name: str | None = None) -> Iterator[None]:
        engine = self.engine
        try:
            engine.rollback()
            try:  # an interrupt after BEGIN ends the transaction too: it may keep other processes out
                engine.execute(begin)
                if name is not None:
                    engine.lock(name)
                yield
                engine.execute("COMMIT")
            except BaseException:
                try:
                    engine.rollback()
                finally:  # in case an interrupt stopped the first one
                    engine.rollback()
                raise
        except engine.errors as error:
            if _is_duplicate(error):
                raise ConflictError from None
            raise engine.error(error) from None

    def write_if_current(self, statements: Sequence[Statement]) -> bool:
        """Execute statements inside a transaction. Return False, with nothing changed, if the first changes no row."""
        found = self.engine.write_at_once(statements) if len(statements) > 1 else None
        if found is not None:
            return found
        if statements and self.engine.execute(*statements[0]).rowcount != 1:
            return False
        self.write_locked(statements[1:])
        return True

    def write_locked(self, statements: Sequence[Statement], rows: Mapping[tuple[str, ...], Any] | None = None) -> None:
        """Execute statements inside a transaction, or collect them.

        Parameters
        ----------
        statements : sequence of (str, sequence)
            The statements.
        rows : mapping, optional
            All rows that they change, by the keys that `row` is given, as they are afterwards.
        """
        collected = self._collected
        if collected is not None:
            collected.statements.extend(statements)
            if rows is None:
                collected.rows.clear()
                collected.hides_rows = True
            else:
                collected.rows.update(rows)
            return
        execute = self.engine.execute
        for sql, arguments in statements:
            execute(sql, arguments)

    def collect(self) -> Collected:
        """Execute queries at once, and collect the statements that write, until `end_collecting`.

        The time stands still. A query that follows a statement whose effect it does not see raises a ConflictError.
        """
        self._collected = Collected(self._time.seconds())
        return self._collected

    def end_collecting(self) -> None:
        """Execute statements at once again."""
        self._collected = None

    def backup(self, path: Path) -> None:
        """Write a copy of the whole database to a file while others use it."""
        if not isinstance(self.engine, SQLiteEngine):
            raise InputError("path", "PostgreSQL makes its own backups", "Use pg_dump")
        self.engine.backup(path)


def _is_duplicate(error: Exception) -> bool:
    """Return whether a driver's error says that a row exists already."""
    return type(error).__name__ in ("IntegrityError", "UniqueViolation")


def _require_url(url: Any) -> str:
    """Return a path or URL as a text, or raise an InputError."""
    remedy = "Give a file for SQLite, or a URL postgresql://…"
    text = os.fspath(url) if isinstance(url, (str, os.PathLike)) else None
    try:
        if not isinstance(text, str) or not text or "\0" in text or not os.fsencode(text):
            raise InputError("url", f"{url!r:.60} is not a path or a URL", remedy)
    except UnicodeEncodeError:
        raise InputError("url", f"{url!r:.60} cannot be the name of a file", remedy) from None
    scheme, slashes, _ = text.partition("://")
    if slashes and scheme.isalpha() and scheme not in ("postgresql", "postgres"):
        raise InputError("url", f"databases of {scheme!r:.20} are not supported", remedy)
    return text
