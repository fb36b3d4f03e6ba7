"""Leases: slices of an account that one process spends from memory."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from longterm.money.ledger.accounts import require_amount

if TYPE_CHECKING:
    from longterm.money.ledger.ledger import Ledger


class Lease:
    """A slice of an account that one process spends from memory. Threads may share it.

    `Ledger.lease` makes it. Use it in a ``with`` statement, or call `close`.

    Parameters
    ----------
    ledger : Ledger
        The ledger that holds the slice.
    key : str
        The key of its hold.
    amount : int
        The slice, in units.
    end : float
        The time at which it ends, by `time.monotonic`.
    """

    def __init__(self, ledger: Ledger, key: str, amount: int, end: float) -> None:
        self._ledger, self._key, self._end = ledger, key, end
        self._lock = threading.Lock()
        self.amount = amount
        self.spent = 0
        """The units spent so far."""

    @property
    def available(self) -> int:
        """The units left; 0 after the end."""
        return self.amount - self.spent if time.monotonic() < self._end else 0

    def spend(self, amount: int) -> bool:
        """Spend an amount if it is left and the time is not over. Return whether it was spent."""
        amount = require_amount("amount", amount)
        with self._lock:
            if amount > self.available:
                return False
            self.spent += amount
            return True

    def correct(self, difference: int) -> None:
        """Change what was spent, once the cost of a request is known."""
        with self._lock:
            self.spent = max(self.spent + difference, 0)

    def report(self) -> None:
        """Tell the ledger what was spent so far. A process that dies loses only what it did not report."""
        self._ledger.report(self._key, self.spent)

    def close(self) -> None:
        """Settle the slice: what was not spent comes back."""
        with self._lock:
            self._end = -1.0
        self._ledger.settle(self._key, self.spent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
