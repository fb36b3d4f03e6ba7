"""A learner inside a service: decisions are asked for, feedback comes when it comes.

Round s is the s-th `ask`; it plays x_s, the learner's decision at that moment. The k-th `tell`, of whichever
round s, is the k-th update of the learner, with the steps of its own counter k and the feedback that f_s
and g_s give at x_s, the old decision:

    (state after k tells) = update( state after k − 1 tells, feedback of round s at x_s )

What that costs in regret and violation is a theorem: `longterm.theory.lemma_5_delayed`, `docs/live.md`.

Thread rule: one lock; every public call is atomic, in an order that all threads agree on. Functions given to
`tell` run in the caller's thread outside the lock. One process at a time may have a journal open: the operating
system keeps others out.

From here a call goes to `memory`, which works out what it changes; `recorded` writes that to the `journal`, and lets it
happen. Whatever can go wrong in between, an exception at any instruction included, is the business of `recorded`.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array
from longterm._display import TextTable, short
from longterm.errors import InputError
from longterm.learners.base import Learner, require_learner
from longterm.learners.feedback import Feedback
from longterm.learners.feedback_check import FeedbackCheck, OnBrokenBound
from longterm.live.checkpoints import CHECKPOINT_AFTER, CheckpointAfter
from longterm.live.durable import Durable
from longterm.live.memory import Memory
from longterm.live.state import LiveState, Oracle, feedback_at
from longterm.live.tokens import Token, Window
from longterm.problems import Problem
from longterm.storage.lock import writing


class LiveLearner(Durable[Memory]):
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
        require_learner(learner)
        if problem is not None:
            learner.check(problem)
        self._learner = learner
        self._problem = problem
        window = Window(validate.dimension("max_in_flight", max_in_flight), _age(expire_after))
        memory = Memory(learner, window)
        self._check = FeedbackCheck(learner, learner.ask(memory.state), problem, on_broken_bound)
        memory.fresh_snapshot().encode()  # finds what cannot be stored
        super().__init__(memory, checkpoint_after)
        with writing(None if journal is None else Path(journal)) as lock:
            self._recorded.begin(lock, fsync=fsync)

    def __repr__(self) -> str:
        now = self.state
        held = "" if self._recorded.journal is None else ", journal"
        return (
            f"LiveLearner({type(self._learner).__name__}, d={np.shape(now.x)[-1]}, asked={now.asked}, told={now.told}, "
            f"in_flight={now.in_flight}, skipped={now.skipped}, expired={now.expired}{held})"
        )

    def _repr_html_(self) -> str:
        now = self.state
        names = ("asked", "told", "in_flight", "skipped", "expired", "largest_delay", "signed_violation")
        rows = [(name, short(np.asarray(getattr(now, name)))) for name in names]
        return TextTable(("", ""), rows, title=f"LiveLearner: {type(self._learner).__name__}").to_html()

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
            recorded = self._recorded
            if recorded.interrupted is not None:
                recorded.finish_interrupted()
            memory = recorded.memory
            window = memory.window
            if len(window.open) >= window.max_in_flight:
                window.require_room()
            change = memory.change_of_ask(self._learner.ask(memory.state), self._life)
            recorded.apply(change, self._lock)
            return change.token

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
        if feedback is None or not (
            type(feedback) is Feedback
            and loss is None
            and constraint is None
            and loss_parameters is None
            and len(constraint_parameters) == 0
        ):
            with self._turn():
                self._recorded.finish_interrupted()
                token = self._recorded.memory.window.find(token)
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
        with self._turn(), np.errstate(all="ignore"):  # non-finite numbers are refused below, with a message
            recorded = self._recorded
            if recorded.interrupted is not None:
                recorded.finish_interrupted()
            memory = recorded.memory
            number = memory.window.find(token).number
            if hint is not None:
                feedback = feedback._replace(hint=hint)
            feedback = self._check.accept(feedback, number)
            state = self._learner.update(memory.state, feedback)
            change = memory.change_of_tell(number, state, feedback.constraint, feedback.loss)
            recorded.apply(change, self._lock)

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
            recorded = self._recorded
            recorded.finish_interrupted()
            recorded.apply(recorded.memory.change_of_skip(recorded.memory.window.find(token).number), self._lock)

    # --- what can be read ------------------------------------------------------------------------------------

    @property
    def state(self) -> LiveState:
        """The learner at this moment, in a view that does not change later."""
        with self._turn():
            self._recorded.finish_interrupted()
            return self._recorded.memory.view(self._learner)

    @property
    def in_flight(self) -> tuple[Token, ...]:
        """The open tokens, oldest first: after a restart, what is still to be told or skipped."""
        with self._turn():
            self._recorded.finish_interrupted()
            return tuple(self._recorded.memory.window.open.values())

    # --- coming up -------------------------------------------------------------------------------------------

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
        live = cls(learner, problem, on_broken_bound=on_broken_bound, checkpoint_after=checkpoint_after)
        return live._load(Path(path), None if journal is None else Path(journal), fsync=fsync)

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
        live = cls(
            learner,
            problem,
            max_in_flight=max_in_flight,
            expire_after=expire_after,
            on_broken_bound=on_broken_bound,
            checkpoint_after=checkpoint_after,
        )
        return live._open(Path(path), Path(journal), fsync=fsync)


def _age(value: int) -> int:
    """expire_after: 0 means that feedback must come before the next ask."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError("expire_after", f"{value!r} is not an age", "Give a whole number of at least 0")
    return int(value)
