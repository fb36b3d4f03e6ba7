"""Positions of messages in a queue.

A queue that delivers at least once may deliver a message again after its idempotency key is forgotten. So an object
stores the last position of each partition in the transaction that applies the message, and refuses earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from longterm.errors import RESTORE, DatabaseError, InputError, RepeatedPositionError
from longterm.storage import schema as sql
from longterm.storage.database import Database
from longterm.storage.tokens import is_storable

LONGEST_PARTITION = 200
LARGEST_POSITION = 2**63 - 1
START = -1
"""The position before the first message."""


class Position(NamedTuple):
    """The place of a message: the name of its partition, and a number that grows along the partition."""

    partition: str
    number: int


def require_position(position: Any) -> Position | None:
    """Return a position, or None for None. Raise an InputError if it is not one."""
    if position is None:
        return None
    remedy = "Give the name of the partition and a whole number of at least 0, such as ('orders-3', 1041)"
    if not isinstance(position, (tuple, list)) or len(position) != 2:
        raise InputError("position", f"{position!r:.60} is not a pair", remedy)
    partition, number = position
    is_whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    if not is_whole or not 0 <= number <= LARGEST_POSITION:
        raise InputError("position", f"{number!r:.60} is not the number of a message", remedy)
    return Position(require_partition(partition, "position"), int(number))


def require_partition(partition: Any, argument: str = "partition") -> str:
    """Return the name of a partition, or raise an InputError."""
    if not is_storable(partition) or not 0 < len(partition) <= LONGEST_PARTITION:
        what = f"{partition!r:.60} is not the name of a partition"
        raise InputError(argument, what, f"Give a text of 1 to {LONGEST_PARTITION} characters")
    return str(partition)


class LastPositions:
    """The last position of each partition that an object has applied: in its database, or here if it has none."""

    def __init__(self) -> None:
        self.here: dict[str, int] = {}

    def last(self, database: Database | None, name: str, partition: str) -> int:
        """Return the last position of a partition; -1 before the first."""
        if database is None:
            return self.here.get(partition, START)
        rows = database.read(sql.READ_POSITION, name, partition)
        last = rows[0][0] if rows else START
        if type(last) is not int or not START <= last <= LARGEST_POSITION:
            what = f"the last position of {partition!r} is {last!r:.40}"
            raise DatabaseError(database.path, "corrupted", what, RESTORE)
        return last

    def require_new(self, database: Database | None, name: str, position: Position) -> None:
        """Raise a RepeatedPositionError if a message at this position or a later one was applied."""
        last = self.last(database, name, position.partition)
        if position.number <= last:
            what = f"{tuple(position)} was applied already; the last position of this partition is {last}"
            remedy = "Acknowledge the message: it counts once. If it is a new one, number positions upwards"
            raise RepeatedPositionError("position", what, remedy)


class Positioned(NamedTuple):
    """A change that applies the message at a position of a queue."""

    change: Any
    position: Position
    here: dict[str, int]
    """The last positions of an object without a database."""

    def statements(self, copy: Any, name: str, now: float) -> Sequence[sql.Statement]:
        """Return the statements that write it."""
        return [*self.change.statements(copy, name, now), put_position(name, self.position)]

    def apply(self, copy: Any) -> None:
        """Apply it to a copy."""
        self.change.apply(copy)
        self.here[self.position.partition] = self.position.number


def put_position(name: str, position: Position) -> sql.Statement:
    """Return the statement that stores the last position of a partition."""
    return sql.PUT_POSITION, (name, *position)
