"""A memory and its journal, which change together; and what a memory must be for that: learners and choosers have one.

Interrupts: an exception may come out of any instruction (a signal handler that raises). What is about to happen is
noted in one store, `interrupted`, before anything changes; it has happened once its record is in the journal. Whatever
is left half-done is seen to before the next thing is done or read: undone where the record is not whole, or finished.

Nothing here knows of threads: one call at a time, under its owner's lock.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from longterm.errors import InputError
from longterm.live.checkpoints import CheckpointAfter, Checkpoints
from longterm.live.journal import Compaction, Follows, Journal, recover
from longterm.live.snapshots import locked_while_written, require_without_journal, same_place
from longterm.storage.lock import FileLock
from longterm.storage.snapshot import Snapshot, write_snapshot

logger = logging.getLogger("longterm.live")

IDENTITY = 32
"""The last bytes of a snapshot, its SHA-256, identify it."""
PLACES = 64
"""So many snapshots taken in the middle of a journal are remembered in it."""


class Change(Protocol):
    """Something that is about to happen to a memory, worked out to the end."""

    def record(self, memory: Any) -> bytes:
        """What the journal is given."""

    def apply(self, memory: Any) -> None:
        """Let it happen: put values in place and check nothing. Done twice it is done once."""


class Restored(NamedTuple):
    """What a snapshot says of itself and of the journal that it was taken in."""

    identity: bytes
    follows: Follows
    required: bool
    """Without its journal it is not the whole."""

    @classmethod
    def of(cls, identity: bytes, metadata: Mapping[str, Any]) -> Restored:
        """What the metadata of a snapshot says; ValueError, KeyError or TypeError if it makes no sense."""
        follows = metadata["follows"]
        required = bool(metadata.get("required", follows is not None))
        if follows is not None:
            follows = [str(part) for part in follows]
            if len(follows) != 2:
                raise ValueError("the place in its journal makes no sense")
        return cls(identity, follows, required)


class Remembered(Protocol):
    """Everything that is kept, in the hands of one thread at a time."""

    kind: str
    """What its snapshots are called."""
    version: int
    """Of its snapshots."""

    @property
    def sequence(self) -> int:
        """How many things have happened."""

    def copied(self) -> Self:
        """A memory that stays as this one is now. What it shares with it is never written to."""

    def change_recorded(self, record: bytes) -> Change:
        """The change that this record of a journal is of; ValueError, KeyError or TypeError if it makes no sense."""

    def fresh_snapshot(self) -> Snapshot:
        """What a journal that no snapshot belongs to starts from: the same in every life, and in every version."""

    def snapshot(self, follows: Follows, *, required: bool) -> Snapshot:
        """All there is to save."""

    def load(self, path: Path) -> Restored:
        """Become what a snapshot says; a SnapshotError unless it can be played on."""

    def base(self, places: Sequence[str]) -> bytes:
        """What a shortened journal begins with: everything, and the places in it that snapshots were taken at."""

    def become(self, base: bytes) -> tuple[str, ...]:
        """Become what a shortened journal begins with. The places in it."""


M = TypeVar("M", bound=Remembered)


class RecordedMemory(Generic[M]):
    """What is remembered, its journal, and the snapshot that this belongs to."""

    def __init__(self, memory: M, checkpoint_after: CheckpointAfter) -> None:
        self.memory = memory
        self.journal: Journal | None = None
        self.interrupted: tuple[Change | None, int] | None = None
        """What is being done: a change and its place in the order of things, or a save."""
        self.places: tuple[str, ...] = ()
        """The checksums of the places in the journal that snapshots were taken at."""
        self._snapshot_lock: FileLock | None = None
        """The right to write the snapshot that the journal belongs to."""
        self.checkpoints = Checkpoints(checkpoint_after)

    # --- what happens ----------------------------------------------------------------------------------------

    def apply(self, change: Change, lock: threading.RLock) -> None:
        """Write it to the journal, then let it happen. `lock` is for a checkpoint in the background."""
        memory, journal = self.memory, self.journal
        if journal is None:
            self.interrupted = change, 0
            change.apply(memory)
            self.interrupted = None
            return
        record = change.record(memory)
        sequence = memory.sequence + 1
        self.interrupted = change, sequence
        try:
            end = journal.append(record, sequence)
            change.apply(memory)
        except BaseException:
            self.finish_interrupted()
            raise
        self.interrupted = None
        due = self.checkpoints.due
        if sequence >= due.sequence or end.offset >= due.offset:
            self.checkpoints.begin(self, journal, lock)

    def finish_interrupted(self) -> None:
        """Undo or finish what was interrupted. Done twice it is done once, so it may be interrupted itself."""
        interrupted = self.interrupted
        if interrupted is None:
            return
        if self.journal is not None:
            self.journal.settle()
        change, sequence = interrupted
        if change is not None and (self.journal is None or self.journal.at.sequence == sequence):
            change.apply(self.memory)
        self.interrupted = None

    # --- coming up -------------------------------------------------------------------------------------------

    def begin(self, journal: FileLock | None, snapshot: FileLock | None = None, *, fsync: bool) -> None:
        """Come up without a snapshot: as a fresh learner, and with what the journal, if there is one, knows."""
        if journal is not None:
            self._recover(journal, self.memory.fresh_snapshot().encode()[-IDENTITY:], None, False, fsync)
        self._snapshot_lock = snapshot

    def load(self, path: Path, journal: FileLock | None, snapshot: FileLock | None = None, *, fsync: bool) -> None:
        """Come up with a snapshot, and with what the journal, if there is one, knows besides."""
        identity, follows, required = self.memory.load(path)
        if follows is not None:
            self.places = (follows[1],)
        self._recover(journal, identity, follows, required, fsync)
        self._snapshot_lock = snapshot

    def _recover(self, lock: FileLock | None, identity: bytes, follows: Follows, required: bool, fsync: bool) -> None:
        """Let everything in the journal, if there is one, happen again, and go on writing it."""
        if lock is None:
            return
        before = self.memory.sequence
        self.journal = recover(lock, identity, before, follows, required, self, fsync=fsync)
        self.checkpoints.plan(self.journal)
        logger.info("%s: %d records read again", self.journal.path, self.memory.sequence - before)

    def restore(self, base: bytes) -> tuple[str, ...]:
        """Become what a journal begins with. Called by `recover`.

        The snapshot's own place is one of them even where that says nothing of it: one saved right after a checkpoint,
        whose journal was not begun afresh any more.
        """
        known = self.memory.become(base)
        self.places = (*known, *(place for place in self.places if place not in known))[-PLACES:]
        return known

    def replay(self, record: bytes) -> None:
        """Let what a journal recorded happen again. Called by `recover`."""
        self.memory.change_recorded(record).apply(self.memory)

    # --- files -----------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write the snapshot that the journal belongs to, and start the journal afresh; a backup, if it is another."""
        journal = self._require_apart(path)
        if journal is None:
            self._write_copy(path)
            return
        if self._snapshot_lock is not None and not same_place(self._snapshot_lock.path, path):
            self._write_copy(path)
            return
        lock = FileLock(path).acquire() if self._snapshot_lock is None else self._snapshot_lock
        try:
            self._before_snapshot(journal)
            write_snapshot(path, self._snapshot(required=True))
            journal.rotate(path.read_bytes()[-IDENTITY:])
            self._snapshot_lock = lock
            self.places = ()
            self.checkpoints.plan(journal)
        except BaseException:
            if lock is not self._snapshot_lock:
                lock.release()
            self.finish_interrupted()
            raise
        self.interrupted = None

    def backup(self, path: Path) -> None:
        """Write a copy; journal and snapshot stay as they are."""
        self._require_apart(path)
        if self._snapshot_lock is not None and same_place(self._snapshot_lock.path, path):
            raise InputError("path", f"{path} is the journal's own snapshot", "Save it, or name another file")
        self._write_copy(path)

    def _write_copy(self, path: Path) -> None:
        """A snapshot that no journal needs."""
        with locked_while_written(path):
            require_without_journal(path, self.memory.kind, self.memory.version)
            if self.journal is not None:
                self._before_snapshot(self.journal)
                self.interrupted = None
            write_snapshot(path, self._snapshot(required=False))

    def _snapshot(self, *, required: bool) -> Snapshot:
        journal = self.journal
        follows = None if journal is None else [journal.identity.hex(), journal.at.checksum.hex()]
        return self.memory.snapshot(follows, required=required)

    def _require_apart(self, path: Path) -> Journal | None:
        """The journal, once it is known to be open and not the file at `path`."""
        journal = self.journal
        if journal is not None:
            journal.require_open()
            if same_place(path, journal.path):
                raise InputError("path", f"{path} is the journal", "Save under another name, beside it")
        return journal

    def _before_snapshot(self, journal: Journal) -> None:
        """A snapshot refers to the journal's last record: that must be there, and known as a place of a snapshot."""
        journal.sync()
        place = journal.at.checksum.hex()
        if place not in self.places:
            self.places = (*self.places, place)[-PLACES:]
        self.interrupted = None, self.memory.sequence

    def checkpoint(self) -> None:
        """Shorten the journal now."""
        journal = self.journal
        if journal is None:
            return
        journal.require_open()
        self.interrupted = None, self.memory.sequence
        try:
            work = Compaction(journal)
            try:
                work.write(self.memory.base(self.places))
                work.finish()
            finally:
                work.abandon()
            self.checkpoints.plan(journal)
        except BaseException:
            self.finish_interrupted()
            raise
        self.interrupted = None

    def close(self) -> None:
        """Close the journal, and let others write it and its snapshot."""
        try:
            self.finish_interrupted()
        finally:
            if self.journal is not None:
                self.journal.close()
            if self._snapshot_lock is not None:
                self._snapshot_lock.release()
