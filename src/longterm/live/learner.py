"""A learner inside a service: decisions are asked for, feedback comes when it comes.

Round s is the s-th `ask`; it plays x_s, the learner's decision at that moment. The k-th `tell`, of whichever
round s, is the k-th update of the learner, with the steps of its own counter k and the feedback that f_s
and g_s give at x_s, the old decision:

    (state after k tells) = update( state after k − 1 tells, feedback of round s at x_s )

What that costs in regret and violation is a theorem: `longterm.theory.lemma_5_delayed`, `docs/live.md`.

Thread rule: one lock; every public call is atomic, in an order that all threads agree on. Functions given to
`tell` run in the caller's thread outside the lock. One process at a time may have a journal open: the operating
system keeps others out.

Interrupts: an exception may come out of any instruction (a signal handler that raises). What is about to happen is
noted in one store, `_pending`, before anything changes; it has happened once its record is in the journal. Whatever
is left half-done is settled before the next thing is done or read: undone where the record is not whole, or finished.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array
from longterm._display import Table, short
from longterm.errors import InputError, InUseError, SnapshotError
from longterm.learners.base import Learner
from longterm.learners.checks import FeedbackCheck, OnBrokenBound
from longterm.learners.feedback import Feedback
from longterm.live.feedback import Oracle, feedback_at
from longterm.live.journal import Follows, Journal, recover
from longterm.live.memory import Change, LiveState, Memory
from longterm.live.tokens import Token, Window
from longterm.problems import Problem
from longterm.storage.lock import FileLock, writing
from longterm.storage.snapshot import Snapshot, identity_of, read_snapshot, write_snapshot
from longterm.storage.specification import difference, specification

KIND = "live learner"
VERSION = 1


_LEARNERS: weakref.WeakSet[LiveLearner] = weakref.WeakSet()


class _Pending(NamedTuple):
    """What is being done: a change and its place in the order of things, or a save."""

    change: Change | None
    sequence: int


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
    ) -> None:
        if problem is not None:
            learner.check(problem)
        self._learner = learner
        self._problem = problem
        self._lock = threading.RLock()
        self._journal: Journal | None = None
        self._pending: _Pending | None = None
        state = learner.init()
        x = learner.ask(state)
        window = Window(validate.dimension("max_in_flight", max_in_flight), _age(expire_after))
        self._memory = Memory(state, x, window)
        self._check = FeedbackCheck(learner, x, problem, on_broken_bound)
        fresh = self._snapshot().encode()  # also finds out at once whether the learner's state can be stored
        _LEARNERS.add(self)
        with writing(None if journal is None else Path(journal)) as lock:
            self._recover(lock, identity_of(fresh), None, fsync)

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
            Its `x` is the decision; its `number` goes along with the request.

        Raises
        ------
        WindowFullError
            If as many rounds are in flight as were allowed.
        """
        with self._turn():
            self._settle()
            self._memory.window.require_room()
            change = self._memory.asking(self._learner.ask(self._memory.state))
            self._make(change)
            return self._memory.window.open[change.asked]

    def tell(
        self,
        token: Token | int,
        feedback: Feedback | None = None,
        *,
        loss: Oracle | None = None,
        constraint: Oracle | None = None,
        loss_parameters: Sequence[Array] | None = None,
        constraint_parameters: Sequence[Array] = (),
    ) -> None:
        """Say what happened in the round of this token, in one of three ways.

        When this returns, the update is done and in the journal. If it raises nothing has changed and the token is as
        it was.

        Parameters
        ----------
        token : Token or int
            The round, by what `ask` returned or by its number.
        feedback : Feedback, optional
            The first way: evaluated by the caller at token.x.
        loss, constraint : callable, optional
            The second way: functions from x to (value, gradient), which are called at token.x.
        loss_parameters, constraint_parameters : sequence of array, optional
            The third way: the problem's parameters of that round.

        Raises
        ------
        TokenError
            If the token is unknown, was told or skipped already, or has expired.
        InputError
            If the feedback cannot be used.
        """
        with self._turn():
            self._settle()
            known = self._memory.window.find(token)
        number = known.number
        feedback = feedback_at(
            known.x,
            number,
            self._problem,
            feedback=feedback,
            loss=loss,
            constraint=constraint,
            loss_parameters=loss_parameters,
            constraint_parameters=constraint_parameters,
        )
        feedback = self._check.accept(feedback, number)
        with self._turn():
            self._settle()
            self._memory.window.find(number)  # another thread may have told it meanwhile
            with np.errstate(all="ignore"):  # what is not finite is refused, in words
                state = self._learner.update(self._memory.state, feedback)
            self._make(self._memory.telling(number, state, feedback.constraint, feedback.loss))

    def skip(self, token: Token | int) -> None:
        """Give up a round whose feedback will not come; the learner does not move.

        Parameters
        ----------
        token : Token or int
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
        record = b"" if self._journal is None else change.record()
        sequence = self._memory.sequence + 1
        self._pending = _Pending(change, sequence)
        try:
            if self._journal is not None:
                self._journal.append(record, sequence)
            self._memory.make(change)
        except BaseException:
            self._settle()
            raise
        self._pending = None

    def _settle(self) -> None:
        """Undo or finish what was interrupted. Done twice it is done once, so it may be interrupted itself."""
        pending = self._pending
        if pending is None:
            return
        if self._journal is not None:
            self._journal.settle()
        if pending.change is not None and (self._journal is None or self._journal.at.sequence == pending.sequence):
            self._memory.make(pending.change)
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
        the journal that lies beside it. The journal follows the latest save, wherever that was.

        Parameters
        ----------
        path : path
            The snapshot; not the journal's own file.

        Raises
        ------
        OSError
            If it cannot be written; the old file is as it was, and the journal goes on.
        """
        with self._turn():
            self._settle()
            if self._journal is not None:
                if Path(path).resolve() == self._journal.path.resolve():
                    raise InputError("path", f"{path} is the journal", "Save under another name, beside it")
                self._journal.sync()  # the snapshot refers to the journal's last record: that must be there
            self._pending = _Pending(None, self._memory.sequence)
            try:
                identity = write_snapshot(Path(path), self._snapshot())
                if self._journal is not None:
                    self._journal.rotate(identity)
            except BaseException:
                self._settle()
                raise
            self._pending = None

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
        path = Path(path)
        with writing(None if journal is None else Path(journal)) as lock:
            snapshot, identity = read_snapshot(path, KIND, VERSION)
            live = cls(learner, problem, on_broken_bound=on_broken_bound)
            other = difference(snapshot.metadata.get("learner"), specification(learner))
            if other is not None:
                raise SnapshotError(path, "another learner", other, "Make the learner with the saved hyper-parameters")
            try:
                live._memory.restore(snapshot.metadata["book"], snapshot.arrays)
                follows = snapshot.metadata["follows"]
            except (KeyError, ValueError, TypeError, IndexError) as error:
                raise SnapshotError(path, "corrupted", f"the state makes no sense: {error}", "Restore a copy") from None
            live._recover(lock, identity, follows, fsync)
        return live

    def close(self) -> None:
        """Close the journal, if there is one. Nothing is lost without it; nothing can be asked or told after it."""
        with self._turn():
            try:
                self._settle()
            finally:
                if self._journal is not None:
                    self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _snapshot(self) -> Snapshot:
        journal = self._journal
        follows = None if journal is None else [journal.identity.hex(), journal.at.checksum.hex()]
        metadata = {"learner": specification(self._learner), "book": self._memory.metadata(), "follows": follows}
        return Snapshot(KIND, VERSION, metadata, self._memory.arrays())

    def _recover(self, lock: FileLock | None, identity: bytes, follows: Follows, fsync: bool) -> None:
        """Let everything in the journal, if there is one, happen again, and go on writing it."""
        if lock is None:
            return
        memory = self._memory

        def replay(record: bytes) -> None:
            memory.make(memory.recorded(record, self._learner))

        self._journal = recover(lock, identity, memory.sequence, follows, replay, fsync=fsync)


def _in_a_forked_child() -> None:
    """The thread that had a learner's lock is not here to give it back."""
    for live in list(_LEARNERS):
        live._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_forked_child)


def _age(value: int) -> int:
    """expire_after: 0 means that feedback must come before the next ask."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError("expire_after", f"{value!r} is not an age", "Give a whole number of at least 0")
    return int(value)
