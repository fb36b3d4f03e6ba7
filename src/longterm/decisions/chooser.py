"""A rule in a service: requests are answered at once, and outcomes are reported when they arrive.

    choice = chooser.act(context, costs=…)
    chooser.settle(choice, reward=…, cost=…)

Outcomes may be late, in any order, in two parts (the cost now, the reward later), or never come (`skip`).

**Files.** A journal holds every call since the last save and is written before the call takes effect. A call that has
returned survives the death of the process, and with `fsync` that of the machine. One process writes a journal. A long
journal is replaced by a shorter one. **Epochs.** A process that starts without the end of its journal gives out the
numbers of lost requests again. So every process has an epoch of its own and refuses choices of epochs that its files do
not know.

**Threads and signals.** One lock makes every call atomic. If a signal handler raises inside a call, the call is undone
or finished before the next one, depending on whether its record is in the journal. This module validates calls,
`memory` computes their effect, and `longterm.live` handles files, locks and interrupts.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.decisions.choice import (
    Choice,
    require_allowed,
    require_costs,
    require_labels,
    require_numbers,
    require_outcomes,
    require_paid,
)
from longterm.decisions.memory import CHECKPOINT_AFTER, ChooserMemory
from longterm.decisions.primal_dual import PrimalDual, RuleState
from longterm.decisions.primals import ActionOutcomes, OpenChoice
from longterm.errors import (
    AlreadyToldError,
    BrokenBoundWarning,
    HorizonWarning,
    InputError,
    SharedBudgetWarning,
    UnknownTokenError,
    WindowFullError,
)
from longterm.live.checkpoints import CheckpointAfter
from longterm.live.durable import Durable
from longterm.live.tokens import Token
from longterm.storage.lock import writing

_ACTIVE: dict[bytes, weakref.WeakSet[Chooser]] = {}
"""The choosers that answer requests and were loaded without a journal, by the checksum of their snapshot."""


class Chooser(Durable[ChooserMemory]):
    """A rule that answers requests and learns from their outcomes.

    Parameters
    ----------
    rule : PrimalDual
        The rule.
    seed : int
        For the draws: the same seed and the same requests give the same choices.
    max_in_flight : int
        The largest number of open choices; `act` raises a WindowFullError when it is reached.
    expire_after : int, optional
        The age, in requests since, at which an open choice is skipped.
    journal : path, optional
        A file for every call between two saves. An existing one is continued if it starts from a chooser like this.
    fsync : bool
        Force each record to the disk before its call returns.
    checkpoint_after : int, (int, int) or None
        Records, or records and bytes, after which the journal is replaced in the background by a short one that begins
        with the whole state. None: never, and a long journal raises a warning.

    Notes
    -----
    **Money.** With `stop=True`, the sum of the settled costs and of the bounds of open choices is within every cap
    after every call, on every sequence. The bound of a request is that of `bounds=`, else of `costs=`, else the
    budget's `largest`. A cost above its bound is recorded (the money is gone) with a BrokenBoundWarning, and the total
    overspending is at most the sum of those excesses. Warnings are issued before the call takes effect, so where
    warnings are errors nothing has changed when one is raised.

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
        max_in_flight: int = 100_000,
        expire_after: int | None = None,
        journal: str | PathLike[str] | None = None,
        fsync: bool = True,
        checkpoint_after: CheckpointAfter = CHECKPOINT_AFTER,
    ) -> None:
        super().__init__(ChooserMemory(rule, seed, max_in_flight, expire_after), checkpoint_after)
        self._warned_of_horizon = False
        self._process = os.getpid()
        self._source: bytes | None = None
        """The checksum of the snapshot, for a chooser that was loaded without a journal."""
        with writing(None if journal is None else Path(journal)) as lock:
            self._recorded.begin(lock, fsync=fsync)

    def __repr__(self) -> str:
        state, waiting = self.state, len(self._recorded.memory.pending)
        limits = self.rule.budget_set.limit(max(state.round - 1, 1)).tolist()
        money = ", ".join(
            f"{budget.name} {spent:.4g} of {limit:.4g}"
            for budget, spent, limit in zip(
                self.rule.budget_set.budgets, state.spent.value.tolist(), limits, strict=True
            )
        )
        of_all = "" if self.rule.horizon is None else f" of {self.rule.horizon}"
        requests = f"{state.round - 1}{of_all} requests"
        return f"Chooser({type(self.rule.primal).__name__}, {requests}, {waiting} open, {money})"

    @property
    def _memory(self) -> ChooserMemory:
        """The state after interrupted calls were undone or finished; hold the lock when you read it."""
        self._recorded.finish_interrupted()
        return self._recorded.memory

    @property
    def rule(self) -> PrimalDual:
        """The rule, with the present number of actions."""
        return self._recorded.memory.rule

    # --- the rounds -------------------------------------------------------------------------------------------

    def act(
        self,
        context: ArrayLike = (),
        costs: ArrayLike | None = None,
        bounds: ArrayLike | None = None,
        *,
        allowed: ArrayLike | None = None,
    ) -> Choice:
        """Answer a request.

        Parameters
        ----------
        context : array, shape (d,)
            The features of the request.
        costs : array, shape (K,) or (K, m), optional
            The expected cost of each action.
        bounds : array, same shape, optional
            The largest cost of each action; by default `costs`.
        allowed : array of bool, shape (K,), optional
            The actions that suit this request; by default all.

        Returns
        -------
        Choice
            The action. It is None if no allowed action is affordable.
        """
        with self._turn():
            memory = self._memory
            number = memory.state.round
            x = require_numbers("context", context, number).reshape(-1)
            self.rule.primal.require_context(x, number)
            announced = require_costs(self.rule, "costs", costs, number)
            most = require_costs(self.rule, "bounds", bounds, number)
            if announced is not None and most is not None and np.any(most < announced):
                raise InputError("bounds", "are below the costs", "Give the largest cost of each action", round=number)
            mask = require_allowed(allowed, self.rule.actions, number)
            if self.rule.horizon is not None and number > self.rule.horizon:
                self._warn_of_horizon()
            if self._recorded.journal is None:
                self._warn_of_sharing()
            self._skip_expired(memory, number)
            if len(memory.pending) >= memory.max_in_flight:
                raise WindowFullError(
                    f"{memory.max_in_flight} choices are open, the oldest is {next(iter(memory.pending))}. Settle or "
                    "skip some, or make the chooser with a larger max_in_flight, or with expire_after."
                )
            change = memory.act(x, announced, most, mask, self._life)
            self._recorded.apply(change, self._lock)
            assert change.opened is not None
            return self._choice(change.opened)

    def _skip_expired(self, memory: ChooserMemory, number: int) -> None:
        """Skip the open choices that are older than `expire_after`."""
        while memory.expire_after is not None and memory.pending:
            oldest = next(iter(memory.pending))
            if number - oldest <= memory.expire_after:
                return
            self._recorded.apply(memory.skip(oldest), self._lock)

    def settle(
        self,
        choice: Choice | str,
        reward: float | None = None,
        cost: ArrayLike | None = None,
        *,
        rewards: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        cost_follows: bool = False,
    ) -> None:
        """Report the outcome of a choice. Each part counts once. If this raises, nothing has changed.

        Parameters
        ----------
        choice : Choice or str
            The choice, or its text. A bare number is refused, since it does not name an epoch.
        reward : float in [0, 1], optional
            Of the action played. If it is left out it may come later, and only the cost is settled now.
        cost : float or array, shape (m,), optional
            Of the action played. If it is left out, a call with a reward settles the announced cost, unless the cost
            is settled already.
        rewards, costs : arrays, shapes (K,) and (K,) or (K, m), optional
            Of all actions, if they are known (full feedback). Costs are as announced if they are left out.
        cost_follows : bool
            The cost will be reported by a later call, so that a reward alone does not settle the announced one.
        """
        with self._turn():
            memory = self._memory
            opened = self._find(choice)
            number, has_reward = opened.round, reward is not None or rewards is not None
            if not has_reward and cost is None and costs is None:
                raise InputError(
                    "reward", "and cost are missing", "Give at least one of them, or skip() the choice", round=number
                )
            if opened.paid is not None and cost is not None:
                raise AlreadyToldError(number, "its cost was settled already", "Settle its reward only")
            if opened.outcomes is not None and has_reward:
                raise AlreadyToldError(number, "its reward was settled already", "Settle its cost only")
            paid = require_paid(self.rule, opened, cost, costs, with_reward=has_reward and not cost_follows)
            outcomes = require_outcomes(self.rule, opened, reward, rewards, costs)
            paid = paid if opened.paid is None else None
            if paid is not None:
                self._warn_of_excess(opened, paid)
            self._recorded.apply(memory.settle(number, paid, outcomes), self._lock)

    def skip(self, choice: Choice | str) -> None:
        """Give up a choice. An open cost counts as the money held back for it, and no reward is learned."""
        with self._turn():
            memory = self._memory
            self._recorded.apply(memory.skip(self._find(choice).round), self._lock)

    def teach(
        self,
        context: ArrayLike,
        rewards: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        announced: ArrayLike | None = None,
    ) -> None:
        """Learn the rewards of actions on a past request, as a warm start. No budget moves.

        Parameters
        ----------
        context : array, shape (d,)
            The features of the request.
        rewards : array, shape (K,)
            In [0, 1]; NaN for an action whose reward is not known.
        costs, announced : array, shape (K,) or (K, m), optional
            The costs of the actions, and the costs that were announced before the request. Rules that learn from
            announced costs need both.
        """
        with self._turn():
            memory = self._memory
            x = require_numbers("context", context, None).reshape(-1)
            self.rule.primal.require_context(x, memory.state.round)
            table = require_costs(self.rule, "costs", costs, None)
            K, m = self.rule.actions, self.rule.setting.resources
            seen, known = require_labels(rewards, K)
            outcomes = ActionOutcomes(seen, known, np.zeros((K, m)) if table is None else table * seen[:, None])
            listed = require_costs(self.rule, "announced", announced, None)
            self._recorded.apply(memory.teach(x, outcomes, listed), self._lock)

    def add_action(self, action: int | None = None) -> int:
        """Add an action at run time and return its index, or use a removed action again.

        Linear primals expect a new action to be like the others. Requests after this call need one more cost.
        """
        with self._turn():
            memory = self._memory
            if action is not None and action not in memory.removed:
                raise InputError("action", f"{action!r} was not removed", f"Removed are {list(memory.removed)}")
            self._recorded.apply(memory.add_action(action), self._lock)
            return self.rule.actions - 1 if action is None else action

    def remove_action(self, action: int) -> None:
        """Use an action no more. Its index stays, and open choices of it can be settled."""
        with self._turn():
            memory = self._memory
            rest = [k for k in range(self.rule.actions) if k != action and k not in memory.removed]
            if action not in range(self.rule.actions) or action in memory.removed or not rest:
                raise InputError("action", f"{action!r} cannot be removed", "Name one of at least two in use")
            self._recorded.apply(memory.remove_action(int(action)), self._lock)

    # --- starting a service -----------------------------------------------------------------------------------

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
        """Load a saved chooser and, with its journal, every call since. It continues bit for bit.

        Parameters
        ----------
        path : path
            The file that `save` wrote. It holds seed, max_in_flight and expire_after, too.
        rule : PrimalDual
            Made as the saved one was. If it has more actions, they are added.
        journal : path, optional
            The journal beside it. Without it, choices made after the save are refused.
        fsync : bool
            As for a new chooser.
        checkpoint_after : int, (int, int) or None
            As for a new chooser.

        Returns
        -------
        Chooser
            The chooser.

        Raises
        ------
        SnapshotError
            If the file is damaged, newer, or of another rule.
        JournalError
            If the journal is damaged, newer, or of another snapshot.
        """
        chooser = cls(rule, checkpoint_after=checkpoint_after)
        chooser._load(Path(path), None if journal is None else Path(journal), fsync=fsync)
        while chooser.rule.actions < rule.actions:
            chooser.add_action()
        if journal is None:
            chooser._source = Path(path).read_bytes()[-32:]
        return chooser

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        rule: PrimalDual,
        *,
        journal: str | PathLike[str],
        seed: int = 0,
        max_in_flight: int = 100_000,
        expire_after: int | None = None,
        fsync: bool = True,
        checkpoint_after: CheckpointAfter = CHECKPOINT_AFTER,
    ) -> Self:
        """Load the chooser saved at `path`, or create it on the first start of a service.

        Parameters
        ----------
        path : path
            The file that `save` writes. If it does not exist, the chooser begins with the calls in the journal.
        rule : PrimalDual
            Made as the saved one was. If it has more actions, they are added.
        journal : path
            The journal beside the snapshot.
        seed, max_in_flight, expire_after : int
            As for a new chooser; a snapshot has its own.
        fsync : bool
            As for a new chooser.
        checkpoint_after : int, (int, int) or None
            As for a new chooser.

        Returns
        -------
        Chooser
            The chooser.

        Raises
        ------
        SnapshotError, JournalError
            As for `load`.
        """
        chooser = cls(
            rule, seed=seed, max_in_flight=max_in_flight, expire_after=expire_after, checkpoint_after=checkpoint_after
        )
        chooser._open(Path(path), Path(journal), fsync=fsync)
        while chooser.rule.actions < rule.actions:
            chooser.add_action()
        return chooser

    # --- properties -------------------------------------------------------------------------------------------

    @property
    def seed(self) -> int:
        """The seed of the draws."""
        return self._recorded.memory.seed

    @property
    def state(self) -> RuleState:
        """The rule's state, a named tuple that does not change later."""
        with self._turn():
            return self._memory.state

    @property
    def round(self) -> int:
        """The number of the next request."""
        return self.state.round

    @property
    def spent(self) -> FloatArray:
        """The cost of settled choices as each budget counts, shape (m,)."""
        spent: FloatArray = self.state.spent.value
        return spent

    @property
    def committed(self) -> FloatArray:
        """The money spent on caps and held back for open choices, shape (m,)."""
        committed: FloatArray = self.state.committed.value
        return committed

    @property
    def prices(self) -> FloatArray:
        """λ, in reward per unit of each budget's money."""
        return self.rule.prices(self.state)

    @property
    def pending(self) -> Mapping[int, Choice]:
        """The open choices by number, oldest first."""
        with self._turn():
            return MappingProxyType({n: self._choice(opened) for n, opened in self._memory.pending.items()})

    @property
    def removed(self) -> tuple[int, ...]:
        """The actions that are not used any more."""
        with self._turn():
            return self._memory.removed

    def find(self, choice: Choice | str) -> Choice:
        """Return the open choice that a text names, or raise a TokenError that says why there is none."""
        with self._turn():
            self._recorded.finish_interrupted()
            return self._choice(self._find(choice))

    # --- helpers ----------------------------------------------------------------------------------------------

    def _choice(self, opened: OpenChoice) -> Choice:
        is_refused = opened.action < 0
        return Choice(
            opened.round,
            None if is_refused else opened.action,
            1.0 if is_refused else opened.probability,
            opened.probabilities,
            opened.prices / self.rule.setting.unit,
            opened.epoch,
        )

    def _warn_of_horizon(self) -> None:
        """Warn once that more requests come than the rule was made for."""
        if self._warned_of_horizon:
            return
        self._warned_of_horizon = True
        what = f"this rule was made for {self.rule.horizon} requests, and more are coming"
        remedy = "The caps still hold; for prices that suit the longer stream make the rule with a larger horizon"
        warnings.warn(f"{what}. {remedy}.", HorizonWarning, stacklevel=3)

    def _warn_of_sharing(self) -> None:
        """Warn once if this chooser was forked, or loaded twice, without a journal that would refuse a second writer.

        Two processes that load the same snapshot do not see each other.
        """
        if self._process == os.getpid() and self._source is None:
            return
        others = _ACTIVE.setdefault(self._source, weakref.WeakSet()) if self._source is not None else ()
        is_shared = self._process != os.getpid() or any(other is not self for other in others)
        self._process = os.getpid()
        if self._source is not None:
            _ACTIVE[self._source].add(self)
            self._source = None
        if is_shared:
            what = "this chooser is a copy of another one, and each of them spends the whole budget"
            warnings.warn(f"{what}. Give it a journal: then one process at a time can use it.", SharedBudgetWarning, 3)

    def _warn_of_excess(self, opened: OpenChoice, paid: FloatArray) -> None:
        """Warn if a cost is above the bound of its choice."""
        excess = np.max((paid - opened.bound)[self.rule.budget_set.is_cap], initial=0.0)
        if excess > 0:
            what = f"choice {opened.round} cost {excess:g} more than its bound; the cap may be exceeded by as much"
            warnings.warn(what, BrokenBoundWarning, stacklevel=3)

    def _find(self, choice: Choice | str) -> OpenChoice:
        """Return the open choice that is meant, or raise a TokenError that says why there is none."""
        memory = self._recorded.memory
        given = Token.parse(choice) if isinstance(choice, str) else choice
        number: Any = given.number if isinstance(given, (Choice, Token)) else None
        is_known = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if not is_known or not 1 <= number < memory.state.round:
            raise UnknownTokenError(
                0, f"{choice!r} is not a choice of this chooser", "Give what act() returned, or its text"
            )
        opened = memory.pending.get(int(number))
        epoch = given.epoch if isinstance(given, Choice) else given.life
        if epoch != (memory.epoch_of(int(number)) if opened is None else opened.epoch):
            raise UnknownTokenError(
                int(number),
                "it is of another epoch: made by another chooser, or after a save and lost with the journal",
                "Drop it; load with the journal to keep such choices",
            )
        if opened is None:
            raise AlreadyToldError(int(number), "it is settled, skipped or was refused", "Do nothing: it counts once")
        return opened
