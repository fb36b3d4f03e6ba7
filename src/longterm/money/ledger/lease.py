"""Leases: slices of an account that one process spends from memory."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import TYPE_CHECKING, NoReturn, Self

from longterm.errors import DatabaseError, InputError, InUseError, LongtermError
from longterm.money.ledger.accounts import require_amount

if TYPE_CHECKING:
    from longterm.money.ledger.ledger import Ledger
    from longterm.storage import Clock

SPENDING_SHARE = 0.9
"""The holder spends in this share of the time of a lease. The rest is for its last report."""
RETRY_SECONDS = 1.0
"""The pause before the last report is tried again, if the database could not be reached."""


class Lease:
    """A slice of an account that one process spends from memory. Threads may share it.

    `Ledger.lease` makes it. Use it in a ``with`` statement, or call `close`. After nine tenths of its time nothing more
    can be spent, and a thread closes it, also if the process is idle. In the ledger it counts in full until then. A
    child that a fork made cannot use it.

    Parameters
    ----------
    ledger : Ledger
        The ledger that holds the slice.
    key : str
        The key of its hold.
    amount : int
        The slice, in units.
    seconds : float
        Its time, of which the holder uses nine tenths.
    clock : Clock
        The time. A lease ends at the earlier of wall and monotonic time.
    """

    def __init__(self, ledger: Ledger, key: str, amount: int, seconds: float, clock: Clock) -> None:
        self.ledger, self._clock = ledger, clock
        self._deadline = clock.deadline(SPENDING_SHARE * seconds)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._timer: threading.Timer | None = None
        self._is_settled = False
        self._is_abandoned = False
        """True once open requests have counted with their holds."""
        self.is_ended = False
        """True once the holder has ended it."""
        self.key = key
        self.amount = amount
        self.spent = 0
        """The units spent so far."""
        self.held = 0
        """The units held for open requests."""

    def start(self) -> None:
        """Close the lease at its end from another thread. `Ledger.lease` calls it once the slice is held."""
        _OPEN.add(self)
        self._wait(self._deadline.monotonic - self._clock.monotonic())

    def give_up(self) -> None:
        """Close a lease of which nobody knows whether the ledger holds it."""
        self.is_ended = True
        self._wait(RETRY_SECONDS)

    @property
    def available(self) -> int:
        """The units left; 0 after the end."""
        return 0 if self.is_over else self.amount - self.spent - self.held

    @property
    def is_over(self) -> bool:
        """True if nothing more can be spent."""
        self._require_own_process()
        return self.is_ended or self._clock.is_over(self._deadline)

    def spend(self, amount: int) -> bool:
        """Spend an amount if it is left and the time is not over. Return whether it was spent."""
        units = require_amount("amount", amount)
        self._require_own_process()
        with self._lock:
            if self.is_over or units > self.available:
                return False
            self.spent += units
            return True

    def hold(self, amount: int) -> bool:
        """Hold an amount for an open request if it is left and the time is not over. Return whether it was held."""
        units = require_amount("amount", amount)
        self._require_own_process()
        with self._lock:
            if self.is_over or units > self.available:
                return False
            self.held += units
            return True

    def settle(self, held: int, actual: int) -> None:
        """Replace an amount that was held by the cost, which may be larger. This may happen after the end."""
        units, cost = require_amount("held", held), require_amount("actual", actual)
        self._require_own_process()
        with self._lock:
            if self._is_abandoned:
                self.spent += max(cost - units, 0)
            elif units > self.held:
                what = f"{units} is more than this lease holds, {self.held}"
                raise InputError("held", what, "Give the amount of one call of hold(), and settle it once")
            else:
                self.held -= units
                self.spent += cost
        if self.is_ended:
            self._try_to_close()

    def report(self) -> None:
        """Tell the ledger what was spent so far. What a process that dies has not reported still counts as leased."""
        self._require_own_process()
        if not self._is_settled:
            self.ledger.report(self.key, self.spent, force=True)

    def close(self) -> None:
        """End the lease: what is neither spent nor held for open requests comes back."""
        self._require_own_process()
        with self._lock:
            self.is_ended = True
            spent, held = self.spent, self.held
        self.ledger.report(self.key, spent, held=held, force=True)
        self._is_settled = held == 0
        if self._timer is not None:
            self._timer.cancel()

    def _try_to_close(self) -> None:
        """Close the lease, and try again later if the database cannot be reached."""
        try:
            self.close()
        except DatabaseError as error:
            if error.reason != "closed":
                self._wait(RETRY_SECONDS)
        except LongtermError:  # it cannot be reported; a person sees it in the list of open holds
            return

    def _wait(self, seconds: float) -> None:
        """Close the lease after a time. The thread keeps the lease, so that one that is lost is closed as well."""
        self._timer = threading.Timer(max(seconds, 0.001), self._at_end)
        self._timer.daemon = True
        self._timer.start()

    def _at_end(self) -> None:
        if self.is_over:
            self._try_to_close()
        else:  # the clock was set back, or stands still in a test
            self._wait(max(self._deadline.monotonic - self._clock.monotonic(), RETRY_SECONDS))

    def _require_own_process(self) -> None:
        """Raise an InUseError in a child that a fork made: parent and child would spend the slice twice."""
        if os.getpid() != self._process:
            what = "this lease belongs to the parent process, and after the fork both would spend it"
            raise InUseError(what, "Take another lease after the fork")

    def abandon(self) -> None:
        """Close the lease, if it is open, as its process or its ledger ends. Open requests count with their holds."""
        if os.getpid() == self._process and not self._is_settled:
            with self._lock:
                self.held, self.spent, self._is_abandoned = 0, self.spent + self.held, True
            self._try_to_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() == self._process:
            self.close()

    def __reduce__(self) -> NoReturn:
        raise InUseError("a lease cannot be copied or pickled, since both copies would spend it", "Take another lease")


_OPEN: weakref.WeakSet[Lease] = weakref.WeakSet()


def close_leases(ledger: Ledger | None = None) -> None:
    """Close the leases of a ledger, or of this process, which ends."""
    for lease in list(_OPEN):
        if ledger is None or lease.ledger is ledger:
            lease.abandon()


atexit.register(close_leases)
