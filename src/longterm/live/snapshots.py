"""Who may write a snapshot that a journal belongs to."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longterm.errors import InputError, SnapshotError
from longterm.storage.lock import FileLock, writing
from longterm.storage.snapshot import read_snapshot


@contextmanager
def locked_while_written(path: Path) -> Iterator[None]:
    """The right to write a snapshot, for as long as that takes; refused while a learner with a journal has it."""
    with writing(path) as lock:
        yield
    if lock is not None:
        lock.release()


@contextmanager
def locked_for_journal(path: Path) -> Iterator[FileLock | None]:
    """The right to write the snapshot of a journal. None where no one can write it: on a disk that is read-only."""
    try:
        lock = FileLock(path).acquire()
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT):
            raise
        yield None
        return
    try:
        yield lock
    except BaseException:
        lock.release()
        raise


def require_without_journal(path: Path, kind: str, version: int) -> None:
    """Refuse to replace a snapshot that a journal belongs to, by one that does not have that journal."""
    try:
        metadata = read_snapshot(path, kind, version)[0].metadata
    except SnapshotError:  # missing, or not one of ours
        return
    if metadata.get("required", metadata.get("follows") is not None):
        what = f"{path} was saved by a {kind} with a journal, and what is in that would be lost"
        raise InputError("path", what, "Load it with journal=; or save under another name, or remove the file first")


def same_place(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    return one.resolve() == other.resolve()
