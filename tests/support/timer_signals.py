"""Calls with a timer running, whose signal raises wherever it falls."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator


class Interrupted(BaseException):
    """What the handler of a signal raised."""


class Alarm:
    """A timer that interrupts the calls it is asked to.

    It raises only while such a call runs: a signal that was on its way may be delivered after the timer was put out.
    """

    def __init__(self) -> None:
        self._armed = False

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Its handler in force. What it raises in a callback of a weak reference Python drops, and says: not here."""
        said, before = sys.unraisablehook, signal.signal(signal.SIGALRM, self._handle)
        sys.unraisablehook = lambda dropped: None if dropped.exc_type is Interrupted else said(dropped)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            sys.unraisablehook = said

    def interrupted(self, call: Callable[[], object], seconds: float) -> bool:
        """Whether the timer went off in the call."""
        try:
            try:
                self._armed = True
                signal.setitimer(signal.ITIMER_REAL, seconds)
                call()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                self._armed = False
        except Interrupted:
            self._armed = False  # the signal may have fallen between the two lines above
            return True
        return False

    def _handle(self, number: int, frame: object) -> None:
        if self._armed:
            raise Interrupted
