"""Positions of messages in a queue.

A queue that delivers at least once may deliver a message again after its idempotency key is forgotten. So an object
stores the last position of each partition in the transaction that applies the message, and refuses earlier ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from longterm.errors import InputError
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
