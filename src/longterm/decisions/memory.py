"""The stored state of a chooser, and the calls that change it.

A record in the journal is a call, not a state, because a belief has (Kd)² numbers. The record of an act also has the
action and its probabilities, so that replaying it does not depend on the last bit of a sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray
from longterm.decisions.open_choices import choices_of, columns_of
from longterm.decisions.primal_dual import PrimalDual, RuleState
from longterm.decisions.primals import ActionOutcomes, OpenChoice
from longterm.errors import SnapshotError
from longterm.live.journal import Follows
from longterm.live.recorded import IDENTITY, Restored
from longterm.live.tokens import Lives, life_of, lives_with
from longterm.storage.snapshot import Snapshot, pack, read_snapshot, require_sound, restored_state, state_arrays, unpack
from longterm.storage.specification import difference, specification

KIND = "chooser"
VERSION = 1
CHECKPOINT_AFTER = (2_000, 2**25)
"""Records and bytes: about a second of recovery, in which every call is repeated."""
LARGEST_SEQUENCE = 2**62
"""The number of calls is smaller."""


class ChooserChange(NamedTuple):
    """The effect of a call, computed and ready to be applied."""

    call: Mapping[str, Any]
    arrays: Mapping[str, Array]
    state: RuleState
    sequence: int
    number: int = 0
    """The request concerned; 0 for none."""
    opened: OpenChoice | None = None
    """The request while it is open or refused; None once it is settled."""
    generator: Mapping[str, Any] | None = None
    """The state of the random generator, if it was used."""
    epochs: Lives | None = None
    """The epochs, if the call begins one."""
    extended: tuple[PrimalDual, Mapping[int, OpenChoice]] | None = None
    """The rule and the open choices, if the call adds an action."""
    removed: tuple[int, ...] | None = None
    """The actions that are not used, if the call changes them."""

    def record(self, memory: ChooserMemory) -> bytes:
        """Return the record for the journal."""
        return pack(self.call, self.arrays)

    def apply(self, memory: ChooserMemory) -> None:
        """Apply the change. Idempotent."""
        memory.state = self.state
        if self.extended is not None:
            memory.rule, memory.pending = self.extended[0], dict(self.extended[1])
        if self.removed is not None:
            memory.removed = self.removed
        if self.opened is not None and self.opened.action >= 0:
            memory.pending[self.number] = self.opened
        else:
            memory.pending.pop(self.number, None)
        if self.generator is not None:
            memory.generator = self.generator
        if self.epochs is not None:
            memory.epochs = self.epochs
        memory.sequence = self.sequence


class ChooserMemory:
    """The rule's state, the open choices, the random generator and the epochs."""

    kind, version = KIND, VERSION

    def __init__(self, rule: PrimalDual, seed: int, max_in_flight: int, expire_after: int | None) -> None:
        self.rule = rule
        self.seed = validate.seed("seed", seed)
        self.max_in_flight = validate.count("max_in_flight", max_in_flight)
        self.expire_after = None if expire_after is None else validate.count("expire_after", expire_after)
        self.state = rule.init()
        self.pending: dict[int, OpenChoice] = {}
        self.removed: tuple[int, ...] = ()
        """The actions that are not used any more."""
        self.epochs: Lives = ()
        self.sequence = 0
        self._rng = np.random.default_rng(self.seed)
        self.generator: Mapping[str, Any] = self._rng.bit_generator.state
        """The state of the generator after the last call that took effect; `_rng` itself may be ahead of it."""

    def copied(self) -> ChooserMemory:
        """Return a copy that later calls do not change."""
        made = copy(self)
        made.pending = self.pending.copy()
        return made

    def epoch_of(self, number: int) -> int:
        """Return the epoch in which this number was given out."""
        return life_of(self.epochs, number)

    # --- changes ----------------------------------------------------------------------------------------------

    def act(
        self,
        context: FloatArray,
        costs: FloatArray | None,
        bounds: FloatArray | None,
        allowed: NDArray[np.bool_] | None,
        epoch: int,
        drawn: tuple[int, FloatArray] | None = None,
    ) -> ChooserChange:
        """Return the change of answering a request in this epoch."""
        number = self.state.round
        usable = allowed
        if self.removed:
            usable = np.ones(self.rule.actions, dtype=np.bool_) if allowed is None else allowed.copy()
            usable[list(self.removed)] = False
        self._rng.bit_generator.state = self.generator
        state, opened = self.rule.act(self.state, context, costs, bounds, self._rng, allowed=usable, drawn=drawn)
        epochs = lives_with(self.epochs, epoch, number)
        begins = {} if epochs is self.epochs else {"epoch": epoch}
        given = {"context": context, "costs": costs, "bounds": bounds, "allowed": allowed}
        return ChooserChange(
            {"op": "act", "action": opened.action} | begins,
            _without_none(given) | {"probabilities": opened.probabilities},
            state,
            self.sequence + 1,
            number,
            opened._replace(epoch=epoch),
            self._rng.bit_generator.state,
            epochs if begins else None,
        )

    def settle(self, number: int, paid: FloatArray | None, outcomes: ActionOutcomes | None) -> ChooserChange:
        """Return the change of reporting a cost, outcomes, or both, of an open choice; each of them is new."""
        opened, state = self.pending[number], self.state
        given = _without_none({"paid": paid} | ({} if outcomes is None else outcomes._asdict()))
        if paid is not None:
            state = self.rule.charge(state, opened, paid)
            opened = opened._replace(paid=paid)
        if outcomes is not None:
            state = self.rule.reward(state, float(outcomes.rewards[opened.action]))
            opened = opened._replace(outcomes=outcomes)
        rest: OpenChoice | None = opened
        if opened.paid is not None and opened.outcomes is not None:
            costs = opened.outcomes.costs.copy()
            costs[opened.action] = opened.paid
            state = self.rule.learn(state, opened, opened.outcomes._replace(costs=costs))
            rest = None
        return ChooserChange({"op": "settle", "number": number}, given, state, self.sequence + 1, number, rest)

    def skip(self, number: int) -> ChooserChange:
        """Return the change of giving up an open choice: the money held back for it counts as spent."""
        opened, state = self.pending[number], self.state
        if opened.paid is None:
            state = self.rule.charge(state, opened, opened.bound)
        return ChooserChange({"op": "skip", "number": number}, {}, state, self.sequence + 1, number)

    def add_action(self, action: int | None = None) -> ChooserChange:
        """Return the change of adding an action, or of using a removed one again."""
        sequence = self.sequence + 1
        if action is not None:
            removed = tuple(other for other in self.removed if other != action)
            return ChooserChange({"op": "add", "action": action}, {}, self.state, sequence, removed=removed)
        rule = self.rule.with_actions(self.rule.actions + 1)
        pending = {number: opened.extended() for number, opened in self.pending.items()}
        state = self.rule.extended(self.state)
        return ChooserChange({"op": "add"}, {}, state, sequence, extended=(rule, pending))

    def remove_action(self, action: int) -> ChooserChange:
        """Return the change of using an action no more. Its index and what was learned of it are kept."""
        removed = (*self.removed, action)
        return ChooserChange({"op": "remove", "action": action}, {}, self.state, self.sequence + 1, removed=removed)

    def teach(
        self, context: FloatArray, outcomes: ActionOutcomes, announced: FloatArray | None = None
    ) -> ChooserChange:
        """Return the change of learning the outcomes of a past request."""
        K, m = self.rule.actions, self.rule.setting.resources
        prices, none = self.rule.dual.prices(self.state.dual, self.rule.setting), np.zeros(m)
        everything = np.ones(K, dtype=np.bool_)
        action = int(outcomes.seen.argmax())
        opened = OpenChoice(
            self.state.round, context, prices, everything, action, np.ones(K) / K, none, announced, none, none
        )
        state = self.rule.teach(self.state, opened, outcomes)
        given = _without_none({"context": context, "announced": announced} | outcomes._asdict())
        return ChooserChange({"op": "teach"}, given, state, self.sequence + 1)

    def change_recorded(self, record: bytes) -> ChooserChange:
        """Return the change of a journal's record; raise ValueError, KeyError or TypeError if it is invalid."""
        call, given = unpack(record)
        outcomes = ActionOutcomes(given["seen"], given["rewards"], given["costs"]) if "seen" in given else None
        if call["op"] == "act":
            drawn = None if call["action"] < 0 else (int(call["action"]), given["probabilities"])
            epoch = int(call.get("epoch", self.epochs[-1][1] if self.epochs else 0))
            request = given.get("costs"), given.get("bounds"), given.get("allowed")
            return self.act(given["context"], *request, epoch, drawn)
        if call["op"] == "settle":
            return self.settle(int(call["number"]), given.get("paid"), outcomes)
        if call["op"] == "skip":
            return self.skip(int(call["number"]))
        if call["op"] == "teach" and outcomes is not None:
            return self.teach(given["context"], outcomes, given.get("announced"))
        if call["op"] == "add":
            return self.add_action(None if "action" not in call else int(call["action"]))
        if call["op"] == "remove":
            return self.remove_action(int(call["action"]))
        raise ValueError(f"{call['op']!r} is not known")

    # --- files ------------------------------------------------------------------------------------------------

    def fresh_snapshot(self) -> Snapshot:
        """Return the snapshot that a journal without a snapshot file starts from; the same in every process."""
        return self.snapshot(None, required=False)

    def snapshot(self, follows: Follows, *, required: bool) -> Snapshot:
        """Return everything there is to save."""
        metadata = {"rule": specification(self.rule)} | self.metadata() | {"follows": follows, "required": required}
        return Snapshot(KIND, VERSION, metadata, self.arrays())

    def load(self, path: Path) -> Restored:
        """Restore the snapshot at `path`; raise a SnapshotError unless it belongs to this rule and can be used."""
        snapshot = read_snapshot(path, KIND, VERSION)
        identity = path.read_bytes()[-IDENTITY:]
        metadata = snapshot.metadata
        stored = metadata.get("actions")
        if isinstance(stored, int) and 1 <= stored < self.rule.actions:
            self._use(self.rule.with_actions(stored))
        other = difference(metadata.get("rule"), specification(self.rule), "rule")
        if other is not None:
            raise SnapshotError(path, "another rule", other, "Make the rule with the saved hyper-parameters")
        try:
            with np.errstate(all="ignore"):  # non-finite numbers are refused by name
                self._restore(metadata, snapshot.arrays)
            return Restored.of(identity, metadata)
        except (KeyError, ValueError, TypeError, ArithmeticError, LookupError) as error:
            raise SnapshotError(path, "corrupted", f"the state makes no sense: {error}", "Restore a copy") from None

    def base(self, places: Sequence[str]) -> bytes:
        """Return the first record of a shortened journal: the whole state, and the places of snapshots in it."""
        return pack({"chooser": self.metadata(), "places": places}, self.arrays())

    def become(self, base: bytes) -> tuple[str, ...]:
        """Restore the state that a shortened journal begins with, and return the places of snapshots in it."""
        metadata, arrays = unpack(base)
        with np.errstate(all="ignore"):
            self._restore(metadata["chooser"], arrays)
        return tuple(str(place) for place in metadata["places"])

    def metadata(self) -> dict[str, Any]:
        """Return the part of the state that is stored as JSON."""
        return {
            "seed": self.seed,
            "max_in_flight": self.max_in_flight,
            "expire_after": self.expire_after,
            "sequence": self.sequence,
            "generator": self.generator,
            "epochs": self.epochs,
            "actions": self.rule.actions,
            "removed": self.removed,
        }

    def arrays(self) -> dict[str, Array]:
        """Return the part of the state that is stored as arrays."""
        return state_arrays(self.state) | columns_of(self.pending)

    def _use(self, rule: PrimalDual) -> None:
        self.rule, self.state = rule, rule.init()

    def _restore(self, metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        if int(metadata["actions"]) != self.rule.actions:
            self._use(self.rule.with_actions(validate.count("actions", metadata["actions"])))
        removed = tuple(int(action) for action in metadata["removed"])
        if not all(0 <= action < self.rule.actions for action in removed):
            raise ValueError("an action that does not exist was removed")
        state = restored_state(self.state, arrays)
        require_sound(self.state, state)
        state = state._replace(round=int(state.round))
        self.rule.require_sound(state)
        pending = choices_of(self.rule, arrays, state.round)
        sequence = int(metadata["sequence"])
        if not state.round - 1 <= sequence <= LARGEST_SEQUENCE:
            raise ValueError("there are more requests than calls")
        epochs = tuple((int(first), int(epoch)) for first, epoch in metadata["epochs"])
        self._rng.bit_generator.state = metadata["generator"]
        self.seed, self.max_in_flight = (
            int(metadata["seed"]),
            validate.count("max_in_flight", metadata["max_in_flight"]),
        )
        age = metadata["expire_after"]
        self.expire_after = None if age is None else validate.count("expire_after", age)
        self.state, self.pending, self.sequence, self.epochs = state, pending, sequence, epochs
        self.removed = removed
        self.generator = self._rng.bit_generator.state


def _without_none(arrays: Mapping[str, Array | None]) -> dict[str, Array]:
    return {name: array for name, array in arrays.items() if array is not None}
