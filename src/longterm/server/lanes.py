"""One thread for each object, so that an object whose database does not answer delays no other object.

Calls of one object happen one after the other in any case, so more threads would only wait for each other. The calls of
clients that wait at the same moment share a transaction. A call that waits too long is given up before it starts, or
goes on in its thread while its caller is told to call again with the same key.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from longterm.errors import LongtermError
from longterm.storage.group_commit import LARGEST_GROUP

T = TypeVar("T")
CALL_SECONDS = 20.0
"""The time after which a call is answered with 503."""
MOST_WAITING = 128
"""Calls of one object that wait in one worker. Further ones are answered with 503 at once."""
MakeGroup = Callable[[Sequence[Callable[[], Any]], Sequence[str | None]], Sequence[Any]]
"""Make calls in one transaction, given the key that each names. Return what each returns or the exception it raises."""


class BusyError(LongtermError):
    """An object has too many waiting calls, or did not answer in time."""


class _Waiting(NamedTuple):
    """A call that waits for the thread."""

    call: Callable[[], Any]
    answer: asyncio.Future[Any]
    is_joined: bool
    """True if the call may share a transaction."""
    key: str | None

    def make(self) -> Any:
        """Make the call, unless its caller has given up."""
        if self.answer.done():
            raise BusyError("the caller has given up")
        return self.call()

    def give(self, answer: Any) -> None:
        """Give the caller what the call has returned or raised, unless the caller has given up."""
        if self.answer.done():
            return
        if isinstance(answer, StopIteration):  # no future takes it
            answer = RuntimeError(repr(answer))
        if isinstance(answer, BaseException):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class Lane:
    """The thread of one object. All methods but the calls themselves run in the thread of the event loop.

    Parameters
    ----------
    name : str
        The object.
    make_group : callable, optional
        Makes calls in one transaction. Without it each call has its own.
    seconds : float
        The time limit of a call.
    most : int
        The largest number of waiting calls.
    """

    def __init__(
        self,
        name: str,
        make_group: MakeGroup | None = None,
        *,
        seconds: float = CALL_SECONDS,
        most: int = MOST_WAITING,
    ) -> None:
        self.name, self._make_group, self._seconds, self._most = name, make_group, seconds, most
        self._waiting: deque[_Waiting] = deque()
        self._unanswered = 0
        self._is_busy = False
        """True from the first call that waits until the thread has no more to do."""
        self._thread = ThreadPoolExecutor(1, f"longterm {name}")

    async def run(self, work: Callable[..., T], *arguments: Any, seconds: float | None = None) -> T:
        """Return what a function returns in this thread.

        Raises
        ------
        BusyError
            If too many calls wait, or the time is over.
        """
        return await self._wait_for(partial(work, *arguments), seconds or self._seconds)

    async def join(self, work: Callable[..., T], *arguments: Any, key: str | None = None) -> T:
        """Do the same with a call that may share a transaction. The key is one that it names."""
        return await self._wait_for(partial(work, *arguments), self._seconds, is_joined=True, key=key)

    async def _wait_for(
        self, call: Callable[[], T], seconds: float, *, is_joined: bool = False, key: str | None = None
    ) -> T:
        if self._unanswered >= self._most:
            raise BusyError(f"{self.name!r} has {self._unanswered} waiting calls. Call again with the same key.")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._waiting.append(_Waiting(call, answer, is_joined and self._make_group is not None, key))
        if not self._is_busy:
            self._is_busy = True
            loop.call_soon(self._start, loop)  # after the other requests that have arrived
        self._unanswered += 1
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            message = f"{self.name!r} did not answer within {seconds:g} s. Call again with the same key."
            raise BusyError(message) from None
        finally:
            self._unanswered -= 1

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the next calls to the thread: one, or several that may share a transaction."""
        calls: list[_Waiting] = []
        while self._waiting and (not calls or (calls[0].is_joined and self._waiting[0].is_joined)):
            call = self._waiting.popleft()
            if not call.answer.done():
                calls.append(call)
            if len(calls) == LARGEST_GROUP:
                break
        self._is_busy = bool(calls)
        if calls:
            self._thread.submit(self._make, calls, loop)

    def _make(self, calls: list[_Waiting], loop: asyncio.AbstractEventLoop) -> None:
        """Make calls, in the thread."""
        answers: Sequence[Any]
        try:
            if self._make_group is not None and calls[0].is_joined:
                answers = self._make_group([one.make for one in calls], [one.key for one in calls])
            else:
                answers = [calls[0].make()]
        except BaseException as error:  # the lane goes on, whatever it is
            answers = [error] * len(calls)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._answer, calls, answers, loop)

    def _answer(self, calls: list[_Waiting], answers: Sequence[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._start(loop)
        for one, answer in zip(calls, answers, strict=True):
            one.give(answer)

    def close(self) -> None:
        """Wait for the call that runs, and end the thread."""
        self._thread.shutdown(cancel_futures=True)
