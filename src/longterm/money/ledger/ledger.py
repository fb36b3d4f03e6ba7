"""Ledgers: accounts with limits that many processes share, in whole units.

An amount is a whole number of a unit that you choose, such as a millionth of a cent, so sums are exact. Before a
request an amount is held. Afterwards the actual cost is settled, or the hold is released. An account may belong to
another one, and a hold counts for all of them.

**Admission.** A hold h is admitted iff spent + Σ open holds + h ≤ limit. Then the final spend is at most
limit + Σ (cost − hold)₊ over the requests open at the last admission. With a reserve, spent + Σ largest costs of open
requests ≤ limit + reserve is required as well, and the final spend is at most limit + reserve. The
page "One budget for many processes" has the proofs. A hold that expires counts as 0 from then on.

A limit may be for a day, a week or a month: then `spent` is what was settled in it, and open holds of earlier periods
count. Or it is replenished at a rate: then `spent` falls at that rate, down to 0.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal, Self

from longterm.errors import InputError
from longterm.money.holds import ExcessHold
from longterm.money.ledger.accounts import (
    PERIODS,
    Balance,
    Period,
    elapsed,
    period_of,
    require_amount,
    require_hold_key,
    require_name,
    require_seconds,
    require_zone,
)
from longterm.money.ledger.lease import Lease
from longterm.money.ledger.ledger_rows import MAX_DEPTH, LedgerRows
from longterm.storage import schema as sql
from longterm.storage.database import Database, Durability
from longterm.storage.replica import LONGEST_NAME, Metrics, NoCopy, Replica, Stored

KIND = "ledger"


class Ledger(Stored[NoCopy]):
    """Accounts with limits, shared by the processes that open the same database.

    Make it with `Ledger.open`. Every call is one transaction, and may be repeated: it takes effect once for its key.

    Parameters
    ----------
    unit : str
        The unit of all amounts.
    holds : "worst" or ExcessHold
        The amounts that are held: the largest cost of a request, or a calibrated estimate by group.

    Examples
    --------
    >>> import tempfile
    >>> from longterm import Ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(folder.name + "/service.db", unit="cent")
    >>> ledger.add_account("organisation", limit=1000)
    >>> ledger.add_account("team", limit=600, parent="organisation")
    >>> ledger.hold("team", 400, key="request 1")
    400
    >>> ledger.settle("request 1", 250)
    >>> ledger.balance("organisation")
    Balance(limit=1000, spent=250, held=0)
    >>> ledger.hold("team", 400, key="request 2")
    Traceback (most recent call last):
    ...
    longterm.errors.OutOfBudgetError: account 'team' cannot hold 400: 350 are available. Wait for open holds to be \
settled, or for its period to end, or raise its limit.
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(self, unit: str, holds: Literal["worst"] | ExcessHold = "worst") -> None:
        self.unit = unit
        self.holds = require_holds(holds)
        self._replica = Replica(NoCopy(KIND), {"unit": unit, "holds": holds})
        self._rows = LedgerRows("", self.holds)

    @classmethod
    def open(
        cls,
        url: str | PathLike[str],
        *,
        unit: str = "unit",
        holds: Literal["worst"] | ExcessHold = "worst",
        name: str = "ledger",
        durability: Durability = "commit",
    ) -> Self:
        """Return the ledger with this name in a database, or create it there.

        Parameters
        ----------
        url : path or str
            A file for SQLite, or a URL ``postgresql://…`` (extra `postgres`).
        unit : str
            The unit of all amounts, such as "microcent". A stored ledger is opened only with the same.
        holds : "worst" or ExcessHold
            "worst": a hold is the largest cost, so no limit is exceeded. `ExcessHold(share=0.02)`: the hold of a
            request with a `group` is an estimate, and the costs exceed their holds by 2 % of the money in the mean.
        name : str
            Its name in the database.
        durability : {"commit", "relaxed"}
            "commit": a call is on the disk before it returns. "relaxed": it survives the death of the process.

        Raises
        ------
        DatabaseError
            If the database cannot be used, or holds another object with this name.
        """
        if not isinstance(unit, str) or not 0 < len(unit) <= LONGEST_NAME:
            raise InputError("unit", f"{unit!r:.60} is not a unit", "Give a text, 'microcent' for example")
        ledger = cls(unit, holds)
        ledger._replica.attach(url, name, durability)
        ledger._rows.ledger = name
        return ledger

    def __repr__(self) -> str:
        return f"Ledger({self._replica.name!r}, unit={self.unit!r})"

    # --- accounts --------------------------------------------------------------------------------------------

    def add_account(
        self,
        name: str,
        limit: int,
        *,
        parent: str | None = None,
        period: Period | None = None,
        timezone: str = "UTC",
        rate: int = 0,
        reserve: int | None = None,
    ) -> None:
        """Add an account. If it exists with the same arguments, only its limit and reserve change.

        Parameters
        ----------
        name : str
            Its name.
        limit : int
            The limit of the money spent and held.
        parent : str, optional
            An account that this one belongs to. A hold counts for both.
        period : {"day", "week", "month"}, optional
            The limit is for this period.
        timezone : str
            Where periods begin, such as "Europe/Berlin".
        rate : int
            Units a second by which the money spent is replenished. Not with a period.
        reserve : int, optional
            The largest amount by which the spend may exceed the limit, if no cost exceeds the amount given to `hold`.
            It matters with calibrated holds only.

        Raises
        ------
        InputError
            If an argument cannot be used, or the account exists with others.
        """
        name = require_name("name", name)
        limit, rate = require_amount("limit", limit), require_amount("rate", rate)
        reserve = None if reserve is None else require_amount("reserve", reserve)
        if period is not None and period not in PERIODS:
            raise InputError("period", f"{period!r} is not known", f"Choose one of {list(PERIODS)}")
        if period is not None and rate:
            raise InputError("rate", "and a period are given", "Give one of them")
        require_zone(timezone)
        self._replica.run(self._add_account, name, limit, reserve, (parent, period, timezone, rate))

    def _add_account(
        self, database: Database, name: str, limit: int, reserve: int | None, fixed: tuple[Any, ...]
    ) -> None:
        ledger, now = self._replica.name, database.now()
        parent, period, timezone, rate = fixed
        if parent is not None and len(self._rows.chain(database, parent, "parent")) >= MAX_DEPTH:
            raise InputError("parent", f"{parent!r} has {MAX_DEPTH} accounts above it", "Use fewer levels")
        known = self._rows.account(database, name)
        if known is None:
            since = "" if period is None else period_of(period, timezone, now)
            given = name, parent, limit, reserve, period, timezone, rate, since, now, ledger
            database.write_locked([(sql.INSERT_ACCOUNT, given)])
            return
        if (known.parent, known.period, known.zone, known.rate) != fixed:
            what = f"{name!r} exists with another parent, period, timezone or rate"
            raise InputError("name", what, "Use another name")
        database.write_locked([(sql.SET_LIMITS, (limit, reserve, ledger, name))])

    def balance(self, account: str) -> Balance:
        """Return the limit of an account, and the amounts spent and held."""
        found: Balance = self._replica.run(self._balance, require_name("account", account))
        return found

    def _balance(self, database: Database, account: str) -> Balance:
        now = database.now()
        self._rows.expire(database, now)
        found = self._rows.chain(database, account)[0].at(now)
        return Balance(found.maximum, found.spent, found.held)

    @property
    def accounts(self) -> Mapping[str, Balance]:
        """The balances of all accounts, by name."""
        rows = self._replica.run(self._rows.accounts)
        return MappingProxyType({row.name: Balance(row.maximum, row.spent, row.held) for row in rows})

    def metrics(self) -> Metrics:
        """Return figures for monitoring; those of money are by account.

        `plan` is the money that an even spender would have spent by now in the present period, `overshoot` the money
        spent above a limit.
        """
        figures: Metrics = self._replica.run(self._metrics)
        return figures

    def _metrics(self, database: Database) -> Metrics:
        now, rows = database.now(), self._rows.accounts(database)
        ((open_holds,),) = database.read(sql.COUNT_HOLDS, self._replica.name)
        return {
            "open": open_holds,
            "spent": {row.name: row.spent for row in rows},
            "held": {row.name: row.held for row in rows},
            "limit": {row.name: row.maximum for row in rows},
            "plan": {row.name: row.maximum * elapsed(row.period, row.zone, now) for row in rows},
            "overshoot": {row.name: max(row.spent - row.maximum, 0) for row in rows},
        }

    # --- holds -----------------------------------------------------------------------------------------------

    def hold(
        self, account: str, amount: int, key: str, *, group: str | None = None, seconds: float | None = None
    ) -> int:
        """Hold an amount in an account and all accounts that it belongs to. Return the amount held.

        Parameters
        ----------
        account : str
            The account.
        amount : int
            The largest cost of the request, in units.
        key : str
            Names the hold. A repeated call with the same key has no effect.
        group : str, optional
            The model, or the model and a group, by which calibrated holds are estimated. Without it `amount` is held.
        seconds : float, optional
            The hold expires after this time: the amount is available again, and a later `settle` still counts.

        Raises
        ------
        OutOfBudgetError
            If spent + held + this hold would exceed the limit of one of them, or the largest costs limit + reserve.
        InputError
            If an argument cannot be used, or the key belongs to another account or amount.
        """
        life = None if seconds is None else require_seconds(seconds)
        given = require_name("account", account), require_amount("amount", amount), require_hold_key(key), life
        held: int = self._replica.run(self._rows.hold, *given, None if group is None else require_name("group", group))
        return held

    def settle(self, key: str, actual: int) -> None:
        """Replace a hold by the actual cost, which may be larger or smaller.

        Parameters
        ----------
        key : str
            The hold. An expired one can still be settled. A repeated call has no effect.
        actual : int
            The whole cost, in units, reported parts included.

        Raises
        ------
        InputError
            If there is no such hold, or it was released, or settled with another cost.
        """
        self._replica.run(self._rows.settle, require_hold_key(key), require_amount("actual", actual))

    def release(self, key: str) -> None:
        """Give back a hold. A repeated call has no effect. Raise an InputError if there is none, or it was settled."""
        self._replica.run(self._rows.release, require_hold_key(key))

    def report(self, key: str, spent: int) -> None:
        """Record the part of an open hold that was spent so far. The rest stays held.

        Parameters
        ----------
        key : str
            The hold.
        spent : int
            The total so far. A repeated call has no effect.
        """
        self._replica.run(self._rows.report, require_hold_key(key), require_amount("spent", spent))

    def lease(self, account: str, amount: int, seconds: float) -> Lease:
        """Hold a slice of an account for this process, which then spends from memory.

        At every moment Σ spent + Σ leases ≤ limit. The slice of a process that dies counts until its end and then comes
        back, less what it reported.

        Parameters
        ----------
        account : str
            The account.
        amount : int
            The slice, in units.
        seconds : float
            The time limit.

        Raises
        ------
        OutOfBudgetError
            As for `hold`.
        """
        begin = time.monotonic()  # before the transaction, so that the slice ends here before it ends in the ledger
        key = f"lease {secrets.token_hex(12)}"
        self.hold(account, amount, key, seconds=seconds)
        return Lease(self, key, amount, begin + seconds)


def require_holds(holds: Any) -> ExcessHold | None:
    """Return the rule of calibrated holds, or None for the worst case."""
    if holds != "worst" and not isinstance(holds, ExcessHold):
        raise InputError("holds", f"{holds!r:.60} is not known", "Give 'worst' or ExcessHold(share=0.02)")
    return None if holds == "worst" else holds
