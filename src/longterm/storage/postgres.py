"""Connections to PostgreSQL: a pool, settings of the session, and several statements as one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any

from longterm._base.extras import missing_extra
from longterm.errors import UNAVAILABLE, DatabaseError
from longterm.storage.engine import BUSY_SECONDS, SET_VERSION, Durability, Engine, tables
from longterm.storage.pool import ConnectionPool, pool_of
from longterm.storage.schema import LOCK_OBJECT, Statement, row_written

MOST_COMBINED = 64
"""The largest number of statements in one."""
TYPES = {"bytes": "BYTEA", "clustered": ""}


class PostgresEngine(Engine):
    """A connection to a database of PostgreSQL, perhaps one of a pool.

    Parameters
    ----------
    url : str
        ``postgresql://…``.
    durability : {"commit", "relaxed"}
        As for `Database`.
    """

    begin = "BEGIN"
    begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, url: str, durability: Durability) -> None:
        super().__init__()
        self.path = _without_password(url)
        self._url, self._durability = url, durability
        self._pool: ConnectionPool | None = None

    @property
    def errors(self) -> Any:
        """The exceptions of the driver."""
        return _driver_error()

    # --- connections -----------------------------------------------------------------------------------------

    def _connect(self) -> Any:
        """Return a connection of the pool of this process, or a new one if it has no pool."""
        self._pool = pool_of(self._url, self._durability)
        connection = self._open() if self._pool is None else self._pool.acquire(self._open)
        if connection is None:
            what = f"none of its {self._pool.size if self._pool else 0} connections was free in time"
            raise DatabaseError(self.path, "busy", what, "Call again, or raise the number of connections")
        return connection

    def _open(self) -> Any:
        try:
            import psycopg
            from psycopg.types.numeric import Int8Dumper
        except ImportError:
            raise missing_extra("a PostgreSQL database needs psycopg", "postgres") from None
        try:
            connection = psycopg.connect(self._url, autocommit=True, cursor_factory=psycopg.RawCursor)
            # One type for all integers: otherwise the server prepares a statement for each combination of sizes.
            connection.adapters.register_dumper(int, Int8Dumper)
            self._set_up_session(connection)
            # Not to_regclass, which may answer from a cache although another process has made the tables since.
            exists = "SELECT 1 FROM pg_class WHERE relname = 'longterm_keys' AND pg_table_is_visible(oid)"
            if connection.execute(exists).fetchone() is None:
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(7161254310952)")  # one process makes the tables
                    if connection.execute(exists).fetchone() is None:
                        for statement in (*tables(TYPES), SET_VERSION):
                            connection.execute(statement)
            self._require_version(connection.execute("SELECT version FROM longterm_schema").fetchall())
        except psycopg.Error as error:
            raise self.error(error) from None
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
            what = "it is behind a connection pooler, which may use another session for each transaction"
            commands = "; ".join(f"ALTER ROLE CURRENT_USER {statement}" for statement in others)
            raise DatabaseError(self.path, "pooled", what, f"Run these, and make the pooler connect again: {commands}")

    def _give_back(self) -> None:
        """Give a connection of a pool back, unless a transaction is open on it."""
        connection, pool = self._connection, self._pool
        if pool is not None and connection is not None and connection.info.transaction_status == 0:
            self._connection = None
            pool.release(connection)

    def abandon(self) -> None:
        """Forget a connection that another process uses, without closing it."""
        super().abandon()
        self._pool = None

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

    # --- statements ------------------------------------------------------------------------------------------

    def execute(self, statement: str, arguments: Sequence[Any] = ()) -> Any:
        """Execute one statement and return its cursor, which has its rows also without the connection."""
        try:
            return (self._connection or self.connection).execute(_in_dialect(statement), arguments)
        finally:
            if self._pool is not None:
                self._give_back()

    def write_at_once(self, statements: Sequence[Statement]) -> bool | None:
        """Execute statements as one. Return whether the first changed a row; None if they cannot be one."""
        if not _are_of_different_rows(statements):
            return None
        # In one order, so that the server prepares few different statements.
        ordered = [statements[0], *sorted(statements[1:], key=itemgetter(0))]
        as_one = _combined(tuple(sql for sql, _ in ordered))
        if as_one is None:
            return None
        arguments = [value for _, values in ordered for value in values]
        return bool(self.execute(as_one, arguments).fetchone()[0] == 1)

    def lock(self, name: str) -> None:
        """Wait, inside a transaction, until no other process changes this object."""
        self.execute(LOCK_OBJECT, (name,))

    def require_unmoved(self) -> None:
        """Do nothing: a server finds its own files."""

    def rollback(self) -> None:
        """Undo a transaction that an interrupt left open."""
        connection = self._connection
        if connection is None:
            return
        if connection.closed or connection.broken:
            self.disconnect()
            return
        if connection.info.transaction_status != 0:
            connection.execute("ROLLBACK")
        self._give_back()

    def error(self, error: Exception) -> DatabaseError:
        """Return an error of the driver in this library's words."""
        if self._connection is not None and (self._connection.closed or self._connection.broken):
            self.disconnect()
        text = str(error).strip().partition("\n")[0] or type(error).__name__
        return DatabaseError(self.path, UNAVAILABLE, text, "Check the server, then call again")


def _are_of_different_rows(statements: Sequence[Statement]) -> bool:
    """Return whether no two of these change one row."""
    seen: dict[str, set[Any]] = {}
    for statement in statements:
        table, row = row_written(statement)
        rows = seen.setdefault(table, set())
        if rows and (row is None or row in rows or None in rows):
            return False
        rows.add(row)
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


@lru_cache(maxsize=1024)
def _in_dialect(statement: str) -> str:
    """Return a statement with ``$1``, ``$2``, … in place of ``?``."""
    first, *others = statement.split("?")
    return first + "".join(f"${place}{part}" for place, part in enumerate(others, 1))


@cache
def _driver_error() -> Any:
    import psycopg

    return psycopg.Error


def _without_password(url: str) -> str:
    """Return a URL without its passwords, for messages."""
    start, at, rest = url.rpartition("@")
    scheme, slashes, user = start.partition("//")
    shown = f"{scheme}{slashes}{user.partition(':')[0]}{at}{rest}" if at else url
    return re.sub(r"((?:ssl)?password=)[^&]*", r"\1…", shown, flags=re.IGNORECASE)
