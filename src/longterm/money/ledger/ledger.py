"""Ledgers: accounts with limits that many processes share, in whole units.

An amount is a whole number of a unit that you choose, such as a millionth of a cent, so sums are exact. Before a
request an amount is held. Afterwards the actual cost is settled, or the hold is released. An account may belong to
another one, and a hold counts for all of them.

**Admission.** A hold h is admitted iff spent + Σ open holds + h ≤ limit. Then the final spend is at most
limit + Σ (cost − hold)₊ over the requests open at the last admission. With a reserve, spent + Σ largest costs of open
requests ≤ limit + reserve is required as well, and the final spend is at most limit + reserve. The
page "One budget for many processes" has the proofs. A request that costs at most 0 is always admitted. A hold with a
time is released at that time, and its cost still counts when it is settled. A lease counts until its holder reports or
a person releases it.

A limit may be for a day, a week or a month: then `spent` is what was settled in it, and open holds of earlier periods
count. Or it is replenished at a rate: then `spent` falls at that rate, down to 0.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal, Self

from longterm._base import validate
from longterm._base.display import TextTable
from longterm._base.messages import did_you_mean, shown
from longterm.errors import InputError, OutOfBudgetError
from longterm.money.holds import ExcessHold
from longterm.money.ledger.accounts import (
    LARGEST,
    SECOND,
    AccountSettings,
    Balance,
    LedgerCorrection,
    OpenHold,
    require_amount,
    require_note,
    require_renewal,
    require_seconds,
    require_settings,
    require_text,
)
from longterm.money.ledger.lease import Lease, close_leases
from longterm.money.ledger.ledger_rows import MAX_DEPTH, LedgerRows
from longterm.money.periods import Period, elapsed, period_of
from longterm.storage import schema as sql
from longterm.storage.clock import SYSTEM, Clock
from longterm.storage.contents import read_definition
from longterm.storage.database import Database
from longterm.storage.engine import Durability
from longterm.storage.positions import require_position
from longterm.storage.record import LATEST, RecordEntry, changed_limits
from longterm.storage.replica import Redefinition
from longterm.storage.rows_replica import NoCopy, RowsReplica
from longterm.storage.stored_object import Metrics, Stored

KIND = "ledger"
HOURS_24 = 86_400.0
TIMES = ("remember", "keep")
"""The arguments that another value changes when a ledger is opened."""
CHANGEABLE = ("limit", "reserve", "period", "timezone", "rate")
"""What may be changed of an account while it is used."""


class Ledger(Stored[NoCopy]):
    """Accounts with limits, shared by the processes that open the same database.

    Make it with `Ledger.open`. Every call is one transaction, and may be repeated: it takes effect once for its key.

    Parameters
    ----------
    unit : str
        The unit of all amounts.
    holds : "worst" or ExcessHold
        The amounts that are held: the largest cost of a request, or a calibrated estimate by group.
    remember : float
        Seconds for which the key of a settled or released hold is remembered.
    keep : float
        Seconds for which closed holds and entries are kept as a record.
    clock : Clock
        The time; tests give their own.

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

    _replica: RowsReplica

    def __init__(
        self,
        unit: str,
        holds: Literal["worst"] | ExcessHold = "worst",
        *,
        remember: float = HOURS_24,
        keep: float = 7 * HOURS_24,
        clock: Clock = SYSTEM,
    ) -> None:
        self.unit = require_text("unit", unit)
        self.holds = require_holds(holds)
        self._definition = {"unit": unit, "holds": holds, "remember": remember, "keep": keep}
        self._rows = LedgerRows("", self.holds, remember=remember, keep=keep)
        self._replica = RowsReplica(KIND, self._definition, clock=clock)
        self._replica.prefetch = self._rows.prefetch
        definition = self._replica.definition
        definition.changeable, definition.adopt, definition.follows = TIMES, self._adopt, True

    @classmethod
    def open(
        cls,
        url: str | PathLike[str],
        *,
        unit: str = "unit",
        holds: Literal["worst"] | ExcessHold = "worst",
        name: str = "ledger",
        durability: Durability = "commit",
        remember: float | None = None,
        keep: float | None = None,
        clock: Clock = SYSTEM,
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
        remember : float, optional
            Seconds for which the key of a settled or released hold is remembered. A call that is repeated within this
            time has no effect. Default: as stored, or 24 hours for a new ledger. Another value is stored, and the other
            processes use it once they open the ledger again.
        keep : float, optional
            Seconds for which `record` has closed holds and other entries, and for which the cost of an expired hold can
            be settled. Default: as stored, or 7 days for a new ledger. Another value is stored, like `remember`.
        clock : Clock
            The time; tests give their own.

        Raises
        ------
        DatabaseError
            If the database cannot be used, or holds another object with this name.
        """
        times = {"remember": remember, "keep": keep}
        given = {name: time for name, time in times.items() if time is not None}
        ledger = cls(unit, holds, clock=clock, **given)
        ledger._replica.attach(url, name, durability)
        ledger._rows.ledger = name
        if any(ledger._definition[name] != float(time) for name, time in given.items()):
            ledger._replica.redefine(lambda: ledger._with_times(given))
        return ledger

    def _with_times(self, given: dict[str, float]) -> Redefinition:
        before: Any = self._definition
        entries = changed_limits(before, given, "", "")
        return Redefinition(self._definition | given, None, entries)

    def _adopt(self, stored: dict[str, Any]) -> None:
        """Use the times of a stored definition."""
        self._definition = self._definition | {name: stored[name] for name in TIMES}
        self._rows.use_times(stored["remember"], stored["keep"])

    @classmethod
    def existing(cls, url: str | PathLike[str], name: str = "ledger", *, durability: Durability = "commit") -> Self:
        """Return a ledger of a database with the unit and the rule for holds that it was created with.

        Parameters
        ----------
        url : path or str
            A file for SQLite, or a URL ``postgresql://…``.
        name : str
            Its name in the database.
        durability : {"commit", "relaxed"}
            As for `open`.

        Raises
        ------
        InputError
            If the database has no ledger with this name.
        """
        kind, stored = read_definition(url, require_text("name", name))
        if kind != KIND:
            raise InputError(
                "name",
                f"{name!r} is a {kind}, not a ledger",
                "Use the name of a ledger. The command 'longterm state show' lists them",
            )
        holds = stored["holds"]
        rule: Any = "worst" if holds == "worst" else ExcessHold(**{k: v for k, v in holds.items() if k != "class"})
        return cls.open(url, unit=stored["unit"], holds=rule, name=name, durability=durability)

    def __repr__(self) -> str:
        return f"Ledger({self._replica.name!r}, unit={self.unit!r})"

    def _repr_html_(self) -> str:
        rows = [
            (name, *(f"{amount:,}" for amount in (one.limit, one.spent, one.held, one.available)))
            for name, one in self.accounts.items()
        ]
        title = f"Ledger {self._replica.name}, in units of {self.unit}"
        return TextTable(("account", "limit", "spent", "held", "available"), rows, title=title).to_html()

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
        name = require_text("name", name)
        settings = require_settings(limit, parent, period, timezone, rate, reserve)
        self._replica.run(self._add_account, name, settings)

    def _add_account(self, database: Database, name: str, settings: AccountSettings) -> None:
        ledger, now = self._replica.name, database.now()
        limit, parent, period, timezone, rate, reserve = settings
        if parent is not None and len(self._rows.chain(database, parent, "parent")) >= MAX_DEPTH:
            raise InputError("parent", f"{parent!r} has {MAX_DEPTH} accounts above it", "Use fewer levels")
        known = self._rows.account(database, name)
        if known is None:
            since = "" if period is None else period_of(period, timezone, now / SECOND)
            given = name, parent, limit, reserve, period, timezone, rate, since, now, ledger
            database.write_locked([(sql.INSERT_ACCOUNT, given), self._rows.touch(now)])
            return
        if (known.parent, known.period, known.zone, known.rate) != (parent, period, timezone, rate):
            what = f"{name!r} already exists with a different parent, period, timezone or rate"
            raise InputError("name", what, "Use another name, or change the period with set_period")
        self._rows.set_limits(database, name, limit, reserve)

    def set_limit(self, account: str, limit: int, *, reserve: int | None = None, who: str = "", note: str = "") -> None:
        """Set the limit of an account. Holds that were admitted stay.

        Parameters
        ----------
        account : str
            The account.
        limit : int
            The new limit.
        reserve : int, optional
            The new reserve. None leaves it as it is.
        who, note : str
            Who makes the change and why, for `record`.
        """
        given = require_text("account", account), require_amount("limit", limit)
        rest = None if reserve is None else require_amount("reserve", reserve)
        self._replica.run(self._set_limit, *given, rest, require_note("who", who), require_note("note", note))

    def _set_limit(
        self, database: Database, account: str, limit: int, reserve: int | None, who: str, note: str
    ) -> None:
        present = self._rows.chain(database, account)[0].reserve
        self._rows.set_limits(database, account, limit, present if reserve is None else reserve, who, note)

    def set_period(
        self,
        account: str,
        period: Period | None,
        *,
        timezone: str = "UTC",
        rate: int = 0,
        who: str = "",
        note: str = "",
    ) -> None:
        """Set the period of an account, its time zone, and the rate of an account without a period.

        The money that counts as spent now counts in the present period of the new kind. What was spent in earlier
        periods of the old kind is not added.

        Parameters
        ----------
        account : str
            The account.
        period : {"day", "week", "month"}, optional
            The limit is for this period from now on.
        timezone : str
            Where periods begin, such as "Europe/Berlin".
        rate : int
            Units a second by which the money spent is replenished. Not with a period.
        who, note : str
            Who makes the change and why, for `record`.
        """
        units = require_amount("rate", rate)
        require_renewal(period, timezone, units)
        given = require_text("account", account), period, timezone, units
        self._replica.run(self._rows.set_period, *given, require_note("who", who), require_note("note", note))

    def change(self, account: str, changes: Mapping[str, Any], *, who: str = "", note: str = "") -> None:
        """Change what a person decides about an account, by name, in one transaction.

        Parameters
        ----------
        account : str
            The account.
        changes : mapping of str to object
            New values of `limit`, `reserve`, `period`, `timezone` or `rate`. A period of "" or None is none, and so is
            a reserve of None.
        who, note : str
            Who makes the change and why, for `record`.

        Raises
        ------
        InputError
            If a name is not one of these, or a value cannot be used.
        """
        account, done = require_text("account", account), (require_note("who", who), require_note("note", note))
        if not isinstance(changes, Mapping):
            raise InputError("changes", f"{shown(changes)} is not a mapping", "Give new values by name")
        for name in changes:
            if name not in CHANGEABLE:
                what = f"{shown(name)} of an account cannot be changed{did_you_mean(str(name), CHANGEABLE)}"
                raise InputError("changes", what, f"Choose from {list(CHANGEABLE)}, or add another account")
        self._replica.run(self._change, account, dict(changes), *done)

    def _change(self, database: Database, account: str, changes: dict[str, Any], who: str, note: str) -> None:
        accounts = {one.name: one for one in self._rows.accounts(database)}
        if account not in accounts:
            what = f"there is no account {account!r}{did_you_mean(account, accounts)}"
            raise InputError("account", what, f"Choose from {list(accounts)}")
        given = accounts[account].settings()._asdict() | changes
        if isinstance(given["period"], str) and not given["period"]:
            given["period"] = None
        new = require_settings(**given)
        self._rows.set_period(database, account, new.period, new.timezone, new.rate, who, note)
        self._rows.set_limits(database, account, new.limit, new.reserve, who, note)

    def reset(self, account: str, spent: int = 0, *, who: str = "", note: str = "") -> None:
        """Set the money spent in an account in its present period. Its parents and open holds stay as they are.

        Parameters
        ----------
        account : str
            The account.
        spent : int
            What counts as spent from now on.
        who, note : str
            Who makes the change and why, for `record`.
        """
        given = require_text("account", account), require_amount("spent", spent)
        self._replica.run(self._rows.reset, *given, require_note("who", who), require_note("note", note))

    def balance(self, account: str) -> Balance:
        """Return the limit of an account, and the amounts spent and held."""
        found: Balance = self._replica.run(self._balance, require_text("account", account))
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

    @property
    def settings(self) -> Mapping[str, AccountSettings]:
        """The limit, parent, period, time zone, rate and reserve of all accounts, by name."""
        rows = self._replica.run(self._rows.accounts)
        return MappingProxyType({row.name: row.settings() for row in rows})

    def metrics(self) -> Metrics:
        """Return figures for monitoring; those of money are by account.

        `plan` is the money that an even spender would have spent by now in the present period, `overshoot` the money
        spent above a limit, and `total` all that was ever spent: it never falls. `late` is the number of leases past
        their end whose holders have not reported: their money counts until `release`.
        """
        figures: Metrics = self._replica.run(self._metrics)
        return figures

    def _metrics(self, database: Database) -> Metrics:
        now, rows = database.now(), self._rows.accounts(database)
        ((open_holds,),) = database.read(sql.COUNT_HOLDS, self._replica.name)
        ((late,),) = database.read(sql.COUNT_LATE, self._replica.name, now)
        return {
            "open": open_holds,
            "late": late,
            "spent": {row.name: row.spent for row in rows},
            "total": {row.name: row.total for row in rows},
            "held": {row.name: row.held for row in rows},
            "limit": {row.name: row.maximum for row in rows},
            "plan": {row.name: row.maximum * elapsed(row.period, row.zone, now / SECOND) for row in rows},
            "overshoot": {row.name: max(row.spent - row.maximum, 0) for row in rows},
        }

    # --- holds -----------------------------------------------------------------------------------------------

    def hold(
        self,
        account: str,
        amount: int,
        key: str,
        *,
        group: str | None = None,
        seconds: float | None = None,
        who: str = "",
    ) -> int:
        """Hold an amount in an account and all accounts that it belongs to. Return the amount held.

        A call that is repeated with the key of an open or settled hold has no effect and returns the first amount. If
        the hold has expired, it is admitted again or refused like a new one.

        Parameters
        ----------
        account : str
            The account.
        amount : int
            The largest cost of the request, in units. A request that costs at most 0 is always admitted.
        key : str
            Names the hold. Keys of settled and released holds are remembered for `remember` seconds.
        group : str, optional
            The model, or the model and a group, by which calibrated holds are estimated. Without it `amount` is held.
        seconds : float, optional
            The hold expires after this time: the amount is available again, and a later `settle` still counts.
        who : str
            Who makes the request, for `record`.

        Raises
        ------
        OutOfBudgetError
            If spent + held + this hold would exceed the limit of one of them, or the largest costs limit + reserve.
        InputError
            If an argument cannot be used, the key belongs to another account or amount, or its hold was released.
        """
        life = None if seconds is None else require_seconds(seconds)
        given = require_text("account", account), require_amount("amount", amount), require_text("key", key), life
        kind = None if group is None else require_text("group", group)
        held: int = self._replica.run(self._rows.hold, *given, kind, require_note("who", who))
        return held

    def settle(
        self,
        key: str,
        actual: int,
        *,
        force: bool = False,
        who: str = "",
        position: tuple[str, int] | None = None,
    ) -> None:
        """Replace a hold by the actual cost, which may be larger or smaller.

        Parameters
        ----------
        key : str
            The hold. An expired one can still be settled. A repeated call has no effect.
        actual : int
            The whole cost, in units, reported parts included.
        force : bool
            Accept a cost above 100 times the amount given to `hold`.
        who : str
            Who reports the cost, for `record`; by default who made the hold.
        position : (str, int), optional
            The partition of a queue and the number of the message there. A message counts once, however often the
            queue delivers it. Numbers must grow along a partition.

        Raises
        ------
        RepeatedPositionError
            If the object has applied this position, or a later one of the partition.
        ClosedHoldError
            If the hold was released, or settled with another cost.
        InputError
            If there is no such hold, or the cost is absurd.
        """
        given = require_text("key", key), require_amount("actual", actual), require_note("who", who)
        self._replica.run(partial(self._rows.settle, force=force), *given, position=require_position(position))

    def release(self, key: str, *, force: bool = False, who: str = "", note: str = "") -> None:
        """Give back a hold, or a lease whose holder died. A repeated call has no effect.

        Parameters
        ----------
        key : str
            The hold. What was reported as spent stays spent.
        force : bool
            Release a lease before its end. If its holder is alive, its money may be spent twice.
        who, note : str
            Who releases it, by default who made the hold, and why, for `record`.

        Raises
        ------
        ClosedHoldError
            If the hold was settled.
        InputError
            If there is no such hold, or it is a lease that has not ended.
        """
        given = require_text("key", key), require_note("who", who), require_note("note", note)
        self._replica.run(partial(self._rows.release, force=force), *given)

    def report(self, key: str, spent: int, *, held: int | None = None, force: bool = False) -> None:
        """Record the part of an open hold that was spent so far. The rest stays held.

        Parameters
        ----------
        key : str
            The hold.
        spent : int
            The total so far. A repeated call has no effect.
        held : int, optional
            Of a lease that its holder has ended: what its open requests still hold. The rest comes back.
        force : bool
            Accept an amount above 100 times the one given to `hold`.

        Raises
        ------
        InputError
            If there is no such hold, or it is closed, or the amount is absurd.
        """
        rest = None if held is None else require_amount("held", held)
        given = require_text("key", key), require_amount("spent", spent), rest
        self._replica.run(partial(self._rows.report, force=force), *given)

    def correct(
        self,
        key: str,
        actual: int,
        *,
        correction: str | None = None,
        force: bool = False,
        who: str = "",
        note: str = "",
    ) -> LedgerCorrection:
        """Replace the cost that counts for a closed hold, in its account and all accounts that it belongs to.

        The settlement and the correction both stay in the record. An account whose period of the settlement is over is
        corrected in its present period, and the result names it. Its money spent does not fall below 0.

        Parameters
        ----------
        key : str
            A hold that was settled or released.
        actual : int
            The right cost, in units.
        correction : str, optional
            The key of the correction. A repeated call with it has no effect, even after later corrections.
        force : bool
            Accept a cost above 100 times the amount given to `hold`.
        who, note : str
            Who makes the correction and why, for `record`.

        Returns
        -------
        LedgerCorrection
            The cost before and after, and the accounts that were corrected in a later period.

        Raises
        ------
        InputError
            If there is no such hold, or it is open or has expired, or the cost is absurd.
        """
        own = None if correction is None else require_text("correction", correction)
        given = require_text("key", key), require_amount("actual", actual), own
        texts = require_note("who", who), require_note("note", note)
        found: LedgerCorrection = self._replica.run(partial(self._rows.correct, force=force), *given, *texts)
        return found

    def account_of(self, key: str) -> str:
        """Return the account of a hold, open or closed. Raise an InputError if there is none."""
        account: str = self._replica.run(self._rows.account_of, require_text("key", key))
        return account

    def open_holds(self, account: str | None = None) -> list[OpenHold]:
        """Return the open holds and leases of an account, or of all, the oldest first."""
        name = None if account is None else require_text("account", account)
        found: list[OpenHold] = self._replica.run(self._rows.open_holds, name)
        return found

    def record(self, *, since: float = 0.0, most: int = 1000, holds: bool = True) -> list[RecordEntry]:
        """Return what changed the money of accounts, the newest first.

        Closed holds, corrections, resets and changed limits are kept for `keep` seconds.

        Parameters
        ----------
        since : float
            Leave out what is older than this time, in seconds since 1970.
        most : int
            The largest number of entries.
        holds : bool
            With False, only what people have changed.
        """
        given = min(validate.non_negative_scalar("since", since), LATEST), min(validate.count("most", most), LARGEST)
        found: list[RecordEntry] = self._replica.run(self._rows.record, *given, holds)
        return found

    def lease(self, account: str, amount: int, seconds: float, *, who: str | None = None) -> Lease:
        """Hold a slice of an account for this process, which then spends from memory.

        At every moment Σ spent + Σ leases ≤ limit. The holder spends for nine tenths of the time. Then it reports by
        itself, and what is left comes back. The slice of a process that dies counts in full until somebody calls
        `release`; `metrics` counts such leases as `late`, and `open_holds` names their holders.

        Parameters
        ----------
        account : str
            The account.
        amount : int
            The slice, in units.
        seconds : float
            The time limit.
        who : str, optional
            The holder. Default: the machine and the number of the process.

        Raises
        ------
        OutOfBudgetError
            As for `hold`.
        """
        given = require_text("account", account), require_amount("amount", amount)
        life, holder = require_seconds(seconds), require_note("who", holder_name() if who is None else who)
        # Made before the transaction, so that the slice ends here before it ends in the ledger.
        lease = Lease(self, f"lease {secrets.token_hex(12)}", given[1], seconds, self._replica.clock)
        try:
            self._replica.run(self._lease, *given, lease.key, life, holder)
        except (OutOfBudgetError, InputError):
            raise
        except BaseException:  # the slice may be held all the same
            lease.give_up()
            raise
        lease.start()
        return lease

    def _lease(self, database: Database, account: str, amount: int, key: str, life: int, who: str) -> None:
        self._rows.hold_exactly(database, account, amount, amount, key, life, who=who, is_lease=True)

    def close(self) -> None:
        """End the leases of this process and close the connection. Everything acknowledged is in the database."""
        close_leases(self)
        super().close()

    @property
    def clock(self) -> Clock:
        """The time of this machine."""
        return self._replica.clock


def holder_name() -> str:
    """Return the name of this machine and the number of this process."""
    return f"{socket.gethostname()} {os.getpid()}"


def require_holds(holds: Any) -> ExcessHold | None:
    """Return the rule of calibrated holds, or None for the worst case."""
    if holds != "worst" and not isinstance(holds, ExcessHold):
        raise InputError("holds", f"{holds!r:.60} is not known", "Give 'worst' or ExcessHold(share=0.02)")
    return None if holds == "worst" else holds
