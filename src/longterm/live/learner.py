"""A learner inside a service: decisions are asked for, feedback comes when it comes.

Round s is the s-th `ask`; it plays x_s, the learner's decision at that moment. The k-th `tell`, of whichever
round s, is the k-th update of the learner, with the steps of its own counter k and the feedback that f_s
and g_s give at x_s, the old decision:

    (state after k tells) = update( state after k − 1 tells, feedback of round s at x_s )

What that costs in regret and violation is a theorem: `longterm.theory.lemma_5_delayed`, `docs/live.md`.

Thread rule: one lock; every public call is atomic, in an order that all threads agree on. Functions given to
`tell` run in the caller's thread outside the lock. One process at a time may have a journal open.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array
from longterm._display import Table, short
from longterm.errors import InputError, SnapshotError
from longterm.learners.base import Learner, OnBrokenBound
from longterm.learners.feedback import Feedback
from longterm.live.book import Book
from longterm.live.journal import Journal
from longterm.live.recovery import recover
from longterm.live.told import Oracle, feedback_at, limits_of, require_finite, require_usable, with_arrays
from longterm.live.view import LiveState
from longterm.live.window import Token, Window
from longterm.problems import Problem
from longterm.storage.packing import pack
from longterm.storage.snapshot import Snapshot, identity_of, read_snapshot, write_snapshot
from longterm.storage.specification import difference, specification
from longterm.storage.states import state_arrays

KIND = "live learner"
VERSION = 1


class LiveLearner:
    """One learner, asked and told in any order.

    Parameters
    ----------
    problem : lets `tell` take the parameters of a round, and its constants are what feedback is checked against.
    max_in_flight : how many rounds may be open; `ask` raises a WindowFullError when they are.
    expire_after : the age, in rounds asked for since, after which a token expires: the τ of the theorem.
    on_broken_bound : "raise" refuses feedback above a declared bound; "warn" takes it with a BrokenBoundWarning.
    journal : a file for everything that happens between two saves. One that exists is continued, if it starts from a
        learner as fresh as this one.
    fsync : whether each record of the journal is forced to the disk before its call returns. Without it what was
        acknowledged survives the death of the process, not that of the machine.

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
        if on_broken_bound not in ("raise", "warn"):
            raise InputError("on_broken_bound", f"{on_broken_bound!r} is not known", "Choose 'raise' or 'warn'")
        if problem is not None:
            learner.check(problem)
        self._learner = learner
        self._problem = problem
        self._on_broken_bound = on_broken_bound
        self._lock = threading.Lock()
        self._journal: Journal | None = None
        state = learner.init()
        x = learner.ask(state)
        window = Window(validate.dimension("max_in_flight", max_in_flight), _age(expire_after))
        self._book = Book(state, x, window)
        self._limits = limits_of(learner, problem, x)
        fresh = self._snapshot().encode()  # also finds out at once whether the learner's state can be stored
        if journal is not None:
            self._journal = recover(Path(journal), learner, self._book, identity_of(fresh), None, fsync=fsync)

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
        """A new round: its decision is the token's x. Raises a WindowFullError if too many are in flight."""
        with self._lock:
            self._book.window.require_room()
            self._write({"op": "ask"}, {})
            return self._book.ask(self._learner.ask(self._book.state))

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
        """What happened in the round of this token, in one of three ways.

        A `Feedback`, evaluated by the caller at token.x; or functions `loss` and `constraint` from x to (value,
        gradient), which are called at token.x; or the problem's parameters of that round.

        The token may be given by its number. When this returns, the update is done and in the journal. If it raises
        (a TokenError, or an InputError about the feedback) nothing has changed and the token is as it was.
        """
        with self._lock:
            number = self._book.window.find(token).number
            x = self._book.window.open[number].x
        told = feedback_at(
            x,
            number,
            self._problem,
            feedback=feedback,
            loss=loss,
            constraint=constraint,
            loss_parameters=loss_parameters,
            constraint_parameters=constraint_parameters,
        )
        require_usable(told, x, number, self._limits, self._on_broken_bound)
        self._learner.require(told, x, number, self._on_broken_bound)
        told = with_arrays(told)
        with self._lock:
            self._book.window.find(number)  # another thread may have told it meanwhile
            with np.errstate(all="ignore"):  # what is not finite is refused, in words
                state = self._learner.update(self._book.state, told)
            arrays = state_arrays(state)
            require_finite(arrays, number)
            values = {"constraint": told.constraint} | ({} if told.loss is None else {"loss": told.loss})
            self._write({"op": "tell", "token": number}, arrays | values)
            self._book.tell(number, state, told.constraint, told.loss)

    def skip(self, token: Token | int) -> None:
        """Give up a round whose feedback will not come; the learner does not move. TokenErrors as for `tell`."""
        with self._lock:
            number = self._book.window.find(token).number
            self._write({"op": "skip", "token": number}, {})
            self._book.skip(number)

    # --- what can be read ------------------------------------------------------------------------------------

    @property
    def state(self) -> LiveState:
        """The learner at this moment, in a view that does not change later."""
        with self._lock:
            book, learner = self._book, self._learner
            state, sums = book.state, book.sums
            return LiveState(
                round=int(np.max(np.asarray(state.round))),
                x=np.array(learner.ask(state)),
                report={name: _copied(value) for name, value in learner.report(state).items()},
                asked=book.window.asked,
                told=book.told,
                skipped=book.skipped,
                expired=book.expired,
                in_flight=len(book.window.open),
                largest_delay=book.largest_delay,
                cumulative_loss=_copied(sums.loss),
                losses_told=book.losses_told,
                signed_violation=_copied(sums.signed),
                hard_violation=_copied(sums.hard),
                squared_violation=_copied(sums.squared),
                largest_violation=_copied(sums.largest),
            )

    @property
    def in_flight(self) -> tuple[Token, ...]:
        """The open tokens, oldest first: after a restart, what is still to be told or skipped."""
        with self._lock:
            return tuple(self._book.window.open.values())

    # --- files -----------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole state, tokens in flight included, to `path`, and start the journal afresh.

        The file is replaced atomically: a crash at any moment leaves the old snapshot or the new, and either fits
        the journal that lies beside it. The journal follows the latest save, wherever that was.
        """
        with self._lock:
            if self._journal is not None:
                if Path(path).resolve() == self._journal.path.resolve():
                    raise InputError("path", f"{path} is the journal", "Save under another name, beside it")
                self._journal.sync()  # the snapshot refers to the journal's last record: that must be there
            identity = write_snapshot(Path(path), self._snapshot())
            if self._journal is not None:
                self._journal = self._journal.rotated(identity)

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

        `learner` must be made as the saved one was; max_in_flight and expire_after come from the file. Raises a
        SnapshotError or a JournalError that says what is wrong with the file; without `journal` what came after the
        save is not known.
        """
        path = Path(path)
        snapshot, identity = read_snapshot(path, KIND, VERSION)
        made = cls(learner, problem, on_broken_bound=on_broken_bound)
        other = difference(snapshot.metadata.get("learner"), specification(learner))
        if other is not None:
            raise SnapshotError(path, "another learner", other, "Make the learner with the saved hyper-parameters")
        try:
            made._book.restore(snapshot.metadata["book"], snapshot.arrays)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise SnapshotError(path, "corrupted", f"the state makes no sense: {error}", "Restore a copy") from None
        if journal is not None:
            follows = snapshot.metadata["follows"]
            made._journal = recover(Path(journal), learner, made._book, identity, follows, fsync=fsync)
        return made

    def close(self) -> None:
        """Close the journal, if there is one. Nothing is lost without it; nothing can be asked or told after it."""
        with self._lock:
            if self._journal is not None:
                self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _snapshot(self) -> Snapshot:
        journal = self._journal
        follows = None if journal is None else [journal.identity.hex(), journal.at.checksum.hex()]
        metadata = {"learner": specification(self._learner), "book": self._book.metadata(), "follows": follows}
        return Snapshot(KIND, VERSION, metadata, self._book.arrays())

    def _write(self, what: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Into the journal, before it happens: `longterm.live.recovery` lets it happen again.

        Of a tell the state it led to is written, not the feedback: no replay depends on a user's function.
        """
        if self._journal is not None:
            self._journal.append(pack(what, arrays), self._book.sequence + 1)


def _age(value: int) -> int:
    """expire_after: 0 means that feedback must come before the next ask."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError("expire_after", f"{value!r} is not an age", "Give a whole number of at least 0")
    return int(value)


def _copied(value: Array) -> Array:
    """A copy that shares nothing with the learner; a number where there is only one."""
    return np.array(value)[()]
