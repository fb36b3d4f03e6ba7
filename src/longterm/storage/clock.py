"""The time of stored objects: wall time for what processes share, and monotonic time for lengths.

A stored object takes its clock as a parameter, so that tests move time instead of waiting. The replicas of an object in
PostgreSQL use the server's time. Those of an object in SQLite use the time of their machine, which `Database.now`
checks against the last time that was stored.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from longterm._base import validate

DAY = 86_400.0
"""Seconds."""


class Deadline(NamedTuple):
    """A moment by wall time and by monotonic time. It is over when the first of both is."""

    wall: float
    monotonic: float


@dataclass(frozen=True)
class Clock:
    """The time of this machine.

    Parameters
    ----------
    largest_jump : float
        The seconds by which the time may be ahead of the last time that a SQLite database has stored. A call raises a
        DatabaseError beyond it, so that one wrong clock ends no period and no hold. Give `math.inf` to use a database
        after a longer break.

    Examples
    --------
    >>> from longterm.storage import Clock
    >>> clock = Clock()
    >>> clock.is_over(clock.deadline(60.0))
    False
    """

    largest_jump: float = 31 * DAY

    def __post_init__(self) -> None:
        if self.largest_jump != float("inf"):
            validate.positive_scalar("largest_jump", self.largest_jump)

    def wall(self) -> float:
        """Return the time in seconds since 1970. It may be set back or forward."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds since an unknown moment. They are never set, but may stand still while a machine sleeps."""
        return time.monotonic()

    def of_server(self, seconds: float) -> float:
        """Return the time to use when a server's clock shows this one. Clocks of tests return their own."""
        return seconds

    def deadline(self, seconds: float) -> Deadline:
        """Return the moment after this many seconds."""
        return Deadline(self.wall() + seconds, self.monotonic() + seconds)

    def is_over(self, deadline: Deadline) -> bool:
        """Return whether a deadline has come, by either time."""
        return self.wall() >= deadline.wall or self.monotonic() >= deadline.monotonic


SYSTEM = Clock()
"""The clock of objects that were given no other."""
