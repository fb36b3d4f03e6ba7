"""Objects that one thread at a time may use, and that say so to a second one."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from longterm.errors import InUseError

_TURNS: weakref.WeakSet[OneThread] = weakref.WeakSet()


class OneThread:
    """The turn of a thread: ``with self._turn():`` around what must not be entered twice.

    A second thread is refused at once. Should two of them ask in the same instant, the later one waits and is served:
    either way no state is seen or changed half-way. The lock is taken by the `with` statement itself, in one
    instruction, so that an interrupt cannot leave it taken. It is not a part of any state: copies and pickles get a new
    one, and so does a forked child.

    Parameters
    ----------
    what : str
        What it is that is in use.
    """

    __slots__ = ("__weakref__", "_what", "lock", "owner")

    def __init__(self, what: str) -> None:
        self._what = what
        self.lock = threading.Lock()
        self.owner = 0
        """The thread whose turn it is, where that is noted; 0 for nobody."""
        _TURNS.add(self)

    def __call__(self) -> threading.Lock:
        if self.lock.locked():
            raise self.refusal()
        return self.lock

    def waited_for(self) -> threading.Lock:
        """The lock, to wait for; unless this thread has it: a signal handler would wait for what it interrupted."""
        if self.lock.locked() and self.owner == threading.get_ident():
            what = f"this {self._what} is in the middle of another call in this thread"
            raise InUseError(what, "Call it after that call has returned or raised, not from a signal handler")
        return self.lock

    def refusal(self) -> InUseError:
        """What a second thread is told. Where a call counts, `lock` is looked at and taken without `__call__`."""
        remedy = "Call it from one thread at a time, or give each thread its own"
        return InUseError(f"this {self._what} is in use by another thread", remedy)

    def __reduce__(self) -> tuple[type[OneThread], tuple[str]]:
        return OneThread, (self._what,)

    def __deepcopy__(self, memo: object) -> OneThread:
        return OneThread(self._what)


def _in_a_forked_child() -> None:
    """The thread that had an object's turn is not here to give it back."""
    for turn in list(_TURNS):
        turn.lock, turn.owner = threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_forked_child)


F = TypeVar("F", bound=Callable[..., Any])


def turn_of(owner: Any) -> OneThread:
    """The turn of an object, `_turn`, which is made when it is first needed."""
    turn: OneThread | None = owner.__dict__.get("_turn")
    if turn is None:  # two threads may be here at once: one of theirs is taken by both
        turn = owner.__dict__.setdefault("_turn", OneThread(type(owner).__name__))
    return turn


def one_thread_at_a_time(method: F) -> F:
    """A method that holds the turn of its object, and is refused where another thread does."""
    return _guarded(method, OneThread.__call__)


def waits_its_turn(method: F) -> F:
    """A method that waits for the turn of its object: many may look at once, while nobody changes it."""
    return _guarded(method, OneThread.waited_for)


def _guarded(method: F, lock_of: Callable[[OneThread], threading.Lock]) -> F:
    @wraps(method)
    def guarded(self: Any, *args: Any, **options: Any) -> Any:
        turn = turn_of(self)
        with lock_of(turn):
            turn.owner = threading.get_ident()
            try:
                return method(self, *args, **options)
            finally:
                turn.owner = 0

    return cast("F", guarded)
