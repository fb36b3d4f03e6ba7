"""Everything a chooser remembers, and the calls that change it.

A record in the journal is a call, not a state (a belief has (Kd)² numbers), and of an act the action and its
probabilities too, so that no replay depends on the last bit of a sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray
from longterm.decisions.choice import Pending, Told, arrays_of, pending_of
from longterm.decisions.primal_dual import Open, PrimalDual, State
from longterm.decisions.primals import Request
from longterm.errors import SnapshotError
from longterm.live.journal import Follows
from longterm.live.recorded import IDENTITY, Restored
from longterm.live.tokens import Lives, life_of, lives_with
from longterm.storage.snapshot import Snapshot, pack, read_snapshot, require_sound, restored_state, state_arrays, unpack
from longterm.storage.specification import difference, specification

KIND = "chooser"
VERSION = 1
CHECKPOINT_AFTER = (2_000, 2**25)
"""Records and bytes: about a second of recovery, in which every call is made again."""
Drawn = tuple[int, FloatArray]
"""An action that was played, and with which probabilities."""


class CallMade(NamedTuple):
    """What a call does, ready to be put in place."""

    what: Mapping[str, Any]
    arrays: Mapping[str, Array]
    state: State
    number: int = 0
    """Of the request that it is about; 0 for none."""
    pending: Pending | None = None
    """What is open of it afterwards; None: nothing."""
    opened: Open | None = None
    """The answer, where there is one."""
    generator: Mapping[str, Any] | None = None
    """Where the draws are afterwards, if it drew."""
    lives: Lives | None = None
    """Afterwards, if it begins one."""
    sequence: int = 0

    def record(self, memory: ChooserMemory) -> bytes:
        """What the journal is given."""
        return pack(self.what, self.arrays)

    def apply(self, memory: ChooserMemory) -> None:
        """Let it happen."""
        memory.state = self.state
        if self.pending is not None:
            memory.pending[self.number] = self.pending
        else:
            memory.pending.pop(self.number, None)
        if self.generator is not None:
            memory.generator = self.generator
        if self.lives is not None:
            memory.lives = self.lives
        memory.sequence = self.sequence


class ChooserMemory:
    """The rule's state, what is open, where the draws are, and who gave out which numbers."""

    kind, version = KIND, VERSION

    def __init__(self, rule: PrimalDual, seed: int, max_open: int, expire_after: int | None) -> None:
        self.rule = rule
        self.seed = validate.seed("seed", seed)
        self.max_open = validate.count("max_open", max_open)
        self.expire_after = None if expire_after is None else validate.count("expire_after", expire_after)
        self.state = rule.init()
        self.pending: dict[int, Pending] = {}
        self.lives: Lives = ()
        self.sequence = 0
        self._rng = np.random.default_rng(self.seed)
        self.generator: Mapping[str, Any] = self._rng.bit_generator.state
        """Where the draws are: the generator itself may have gone on in a call that did not happen."""

    def copied(self) -> ChooserMemory:
        """A memory that stays as this one is now."""
        made = copy(self)
        made.pending = self.pending.copy()
        return made

    def life_of(self, number: int) -> int:
        """The life in which this number was given out."""
        return life_of(self.lives, number)

    # --- what can happen --------------------------------------------------------------------------------------

    def change_of_act(
        self, x: FloatArray, costs: FloatArray | None, bounds: FloatArray | None, life: int, drawn: Drawn | None = None
    ) -> CallMade:
        """A request is answered, in this life."""
        number = self.state.round
        self._rng.bit_generator.state = self.generator
        state, opened = self.rule.act(self.state, x, costs, bounds, self._rng, drawn)
        lives = lives_with(self.lives, life, number)
        begins = {} if lives is self.lives else {"life": life}
        return CallMade(
            {"op": "act", "action": opened.action} | begins,
            {"context": x} | _some(costs=costs, bounds=bounds) | {"probabilities": opened.probabilities},
            state,
            number,
            None if opened.action < 0 else Pending(opened, None, None),
            opened,
            self._rng.bit_generator.state,
            lives if begins else None,
            self.sequence + 1,
        )

    def change_of_settle(self, number: int, paid: FloatArray | None, lesson: Told | None) -> CallMade:
        """Some of the outcome of an open request is known: `paid` and `lesson` are what is new."""
        pending, state = self.pending[number], self.state
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
        return CallMade({"op": "settle", "number": number}, given, state, number, rest, sequence=self.sequence + 1)

    def change_of_forget(self, number: int) -> CallMade:
        """Nothing more will be known of an open request: what was held back for it counts."""
        pending, state = self.pending[number], self.state
        if pending.cost is None:
            state = self.rule.charge(state, pending.open, pending.open.bound)
        return CallMade({"op": "forget", "number": number}, {}, state, number, sequence=self.sequence + 1)

    def change_of_teach(self, x: FloatArray, rewards: FloatArray, costs: FloatArray) -> CallMade:
        """The outcomes of all actions on a request of the past."""
        K, m = self.rule.actions, self.rule.game.resources
        everything = np.ones(K, dtype=np.bool_)
        prices = self.rule.dual.prices(self.state.dual, self.rule.game)
        request = Request(self.state.round, x, costs / self.rule.game.unit, prices, everything)
        opened = Open(request, 0, np.ones(K) / K, np.zeros(m), costs, np.zeros(m), np.zeros(m))
        state = self.rule.learn(self.state, opened, everything, rewards, costs)
        given = {"context": x, "rewards": rewards, "costs": costs}
        return CallMade({"op": "teach"}, given, state, sequence=self.sequence + 1)

    def change_recorded(self, record: bytes) -> CallMade:
        """The change that this record of a journal is of; ValueError, KeyError or TypeError if it makes no sense."""
        what, given = unpack(record)
        if what["op"] == "act":
            drawn = None if what["action"] < 0 else (int(what["action"]), given["probabilities"])
            life = int(what.get("life", self.lives[-1][1] if self.lives else 0))
            return self.change_of_act(given["context"], given.get("costs"), given.get("bounds"), life, drawn)
        if what["op"] == "settle":
            lesson = (given["seen"], given["rewards"], given["costs"]) if "seen" in given else None
            return self.change_of_settle(int(what["number"]), given.get("paid"), lesson)
        if what["op"] == "forget":
            return self.change_of_forget(int(what["number"]))
        if what["op"] == "teach":
            return self.change_of_teach(given["context"], given["rewards"], given["costs"])
        raise ValueError(f"{what['op']!r} is not known")

    # --- files ------------------------------------------------------------------------------------------------

    def fresh_snapshot(self) -> Snapshot:
        """What a journal that no snapshot belongs to starts from: the same in every life, and in every version."""
        metadata = self._metadata() | {"lives": [[0, 1]], "follows": None}
        return Snapshot(KIND, 1, {"rule": specification(self.rule)} | metadata, self._arrays())

    def snapshot(self, follows: Follows, *, required: bool) -> Snapshot:
        """All there is to save."""
        metadata = {"rule": specification(self.rule)} | self._metadata() | {"follows": follows, "required": required}
        return Snapshot(KIND, VERSION, metadata, self._arrays())

    def load(self, path: Path) -> Restored:
        """Become what the snapshot of this rule says; a SnapshotError unless it can be played on."""
        snapshot = read_snapshot(path, KIND, VERSION)
        identity = path.read_bytes()[-IDENTITY:]
        kept = snapshot.metadata
        other = difference(kept.get("rule"), specification(self.rule), "rule")
        if other is not None:
            raise SnapshotError(path, "another rule", other, "Make the rule with the saved hyper-parameters")
        try:
            with np.errstate(all="ignore"):  # what is not finite is refused, in words
                self._restore(kept, snapshot.arrays)
            return Restored.of(identity, kept)
        except (KeyError, ValueError, TypeError, ArithmeticError, LookupError) as error:
            raise SnapshotError(path, "corrupted", f"the state makes no sense: {error}", "Restore a copy") from None

    def base(self, places: Sequence[str]) -> bytes:
        """What a shortened journal begins with: everything, and the places in it that snapshots were taken at."""
        return pack({"book": self._metadata(), "places": places}, self._arrays())

    def become(self, base: bytes) -> tuple[str, ...]:
        """Become what a shortened journal begins with. The places in it."""
        metadata, arrays = unpack(base)
        with np.errstate(all="ignore"):
            self._restore(metadata["book"], arrays)
        return tuple(str(place) for place in metadata["places"])

    def _metadata(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "max_open": self.max_open,
            "expire_after": self.expire_after,
            "sequence": self.sequence,
            "generator": self.generator,
            "lives": self.lives,
            "open": list(self.pending),
        }

    def _arrays(self) -> dict[str, Array]:
        return state_arrays(self.state) | arrays_of(self.pending)

    def _restore(self, kept: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        state = restored_state(self.state, arrays)
        require_sound(self.state, state)
        state = state._replace(round=int(state.round))
        self.rule.require_sound(state)
        pending = pending_of(kept["open"], arrays)
        for number, one in pending.items():
            one.require_sound(self.rule, number, state.round)
        sequence = int(kept["sequence"])
        if not state.round - 1 <= sequence <= LARGEST_SEQUENCE:
            raise ValueError("more requests were answered than calls were made")
        lives = tuple((int(first), int(life)) for first, life in kept["lives"])
        self._rng.bit_generator.state = kept["generator"]
        self.seed, self.max_open = int(kept["seed"]), validate.count("max_open", kept["max_open"])
        age = kept["expire_after"]
        self.expire_after = None if age is None else validate.count("expire_after", age)
        self.state, self.pending, self.sequence, self.lives = state, pending, sequence, lives
        self.generator = self._rng.bit_generator.state


LARGEST_SEQUENCE = 2**62
"""No chooser makes so many calls."""


def _some(**arrays: FloatArray | None) -> dict[str, Array]:
    return {name: array for name, array in arrays.items() if array is not None}
