"""A journal that has become long is replaced, in the background, by a shorter one that begins with the whole state."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longterm.errors import InputError, JournalError
from longterm.live.journal import Compaction, Journal

if TYPE_CHECKING:
    from longterm.live.recorded import RecordedMemory, Remembered

logger = logging.getLogger("longterm.live")

CheckpointAfter = int | tuple[int, int] | None
"""Records, or (records, bytes), after which a journal is shortened."""
CHECKPOINT_AFTER = (20_000, 2**25)
"""Records and bytes: about a second of recovery (`docs/what_survives.md` has the figures)."""
LONG = 4
"""A journal that nothing shortens is warned of when it is this many times as long."""


class LongJournalWarning(UserWarning):
    """A journal grows and nothing shortens it: recovery takes longer and longer."""


class Due(NamedTuple):
    """Where in the journal something is to be done about its length."""

    sequence: int
    offset: int


class Checkpoints:
    """Looks after the length of one journal.

    Parameters
    ----------
    after : int, (int, int) or None
        Records, or records and bytes, after which the journal is shortened; None: it is warned of, once.
    """

    def __init__(self, after: CheckpointAfter) -> None:
        self._limits = None if after is None else _records_and_bytes(after)
        self.due = Due(sys.maxsize, sys.maxsize)
        """Where the journal is long."""
        self.thread: threading.Thread | None = None
        """What writes the shorter journal, or did so last."""

    def plan(self, journal: Journal) -> None:
        """Find out where this journal will be long."""
        (records, size), times = self._limits or CHECKPOINT_AFTER, 1 if self._limits else LONG
        start = journal.start
        # Never sooner than it is three times as long as its base, or it would do nothing else.
        self.due = Due(start.sequence + times * records, max(times * size, 4 * start.offset))

    def begin(self, recorded: RecordedMemory[Any], journal: Journal, lock: threading.RLock) -> None:
        """The journal is long: shorten it in a thread of its own. Whatever fails there, this call has succeeded."""
        self.due = Due(sys.maxsize, sys.maxsize)
        if self._limits is None:
            what = f"{journal.path} has {journal.at.sequence - journal.start.sequence} records, and nothing shortens it"
            warnings.warn(f"{what}: make the learner with checkpoint_after=, or save", LongJournalWarning, stacklevel=4)
            return
        if self.thread is not None and self.thread.is_alive():
            return
        given = recorded, lock, Compaction(journal), recorded.memory.copied(), recorded.places
        self.thread = threading.Thread(target=self._in_the_background, args=given, name="longterm checkpoint")
        try:
            self.thread.start()
        except RuntimeError:  # no more threads, or the interpreter is going: the journal stays as long as it is
            self.thread = None

    def _in_the_background(
        self,
        recorded: RecordedMemory[Any],
        lock: threading.RLock,
        work: Compaction,
        memory: Remembered,
        places: tuple[str, ...],
    ) -> None:
        """What the thread does. The learner waits for the last lines only, in which a few records are copied."""
        try:
            work.write(memory.base(places))
            with lock:
                recorded.finish_interrupted()
                finished = places == recorded.places and work.finish()
                if recorded.journal is not None:
                    self.plan(recorded.journal)
            if finished:
                logger.info("a checkpoint has shortened the journal")
        except (OSError, JournalError) as error:
            # A full disk, or the learner was closed. The old journal is whole and goes on; it is tried again later.
            with lock:
                recorded.finish_interrupted()
                journal = recorded.journal
                if journal is not None:
                    at, (records, size) = journal.at, self._limits or CHECKPOINT_AFTER
                    self.due = Due(at.sequence + records, at.offset + size)
            if not isinstance(error, JournalError):
                what = f"a checkpoint could not be written ({error}); the journal goes on as it is, and grows"
                warnings.warn(what, LongJournalWarning, stacklevel=1)
        finally:
            work.abandon()

    def wait(self) -> None:
        """Until nothing is written in the background."""
        thread = self.thread
        if thread is not None and thread is not threading.current_thread() and thread.is_alive():
            thread.join()


def _records_and_bytes(value: int | tuple[int, int]) -> tuple[int, int]:
    """checkpoint_after, checked."""
    records, size = value if isinstance(value, tuple) and len(value) == 2 else (value, CHECKPOINT_AFTER[1])
    for number in (records, size):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
            what = f"{value!r} is neither a number of records nor records and bytes"
            raise InputError("checkpoint_after", what, "Give a whole number, a pair of them, or None")
    return int(records), int(size)
