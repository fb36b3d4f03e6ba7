"""The stored state of a chooser, and the changes that calls make to it.

Every change writes the small part of the state: round, prices, ledgers, random generator. The beliefs may have (Kd)²
numbers, so a settled choice is stored as a lesson instead, and the beliefs are written after `LESSONS_KEPT` of them. A
replica reads the stored beliefs and learns the lessons since. An open choice is a round in the database.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.calibration.holds import ExcessHold, HoldState
from longterm.decisions.open_choices import decode_choice, encode_choice
from longterm.decisions.primal_dual import PrimalDual, RuleState
from longterm.decisions.primals import ActionOutcomes, OpenChoice
from longterm.service.ledger_rows import put_group, read_groups
from longterm.storage import schema as sql
from longterm.storage.database import Database, RoundRow
from longterm.storage.packing import (
    LARGEST_COUNT,
    StatePacker,
    pack,
    require_sound,
    restored_state,
    state_arrays,
    unpack,
    unpack_checked,
)
from longterm.storage.schema import Statement

KIND = "chooser"
SETTLED, SKIPPED, REFUSED = 1, 2, 3
"""The status of a closed choice."""
MOST_ACTIONS = 62
"""Actions of a chooser to which actions can be added: the removed ones are the bits of an integer."""
RECENT = 64
"""The rounds of the last changes that the state holds, so that replicas read only those again."""
LESSONS_KEPT = 32
CLOSED_KEPT = 1000
"""The age, in requests since, after which closed choices are deleted."""
ROUNDING = 1e-9
"""The relative error allowed between the ledger of commitments and the sum of its parts."""


class SmallState(NamedTuple):
    """The part of a rule's state that every change writes, with the random generator."""

    round: Any
    dual: Any
    committed: Any
    spent: Any
    generator: NDArray[np.uint64]


class Beliefs(NamedTuple):
    """The part of a rule's state that is written once in `LESSONS_KEPT` lessons."""

    primal: Any


class Counts(NamedTuple):
    """The numbers of changes, of rounds that they touched, and of lessons."""

    version: int = 0
    touched: int = 0
    lessons: int = 0
    base: int = 0
    """The lessons that the stored beliefs have learned."""
    actions: int = 0
    """The number of actions, removed ones included."""
    removed: int = 0
    """A bit for each action: 1 if it is not used any more."""
    refused: int = 0
    """The requests for which no action was affordable."""


class ChooserChange(NamedTuple):
    """The effect of a call, computed and ready to be written."""

    state: RuleState
    counts: Counts
    recent: array[int]
    generator: NDArray[np.uint64]
    choice: OpenChoice | None = None
    """The choice that the call concerns; None for `teach`."""
    status: int = sql.OPEN
    """Its status after the call."""
    opened: float | None = None
    """The time of the request, for `act`."""
    key: str | None = None
    expired: tuple[int, ...] = ()
    """Older choices that are skipped first."""
    lesson: OpenChoice | None = None
    """The part that the beliefs learn from."""
    extends: bool = False
    """True if the call adds an action."""
    hold: tuple[str, HoldState] | None = None
    """A group, and the state of its hold after a cost."""

    def statements(self, copy: ChooserCopy, name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return the statements that write it."""
        counts, choice, guarded = self.counts, self.choice, 1
        state = copy.encode_small(self.state, self.generator, counts, self.recent)
        written: list[Statement] = [(sql.UPDATE_OBJECT, (counts.version, now, state, name, copy.counts.version))]
        if choice is not None and self.opened is not None:
            given = choice.round, self.status, choice.epoch, self.opened, self.key, encode_choice(choice)
            written.append((sql.INSERT_ROUND, (*given, name, counts.version)))
            guarded = 2
        elif choice is not None and self.status == sql.OPEN:
            written.append((sql.UPDATE_ROUND, (encode_choice(choice), name, choice.round)))
        elif choice is not None:
            written.append(sql.close_rounds(name, self.status, (choice.round,)))
        if self.hold is not None:
            written.append(put_group(name, *self.hold))
        if self.expired:
            written.append(sql.close_rounds(name, SKIPPED, self.expired))
        if counts.base != copy.counts.base:
            beliefs = pack({"lessons": counts.base}, state_arrays(Beliefs(self.state.primal)))
            written += [(sql.DELETE_PARTS, (name,)), (sql.INSERT_PART, (name, 0, beliefs))]
            written.append((sql.DELETE_ROUNDS, (name, self.state.round - CLOSED_KEPT)))
        elif self.lesson is not None:
            written.append((sql.INSERT_PART, (name, counts.lessons, encode_choice(self.lesson))))
        return written, guarded

    def apply(self, copy: ChooserCopy) -> None:
        """Apply it to a copy."""
        if self.extends and copy.rule.actions < self.counts.actions:
            copy.use(copy.rule.with_actions(self.counts.actions))
            copy.open = {number: choice.extended() for number, choice in copy.open.items()}
        if self.hold is not None:
            copy.group_holds[self.hold[0]] = self.hold[1]
        for number in self.expired:
            copy.open.pop(number, None)
            copy.opened.pop(number, None)
        if self.choice is not None:
            number = self.choice.round
            if self.status == sql.OPEN:
                copy.open[number] = self.choice
            else:
                copy.open.pop(number, None)
                copy.opened.pop(number, None)
            if self.opened is not None and self.status == sql.OPEN:
                copy.opened[number] = self.opened
            if self.key is not None and copy.keys is not None:
                copy.keys[self.key] = self.choice
        copy.state, copy.generator, copy.counts, copy.recent = self.state, self.generator, self.counts, self.recent


class ChoiceRepeated(NamedTuple):
    """An act with a key that was used before. Nothing changes."""

    choice: OpenChoice

    def statements(self, copy: ChooserCopy, name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return no statements."""
        return (), 0

    def apply(self, copy: ChooserCopy) -> None:
        """Do nothing."""


class ChooserCopy:
    """A copy of a chooser's state. The parameters are those of `Chooser`."""

    kind = KIND

    def __init__(
        self,
        rule: PrimalDual,
        seed: int,
        max_in_flight: int,
        expire_after: int | None,
        max_age: float | None,
        holds: ExcessHold | None = None,
    ) -> None:
        self.seed = validate.seed("seed", seed)
        self.max_in_flight = validate.count("max_in_flight", max_in_flight)
        self.expire_after = None if expire_after is None else validate.count("expire_after", expire_after)
        self.max_age = None if max_age is None else validate.positive_scalar("max_age", max_age)
        self._rng = np.random.default_rng(self.seed)
        self.generator = _encode_generator(self._rng)
        """The state of the generator after the last change; `_rng` itself may be ahead of it."""
        self._drawn: NDArray[np.uint64] | None = self.generator
        """The state of `_rng`; None if it is unknown."""
        self.use(rule)
        self.state = self._start
        self.open: dict[int, OpenChoice] = {}
        self.opened: dict[int, float] = {}
        """The times of the requests of open choices."""
        self.keys: dict[str, OpenChoice] | None = {}
        """Choices by the key of their act; None with a database."""
        self.holds = holds
        self.group_holds: dict[str, HoldState] = {}
        """The states of the holds, by action and group."""
        self.counts = Counts(actions=rule.actions)
        self.recent = array("q", bytes(8 * RECENT))

    def use(self, rule: PrimalDual) -> None:
        """Use a rule with another number of actions."""
        self.rule, self._start = rule, rule.init()
        others = {"counts": np.zeros(len(Counts._fields), np.int64), "recent": np.zeros(RECENT, np.int64)}
        metadata = {"counters": Counts._fields}
        self._packer = StatePacker(_small(self._start, self.generator), metadata, others)

    @property
    def version(self) -> int:
        """The number of changes."""
        return self.counts.version

    @property
    def in_use(self) -> NDArray[np.bool_]:
        """A mask of the actions that have not been removed."""
        removed = self.counts.removed
        return np.array([not removed >> action & 1 for action in range(self.rule.actions)])

    @property
    def asked(self) -> int:
        """The number of the last request."""
        return int(self.state.round) - 1

    # --- changes ----------------------------------------------------------------------------------------------

    def act(
        self,
        context: FloatArray,
        costs: FloatArray | None,
        bounds: FloatArray | None,
        allowed: NDArray[np.bool_] | None,
        expired: tuple[int, ...],
        epoch: int,
        now: float,
        key: str | None,
        group: str = "",
    ) -> ChooserChange:
        """Return the change of skipping expired choices and answering a request."""
        state = self.state
        for number in expired:
            state = self._state_without(state, self.open[number])
        if self.generator is not self._drawn:
            _decode_generator(self._rng, self.generator)
        self._drawn = None
        in_use = self.in_use if self.counts.removed else None
        state, choice = self.rule.act(state, context, costs, bounds, self._rng, allowed=allowed, in_use=in_use)
        choice = choice._replace(epoch=epoch, group=group)
        counts, recent = self._counted((*expired, choice.round), 0)
        status = REFUSED if choice.action < 0 else sql.OPEN
        counts = counts._replace(refused=counts.refused + (status == REFUSED))
        drawn = self._drawn = _encode_generator(self._rng)
        return ChooserChange(state, counts, recent, drawn, choice, status, now, key, expired)

    def expiring(self, now: float) -> tuple[int, ...]:
        """Return the open choices that are too old, the oldest first."""
        oldest = -1 if self.expire_after is None else self.state.round - self.expire_after
        first = -math.inf if self.max_age is None else now - self.max_age
        if not self.open or (oldest < 0 and self.max_age is None):
            return ()
        return tuple(takewhile(lambda n: n < oldest or self.opened.get(n, now) < first, self.open))

    def settle(self, number: int, paid: FloatArray | None, outcomes: ActionOutcomes | None) -> ChooserChange:
        """Return the change of reporting a cost, outcomes, or both, of an open choice; each of them is new."""
        choice, state, hold = self.open[number], self.state, None
        if paid is not None:
            if self.holds is not None:
                name, i = _group_name(choice.action, choice.group), self.cap
                before = self.group_holds.get(name, HoldState())
                hold = name, self.holds.after(before, float(paid[i]), float(choice.bound[i]))
            state = self.rule.charge(state, choice, paid)
        if outcomes is not None:
            state = self.rule.reward(state, float(outcomes.rewards[choice.action]))
        choice = choice._replace(
            paid=choice.paid if paid is None else paid, outcomes=choice.outcomes if outcomes is None else outcomes
        )
        is_settled = choice.paid is not None and choice.outcomes is not None
        if is_settled:
            state = self._learn(state, choice)
        counts, recent = self._counted((number,), int(is_settled))
        status, lesson = (SETTLED, choice) if is_settled else (sql.OPEN, None)
        return ChooserChange(state, counts, recent, self.generator, choice, status, lesson=lesson, hold=hold)

    def held(self, most: FloatArray, group: str) -> FloatArray:
        """Return the money to hold back for each action, shape (K, m), for largest costs of that shape."""
        if self.holds is None:
            return most
        held = most.copy()
        for action, largest in enumerate(most[:, self.cap]):
            state = self.group_holds.get(_group_name(action, group), HoldState())
            held[action, self.cap] = self.holds.amount(state, float(largest))
        return held

    @property
    def cap(self) -> int:
        """The index of the first cap."""
        return int(self.rule.budget_set.is_cap.argmax())

    def skip(self, number: int) -> ChooserChange:
        """Return the change of giving up an open choice: the money held back for it counts as spent."""
        choice = self.open[number]
        counts, recent = self._counted((number,), 0)
        return ChooserChange(self._state_without(self.state, choice), counts, recent, self.generator, choice, SKIPPED)

    def add_action(self) -> ChooserChange:
        """Return the change of adding an action. The extended beliefs are written at once."""
        counts, recent = self._counted((), 1)
        counts = counts._replace(actions=counts.actions + 1, base=counts.lessons)
        return ChooserChange(self.rule.extended(self.state), counts, recent, self.generator, extends=True)

    def set_removed(self, action: int, *, is_removed: bool) -> ChooserChange:
        """Return the change of using an action no more, or again. Its index and its belief are kept."""
        counts, recent = self._counted((), 0)
        removed = counts.removed | 1 << action if is_removed else counts.removed & ~(1 << action)
        return ChooserChange(self.state, counts._replace(removed=removed), recent, self.generator)

    def teach(
        self, context: FloatArray, outcomes: ActionOutcomes, announced: FloatArray | None = None
    ) -> ChooserChange:
        """Return the change of learning the outcomes of a past request."""
        K, m = self.rule.actions, self.rule.setting.resources
        prices, none = self.rule.dual.prices(self.state.dual, self.rule.setting), np.zeros(m)
        lesson = OpenChoice(
            self.state.round,
            context,
            prices,
            np.ones(K, dtype=np.bool_),
            int(outcomes.seen.argmax()),
            np.ones(K) / K,
            none,
            announced,
            none,
            none,
            None,
            outcomes,
        )
        counts, recent = self._counted((), 1)
        return ChooserChange(self._learn(self.state, lesson), counts, recent, self.generator, lesson=lesson)

    def _learn(self, state: RuleState, lesson: OpenChoice) -> RuleState:
        """Return the state after the outcomes of a choice, whose own cost may differ from the announced one."""
        outcomes = lesson.outcomes
        assert outcomes is not None
        if lesson.paid is not None:
            costs = outcomes.costs.copy()
            costs[lesson.action] = lesson.paid
            outcomes = ActionOutcomes(outcomes.seen, outcomes.rewards, costs)
        return self.rule.learn(state, lesson, outcomes)

    def _state_without(self, state: RuleState, choice: OpenChoice) -> RuleState:
        """Return the state after a choice was given up."""
        return state if choice.paid is not None else self.rule.charge(state, choice, choice.bound)

    def _counted(self, touched: tuple[int, ...], lessons: int) -> tuple[Counts, array[int]]:
        """Return the counts and the recent rounds after one more change."""
        version, place, learned, base = self.counts[:4]
        recent, learned = self.recent[:], learned + lessons
        for number in touched:
            recent[place % RECENT] = number
            place += 1
        base = learned if learned - base >= LESSONS_KEPT else base
        return Counts(version + 1, place, learned, base, *self.counts[4:]), recent

    # --- choices ----------------------------------------------------------------------------------------------

    def choice_with_key(self, key: str, database: Database | None, name: str) -> OpenChoice | None:
        """Return the choice of the act with this key, if it is still known."""
        if database is None:
            return (self.keys or {}).get(key)
        rows = database.rounds(sql.READ_KEY, name, key)
        return database.decoded(self._choice_of, rows[0]) if rows else None

    def closed_epoch(self, number: int, database: Database, name: str) -> int | None:
        """Return the epoch of a closed choice, or None if it is not known any more."""
        rows = database.rounds(sql.READ_ROUND, name, number)
        return rows[0].epoch if rows else None

    # --- storage ----------------------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """Return the small part of the state as bytes. The beliefs of a new chooser are those of its rule."""
        pack({}, state_arrays(Beliefs(self.state.primal)))  # raises if they cannot be stored
        return self.encode_small(self.state, self.generator, self.counts, self.recent)

    def encode_small(
        self, state: RuleState, generator: NDArray[np.uint64], counts: Counts, recent: array[int]
    ) -> bytes:
        """Return the small part of a state as bytes."""
        others = np.array(counts, dtype="<i8").tobytes() + recent.tobytes()
        return self._packer.encode(_small(state, generator), others)

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        """Become what the database holds. Raise ValueError, LookupError, TypeError or ArithmeticError if forged."""
        _, arrays = unpack_checked(state)
        actions = int(arrays["counts"][4])
        if actions != self.rule.actions:
            _require(self.rule.is_extendable and 1 <= actions <= MOST_ACTIONS, "the number of actions is absurd")
            self.use(self.rule.with_actions(actions))
        template = _small(self._start, self.generator)
        small: SmallState = restored_state(template, arrays)
        require_sound(template, small._replace(generator=template.generator % np.uint64(2)))
        counts = Counts(*(int(count) for count in arrays["counts"]))
        recent = array("q", np.asarray(arrays["recent"], dtype=np.int64).tobytes())
        _require(len(recent) == RECENT and min(counts) >= 0 and max(counts) <= LARGEST_COUNT, "a count is absurd")
        _require(counts.version == version, "the version is not the number of changes")
        _require(0 <= counts.lessons - counts.base < LESSONS_KEPT, "too many lessons are not learned")
        _require(0 <= counts.removed < 1 << actions, "an action that does not exist was removed")
        _require(counts.refused <= asked, "more requests were refused than made")
        _require(small.round == asked + 1, "the number of requests is not that of the rounds")
        self._drawn = None
        _decode_generator(self._rng, small.generator)
        with np.errstate(all="ignore"):
            primal, lessons = self._beliefs(database, name, counts)
            whole = RuleState(int(small.round), primal, small.dual, small.committed, small.spent)
            for lesson in lessons:
                whole = self._learn(whole, lesson)
            if self.keys is not None:  # the first time; a check of the beliefs is expensive
                self.rule.require_sound(whole)
            group_holds = {} if self.holds is None else read_groups(database, name)
            touched = self._touched(counts, recent)
            choices = self._read_choices(database, name, asked, touched)
            if touched is None:
                self._require_money(whole, [choice for choice, _ in choices.values() if choice])
        self.group_holds = group_holds
        if touched is None:
            self.open = {number: choice for number, (choice, _) in choices.items() if choice}
            self.opened = {number: opened for number, (_, opened) in choices.items()}
        for number, (choice, opened) in choices.items():  # new ones are the last, so the order is kept
            if choice is None:
                self.open.pop(number, None)
                self.opened.pop(number, None)
            else:
                self.open[number], self.opened[number] = choice, opened
        self.state, self.generator, self.counts, self.recent = whole, small.generator, counts, recent
        self.keys = None

    def _beliefs(self, database: Database, name: str, counts: Counts) -> tuple[Any, list[OpenChoice]]:
        """Return beliefs, this copy's or the stored ones, and the lessons that they have not learned."""
        primal, learned = self._start.primal, 0
        if self.keys is None and counts.base <= self.counts.lessons <= counts.lessons:
            primal, learned = self.state.primal, self.counts.lessons
        elif counts.base:
            (content,) = database.parts(name, -1, 0)
            metadata, arrays = unpack(content)
            _require(metadata["lessons"] == counts.base, "the beliefs are of another version")
            start = Beliefs(self._start.primal)
            beliefs = restored_state(start, arrays)
            require_sound(start, beliefs)
            primal, learned = beliefs.primal, counts.base
        lessons = [decode_choice(self.rule, content) for content in database.parts(name, learned, counts.lessons)]
        _require(len(lessons) == counts.lessons - learned, "a lesson is missing")
        _require(all(lesson.outcomes is not None for lesson in lessons), "a lesson has no outcomes")
        return primal, lessons

    def _touched(self, counts: Counts, recent: array[int]) -> set[int] | None:
        """Return the choices that others have changed since the last read, or None if they are not known."""
        is_known = self.keys is None and counts.actions == self.counts.actions
        if not is_known or not 0 <= counts.touched - self.counts.touched <= RECENT:
            return None
        return {recent[place % RECENT] for place in range(self.counts.touched, counts.touched)}

    def _read_choices(
        self, database: Database, name: str, asked: int, numbers: set[int] | None
    ) -> dict[int, tuple[OpenChoice | None, float]]:
        """Return some choices, or all, with the times of their requests; None for closed ones."""
        if numbers is None:
            rows = database.rounds(sql.READ_ROUNDS, name, 0, asked)
        else:
            rows = [row for number in sorted(numbers) for row in database.rounds(sql.READ_ROUND, name, number)]
        _require(all(1 <= row.number <= asked for row in rows), "a choice has an absurd number")
        found: dict[int, tuple[OpenChoice | None, float]] = dict.fromkeys(numbers or (), (None, 0.0))
        for row in rows:
            if row.status == sql.OPEN:
                found.pop(row.number, None)  # the order is that of the rows
                found[row.number] = self._choice_of(row), row.opened
        return found

    def _choice_of(self, row: RoundRow) -> OpenChoice:
        choice = decode_choice(self.rule, row.content, refused=row.status == REFUSED)
        _require((choice.round, choice.epoch) == (row.number, row.epoch), "a choice has another number")
        return choice

    def _require_money(self, state: RuleState, choices: list[OpenChoice]) -> None:
        """Raise a ValueError unless the commitments are the money spent on caps and held back for open choices."""
        is_cap = self.rule.budget_set.is_cap
        held = [choice.bound for choice in choices if choice.paid is None]
        expected = np.where(is_cap, state.spent.value + np.sum(held, axis=0), 0.0)
        error = np.abs(state.committed.value - expected)
        largest = np.maximum(np.abs(expected), self.rule.budget_set.limit(max(int(state.round) - 1, 1)))
        _require(bool((error <= ROUNDING * largest).all()), "the ledgers do not add up")


def _group_name(action: int, group: str) -> str:
    return f"{action} {group}" if group else str(action)


def _small(state: RuleState, generator: NDArray[np.uint64]) -> SmallState:
    return SmallState(np.int64(state.round), state.dual, state.committed, state.spent, generator)


_WORD = 2**64


def _encode_generator(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Return the state of a PCG64 generator as six integers."""
    whole = rng.bit_generator.state
    state, increment = whole["state"]["state"], whole["state"]["inc"]
    parts = (*divmod(state, _WORD), *divmod(increment, _WORD), whole["has_uint32"], whole["uinteger"])
    return np.array(parts, dtype=np.uint64)


def _decode_generator(rng: np.random.Generator, parts: NDArray[np.uint64]) -> None:
    """Set the state of a PCG64 generator. Raise a ValueError if it cannot have one like this."""
    state_high, state_low, high, low, has_half, half = (int(part) for part in parts)
    _require(has_half <= 1 and half < 2**32 and low % 2 == 1, "the random generator has no such state")
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": state_high * _WORD + state_low, "inc": high * _WORD + low},
        "has_uint32": has_half,
        "uinteger": half,
    }


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
