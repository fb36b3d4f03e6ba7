"""One thread for each object, so that an object whose database does not answer delays no other object.

Calls of one object happen one after the other in any case, so more threads would only wait for each other. A call that
waits too long is given up before it starts, or goes on in its thread while its caller is told to call again with the
same key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from longterm.errors import LongtermError

T = TypeVar("T")
CALL_SECONDS = 20.0
"""The time after which a call is answered with 503."""
MOST_WAITING = 128
"""Calls of one object that wait in one worker. Further ones are answered with 503 at once."""


class BusyError(LongtermError):
    """An object has too many waiting calls, or did not answer in time."""


class Lane:
    """The thread of one object.

    Parameters
    ----------
    name : str
        The object.
    seconds : float
        The time limit of a call.
    most : int
        The largest number of waiting calls.
    """

    def __init__(self, name: str, seconds: float = CALL_SECONDS, most: int = MOST_WAITING) -> None:
        self.name, self._seconds, self._most, self._waiting = name, seconds, most, 0
        self._thread = ThreadPoolExecutor(1, f"longterm {name}")

    async def run(self, work: Callable[..., T], *arguments: Any, seconds: float | None = None) -> T:
        """Return what a function returns in this thread.

        Raises
        ------
        BusyError
            If too many calls wait, or the time is over.
        """
        if self._waiting >= self._most:
            raise BusyError(f"{self.name!r} has {self._waiting} waiting calls. Call again with the same key.")
        self._waiting += 1
        limit = self._seconds if seconds is None else seconds
        try:
            async with asyncio.timeout(limit):
                return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        except TimeoutError:
            message = f"{self.name!r} did not answer within {limit:g} s. Call again with the same key."
            raise BusyError(message) from None
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Wait for the call that runs, and end the thread."""
        self._thread.shutdown(cancel_futures=True)
