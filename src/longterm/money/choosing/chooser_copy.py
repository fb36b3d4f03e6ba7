"""The stored state of a chooser, and the changes that calls make to it.

Every change writes the small part of the state: round, prices, ledgers, random generator. The beliefs may have (Kd)²
numbers, so a settled choice is stored as a lesson instead, and the beliefs are written after `LESSONS_KEPT` of them. A
replica reads the stored beliefs and learns the lessons since. An open choice is a round of `storage.rounds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import AlreadyToldError, TokenError
from longterm.money.choosing.open_choices import decode_choice, encode_choice
from longterm.money.choosing.primal_dual import PrimalDual, RuleState
from longterm.money.choosing.primals import ActionOutcomes, OpenChoice
from longterm.money.holds import ExcessHold, HoldState
from longterm.money.ledger.ledger_rows import put_group, read_groups
from longterm.storage import schema as sql
from longterm.storage.database import RoundRow
from longterm.storage.packing import (
    LARGEST_COUNT,
    StatePacker,
    pack,
    raw_bytes,
    require,
    require_sound,
    restored_state,
    state_arrays,
    unpack,
    unpack_checked,
)
from longterm.storage.rounds import CORRECTED, DONE, SKIPPED, OpenRound, RoundChange, RoundsCopy, Window
from longterm.storage.schema import Statement

REFUSED = 3
"""The status of a request for which no action was affordable."""
MOST_ACTIONS = 62
"""Actions of a chooser to which actions can be added: the removed ones are the bits of an integer."""
LESSONS_KEPT = 32
ROUNDING = 1e-9
"""The relative error allowed between the ledger of commitments and the sum of its parts."""


class SmallState(NamedTuple):
    """The part of a rule's state that every change writes, with the random generator."""

    round: Any
    dual: Any
    committed: Any
    spent: Any
    total: Any
    forfeited: Any
    generator: NDArray[np.uint64]


class Beliefs(NamedTuple):
    """The part of a rule's state that is written once in `LESSONS_KEPT` lessons."""

    primal: Any


class ChoiceCounts(NamedTuple):
    """The numbers of lessons, actions and refused requests."""

    lessons: int = 0
    base: int = 0
    """The lessons that the stored beliefs have learned."""
    actions: int = 0
    """The number of actions, removed ones included."""
    removed: int = 0
    """A bit for each action: 1 if it is not used any more."""
    refused: int = 0
    """The requests for which no action was affordable."""

    def learned(self) -> ChoiceCounts:
        """Return the counts after one more lesson."""
        lessons, base = self.lessons + 1, self.base
        return ChoiceCounts(lessons, lessons if lessons - base >= LESSONS_KEPT else base, *self[2:])


class ChooserState(NamedTuple):
    """The state of a chooser."""

    rule: RuleState
    generator: NDArray[np.uint64]
    counts: ChoiceCounts
    holds: Mapping[str, HoldState]
    """The states of calibrated holds, by action and group."""
    names: tuple[str, ...] = ()
    """The names of the first actions. They are stored with the beliefs."""


Change = RoundChange[ChooserState, OpenChoice]


class ChooserCopy(RoundsCopy[ChooserState, OpenChoice]):
    """A copy of a chooser's state. The parameters are those of `Chooser`."""

    kind = "chooser"
    remedy = "Pass the choice that act() returned, or str() of it"
    expired_status = SKIPPED
    closed_kept = 100_000

    def __init__(
        self,
        rule: PrimalDual,
        seed: int,
        window: Window,
        holds: ExcessHold | None = None,
    ) -> None:
        self.seed = validate.seed("seed", seed)
        self.holds = holds
        self._rng = np.random.default_rng(self.seed)
        generator = _encode_generator(self._rng)
        self._drawn: NDArray[np.uint64] | None = generator
        """The state of `_rng`, which may be ahead of the chooser's; None if it is unknown."""
        self.use(rule)
        super().__init__(
            ChooserState(self._start, generator, ChoiceCounts(actions=rule.actions), {}),
            window,
        )
        others = {"counts": np.zeros(len(ChoiceCounts._fields), np.int64)}
        self._packer = StatePacker(_small(self.state), {"counters": ChoiceCounts._fields}, others)

    @property
    def rule(self) -> PrimalDual:
        """The rule, with the present number of actions. An interrupted call may have left `_rule` with another."""
        if self._rule.actions != self.state.counts.actions:
            self.use(self._rule.with_actions(self.state.counts.actions))
        return self._rule

    @property
    def in_use(self) -> NDArray[np.bool_]:
        """A mask of the actions that have not been removed."""
        removed = self.state.counts.removed
        return np.array([not removed >> action & 1 for action in range(self.rule.actions)])

    @property
    def cap(self) -> int:
        """The index of the first cap."""
        return int(self.rule.budget_set.is_cap.argmax())

    def choice(self, number: int) -> OpenChoice:
        """Return an open choice, with the actions that were added since."""
        choice = self.open[number].content
        for _ in range(self.rule.actions - len(choice.probabilities)):
            choice = choice.extended()
        return choice

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
    ) -> Change:
        """Return the change of skipping expired choices and answering a request."""
        state, generator, counts, holds, names = self.state
        for number in expired:
            state = self._state_without(state, self.choice(number))
        if generator is not self._drawn:
            _decode_generator(self._rng, generator)
        self._drawn = None
        in_use = self.in_use if counts.removed else None
        state, choice = self.rule.act(state, context, costs, bounds, self._rng, allowed=allowed, in_use=in_use)
        choice = choice._replace(epoch=epoch, group=group)
        status = REFUSED if choice.action < 0 else sql.OPEN
        if status == REFUSED:
            counts = counts._replace(refused=counts.refused + 1)
        drawn = self._drawn = _encode_generator(self._rng)
        after = ChooserState(state, drawn, counts, holds, names)
        return self.opening(after, choice, epoch, key, expired, now=now, status=status)

    def expiring(self, expired: tuple[int, ...]) -> Change:
        """Return the change of giving up open choices that are too old in seconds."""
        state = self.state.rule
        for number in expired:
            state = self._state_without(state, self.choice(number))
        return self.expiry(self.state._replace(rule=state) if expired else self.state, expired)

    def settle(self, number: int, paid: FloatArray | None, outcomes: ActionOutcomes | None) -> Change:
        """Return the change of reporting a cost, outcomes, or both, of an open choice; each of them is new."""
        choice, rule, (state, generator, counts, holds, names) = self.choice(number), self._rule, self.state
        if paid is not None:
            if self.holds is not None:
                name, i = _group_name(choice.action, choice.group), self.cap
                before = holds.get(name, HoldState())
                holds = {**holds, name: self.holds.after(before, float(paid[i]), float(choice.bound[i]))}
            state = rule.charge(state, choice, paid)
        if outcomes is not None:
            state = rule.reward(state, float(outcomes.rewards[choice.action]))
        choice = choice._replace(
            paid=choice.paid if paid is None else paid, outcomes=choice.outcomes if outcomes is None else outcomes
        )
        is_settled = choice.paid is not None and choice.outcomes is not None
        if is_settled:
            state, counts = self._learn(state, choice), counts.learned()
        _, epoch, opened = self.open[number]
        new = ChooserState(state, generator, counts, holds, names)
        return self.changing(new, number, OpenRound(choice, epoch, opened), DONE if is_settled else sql.OPEN)

    def correct(self, number: int, epoch: int, record: bytes, paid: FloatArray, key: str | None, now: float) -> Change:
        """Return the change of replacing the cost of a closed choice. The record keeps all its costs."""
        base, before = costs_in(record, self.rule.setting.resources)
        after = np.maximum(paid - base, 0.0)
        state = self.state._replace(rule=self.rule.correct(self.state.rule, before, after))
        content: Any = record + raw_bytes(after)
        return self.changing(state, number, OpenRound(content, epoch, now), CORRECTED, key)

    def record(self, content: Any) -> bytes:
        if isinstance(content, bytes):
            return content
        if content is None or content.action < 0:
            return b""
        budgets = self.rule.budget_set
        if not budgets.counts_above:
            return raw_bytes(np.concatenate([content.base, _paid(content)]))
        is_above = budgets.above_cheapest
        base = np.where(is_above, content.base, 0.0)
        if content.counted is not None:  # the cheapest action counts 0, whatever it costs
            base = np.where(is_above & (content.counted[content.action] == 0), np.inf, base)
        return raw_bytes(np.concatenate([base, _paid(content)]))

    def held(self, most: FloatArray, group: str) -> FloatArray:
        """Return the money to hold back for each action, shape (K, m), for largest costs of that shape."""
        if self.holds is None:
            return most
        held = most.copy()
        for action, largest in enumerate(most[:, self.cap]):
            state = self.state.holds.get(_group_name(action, group), HoldState())
            held[action, self.cap] = self.holds.amount(state, float(largest))
        return held

    def skip(self, number: int) -> Change:
        """Return the change of giving up an open choice: the money held back for it counts as spent."""
        after = self.state._replace(rule=self._state_without(self.state.rule, self.choice(number)))
        return self.closing(number, after, SKIPPED)

    def add_actions(self, number: int, names: tuple[str, ...] | None = None) -> Change:
        """Return the change of adding actions and of naming the first ones. Beliefs and names are written at once."""
        rule, counts = self.state.rule, self.state.counts
        for actions in range(counts.actions, counts.actions + number):
            rule = self._rule.with_actions(actions).extended(rule)
        counts = counts._replace(lessons=counts.lessons + 1, base=counts.lessons + 1, actions=counts.actions + number)
        names = self.state.names if names is None else names
        return self._without_round(self.state._replace(rule=rule, counts=counts, names=names))

    def adapted(self, new: PrimalDual) -> Change:
        """Return the change of the state that a rule with other limits needs. The beliefs are written at once.

        Lessons that were stored before would be learned differently under the new rule.
        """
        counts = self.state.counts
        counts = counts._replace(lessons=counts.lessons + 1, base=counts.lessons + 1)
        rule = new.adapted(self.state.rule, self.rule)
        return self._without_round(self.state._replace(rule=rule, counts=counts))

    def use(self, rule: PrimalDual) -> None:
        """Use a rule with other limits from now on."""
        self._start, self._rule = rule.init(), rule  # in this order: see `rule`

    def set_removed(self, action: int, *, is_removed: bool) -> Change:
        """Return the change of using an action no more, or again. Its index and its belief are kept."""
        counts = self.state.counts
        removed = counts.removed | 1 << action if is_removed else counts.removed & ~(1 << action)
        return self._without_round(self.state._replace(counts=counts._replace(removed=removed)))

    def teach(self, context: FloatArray, outcomes: ActionOutcomes, announced: FloatArray | None = None) -> Change:
        """Return the change of learning the outcomes of a past request."""
        state, rule = self.state.rule, self.rule
        K, m = rule.actions, rule.setting.resources
        prices, none = rule.dual.prices(state.dual, rule.setting), np.zeros(m)
        lesson = OpenChoice(
            state.round,
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
        after = self.state._replace(rule=self._learn(state, lesson), counts=self.state.counts.learned())
        return self._without_round(after, lesson)

    def _without_round(self, state: ChooserState, lesson: OpenChoice | None = None) -> Change:
        return self.changing(state, 0, OpenRound(lesson, 0, 0.0), sql.OPEN)  # type: ignore[arg-type]

    def _learn(self, state: RuleState, lesson: OpenChoice) -> RuleState:
        """Return the state after the outcomes of a choice, whose own cost may differ from the announced one."""
        outcomes = lesson.outcomes
        assert outcomes is not None
        if lesson.paid is not None:
            costs = outcomes.costs.copy()
            costs[lesson.action] = lesson.paid
            outcomes = ActionOutcomes(outcomes.seen, outcomes.rewards, costs)
        return self._rule.learn(state, lesson, outcomes)

    def _state_without(self, state: RuleState, choice: OpenChoice) -> RuleState:
        """Return the state after a choice was given up."""
        return state if choice.paid is not None else self.rule.charge(state, choice, choice.bound)

    def refusal(self, number: int, status: int | None) -> TokenError:
        """Return the error for a choice with this status."""
        if status is None:
            return super().refusal(number, status)
        return AlreadyToldError(number, "it was settled, skipped or refused before", "Do nothing: it counts once")

    # --- storage ----------------------------------------------------------------------------------------------

    def reset(self, mark: Mapping[str, Any]) -> None:
        """Become what the copy was when `mark` was called. The random generator has drawn since."""
        super().reset({**mark, "_drawn": None})

    def encode(self) -> bytes:
        """Return the small part of the state as bytes. The beliefs of a new chooser are those of its rule."""
        pack({}, state_arrays(Beliefs(self.state.rule.primal)))  # raises if they cannot be stored
        return super().encode()

    def encode_state(self, state: ChooserState) -> bytes:
        return self._packer.encode(_small(state), np.array(state.counts, dtype="<i8").tobytes())

    def encode_round(self, content: OpenChoice) -> bytes:
        return encode_choice(content)

    def further_statements(self, change: Change) -> list[Statement]:
        """Return the statements that write the lesson or the beliefs, and calibrated holds."""
        (_, _, before, holds, _), (rule, _, after, new_holds, names) = self.state, change.state
        written = [put_group(self.name, key, hold) for key, hold in new_holds.items() if holds.get(key) is not hold]
        if after.base != before.base:
            beliefs = pack({"lessons": after.base, "names": names}, state_arrays(Beliefs(rule.primal)))
            written += [(sql.DELETE_PARTS, (self.name,)), (sql.INSERT_PART, (self.name, 0, beliefs))]
        elif after.lessons != before.lessons:
            written.append((sql.INSERT_PART, (self.name, after.lessons, encode_choice(change.round.content))))
        return written

    def decode_state(self, data: bytes, asked: int) -> ChooserState:
        _, arrays = unpack_checked(data)
        counts = ChoiceCounts(*(int(count) for count in arrays["counts"]))
        require(min(counts) >= 0 and max(counts) <= LARGEST_COUNT, "a count is out of range")
        actions = counts.actions
        if actions != self._rule.actions:
            require(self._rule.is_extendable and 1 <= actions <= MOST_ACTIONS, "the number of actions is absurd")
            self.use(self._rule.with_actions(actions))
        template = _small(self.state._replace(rule=self._start))
        small: SmallState = restored_state(template, arrays)
        require_sound(template, small._replace(generator=template.generator % np.uint64(2)))
        require(0 <= counts.lessons - counts.base < LESSONS_KEPT, "too many lessons are not learned")
        require(0 <= counts.removed < 1 << actions, "an action that does not exist was removed")
        require(counts.refused <= asked, "more requests were refused than made")
        require(small.round == asked + 1, "the number of requests is not that of the rounds")
        self._drawn = None
        _decode_generator(self._rng, small.generator)
        with np.errstate(all="ignore"):
            primal, names, lessons = self._beliefs(counts)
            money = small.committed, small.spent, small.total, small.forfeited
            whole = RuleState(int(small.round), primal, small.dual, *money)
            for lesson in lessons:
                whole = self._learn(whole, lesson)
            if self.history is not None:  # the first time; a check of the beliefs is expensive
                self._rule.require_sound(whole)
        assert self.database is not None
        holds = {} if self.holds is None else read_groups(self.database, self.name)
        return ChooserState(whole, small.generator, counts, holds, names)

    def _beliefs(self, counts: ChoiceCounts) -> tuple[Any, tuple[str, ...], list[OpenChoice]]:
        """Return beliefs and names, this copy's or the stored ones, and the lessons that they have not learned."""
        assert self.database is not None
        primal, names, learned = self._start.primal, (), 0  # type: Any, tuple[str, ...], int
        if self.history is None and counts.base <= self.state.counts.lessons <= counts.lessons:
            primal, names, learned = self.state.rule.primal, self.state.names, self.state.counts.lessons
        elif counts.base:
            (content,) = self.database.parts(self.name, -1, 0)
            metadata, arrays = unpack(content)
            require(metadata["lessons"] == counts.base, "the beliefs are of another version")
            start = Beliefs(self._start.primal)
            beliefs = restored_state(start, arrays)
            require_sound(start, beliefs)
            primal, names, learned = beliefs.primal, tuple(metadata["names"]), counts.base
            sound = len(names) <= counts.actions and all(isinstance(name, str) for name in names)
            require(sound, "the names are not those of actions")
        contents = self.database.parts(self.name, learned, counts.lessons)
        lessons = [decode_choice(self._rule, content) for content in contents]
        require(len(lessons) == counts.lessons - learned, "a lesson is missing")
        require(all(lesson.outcomes is not None for lesson in lessons), "a lesson has no outcomes")
        return primal, names, lessons

    def decode_round(self, row: RoundRow) -> OpenChoice:
        choice = decode_choice(self._rule, row.content, refused=row.status == REFUSED)
        require((choice.round, choice.epoch) == (row.number, row.epoch), "a choice has another number")
        return choice

    def require_rounds(self, state: ChooserState, rounds: dict[int, OpenRound[OpenChoice]], asked: int) -> None:
        """Raise a ValueError unless the commitments are the money spent on caps and held back for open choices."""
        budgets, rule = self._rule.budget_set, state.rule
        held = [found.content.bound for found in rounds.values() if found.content.paid is None]
        with np.errstate(all="ignore"):
            expected = np.where(budgets.is_cap, rule.spent.value + np.sum(held, axis=0), 0.0)
            error = np.abs(rule.committed.value - expected)
            largest = np.maximum(np.abs(expected), budgets.limit(max(asked, 1)))
        require(bool((error <= ROUNDING * largest).all()), "the ledgers do not add up")


def costs_in(record: bytes, resources: int) -> tuple[FloatArray, FloatArray]:
    """Return what a closed choice does not count of its cost, and the last cost counted, from its record."""
    costs = np.frombuffer(record, "<f8").reshape(-1, resources)
    return costs[0], costs[-1]


def _paid(choice: OpenChoice) -> FloatArray:
    """Return what a closed choice has cost: its bound if nothing was reported."""
    return choice.bound if choice.paid is None else choice.paid


def _group_name(action: int, group: str) -> str:
    return f"{action} {group}" if group else str(action)


def _small(state: ChooserState) -> SmallState:
    rule = state.rule
    money = rule.committed, rule.spent, rule.total, rule.forfeited
    return SmallState(np.int64(rule.round), rule.dual, *money, state.generator)


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
    require(has_half <= 1 and half < 2**32 and low % 2 == 1, "the random generator has no such state")
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": state_high * _WORD + state_low, "inc": high * _WORD + low},
        "has_uint32": has_half,
        "uinteger": half,
    }
