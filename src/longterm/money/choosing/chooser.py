"""A rule in a service: requests are answered at once, and outcomes are reported when they arrive.

    choice = chooser.act(context, costs=…)
    chooser.settle(choice, reward=…, cost=…)

Outcomes may be late, in any order, in two parts (the cost now, the reward later), or never come (`skip`).

`Chooser.open` keeps the state in a database, which several processes may use: they share the budgets, and every call is
one transaction. A call that has returned survives the death of the process. This module validates calls, `chooser_copy`
computes their effect, and `storage.replica` handles transactions, locks and interrupts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base.arrays import FloatArray
from longterm._base.messages import warn_caller
from longterm.errors import AlreadyToldError, BrokenBoundWarning, HorizonWarning, InputError
from longterm.money.budgets import LARGEST_RATIO, out_of_proportion
from longterm.money.choosing.choice import (
    Choice,
    require_action,
    require_action_names,
    require_allowed,
    require_costs,
    require_labels,
    require_numbers,
    require_outcomes,
    require_paid,
)
from longterm.money.choosing.chooser_copy import MOST_ACTIONS, Change, ChooserCopy, costs_in
from longterm.money.choosing.primal_dual import LIMITS, PrimalDual, RuleState
from longterm.money.choosing.primals import ActionOutcomes, OpenChoice
from longterm.money.holds import ExcessHold
from longterm.money.ledger.accounts import ABSURD, IF_RIGHT, require_note
from longterm.money.ledger.ledger import require_holds
from longterm.money.ledger.spending import LeasedAccount, SharedAccount, Spending, require_leased, require_shared
from longterm.storage.clock import DAY, SYSTEM, Clock
from longterm.storage.engine import Durability
from longterm.storage.positions import require_position
from longterm.storage.record import Recorded, changed_limits, entry
from longterm.storage.replica import LONGEST_NAME, Redefinition, Replica
from longterm.storage.rounds import NOTHING, NoChange, Window
from longterm.storage.stored_object import Metrics, Stored
from longterm.storage.tokens import Token, is_storable, require_key

T = TypeVar("T")


class Chooser(Stored[ChooserCopy]):
    """A rule that answers requests and learns from their outcomes.

    This constructor makes a chooser in memory, for one process. `Chooser.open` makes one in a database.

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
    max_age : float, optional
        The age in seconds at which an open choice is skipped, by whichever call comes next.
    remember : float
        The seconds for which an idempotency key is remembered; at least while its choice is open.
    holds : "worst" or ExcessHold
        "worst" holds the bound of an open choice back. `ExcessHold(share=0.02)` holds back an estimate by action and
        group, for one cap that counts whole costs.
    account : LeasedAccount, optional
        An account of a ledger from which the money of the cap is leased as well.
    clock : Clock
        The time; tests give their own.

    Notes
    -----
    **Money.** With `stop=True`, the sum of the settled costs and of the bounds of open choices is within every cap
    after every call, on every sequence. The bound of a request is that of `bounds=`, else of `costs=`, else the
    budget's `largest`. A cost above its bound is recorded (the money is gone) with a BrokenBoundWarning, and the total
    overspending is at most the sum of those excesses. With calibrated holds it is at most Σ (cost − hold)₊ over the
    choices open at the last act, as for a ledger. Warnings are issued before the call takes effect, so where
    warnings are errors nothing has changed when one is raised.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.money.budgets import Budget
    >>> from longterm.money.choosing.chooser import Chooser
    >>> from longterm.money.choosing.duals import EntropicDual
    >>> from longterm.money.choosing.linear_primals import ThompsonSampling
    >>> from longterm.money.choosing.primal_dual import PrimalDual
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
        max_age: float | None = None,
        remember: float = DAY,
        holds: Literal["worst"] | ExcessHold = "worst",
        account: LeasedAccount | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        calibrated = require_holds(holds)
        if calibrated is not None or account is not None:
            _require_one_cap(rule)
        copy = ChooserCopy(rule, seed, Window.of(max_in_flight, expire_after, max_age, remember), calibrated)
        self._spending: Spending | None = require_leased(account)
        self._replica = Replica(copy, self._definition(rule, holds), may_fork=False, clock=clock)
        self._replica.expire = self._expiring
        count = len(copy.rule.budget_set.budgets)
        limits = [f"rule.budgets[{index}].{name}" for index in range(count) for name in LIMITS]
        self._replica.definition.changeable = [*limits, "rule.horizon", "rule.unit", "rule.dual.least_reward"]
        self._replica.definition.adopt = self._adopt
        self._warned_of_horizon = False

    @property
    def rule(self) -> PrimalDual:
        """The rule, with the present number of actions."""
        return self._replica.copy.rule

    @classmethod
    def open(
        cls,
        url: str | PathLike[str],
        rule: PrimalDual,
        *,
        name: str = "chooser",
        durability: Durability = "commit",
        seed: int = 0,
        max_in_flight: int = 100_000,
        expire_after: int | None = None,
        max_age: float | None = None,
        remember: float = DAY,
        holds: Literal["worst"] | ExcessHold = "worst",
        account: SharedAccount | None = None,
        names: Sequence[str] = (),
        follow: bool = False,
        clock: Clock = SYSTEM,
    ) -> Self:
        """Return the chooser with this name in a database, or create it there.

        Call it when a service starts, in every process. All of them share one chooser and its budgets.

        Parameters
        ----------
        url : path or str
            A file for SQLite, or a URL ``postgresql://…`` (extra `postgres`).
        rule : PrimalDual
            With the hyper-parameters that the stored one was created with. More actions are added to it.
        name : str
            Its name in the database, which may hold many objects.
        durability : {"commit", "relaxed"}
            "commit": a call is on the disk before it returns. "relaxed": it survives the death of the process, but not
            always that of the machine.
        seed : int
            For the draws of a chooser that is created.
        max_in_flight, expire_after, max_age, remember, holds
            As for a new chooser; give the same in every process.
        account : SharedAccount, optional
            An account of a ledger in the same database. Every act holds money there, in the same transaction, and an
            action that the account cannot pay for is not affordable. Objects that name one account share its limit.
        names : sequence of str, optional
            The names of the actions; see `name_actions`.
        follow : bool
            Use the limits and the horizon of the database, in place of those of `rule`. With False, a `rule` with
            limits that the chooser had before `change` uses the present ones, and other limits are an error.
        clock : Clock
            The time; tests give their own.

        Returns
        -------
        Chooser
            The chooser.

        Raises
        ------
        DatabaseError
            If the database cannot be used, or holds another object with this name.
        """
        limits: dict[str, Any] = {
            "max_in_flight": max_in_flight,
            "expire_after": expire_after,
            "max_age": max_age,
            "remember": remember,
            "clock": clock,
        }
        shared = require_shared(account, name)
        if shared is not None:
            _require_one_cap(rule)
        chooser = cls(rule, seed=seed, holds=holds, **limits)
        chooser._replica.definition.follows = follow
        chooser._replica.attach(url, name, durability)
        database = chooser._replica.database
        if shared is not None and database is not None:
            chooser._spending = shared.attach(database, name)
            chooser._replica.changes_others = True
        try:
            chooser._replica.transact(chooser._naming, require_action_names(names), rule.actions)
        except InputError:
            chooser.close()
            raise
        return chooser

    def __repr__(self) -> str:
        state, waiting = self.state, len(self._replica.copy.open)
        limits = (self.rule.budget_set.limit(max(state.round - 1, 1)) - state.forfeited).tolist()
        money = ", ".join(
            f"{budget.name} {spent:.4g} of {limit:.4g}"
            for budget, spent, limit in zip(
                self.rule.budget_set.budgets, state.spent.value.tolist(), limits, strict=True
            )
        )
        of_all = "" if self.rule.horizon is None else f" of {self.rule.horizon}"
        requests = f"{state.round - 1}{of_all} requests"
        return f"Chooser({type(self.rule.primal).__name__}, {requests}, {waiting} open, {money})"

    # --- the rounds -------------------------------------------------------------------------------------------

    def act(
        self,
        context: ArrayLike = (),
        costs: ArrayLike | None = None,
        bounds: ArrayLike | None = None,
        *,
        allowed: ArrayLike | None = None,
        key: str | None = None,
        group: str = "",
    ) -> Choice:
        """Answer a request. The action is None if no allowed one is affordable.

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
        key : str, optional
            An idempotency key: a request with the key of another one returns its answer, for as long as `remember`
            says.
        group : str
            The group of the request, for calibrated holds: a customer or a kind of task.
        """
        if not is_storable(group) or len(group) > LONGEST_NAME:
            raise InputError("group", f"{group!r:.60} is not the name of a group", "Give a short string")
        change = self._replica.transact(self._acting, context, costs, bounds, allowed, require_key(key), group)
        return self._choice(change.round.content)

    def _acting(
        self,
        context: ArrayLike,
        costs: ArrayLike | None,
        bounds: ArrayLike | None,
        allowed: ArrayLike | None,
        key: str | None,
        group: str,
    ) -> Change | NoChange[OpenChoice]:
        replica, copy = self._replica, self._replica.copy
        rule = copy.rule
        now = replica.now()
        known = copy.repeated(key, now)
        if known is not None:
            return known
        number = copy.asked + 1
        x = require_numbers("context", context, number).reshape(-1)
        rule.primal.require_context(x, number)
        announced = require_costs(rule, "costs", costs, number)
        most = require_costs(rule, "bounds", bounds, number)
        if announced is not None and most is not None and (most < announced).any():
            raise InputError(
                "bounds",
                "are lower than the announced costs",
                "Give the largest possible cost of each action",
                round=number,
            )
        mask = require_allowed(allowed, rule.actions, number)
        if rule.horizon is not None and number > rule.horizon:
            self._warn_of_horizon()
        expired = copy.outnumbered()
        copy.require_window(expired)
        if copy.holds is None and self._spending is None:
            return copy.act(x, announced, most, mask, expired, replica.epoch, now, key)
        largest = self.rule.largest_costs(announced, most)
        held = copy.held(largest, group)
        if self._spending is not None:
            for old in expired:
                self._pay(self._spending, copy.choice(old), copy.choice(old).bound)
            mask = self._paid_for(self._spending, held, largest, mask)
        change = copy.act(x, announced, held, mask, expired, replica.epoch, now, key, group)
        choice = change.round.content
        if self._spending is not None and choice.action >= 0:
            i = copy.cap
            self._spending.hold(_text(choice), choice.bound[i], float(largest[choice.action, i]))
        return change

    def _expiring(self, now: float) -> Change:
        """Return the change of giving up the choices that are too old."""
        copy = self._replica.copy
        expired = copy.outdated(now)
        for number in expired:
            self._pay(self._spending, copy.choice(number), copy.choice(number).bound)
        return copy.expiring(expired)

    def _paid_for(
        self, spending: Spending, held: FloatArray, largest: FloatArray, allowed: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        """Return a mask of the allowed actions that the account can pay for. Free actions need no money."""
        i = self._replica.copy.cap
        free, exposure = spending.room(float(held[:, i].max()))
        fits = ((held[:, i] <= free) & (largest[:, i] <= exposure)) | (largest[:, i] <= 0)
        return np.asarray(fits if allowed is None else fits & allowed)

    def _pay(self, spending: Spending | None, opened: OpenChoice, paid: FloatArray | None) -> None:
        """Settle the cost of a choice in the account, if it was not settled before."""
        if spending is not None and paid is not None and opened.paid is None:
            spending.settle(_text(opened), float(paid[self._replica.copy.cap]))

    def settle(
        self,
        choice: Choice | str,
        reward: float | None = None,
        cost: ArrayLike | None = None,
        *,
        rewards: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        cost_follows: bool = False,
        force: bool = False,
        position: tuple[str, int] | None = None,
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
        force : bool
            Accept a cost above 100 times its bound.
        position : (str, int), optional
            The partition of a queue and the number of the message there. A message counts once, however often the
            queue delivers it. Numbers must grow along a partition.
        """
        given = choice, reward, cost, rewards, costs, cost_follows, force
        self._replica.apply_message(require_position(position), self._settling, *given)

    def _settling(
        self,
        choice: Choice | str,
        reward: float | None,
        cost: ArrayLike | None,
        rewards: ArrayLike | None,
        costs: ArrayLike | None,
        cost_follows: bool,
        force: bool,
    ) -> Change:
        opened, rule = self._find(choice), self.rule
        number, has_reward = opened.round, reward is not None or rewards is not None
        if not has_reward and cost is None and costs is None:
            what, remedy = "is missing, and so is the cost", "Give at least one of them, or skip() the choice"
            raise InputError("reward", what, remedy, round=number)
        if opened.paid is not None and cost is not None:
            raise AlreadyToldError(number, "its cost is already settled", "Settle only its reward")
        if opened.outcomes is not None and has_reward:
            raise AlreadyToldError(number, "its reward is already settled", "Settle only its cost")
        paid = require_paid(rule, opened, cost, costs, with_reward=has_reward and not cost_follows)
        outcomes = require_outcomes(rule, opened, reward, rewards, costs)
        paid = paid if opened.paid is None else None
        if paid is not None:
            self._require_plausible(number, paid, opened.bound, force=force)
        if paid is not None and self._replica.copy.holds is None:
            self._warn_of_excess(opened, paid)
        self._pay(self._spending, opened, paid)
        return self._replica.copy.settle(number, paid, outcomes)

    def _require_plausible(self, number: int, paid: FloatArray, bound: FloatArray, *, force: bool) -> None:
        """Raise an InputError if a cost is absurd beside its bound, or beside the budget's largest without a bound."""
        budgets, is_worst = self.rule.budget_set, self._replica.copy.holds is None
        for i, (cost, most, held) in enumerate(
            zip(paid.tolist(), budgets.largest.tolist(), bound.tolist(), strict=True)
        ):
            if cost > LARGEST_RATIO * max(most, held) and cost > LARGEST_RATIO * budgets.limit(number)[i]:
                raise out_of_proportion("cost", cost, number)
            absurd = ABSURD * (held if held > 0 and is_worst else most)
            if not force and cost > absurd and budgets.is_cap[i]:
                what = f"{cost:g} is above {absurd:g}, {ABSURD} times the largest cost expected"
                raise InputError("cost", what, IF_RIGHT, round=number)

    def correct(
        self,
        choice: Choice | str,
        cost: ArrayLike,
        *,
        correction: str | None = None,
        force: bool = False,
        who: str = "",
        note: str = "",
    ) -> None:
        """Replace the cost of a choice that was settled, skipped or has expired. Both costs stay in the record.

        The money spent changes, here and in the account, and prices and beliefs stay as they are. The last 100,000
        choices can be corrected.

        Parameters
        ----------
        choice : Choice or str
            The choice, or its text.
        cost : float or array, shape (m,)
            The right cost of the action played.
        correction : str, optional
            The key of the correction: a repeated call with it has no effect.
        force : bool
            Accept a cost above 100 times the budget's `largest`.
        who, note : str
            Who makes the correction and why, for `record`.
        """
        said = require_note("who", who), require_note("note", note)
        self._replica.transact(self._correcting, choice, cost, require_key(correction), force, *said)

    def _correcting(
        self, choice: Choice | str, cost: ArrayLike, correction: str | None, force: bool, who: str, note: str
    ) -> Recorded | NoChange[OpenChoice]:
        copy, now, m = self._replica.copy, self._replica.now(), self.rule.setting.resources
        known = copy.repeated(correction, now, is_correction=True)
        number, epoch, record = copy.closed(choice)
        paid = require_numbers("cost", cost, number).reshape(-1)
        if paid.shape != (m,) or min(paid.tolist()) < 0:
            raise InputError("cost", f"is {cost!r:.60}", f"Give {m} number(s) of at least 0", round=number)
        self._require_plausible(number, paid, np.zeros(m), force=force)
        change = copy.correct(number, epoch, record, paid, correction, now)
        if known is None:
            key = str(Token(number, epoch=epoch))
            if self._spending is not None:
                self._spending.correct(key, float(paid[copy.cap]), who, note)
            base, before = costs_in(record, m)
            costs = zip(self._budget_names(), before.tolist(), np.maximum(paid - base, 0.0).tolist(), strict=True)
            said: dict[str, str] = {"key": key, "who": who, "note": note}
            return Recorded(change, [entry("corrected", old, new, account=name, **said) for name, old, new in costs])
        content: Any = known.round.content
        after: Any = change.round.content
        if known.number != number or content[-8 * m :] != after[-8 * m :]:
            raise InputError(
                "correction",
                f"{correction!r} is the key of a different correction",
                "Use a new key for each correction",
            )
        return known

    def change(
        self,
        budgets: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
        *,
        horizon: int | None = None,
        least_reward: float | None = None,
        who: str = "",
        note: str = "",
    ) -> None:
        """Change limits, here and in all processes that use this chooser. Prices and beliefs stay.

        A new limit of a `Budget` is for the whole horizon, and what was spent counts. A new `per_request` of a
        `Ceiling` counts for the requests from now on: it neither frees nor takes money for those of the past. Default
        step sizes are those of the new limits, and no theorem covers the change itself.

        Parameters
        ----------
        budgets : mapping of str to mapping
            New numbers by the name of a budget: its `limit`, or `per_request`, `credit` and `bank` of a ceiling. The
            `bank` may be None, for none.
        horizon : int, optional
            The new number of requests.
        least_reward : float, optional
            The new target of a `PlannedPrice` with a target for rewards.
        who, note : str
            Who makes the change and why, for `record`.

        Raises
        ------
        InputError
            If there is no such budget, or a number cannot be used.

        Examples
        --------
        >>> from longterm.money import Budget, Chooser, EuclideanDual, PrimalDual, ThompsonSampling
        >>> rule = PrimalDual(ThompsonSampling(2, 1), EuclideanDual(), Budget(2.0, largest=1.0), horizon=10)
        >>> chooser = Chooser(rule)
        >>> chooser.change({"money": {"limit": 3.0}})
        >>> chooser.metrics()["limit"]
        {'money': 3.0}
        """
        require_note("who", who), require_note("note", note)

        def plan() -> Redefinition:
            copy = self._replica.copy
            new = copy.rule.with_limits(budgets, horizon, least_reward)
            entries = changed_limits(copy.rule.limits, new.limits, who, note)
            definition = self._definition(new, "worst" if copy.holds is None else copy.holds)
            return Redefinition(definition, copy.adapted(new), entries)

        self._replica.redefine(plan)
        self._warned_of_horizon = False

    def _adopt(self, stored: dict[str, Any]) -> None:
        """Use the limits of a definition, which were changed here or by another process."""
        copy, given = self._replica.copy, stored["rule"]
        rule: Any = copy.rule
        budgets = [
            replace(budget, **{name: new[name] for name in LIMITS if name in new})
            for budget, new in zip(rule.budgets, given["budgets"], strict=True)
        ]
        dual = rule.dual
        if getattr(dual, "least_reward", None) is not None:
            dual = replace(dual, least_reward=given["dual"]["least_reward"])
        copy.use(replace(rule, dual=dual, budgets=budgets, horizon=given["horizon"], unit=given["unit"]))

    @staticmethod
    def _definition(rule: PrimalDual, holds: Literal["worst"] | ExcessHold) -> dict[str, Any]:
        """Return the arguments of the constructor. The number of actions is not one of them if it can change."""
        is_open = rule.is_extendable and getattr(rule.primal, "prior", None) is None
        return {"rule": rule.with_actions(1) if is_open else rule, "holds": holds}

    def skip(self, choice: Choice | str, *, who: str = "", note: str = "") -> None:
        """Give up a choice. An open cost counts as the money held back for it, and no reward is learned.

        Parameters
        ----------
        choice : Choice or str
            The choice, or its text.
        who, note : str
            Who gives it up and why. With either, `record` has an entry.
        """
        self._replica.transact(self._skipping, choice, require_note("who", who), require_note("note", note))

    def _skipping(self, choice: Choice | str, who: str, note: str) -> Change | Recorded:
        opened = self._find(choice)
        self._pay(self._spending, opened, opened.bound)
        change = self._replica.copy.skip(opened.round)
        if not who and not note:
            return change
        costs = opened.bound if opened.paid is None else opened.paid
        amounts = zip(self._budget_names(), opened.bound.tolist(), costs.tolist(), strict=True)
        said: dict[str, str] = {"key": _text(opened), "who": who, "note": note}
        return Recorded(change, [entry("released", old, new, account=name, **said) for name, old, new in amounts])

    def _budget_names(self) -> list[str]:
        return [budget.name for budget in self.rule.budget_set.budgets]

    def teach(
        self,
        context: ArrayLike,
        rewards: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        announced: ArrayLike | None = None,
        position: tuple[str, int] | None = None,
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
        position : (str, int), optional
            The partition of a queue and the number of the message there. A message counts once, however often the
            queue delivers it. Numbers must grow along a partition.
        """
        place = require_position(position)
        self._replica.apply_message(place, self._teaching, context, rewards, costs, announced)

    def _teaching(
        self, context: ArrayLike, rewards: ArrayLike, costs: ArrayLike | None, announced: ArrayLike | None
    ) -> Change:
        copy = self._replica.copy
        x = require_numbers("context", context, None).reshape(-1)
        self.rule.primal.require_context(x, copy.asked + 1)
        table = require_costs(self.rule, "costs", costs, None)
        K, m = self.rule.actions, self.rule.setting.resources
        seen, known = require_labels(rewards, K)
        outcomes = ActionOutcomes(seen, known, np.zeros((K, m)) if table is None else table * seen[:, None])
        return copy.teach(x, outcomes, require_costs(self.rule, "announced", announced, None))

    def add_action(self, action: int | None = None) -> int:
        """Add an action at run time and return its index, or use a removed action again.

        Linear primals expect a new action to be like the others. Requests after this call need one more cost.
        """
        change = self._replica.transact(self._adding, None if action is None else require_action(action))
        return change.state.counts.actions - 1 if action is None else action

    def name_actions(self, names: Sequence[str]) -> None:
        """Name the first actions, and add those that do not exist yet.

        A stored chooser keeps the names. Where they differ from the given ones an InputError is raised, so that an
        action is not taken for another one after a restart.
        """
        self._replica.transact(self._naming, require_action_names(names))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the first actions, as they are stored."""
        found: tuple[str, ...] = self._replica.look(lambda: self._replica.copy.state.names)
        return found

    def _naming(self, names: tuple[str, ...], count: int = 0) -> Change | NoChange[None]:
        copy = self._replica.copy
        stored = copy.state.names
        for action, (old, new) in enumerate(zip(stored, names, strict=False)):
            if old != new:
                what = f"action {action} is {new!r} here and {old!r} in the stored chooser"
                raise InputError(
                    "names", what, f"Give the stored names in their order, {list(stored)}, then any new ones"
                )
        more = max(len(names), count) - copy.rule.actions
        if more <= 0 and len(names) <= len(stored):
            return NOTHING
        if more > 0:
            self._require_room(more)
        return copy.add_actions(max(more, 0), max(stored, names, key=len))

    def _adding(self, action: int | None) -> Change:
        copy = self._replica.copy
        if action is None or action == copy.rule.actions:
            self._require_room(1)
            return copy.add_actions(1)
        if action not in range(copy.rule.actions) or copy.in_use[action]:
            raise InputError(
                "action", f"{action!r} is still in use or was never added", "Leave the argument out to add a new action"
            )
        return copy.set_removed(action, is_removed=False)

    def _require_room(self, more: int) -> None:
        actions = self._replica.copy.rule.actions
        if actions + more > MOST_ACTIONS:
            raise InputError(
                "action",
                f"cannot be added, since there are {actions} already",
                f"A chooser has at most {MOST_ACTIONS} actions. Use a removed one again",
            )

    def remove_action(self, action: int) -> None:
        """Use an action no more. Its index stays, and open choices of it can be settled."""
        self._replica.transact(self._removing, require_action(action))

    def _removing(self, action: int) -> Change:
        copy = self._replica.copy
        in_use = np.flatnonzero(copy.in_use).tolist()
        if action not in in_use or len(in_use) < 2 or copy.rule.actions > MOST_ACTIONS:
            raise InputError(
                "action",
                f"{action!r} cannot be removed",
                f"At least one action must remain. These are in use: {in_use}",
            )
        return copy.set_removed(int(action), is_removed=True)

    # --- properties -------------------------------------------------------------------------------------------

    @property
    def seed(self) -> int:
        """The seed of the draws."""
        return self._replica.copy.seed

    @property
    def state(self) -> RuleState:
        """The rule's state, a named tuple that does not change later."""
        found: RuleState = self._replica.look(lambda: self._replica.copy.state.rule)
        return found

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
        copy = self._replica.copy
        found: list[OpenChoice] = self._replica.look(lambda: [found.content for found in copy.open.values()])
        return MappingProxyType({opened.round: self._choice(opened) for opened in found})

    @property
    def removed(self) -> tuple[int, ...]:
        """The actions that are not used any more."""
        in_use: Any = self._replica.look(lambda: self._replica.copy.in_use)
        return tuple(np.flatnonzero(~in_use).tolist())

    def metrics(self) -> Metrics:
        """Return figures for monitoring; those of money are by the name of a budget.

        `plan` is the money that an even spender would have spent by now, `overshoot` the money spent above a cap, and
        `total` all that was ever spent: it never falls. `goal` is 1 for each limit that is meant to be reached: a
        ceiling for each request, or a floor.
        """
        figures: Metrics = self._replica.look(self._metrics)
        return figures

    def _metrics(self) -> Metrics:
        copy, rule = self._replica.copy, self.rule
        budgets, requests, state = rule.budget_set, copy.asked, copy.state.rule
        limit, spent = budgets.limit(max(requests, 1)) - state.forfeited, state.spent.value
        plan = np.maximum(budgets.plan(requests) - state.forfeited, 0.0)
        money = {
            "spent": spent,
            "total": state.total,
            "held": np.maximum(state.committed.value - spent, 0.0) * budgets.is_cap,
            "limit": limit,
            "plan": plan,
            "overshoot": np.maximum(spent - limit, 0.0) * budgets.is_cap,
            "price": rule.prices(state),
            "goal": budgets.is_goal.astype(float),
        }
        names = [budget.name for budget in budgets.budgets]
        figures: Metrics = {"requests": requests, "open": len(copy.open), "refused": copy.state.counts.refused}
        return figures | {key: dict(zip(names, value.tolist(), strict=True)) for key, value in money.items()}

    def find(self, choice: Choice | str) -> Choice:
        """Return the open choice that a text names, or raise a TokenError that says why there is none."""
        _, found = self._replica.look(lambda: self._replica.copy.find(choice, self._replica.now()))
        return self._choice(found.content)

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
        what = f"this rule was made for {self.rule.horizon} requests, and this request is beyond them"
        remedy = "The caps still hold. Make the rule with a larger horizon, so that its prices suit the longer stream"
        warn_caller(f"{what}. {remedy}.", HorizonWarning)

    def _warn_of_excess(self, opened: OpenChoice, paid: FloatArray) -> None:
        """Warn if a cost is above the bound of its choice."""
        parts = zip(paid.tolist(), opened.bound.tolist(), self.rule.budget_set.is_cap.tolist(), strict=True)
        excess = max(cost - bound if is_cap else 0.0 for cost, bound, is_cap in parts)
        if excess > 0:
            what = f"choice {opened.round} cost {excess:g} more than its bound"
            warn_caller(f"{what}; the cap may be exceeded by as much", BrokenBoundWarning)

    def _find(self, choice: Choice | str) -> OpenChoice:
        """Return the open choice that is meant, or raise a TokenError that says why there is none."""
        number, _ = self._replica.copy.find(choice, self._replica.now())
        return self._replica.copy.choice(number)


def for_known_actions(chooser: Chooser, known: int, call: Callable[[int], T]) -> T:
    """Return call(n) for a process that knows all actions but the n last ones, which other processes have added.

    Call again if one was added in between.
    """
    while True:
        actions = chooser.rule.actions
        try:
            return call(actions - known)
        except InputError:
            if chooser.rule.actions == actions:
                raise


def _text(opened: OpenChoice) -> str:
    """Return the text of a choice, which names its hold in a ledger."""
    return str(Token(opened.round, epoch=opened.epoch))


def _require_one_cap(rule: PrimalDual) -> None:
    """Raise an InputError unless the rule has one cap, which counts whole costs, and keeps it."""
    budgets = rule.budget_set
    if int(budgets.is_cap.sum()) != 1 or budgets.above_cheapest.any() or not rule.stop:
        what = "has no single cap that counts whole costs and stops, which holds= and account= require"
        raise InputError(
            "rule",
            what,
            "Make the rule with one cap, above_cheapest=False and stop=True, or leave out holds= and account=",
        )
