"""The interface that SQLite and PostgreSQL share: connections, statements and locks, with errors in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from longterm.errors import DatabaseError
from longterm.storage.schema import SCHEMA_VERSION, TABLES, Statement

Durability = Literal["commit", "relaxed"]
BUSY_SECONDS = 30.0
"""The time that a call waits for another process's transaction."""


class ConflictError(Exception):
    """Another process has changed the object in the same moment."""


class Engine(ABC):
    """A connection to one database, opened when it is first used. Its owner serialises the calls."""

    path: Any
    """The file, or the URL without its password, for messages."""
    begin: ClassVar[str]
    """The statement that begins a transaction."""
    begin_snapshot: ClassVar[str]
    """The statement that begins a transaction in which all queries see the same moment."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._is_closed = False

    @property
    def connection(self) -> Any:
        """The connection of `sqlite3` or `psycopg`."""
        if self._connection is None:
            if self._is_closed:
                raise DatabaseError(self.path, "closed", "this object was closed", "Open it again")
            self._connection = self._connect()
        return self._connection

    @property
    @abstractmethod
    def errors(self) -> Any:
        """The exceptions of the driver."""

    @abstractmethod
    def error(self, error: Exception) -> DatabaseError:
        """Return an error of the driver in this library's words."""

    @abstractmethod
    def _connect(self) -> Any:
        """Return a new connection to a database that has the tables."""

    @abstractmethod
    def execute(self, statement: str, arguments: Sequence[Any] = ()) -> Any:
        """Execute one statement and return its cursor."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo a transaction that an interrupt left open."""

    @abstractmethod
    def disconnect(self) -> None:
        """Close the connection. The next statement opens another."""

    def close(self) -> None:
        """Close the connection for good."""
        self._is_closed = True
        self.disconnect()

    def abandon(self) -> None:
        """Forget a connection that another process uses, without closing it."""
        _ABANDONED.append(self._connection)
        self._connection = None

    @abstractmethod
    def lock(self, name: str) -> None:
        """Wait, inside a transaction, until no other process changes this object."""

    @abstractmethod
    def require_unmoved(self) -> None:
        """Raise a DatabaseError if the database was replaced while it was in use."""

    def write_at_once(self, statements: Sequence[Statement]) -> bool | None:
        """Execute statements as one. Return whether the first changed a row; None if they cannot be one."""
        return None

    def _require_version(self, rows: list[Any]) -> None:
        if rows != [(SCHEMA_VERSION,)]:
            what = f"its schema has version {rows!r:.40}, but this library needs {SCHEMA_VERSION}"
            raise DatabaseError(self.path, "another version", what, "Install the version of longterm that made it")


SET_VERSION = f"INSERT INTO longterm_schema (version) VALUES ({SCHEMA_VERSION})"
_ABANDONED: list[Any] = []
"""Connections that must never be closed here."""


def tables(types: dict[str, str]) -> list[str]:
    """Return the statements that make the tables, with the types of a database."""
    return [statement.format(**types) for statement in TABLES]
