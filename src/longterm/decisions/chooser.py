"""A rule at work: requests are answered at once, outcomes come when they come.

    choice = chooser.act(context, costs=…)
    chooser.settle(choice, reward=…, cost=…)

Outcomes may be late, in any order, in two parts (the cost now, the reward later), or never come (`forget`).

**Files.** A journal has every call since the last save, written before it takes effect: what was acknowledged survives
the death of the process (with `fsync`, of the machine). One process writes a journal. It is replaced by a shorter one
when it has become long. **Lives.** Whoever comes up without all of its journal gives the numbers of lost requests out
again: every process has a `life` of its own, and refuses the choices of lives that its files do not know.

Thread rule: one lock; every call is atomic. An exception may come out of any instruction (a signal handler that
raises): what was interrupted is undone or finished before the next call, by whether its record is in the journal.
Here calls are checked; `memory` works out what they change, and `longterm.live` sees to files, locks and interrupts.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.decisions.choice import Choice, Pending, cost_table, numbers, paid_of, rewards_of, told_of
from longterm.decisions.memory import CHECKPOINT_AFTER, ChooserMemory
from longterm.decisions.primal_dual import Open, PrimalDual, State
from longterm.errors import AlreadyToldError, BrokenBoundWarning, InputError, UnknownTokenError, WindowFullError
from longterm.live.checkpoints import CheckpointAfter
from longterm.live.durable import Durable
from longterm.live.tokens import Token
from longterm.storage.lock import writing


class Chooser(Durable[ChooserMemory]):
    """Answers requests by a rule, and settles them.

    Parameters
    ----------
    rule : PrimalDual
        The rule.
    seed : int
        For the draws: the same seed and the same requests give the same choices.
    max_open : int
        How many choices may be open; `act` raises a WindowFullError when they are.
    expire_after : int, optional
        The age, in requests since, at which a choice that is still open is forgotten.
    journal : path, optional
        A file for every call between two saves. One that exists is continued, if it starts from a chooser as fresh
        as this.
    fsync : bool
        Whether each record is forced to the disk before its call returns.
    checkpoint_after : int, (int, int) or None
        Records, or records and bytes, after which the journal is replaced by a short one that begins with the whole
        state, in the background. None: never; a long journal is warned of.

    Notes
    -----
    **What is promised about money.** With `stop=True`, the sum of what was settled and of the bounds of what is
    open is within every cap after every call, on every sequence. So no cap is broken if no request costs more than
    its bound: what `bounds=` said, else what `costs=` said, else the budget's `largest`. A cost above its bound is
    taken (the money is gone), with a BrokenBoundWarning, and the overspending in all is at most the sum of those
    excesses.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.decisions import Budget, Chooser, EntropicDual, PrimalDual, ThompsonSampling
    >>> budget = Budget(limit=3.0, largest=1.0, above_cheapest=True)
    >>> rule = PrimalDual(ThompsonSampling(actions=2, features=1), EntropicDual(start=0.5), budget, horizon=10)
    >>> chooser = Chooser(rule, seed=4)
    >>> for _ in range(10):
    ...     choice = chooser.act([1.0], costs=[0.1, 1.0])
    ...     chooser.settle(choice, reward=float(choice.action))
    >>> bool(chooser.spent[0] <= 3.0), chooser.round
    (True, 11)
    """

    def __init__(
        self,
        rule: PrimalDual,
        *,
        seed: int = 0,
        max_open: int = 100_000,
        expire_after: int | None = None,
        journal: str | PathLike[str] | None = None,
        fsync: bool = True,
        checkpoint_after: CheckpointAfter = CHECKPOINT_AFTER,
    ) -> None:
        self.rule = rule
        super().__init__(ChooserMemory(rule, seed, max_open, expire_after), checkpoint_after)
        with writing(None if journal is None else Path(journal)) as lock:
            self._recorded.begin(lock, fsync=fsync)

    @property
    def _memory(self) -> ChooserMemory:
        """What there is, with nothing left half-done: to be asked for with the lock in hand."""
        self._recorded.finish_interrupted()
        return self._recorded.memory

    # --- the rounds -------------------------------------------------------------------------------------------

    def act(self, context: ArrayLike = (), costs: ArrayLike | None = None, bounds: ArrayLike | None = None) -> Choice:
        """Answer a request.

        Parameters
        ----------
        context : array, shape (d,)
            What is known of the request.
        costs : array, shape (K,) or (K, m), optional
            What each action will cost, or is expected to.
        bounds : array, same shape, optional
            What each action can cost at most; by default `costs`.

        Returns
        -------
        Choice
        """
        with self._turn():
            memory = self._memory
            number = memory.state.round
            x = numbers("context", context, number).reshape(-1)
            self.rule.primal.check(x, number)
            announced = cost_table(self.rule, "costs", costs, number)
            most = cost_table(self.rule, "bounds", bounds, number)
            if announced is not None and most is not None and np.any(most < announced):
                raise InputError("bounds", "are below the costs", "Give what an action can cost at most", round=number)
            while memory.expire_after is not None and memory.pending:
                oldest = next(iter(memory.pending))
                if number - oldest <= memory.expire_after:
                    break
                self._recorded.apply(memory.change_of_forget(oldest), self._lock)
            if len(memory.pending) >= memory.max_open:
                raise WindowFullError(
                    f"{memory.max_open} choices are open, the oldest is {next(iter(memory.pending))}. Settle or forget "
                    "some, or make the chooser with a larger max_open, or with expire_after."
                )
            change = memory.change_of_act(x, announced, most, self._life)
            self._recorded.apply(change, self._lock)
            assert change.opened is not None
            return self._choice(number, change.opened)

    def settle(
        self,
        choice: Choice | str,
        reward: float | None = None,
        cost: ArrayLike | None = None,
        *,
        rewards: ArrayLike | None = None,
        costs: ArrayLike | None = None,
    ) -> None:
        """What came of a choice. Each part counts once; if this raises, nothing has changed.

        Parameters
        ----------
        choice : Choice or str
            The choice, or its text. A bare number does not say of which life it is, and is refused.
        reward : float in [0, 1], optional
            Of the action played. Left out: it comes later, and only the cost is settled now.
        cost : float or array, shape (m,), optional
            Of the action played. Left out: what was announced, if this call settles the reward and nothing settled
            the cost.
        rewards, costs : arrays, shapes (K,) and (K,) or (K, m), optional
            Of all actions, where they are known (full feedback); costs as announced where left out.
        """
        with self._turn():
            memory = self._memory
            number, pending = self._find(choice)
            opened = pending.open
            if reward is None and rewards is None and cost is None and costs is None:
                raise InputError(
                    "reward", "and cost are missing", "Give what came, or forget() the choice", round=number
                )
            if pending.cost is not None and cost is not None:
                raise AlreadyToldError(number, "its cost was settled already", "Settle its reward only")
            if pending.told is not None and (reward is not None or rewards is not None):
                raise AlreadyToldError(number, "its reward was settled already", "Settle its cost only")
            paid = paid_of(self.rule, pending, cost, costs, number, needs=reward is not None or rewards is not None)
            lesson = told_of(self.rule, opened, reward, rewards, costs, number)
            change = memory.change_of_settle(number, paid if pending.cost is None else None, lesson)
            self._recorded.apply(change, self._lock)
        if paid is not None and np.any((paid > opened.bound * (1 + 1e-12)) & (self.rule.books.sign > 0)):
            over = np.maximum(paid - opened.bound, 0.0)[self.rule.books.sign > 0]
            warnings.warn(
                f"choice {number} cost {over.max():g} more than its bound; the cap may be missed by as much",
                BrokenBoundWarning,
                stacklevel=2,
            )

    def forget(self, choice: Choice | str) -> None:
        """Nothing (more) will come of a choice: an open cost counts as what was held back, no reward is learned."""
        with self._turn():
            memory = self._memory
            self._recorded.apply(memory.change_of_forget(self._find(choice)[0]), self._lock)

    def teach(self, context: ArrayLike, rewards: ArrayLike, costs: ArrayLike | None = None) -> None:
        """Labels of all actions on a request of the past: the primal learns, no budget moves. For warm starts."""
        with self._turn():
            memory = self._memory
            x = numbers("context", context, None).reshape(-1)
            self.rule.primal.check(x, memory.state.round)
            table = cost_table(self.rule, "costs", costs, memory.state.round)
            K, m = self.rule.actions, self.rule.game.resources
            outcomes = rewards_of(rewards, K, None), np.zeros((K, m)) if table is None else table
            self._recorded.apply(memory.change_of_teach(x, *outcomes), self._lock)

    # --- coming up --------------------------------------------------------------------------------------------

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        rule: PrimalDual,
        *,
        journal: str | PathLike[str] | None = None,
        fsync: bool = True,
        checkpoint_after: CheckpointAfter = CHECKPOINT_AFTER,
    ) -> Self:
        """The chooser that was saved, and with its journal everything since: it goes on bit for bit.

        Parameters
        ----------
        path : path
            What `save` wrote. It holds seed, max_open and expire_after, too.
        rule : PrimalDual
            Made as the saved one was.
        journal : path, optional
            The journal beside it. Without, choices made after the save are refused.
        fsync : bool
            As for a new chooser.
        checkpoint_after : int, (int, int) or None
            As for a new chooser.

        Returns
        -------
        Chooser
            The chooser, ready to go on.

        Raises
        ------
        SnapshotError
            Saying what is wrong with the file: it is damaged, newer, or of another rule.
        JournalError
            The same of the journal.
        """
        chooser = cls(rule, checkpoint_after=checkpoint_after)
        return chooser._load(Path(path), None if journal is None else Path(journal), fsync=fsync)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        rule: PrimalDual,
        *,
        journal: str | PathLike[str],
        seed: int = 0,
        max_open: int = 100_000,
        expire_after: int | None = None,
        fsync: bool = True,
        checkpoint_after: CheckpointAfter = CHECKPOINT_AFTER,
    ) -> Self:
        """How a service comes up, the first time and every time after: the chooser of `path`, or a new one.

        Parameters
        ----------
        path : path
            What `save` writes; if there is nothing yet, the chooser begins with what the journal knows.
        rule : PrimalDual
            Made as the saved one was.
        journal : path
            The journal that lies beside the snapshot.
        seed, max_open, expire_after : int
            As for a new chooser; a snapshot has its own.
        fsync : bool
            As for a new chooser.
        checkpoint_after : int, (int, int) or None
            As for a new chooser.

        Returns
        -------
        Chooser
            The chooser, ready to go on.

        Raises
        ------
        SnapshotError, JournalError
            As for `load`.
        """
        chooser = cls(rule, seed=seed, max_open=max_open, expire_after=expire_after, checkpoint_after=checkpoint_after)
        return chooser._open(Path(path), Path(journal), fsync=fsync)

    # --- what can be read -------------------------------------------------------------------------------------

    @property
    def seed(self) -> int:
        """Of the draws."""
        return self._recorded.memory.seed

    @property
    def state(self) -> State:
        """The rule's state, a named tuple that does not change later."""
        with self._turn():
            return self._memory.state

    @property
    def round(self) -> int:
        """The number of the next request."""
        return self.state.round

    @property
    def spent(self) -> FloatArray:
        """What settled choices cost, as each budget counts, shape (m,)."""
        return self.state.spent.value

    @property
    def committed(self) -> FloatArray:
        """Spent on caps, and held back for what is open."""
        return self.state.committed.value

    @property
    def prices(self) -> FloatArray:
        """λ, in reward per unit of each budget's money."""
        return self.rule.prices(self.state)

    @property
    def pending(self) -> Mapping[int, Choice]:
        """What is not settled, by number, oldest first."""
        with self._turn():
            return MappingProxyType({n: self._choice(n, p.open) for n, p in self._memory.pending.items()})

    # --- inside -----------------------------------------------------------------------------------------------

    def _choice(self, number: int, opened: Open) -> Choice:
        refused = opened.action < 0
        return Choice(
            number,
            None if refused else opened.action,
            1.0 if refused else float(opened.probabilities[opened.action]),
            opened.probabilities,
            opened.request.prices / self.rule.game.unit,
            self._recorded.memory.life_of(number),
        )

    def _find(self, choice: Choice | str) -> tuple[int, Pending]:
        memory = self._recorded.memory
        given = Token.parse(choice) if isinstance(choice, str) else choice
        number: Any = given.number if isinstance(given, (Choice, Token)) else None
        known = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if not known or not 1 <= number < memory.state.round:
            raise UnknownTokenError(
                0, f"{choice!r} is not a choice of this chooser", "Give what act() returned, or its text"
            )
        number = int(number)
        if given.life != memory.life_of(number):
            raise UnknownTokenError(
                number,
                "it is of another life: made by another chooser, or after a save and lost with the journal",
                "Drop it; load with the journal to keep such choices",
            )
        found = memory.pending.get(number)
        if found is None:
            raise AlreadyToldError(
                number, "it is settled, forgotten or was refused", "Nothing is to be done: it counts once"
            )
        return number, found
