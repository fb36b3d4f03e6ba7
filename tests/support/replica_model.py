"""A search for calls after which the replicas of an object are not one object.

Several replicas in one database receive random calls, some of them crossing each other, while a clock jumps. An object
in memory receives the same calls in the order of the transactions. Every answer and every visible state must be equal.
Some calls bring the feedback of a message in a queue, with its position, out of order and more than once. Promises that
both could break alike are checked apart: keys by time, ages by the clock, money by fractions, positions by their order.

A plan is a list of calls that are plain data, so it can be shortened: `shortest` drops calls while it still disagrees.
`tests/storage/test_model.py` runs it with fixed seeds, and `make soak` for as long as asked. Both models in turn:

    PYTHONPATH=tests/support python tests/support/replica_model.py [SECONDS] [SEED] [postgres]
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clocks import ManualClock
from longterm import AOGD, Fleet, LiveLearner, observe
from longterm.calibration import LiveIntervals
from longterm.errors import LongtermError, RepeatedPositionError
from longterm.money import (
    EXP3IX,
    Budget,
    Ceiling,
    Chooser,
    DualMirrorDescent,
    EntropicDual,
    EuclideanDual,
    ExcessHold,
    ExponentialWeights,
    FirstPricePacer,
    FixedMixture,
    HedgeDual,
    InverseGapWeighting,
    LinearUCB,
    LivePacer,
    PlannedMirrorDescent,
    PlannedPrice,
    PriceHistory,
    PrimalDual,
    ReturnOnSpend,
    RidgeRegressor,
    Router,
    TableRegressor,
    ThompsonSampling,
)
from longterm.money.pacing.landscapes import LostPrices
from longterm.problems import two_dimensional
from longterm.storage.rows_replica import RowsReplica

PROBLEM = two_dimensional()
MAX_AGE, REMEMBER, EXPIRE_AFTER = 60.0, 300.0, 25
TIMES = (1.0, 1.0, 20.0, 61.0, 301.0, 40_000.0)


Plan = list[tuple[Any, ...]]


class DisagreementError(AssertionError):
    """Two objects that should be one are not."""


class Kind(NamedTuple):
    """A kind of object: how it is made, what is called, and what is seen."""

    make: Callable[[Any, dict[str, Any]], Any]
    """From a URL, or None for memory, and options."""
    call: Callable[[Any, random.Random], tuple[Any, ...]]
    """Draw the name and the arguments of a call."""
    do: Callable[[Any, tuple[Any, ...], Tokens], Any]
    """Make the call on an object with the tokens so far; return (answer, token or None)."""
    view: Callable[[Any], Any]
    has_rounds: bool = True
    change: Callable[[Any, float], None] | None = None
    """Change a limit, as a person does, to one that depends on a number from 0 to 1."""


def plain(value: Any) -> Any:
    """Return a value as nested tuples of numbers and texts."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return tuple((str(name), plain(part)) for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value))
    return plain(value.tolist()) if isinstance(value, (np.ndarray, np.generic)) else repr(value)


class Message:
    """An object whose feedback comes from a message at a position of a queue."""

    def __init__(self, made: Any, position: tuple[str, int] | None) -> None:
        self.made, self.position = made, position

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.made, name)
        return partial(found, position=self.position) if name in ("tell", "settle", "teach") else found


class Tokens(list[Any]):
    """The tokens that were given out, and the number of actions that the caller knows of."""

    actions = 3


def number_of(token: Any) -> Any:
    return getattr(getattr(token, "token", token), "number", None)


def pick(tokens: list[Any], place: int) -> Any:
    """Return one of the tokens, mostly a recent one; the text of nothing if there is none."""
    return tokens[-1 - place % len(tokens)] if tokens else "000000000001-1"


def recent(dice: random.Random) -> int:
    return min(int(dice.expovariate(0.3)), 40)


def key_of(dice: random.Random) -> str | None:
    return f"key {dice.randrange(6)}" if dice.random() < 0.3 else None


# --- learners ----------------------------------------------------------------------------------------------------


def make_learner(url: Any, options: dict[str, Any]) -> LiveLearner:
    learner = AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5)
    if url is None:
        return LiveLearner(learner, PROBLEM, **options)
    return LiveLearner.open(url, learner, PROBLEM, durability="relaxed", **options)


def call_learner(_: Any, dice: random.Random) -> tuple[Any, ...]:
    name = dice.choices(["ask", "tell", "skip"], [5, 4, 1])[0]
    return (name, key_of(dice)) if name == "ask" else (name, recent(dice), dice.random() < 0.5, dice.uniform(-1, 1))


def do_learner(live: LiveLearner, call: tuple[Any, ...], tokens: Tokens) -> Any:
    if call[0] == "ask":
        token = live.ask(call[1])
        return (token.number, token.x), token
    token = pick(tokens, call[1])
    token = str(token) if call[2] else token
    if call[0] == "skip":
        return live.skip(token), None
    return live.tell(token, loss_parameters=[np.array([call[3], 0.2])]), None


# --- choosers ----------------------------------------------------------------------------------------------------

BUDGET, HORIZON = Budget(4.0, 1.0), 400
RULES: dict[str, Callable[[], PrimalDual]] = {
    "thompson": lambda: PrimalDual(ThompsonSampling(3, 2), EntropicDual(0.2, step=0.05), BUDGET, HORIZON, replan=True),
    "ucb": lambda: PrimalDual(LinearUCB(3, 2), HedgeDual(), BUDGET, HORIZON),
    "ridge": lambda: PrimalDual(InverseGapWeighting(3, RidgeRegressor(2)), EuclideanDual(), BUDGET, HORIZON),
    "cells": lambda: PrimalDual(InverseGapWeighting(3, TableRegressor(2)), HedgeDual(), BUDGET, HORIZON),
    "exp3": lambda: PrimalDual(EXP3IX(3), HedgeDual(), BUDGET, HORIZON),
    "weights": lambda: PrimalDual(ExponentialWeights(3), HedgeDual(), BUDGET, HORIZON),
    "mixture": lambda: PrimalDual(FixedMixture([0.2, 0.3, 0.5]), HedgeDual(), BUDGET, HORIZON),
    "planned": lambda: PrimalDual(LinearUCB(3, 2), PlannedPrice(), BUDGET, HORIZON),
    "ceiling": lambda: PrimalDual(
        ThompsonSampling(3, 2), EuclideanDual(step=0.1), Ceiling(0.05, 0.3, bank=9.0), radius=30.0
    ),
    "cheapest": lambda: PrimalDual(
        LinearUCB(3, 2), EntropicDual(0.2, step=0.05), Budget(4.0, 1.0, above_cheapest=True), HORIZON
    ),
    "floor": lambda: PrimalDual(
        EXP3IX(3), EuclideanDual(), [BUDGET, Budget(0.5, 1.0, "at least", name="use")], HORIZON, stop=False, slater=0.1
    ),
}
CHANGES: dict[str, Callable[[Chooser, float], None]] = {
    "thompson": lambda made, number: made.change({"money": {"limit": 2.0 + 4.0 * number}}),
    "ucb": lambda made, number: made.change(horizon=300 + int(200 * number)),
    "ceiling": lambda made, number: made.change({"money": {"per_request": 0.02 + 0.1 * number, "bank": 9.0}}),
    "cheapest": lambda made, number: made.change({"money": {"limit": 2.0 + 4.0 * number}}, horizon=500),
}
CONTEXTS: dict[str, Any] = {"exp3": [], "weights": [], "mixture": [], "cells": [1], "floor": []}


def chooser_kind(name: str, holds: Any = "worst") -> Kind:
    def make(url: Any, options: dict[str, Any]) -> Chooser:
        if url is None:
            return Chooser(RULES[name](), holds=holds, **options)
        return Chooser.open(url, RULES[name](), durability="relaxed", holds=holds, **options)

    def call(_: Any, dice: random.Random) -> tuple[Any, ...]:
        names = ["act", "settle", "skip", "correct", "teach", "add", "remove"]
        kind = dice.choices(names, [5, 5, 1, 1, 0.3, 0.15, 0.15])[0]
        part = dice.choice(["both", "reward", "cost", "reward, cost follows", "all"])
        return kind, key_of(dice), recent(dice), dice.random() < 0.5, dice.random(), part, dice.choice(["", "a", "b"])

    def do(made: Chooser, call: tuple[Any, ...], tokens: Tokens) -> Any:
        kind, key, place, as_text, number, part, group = call
        context = CONTEXTS.get(name, [1.0, number])
        costs = [0.1 * (1 + action % 3) for action in range(tokens.actions)]
        rewards = [number / (1 + action) for action in range(tokens.actions)]
        if kind == "act":
            choice = made.act(context, costs=costs, key=key, group=group)
            answer = choice.number, choice.action, choice.probability, choice.probabilities, choice.prices
            return answer, choice
        if kind == "teach":
            return made.teach(context, rewards, costs, announced=costs), None
        if kind == "add":
            return made.add_action() if tokens.actions < 6 else None, None
        if kind == "remove":
            return made.remove_action(place % tokens.actions), None
        choice = pick(tokens, place)
        choice = str(choice) if as_text else choice
        if kind == "skip":
            return made.skip(choice), None
        if kind == "correct":
            return made.correct(choice, 0.1 * number, correction=key and f"correction {place % 3}"), None
        if part == "all":
            return made.settle(choice, rewards=rewards, costs=costs), None
        reward = None if part == "cost" else number
        cost = 0.1 * number if part in ("both", "cost") else None
        return made.settle(choice, reward, cost, cost_follows=part.endswith("follows")), None

    def view(made: Chooser) -> Any:
        found = [(n, choice.action, choice.probabilities, choice.prices) for n, choice in made.pending.items()]
        figures = made.metrics()
        state = made.state
        return state, found, figures, made.removed, made.names

    return Kind(make, call, do, view, change=CHANGES.get(name))


# --- the router, pacers, intervals, fleets ------------------------------------------------------------------------


def router_kind(**goal: Any) -> Kind:
    def make(url: Any, options: dict[str, Any]) -> Router:
        options = options | ({} if url is None else {"durability": "relaxed"})
        models = {"small": 1e-4, "large": 1e-2, "third": 1e-3}
        return Router.for_models(models, features=2, url=url, **goal, **options)

    def change(made: Router, number: float) -> None:
        made.change(**{"per_request": 1e-3 + 2e-3 * number} if "per_request" in goal else {"least_quality": number / 2})

    return Kind(make, call_router, do_router, view_router, change=change)


def view_router(made: Router) -> Any:
    return made.chooser.state, made.chooser.metrics(), made.models


def do_router(made: Router, call: tuple[Any, ...], tokens: Tokens) -> Any:
    kind, key, place, number, part = call
    if kind == "route":
        route = made.route([1.0, number], key=key)
        return (route.model, route.choice.number, route.choice.probabilities), route.choice
    if kind == "remove":
        return made.remove_model("third"), None
    if kind == "add":
        return made.add_model("third", 1e-3, largest=12e-3), None
    if kind == "teach":
        return made.teach([1.0, number], {"small": number, "large": 0.5}, {"small": 1e-4}), None
    choice = pick(tokens, place)
    if kind == "skip":
        return made.skip(str(choice)), None
    if kind == "correct":
        return made.chooser.correct(str(choice), 1e-4 * number, correction=key and f"correction {place % 3}"), None
    reward, cost = None if part == "cost" else number, None if part == "reward" else 1e-4 * number
    return made.settle(str(choice), reward, cost), None


def call_router(_: Any, dice: random.Random) -> tuple[Any, ...]:
    part = dice.choice(["both", "reward", "cost"])
    names = ["route", "settle", "skip", "correct", "teach", "remove", "add"]
    return dice.choices(names, [6, 6, 1, 1, 0.5, 0.2, 0.4])[0], key_of(dice), recent(dice), dice.random(), part


HISTORY = PriceHistory(prices=[0.2, 0.5, 1.0], counts=[5, 3, 2], mean_value=0.5)
PACERS: dict[str, Callable[[], Any]] = {
    "mirror descent": lambda: DualMirrorDescent(budget=20.0, horizon=200, step=0.1, start=0.5, mirror="euclidean"),
    "planned": lambda: PlannedMirrorDescent(20.0, 200, 0.02, 1.0, HISTORY),
    "return": lambda: ReturnOnSpend(target=1.2, horizon=200, largest_value=2.0, largest_bid=2.0, budget=20.0),
    "first price": lambda: FirstPricePacer(20.0, 200, LostPrices(np.linspace(0.0, 1.5, 8)), 0.5, 0.1),
}


def pacer_kind(name: str, **period: Any) -> Kind:
    def make(url: Any, options: dict[str, Any]) -> LivePacer:
        options = options | period
        if url is None:
            return LivePacer(PACERS[name](), **options)
        return LivePacer.open(url, PACERS[name](), durability="relaxed", **options)

    def change(live: LivePacer, number: float) -> None:
        if number < 0.2:
            live.reset(10.0 * number)
        elif number < 0.6:
            live.change(budget=10.0 + 20.0 * number)
        else:
            live.change(horizon=int(300 * number), **{"timezone": "Asia/Tokyo"} if period else {})

    def view(live: LivePacer) -> Any:
        return live.state, live.held, live.metrics(), numbers(live)

    return Kind(make, call_pacer, do_pacer, view, change=change)


def call_pacer(_: Any, dice: random.Random) -> tuple[Any, ...]:
    name = dice.choices(["bid", "settle", "skip", "correct"], [5, 4, 1, 1])[0]
    return name, key_of(dice), recent(dice), dice.random() < 0.5, dice.random(), dice.random() < 0.6


def do_pacer(live: LivePacer, call: tuple[Any, ...], tokens: Tokens) -> Any:
    name, key, place, as_text, number, won = call
    if name == "bid":
        bid = live.bid(number, key)
        return (bid.token.number, bid.amount, bid.value), bid
    bid = pick(tokens, place)
    paid = 0.5 * number * bid.amount if won and not isinstance(bid, str) else 0.0
    bid = str(bid) if as_text else bid
    if name == "correct":
        return live.correct(bid, 0.1 * number, correction=key and f"correction {place % 3}"), None
    return (live.skip(bid) if name == "skip" else live.settle(bid, paid, price=number, won=won)), None


def make_intervals(url: Any, options: dict[str, Any]) -> LiveIntervals:
    options = options | {"max_groups": 3}
    return LiveIntervals(**options) if url is None else LiveIntervals.open(url, durability="relaxed", **options)


def call_intervals(_: Any, dice: random.Random) -> tuple[Any, ...]:
    groups = tuple(dice.sample("abcd", dice.randrange(3)))
    return dice.choices(["ask", "tell", "skip"], [5, 4, 1])[0], key_of(dice), recent(dice), groups, dice.gauss(0, 1)


def do_intervals(live: LiveIntervals, call: tuple[Any, ...], tokens: Tokens) -> Any:
    name, key, place, groups, number = call
    if name == "ask":
        asked = live.ask(number, groups, key)
        return (asked.token.number, asked.lower, asked.upper, asked.prediction), asked
    token = pick(tokens, place)
    return (live.skip(token) if name == "skip" else live.tell(str(token), number)), None


class PlainFleet(Fleet):
    """A fleet in memory that takes positions, as a stored one does."""

    last: dict[str, int]

    def tell(self, feedback: Any, rows: Any = None, *, position: Any = None) -> None:  # type: ignore[override]
        self.numbers(rows)
        if position is not None and position[1] <= self.last_position(position[0]):
            raise RepeatedPositionError("position", "model", "model")
        super().tell(feedback, rows)
        self.last = getattr(self, "last", {}) | ({} if position is None else dict([position]))

    def last_position(self, partition: str) -> int:
        return getattr(self, "last", {}).get(partition, -1)


def make_fleet(url: Any, options: dict[str, Any]) -> Any:
    learner = AOGD.for_problem(PROBLEM, beta=0.5)
    return PlainFleet(learner, 70) if url is None else Fleet.open(url, learner, 70, durability="relaxed", **options)


def call_fleet(_: Any, dice: random.Random) -> tuple[Any, ...]:
    return dice.choice(["ask", "tell"]), tuple(dice.sample(range(70), 3)), dice.uniform(-0.5, 0.5), dice.random() < 0.1


def do_fleet(fleet: Any, call: tuple[Any, ...], tokens: Tokens) -> Any:
    name, rows, number, is_bad = call
    if name == "ask":
        return fleet.ask(rows), None
    feedback = observe(PROBLEM, np.zeros((3, 2)), [np.full((3, 2), number)])
    return fleet.tell(feedback, (0, 0, 1) if is_bad else rows), None


def numbers(live: Any) -> Any:
    return [token.number for token in live.in_flight]


def view_learner(live: LiveLearner) -> Any:
    now = live.state
    names = ("asked", "told", "in_flight", "skipped", "expired", "largest_delay", "losses_told", "cumulative_loss")
    return now.x, now.report, [getattr(now, name) for name in (*names, "signed_violation")], numbers(live)


KINDS: dict[str, Kind] = {
    "learner": Kind(make_learner, call_learner, do_learner, view_learner),
    "router": router_kind(per_request=2e-3),
    "router: bank": router_kind(per_request=2e-3, bank=100.0),
    "router: quality": router_kind(least_quality=0.4),
    "intervals": Kind(
        make_intervals,
        call_intervals,
        do_intervals,
        lambda live: (live.coverage, live.error, live.metrics(), numbers(live)),
    ),
    "fleet": Kind(
        make_fleet, call_fleet, do_fleet, lambda fleet: (fleet.rounds, fleet.signed_violation, fleet.ask()), False
    ),
    **{f"pacer: {name}": pacer_kind(name) for name in PACERS},
    "pacer: day": pacer_kind("mirror descent", period="day", timezone="Europe/Berlin"),
    "pacer: week": pacer_kind("planned", period="week"),
    **{f"chooser: {name}": chooser_kind(name) for name in RULES},
    "chooser: calibrated": chooser_kind("thompson", ExcessHold(share=0.1, warm_up=3)),
}


# --- one run ------------------------------------------------------------------------------------------------------


def draw(kind: Kind, dice: random.Random, calls: int) -> Plan:
    """Return a random plan: (what, replica, …)."""
    plan: Plan = [("options", dice.choice([None, MAX_AGE]), dice.choice([None, EXPIRE_AFTER]), dice.choice([8, 1000]))]
    replicas, quiet = dice.randint(2, 4), dice.random() < 0.5
    positions = random.Random(repr(plan) + str(dice.getstate()[1][:5]))

    def message() -> tuple[Any, ...]:
        """Return the position of a message, or None, and a call."""
        number = max(len(plan) + positions.choice([-9, -3, 0, 0, 3]), 0)
        call = kind.call(None, dice)
        if kind.change is not None and positions.random() < 0.02:
            return None, "change", None, positions.random()
        return (positions.choice("ab"), number) if positions.random() < 0.3 else None, *call

    for _ in range(calls):
        what = dice.choices(["call", "cross", "view", "time", "reopen"], [12, 2, 1, 1.0, 0.5])[0]
        at = 0 if quiet and dice.random() < 0.9 else dice.randrange(replicas)  # most calls in one process, or in all
        if what == "call":
            plan.append(("call", at, message()))
        elif what == "cross":
            other = dice.choice([place for place in range(replicas) if place != at])
            plan.append(("cross", at, message(), other, message()))
        elif what == "time":
            plan.append(("time", at, dice.choice(TIMES), dice.choice([0.0, 0.0, 0.0, -90.0, 90.0])))
        else:
            plan.append((what, at))
    return grouped(plan, positions, ends_crossed=kind.has_rounds)


def grouped(plan: Plan, dice: random.Random, *, ends_crossed: bool) -> Plan:
    """Return a plan in which some calls that follow each other in one replica share a transaction.

    A group may end with a call that another replica's call crosses. Those of a fleet do not: its calls are made one by
    one, so that the other call comes in their middle.
    """
    found: Plan = []
    for act in plan:
        last = found[-1] if found else ("options",)
        joining = ("call", "cross") if ends_crossed else ("call",)
        is_joined = last[0] in ("call", "group") and act[0] in joining and last[1] == act[1]
        if is_joined and last[3:] == () and dice.random() < 0.6:
            calls = last[2] if last[0] == "group" else (last[2],)
            found[-1] = ("group", act[1], (*calls, act[2]), *act[3:])
        else:
            found.append(act)
    return found


class Run:
    """The replicas, the object in memory, and what was promised so far."""

    def __init__(self, kind: Kind, url: str, name: str, plan: Plan) -> None:
        self.name = name
        _, max_age, expire_after, window = plan[0]
        self.kind, self.url, self.clock = kind, url, ManualClock()
        self.options: dict[str, Any] = {}
        self.max_age = None
        if kind.has_rounds:
            self.options = {"max_in_flight": window, "remember": REMEMBER, "clock": self.clock, "max_age": max_age}
            self.options |= {} if expire_after is None else {"expire_after": expire_after}
            self.max_age = max_age
        self.twin = kind.make(None, self.options)
        self.replicas: dict[int, Any] = {}
        self.tokens = Tokens(), Tokens()
        self.keys: dict[str, tuple[int, float]] = {}
        self.opened: dict[int, float] = {}
        self.is_changed = False
        self.positions = {"a": -1, "b": -1}

    def replica(self, at: int) -> Any:
        if at not in self.replicas:
            self.replicas[at] = self.kind.make(self.url, self.options | {"name": self.name})
        return self.replicas[at]

    def close(self) -> None:
        for made in self.replicas.values():
            made.close()

    def outcome(self, made: Any, call: tuple[Any, ...], side: int) -> tuple[Any, Any]:
        """Return the answer of a call or the name of its error, and its token."""
        try:
            return self.answer(made, call, side)
        except LongtermError as error:
            return type(error).__name__, None

    def answer(self, made: Any, call: tuple[Any, ...], side: int) -> tuple[Any, Any]:
        """Return the answer of a call, and its token."""
        if call[1] == "change":
            assert self.kind.change is not None
            return plain(self.kind.change(made, call[3])), None
        answer, token = self.kind.do(Message(made, call[0]), call[1:], self.tokens[side])
        return plain(answer), token

    def outcomes(
        self, made: Any, calls: Sequence[tuple[Any, ...]], order: Order
    ) -> list[tuple[tuple[Any, ...], tuple[Any, Any]]]:
        """Make calls of a replica in one transaction. Return each with what `outcome` would return."""
        together = getattr(made, "chooser", made).commit_group
        keys = [call[2] if isinstance(call[2], str) else None for call in calls]
        answer = [partial(self.answer, made, call, 0) for call in calls]
        found = together([partial(order.noted, place, call) for place, call in enumerate(answer)], keys)
        wrong = [one for one in found if isinstance(one, Exception) and not isinstance(one, LongtermError)]
        if wrong:
            raise wrong[0]
        answers = [(type(one).__name__, None) if isinstance(one, LongtermError) else one for one in found]
        return list(zip(calls, answers, strict=True))

    def step(self, act: tuple[Any, ...]) -> None:
        what, at, *rest = act
        if hasattr(self.twin, "rule"):
            self.tokens[0].actions = self.tokens[1].actions = self.twin.rule.actions
        if what == "time":
            self.clock.advance(rest[0])
            self.clock.step(rest[1])
        elif what == "reopen":
            if at in self.replicas:
                self.replicas.pop(at).close()
        elif what == "view":
            self.compare(at)
        elif what == "call":
            self.together([(rest[0], self.outcome(self.replica(at), rest[0], 0))])
        elif what == "cross":
            self.cross(at, (rest[0],), *rest[1:])
        elif len(rest) > 1:
            self.cross(at, *rest)
        else:
            self.together(self.outcomes(self.replica(at), rest[0], Order()))

    def cross(self, at: int, calls: tuple[tuple[Any, ...], ...], other: int, crossing: tuple[Any, ...]) -> None:
        """Make one call of another replica between the computation and the write of a call, or of a group of them."""
        made, between, done = self.replica(at), self.replica(other), []
        replica = getattr(made, "chooser", made)._replica

        def cross_once() -> None:
            done.append((crossing, self.outcome(between, crossing, 0)))

        order = Order()
        with crossed(replica, cross_once, order, is_late=len(self.opened) % 2 == 0):
            first = (
                [(calls[0], self.outcome(made, calls[0], 0))] if len(calls) == 1 else self.outcomes(made, calls, order)
            )
        if done:
            self.together(order.sort(first, done))
        else:
            self.together([*first, (crossing, self.outcome(between, crossing, 0))])

    def together(self, made: list[tuple[Any, Any]]) -> None:
        """Make the same calls in memory, in the order of the transactions, and compare."""
        new = []
        for call, (answer, token) in made:
            self.is_changed = self.is_changed or call[1] in ("correct", "change")
            expected, own = self.outcome(self.twin, call, 1)
            if answer != expected:
                raise DisagreementError(f"{call}: {answer} in the database, {expected} in memory")
            self.check_position(call, answer)
            if token is not None:
                self.check_key(call, number_of(token))
                new.append((token, own))
        for token, own in new:
            self.tokens[0].append(token)
            self.tokens[1].append(own)
        del self.tokens[0][:-60], self.tokens[1][:-60]

    def check_position(self, call: tuple[Any, ...], answer: Any) -> None:
        """A message has no effect after it, or a later one of its partition, had one."""
        if call[0] is None or call[1] not in ("tell", "settle", "teach"):
            return
        partition, number = call[0]
        is_new = number > self.positions[partition]
        if answer == (plain(None) if not is_new else "RepeatedPositionError"):
            raise DisagreementError(f"{call}: {answer} after position {self.positions[partition]}")
        if answer == plain(None):
            self.positions[partition] = number

    def check_key(self, call: tuple[Any, ...], number: int) -> None:
        """A key returns its round for as long as it is remembered."""
        self.opened.setdefault(number, self.clock.wall())
        key = call[2]
        if key is None:
            return
        first, begin = self.keys.get(key, (number, self.clock.wall()))
        if first != number and self.clock.wall() - begin <= REMEMBER:
            raise DisagreementError(f"{key} was round {first} and is round {number}")
        self.keys[key] = number, self.opened[number]

    def compare(self, at: int) -> None:
        made = self.replica(at)
        found, expected = plain(self.kind.view(made)), plain(self.kind.view(self.twin))
        if found != expected:
            raise DisagreementError(f"{found} in the database, {expected} in memory")
        for partition, last in self.positions.items():
            if not made.last_position(partition) == self.twin.last_position(partition) == last:
                raise DisagreementError(f"position {made.last_position(partition)}, not {last}, of {partition}")
        live = getattr(made, "chooser", made)
        if self.max_age is not None:
            for number in live.pending if hasattr(live, "pending") else numbers(live):
                age = self.clock.wall() - self.opened.get(number, self.clock.wall())
                if age > self.max_age:
                    raise DisagreementError(f"round {number} is open and {age} s old")
        if isinstance(made, LivePacer) and made.period is None and not self.is_changed:
            figures: Any = made.metrics()
            if figures["spent"] + figures["held"] > figures["limit"] * (1 + 1e-9):
                raise DisagreementError(f"{figures} is spent and held")
        if hasattr(live, "committed"):
            budgets = live.rule.budget_set
            limit = budgets.limit(max(live.round - 1, 1))
            is_kept = not hasattr(made, "chooser") and not self.is_changed  # a person may raise a cost or lower a limit
            if is_kept and live.rule.stop and (budgets.is_cap & (live.committed > limit * (1 + 1e-9))).any():
                raise DisagreementError(f"{live.committed} of {limit} is spent and held")


class Order:
    """Which calls of a group had their answers before another call crossed the group."""

    def __init__(self) -> None:
        self.made: set[int] = set()
        self.is_open: set[int] = set()
        """Calls whose transaction has not ended."""
        self.before: set[int] = set()

    def noted(self, place: int, call: Callable[[], Any]) -> Any:
        """Make a call."""
        self.made.add(place)
        self.is_open.add(place)
        return call()

    def crossed(self) -> None:
        """Note that the other call comes now."""
        self.before = self.made - self.is_open

    def sort(self, calls: Sequence[Any], crossing: Sequence[Any]) -> list[Any]:
        """Return the calls, and those that crossed them, in the order of their transactions."""
        first = [call for place, call in enumerate(calls) if place in self.before]
        return [*first, *crossing, *(call for place, call in enumerate(calls) if place not in self.before)]


@contextmanager
def crossed(replica: Any, between: Callable[[], None], order: Order, *, is_late: bool) -> Iterator[None]:
    """Call something between the computation and the write of what a replica does in this block.

    A group of calls checks the version before it writes. What is late comes after the check.
    """
    database = replica.database
    names = {database: ("write", "locked"), replica: () if is_late else ("_write_group",)}
    attempt, done = replica._attempt, []

    def checks() -> bool:
        """Return whether answers without statements are checked: by the version of a ledger, and errors of all."""
        return isinstance(replica, RowsReplica) or replica._needs_check

    def after(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            # What writes and checks nothing takes no time: the answer of an old key was right when read.
            is_nothing = not arguments[-1] and (method.__name__ == "write" or not checks())
            if not done and not is_nothing:
                done.append(True)
                order.crossed()
                between()
            return method(*arguments, **options)

        return call

    def attempted(*arguments: Any, **options: Any) -> Any:
        order.is_open.clear()
        try:
            found = attempt(*arguments, **options)
        except BaseException:
            order.made -= order.is_open  # they are made again
            raise
        order.is_open.clear()
        return found

    for owner, methods in names.items():
        for name in methods:
            setattr(owner, name, after(getattr(owner, name)))
    replica._attempt = attempted
    try:
        yield
    finally:
        del replica._attempt
        for owner, methods in names.items():
            for name in methods:
                delattr(owner, name)


def follow(kind: Kind, url: str, name: str, plan: Plan) -> None:
    """Make the calls of a plan. Raise a DisagreementError, or what else a call raised."""
    run = Run(kind, url, name, plan)
    try:
        for act in plan[1:]:
            run.step(act)
        for at in sorted(run.replicas) or [0]:
            run.compare(at)
        run.compare(-1)  # a new process
    finally:
        run.close()


def failure(kind: Kind, url: str, name: str, plan: Plan) -> BaseException | None:
    """Return what a plan raises, if anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            follow(kind, url, name, plan)
        except Exception as error:
            return error
    return None


def search(name: str, folder: Path, seed: int, calls: int, url: str = "") -> None:
    """Follow a random plan. Raise a DisagreementError with a short plan that shows what is wrong."""
    kind, dice = KINDS[name], random.Random(f"{name} {seed}")
    plan = draw(kind, dice, calls)
    count = iter(range(10**9))

    def fails(some: Plan) -> BaseException | None:
        place = next(count)
        return failure(kind, url or str(folder / f"{seed}-{place}.db"), f"{name} {seed} {place}", some)

    found = fails(plan)
    if found is None:
        return
    plan = shortest(plan, lambda some: fails(some) is not None)
    lines = "\n    ".join(map(repr, plan))
    raise DisagreementError(f"{name}, seed {seed}: {fails(plan)!r:.600}\n    {lines}")


def shortest(plan: Plan, is_wrong: Callable[[Plan], bool], seconds: float = 20.0) -> Plan:
    """Return a part of a plan that is still wrong, without calls that are not needed for it."""
    end, size = time.monotonic() + seconds, len(plan) // 2
    while size and time.monotonic() < end:
        start = 1  # the options stay
        while start < len(plan) and time.monotonic() < end:
            shorter = plan[:start] + plan[start + size :]
            if is_wrong(shorter):
                plan = shorter
            else:
                start += size
        size //= 2
    return plan


def main(arguments: list[str]) -> int:
    """Search for so many seconds, in SQLite or PostgreSQL, with the plans of this module and those of a ledger."""
    import contextlib
    import logging
    import sys
    import tempfile

    import ledger_model
    from postgres import server

    seconds, seed = float(arguments[0]) if arguments else 60.0, int(arguments[1]) if len(arguments) > 1 else 0
    dice, done, found = random.Random(seed), dict.fromkeys((*KINDS, "ledger", "leases"), 0), 0
    searches: dict[str, Any] = {"ledger": ledger_model.search, "leases": ledger_model.honest}
    warnings.simplefilter("ignore")
    logging.disable()  # a limit that was changed is logged at every new start
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        running = stack.enter_context(server()) if "postgres" in arguments else None
        url, end = "" if running is None else running.url, time.monotonic() + seconds
        while time.monotonic() < end:
            for name in (*KINDS, *searches, *searches, *searches):
                drawn = dice.randrange(10**9)
                try:
                    if name in KINDS:
                        search(name, folder, drawn, 150, url)
                    else:
                        searches[name](url or str(folder / f"{drawn}.db"), drawn, 150)
                except AssertionError as error:
                    found += 1
                    sys.stdout.write(f"{name}, seed {drawn}: {error}\n")
                done[name] += 1
            for file in folder.glob("*.db*"):
                file.unlink()
    where = "SQLite" if running is None else "PostgreSQL"
    sys.stdout.write(f"{where}, {seconds:.0f} s: {sum(done.values()):,} plans of 150 calls, {found} disagreements\n")
    sys.stdout.write("".join(f"  {count:>7,} {name}\n" for name, count in done.items()))
    return int(found > 0)


if __name__ == "__main__":
    import sys

    import replica_model  # under its own name, since the ledger's model raises its error

    sys.exit(replica_model.main(sys.argv[1:]))
