"""A rule at work: requests are answered at once, outcomes come when they come.

    choice = chooser.act(context, costs=…)
    chooser.settle(choice, reward=…, cost=…)

Outcomes may be late, in any order, in two parts (the cost now, the reward later), or never come (`forget`).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm.decisions.primal_dual import Open, PrimalDual, State
from longterm.decisions.primals import Request
from longterm.errors import (
    AlreadyToldError,
    BrokenBoundWarning,
    InputError,
    NonFiniteError,
    UnknownTokenError,
)


@dataclass(frozen=True, eq=False)
class Choice:
    """The answer to one request; keep it, or its number, to settle it."""

    number: int
    """From 1, in the order of the requests."""
    action: int | None
    """What to do; None: nothing is affordable, the request is refused and needs no settling."""
    probability: float
    """With which the action was drawn, given all that was known: what weighing a log divides by."""
    probabilities: FloatArray
    """Of all actions."""
    prices: FloatArray
    """λ_t, in reward per unit of each budget's money."""


class _Pending(NamedTuple):
    """An open request and what of its outcome is here already."""

    open: Open
    cost: FloatArray | None
    """Of the action, as the budgets count, once settled."""
    lesson: tuple[Any, FloatArray, FloatArray] | None
    """Seen, rewards and costs, where the reward came before the cost."""


class Chooser:
    """Answers requests by a rule, and settles them.

    Parameters
    ----------
    rule : PrimalDual
        The rule.
    seed : int
        For the draws: the same seed and the same requests give the same choices.

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

    def __init__(self, rule: PrimalDual, *, seed: int = 0) -> None:
        self.rule = rule
        self._rng = np.random.default_rng(seed)
        self._state = rule.init()
        self._pending: dict[int, _Pending] = {}
        self._lock = threading.Lock()

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
            number = self._state.round
            x = _numbers("context", context, number).reshape(-1)
            self.rule.primal.check(x, number)
            announced = self._table("costs", costs, number)
            most = self._table("bounds", bounds, number)
            if announced is not None and most is not None and np.any(most < announced):
                raise InputError("bounds", "are below the costs", "Give what an action can cost at most", round=number)
            self._state, opened = self.rule.act(self._state, x, announced, most, self._rng)
            refused = opened.action < 0
            if not refused:
                self._pending[number] = _Pending(opened, None, None)
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
            number, pending = self._find(choice)
            opened = pending.open
            if reward is None and rewards is None and cost is None and costs is None:
                raise InputError(
                    "reward", "and cost are missing", "Give what came, or forget() the choice", round=number
                )
            if pending.cost is not None and (cost is not None):
                raise AlreadyToldError(number, "its cost was settled already", "Settle its reward only")
            if pending.lesson is not None and (reward is not None or rewards is not None):
                raise AlreadyToldError(number, "its reward was settled already", "Settle its cost only")
            paid = self._paid(pending, cost, costs, number, needs=reward is not None or rewards is not None)
            lesson = self._lesson(opened, reward, rewards, costs, number) if pending.lesson is None else pending.lesson
            state = self._state
            if pending.cost is None and paid is not None:
                state = self.rule.charge(state, opened, paid)
            settled = paid if pending.cost is None else pending.cost
            if lesson is not None and settled is not None:
                seen, gained, known = lesson
                known = known.copy()
                known[opened.action] = settled
                state = self.rule.learn(state, opened, seen, gained, known)
                del self._pending[number]
            else:
                self._pending[number] = _Pending(opened, settled, lesson)
            self._state = state
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
            number, pending = self._find(choice)
            if pending.cost is None:
                self._state = self.rule.charge(self._state, pending.open, pending.open.bound)
            del self._pending[number]

    def teach(self, context: ArrayLike, rewards: ArrayLike, costs: ArrayLike | None = None) -> None:
        """Labels of all actions on a request of the past: the primal learns, no budget moves. For warm starts."""
        with self._lock:
            x = _numbers("context", context, None).reshape(-1)
            self.rule.primal.check(x, self._state.round)
            table = self._table("costs", costs, self._state.round)
            K, m = self.rule.actions, self.rule.game.resources
            everything = np.ones(K, dtype=np.bool_)
            given = _rewards(rewards, K, None)
            priced = np.zeros((K, m)) if table is None else table
            prices = self.rule.dual.prices(self._state.dual, self.rule.game)
            request = Request(self._state.round, x, priced / self.rule.game.unit, prices, everything)
            opened = Open(request, 0, np.ones(K) / K, np.zeros(m), priced, np.zeros(m), np.zeros(m))
            self._state = self.rule.learn(self._state, opened, everything, given, priced)

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
        )

    def _find(self, choice: Choice | int) -> tuple[int, _Pending]:
        number = choice.number if isinstance(choice, Choice) else choice
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 1 <= number < self._state.round:
            raise UnknownTokenError(0, f"{choice!r} is not a choice of this chooser", "Give what act() returned")
        number = int(number)
        found = self._pending.get(number)
        if found is None:
            raise AlreadyToldError(
                number, "it is settled, forgotten or was refused", "Nothing is to be done: it counts once"
            )
        return number, found

    def _table(self, name: str, given: ArrayLike | None, round: int) -> FloatArray | None:
        """Costs (K, m) of all actions."""
        if given is None:
            return None
        table = _numbers(name, given, round)
        K, m = self.rule.actions, self.rule.game.resources
        if table.shape == (K,) and m == 1:
            table = table[:, None]
        if table.shape != (K, m):
            raise InputError(name, f"have shape {table.shape}", f"Give ({K}, {m}): actions × budgets", round=round)
        if np.any(table < 0):
            raise InputError(name, "are negative", "Give costs of at least 0", round=round)
        return table

    def _paid(
        self, pending: _Pending, cost: ArrayLike | None, costs: ArrayLike | None, number: int, *, needs: bool
    ) -> FloatArray | None:
        """The cost of the action played, as the budgets count; None where it is not known yet."""
        opened, m = pending.open, self.rule.game.resources
        if cost is None and costs is not None:
            table = self._table("costs", costs, number)
            assert table is not None
            return np.asarray(np.maximum(table[opened.action] - opened.base, 0.0))
        if cost is None:
            if needs and pending.cost is None and opened.costs is None:
                return None  # the reward came first: keep it until the cost is here
            return opened.costs[opened.action] if needs and opened.costs is not None else None
        paid = _numbers("cost", cost, number).reshape(-1)
        if paid.shape != (m,) or np.any(paid < 0):
            raise InputError("cost", f"is {cost!r}", f"Give {m} number(s) of at least 0", round=number)
        return np.maximum(paid - opened.base, 0.0)

    def _lesson(
        self,
        opened: Open,
        reward: float | None,
        rewards: ArrayLike | None,
        costs: ArrayLike | None,
        number: int,
    ) -> tuple[Any, FloatArray, FloatArray] | None:
        """Which outcomes are known; the costs of actions not played are those announced, or given now."""
        K, m = self.rule.actions, self.rule.game.resources
        known = np.zeros((K, m)) if opened.costs is None else opened.costs
        if rewards is not None:
            table = self._table("costs", costs, number)
            if table is not None:
                known = np.maximum(table - opened.base, 0.0)
            elif opened.costs is None:
                raise InputError("costs", "of all actions are not known", "Give costs= with rewards=", round=number)
            return np.ones(K, dtype=np.bool_), _rewards(rewards, K, number), known
        if reward is None:
            return None
        gained = np.zeros(K)
        gained[opened.action] = _rewards([reward], 1, number)[0]
        seen = np.zeros(K, dtype=np.bool_)
        seen[opened.action] = True
        return seen, gained, known


def _numbers(name: str, value: ArrayLike, round: int | None) -> FloatArray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(name, f"{value!r} is not made of numbers", "Give real numbers", round=round) from None
    if not np.all(np.isfinite(array)):
        raise NonFiniteError(name, f"is {value!r}", "Leave this request out; the state is as it was", round=round)
    return array


def _rewards(value: ArrayLike, actions: int, round: int | None) -> FloatArray:
    array = _numbers("reward", value, round).reshape(-1)
    if array.shape != (actions,) or np.any(array < 0) or np.any(array > 1):
        raise InputError(
            "reward", f"{value!r} is not {actions} number(s) in [0, 1]", "Scale rewards to [0, 1]", round=round
        )
    return array
