"""The methods of every object that can live in a database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from longterm._base import validate
from longterm.errors import InputError
from longterm.storage.positions import LARGEST_POSITION, Position, require_partition, require_position
from longterm.storage.record import LATEST, RecordEntry
from longterm.storage.replica import Copy, Replica

Metrics = dict[str, float | dict[str, float]]
"""Figures for monitoring by name; some are by budget, account or group."""
C = TypeVar("C", bound=Copy)
T = TypeVar("T")


class Stored(Generic[C]):
    """An object whose state lives in memory, or in a database that several processes may use."""

    _replica: Replica[C]

    def commit_group(self, calls: Sequence[Callable[[], T]], keys: Sequence[str | None] = ()) -> list[T | Exception]:
        """Make several calls of this object in one transaction, which takes less time than one for each.

        The calls have the same effects and answers as one after the other. If they do not fit in one transaction, they
        take several: calls with a `position`, for example, have one each. No answer is returned before its transaction
        is committed.

        Parameters
        ----------
        calls : sequence of callable
            Functions without arguments that call methods of this object. They may be called more than once, since
            another process may be faster. Only the effect of the last time counts.
        keys : sequence of str or None
            The idempotency key, or the key of a hold, that each call will name. They are looked up by one query.

        Returns
        -------
        list
            For each call what it returned, or the exception that it raised.

        Examples
        --------
        >>> from functools import partial
        >>> import tempfile
        >>> from longterm import Ledger
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.open(folder.name + "/service.db", unit="cent")
        >>> ledger.add_account("team", limit=600)
        >>> ledger.commit_group([partial(ledger.hold, "team", 200, key) for key in ("a", "b", "c")])
        [200, 200, 200]
        >>> ledger.close()
        >>> folder.cleanup()
        """
        return self._replica.commit_group(calls, keys)

    @property
    def commits_groups(self) -> bool:
        """True if `commit_group` makes calls in one transaction: not in memory, and not with a shared account."""
        return self._replica.commits_groups

    def backup(self, path: str | PathLike[str]) -> None:
        """Write a copy of the whole database to a file, while it is in use.

        Parameters
        ----------
        path : path
            The file, which is replaced atomically.

        Raises
        ------
        InputError
            If the object has no database, or one of PostgreSQL, which has its own tools (pg_dump).
        DatabaseError
            If the copy cannot be written.
        """
        with self._replica.guard.wait():
            if self._replica.database is None:
                raise InputError("path", "this object has no database", "Make it with open()")
            self._replica.database.backup(Path(path))

    def last_position(self, partition: str) -> int:
        """Return the last position of a queue's partition that was applied; -1 before the first.

        Parameters
        ----------
        partition : str
            Its name, as calls with ``position=(partition, number)`` gave it.
        """
        found: int = self._replica.look(self._replica.last_position, require_partition(partition))
        return found

    def check_position(self, position: Any) -> Position | None:
        """Return a position, or None for None. Raise a RepeatedPositionError if it, or a later one, was applied.

        Calls that look at their token before they change the state check the position first: a message that is
        delivered again has one error, whatever became of its round.
        """
        place = require_position(position)
        if place is not None:
            self._replica.look(self._replica.require_new, place)
        return place

    def record(self, *, since: float = 0.0, most: int = 1000) -> list[RecordEntry]:
        """Return what people have changed of this object, the newest first: limits, resets, corrections.

        Entries are kept for 90 days.

        Parameters
        ----------
        since : float
            Leave out what is older than this time, in seconds since 1970.
        most : int
            The largest number of entries.
        """
        given = (
            min(validate.non_negative_scalar("since", since), LATEST),
            min(validate.count("most", most), LARGEST_POSITION),
        )
        found: list[RecordEntry] = self._replica.look(self._replica.record, *given)
        return found

    def close(self) -> None:
        """Close the connection. Everything acknowledged is in the database already."""
        with self._replica.guard.wait():
            if self._replica.database is not None:
                self._replica.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
