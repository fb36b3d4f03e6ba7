"""Connections to SQLite: waiting for other processes, checks of foreign and damaged files, backups."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from longterm._base.files import partial_beside, replace_file
from longterm.errors import RESTORE, DatabaseError, InputError
from longterm.storage.engine import BUSY_SECONDS, SET_VERSION, Durability, Engine, tables

CONNECT_PAUSE = 0.005
"""Seconds between attempts to connect to a busy file."""
RETRY_SECONDS = (0.001, 0.01)
"""The first and the longest pause before a statement is tried again. It doubles, and is drawn from 0.1 to 1 of it.

Where many processes wait, those that wait long leave the others to make several calls in a row, each with a copy that
is up to date. That is faster for all than to take turns, since a process reads the state again after each turn.
"""
MOVED_SECONDS = 0.001
"""A file that was moved or replaced is noticed after this time."""
PAGE_BYTES = 2048
"""The size of a page of a new file. A call writes three or four pages whole, and few are filled by its rows."""
CHECKPOINT_PAGES = 8000
"""Pages after which SQLite copies its log into the database: 16 MB, which are read in 10 ms after a crash."""
SMALLEST_BYTES = 512
"""The least size of a database that is not empty. SQLite itself refuses larger files that are not databases."""
QUICK_CHECK_BYTES = 2**26
"""Files up to this size are checked whole when they are opened."""
TYPES = {"bytes": "BLOB", "clustered": " WITHOUT ROWID"}
ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Messages about damaged files may hold any bytes."""


class SQLiteEngine(Engine):
    """A connection to a file of SQLite.

    Parameters
    ----------
    path : path
        The file.
    durability : {"commit", "relaxed"}
        As for `Database`.
    create : bool
        Make a file that does not exist.
    """

    begin = "BEGIN IMMEDIATE"
    begin_snapshot = "BEGIN"
    errors = ERRORS

    def __init__(self, path: Path, durability: Durability, *, create: bool) -> None:
        super().__init__()
        self.path = path.absolute()
        self._durability, self._create = durability, create
        self._inode: tuple[int, int] | None = None
        self._checked = -float("inf")

    # --- connections -----------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        """Return a new connection. SQLite refuses WAL mode at once while another process recovers or closes."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self._open()
            except DatabaseError as error:
                if error.reason != "busy" or time.monotonic() > deadline:
                    raise
            time.sleep(CONNECT_PAUSE)

    def _open(self) -> sqlite3.Connection:
        if not self._create and not self.path.exists():
            raise DatabaseError(self.path, "missing", "there is no such file", "Give the path of a database")
        if self.path.exists():
            if not self.path.is_file():
                raise DatabaseError(self.path, "foreign", "it is a folder or a device", "Give a file")
            # The file is never opened here: closing it would end the locks of this process's other connections.
            if 0 < self.path.stat().st_size < SMALLEST_BYTES:
                raise DatabaseError(self.path, "foreign", "it is not a SQLite database", "Give another file")
        connection = None
        try:
            connection = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
            )
            connection.text_factory = lambda text: text.decode(errors="replace")
            for pragma in ("trusted_schema = OFF", "cell_size_check = ON"):
                connection.execute(f"PRAGMA {pragma}")
            if self.path.stat().st_size <= QUICK_CHECK_BYTES:
                found = connection.execute("PRAGMA quick_check(1)").fetchone()
                if found != ("ok",):
                    raise DatabaseError(self.path, "corrupted", f"{found!r:.200}", RESTORE)
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'commit' else 'NORMAL'}")
            if not _tables(connection):
                connection.execute("BEGIN IMMEDIATE")
                if not _tables(connection):
                    for statement in (*tables(TYPES), SET_VERSION):
                        connection.execute(statement)
                connection.execute("COMMIT")
            _require_tables(connection, self.path)
            self._require_version(connection.execute("SELECT version FROM longterm_schema").fetchall())
            connection.execute("PRAGMA busy_timeout = 0")  # from here on `execute` waits
            self._inode = _inode(self.path)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, ERRORS):
                raise self.error(error) from None
            raise
        return connection

    def disconnect(self) -> None:
        """Close the connection. The next statement opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # the file may be gone
                connection.close()

    def require_unmoved(self) -> None:
        """Raise if the file has another inode. Looked up at most once in MOVED_SECONDS, since it is a system call."""
        now = time.monotonic()
        if self._inode is None or now - self._checked < MOVED_SECONDS:
            return
        self._checked = now
        if _inode(self.path) != self._inode:
            what = "the file was moved or replaced while it was in use"
            raise DatabaseError(self.path, "moved", what, "Put it back, or open the new one")

    # --- statements ------------------------------------------------------------------------------------------

    def execute(self, statement: str, arguments: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute one statement, once no other process writes, and return its cursor."""
        connection = self._connection or self.connection
        try:
            cursor: sqlite3.Cursor = connection.execute(statement, arguments)
            return cursor
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
        return self._execute_patiently(connection, statement, arguments)

    def _execute_patiently(
        self, connection: sqlite3.Connection, statement: str, arguments: Sequence[Any]
    ) -> sqlite3.Cursor:
        """Try again after a pause, and again. SQLite's own waiting starves processes for 0.1 s."""
        end, (pause, longest) = time.monotonic() + BUSY_SECONDS, RETRY_SECONDS
        while True:
            time.sleep(random.uniform(0.1, 1.0) * pause)
            pause = min(2 * pause, longest)
            try:
                return connection.execute(statement, arguments)
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > end:
                    raise

    def lock(self, name: str) -> None:
        """Do nothing: a transaction of SQLite that writes is the only one."""

    def rollback(self) -> None:
        """Undo a transaction that an interrupt left open."""
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def error(self, error: Exception) -> DatabaseError:
        """Return an error of the driver in this library's words."""
        text = str(error).strip().partition("\n")[0] or type(error).__name__
        for part, reason, remedy in _REASONS:
            if part in text:
                return DatabaseError(self.path, reason, text, remedy)
        return DatabaseError(self.path, "corrupted", text, RESTORE)

    # --- files -----------------------------------------------------------------------------------------------

    def backup(self, path: Path) -> None:
        """Write a copy of the whole database to a file while others use it."""
        path = path.absolute()
        if path.exists() and (not path.is_file() or path.samefile(self.path)):
            raise InputError("path", f"{path} is not a file to write a copy to", "Name another file")
        if not path.parent.is_dir():
            raise InputError("path", f"{path.parent} is not a folder", "Make it, or name a file in another folder")
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
        except ERRORS as error:
            raise self.error(error) from None
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def require_database_file(path: Path) -> None:
    """Raise a DatabaseError unless a file that nobody uses is a whole database of this library. It is only read."""
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found != ("ok",):
                raise DatabaseError(path, "corrupted", f"{found!r:.200}", RESTORE)
            _require_tables(connection, path)
        finally:
            connection.close()
    except ERRORS as error:
        raise DatabaseError(path, "corrupted", str(error), "Give another file") from None


def _is_busy(error: sqlite3.Error) -> bool:
    """Return whether SQLite refused because another connection writes."""
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


_REASONS = (
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
_STATISTICS = (
    "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
)
"""Tables that SQLite's ANALYZE makes."""


@cache
def _expected_tables() -> list[str]:
    return sorted(tables(TYPES))


def _tables(connection: sqlite3.Connection) -> list[str]:
    """Return the SQL of everything in the schema, so that no trigger or view of a forged file is ever run."""
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    return sorted(str(sql) for (sql,) in rows if sql not in _STATISTICS)


def _require_tables(connection: sqlite3.Connection, path: Path) -> None:
    if _tables(connection) != _expected_tables():
        raise DatabaseError(path, "foreign", "its tables are not those of longterm", "Give another file")


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - half the time of Path.stat
    except FileNotFoundError:
        return -1, -1
    return found.st_dev, found.st_ino
