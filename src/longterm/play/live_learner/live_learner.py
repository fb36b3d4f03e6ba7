"""Live learners: decisions are asked for, and feedback comes late, in any order, or never.

Round s is the s-th `ask`; it plays x_s, the learner's decision at that moment. The k-th `tell`, of whichever round s,
is the k-th update of the learner, with the steps of its own counter k and the feedback that f_s and g_s give at x_s:

    (state after k tells) = update( state after k − 1 tells, feedback of round s at x_s )

`longterm.theory.lemma_5_delayed` bounds what the delay costs; see `docs/guides/late_feedback.md`.

Every public call is atomic, in one order for all threads and processes: that of `storage.replica`. Functions given to
`tell` run in the caller's thread, outside of any lock or transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

import numpy as np

from longterm._base.arrays import Array
from longterm._base.display import TextTable, short
from longterm.errors import InputError, TokenError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import FeedbackCheck, OnBrokenBound
from longterm.learners.interface.learner import Learner, require_learner
from longterm.play.live_learner.learner_copy import Change, LearnerCopy
from longterm.play.live_learner.live_state import LiveState, Oracle, feedback_at
from longterm.problems import Problem
from longterm.storage.clock import DAY, SYSTEM, Clock
from longterm.storage.engine import Durability
from longterm.storage.replica import Replica
from longterm.storage.rounds import NoChange, OpenRound, Window
from longterm.storage.stored_object import Metrics, Stored
from longterm.storage.tokens import Token, require_key


class LiveLearner(Stored[LearnerCopy]):
    """One learner, asked and told in any order, by many threads and processes.

    This constructor makes a learner in memory. `LiveLearner.open` makes one whose state lives in a database.

    Parameters
    ----------
    learner : Learner
        The rule and its hyper-parameters.
    problem : Problem, optional
        Lets `tell` take the parameters of a round. Its constants bound the feedback.
    max_in_flight : int
        The largest number of open rounds; beyond it `ask` raises a WindowFullError.
    expire_after : int
        The age, in rounds asked for since, after which a round expires: the τ of the theorem.
    max_age : float, optional
        The age in seconds after which a round expires.
    remember : float
        The seconds for which an idempotency key is remembered; at least while its round is open.
    on_broken_bound : {"raise", "warn"}
        "raise" refuses feedback above a declared bound; "warn" takes it with a BrokenBoundWarning.
    clock : Clock
        The time; tests give their own.

    Raises
    ------
    InputError
        If an argument cannot be used, or the learner cannot play the problem.

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
        max_age: float | None = None,
        remember: float = DAY,
        on_broken_bound: OnBrokenBound = "raise",
        clock: Clock = SYSTEM,
    ) -> None:
        require_learner(learner)
        if problem is not None:
            learner.check(problem)
        self._learner = learner
        self._problem = problem
        window = Window.of(max_in_flight, None, max_age, remember)._replace(expire_after=_require_age(expire_after))
        copy = LearnerCopy(learner, window)
        self._check = FeedbackCheck(learner, learner.ask(copy.state.state), problem, on_broken_bound)
        self._replica = Replica(copy, {"learner": learner}, clock=clock)
        self._replica.expire = copy.expiring

    @classmethod
    def open(
        cls,
        url: str | PathLike[str],
        learner: Learner[Any],
        problem: Problem | None = None,
        *,
        name: str = "learner",
        durability: Durability = "commit",
        max_in_flight: int = 1024,
        expire_after: int = 1000,
        max_age: float | None = None,
        remember: float = DAY,
        on_broken_bound: OnBrokenBound = "raise",
        clock: Clock = SYSTEM,
    ) -> Self:
        """Return the learner with this name in a database, or create it there.

        Call it when a service starts, in every process. All of them share one learner.

        Parameters
        ----------
        url : path or str
            A file for SQLite, or a URL ``postgresql://…`` (extra `postgres`).
        learner : Learner
            With the hyper-parameters that the stored one was created with.
        problem : Problem, optional
            As for a new learner.
        name : str
            Its name in the database, which may hold many objects.
        durability : {"commit", "relaxed"}
            "commit": a call is on the disk before it returns. "relaxed": it survives the death of the process, but not
            always that of the machine.
        max_in_flight, expire_after, max_age, remember, on_broken_bound, clock
            As for a new learner; give the same in every process.

        Returns
        -------
        LiveLearner
            The learner, ready to go on.

        Raises
        ------
        DatabaseError
            If the database cannot be used, or holds another object with this name.
        """
        live = cls(
            learner,
            problem,
            max_in_flight=max_in_flight,
            expire_after=expire_after,
            max_age=max_age,
            remember=remember,
            on_broken_bound=on_broken_bound,
            clock=clock,
        )
        live._replica.attach(url, name, durability)
        return live

    def __repr__(self) -> str:
        now = self.state
        database = "" if self._replica.database is None else f", name={self._replica.name!r}"
        return (
            f"LiveLearner({type(self._learner).__name__}, d={np.shape(now.x)[-1]}, asked={now.asked}, told={now.told}, "
            f"in_flight={now.in_flight}, skipped={now.skipped}, expired={now.expired}{database})"
        )

    def _repr_html_(self) -> str:
        now = self.state
        names = ("asked", "told", "in_flight", "skipped", "expired", "largest_delay", "signed_violation")
        rows = [(name, short(np.asarray(getattr(now, name)))) for name in names]
        return TextTable(("", ""), rows, title=f"LiveLearner: {type(self._learner).__name__}").to_html()

    # --- rounds ----------------------------------------------------------------------------------------------

    def ask(self, key: str | None = None) -> Token:
        """Open a round.

        Parameters
        ----------
        key : str, optional
            An idempotency key: an ask with the key of another one returns its round, for as long as `remember` says.

        Returns
        -------
        Token
            Its `x` is the decision. Its text, ``str(token)``, can travel with the request.

        Raises
        ------
        WindowFullError
            If as many rounds are in flight as were allowed.
        """
        change = self._replica.transact(self._opening, require_key(key))
        return Token(change.number, change.round.content, change.round.epoch)

    def _opening(self, key: str | None) -> Change | NoChange[Array]:
        copy, now = self._replica.copy, self._replica.now()
        return copy.repeated(key, now) or copy.asking(self._replica.epoch, now, key)

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
        position: tuple[str, int] | None = None,
    ) -> None:
        """Give the feedback of a round, in one of three ways, and close it.

        When this returns, the update is made and stored. If it raises, nothing has changed.

        Parameters
        ----------
        token : Token or str
            The round: what `ask` returned, or its text.
        feedback : Feedback, optional
            The first way: evaluated by the caller at token.x.
        loss, constraint : callable, optional
            The second way: functions from x to (value, gradient), which are called at token.x.
        loss_parameters, constraint_parameters : sequence of array, optional
            The third way: the problem's parameters of that round.
        hint : array, optional
            A forecast of the gradient of the next loss, for learners that follow one (`learners.optimistic.hints`).
        position : (str, int), optional
            The partition of a queue and the number of the message there. A message counts once, however often the
            queue delivers it. Numbers must grow along a partition.

        Raises
        ------
        TokenError
            If the token is unknown, was told or skipped already, or has expired.
        RepeatedPositionError
            If the object has applied this position, or a later one of the partition.
        InputError
            If the feedback cannot be used.
        """
        place = None if position is None else self.check_position(position)
        if feedback is None or not (
            type(feedback) is Feedback
            and loss is None
            and constraint is None
            and loss_parameters is None
            and constraint_parameters == ()
        ):
            try:
                number, found = self._replica.look(self._find, token)
            except TokenError:
                self.check_position(position)  # another process may have applied the message meanwhile
                raise
            feedback = feedback_at(
                found.content,
                number,
                self._problem,
                feedback=feedback,
                loss=loss,
                constraint=constraint,
                loss_parameters=loss_parameters,
                constraint_parameters=constraint_parameters,
            )
        if hint is not None:
            feedback = feedback._replace(hint=hint)
        with np.errstate(all="ignore"):  # non-finite numbers are refused with an error
            self._replica.apply_message(place, self._telling, token, feedback)

    def _find(self, token: Token | str) -> tuple[int, OpenRound[Array]]:
        return self._replica.copy.find(token, self._replica.now())

    def _telling(self, token: Token | str, feedback: Feedback) -> Change:
        number, _ = self._find(token)
        return self._replica.copy.telling(number, self._check.accept(feedback, number))

    def skip(self, token: Token | str) -> None:
        """Close a round whose feedback will not come. The learner does not move.

        Parameters
        ----------
        token : Token or str
            The round.

        Raises
        ------
        TokenError
            As for `tell`.
        """
        self._replica.transact(self._skipping, token)

    def _skipping(self, token: Token | str) -> Change:
        number, _ = self._find(token)
        return self._replica.copy.skipping(number)

    # --- views -----------------------------------------------------------------------------------------------

    @property
    def state(self) -> LiveState:
        """The learner at this moment, in a view that does not change later."""
        found: LiveState = self._replica.look(self._replica.copy.view)
        return found

    def metrics(self) -> Metrics:
        """Return figures for monitoring. `price` is the largest multiplier, `violation` the signed violation."""
        now = self.state
        figures: Metrics = {"requests": now.asked, "open": now.in_flight, "told": now.told}
        figures |= {"skipped": now.skipped, "expired": now.expired, "loss": float(np.max(now.cumulative_loss))}
        figures["violation"] = float(np.max(now.signed_violation))
        return figures if now.multiplier is None else figures | {"price": float(np.max(now.multiplier))}

    @property
    def in_flight(self) -> tuple[Token, ...]:
        """The open tokens, oldest first: after a restart, those that are still to be told or skipped."""
        found: tuple[Token, ...] = self._replica.look(self._replica.copy.tokens)
        return found


def _require_age(value: int) -> int:
    """Return `expire_after`. 0 means that feedback must come before the next ask."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError("expire_after", f"{value!r} is not an age", "Give a whole number of at least 0")
    return int(value)
