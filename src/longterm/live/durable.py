"""What survives its process: one lock, a life, a memory with its journal, and the files they are kept in."""

from __future__ import annotations

import os
import threading
import weakref
from os import PathLike
from pathlib import Path
from typing import Any, Generic, Self

from longterm.errors import InUseError
from longterm.live.checkpoints import CheckpointAfter
from longterm.live.recorded import M, RecordedMemory
from longterm.live.snapshots import locked_for_journal
from longterm.live.tokens import draw_life
from longterm.storage.lock import writing

_ALL: weakref.WeakSet[Durable[Any]] = weakref.WeakSet()


class Durable(Generic[M]):
    """A live learner, or a chooser: every public call is atomic, and what it acknowledged is kept."""

    def __init__(self, memory: M, checkpoint_after: CheckpointAfter) -> None:
        self._lock = threading.RLock()
        self._life = draw_life()
        self._recorded = RecordedMemory(memory, checkpoint_after)
        _ALL.add(self)

    def _turn(self) -> threading.RLock:
        """The lock, unless this thread has it: a signal handler that calls this object would wait for itself."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            what = f"this {self._recorded.memory.kind} is in the middle of another call in this thread"
            raise InUseError(what, "Call it after that call has returned or raised, not from a signal handler")
        return self._lock

    def _load(self, path: Path, journal: Path | None, *, fsync: bool) -> Self:
        """Become what was saved at `path`, and what the journal, if there is one, knows since."""
        if journal is None:
            self._recorded.load(path, None, fsync=fsync)
            return self
        with writing(journal) as lock, locked_for_journal(path) as snapshot_lock:
            self._recorded.load(path, lock, snapshot_lock, fsync=fsync)
        return self

    def _open(self, path: Path, journal: Path, *, fsync: bool) -> Self:
        """The same, or if nothing was saved yet become what the journal knows.

        Nobody else can come up in between: whether there is a snapshot is looked up with the journal's lock in hand.
        """
        with writing(journal) as lock, locked_for_journal(path) as snapshot_lock:
            if path.exists():
                self._recorded.load(path, lock, snapshot_lock, fsync=fsync)
            else:
                self._recorded.begin(lock, snapshot_lock, fsync=fsync)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything, what is open included, to `path`, and start the journal afresh.

        The file is replaced atomically: a crash at any moment leaves the old snapshot or the new, and either fits
        the journal that lies beside it. A journal belongs to one snapshot: the one that it was loaded with, or the
        first that was saved. A save to another path is a `backup`.

        Parameters
        ----------
        path : path
            The snapshot; not the journal's own file.

        Raises
        ------
        OSError
            If it cannot be written; the old file is as it was, and the journal goes on.
        JournalError
            If another process or object, which has a journal, is writing it.
        InputError
            If it belongs to a journal that this object does not have: what is in that would be lost.
        """
        with self._turn():
            self._recorded.finish_interrupted()
            self._recorded.save(Path(path))

    def backup(self, path: str | PathLike[str]) -> None:
        """Write everything, what is open included, to `path`; the journal and its snapshot stay as they are.

        The copy can be loaded by itself, with a journal of its own, or with the journal of the original.

        Parameters
        ----------
        path : path
            The file, which is replaced atomically; neither the journal nor its snapshot.

        Raises
        ------
        OSError
            If it cannot be written; the old file is as it was.
        """
        with self._turn():
            self._recorded.finish_interrupted()
            self._recorded.backup(Path(path))

    def checkpoint(self) -> None:
        """Replace the journal, now, by a short one that begins with the whole state. Nothing without a journal.

        It happens by itself after `checkpoint_after`; this is for those who would rather choose the moment.

        Raises
        ------
        OSError
            If it cannot be written; the journal goes on as it was.
        """
        with self._turn():
            self._recorded.finish_interrupted()
            self._recorded.checkpoint()

    def close(self) -> None:
        """Close the journal, if there is one. Nothing is lost without it; nothing can be done after it."""
        with self._turn():
            self._recorded.close()
        self._recorded.checkpoints.wait()  # it finds the journal closed, and leaves nothing behind

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _in_a_forked_child() -> None:
    """The thread that had a lock is not here to give it back; and what the child gives out is of its own life."""
    for one in list(_ALL):
        one._lock = threading.RLock()
        one._life = draw_life()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_forked_child)
