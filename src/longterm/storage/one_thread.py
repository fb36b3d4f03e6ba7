"""Guards for objects that one thread at a time may use."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from longterm.errors import InUseError

_GUARDS: weakref.WeakSet[OneThread] = weakref.WeakSet()


class OneThread:
    """A guard that refuses a second thread: ``with self._guard():``.

    The check and the acquisition are two steps. A thread that arrives in between waits and is served, so no state is
    ever seen or changed half-way. The `with` statement acquires the lock in one instruction, so an interrupt cannot
    leave it locked. Copies, pickles and forked children get a new lock.

    Parameters
    ----------
    name : str
        The name of the guarded object, for messages.
    """

    __slots__ = ("__weakref__", "_name", "lock", "owner")

    def __init__(self, name: str) -> None:
        self._name = name
        self.lock = threading.Lock()
        self.owner = 0
        """The thread inside a decorated method; 0 for none."""
        _GUARDS.add(self)

    def __call__(self) -> threading.Lock:
        """Return the lock, or raise an InUseError if it is taken."""
        if self.lock.locked():
            raise self.refusal()
        return self.lock

    def wait(self) -> threading.Lock:
        """Return the lock to wait for. Raise an InUseError if this thread holds it: a signal handler would deadlock."""
        if self.lock.locked() and self.owner == threading.get_ident():
            raise reentry(self._name)
        return self.lock

    def refusal(self) -> InUseError:
        """Return the error for a second thread."""
        remedy = "Call it from one thread at a time, or give each thread its own"
        return InUseError(f"this {self._name} is in use by another thread", remedy)

    def __reduce__(self) -> tuple[type[OneThread], tuple[str]]:
        return OneThread, (self._name,)

    def __deepcopy__(self, memo: object) -> OneThread:
        return OneThread(self._name)


def reentry(name: str) -> InUseError:
    """Return the error for a call from inside another call of the same object in the same thread."""
    what = f"this {name} is in the middle of another call in this thread"
    return InUseError(what, "Call it after that call has returned or raised, not from a signal handler")


def _renew_after_fork() -> None:
    """Replace all locks in a forked child, where the threads that held them do not exist."""
    for guard in list(_GUARDS):
        guard.lock, guard.owner = threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_after_fork)


F = TypeVar("F", bound=Callable[..., Any])


def exclusive(method: F) -> F:
    """Wrap a method so that a second thread gets an InUseError while it runs."""
    return _guarded(method, OneThread.__call__)


def serialised(method: F) -> F:
    """Wrap a method so that a second thread waits while it runs."""
    return _guarded(method, OneThread.wait)


def _guarded(method: F, lock_of: Callable[[OneThread], threading.Lock]) -> F:
    @wraps(method)
    def guarded(self: Any, *args: Any, **options: Any) -> Any:
        guard = _guard_of(self)
        with lock_of(guard):
            guard.owner = threading.get_ident()
            try:
                return method(self, *args, **options)
            finally:
                guard.owner = 0

    return cast("F", guarded)


def _guard_of(owner: Any) -> OneThread:
    """Return the attribute `_guard` of an object, which is made on first use."""
    guard: OneThread | None = owner.__dict__.get("_guard")
    if guard is None:  # setdefault: of two threads here at once, both use one guard
        guard = owner.__dict__.setdefault("_guard", OneThread(type(owner).__name__))
    return guard
