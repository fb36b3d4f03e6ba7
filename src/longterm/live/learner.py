"""A learner inside a service: decisions are asked for, feedback comes when it comes.

Round s is the s-th `ask`; it plays x_s, the learner's decision at that moment. The k-th `tell`, of whichever
round s, is the k-th update of the learner, with the steps of its own counter k and the feedback that f_s
and g_s give at x_s, the old decision:

    (state after k tells) = update( state after k − 1 tells, feedback of round s at x_s )

What that costs in regret and violation is a theorem: `longterm.theory.lemma_5_delayed`, `docs/live.md`.

Thread rule: one lock; every public call is atomic, in an order that all threads agree on. Functions given to
`tell` run in the caller's thread outside the lock. One process at a time may have a journal open: the operating
system keeps others out.

Files: a journal knows all that happened. When it has become long it is replaced, in the background, by a shorter one
that begins with the whole state (`_checkpoint_soon`); `save` and `backup` write snapshots.

Interrupts: an exception may come out of any instruction (a signal handler that raises). What is about to happen is
noted in one store, `_pending`, before anything changes; it has happened once its record is in the journal. Whatever
is left half-done is settled before the next thing is done or read: undone where the record is not whole, or finished.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array
from longterm._display import Table, short
from longterm.errors import InputError, InUseError, JournalError, SnapshotError
from longterm.learners.base import Learner
from longterm.learners.checks import FeedbackCheck, OnBrokenBound
from longterm.learners.feedback import Feedback
from longterm.live.feedback import Oracle, feedback_at
from longterm.live.journal import Compaction, Follows, Journal, recover
from longterm.live.memory import Change, LiveState, Memory
from longterm.live.records import Told
from longterm.live.stored import require_near
from longterm.live.tokens import Token, Window, draw_life
from longterm.problems import Problem
from longterm.storage.lock import FileLock, writing
from longterm.storage.packing import pack, unpack
from longterm.storage.snapshot import Snapshot, identity_of, read_snapshot, write_snapshot
from longterm.storage.specification import difference, specification

logger = logging.getLogger("longterm.live")

KIND = "live learner"
VERSION = 2
"""Version 1 had no lives."""
CHECKPOINT_AFTER = (20_000, 2**25)
"""Records and bytes: about a second of recovery (`docs/what_survives.md` has the figures)."""
LONG = 4
"""A journal that nothing shortens is warned of when it is this many times as long."""
PLACES = 64
"""So many snapshots taken in the middle of a journal are remembered in it."""


class LongJournalWarning(UserWarning):
    """A journal grows and nothing shortens it: recovery takes longer and longer."""


_LEARNERS: weakref.WeakSet[LiveLearner] = weakref.WeakSet()


_Pending = tuple[Change | None, int]
"""What is being done: a change and its place in the order of things, or a save."""

CheckpointAfter = int | tuple[int, int] | None
"""Records, or (records, bytes), after which a journal is shortened."""


class Due(NamedTuple):
    """Where in the journal something is to be done about its length."""

    sequence: int
    offset: int


class LiveLearner:
    """One learner, asked and told in any order.

    Parameters
    ----------
    learner : Learner
        The rule and its hyper-parameters.
    problem : Problem, optional
        Lets `tell` take the parameters of a round, and its constants are what feedback is checked against.
    max_in_flight : int
        How many rounds may be open; `ask` raises a WindowFullError when they are.
    expire_after : int
        The age, in rounds asked for since, after which a token expires: the τ of the theorem.
    on_broken_bound : {"raise", "warn"}
        "raise" refuses feedback above a declared bound; "warn" takes it with a BrokenBoundWarning.
    journal : path, optional
        A file for everything that happens between two saves. One that exists is continued, if it starts from a
        learner as fresh as this one.
    fsync : bool
        Whether each record of the journal is forced to the disk before its call returns. Without it what was
        acknowledged survives the death of the process, not that of the machine.
    checkpoint_after : int, (int, int) or None
        After how many records, and how many bytes, the journal is replaced by a shorter one, in the background: an
        ask, a tell and a skip are a record each. None: only when `checkpoint` or `save` is called.

    Raises
    ------
    InputError
        If an argument cannot be used, or the learner cannot play the problem.
    JournalError
        If the journal is damaged, continues another learner, or is open elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import AOGD, LiveLearner
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> live = LiveLearner(AOGD.for_problem(problem, steps="strongly convex", beta=0.5), problem)
    >>> first, second = live.ask(), live.ask()
    >>> live.tell(second, loss_parameters=[np.array([0.0, 1.0])])
    >>> live.tell(first, loss_parameters=[np.array([1.0, 0.0])])
    >>> live.ask().x, live.state.told, live.state.largest_delay
    (array([0.4472136 , 0.89442719]), 2, 1)
    """

    def __init__(
        self,
        learner: Learner[Any],
        problem: Problem | None = None,
        *,
        max_in_flight: int = 1024,
        expire_after: int = 1000,
        on_broken_bound: OnBrokenBound = "raise",
        journal: str | PathLike[str] | None = None,
        fsync: bool = True,
        checkpoint_after: CheckpointAfter = CHECKPOINT_AFTER,
    ) -> None:
        if problem is not None:
            learner.check(problem)
        self._learner = learner
        self._problem = problem
        self._lock = threading.RLock()
        self._journal: Journal | None = None
        self._pending: _Pending | None = None
        self._life = draw_life()
        self._home: FileLock | None = None
        """The right to write the snapshot that the journal belongs to."""
        self._places: tuple[str, ...] = ()
        """The checksums of the places in the journal that snapshots were taken at."""
        self._limits = _limits(checkpoint_after)
        self._due = Due(sys.maxsize, sys.maxsize)
        self._thread: threading.Thread | None = None
        state = learner.init()
        x = learner.ask(state)
        window = Window(validate.dimension("max_in_flight", max_in_flight), _age(expire_after))
        self._memory = Memory(state, x, window)
        self._check = FeedbackCheck(learner, x, problem, on_broken_bound)
        fresh = self._fresh().encode()  # also finds out at once whether the learner's state can be stored
        _LEARNERS.add(self)
        with writing(None if journal is None else Path(journal)) as lock:
            self._recover(lock, identity_of(fresh), None, False, fsync)

    def __repr__(self) -> str:
        now = self.state
        held = "" if self._journal is None else ", journal"
        return (
            f"LiveLearner({type(self._learner).__name__}, d={np.shape(now.x)[-1]}, asked={now.asked}, told={now.told}, "
            f"in_flight={now.in_flight}, skipped={now.skipped}, expired={now.expired}{held})"
        )

    def _repr_html_(self) -> str:
        now = self.state
        names = ("asked", "told", "in_flight", "skipped", "expired", "largest_delay", "signed_violation")
        rows = [(name, short(np.asarray(getattr(now, name)))) for name in names]
        return Table(("", ""), rows, title=f"LiveLearner: {type(self._learner).__name__}")._repr_html_()

    # --- the rounds ------------------------------------------------------------------------------------------

    def ask(self) -> Token:
        """Begin a new round.

        Returns
        -------
        Token
            Its `x` is the decision; its text, ``str(token)``, goes along with the request.

        Raises
        ------
        WindowFullError
            If as many rounds are in flight as were allowed.
        """
        with self._turn():
            if self._pending is not None:
                self._settle()
            memory = self._memory
            memory.window.require_room()
            change = memory.asking(self._learner.ask(memory.state), self._life)
            self._make(change)
            return change.opened  # type: ignore[return-value]

    def tell(
        self,
        token: Token | str,
        feedback: Feedback | None = None,
        *,
        loss: Oracle | None = None,
        constraint: Oracle | None = None,
        loss_parameters: Sequence[Array] | None = None,
        constraint_parameters: Sequence[Array] = (),
        hint: Array | None = None,
    ) -> None:
        """Say what happened in the round of this token, in one of three ways.

        When this returns, the update is done and in the journal. If it raises nothing has changed and the token is as
        it was.

        Parameters
        ----------
        token : Token or str
            The round, by what `ask` returned or by the text of that.
        feedback : Feedback, optional
            The first way: evaluated by the caller at token.x.
        loss, constraint : callable, optional
            The second way: functions from x to (value, gradient), which are called at token.x.
        loss_parameters, constraint_parameters : sequence of array, optional
            The third way: the problem's parameters of that round.
        hint : array, optional
            A forecast of the gradient of the next loss, for learners that follow one (`learners.hints`).

        Raises
        ------
        TokenError
            If the token is unknown, was told or skipped already, or has expired.
        InputError
            If the feedback cannot be used.
        """
        functions = loss is not None or constraint is not None
        if functions or loss_parameters is not None or len(constraint_parameters) or type(feedback) is not Feedback:
            with self._turn():
                self._settle()
                token = self._memory.window.find(token)
            # In the caller's time: what runs here may take long, and may use this learner.
            feedback = feedback_at(
                token.x,
                token.number,
                self._problem,
                feedback=feedback,
                loss=loss,
                constraint=constraint,
                loss_parameters=loss_parameters,
                constraint_parameters=constraint_parameters,
            )
        with self._turn(), np.errstate(all="ignore"):  # what is not finite is refused, in words
            if self._pending is not None:
                self._settle()
            memory = self._memory
            number = memory.window.find(token).number
            if hint is not None:
                feedback = feedback._replace(hint=hint)
            feedback = self._check.accept(feedback, number)
            state = self._learner.update(memory.state, feedback)
            self._make(memory.telling(Told(number, state, feedback.constraint, feedback.loss)))

    def skip(self, token: Token | str) -> None:
        """Give up a round whose feedback will not come; the learner does not move.

        Parameters
        ----------
        token : Token or str
            The round.

        Raises
        ------
        TokenError
            As for `tell`.
        """
        with self._turn():
            self._settle()
            self._make(self._memory.skipping(self._memory.window.find(token).number))

    def _turn(self) -> threading.RLock:
        """The lock, unless this thread has it: a signal handler that calls the learner would wait for itself."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            what = "this learner is in the middle of another call in this thread"
            raise InUseError(what, "Call it after that call has returned or raised, not from a signal handler")
        return self._lock

    def _make(self, change: Change) -> None:
        """Write it to the journal, then let it happen."""
        memory, journal = self._memory, self._journal
        if journal is None:
            self._pending = change, 0
            memory.make(change)
            self._pending = None
            return
        record = change.event.encode(memory.layout)
        sequence = memory.sequence + 1
        self._pending = change, sequence
        try:
            end = journal.append(record, sequence)
            memory.make(change)
        except BaseException:
            self._settle()
            raise
        self._pending = None
        if end.sequence >= self._due.sequence or end.offset >= self._due.offset:
            self._checkpoint_soon(journal)

    def _settle(self) -> None:
        """Undo or finish what was interrupted. Done twice it is done once, so it may be interrupted itself."""
        pending = self._pending
        if pending is None:
            return
        if self._journal is not None:
            self._journal.settle()
        change, sequence = pending
        if change is not None and (self._journal is None or self._journal.at.sequence == sequence):
            self._memory.make(change)
        self._pending = None

    # --- what can be read ------------------------------------------------------------------------------------

    @property
    def state(self) -> LiveState:
        """The learner at this moment, in a view that does not change later."""
        with self._turn():
            self._settle()
            return self._memory.view(self._learner)

    @property
    def in_flight(self) -> tuple[Token, ...]:
        """The open tokens, oldest first: after a restart, what is still to be told or skipped."""
        with self._turn():
            self._settle()
            return tuple(self._memory.window.open.values())

    # --- files -----------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole state, tokens in flight included, to `path`, and start the journal afresh.

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
            If another learner, which has a journal, is writing it.
        InputError
            If it belongs to a journal that this learner does not have: what is in that would be lost.
        """
        path = Path(path)
        with self._turn():
            self._settle()
            journal = self._require_apart(path)
            if journal is None:
                with _briefly(path):
                    _require_free(path)
                    write_snapshot(path, self._snapshot(required=False))
                return
            if self._home is not None and not _same_place(self._home.path, path):
                self._write_backup(path)
                return
            home = FileLock(path).acquire() if self._home is None else self._home
            try:
                self._before_snapshot(journal)
                identity = write_snapshot(path, self._snapshot(required=True))
                journal.rotate(identity)
                self._home = home
                self._places = ()
                self._plan_checkpoint()
            except BaseException:
                if home is not self._home:
                    home.release()
                self._settle()
                raise
            self._pending = None

    def backup(self, path: str | PathLike[str]) -> None:
        """Write the whole state, tokens in flight included, to `path`; the journal and its snapshot stay as they are.

        The copy can be loaded by itself, with a journal of its own, or with this learner's journal.

        Parameters
        ----------
        path : path
            The file, which is replaced atomically; neither the journal nor its snapshot.

        Raises
        ------
        OSError
            If it cannot be written; the old file is as it was.
        """
        path = Path(path)
        with self._turn():
            self._settle()
            self._require_apart(path)
            if self._home is not None and _same_place(self._home.path, path):
                raise InputError("path", f"{path} is the journal's own snapshot", "Save it, or name another file")
            self._write_backup(path)

    def _write_backup(self, path: Path) -> None:
        with _briefly(path):
            _require_free(path)
            if self._journal is not None:
                self._before_snapshot(self._journal)
                self._pending = None
            write_snapshot(path, self._snapshot(required=False))

    def checkpoint(self) -> None:
        """Replace the journal, now, by a short one that begins with the whole state. Nothing without a journal.

        It happens by itself after `checkpoint_after`; this is for those who would rather choose the moment.

        Raises
        ------
        OSError
            If it cannot be written; the journal goes on as it was.
        """
        with self._turn():
            self._settle()
            journal = self._journal
            if journal is None:
                return
            journal.require_open()
            self._pending = None, self._memory.sequence
            try:
                work = Compaction(journal)
                try:
                    work.write(self._base(self._memory, self._places))
                    work.finish()
                finally:
                    work.abandon()
                self._plan_checkpoint()
            except BaseException:
                self._settle()
                raise
            self._pending = None

    def _require_apart(self, path: Path) -> Journal | None:
        """The journal, once it is known to be open and not the file at `path`."""
        journal = self._journal
        if journal is not None:
            journal.require_open()
            if _same_place(path, journal.path):
                raise InputError("path", f"{path} is the journal", "Save under another name, beside it")
        return journal

    def _before_snapshot(self, journal: Journal) -> None:
        """A snapshot refers to the journal's last record: that must be there, and known as a place of a snapshot."""
        journal.sync()
        place = journal.at.checksum.hex()
        if place not in self._places:
            self._places = (*self._places, place)[-PLACES:]
        self._pending = None, self._memory.sequence

    # --- the length of the journal ---------------------------------------------------------------------------

    def _plan_checkpoint(self) -> None:
        """Where the journal will be long."""
        journal = self._journal
        if journal is None:
            return
        (records, size), times = self._limits or CHECKPOINT_AFTER, 1 if self._limits else LONG
        start = journal.start
        # Never sooner than it is three times as long as its base, or it would do nothing else.
        self._due = Due(start.sequence + times * records, max(times * size, 4 * start.offset))

    def _checkpoint_soon(self, journal: Journal) -> None:
        """The journal is long: shorten it in a thread of its own. Whatever fails there, this call has succeeded."""
        self._due = Due(sys.maxsize, sys.maxsize)
        if self._limits is None:
            what = f"{journal.path} has {journal.at.sequence - journal.start.sequence} records, and nothing shortens it"
            warnings.warn(f"{what}: make the learner with checkpoint_after=, or save", LongJournalWarning, stacklevel=4)
            return
        if self._thread is not None and self._thread.is_alive():
            return
        work, memory, places = Compaction(journal), self._memory.copied(), self._places
        self._thread = threading.Thread(target=self._compact, args=(work, memory, places), name="longterm checkpoint")
        try:
            self._thread.start()
        except RuntimeError:  # no more threads, or the interpreter is going: the journal stays as long as it is
            self._thread = None

    def _compact(self, work: Compaction, memory: Memory, places: tuple[str, ...]) -> None:
        """What the thread does. The learner waits for the last lines only, in which a few records are copied."""
        try:
            work.write(self._base(memory, places))
            with self._lock:
                self._settle()
                finished = places == self._places and work.finish()
                self._plan_checkpoint()
            if finished:
                logger.info("a checkpoint has shortened the journal")
        except (OSError, JournalError) as error:
            # A full disk, or the learner was closed. The old journal is whole and goes on; it is tried again later.
            with self._lock:
                self._settle()
                journal = self._journal
                if journal is not None:
                    at, (records, size) = journal.at, self._limits or CHECKPOINT_AFTER
                    self._due = Due(at.sequence + records, at.offset + size)
            if not isinstance(error, JournalError):
                what = f"a checkpoint could not be written ({error}); the journal goes on as it is, and grows"
                warnings.warn(what, LongJournalWarning, stacklevel=1)
        finally:
            work.abandon()

    def _base(self, memory: Memory, places: tuple[str, ...]) -> bytes:
        """What a journal begins with."""
        metadata = {"book": memory.metadata(), "lives": memory.window.lives, "places": places}
        return pack(metadata, memory.arrays())

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        learner: Learner[Any],
        problem: Problem | None = None,
        *,
        on_broken_bound: OnBrokenBound = "raise",
        journal: str | PathLike[str] | None = None,
        fsync: bool = True,
        checkpoint_after: CheckpointAfter = CHECKPOINT_AFTER,
    ) -> Self:
        """The learner that was saved, and with its journal everything told since: it continues bit for bit.

        Parameters
        ----------
        path : path
            What `save` wrote. It holds max_in_flight and expire_after, too.
        learner : Learner
            Made as the saved one was.
        problem : Problem, optional
            As for a new learner.
        on_broken_bound : {"raise", "warn"}
            As for a new learner.
        journal : path, optional
            The journal that lies beside the snapshot; without it what came after the save is not known.
        fsync : bool
            As for a new learner.
        checkpoint_after : int, (int, int) or None
            As for a new learner.

        Returns
        -------
        LiveLearner
            The learner, ready to go on.

        Raises
        ------
        SnapshotError
            Saying what is wrong with the file: it is damaged, newer, or of another learner.
        JournalError
            The same of the journal.
        """
        return cls._load(Path(path), learner, problem, on_broken_bound, journal, fsync, checkpoint_after)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        learner: Learner[Any],
        problem: Problem | None = None,
        *,
        journal: str | PathLike[str],
        max_in_flight: int = 1024,
        expire_after: int = 1000,
        on_broken_bound: OnBrokenBound = "raise",
        fsync: bool = True,
        checkpoint_after: CheckpointAfter = CHECKPOINT_AFTER,
    ) -> Self:
        """How a service comes up, the first time and every time after: the learner of `path`, or a new one.

        Nobody else can come up in between: whether there is a snapshot is looked up with the journal's lock in hand.

        Parameters
        ----------
        path : path
            What `save` writes; if there is nothing yet, the learner begins with what the journal knows.
        learner : Learner
            Made as the saved one was.
        problem : Problem, optional
            As for a new learner.
        journal : path
            The journal that lies beside the snapshot.
        max_in_flight, expire_after : int
            As for a new learner; a snapshot has its own.
        on_broken_bound : {"raise", "warn"}
            As for a new learner.
        fsync : bool
            As for a new learner.
        checkpoint_after : int, (int, int) or None
            As for a new learner.

        Returns
        -------
        LiveLearner
            The learner, ready to go on.

        Raises
        ------
        SnapshotError, JournalError
            As for `load`.
        """
        path, options = Path(path), (on_broken_bound, journal, fsync, checkpoint_after)
        with writing(Path(journal)) as lock, _at_home(path) as home:
            if path.exists():
                return cls._load(path, learner, problem, *options, locks=(lock, home))
            live = cls(
                learner,
                problem,
                max_in_flight=max_in_flight,
                expire_after=expire_after,
                on_broken_bound=on_broken_bound,
                checkpoint_after=checkpoint_after,
            )
            live._recover(lock, identity_of(live._fresh().encode()), None, False, fsync)
            live._home = home
        return live

    @classmethod
    def _load(
        cls,
        path: Path,
        learner: Learner[Any],
        problem: Problem | None,
        on_broken_bound: OnBrokenBound,
        journal: str | PathLike[str] | None,
        fsync: bool,
        checkpoint_after: CheckpointAfter,
        locks: tuple[FileLock | None, FileLock | None] | None = None,
    ) -> Self:
        if locks is None and journal is not None:
            with writing(Path(journal)) as lock, _at_home(path) as home:
                options = on_broken_bound, journal, fsync, checkpoint_after
                return cls._load(path, learner, problem, *options, locks=(lock, home))
        lock, home = locks or (None, None)
        snapshot, identity = read_snapshot(path, KIND, VERSION)
        live = cls(learner, problem, on_broken_bound=on_broken_bound, checkpoint_after=checkpoint_after)
        other = difference(snapshot.metadata.get("learner"), specification(learner))
        if other is not None:
            raise SnapshotError(path, "another learner", other, "Make the learner with the saved hyper-parameters")
        try:
            live._memory.restore(snapshot.metadata["book"], snapshot.metadata.get("lives", ()), snapshot.arrays)
            decisions = [token.x for token in live._memory.window.open.values()]
            require_near(learner, learner.ask(live._memory.state), *decisions)
            follows = snapshot.metadata["follows"]
            required = bool(snapshot.metadata.get("required", follows is not None))
            if follows is not None:
                follows = [str(part) for part in follows]
                live._places = (follows[1],)
        except (KeyError, ValueError, TypeError, ArithmeticError, LookupError) as error:
            raise SnapshotError(path, "corrupted", f"the state makes no sense: {error}", "Restore a copy") from None
        live._recover(lock, identity, follows, required, fsync)
        live._home = home
        return live

    def close(self) -> None:
        """Close the journal, if there is one. Nothing is lost without it; nothing can be asked or told after it."""
        with self._turn():
            try:
                self._settle()
            finally:
                if self._journal is not None:
                    self._journal.close()
                if self._home is not None:
                    self._home.release()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread() and thread.is_alive():
            thread.join()  # it finds the journal closed, and leaves nothing behind

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fresh(self) -> Snapshot:
        """What a journal that no snapshot belongs to starts from: the same in every life, and in every version."""
        metadata = {"learner": specification(self._learner), "book": self._memory.metadata(), "follows": None}
        return Snapshot(KIND, 1, metadata, self._memory.arrays())

    def _snapshot(self, *, required: bool) -> Snapshot:
        """All there is to save; `required`: without its journal it is not the whole."""
        journal, memory = self._journal, self._memory
        follows = None if journal is None else [journal.identity.hex(), journal.at.checksum.hex()]
        metadata = {
            "learner": specification(self._learner),
            "book": memory.metadata(),
            "lives": memory.window.lives,
            "follows": follows,
            "required": required,
        }
        return Snapshot(KIND, VERSION, metadata, memory.arrays())

    def _recover(self, lock: FileLock | None, identity: bytes, follows: Follows, required: bool, fsync: bool) -> None:
        """Let everything in the journal, if there is one, happen again, and go on writing it."""
        if lock is None:
            return
        before = self._memory.sequence
        self._journal = recover(lock, identity, before, follows, required, _Recovery(self), fsync=fsync)
        self._plan_checkpoint()
        logger.info("%s: %d records read again", self._journal.path, self._memory.sequence - before)


class _Recovery:
    """A learner, as a journal that is read sees it."""

    def __init__(self, live: LiveLearner) -> None:
        self._live = live

    def restore(self, base: bytes) -> tuple[str, ...]:
        live = self._live
        metadata, arrays = unpack(base)
        live._memory.restore(metadata["book"], metadata["lives"], arrays)
        live._places = tuple(str(place) for place in metadata["places"])
        return live._places

    def replay(self, record: bytes) -> None:
        memory = self._live._memory
        memory.make(memory.recorded(record, self._live._learner))


@contextmanager
def _briefly(path: Path) -> Iterator[None]:
    """The right to write a snapshot, for as long as that takes; refused while a learner with a journal has it."""
    with writing(path) as lock:
        yield
    if lock is not None:
        lock.release()


@contextmanager
def _at_home(path: Path) -> Iterator[FileLock | None]:
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


def _require_free(path: Path) -> None:
    """Refuse to replace a snapshot that a journal belongs to, by a learner that does not have that journal."""
    try:
        metadata = read_snapshot(path, KIND, VERSION)[0].metadata
    except SnapshotError:  # missing, or not one of ours
        return
    if metadata.get("required", metadata.get("follows") is not None):
        what = f"{path} was saved by a learner with a journal, and what is in that would be lost"
        raise InputError("path", what, "Load it with journal=; or save under another name, or remove the file first")


def _same_place(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _in_a_forked_child() -> None:
    """The thread that had a learner's lock is not here to give it back; and tokens of the child are its own."""
    for live in list(_LEARNERS):
        live._lock = threading.RLock()
        live._life = draw_life()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_forked_child)


def _limits(value: CheckpointAfter) -> tuple[int, int] | None:
    """checkpoint_after: records and bytes."""
    if value is None:
        return None
    records, size = value if isinstance(value, tuple) and len(value) == 2 else (value, CHECKPOINT_AFTER[1])
    for number in (records, size):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
            what = f"{value!r} is neither a number of records nor records and bytes"
            raise InputError("checkpoint_after", what, "Give a whole number, a pair of them, or None")
    return int(records), int(size)


def _age(value: int) -> int:
    """expire_after: 0 means that feedback must come before the next ask."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError("expire_after", f"{value!r} is not an age", "Give a whole number of at least 0")
    return int(value)
