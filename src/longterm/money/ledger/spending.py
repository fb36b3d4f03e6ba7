"""The budget of a chooser or a pacer that comes from an account of a ledger.

`SharedAccount` is for objects in the database of the ledger: a call holds and settles in the same transaction.
`LeasedAccount` is for objects in memory: a process leases slices of the account and spends them without transactions.
In both cases all objects that name an account share its limit.
"""

from __future__ import annotations

import json
import math
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any

from longterm._base import validate
from longterm._base.messages import shown
from longterm.errors import RESTORE, DatabaseError, InputError, OutOfBudgetError
from longterm.money.ledger.accounts import LARGEST, require_amount, require_seconds, require_text, to_units
from longterm.money.ledger.lease import Lease
from longterm.money.ledger.ledger import KIND, Ledger
from longterm.money.ledger.ledger_rows import LedgerRows
from longterm.storage import schema as sql
from longterm.storage.database import Database

LONGEST_WITH_ACCOUNT = 160
"""Characters of the name of an object with an account. Its holds are called by its name and a token."""
REPORTS = 10
"""Reports of a leased slice during its time."""


class InUnits:
    """An account and the units of its money.

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
        return to_units("amount", money, self.units)

    def cost(self, money: float) -> int:
        """Return an amount of money that was paid, in units, rounded up. So a request costs at most what it held."""
        return to_units("cost", money, self.units)

    def money(self, units: int) -> float:
        """Return the most money that these units can hold; below 0 if they are."""
        if units >= LARGEST // 2:
            return math.inf
        money = units / self.units
        while units >= 0 and self.amount(money) > units:
            money = math.nextafter(money, 0.0)
        return money


class Spending(InUnits, ABC):
    """An account from which an object takes its money."""

    @abstractmethod
    def room(self, wanted: float) -> tuple[float, float]:
        """Return the largest amount that can be held and the largest cost; `wanted` is the most that is needed.

        The first is below 0 if nothing but free requests is admitted.
        """

    @abstractmethod
    def hold(self, key: str, held: float, largest: float) -> None:
        """Hold an amount for an open request that costs at most `largest`."""

    @abstractmethod
    def settle(self, key: str, paid: float) -> None:
        """Replace a hold by the cost."""

    def correct(self, key: str, paid: float, who: str, note: str) -> None:
        """Replace the cost of a request that was settled. Raise an InputError for a leased account."""
        what = "is a leased account, whose ledger does not record single requests"
        raise InputError("account", what, "Correct the hold of the lease with Ledger.correct")


class SharedAccount(InUnits):
    """An account of a ledger in the same database, for `Chooser.open` and `LivePacer.open`. Several may share it.

    Parameters
    ----------
    account : str
        The name of the account.
    units : float
        The units of the ledger in one unit of the object's money. Amounts are rounded up to whole units.
    ledger : str
        The name of the ledger.
    """

    def __init__(self, account: str, *, units: float, ledger: str = "ledger") -> None:
        super().__init__(account, units)
        self.ledger = require_text("ledger", ledger)

    def attach(self, database: Database, name: str) -> Spending:
        """Return the account as the object with this name uses it in its database. Raise if it does not exist."""
        rows = database.read(sql.READ_OBJECT, self.ledger)
        if not rows or rows[0][0] != KIND:
            what = f"it has no ledger {self.ledger!r}"
            raise DatabaseError(database.path, "missing", what, "Create it first with Ledger.open")
        try:
            stored = json.loads(rows[0][1])
            ledger_rows = LedgerRows(self.ledger, remember=stored["remember"], keep=stored["keep"])
        except (ValueError, LookupError, TypeError):
            raise DatabaseError(database.path, "corrupted", f"{self.ledger!r} has no definition", RESTORE) from None
        return _AttachedAccount(self, ledger_rows, database, name)


def require_shared(account: Any, name: Any) -> SharedAccount | None:
    """Return the account of an object in a database, or raise an InputError."""
    if not (account is None or isinstance(account, SharedAccount)):
        remedy = "Give a SharedAccount, or make this object without a database"
        raise InputError("account", f"{shown(account)} cannot be the account of an object in a database", remedy)
    if account is not None and isinstance(name, str) and len(name) > LONGEST_WITH_ACCOUNT:
        what = f"{name!r:.60} has {len(name)} characters, and the keys of its holds begin with it"
        raise InputError("name", what, f"Give a text of 1 to {LONGEST_WITH_ACCOUNT} characters")
    return account


def require_leased(account: Any) -> LeasedAccount | None:
    """Return the account of an object in memory, or raise an InputError."""
    if not (account is None or isinstance(account, LeasedAccount)):
        remedy = "Give a LeasedAccount, or create this object with open() for a SharedAccount"
        raise InputError("account", f"{shown(account)} cannot be the account of an object in memory", remedy)
    return account


class _AttachedAccount(Spending):
    """A shared account in the transactions of one object."""

    def __init__(self, account: SharedAccount, rows: LedgerRows, database: Database, name: str) -> None:
        super().__init__(account.account, account.units)
        self._rows = rows
        self._database, self._name = database, name
        self._rows.chain(database, self.account)  # raises if there is none

    def _locked(self) -> Database:
        self._database.lock(self._rows.ledger)
        return self._database

    def room(self, wanted: float) -> tuple[float, float]:
        free, exposure = self._rows.room(self._locked(), self.account)
        return self.money(free), self.money(exposure)

    def hold(self, key: str, held: float, largest: float) -> None:
        amount = self.amount(held)
        exposure = max(self.amount(largest), amount)
        self._rows.hold_exactly(self._locked(), self.account, amount, exposure, f"{self._name} {key}")

    def settle(self, key: str, paid: float) -> None:
        note = f"settle() of {self._name}, after the hold was closed here"
        hold = f"{self._name} {key}"
        self._rows.settle_for_object(self._locked(), self.account, hold, self.cost(paid), note)

    def correct(self, key: str, paid: float, who: str, note: str) -> None:
        # The object has looked for the key of the correction, in this transaction.
        said = note or f"correct() of {self._name}"
        self._rows.correct(self._locked(), f"{self._name} {key}", self.cost(paid), None, who, said, force=True)


class LeasedAccount(Spending):
    """Slices of an account that one process spends from memory, for `Chooser` and `LivePacer` without a database.

    A slice is leased when the present one is too small for a request, and ends after `seconds`. At every moment
    Σ spent + Σ leases ≤ limit over all processes. Costs are reported ten times in the time of a slice, and at its end
    also by a process that is idle. The slice of a process that dies counts in full until `Ledger.release`.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    account : str
        The name of the account.
    slice : int
        The size of a slice, in units of the ledger. The last ones are smaller.
    units : float
        The units of the ledger in one unit of the object's money. Amounts are rounded up to whole units.
    seconds : float
        The time limit of a slice. A request may stay open for longer. Its hold then stays leased.
    """

    def __init__(self, ledger: Ledger, account: str, *, slice: int, units: float, seconds: float = 60.0) -> None:
        super().__init__(account, units)
        ledger.balance(account)  # raises if there is none
        require_seconds(seconds)
        self._ledger, self._seconds = ledger, seconds
        self._slice = require_amount("slice", slice)
        self._lock = threading.RLock()
        self._lease: Lease | None = None
        self._open: dict[str, tuple[Lease | None, int]] = {}
        self._empty_until = self._report_at = -math.inf

    def room(self, wanted: float) -> tuple[float, float]:
        needed = self.amount(wanted)
        with self._lock:
            if needed > 0 and (self._lease is None or self._lease.available < needed):
                self._renew(needed)
            is_over = self._lease is None or self._lease.is_over
            return -1.0 if is_over or self._lease is None else self.money(self._lease.available), math.inf

    def _renew(self, needed: int) -> None:
        """Lease another slice, at least as large as needed or all that is left. Ask again after a pause if none is."""
        now = self._ledger.clock.monotonic()
        if now < self._empty_until:
            return
        old, self._lease = self._lease, None
        if old is not None:
            old.close()
        amount = max(self._slice, needed)
        while amount > 0 and self._lease is None:
            try:
                self._lease = self._ledger.lease(self.account, amount, self._seconds)
            except OutOfBudgetError as error:
                amount = min(error.available, amount - 1)
        if amount < needed:
            self._empty_until = now + min(1.0, self._seconds)

    def hold(self, key: str, held: float, largest: float) -> None:
        amount, most = self.amount(held), self.amount(largest)
        with self._lock:
            if key in self._open:  # of a call that was interrupted before its request was opened
                self._pay(key, 0)
            if most > 0 and (self._lease is None or not self._lease.hold(amount)):
                self._renew(amount)  # it has ended since `room`, or another object has taken its money
                if self._lease is None or not self._lease.hold(amount):
                    available = 0 if self._lease is None else self._lease.available
                    raise OutOfBudgetError(self.account, amount, available)
            lease = self._lease if most > 0 else None  # what is free needs no lease
            self._open[key] = lease, amount

    def settle(self, key: str, paid: float) -> None:
        cost = self.cost(paid)
        with self._lock:
            if key in self._open:  # a call that was interrupted may come twice
                self._pay(key, cost)
            lease, now = self._lease, self._ledger.clock.monotonic()
            if lease is not None and now > self._report_at:
                self._report_at = now + self._seconds / REPORTS
                with suppress(DatabaseError):  # it counts in full until the next report
                    lease.report()

    def _pay(self, key: str, cost: int) -> None:
        """Replace the hold of an open request by its cost."""
        lease, held = self._open[key]
        if lease is not None:
            lease.settle(held, cost)
        elif cost > 0:  # what was announced as free
            with self._ledger.lease(self.account, 0, self._seconds) as other:
                other.settle(0, cost)
        del self._open[key]

    def close(self) -> None:
        """Give back what was not spent. Open requests count with their holds."""
        with self._lock:
            leases = {id(lease): lease for lease, _ in (*self._open.values(), (self._lease, 0)) if lease is not None}
            for key in list(self._open):
                self._pay(key, self._open[key][1])
            self._lease = None
            for lease in leases.values():
                lease.close()
