"""Calls with a timer running, whose signal raises wherever it falls."""

from __future__ import annotations

import contextlib
import signal
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
        """Its handler in force."""
        before = signal.signal(signal.SIGALRM, self._handle)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

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
