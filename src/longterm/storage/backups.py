"""Backups of SQLite databases: written while the database is in use, restored while it is not."""

from __future__ import annotations

import shutil
import sqlite3
from os import PathLike
from pathlib import Path

from longterm._base.files import sync_folder, write_atomically
from longterm.errors import DatabaseError, InputError
from longterm.storage.database import Database
from longterm.storage.sqlite import require_database_file

REMEDY = "Give a file that `longterm state backup` made"


def backup(url: str | PathLike[str], path: str | PathLike[str]) -> None:
    """Write a copy of a SQLite database to a file, while services use it.

    Parameters
    ----------
    url : path or str
        The database.
    path : path or str
        The file, which is replaced atomically.

    Raises
    ------
    InputError
        If it is a database of PostgreSQL, which has its own tool (pg_dump), or `path` is the database.
    DatabaseError
        If the database cannot be read, or the copy cannot be written.
    """
    database = Database(url, "relaxed", create=False)
    try:
        database.backup(Path(path))
    finally:
        database.close()


def restore(path: str | PathLike[str], url: str | PathLike[str]) -> None:
    """Replace a SQLite database by a backup. Stop the services that use it first.

    The log of the old database (``-wal``) is removed. SQLite would otherwise replay it into the backup.

    Parameters
    ----------
    path : path or str
        A file that `backup` made.
    url : path or str
        The database, which may be damaged or missing.

    Raises
    ------
    InputError
        If it is a database of PostgreSQL, which has its own tool (pg_restore).
    DatabaseError
        If the backup is not whole, or a process uses the database.
    """
    database = Database(url, "relaxed")
    if database.is_postgres:
        raise InputError("url", "PostgreSQL restores its own backups", "Use pg_restore, or psql for a plain dump")
    target, source = database.path, Path(path).absolute()
    if source.exists() and target.exists() and source.samefile(target):
        raise InputError("path", f"{source} is the database itself", "Give the backup first, then the database")
    _require_whole(source)
    _require_unused(target)
    for end in ("-wal", "-shm", "-journal"):
        target.with_name(target.name + end).unlink(missing_ok=True)
    sync_folder(target.parent)
    with source.open("rb") as file:
        write_atomically(target, lambda copy: shutil.copyfileobj(file, copy))


def _require_whole(source: Path) -> None:
    """Raise a DatabaseError unless a file is a whole database of this library, with no log beside it."""
    if not source.is_file():
        raise DatabaseError(source, "missing", "there is no such file", REMEDY)
    wal = source.with_name(f"{source.name}-wal")
    if wal.exists() and wal.stat().st_size > 0:
        what = f"{wal.name} lies beside it, so this is a database in use or a part of one"
        raise DatabaseError(source, "foreign", what, f"{REMEDY}, or move the -wal away if it belongs to another file")
    require_database_file(source)


def _require_unused(target: Path) -> None:
    """Raise a DatabaseError if a process has the database open. A damaged file may be replaced."""
    if not target.exists():
        return
    connection = sqlite3.connect(target, timeout=1.0, isolation_level=None)
    try:
        # Only the last connection may leave WAL mode. It applies the log and removes it.
        connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            what = "a process has it open"
            raise DatabaseError(target, "busy", what, "Stop the services that use it, then call again") from None
    finally:
        connection.close()
