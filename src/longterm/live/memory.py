"""Everything a live learner remembers, and the three things that can happen to it.

What happens is first worked out, as a change, then written to the journal as the change's record, then applied.
Calls and the replay of a journal apply the same changes, so they cannot drift apart. Applying a change checks nothing:
by then it has been found good and written down. It puts values in place, so that applying it twice is applying it once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longterm._arrays import Array
from longterm.engines.sums import Sums
from longterm.errors import NonFiniteError, SnapshotError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.live.journal import Follows
from longterm.live.recorded import IDENTITY, Restored
from longterm.live.records import SkipRecord, StateLayout, TellRecord, encode_ask, encode_skip
from longterm.live.snapshots import check_counters, require_near
from longterm.live.state import LiveState
from longterm.live.tokens import Closed, Lives, Token, Window
from longterm.storage.snapshot import Snapshot, pack, read_snapshot, require_sound, restored_state, state_arrays, unpack
from longterm.storage.specification import difference, specification

KIND = "live learner"
VERSION = 1
_CLOSED: tuple[Closed, ...] = ("told", "skipped")


@dataclass(slots=True)
class Counters:
    """How often what happened."""

    told: int = 0
    skipped: int = 0
    expired: int = 0
    losses_told: int = 0
    largest_delay: int = 0


class RoundOpened(NamedTuple):
    """An ask: a token is given out, and those that became too old are forgotten."""

    token: Token
    expired: tuple[int, ...]
    lives: Lives
    new_life: int | None
    expired_so_far: int

    def record(self, memory: Memory) -> bytes:
        """What the journal is given."""
        return encode_ask(self.new_life)

    def apply(self, memory: Memory) -> None:
        """Let it happen."""
        token, expired, lives, _, memory.counters.expired = self
        window, number = memory.window, token.number
        for old in expired:
            window.open.pop(old, None)
        window.open[number] = token
        window.closed.pop(number - window.expire_after - 1, None)
        window.lives = lives
        window.asked = number


class RoundTold(NamedTuple):
    """A tell: the feedback of a round led to a state."""

    number: int
    state: Any
    constraint: Array
    loss: Array | None
    sums: Sums
    told: int
    losses_told: int
    largest_delay: int

    def record(self, memory: Memory) -> bytes:
        """What the journal is given."""
        return memory.layout.encode_tell(self.number, self.state, self.constraint, self.loss)

    def apply(self, memory: Memory) -> None:
        """Let it happen."""
        counters, window = memory.counters, memory.window
        number, memory.state, _, _, memory.sums, counters.told, counters.losses_told, counters.largest_delay = self
        window.open.pop(number, None)
        window.closed[number] = "told"


class RoundSkipped(NamedTuple):
    """A skip: a round is given up."""

    number: int
    skipped: int

    def record(self, memory: Memory) -> bytes:
        """What the journal is given."""
        return encode_skip(self.number)

    def apply(self, memory: Memory) -> None:
        """Let it happen."""
        memory.window.open.pop(self.number, None)
        memory.window.closed[self.number] = "skipped"
        memory.counters.skipped = self.skipped


Change = RoundOpened | RoundTold | RoundSkipped


class Memory:
    """The learner's state, sums over the rounds told, tokens and counters."""

    kind, version = KIND, VERSION

    def __init__(self, learner: Learner[Any], window: Window) -> None:
        self._learner = learner
        self.state = state = learner.init()
        x = learner.ask(state)
        self.layout = StateLayout(state, x)
        self._x, self._is_single = x, x.ndim == 1
        self.sums = Sums.zero(x.shape[:-1], 0)
        self._no_loss, self._no_values = self.sums.loss, self.sums.per_constraint
        self.window = window
        self.counters = Counters()

    @property
    def sequence(self) -> int:
        """How many things have happened."""
        counters = self.counters
        return self.window.asked + counters.told + counters.skipped

    def copied(self) -> Memory:
        """A memory that stays as this one is now. What it shares with it is never written to."""
        made, window = copy(self), self.window
        made.window = replace(window, open=window.open.copy(), closed=window.closed.copy())
        made.counters = copy(self.counters)
        return made

    # --- what can happen -------------------------------------------------------------------------------------

    def change_of_ask(self, x: Array, life: int) -> RoundOpened:
        """A round begins with the decision x; its token belongs to this life."""
        window = self.window
        lives, new_life = window.lives, None
        if not lives or lives[-1][1] != life:
            lives = window.lives_with(life)
            new_life = None if lives is window.lives else life
        expired = window.expiring() if window.open else ()
        decision = np.array(x)
        decision.setflags(False)  # type: ignore[call-arg]  # write; by its name it takes twice as long
        so_far = self.counters.expired + len(expired)
        return RoundOpened(Token(window.asked + 1, decision, life), expired, lives, new_life, so_far)

    def change_of_tell(self, number: int, state: Any, constraint: Array, loss: Array | None) -> RoundTold:
        """The feedback of an open round led to a state; a NonFiniteError if that is none."""
        if not _are_finite(self.layout.leaves(state)):
            raise self._not_finite(state, number)
        counters, delay = self.counters, self.window.asked - number
        return RoundTold(
            number,
            state,
            constraint,
            loss,
            self._sums_with(constraint, loss),
            counters.told + 1,
            counters.losses_told if loss is None else counters.losses_told + 1,
            delay if delay > counters.largest_delay else counters.largest_delay,
        )

    def change_of_skip(self, number: int) -> RoundSkipped:
        """An open round is given up."""
        return RoundSkipped(number, self.counters.skipped + 1)

    def _sums_with(self, constraint: Array, loss: Array | None) -> Sums:
        """`Sums.add`; for a single learner without arrays made to hold one number."""
        if not self._is_single:
            value = self._no_loss if loss is None else loss
            return self.sums.add(Feedback(None, constraint, None, value, self._no_values))
        total_loss, signed, hard, squared, largest, per_constraint = self.sums
        worst = float(constraint)
        positive = worst if worst > 0.0 else 0.0
        return Sums(
            total_loss if loss is None else total_loss + float(loss),
            signed + worst,
            hard + positive,
            squared + positive * positive,
            np.float64(worst) if worst > largest else largest,
            per_constraint,
        )

    def _not_finite(self, state: Any, number: int) -> NonFiniteError:
        leaves = self.layout.leaves(state)
        place = next(place for place, value in enumerate(leaves) if not np.isfinite(value).all())
        what = "would hold a number that is not finite after this update"
        remedy = "Check the feedback of this round; the state is as it was"
        return NonFiniteError(f"state.{self.layout.name(place)}", what, remedy, round=number)

    def change_recorded(self, record: bytes) -> Change:
        """The change that this record of a journal is of; ValueError, KeyError or TypeError if it makes no sense."""
        said = self.layout.decode(record, self.state)
        if isinstance(said, (TellRecord, SkipRecord)):
            if said.number not in self.window.open:
                raise KeyError(f"token {said.number} is not open")
            return self.change_of_tell(*said) if isinstance(said, TellRecord) else self.change_of_skip(said.number)
        lives = self.window.lives
        life = said.life if said.life is not None else lives[-1][1] if lives else 0
        return self.change_of_ask(self._learner.ask(self.state), life)

    # --- files -----------------------------------------------------------------------------------------------

    def fresh_snapshot(self) -> Snapshot:
        """What a journal that no snapshot belongs to starts from: the same in every life, and in every version."""
        metadata = {"learner": specification(self._learner), "book": self.metadata(), "follows": None}
        return Snapshot(KIND, 1, metadata, self.arrays())

    def snapshot(self, follows: Follows, *, required: bool) -> Snapshot:
        """All there is to save; `required`: without its journal it is not the whole."""
        metadata = {
            "learner": specification(self._learner),
            "book": self.metadata(),
            "lives": self.window.lives,
            "follows": follows,
            "required": required,
        }
        return Snapshot(KIND, VERSION, metadata, self.arrays())

    def load(self, path: Path) -> Restored:
        """Become what the snapshot of this learner says; a SnapshotError unless it can be played on."""
        snapshot = read_snapshot(path, KIND, VERSION)
        identity = path.read_bytes()[-IDENTITY:]
        kept = snapshot.metadata
        what_differs = difference(kept.get("learner"), specification(self._learner))
        if what_differs is not None:
            remedy = "Make the learner with the saved hyper-parameters"
            raise SnapshotError(path, "another learner", what_differs, remedy)
        try:
            self.restore(kept["book"], kept.get("lives", ()), snapshot.arrays)
            require_near(
                self._learner, self._learner.ask(self.state), *(token.x for token in self.window.open.values())
            )
            return Restored.of(identity, kept)
        except (KeyError, ValueError, TypeError, ArithmeticError, LookupError) as error:
            raise SnapshotError(path, "corrupted", f"the state makes no sense: {error}", "Restore a copy") from None

    def base(self, places: Sequence[str]) -> bytes:
        """What a shortened journal begins with: the whole state, and the places in it that snapshots were taken at."""
        return pack({"book": self.metadata(), "lives": self.window.lives, "places": places}, self.arrays())

    def become(self, base: bytes) -> tuple[str, ...]:
        """Become what a shortened journal begins with. The places in it."""
        metadata, arrays = unpack(base)
        self.restore(metadata["book"], metadata["lives"], arrays)
        return tuple(str(place) for place in metadata["places"])

    def metadata(self) -> dict[str, int]:
        """The counters, for a snapshot."""
        window = self.window
        sizes = {"max_in_flight": window.max_in_flight, "expire_after": window.expire_after, "asked": window.asked}
        return asdict(self.counters) | sizes

    def arrays(self) -> dict[str, Array]:
        """Everything else, for a snapshot."""
        tokens, closed = self.window.open, self.window.closed
        shape = np.shape(next(iter(tokens.values())).x) if tokens else (0,)
        return {
            **state_arrays(self.state),
            **{f"sums.{name}": value for name, value in self.sums._asdict().items()},
            "open.number": np.array(list(tokens), dtype=np.int64),
            "open.x": np.array([token.x for token in tokens.values()]).reshape(len(tokens), *shape),
            "closed.number": np.array(list(closed), dtype=np.int64),
            "closed.how": np.array([_CLOSED.index(how) for how in closed.values()], dtype=np.uint8),
        }

    def restore(self, metadata: Mapping[str, Any], lives: Sequence[Any], arrays: Mapping[str, Array]) -> None:
        """Take on what `metadata` and `arrays` of another memory said; ValueError or KeyError if it makes no sense."""
        check_counters(metadata, arrays, self._x, self.sums._asdict())
        state = restored_state(self.state, arrays)
        require_sound(self.state, state)
        if int(np.max(np.asarray(state.round))) > metadata["told"] + 1:
            raise ValueError("the state is of more rounds than were told")
        self.state = state
        self.sums = Sums(**{name: arrays[f"sums.{name}"] for name in Sums._fields})
        self.counters = Counters(**{field.name: int(metadata[field.name]) for field in fields(Counters)})
        window = self.window = Window(
            max_in_flight=int(metadata["max_in_flight"]),
            expire_after=int(metadata["expire_after"]),
            asked=int(metadata["asked"]),
            lives=tuple((int(first), int(life)) for first, life in lives),
        )
        for number, x in zip(arrays["open.number"].tolist(), arrays["open.x"], strict=True):
            decision = np.array(x)
            decision.flags.writeable = False
            window.open[number] = Token(number, decision, window.life_of(number))
        for number, how in zip(arrays["closed.number"].tolist(), arrays["closed.how"].tolist(), strict=True):
            window.closed[number] = _CLOSED[how]

    # --- what can be read ------------------------------------------------------------------------------------

    def view(self, learner: Learner[Any]) -> LiveState:
        """All that can be read at this moment; it shares nothing with the learner."""
        state, sums, window = self.state, self.sums, self.window
        return LiveState(
            round=int(np.max(np.asarray(state.round))),
            x=np.array(learner.ask(state)),
            report={name: _copied(value) for name, value in learner.report(state).items()},
            asked=window.asked,
            in_flight=len(window.open),
            cumulative_loss=_copied(sums.loss),
            signed_violation=_copied(sums.signed),
            hard_violation=_copied(sums.hard),
            squared_violation=_copied(sums.squared),
            largest_violation=_copied(sums.largest),
            **asdict(self.counters),
        )


def _are_finite(values: Iterable[Array]) -> bool:
    """Whether all numbers are: the square of a vector says so in half the time, unless it is too large."""
    for value in values:
        if type(value) is not np.ndarray:
            if not math.isfinite(value):
                return False
        elif (value.ndim != 1 or not math.isfinite(value.dot(value))) and not np.isfinite(value).all():
            return False
    return True


def _copied(value: Array) -> Array:
    """A copy that shares nothing with the learner; a number where there is only one."""
    return np.array(value)[()]
