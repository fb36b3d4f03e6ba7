"""The time that all processes of a database share: the server's for PostgreSQL, this machine's for SQLite."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from longterm.errors import RESTORE, DatabaseError
from longterm.storage.clock import Clock
from longterm.storage.schema import LAST_TIME

SYNCHRONISE_SECONDS = 60.0
"""The server's time is read again after this time. A clock of this machine that jumps further is checked."""
LARGEST_DRIFT = 1.0
"""Seconds by which wall and monotonic time may move apart before the server's time is read again."""


class Moment(NamedTuple):
    """A time that is known to be right, with this machine's wall and monotonic time."""

    right: float
    wall: float
    monotonic: float


class SharedTime(ABC):
    """The time of a database.

    Parameters
    ----------
    path : object
        The database, for messages.
    clock : Clock
        The time of this machine.
    read : callable
        Returns the rows of a query.
    """

    def __init__(self, path: Any, clock: Clock, read: Callable[[str], list[Any]]) -> None:
        self._path, self._clock, self._read = path, clock, read
        self._known: Moment | None = None

    def seconds(self) -> float:
        """Return the time in seconds since 1970.

        Raises
        ------
        DatabaseError
            If this machine's clock is further ahead of the last time stored than `Clock.largest_jump`.
        """
        wall, monotonic = self._clock.wall(), self._clock.monotonic()
        found = None if self._known is None else self._since(self._known, wall, monotonic)
        if found is None:
            found = self._look_up(wall)
            self._known = Moment(found, wall, monotonic)
        return found

    @abstractmethod
    def _since(self, known: Moment, wall: float, monotonic: float) -> float | None:
        """Return the time from a known moment; None if it must be looked up."""

    @abstractmethod
    def _look_up(self, wall: float) -> float:
        """Return the time by a query."""


class ServerTime(SharedTime):
    """The time of a server. This machine's monotonic time continues it for a minute."""

    def _since(self, known: Moment, wall: float, monotonic: float) -> float | None:
        passed = monotonic - known.monotonic
        is_near = passed < SYNCHRONISE_SECONDS and abs(wall - known.wall - passed) < LARGEST_DRIFT
        return known.right + passed if is_near else None

    def _look_up(self, wall: float) -> float:
        ((time_of_server,),) = self._read("SELECT EXTRACT(EPOCH FROM clock_timestamp())")
        return self._clock.of_server(float(time_of_server))


class LocalTime(SharedTime):
    """The time of this machine, which is compared with the last time stored after every jump."""

    def _since(self, known: Moment, wall: float, monotonic: float) -> float | None:
        jump = wall - known.wall - (monotonic - known.monotonic)
        if jump > min(self._clock.largest_jump, SYNCHRONISE_SECONDS):
            return None
        self._known = Moment(wall, wall, monotonic)
        return wall

    def _look_up(self, wall: float) -> float:
        ((stored,),) = self._read(LAST_TIME)
        if stored is not None and not isinstance(stored, (int, float)):
            raise DatabaseError(self._path, "corrupted", "a time stored is not a number", RESTORE)
        if stored is not None and wall > stored + self._clock.largest_jump:
            what = f"this machine's clock is {(wall - stored) / 86_400:.1f} days ahead of the last time stored"
            remedy = "Set the clock. If nobody used the database for so long, open it with "
            raise DatabaseError(self._path, "clock", what, f"{remedy}clock=Clock(largest_jump=math.inf)")
        return wall
