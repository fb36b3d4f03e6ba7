"""A rule at work: requests are answered at once, outcomes come when they come.

    choice = chooser.act(context, costs=…)
    chooser.settle(choice, reward=…, cost=…)

Outcomes may be late, in any order, in two parts (the cost now, the reward later), or never come (`forget`).

**Files.** A journal has every call since the last save, written before it takes effect: what was acknowledged survives
the death of the process (with `fsync`, of the machine). A record is a call, not a state (a belief has (Kd)²
numbers), and of an act the action and its probabilities too, so that no replay depends on the last bit of a sum.
One process writes a journal. **Lives.** A chooser that is loaded without its journal does not know what came after
the save, and gives the numbers of those requests out again: it has a new `life`, and refuses the choices of the
other.

Thread rule: one lock; every call is atomic. An exception may come out of any instruction (a signal handler that
raises): what was interrupted is undone or finished before the next call, by whether its record is in the journal.
"""

from __future__ import annotations

import secrets
import threading
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray
from longterm.decisions.choice import Choice, Pending, Told, arrays_of, pending_of
from longterm.decisions.outcomes import cost_table, numbers, paid_of, rewards_of, told_of
from longterm.decisions.primal_dual import Open, PrimalDual, State
from longterm.decisions.primals import Request
from longterm.errors import (
    AlreadyToldError,
    BrokenBoundWarning,
    InputError,
    SnapshotError,
    UnknownTokenError,
    WindowFullError,
)
from longterm.live.journal import Follows, Journal, recover
from longterm.storage.lock import FileLock, writing
from longterm.storage.packing import pack, restored_state, state_arrays, unpack
from longterm.storage.snapshot import Snapshot, identity_of, read_snapshot, write_snapshot
from longterm.storage.specification import difference, specification

KIND = "chooser"
VERSION = 1


class _Change(NamedTuple):
    """What a call does, ready to be put in place: doing it twice is doing it once."""

    sequence: int
    state: State
    number: int
    """Of the request that it is about; 0 for none."""
    pending: Pending | None
    """What is open of it afterwards; None: nothing."""
    generator: Mapping[str, Any]
    """Where the draws were before."""


class Chooser:
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
    ) -> None:
        self.rule = rule
        self.seed = validate.seed("seed", seed)
        self._max_open = validate.count("max_open", max_open)
        self._expire_after = None if expire_after is None else validate.count("expire_after", expire_after)
        self._rng = np.random.default_rng(seed)
        self._state = rule.init()
        self._pending: dict[int, Pending] = {}
        self._lives = [(0, 1)]  # life and its first number
        self._sequence = 0
        self._change: _Change | None = None
        self._lock = threading.Lock()
        self._journal: Journal | None = None
        if journal is not None:
            with writing(Path(journal)) as lock:
                self._recover(lock, identity_of(self._snapshot().encode()), None, fsync)

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
        with self._lock:
            self._finish()
            while self._expire_after is not None and self._pending:
                oldest = next(iter(self._pending))
                if self._state.round - oldest <= self._expire_after:
                    break
                self._forget(oldest)
            number = self._state.round
            x = numbers("context", context, number).reshape(-1)
            self.rule.primal.check(x, number)
            announced = cost_table(self.rule, "costs", costs, number)
            most = cost_table(self.rule, "bounds", bounds, number)
            if announced is not None and most is not None and np.any(most < announced):
                raise InputError("bounds", "are below the costs", "Give what an action can cost at most", round=number)
            if len(self._pending) >= self._max_open:
                raise WindowFullError(
                    f"{self._max_open} choices are open, the oldest is {next(iter(self._pending))}. Settle or forget "
                    "some, or make the chooser with a larger max_open, or with expire_after."
                )
            opened = self._act(x, announced, most)
            return self._choice(number, opened)

    def settle(
        self,
        choice: Choice | int,
        reward: float | None = None,
        cost: ArrayLike | None = None,
        *,
        rewards: ArrayLike | None = None,
        costs: ArrayLike | None = None,
    ) -> None:
        """What came of a choice. Each part counts once; if this raises, nothing has changed.

        Parameters
        ----------
        choice : Choice or int
            The choice, or its number.
        reward : float in [0, 1], optional
            Of the action played. Left out: it comes later, and only the cost is settled now.
        cost : float or array, shape (m,), optional
            Of the action played. Left out: what was announced, if this call settles the reward and nothing settled
            the cost.
        rewards, costs : arrays, shapes (K,) and (K,) or (K, m), optional
            Of all actions, where they are known (full feedback); costs as announced where left out.
        """
        with self._lock:
            self._finish()
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
            self._settle(number, paid if pending.cost is None else None, lesson)
        if paid is not None and np.any(paid > opened.bound * (1 + 1e-12)) and np.any(opened.bound > 0):
            over = np.maximum(paid - opened.bound, 0.0)[self.rule.books.sign > 0]
            if over.sum() > 0:
                warnings.warn(
                    f"choice {number} cost {over.max():g} more than its bound; the cap may be missed by as much",
                    BrokenBoundWarning,
                    stacklevel=2,
                )

    def forget(self, choice: Choice | int) -> None:
        """Nothing (more) will come of a choice: an open cost counts as what was held back, no reward is learned."""
        with self._lock:
            self._finish()
            self._forget(self._find(choice)[0])

    def teach(self, context: ArrayLike, rewards: ArrayLike, costs: ArrayLike | None = None) -> None:
        """Labels of all actions on a request of the past: the primal learns, no budget moves. For warm starts."""
        with self._lock:
            self._finish()
            x = numbers("context", context, None).reshape(-1)
            self.rule.primal.check(x, self._state.round)
            table = cost_table(self.rule, "costs", costs, self._state.round)
            K, m = self.rule.actions, self.rule.game.resources
            self._teach(x, rewards_of(rewards, K, None), np.zeros((K, m)) if table is None else table)

    # --- what a call does -------------------------------------------------------------------------------------

    def _act(
        self,
        x: FloatArray,
        costs: FloatArray | None,
        bounds: FloatArray | None,
        drawn: tuple[int, FloatArray] | None = None,
    ) -> Open:
        before = self._rng.bit_generator.state
        number = self._state.round
        try:
            state, opened = self.rule.act(self._state, x, costs, bounds, self._rng, drawn)
        except BaseException:
            self._rng.bit_generator.state = before
            raise
        pending = None if opened.action < 0 else Pending(opened, None, None)
        given = {"context": x} | _some(costs=costs, bounds=bounds)
        self._make(
            _Change(self._sequence + 1, state, number, pending, before),
            {"op": "act", "action": opened.action},
            given | {"probabilities": opened.probabilities},
        )
        return opened

    def _settle(self, number: int, paid: FloatArray | None, lesson: Told | None) -> None:
        """`paid` and `lesson` are what is new."""
        pending, state = self._pending[number], self._state
        opened = pending.open
        given = _some(paid=paid)
        if lesson is not None:
            given |= dict(zip(("seen", "rewards", "costs"), lesson, strict=True))
        if paid is not None:
            state = self.rule.charge(state, opened, paid)
        settled = paid if pending.cost is None else pending.cost
        lesson = pending.told if lesson is None else lesson
        rest: Pending | None = Pending(opened, settled, lesson)
        if lesson is not None and settled is not None:
            seen, gained, known = lesson
            known = known.copy()
            known[opened.action] = settled
            state = self.rule.learn(state, opened, seen, gained, known)
            rest = None
        change = _Change(self._sequence + 1, state, number, rest, self._rng.bit_generator.state)
        self._make(change, {"op": "settle", "number": number}, given)

    def _forget(self, number: int) -> None:
        pending, state = self._pending[number], self._state
        if pending.cost is None:
            state = self.rule.charge(state, pending.open, pending.open.bound)
        change = _Change(self._sequence + 1, state, number, None, self._rng.bit_generator.state)
        self._make(change, {"op": "forget", "number": number}, {})

    def _teach(self, x: FloatArray, rewards: FloatArray, costs: FloatArray) -> None:
        K, m = self.rule.actions, self.rule.game.resources
        everything = np.ones(K, dtype=np.bool_)
        prices = self.rule.dual.prices(self._state.dual, self.rule.game)
        request = Request(self._state.round, x, costs / self.rule.game.unit, prices, everything)
        opened = Open(request, 0, np.ones(K) / K, np.zeros(m), costs, np.zeros(m), np.zeros(m))
        state = self.rule.learn(self._state, opened, everything, rewards, costs)
        change = _Change(self._sequence + 1, state, 0, None, self._rng.bit_generator.state)
        self._make(change, {"op": "teach"}, {"context": x, "rewards": rewards, "costs": costs})

    def _make(self, change: _Change, what: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Write it to the journal, then let it happen."""
        self._change = change
        try:
            if self._journal is not None:
                self._journal.append(pack(what, arrays), change.sequence)
            self._put(change)
        except BaseException:
            self._finish()
            raise
        self._change = None

    def _put(self, change: _Change) -> None:
        self._state = change.state
        if change.pending is not None:
            self._pending[change.number] = change.pending
        else:
            self._pending.pop(change.number, None)
        self._sequence = change.sequence

    def _finish(self) -> None:
        """Undo or finish what was interrupted, by whether it is in the journal."""
        change = self._change
        if change is None:
            return
        if self._journal is not None:
            self._journal.settle()
        if self._journal is None or self._journal.at.sequence == change.sequence:
            self._put(change)
        else:
            self._rng.bit_generator.state = change.generator
        self._change = None

    # --- files ------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything, open choices included, to `path` (atomically), and start the journal afresh."""
        with self._lock:
            self._finish()
            if self._journal is not None:
                if Path(path).resolve() == self._journal.path.resolve():
                    raise InputError("path", f"{path} is the journal", "Save under another name, beside it")
                self._journal.sync()
            identity = write_snapshot(Path(path), self._snapshot())
            if self._journal is not None:
                self._journal.rotate(identity)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        rule: PrimalDual,
        *,
        journal: str | PathLike[str] | None = None,
        fsync: bool = True,
    ) -> Self:
        """The chooser that was saved, and with its journal everything since: it goes on bit for bit.

        Parameters
        ----------
        path : path
            What `save` wrote.
        rule : PrimalDual
            Made as the saved one was.
        journal : path, optional
            The journal beside it. Without, a new life begins: choices made after the save are refused.
        fsync : bool
            As for a new chooser.
        """
        path = Path(path)
        with writing(None if journal is None else Path(journal)) as lock:
            snapshot, identity = read_snapshot(path, KIND, VERSION)
            other = difference(snapshot.metadata.get("rule"), specification(rule), "rule")
            if other is not None:
                raise SnapshotError(path, "another rule", other, "Make the rule with the saved hyper-parameters")
            try:
                kept = snapshot.metadata
                made = cls(rule, seed=kept["seed"], max_open=kept["max_open"], expire_after=kept["expire_after"])
                made._restore(kept, snapshot.arrays)
                follows = kept["follows"]
            except (KeyError, ValueError, TypeError, IndexError) as error:
                raise SnapshotError(path, "corrupted", f"the state makes no sense: {error}", "Restore a copy") from None
            if lock is None:
                made._lives.append((secrets.randbits(48) + 1, made._state.round))
            else:
                made._recover(lock, identity, follows, fsync)
        return made

    def close(self) -> None:
        """Close the journal, if there is one; nothing can be done after it."""
        with self._lock:
            try:
                self._finish()
            finally:
                if self._journal is not None:
                    self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _snapshot(self) -> Snapshot:
        journal = self._journal
        arrays: dict[str, Array] = state_arrays(self._state) | arrays_of(self._pending)
        metadata = {
            "rule": specification(self.rule),
            "seed": self.seed,
            "max_open": self._max_open,
            "expire_after": self._expire_after,
            "sequence": self._sequence,
            "generator": self._rng.bit_generator.state,
            "lives": [list(life) for life in self._lives],
            "open": list(self._pending),
            "follows": None if journal is None else [journal.identity.hex(), journal.at.checksum.hex()],
        }
        return Snapshot(KIND, VERSION, metadata, arrays)

    def _restore(self, kept: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        state = restored_state(self._state, arrays)
        self._state = state._replace(round=int(state.round))
        self._pending = pending_of(kept["open"], arrays)
        self._sequence = int(kept["sequence"])
        self._lives = [(int(life), int(first)) for life, first in kept["lives"]]
        self._rng.bit_generator.state = kept["generator"]

    def _recover(self, lock: FileLock | None, identity: bytes, follows: Follows, fsync: bool) -> None:
        """Let everything in the journal happen again, and go on writing it."""
        assert lock is not None
        self._journal = recover(lock, identity, self._sequence, follows, follows is not None, self, fsync=fsync)

    def restore(self, base: bytes) -> Sequence[str]:
        """Of the journal's protocol: a chooser's journal begins at a snapshot, never in the middle."""
        raise ValueError("a chooser's journal has no base of its own")

    def replay(self, record: bytes) -> None:
        """Of the journal's protocol: let what was recorded happen again."""
        what, given = unpack(record)
        if what["op"] == "act":
            drawn = None if what["action"] < 0 else (int(what["action"]), given["probabilities"])
            self._act(given["context"], given.get("costs"), given.get("bounds"), drawn)
        elif what["op"] == "settle":
            lesson = (given["seen"], given["rewards"], given["costs"]) if "seen" in given else None
            self._settle(int(what["number"]), given.get("paid"), lesson)
        elif what["op"] == "forget":
            self._forget(int(what["number"]))
        elif what["op"] == "teach":
            self._teach(given["context"], given["rewards"], given["costs"])
        else:
            raise ValueError(f"{what['op']!r} is not known")

    # --- what can be read -------------------------------------------------------------------------------------

    @property
    def round(self) -> int:
        """The number of the next request."""
        return self._state.round

    @property
    def state(self) -> State:
        """The rule's state, a named tuple that does not change later."""
        return self._state

    @property
    def spent(self) -> FloatArray:
        """What settled choices cost, as each budget counts, shape (m,)."""
        return self._state.spent.value

    @property
    def committed(self) -> FloatArray:
        """Spent on caps, and held back for what is open."""
        return self._state.committed.value

    @property
    def prices(self) -> FloatArray:
        """λ, in reward per unit of each budget's money."""
        return self.rule.prices(self._state)

    @property
    def pending(self) -> Mapping[int, Choice]:
        """What is not settled, by number, oldest first."""
        with self._lock:
            self._finish()
            return MappingProxyType({n: self._choice(n, p.open) for n, p in self._pending.items()})

    # --- inside -----------------------------------------------------------------------------------------------

    def _choice(self, number: int, opened: Open) -> Choice:
        refused = opened.action < 0
        return Choice(
            number,
            None if refused else opened.action,
            1.0 if refused else float(opened.probabilities[opened.action]),
            opened.probabilities,
            opened.request.prices / self.rule.game.unit,
            self._life_of(number),
        )

    def _life_of(self, number: int) -> int:
        return next(life for life, first in reversed(self._lives) if number >= first)

    def _find(self, choice: Choice | int) -> tuple[int, Pending]:
        number = choice.number if isinstance(choice, Choice) else choice
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 1 <= number < self._state.round:
            raise UnknownTokenError(0, f"{choice!r} is not a choice of this chooser", "Give what act() returned")
        number = int(number)
        if isinstance(choice, Choice) and choice.life != self._life_of(number):
            raise UnknownTokenError(
                number,
                "it is of another life of this chooser, which was loaded without its journal",
                "Drop it; load with the journal to keep such choices",
            )
        found = self._pending.get(number)
        if found is None:
            raise AlreadyToldError(
                number, "it is settled, forgotten or was refused", "Nothing is to be done: it counts once"
            )
        return number, found


def _some(**arrays: FloatArray | None) -> dict[str, Array]:
    return {name: array for name, array in arrays.items() if array is not None}
