"""The budget of a chooser or a pacer that comes from an account of a ledger.

`SharedAccount` is for objects in the database of the ledger: a call holds and settles in the same transaction.
`LeasedAccount` is for objects in memory: a process leases slices of the account and spends them without transactions.
In both cases all objects that name an account share its limit.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod

from longterm._base import validate
from longterm.errors import DatabaseError, InputError, OutOfBudgetError
from longterm.money.ledger.accounts import require_amount, require_seconds, require_text
from longterm.money.ledger.lease import Lease
from longterm.money.ledger.ledger import KIND, Ledger
from longterm.money.ledger.ledger_rows import LedgerRows
from longterm.storage import schema as sql
from longterm.storage.database import Database

ROUNDING = 1 - 2.0**-50
"""A product with `units` may be above a whole number by rounding only."""
REPORTS = 10
"""Reports of a leased slice during its time."""


class Spending(ABC):
    """An account from which an object takes its money.

    Parameters
    ----------
    account : str
        The name of the account.
    units : float
        The units of the ledger in one unit of the object's money: 10⁶ for dollars and a ledger in microdollars.
    """

    def __init__(self, account: str, units: float) -> None:
        self.account = require_text("account", account)
        self.units = validate.positive_scalar("units", units)

    def amount(self, money: float) -> int:
        """Return an amount of money to hold, in units, rounded up."""
        return require_amount("amount", math.ceil(float(money) * self.units * ROUNDING))

    def cost(self, money: float) -> int:
        """Return an amount of money that was paid, in units, rounded to the nearest."""
        return require_amount("cost", round(float(money) * self.units))

    @abstractmethod
    def room(self, wanted: float) -> tuple[float, float]:
        """Return the largest amount that can be held and the largest cost; `wanted` is the most that is needed."""

    @abstractmethod
    def hold(self, key: str, held: float, largest: float) -> None:
        """Hold an amount for an open request that costs at most `largest`."""

    @abstractmethod
    def settle(self, key: str, paid: float) -> None:
        """Replace a hold by the cost."""


class SharedAccount(Spending):
    """An account of a ledger in the same database, for `Chooser.open` and `LivePacer.open`.

    Parameters
    ----------
    account : str
        The name of the account.
    units : float
        The units of the ledger in one unit of the object's money.
    ledger : str
        The name of the ledger.
    """

    def __init__(self, account: str, *, units: float = 1.0, ledger: str = "ledger") -> None:
        super().__init__(account, units)
        self._rows = LedgerRows(ledger)
        self._database: Database | None = None
        self._name = ""

    def attach(self, database: Database | None, name: str) -> None:
        """Use the account from now on for the object with this name. Raise if it does not exist."""
        assert database is not None
        rows = database.read(sql.READ_OBJECT, self._rows.ledger)
        if not rows or rows[0][0] != KIND:
            what = f"it has no ledger {self._rows.ledger!r}"
            raise DatabaseError(database.path, "missing", what, "Make it there first, with Ledger.open")
        self._rows.chain(database, self.account)
        self._database, self._name = database, name

    def _locked(self) -> Database:
        database = self._database
        if database is None:
            raise InputError("account", "is in a database, and this object is not", "Use open(), or a LeasedAccount")
        database.lock(self._rows.ledger)
        return database

    def room(self, wanted: float) -> tuple[float, float]:
        free, exposure = self._rows.room(self._locked(), self.account)
        return free / self.units, exposure / self.units

    def hold(self, key: str, held: float, largest: float) -> None:
        amount = self.amount(held)
        exposure = max(self.amount(largest), amount)
        self._rows.hold_exactly(self._locked(), self.account, amount, exposure, f"{self._name} {key}")

    def settle(self, key: str, paid: float) -> None:
        self._rows.settle(self._locked(), f"{self._name} {key}", self.cost(paid))


class LeasedAccount(Spending):
    """Slices of an account that one process spends from memory, for `Chooser` and `LivePacer` without a database.

    A slice is leased when the present one is too small for a request, and ends after `seconds`. At every moment
    Σ spent + Σ leases ≤ limit over all processes. Costs are reported ten times in the time of a slice. The slice of a
    process that dies counts until its end and then comes back, less what it reported. So what it spent since its last
    report is not in the ledger.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    account : str
        The name of the account.
    slice : int
        The size of a slice, in units of the ledger. The last ones are smaller.
    seconds : float
        The time limit of a slice. A request must not stay open for longer.
    units : float
        The units of the ledger in one unit of the object's money.
    """

    def __init__(self, ledger: Ledger, account: str, *, slice: int, seconds: float = 60.0, units: float = 1.0) -> None:
        super().__init__(account, units)
        ledger.balance(account)  # raises if there is none
        require_seconds(seconds)
        self._ledger, self._seconds = ledger, seconds
        self._slice = require_amount("slice", slice)
        self._lease: Lease | None = None
        self._open: dict[str, tuple[Lease, int]] = {}
        self._empty_until = self._report_at = -math.inf

    def room(self, wanted: float) -> tuple[float, float]:
        needed = self.amount(wanted)
        if self._lease is None or self._lease.available < needed:
            self._renew(needed)
        available = 0 if self._lease is None else self._lease.available
        return available / self.units, math.inf

    def _renew(self, needed: int) -> None:
        """Lease another slice, at least as large as needed or all that is left. Ask again after a pause if none is."""
        if time.monotonic() < self._empty_until:
            return
        old, self._lease = self._lease, None
        if old is not None:
            self._close_unused(old)
        amount = max(self._slice, needed)
        while amount > 0 and self._lease is None:
            try:
                self._lease = self._ledger.lease(self.account, amount, self._seconds)
            except OutOfBudgetError as error:
                amount = min(error.available, amount - 1)
        if amount < needed:
            self._empty_until = time.monotonic() + min(1.0, self._seconds)

    def _close_unused(self, lease: Lease) -> None:
        if lease is not self._lease and all(lease is not used for used, _ in self._open.values()):
            lease.close()

    def hold(self, key: str, held: float, largest: float) -> None:
        amount, lease = self.amount(held), self._lease
        if lease is None or not lease.spend(amount):
            raise OutOfBudgetError(self.account, amount, 0 if lease is None else lease.available)
        self._open[key] = lease, amount

    def settle(self, key: str, paid: float) -> None:
        if key in self._open:  # a call that was interrupted may come twice
            lease, held = self._open.pop(key)
            lease.correct(self.cost(paid) - held)
            self._close_unused(lease)
        if self._lease is not None and time.monotonic() > self._report_at:
            self._report_at = time.monotonic() + self._seconds / REPORTS
            self._lease.report()

    def close(self) -> None:
        """Give back what was not spent. Open requests count with their holds."""
        leases = {id(lease): lease for lease, _ in self._open.values()}
        if self._lease is not None:
            leases[id(self._lease)] = self._lease
        self._lease = None
        self._open.clear()
        for lease in leases.values():
            lease.close()
