"""Fleets whose state lives in a database: a call of `tell` writes the blocks of learners that it touched."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base.arrays import Array
from longterm.learners.interface.feedback import Feedback
from longterm.play.fleet.numpy_rows import NumpyRows
from longterm.play.live_learner.live_state import require_near
from longterm.storage import schema as sql
from longterm.storage.database import Database
from longterm.storage.engine import Durability
from longterm.storage.packing import LARGEST_COUNT, pack, require_sound, restored_state, unpack
from longterm.storage.positions import require_position
from longterm.storage.replica import Replica
from longterm.storage.schema import Statement
from longterm.storage.stored_object import Stored

if TYPE_CHECKING:
    from longterm.play.fleet.fleet import Fleet

BLOCK = 32
"""Learners that are stored together."""


class RowsTold(NamedTuple):
    """The rows of one call of `tell`, changed in the copy and ready to be written."""

    version: int
    blocks: Sequence[int]

    def statements(self, copy: FleetCopy, name: str, now: float) -> Sequence[Statement]:
        """Return the statements that write it."""
        parts = [(sql.PUT_PART, (name, block, copy.encode_block(block, self.version))) for block in self.blocks]
        return [(sql.UPDATE_OBJECT, (self.version, now, b"", name, copy.version)), *parts]

    def apply(self, copy: FleetCopy) -> None:
        """Apply it to a copy."""
        copy.version = self.version
        copy.dirty.clear()


class FleetCopy:
    """A copy of a stored fleet. `dirty` are blocks that were changed here and not written yet."""

    kind = "fleet"
    asked = 0

    def __init__(self, fleet: Fleet, rows: NumpyRows) -> None:
        self.fleet, self._rows = fleet, rows
        self._start = {block: self._block(block) for block in range(-(-fleet.size // BLOCK))}
        self.version = 0
        self.dirty: set[int] = set()

    def telling(self, feedback: Feedback, numbers: NDArray[np.int64] | None) -> RowsTold:
        """Update rows in place, and return the change."""
        touched = range(len(self._start)) if numbers is None else np.unique(numbers // BLOCK).tolist()
        self.dirty.update(touched)
        self.fleet.tell(feedback, numbers)
        return RowsTold(self.version + 1, touched)

    def _block(self, block: int) -> dict[str, Array]:
        return self._rows.read_block(_rows_of(block))

    def is_due(self, now: float) -> bool:
        """Return False: no round of a fleet is ever open."""
        return False

    def encode(self) -> bytes:
        """Return no bytes: a new fleet has the state of its learner."""
        return b""

    def encode_block(self, block: int, version: int) -> bytes:
        """Return a block as bytes, after the version that wrote it."""
        return version.to_bytes(8, "big") + pack({}, self._block(block))

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        """Read the blocks that others have written, and those that were changed here in vain."""
        if not 0 <= version <= LARGEST_COUNT:
            raise ValueError("a count is out of range")
        found = dict(self._start) if self.version > version else {block: self._start[block] for block in self.dirty}
        after = 0 if self.version > version else self.version
        rows = database.read(sql.READ_NEW_PARTS, name, after.to_bytes(8, "big"))
        for block in self.dirty:
            rows += database.read(sql.READ_PART, name, block)
        for number, content in rows:
            found[number] = self._decode(number, content)
        for block, fields in found.items():
            self._rows.write_block(_rows_of(block), fields)
        self.version = version
        self.dirty.clear()

    def _decode(self, number: Any, content: Any) -> dict[str, Array]:
        if number not in self._start or not isinstance(content, bytes):
            raise ValueError("a block of learners does not exist")
        start, (_, fields) = self._start[number], unpack(content[8:])
        if {n: (v.shape, v.dtype) for n, v in fields.items()} != {n: (v.shape, v.dtype) for n, v in start.items()}:
            raise ValueError("a block of learners does not fit")
        template = self._rows.state_of(start)
        state = restored_state(template, {n: v for n, v in fields.items() if n.startswith("state.")})
        require_sound(template, state)
        require_near(self.fleet.learner, self._rows.decisions_of(_rows_of(number), state))
        if any(np.isnan(values).any() for values in fields.values()):
            raise ValueError("a sum is not a number")
        return fields


class StoredFleet(Stored[FleetCopy]):
    """A fleet in a database, which several processes may use. Make it with `Fleet.open`.

    Every call is one transaction, and all processes see one order of calls.

    Parameters
    ----------
    fleet : Fleet
        A new fleet.
    rows : NumpyRows
        Its rows.
    url, name, durability
        As for `Fleet.open`.
    """

    def __init__(
        self, fleet: Fleet, rows: NumpyRows, url: str | PathLike[str], name: str, durability: Durability
    ) -> None:
        definition = {"learner": fleet.learner, "size": fleet.size, "dtype": fleet.ask([0]).dtype.name}
        self._replica = Replica(FleetCopy(fleet, rows), definition)
        self._replica.changes_others = True  # rows change in place, so the work is done inside the transaction
        self._replica.attach(url, name, durability)
        self.size = fleet.size

    def __repr__(self) -> str:
        return f"Stored{self._replica.look(lambda: repr(self._replica.copy.fleet))}"

    def ask(self, rows: ArrayLike | None = None) -> NDArray[Any]:
        """Return a copy of the decisions of these learners; see `Fleet.ask`."""
        found: NDArray[Any] = self._replica.look(lambda: self._replica.copy.fleet.ask(rows))
        return found

    def tell(
        self, feedback: Feedback, rows: ArrayLike | None = None, *, position: tuple[str, int] | None = None
    ) -> None:
        """Play one round of each of these learners. A call that raises changes nothing.

        Parameters
        ----------
        feedback, rows
            As for `Fleet.tell`.
        position : (str, int), optional
            The partition of a queue and the number of the message there. A message counts once, however often the
            queue delivers it. Numbers must grow along a partition.

        Raises
        ------
        InputError
            As for `Fleet.tell`.
        RepeatedPositionError
            If the object has applied this position, or a later one of the partition.
        """
        numbers = self._replica.copy.fleet.numbers(rows)
        self._replica.apply_message(require_position(position), self._replica.copy.telling, feedback, numbers)

    @property
    def rounds(self) -> NDArray[np.int64]:
        """The round that each learner is about to play, counted from 1."""
        return self._copied("rounds")

    @property
    def signed_violation(self) -> NDArray[np.float64]:
        """Σ g(x_t) so far, per learner."""
        return self._copied("signed_violation")

    @property
    def hard_violation(self) -> NDArray[np.float64]:
        """Σ [g(x_t)]₊ so far, per learner."""
        return self._copied("hard_violation")

    def _copied(self, name: str) -> NDArray[Any]:
        return np.array(self._replica.look(lambda: getattr(self._replica.copy.fleet, name)))


def _rows_of(block: int) -> slice:
    return slice(BLOCK * block, BLOCK * (block + 1))
