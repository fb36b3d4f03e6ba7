"""A limit on the PostgreSQL connections of a process: objects of one database take turns on a few connections.

An object holds a connection for one transaction, and then gives it back. So a process with many objects needs few
connections, and one object that waits for a lock leaves the others to the rest.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from longterm._base.validate import count

WAIT_SECONDS = 10.0
"""The time that a transaction waits for a connection."""


class ConnectionPool:
    """At most so many open connections.

    Parameters
    ----------
    size : int
        The largest number of connections.
    """

    def __init__(self, size: int) -> None:
        self.size = count("size", size)
        self._idle: list[Any] = []
        self._used = 0
        self._changed = threading.Condition()

    def acquire(self, connect: Callable[[], Any]) -> Any:
        """Return an idle connection, or a new one, or None if none was free in time."""
        end = time.monotonic() + WAIT_SECONDS
        with self._changed:
            while self._used == self.size:
                if not self._changed.wait(end - time.monotonic()):
                    return None
            self._used += 1
            if self._idle:
                return self._idle.pop()
        try:
            return connect()
        except BaseException:
            self._forget()
            raise

    def release(self, connection: Any) -> None:
        """Take a connection back."""
        with self._changed:
            self._idle.append(connection)
        self._forget()

    def discard(self, connection: Any) -> None:
        """Close a connection in place of taking it back."""
        with suppress(Exception):  # the server may be gone
            connection.close()
        self._forget()

    def close(self) -> None:
        """Close the idle connections."""
        with self._changed:
            idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(Exception):
                connection.close()

    def _forget(self) -> None:
        with self._changed:
            self._used -= 1
            self._changed.notify()


_POOLS: dict[tuple[int, str, str], ConnectionPool] = {}
"""By process, URL and durability. A forked child has none of its parent's."""


def limit_connections(url: str, durability: str, size: int) -> ConnectionPool:
    """Let all objects of this process that use a database with this durability share a few connections.

    Parameters
    ----------
    url : str
        The URL of the PostgreSQL database, as it is given to the objects.
    durability : {"commit", "relaxed"}
        That of the objects.
    size : int
        The largest number of connections.

    Returns
    -------
    ConnectionPool
        Close it after the objects.
    """
    return _POOLS.setdefault((os.getpid(), url, durability), ConnectionPool(size))


def pool_of(url: str, durability: str) -> ConnectionPool | None:
    """Return the pool of this process for a database, if there is one."""
    return _POOLS.get((os.getpid(), url, durability)) if _POOLS else None
