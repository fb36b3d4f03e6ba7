"""Connections to SQLite and PostgreSQL: transactions, waiting, errors in words. The tables are in `schema`."""

from __future__ import annotations

import math
import os
import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from longterm._base.extras import missing_extra
from longterm._base.files import partial_beside, replace_file
from longterm.errors import RESTORE, DatabaseError, InputError
from longterm.storage.clock import SYSTEM, Clock
from longterm.storage.pool import ConnectionPool, pool_of
from longterm.storage.schema import LAST_TIME, LOCK_OBJECT, READ_PARTS, SCHEMA_VERSION, TABLES, Statement

T = TypeVar("T")
Durability = Literal["commit", "relaxed"]
CONNECT_PAUSE = 0.005
"""Seconds between attempts to connect to a busy file."""
BUSY_SECONDS = 30.0
"""The time that a call waits for another process's transaction."""
RETRY_SECONDS = (0.001, 0.01)
"""The first and the longest pause before a statement is tried again. It doubles, and is drawn from 0.1 to 1 of it.

Where many processes wait, those that wait long leave the others to make several calls in a row, each with a copy that
is up to date. That is faster for all than to take turns, since a process reads the state again after each turn.
"""
SYNCHRONISE_SECONDS = 60.0
"""The server's time is read again after this time. A clock of this machine that jumps further is checked."""
MOVED_SECONDS = 0.001
"""A file that was moved or replaced is noticed after this time."""
CHECKPOINT_PAGES = 4000
"""Pages after which SQLite copies its log into the database: 16 MB, which are read in 10 ms after a crash."""

SMALLEST_BYTES = 512
"""The least size of a database that is not empty. SQLite itself refuses larger files that are not databases."""
_SQLITE_TYPES = {"bytes": "BLOB", "clustered": " WITHOUT ROWID"}
_POSTGRES_TYPES = {"bytes": "BYTEA", "clustered": ""}


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
        self._connection: Any = None
        self._pool: ConnectionPool | None = None
        if durability not in ("commit", "relaxed"):
            raise InputError("durability", f"{durability!r} is not known", "Choose 'commit' or 'relaxed'")
        text = _require_url(url)
        self.is_postgres = text.startswith(("postgresql://", "postgres://"))
        self.path: Any = _without_password(text) if self.is_postgres else Path(text).absolute()
        """The file, or the URL without its password, for messages."""
        self._url = text
        self._durability = durability
        self._create = create
        self.clock = clock
        self._synchronised: tuple[float, float, float] | None = None
        """The last time that was known to be right, and this machine's wall and monotonic time at that moment."""
        self._inode: tuple[int, int] | None = None
        self._checked = -math.inf
        self._is_closed = False
        self._collected: list[Statement] | None = None
        """What is to be written at the end of `collecting`."""

    # --- connections -----------------------------------------------------------------------------------------

    @property
    def connection(self) -> Any:
        """The connection of `sqlite3` or `psycopg`."""
        if self._connection is None:
            if self._is_closed:
                raise DatabaseError(self.path, "closed", "this object was closed", "Open it again")
            self._connection = self._pooled() if self.is_postgres else self._connect_sqlite()
        return self._connection

    def _pooled(self) -> Any:
        """Return a connection of the pool of this process, or a new one if it has no pool."""
        self._pool = pool_of(self._url, self._durability)
        connection = self._connect_postgres() if self._pool is None else self._pool.acquire(self._connect_postgres)
        if connection is None:
            what = f"none of its {self._pool.size if self._pool else 0} connections was free in time"
            raise DatabaseError(self.path, "busy", what, "Call again, or raise the number of connections")
        return connection

    def _give_back(self) -> None:
        """Give a connection of a pool back, unless a transaction is open on it."""
        connection, pool = self._connection, self._pool
        if pool is not None and connection is not None and connection.info.transaction_status == 0:
            self._connection = None
            pool.release(connection)

    def abandon(self) -> None:
        """Forget a connection that another process uses, without closing it."""
        _ABANDONED.append(self._connection)
        self._connection = self._pool = None

    def disconnect(self) -> None:
        """Close the connection. The next statement opens another."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._pool is not None:
            self._pool.discard(connection)
            return
        with suppress(Exception):  # the server may be gone
            connection.close()

    def close(self) -> None:
        """Close the connection for good."""
        self._is_closed = True
        self.disconnect()

    def __del__(self) -> None:
        # Python would close the connection itself, and since 3.13 with a warning. Nothing acknowledged is lost.
        self.disconnect()

    def _connect_sqlite(self) -> sqlite3.Connection:
        """Return a new connection. SQLite refuses WAL mode at once while another process recovers or closes."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self._open_sqlite()
            except DatabaseError as error:
                if error.reason != "busy" or time.monotonic() > deadline:
                    raise
            time.sleep(CONNECT_PAUSE)

    def _open_sqlite(self) -> sqlite3.Connection:
        if not self._create and not self.path.exists():
            raise DatabaseError(self.path, "missing", "there is no such file", "Give a database")
        if self.path.exists():
            if not self.path.is_file():
                raise DatabaseError(self.path, "foreign", "it is a folder or a device", "Give a file")
            # The file is never opened here: closing it would end the locks of this process's other connections.
            if 0 < self.path.stat().st_size < SMALLEST_BYTES:
                raise DatabaseError(self.path, "foreign", "it is no SQLite database", "Give another file")
        connection = None
        try:
            connection = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
            )
            connection.text_factory = lambda text: text.decode(errors="replace")
            for pragma in ("trusted_schema = OFF", "cell_size_check = ON"):
                connection.execute(f"PRAGMA {pragma}")
            _require_intact(connection, self.path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'commit' else 'NORMAL'}")
            if not _tables(connection):
                connection.execute("BEGIN IMMEDIATE")
                if not _tables(connection):
                    for statement in (*_schema(_SQLITE_TYPES), _SET_VERSION):
                        connection.execute(statement)
                connection.execute("COMMIT")
            found = _tables(connection)
            if found != _expected_tables():
                raise DatabaseError(self.path, "foreign", "its tables are not those of longterm", "Give another file")
            self._require_version(connection.execute("SELECT version FROM longterm_schema").fetchall())
            connection.execute("PRAGMA busy_timeout = 0")  # from here on `_execute` waits
            self._inode = _inode(self.path)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, _SQLITE_ERRORS):
                raise self._error(error) from None
            raise
        return connection

    def _connect_postgres(self) -> Any:
        try:
            import psycopg
        except ImportError:
            raise missing_extra("a PostgreSQL database needs psycopg", "postgres") from None
        try:
            connection = psycopg.connect(self._url, autocommit=True)
            self._set_up_session(connection)
            # Not to_regclass, which may answer from a cache although another process has made the tables since.
            exists = "SELECT 1 FROM pg_class WHERE relname = 'longterm_keys' AND pg_table_is_visible(oid)"
            if connection.execute(exists).fetchone() is None:
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(7161254310952)")  # one process makes the tables
                    if connection.execute(exists).fetchone() is None:
                        for statement in (*_schema(_POSTGRES_TYPES), _SET_VERSION):
                            connection.execute(statement)
            self._require_version(connection.execute("SELECT version FROM longterm_schema").fetchall())
        except psycopg.Error as error:
            raise self._error(error) from None
        return connection

    def _set_up_session(self, connection: Any) -> None:
        """Set durability and the time limit of locks, unless they are so already.

        A pooler such as pgbouncer may give every transaction another session. Then they must be settings of the role,
        and no statement is prepared.
        """
        wanted = {"lock_timeout": f"{BUSY_SECONDS:.0f}s"}
        wanted["synchronous_commit"] = "on" if self._durability == "commit" else "off"
        columns = ", ".join(f"current_setting('{name}')" for name in wanted)
        process, *found = connection.execute(f"SELECT pg_backend_pid(), {columns}").fetchone()
        others = [
            f"SET {name} = '{value}'" for (name, value), old in zip(wanted.items(), found, strict=True) if value != old
        ]
        if process == connection.info.backend_pid:
            for statement in others:
                connection.execute(statement)
            return
        connection.prepare_threshold = None
        if others:
            connection.close()
            what = "a pooler stands before it, which may give every transaction another session"
            commands = "; ".join(f"ALTER ROLE CURRENT_USER {statement}" for statement in others)
            raise DatabaseError(self.path, "pooled", what, f"Run this, and make the pooler connect again: {commands}")

    def _require_version(self, rows: list[Any]) -> None:
        if rows != [(SCHEMA_VERSION,)]:
            what = f"its schema has version {rows!r:.40}, this library needs {SCHEMA_VERSION}"
            raise DatabaseError(self.path, "another version", what, "Install the version of longterm that made it")

    # --- statements ------------------------------------------------------------------------------------------

    def read(self, sql: str, *arguments: Any) -> list[Any]:
        """Return the rows of a query."""
        if self._collected:
            raise ConflictError  # it would not see what was collected
        try:
            rows: list[Any] = self._execute(sql, arguments).fetchall()
        except self._errors as error:
            raise self._error(error) from None
        return rows

    def rounds(self, sql: str, *arguments: Any) -> list[RoundRow]:
        """Return the rounds of a query. Raise a DatabaseError if a row cannot be one."""
        rows = []
        for number, status, epoch, opened, content in self.read(sql, *arguments):
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
            what = f"round {row.number} makes no sense: {error}"
            raise DatabaseError(self.path, "corrupted", what, RESTORE) from None

    def parts(self, name: str, after: int, last: int) -> list[bytes]:
        """Return the parts of an object with numbers in (after, last]. Raise a DatabaseError if one is not bytes."""
        contents = [content for (content,) in self.read(READ_PARTS, name, after, last)]
        if not all(isinstance(content, bytes) for content in contents):
            raise DatabaseError(self.path, "corrupted", "a part has the wrong type", RESTORE)
        return contents

    def write(self, statements: Sequence[Statement], guarded: int) -> bool:
        """Execute statements in one transaction. Return False, with nothing changed, if another process was first.

        The first `guarded` statements must change one row each.
        """
        if not statements:
            return True
        self._require_unmoved()
        try:
            if len(statements) == 1:
                return bool(self._execute(*statements[0]).rowcount == 1)
            if self.is_postgres and guarded == 1 and _are_of_different_rows(statements):
                as_one = _combined(tuple(sql for sql, _ in statements))
                if as_one is not None:
                    arguments = [value for _, values in statements for value in values]
                    return bool(self._execute(as_one, arguments).fetchone()[0] == 1)
            with self._transaction():
                self.write_locked(statements, guarded)
        except ConflictError:
            return False
        except self._errors as error:
            if _is_duplicate(error):
                return False
            raise self._error(error) from None
        return True

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Begin a transaction in which all queries see the same moment."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if self.is_postgres else "BEGIN"
        try:
            with self._transaction(begin):
                yield
        except self._errors as error:
            raise self._error(error) from None

    @contextmanager
    def collecting(self) -> Iterator[list[Statement]]:
        """Execute queries at once, without a transaction, and collect the statements that write.

        Raises
        ------
        ConflictError
            If a query follows a statement that writes.
        """
        collected: list[Statement] = []
        self._collected = collected
        try:
            yield collected
        finally:
            self._collected = None

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Begin a transaction in which no other process changes this object, and commit it at the end.

        Raises
        ------
        ConflictError
            If another process changed it all the same. Nothing has changed here.
        """
        self._collected = None
        self._require_unmoved()
        try:
            with self._transaction():
                self.lock(name)
                yield
        except self._errors as error:
            if _is_duplicate(error):
                raise ConflictError from None
            raise self._error(error) from None

    def lock(self, name: str) -> None:
        """Wait, inside a transaction, until no other process changes this object. SQLite has one writer only."""
        if self.is_postgres:
            self._execute(LOCK_OBJECT, (name,))

    def now(self) -> int:
        """Return the time in microseconds since 1970, by one clock for all processes of the database."""
        return int(self.seconds() * 1e6)

    def seconds(self) -> float:
        """Return the time in seconds since 1970: the server's for PostgreSQL, this machine's for SQLite.

        Raises
        ------
        DatabaseError
            If this machine's clock is further ahead of the last time stored than `Clock.largest_jump`.
        """
        wall, monotonic = self.clock.wall(), self.clock.monotonic()
        if self._synchronised is not None:
            known, then, start = self._synchronised
            if not self.is_postgres:
                if wall - then <= monotonic - start + min(self.clock.largest_jump, SYNCHRONISE_SECONDS):
                    self._synchronised = wall, wall, monotonic
                    return wall
            elif monotonic - start < SYNCHRONISE_SECONDS and abs(wall - then - (monotonic - start)) < 1.0:
                return known + (monotonic - start)
        if self.is_postgres:
            ((time_of_server,),) = self.read("SELECT EXTRACT(EPOCH FROM clock_timestamp())")
            wall_now = self.clock.of_server(float(time_of_server))
        else:
            ((stored,),) = self.read(LAST_TIME)
            wall_now = wall
            if stored is not None and not isinstance(stored, (int, float)):
                raise DatabaseError(self.path, "corrupted", "a time stored is not a number", RESTORE)
            if stored is not None and wall > stored + self.clock.largest_jump:
                days = (wall - stored) / 86_400
                raise DatabaseError(
                    self.path,
                    "clock",
                    f"this machine's clock is {days:.1f} days ahead of the last time stored",
                    "Set the clock. If nobody used the database for so long, open it with "
                    "clock=Clock(largest_jump=math.inf)",
                )
        self._synchronised = wall_now, wall, monotonic
        return wall_now

    def needs_lock(self, statements: Sequence[Statement]) -> bool:
        """Return whether these statements need a transaction that locks the file."""
        return len(statements) > 1 and not self.is_postgres

    def write_if_current(self, statements: Sequence[Statement]) -> bool:
        """Execute statements inside a transaction. Return False, with nothing changed, if the first changes no row."""
        if self._execute(*statements[0]).rowcount != 1:
            return False
        self.write_locked(statements[1:])
        return True

    def write_locked(self, statements: Sequence[Statement], guarded: int = 0) -> None:
        """Execute statements inside a transaction. The first `guarded` ones must change one row each."""
        if self._collected is not None:
            self._collected.extend(statements)
            return
        for place, (sql, arguments) in enumerate(statements):
            if self._execute(sql, arguments).rowcount != 1 and place < guarded:
                raise ConflictError

    def _execute(self, sql: str, arguments: Sequence[Any]) -> Any:
        connection = self._connection or self.connection
        if self.is_postgres:
            try:
                return connection.execute(_postgres_sql(sql), arguments)  # its rows are here, without the connection
            finally:
                if self._pool is not None:
                    self._give_back()
        try:
            return connection.execute(sql, arguments)
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
        return self._execute_patiently(connection, sql, arguments)

    def _execute_patiently(self, connection: sqlite3.Connection, sql: str, arguments: Sequence[Any]) -> Any:
        """Execute a statement once no other process writes. SQLite's own waiting starves processes for 0.1 s."""
        end, (pause, longest) = time.monotonic() + BUSY_SECONDS, RETRY_SECONDS
        while True:
            time.sleep(random.uniform(0.1, 1.0) * pause)
            pause = min(2 * pause, longest)
            try:
                return connection.execute(sql, arguments)
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > end:
                    raise

    @contextmanager
    def _transaction(self, begin: str = "") -> Iterator[None]:
        self.rollback()
        try:  # an interrupt after BEGIN ends the transaction too: it may keep other processes out
            self._execute(begin or ("BEGIN" if self.is_postgres else "BEGIN IMMEDIATE"), ())
            yield
            self._execute("COMMIT", ())
        except BaseException:
            try:
                self.rollback()
            finally:  # in case an interrupt stopped the first one
                self.rollback()
            raise

    def rollback(self) -> None:
        """Undo a transaction that an interrupt left open."""
        connection = self._connection
        if connection is None:
            return
        if not self.is_postgres:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        elif connection.closed or connection.broken:
            self.disconnect()
        else:
            if connection.info.transaction_status != 0:
                connection.execute("ROLLBACK")
            self._give_back()

    # --- files -----------------------------------------------------------------------------------------------

    def backup(self, path: Path) -> None:
        """Write a copy of the whole database to a file while others use it."""
        if self.is_postgres:
            raise InputError("path", "PostgreSQL makes its own backups", "Use pg_dump")
        path = path.absolute()
        if path.exists() and (not path.is_file() or path.samefile(self.path)):
            raise InputError("path", f"{path} is not a file to write a copy to", "Name another file")
        partial = partial_beside(path)
        try:
            with suppress(FileNotFoundError):
                partial.touch(mode=self.path.stat().st_mode & 0o777, exist_ok=False)
            copy = sqlite3.connect(partial)
            try:
                self.connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
            finally:
                copy.close()
            replace_file(partial, path)
        except _SQLITE_ERRORS as error:
            raise self._error(error) from None
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)

    # --- errors ----------------------------------------------------------------------------------------------

    @property
    def _errors(self) -> Any:
        return _postgres_error() if self.is_postgres else _SQLITE_ERRORS

    def _error(self, error: Exception) -> DatabaseError:
        """Return the error of the driver in this library's words."""
        text = str(error).strip().partition("\n")[0] or type(error).__name__
        if self.is_postgres:
            if self._connection is not None and (self._connection.closed or self._connection.broken):
                self.disconnect()
            return DatabaseError(self.path, "unavailable", text, "Check the server, then call again")
        for part, reason, remedy in _SQLITE_REASONS:
            if part in text:
                return DatabaseError(self.path, reason, text, remedy)
        return DatabaseError(self.path, "corrupted", text, RESTORE)

    def _require_unmoved(self) -> None:
        """Raise if the file has another inode. Looked up at most once in MOVED_SECONDS, since it is a system call."""
        now = time.monotonic()
        if self._inode is None or now - self._checked < MOVED_SECONDS:
            return
        self._checked = now
        if _inode(self.path) != self._inode:
            what = "the file was moved or replaced while it was in use"
            raise DatabaseError(self.path, "moved", what, "Put it back, or open the new one")


_ABANDONED: list[Any] = []
"""Connections that must never be closed here."""


class ConflictError(Exception):
    """Another process has changed the object in the same moment."""


def _is_busy(error: sqlite3.Error) -> bool:
    """Return whether SQLite refused because another connection writes."""
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _is_duplicate(error: Exception) -> bool:
    """Return whether a driver's error says that a row exists already."""
    return type(error).__name__ in ("IntegrityError", "UniqueViolation")


_SET_VERSION = f"INSERT INTO longterm_schema (version) VALUES ({SCHEMA_VERSION})"
_SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Messages about damaged files may hold any bytes."""
_SQLITE_REASONS = (
    (
        "locked",
        "busy",
        f"Another process held it for {BUSY_SECONDS:.0f} s. Call again: nothing was changed. If it happens often, find "
        "the program that keeps a transaction open, move the file to a local disk, or use PostgreSQL",
    ),
    ("full", "full", "Free some space, then call again"),
    ("readonly", "read-only", "Make the file and its folder writable"),
    ("unable to open", "missing", "Check that the folder exists and is writable"),
    ("disk I/O", "unreadable", "Check the disk, then call again"),
    ("not a database", "foreign", "Give a file that longterm made"),
)


def _schema(types: dict[str, str]) -> list[str]:
    return [statement.format(**types) for statement in TABLES]


@cache
def _expected_tables() -> list[str]:
    return sorted(_schema(_SQLITE_TYPES))


_STATISTICS = (
    "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
)
"""Tables that SQLite's ANALYZE makes."""


def _tables(connection: sqlite3.Connection) -> list[str]:
    """Return the SQL of everything in the schema, so that no trigger or view of a forged file is ever run."""
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    return sorted(str(sql) for (sql,) in rows if sql not in _STATISTICS)


def require_database_file(path: Path) -> None:
    """Raise a DatabaseError unless a file that nobody uses is a whole database of this library. It is only read."""
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found != ("ok",):
                raise DatabaseError(path, "corrupted", f"{found!r:.200}", RESTORE)
            if _tables(connection) != _expected_tables():
                raise DatabaseError(path, "foreign", "its tables are not those of longterm", "Give another file")
        finally:
            connection.close()
    except _SQLITE_ERRORS as error:
        raise DatabaseError(path, "corrupted", str(error), "Give another file") from None


QUICK_CHECK_BYTES = 2**26
"""Files up to this size are checked whole when they are opened."""


def _require_intact(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size <= QUICK_CHECK_BYTES:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != ("ok",):
            raise DatabaseError(path, "corrupted", f"{found!r:.200}", RESTORE)


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - half the time of Path.stat
    except FileNotFoundError:
        return -1, -1
    return found.st_dev, found.st_ino


MOST_COMBINED = 16
"""The largest number of statements in one."""


def _are_of_different_rows(statements: Sequence[Statement]) -> bool:
    """Return whether no two of these change one row: tables differ, or one UPDATE has other keys as last arguments."""
    seen: dict[str, tuple[str, set[Any]]] = {}
    for sql, arguments in statements:
        known, keys = seen.setdefault(sql.partition("longterm_")[2].split()[0], (sql, set()))
        key = tuple(arguments[-2:])
        if keys and (known != sql or not sql.startswith("UPDATE") or key in keys):
            return False
        keys.add(key)
    return len(statements) <= MOST_COMBINED


@lru_cache(maxsize=256)
def _combined(statements: tuple[str, ...]) -> str | None:
    """Return one statement that does all of these if the first changes a row; None if they cannot be combined.

    A common table expression takes one round trip to the server where a transaction takes four. Its parts do not see
    each other's rows. Each has a condition, to which the guard is added; an aggregate would return a row whatever the
    condition says.
    """
    first, *others = statements
    if not all("WHERE " in sql and "MAX(" not in sql for sql in others):
        return None
    guard = "WHERE EXISTS (SELECT 1 FROM first) AND "
    parts = [f"part{place} AS ({sql.replace('WHERE ', guard, 1)})" for place, sql in enumerate(others)]
    return f"WITH first AS ({first} RETURNING 1), {', '.join(parts)} SELECT COUNT(*) FROM first"


@cache
def _postgres_sql(sql: str) -> str:
    return sql.replace("?", "%s")


@cache
def _postgres_error() -> Any:
    import psycopg

    return psycopg.Error


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


def _without_password(url: str) -> str:
    """Return a URL without its passwords, for messages."""
    start, at, rest = url.rpartition("@")
    scheme, slashes, user = start.partition("//")
    shown = f"{scheme}{slashes}{user.partition(':')[0]}{at}{rest}" if at else url
    return re.sub(r"((?:ssl)?password=)[^&]*", r"\1…", shown, flags=re.IGNORECASE)
