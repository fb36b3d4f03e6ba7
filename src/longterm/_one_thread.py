"""Objects that one thread at a time may use, and that say so to a second one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from longterm.errors import InUseError


class OneThread:
    """The turn of a thread: ``with self._turn():`` around what must not be entered twice.

    A second thread is refused at once. Should two of them ask in the same instant, the later one waits and is served:
    either way no state is seen or changed half-way. The lock is taken by the `with` statement itself, in one
    instruction, so that an interrupt cannot leave it taken. It is not a part of any state: copies and pickles get a new
    one.

    Parameters
    ----------
    what : str
        What it is that is in use.
    """

    __slots__ = ("_what", "lock")

    def __init__(self, what: str) -> None:
        self._what = what
        self.lock = threading.Lock()

    def __call__(self) -> threading.Lock:
        if self.lock.locked():
            raise self.refusal()
        return self.lock

    def refusal(self) -> InUseError:
        """What a second thread is told. Where a call counts, `lock` is looked at and taken without `__call__`."""
        remedy = "Call it from one thread at a time, or give each thread its own"
        return InUseError(f"this {self._what} is in use by another thread", remedy)

    def __reduce__(self) -> tuple[type[OneThread], tuple[str]]:
        return OneThread, (self._what,)

    def __deepcopy__(self, memo: object) -> OneThread:
        return OneThread(self._what)


F = TypeVar("F", bound=Callable[..., Any])


def one_thread_at_a_time(method: F) -> F:
    """A method that holds the turn of its object, `_turn`, which is made when it is first needed."""

    @wraps(method)
    def guarded(self: Any, *args: Any, **options: Any) -> Any:
        turn = self.__dict__.get("_turn")
        if turn is None:  # two threads may be here at once: one of theirs is taken by both
            turn = self.__dict__.setdefault("_turn", OneThread(type(self).__name__))
        with turn():
            return method(self, *args, **options)

    return cast("F", guarded)
