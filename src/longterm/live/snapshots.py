"""The snapshot of a live learner: what is in the file, and who may write it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from longterm.errors import InputError, SnapshotError
from longterm.learners.base import Learner
from longterm.live.journal import Follows, Journal
from longterm.live.memory import Memory
from longterm.live.soundness import require_near
from longterm.storage.lock import FileLock, writing
from longterm.storage.snapshot import Snapshot, read_snapshot
from longterm.storage.specification import difference, specification

KIND = "live learner"
VERSION = 2
"""Version 1 had no lives."""


def fresh_snapshot(learner: Learner[Any], memory: Memory) -> Snapshot:
    """What a journal that no snapshot belongs to starts from: the same in every life, and in every version."""
    metadata = {"learner": specification(learner), "book": memory.metadata(), "follows": None}
    return Snapshot(KIND, 1, metadata, memory.arrays())


def snapshot_of(learner: Learner[Any], memory: Memory, journal: Journal | None, *, required: bool) -> Snapshot:
    """All there is to save; `required`: without its journal it is not the whole."""
    follows = None if journal is None else [journal.identity.hex(), journal.at.checksum.hex()]
    metadata = {
        "learner": specification(learner),
        "book": memory.metadata(),
        "lives": memory.window.lives,
        "follows": follows,
        "required": required,
    }
    return Snapshot(KIND, VERSION, metadata, memory.arrays())


class Restored(NamedTuple):
    """What a snapshot says of itself and of the journal that it was taken in."""

    identity: bytes
    follows: Follows
    required: bool


def restore(path: Path, learner: Learner[Any], memory: Memory) -> Restored:
    """Let a memory become what the snapshot of this learner says; a SnapshotError unless it can be played on."""
    snapshot, identity = read_snapshot(path, KIND, VERSION)
    what_differs = difference(snapshot.metadata.get("learner"), specification(learner))
    if what_differs is not None:
        raise SnapshotError(path, "another learner", what_differs, "Make the learner with the saved hyper-parameters")
    try:
        memory.restore(snapshot.metadata["book"], snapshot.metadata.get("lives", ()), snapshot.arrays)
        require_near(learner, learner.ask(memory.state), *(token.x for token in memory.window.open.values()))
        follows = snapshot.metadata["follows"]
        required = bool(snapshot.metadata.get("required", follows is not None))
        if follows is not None:
            follows = [str(part) for part in follows]
            if len(follows) != 2:
                raise ValueError("the place in its journal makes no sense")
    except (KeyError, ValueError, TypeError, ArithmeticError, LookupError) as error:
        raise SnapshotError(path, "corrupted", f"the state makes no sense: {error}", "Restore a copy") from None
    return Restored(identity, follows, required)


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


def require_without_journal(path: Path) -> None:
    """Refuse to replace a snapshot that a journal belongs to, by a learner that does not have that journal."""
    try:
        metadata = read_snapshot(path, KIND, VERSION)[0].metadata
    except SnapshotError:  # missing, or not one of ours
        return
    if metadata.get("required", metadata.get("follows") is not None):
        what = f"{path} was saved by a learner with a journal, and what is in that would be lost"
        raise InputError("path", what, "Load it with journal=; or save under another name, or remove the file first")


def same_place(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    return one.resolve() == other.resolve()
