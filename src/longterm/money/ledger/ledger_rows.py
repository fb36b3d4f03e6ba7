"""The operations of a ledger inside a transaction, which a chooser or a pacer in the same database uses as well."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from longterm.errors import ClosedHoldError, DatabaseError, InputError
from longterm.money.holds import ExcessHold, HoldState
from longterm.money.ledger.accounts import (
    EXPIRED,
    LARGEST,
    OPEN,
    RELEASED,
    SECOND,
    SETTLED,
    STATUS,
    Account,
    Hold,
    LedgerCorrection,
    OpenHold,
    require_plausible,
    require_seconds,
)
from longterm.storage import schema as sql
from longterm.storage.database import Database
from longterm.storage.record import RecordEntry, Value, contradicts, entry, insertion, read_entries, read_value

MAX_DEPTH = 8
PRUNE_EVERY = 256
"""Calls after which old rows are deleted."""
LONGEST_KEY = 200


class LedgerRows:
    """The rows of one ledger. Every method is called inside a transaction that has locked the ledger.

    A method closes the expired holds that matter to it first, so what it does depends on the time and not on earlier
    traffic.

    Parameters
    ----------
    ledger : str
        The name of the ledger.
    holds : ExcessHold, optional
        The rule for holds with a group; None holds the worst case.
    remember : float
        Seconds for which the key of a settled or released hold is remembered.
    keep : float
        Seconds for which closed holds and entries are kept as a record.
    """

    def __init__(self, ledger: str, holds: ExcessHold | None = None, *, remember: float, keep: float) -> None:
        self.ledger, self.holds = ledger, holds
        self.use_times(remember, keep)
        self._calls = 0

    def use_times(self, remember: float, keep: float) -> None:
        """Remember keys and keep the record for these times from now on."""
        self._remember = require_seconds(remember, "remember")
        self._keep = max(require_seconds(keep, "keep"), self._remember)

    # --- holds ------------------------------------------------------------------------------------------------

    def hold(
        self, database: Database, account: str, largest: int, key: str, life: int | None, group: str | None, who: str
    ) -> int:
        """Hold the amount of the rule for a request that costs at most `largest`. Return the amount."""
        amount = largest
        if self.holds is not None and group is not None:
            amount = math.ceil(self.holds.amount(read_group(database, self.ledger, group), largest))
        return self.hold_exactly(database, account, amount, largest, key, life, group, who)

    def hold_exactly(
        self,
        database: Database,
        account: str,
        amount: int,
        largest: int,
        key: str,
        life: int | None = None,
        group: str | None = None,
        who: str = "",
        *,
        is_lease: bool = False,
    ) -> int:
        """Hold an amount for a request that costs at most `largest`. Return the amount of the first call."""
        now = database.now()
        known = self._find_after_expiry(database, key, now)
        if known is not None and known.is_forgotten(now - self._remember):
            # The key is forgotten, and the record of the old hold keeps a name that no key can have.
            archived = f"{key:<{LONGEST_KEY + 1}}{known.closed}", self.ledger, key
            database.write_locked([(sql.RENAME_HOLD, archived), (sql.RENAME_ENTRIES, archived)])
            known = None
        if known is not None:
            if (known.account, known.asked) != (account, largest):
                raise InputError(
                    "key", f"{key!r} is already used for another amount or account", "Use a new key for each request"
                )
            if known.status == RELEASED:
                raise InputError(
                    "key", f"{key!r} was released, so this hold no longer exists", "Use a new key for a new request"
                )
            if known.status != EXPIRED:
                return known.answer
        chain = [one.at(now).holding(amount, largest) for one in self.chain(database, account)]
        self._write(database, chain, now)
        expires = None if life is None else now + life
        new = Hold(
            key, account, amount, largest, largest, amount, group, 0, OPEN, int(is_lease), now, expires, None, who
        )
        if known is not None:  # it has expired, and is admitted again
            new = new._replace(group=known.group, spent=known.spent, is_lease=known.is_lease)
        given = *new[:8], *new[9:12], who, self.ledger
        database.write_locked([(sql.PUT_HOLD, given)], {(self.ledger, "hold", key): new})
        self._calls += 1
        if self._calls % PRUNE_EVERY == 0:
            old = self.ledger, now - self._keep
            database.write_locked([(sql.DELETE_HOLDS, old), (sql.DELETE_ENTRIES, old)])
        return amount

    def room(self, database: Database, account: str) -> tuple[int, int]:
        """Return the largest amount that can be held in an account, and the largest cost of a request."""
        now = database.now()
        self.expire(database, now)
        rooms = [one.at(now).room() for one in self.chain(database, account)]
        return min(room[0] for room in rooms), min(room[1] for room in rooms)

    def settle(self, database: Database, key: str, actual: int, who: str = "", *, force: bool = False) -> None:
        """Replace a hold by the actual cost."""
        now = database.now()
        hold = self._current(database, key, now)
        if hold.status == SETTLED and hold.spent == actual:
            return
        if hold.status in (SETTLED, RELEASED):
            how = f"settled with {hold.spent}" if hold.status == SETTLED else "released"
            raise ClosedHoldError(
                "key", f"{key!r} is already {how}", "Settle it once. Replace a wrong cost with correct"
            )
        if not force:
            require_plausible(hold, "actual", actual)
        if self.holds is not None and hold.group is not None:
            state = read_group(database, self.ledger, hold.group)
            after = self.holds.after(state, float(actual), float(hold.answer))
            written = [put_group(self.ledger, hold.group, after)]
            database.write_locked(written, {_place_of_group(self.ledger, hold.group): after})
        self._close(database, hold, actual, SETTLED, who, now)

    def settle_for_object(self, database: Database, account: str, key: str, actual: int, note: str) -> None:
        """Count the cost of a request of a chooser or a pacer once, also if a person has closed its hold meanwhile."""
        hold = self.find(database, key)
        if hold is None:  # it was closed long ago
            self.hold_exactly(database, account, 0, 0, key)
        elif hold.status in (SETTLED, RELEASED):
            corrected = self._corrections(database, key)
            if actual != (corrected[-1][3] if corrected else hold.spent):
                self.correct(database, key, actual, None, "", note, force=True)
            return
        self.settle(database, key, actual, force=True)

    def release(self, database: Database, key: str, who: str, note: str, *, force: bool = False) -> None:
        """Give back a hold, or a lease whose holder died. What a person decides has an entry of its own."""
        now = database.now()
        hold = self._current(database, key, now)
        if hold.status == SETTLED:
            raise ClosedHoldError("key", f"{key!r} is already settled", "Release only holds that cost nothing")
        if hold.status == RELEASED:
            return
        if hold.is_lease and not force and (hold.expires is None or hold.expires > now):
            what = f"{key!r} is a lease that has not expired, so its holder may still spend it"
            raise InputError("key", what, "Wait for its end, or use force if its holder is dead")
        self._close(database, hold, hold.spent, RELEASED, who, now)
        if force or note:
            self.enter(database, STATUS[RELEASED], hold.account, hold.answer, hold.spent, who or hold.who, note, key)

    def account_of(self, database: Database, key: str) -> str:
        """Return the account of a hold."""
        return self._current(database, key, database.now()).account

    def report(self, database: Database, key: str, spent: int, held: int | None = None, *, force: bool = False) -> None:
        """Record the part of a hold that was spent so far. `held` is the rest that its holder still needs."""
        now = database.now()
        hold = self._current(database, key, now)
        if not hold.is_lease and (hold.status in (SETTLED, RELEASED) or held is not None):
            raise InputError("key", f"{key!r} is not open", "Report spending only for an open hold")
        if not force:
            require_plausible(hold, "spent", spent)
        corrected = self._corrections(database, key) if hold.status in (SETTLED, RELEASED) else []
        if corrected or hold.status == RELEASED:  # what a person has decided counts, and what is above it
            if spent > (corrected[-1][3] if corrected else hold.spent):
                self.correct(database, key, spent, None, hold.who, "reported by its holder", force=True)
            return
        more = max(spent - hold.spent, 0)
        rest, largest = max(hold.amount - more, 0), max(hold.largest - more, 0)
        if held is not None:
            rest, largest = min(hold.amount, held), min(hold.largest, held)
        status, closed = hold.status, hold.closed
        if held == 0 and status == OPEN:
            status, closed = SETTLED, now
        changed = [
            one.at(now).changed(more, rest - hold.amount, largest - hold.largest)
            for one in self.chain(database, hold.account)
        ]
        self._write(database, changed, now)
        after = hold._replace(amount=rest, largest=largest, spent=hold.spent + more, status=status, closed=closed)
        self._write_hold(database, after)

    def expire(self, database: Database, now: int) -> None:
        """Give back the holds whose time is over. A lease counts until its holder reports or a person releases it."""
        while rows := database.read(sql.READ_EXPIRED, self.ledger, now):
            for row in rows:
                hold = self._hold(database, row)
                self._close(database, hold, hold.spent, EXPIRED, hold.who, now, hold.expires)

    def _close(
        self, database: Database, hold: Hold, actual: int, status: int, who: str, now: int, closed: int | None = None
    ) -> None:
        """Write the end of a hold: it holds nothing, and has spent `actual` in all."""
        more, chain = actual - hold.spent, self.chain(database, hold.account)
        self._write(database, [one.at(now).changed(more, -hold.amount, -hold.largest) for one in chain], now)
        when = now if closed is None else closed
        after = hold._replace(amount=0, largest=0, spent=actual, status=status, closed=when, who=who or hold.who)
        self._write_hold(database, after)

    # --- what a person changes --------------------------------------------------------------------------------

    def correct(
        self,
        database: Database,
        key: str,
        actual: int,
        correction: str | None,
        who: str,
        note: str,
        *,
        force: bool,
    ) -> LedgerCorrection:
        """Replace the cost that counts for a settled hold by another one."""
        now = database.now()
        hold = self._current(database, key, now)
        corrected = self._corrections(database, key)
        for account, _, before, after, moved, own in corrected:
            if own == correction:
                if after != actual:
                    what = f"{correction!r} was already used to correct {key!r} to {after}"
                    raise InputError("correction", what, "Use a new key for each correction")
                return LedgerCorrection(account, key, before, after, _names(database, moved))
        old = corrected[-1][3] if corrected else hold.spent
        if hold.status not in (SETTLED, RELEASED):
            raise InputError(
                "key", f"{key!r} is {STATUS[hold.status]}", "Correct only what is settled. Settle this hold instead"
            )
        if not force:
            require_plausible(hold, "actual", actual)
        assert hold.closed is not None
        chain = [one.at(now) for one in self.chain(database, hold.account)]
        moved = tuple(one.name for one in chain if one.has_ended(hold.closed))
        if old != actual:
            self._write(database, [one.changed(actual - old, 0, 0) for one in chain], now)
        own = correction or f"without a key, at {now}"
        self.enter(database, "corrected", hold.account, old, actual, who, note, key, own, moved)
        return LedgerCorrection(hold.account, key, old, actual, moved)

    def _corrections(self, database: Database, key: str) -> list[Any]:
        """Return the corrections of a hold, the oldest first."""
        return [
            (account, found, _amount(database, old), _amount(database, new), moved, own)
            for account, found, old, new, moved, own in database.read(sql.READ_CORRECTIONS, self.ledger, key)
        ]

    def set_limits(
        self, database: Database, name: str, limit: int, reserve: int | None, who: str = "", note: str = ""
    ) -> None:
        """Set the limit and the reserve of an account."""
        known = self.chain(database, name)[0]
        database.write_locked([(sql.SET_LIMITS, (limit, reserve, self.ledger, name))])
        if known.maximum != limit:
            self.enter(database, "limit", name, known.maximum, limit, who, note)
        if known.reserve != reserve:
            self.enter(database, "reserve", name, known.reserve, reserve, who, note)

    def set_period(
        self, database: Database, name: str, period: str | None, zone: str, rate: int, who: str, note: str
    ) -> None:
        """Set the period, the time zone and the rate of an account. What it has spent counts from now on."""
        now = database.now()
        known = self.chain(database, name)[0].at(now)
        if (known.period, known.zone, known.rate) == (period, zone, rate):
            return
        since = known._replace(period=period, zone=zone).period_at(now)
        given = period, zone, rate, known.spent, since, now, "", self.ledger, name
        database.write_locked([(sql.SET_PERIOD, given)])
        new = {"period": period, "timezone": zone, "rate": rate}
        for what, old in {"period": known.period, "timezone": known.zone, "rate": known.rate}.items():
            if old != new[what]:
                self.enter(database, what, name, old, new[what], who, note)

    def reset(self, database: Database, name: str, spent: int, who: str, note: str) -> None:
        """Set the money spent in an account, in its present period."""
        now = database.now()
        known = self.chain(database, name)[0].at(now)
        given = known.period, known.zone, known.rate, spent, known.since, now, known.others, self.ledger, name
        database.write_locked([(sql.SET_PERIOD, given)])
        self.enter(database, "reset", name, known.spent, spent, who, note)

    def enter(
        self,
        database: Database,
        what: str,
        account: str,
        old: Value,
        new: Value,
        who: str,
        note: str,
        key: str = "",
        correction: str | None = None,
        moved: tuple[str, ...] = (),
    ) -> None:
        """Write an entry of the record."""
        if moved:
            names = ", ".join(moved)
            note = f"the period of the settlement is over in {names}: corrected in the present one. {note}".strip()
        made = entry(what, old, new, account=account, key=key, who=who, note=note)
        now = database.now()
        made = made._replace(time=now / SECOND)
        database.write_locked([insertion(self.ledger, made, correction, moved), self.touch(now)])

    def open_holds(self, database: Database, account: str | None) -> list[OpenHold]:
        """Return the open holds and leases, oldest first."""
        now = database.now()
        self.expire(database, now)
        rows = [self._hold(database, row) for row in database.read(sql.READ_OPEN_HOLDS, self.ledger)]
        return [
            OpenHold(
                one.key,
                one.account,
                one.amount,
                one.spent,
                (now - one.opened) / SECOND,
                None if one.expires is None else (one.expires - now) / SECOND,
                bool(one.is_lease),
                one.who,
            )
            for one in rows
            if account is None or one.account == account
        ]

    def record(self, database: Database, since: float, most: int, holds: bool) -> list[RecordEntry]:
        """Return what changed the money of accounts since a time, the newest first."""
        self.expire(database, database.now())
        entries = read_entries(database, self.ledger, since, most)
        found = [one._replace(key=_key(one.key)) for one in entries]
        entered = {one.key for one in entries if one.what == STATUS[RELEASED]}
        for row in database.read(sql.READ_CLOSED_HOLDS, self.ledger, int(since * SECOND), most) if holds else ():
            one = self._hold(database, row)
            if one.key in entered:
                continue
            closed = STATUS[one.status], one.account, _key(one.key), one.answer, one.spent, one.who, ""
            found.append(RecordEntry((one.closed or 0) / SECOND, *closed))
        return sorted(found, key=lambda entry: -entry.time)[:most]

    # --- rows -------------------------------------------------------------------------------------------------

    def accounts(self, database: Database) -> list[Account]:
        """Return all accounts at this moment, by name."""
        now = database.now()
        self.expire(database, now)
        rows = database.read(sql.READ_ACCOUNTS, self.ledger)
        return [self._account(database, row).at(now) for row in rows]

    def account(self, database: Database, name: str) -> Account | None:
        """Return an account as it is stored, if there is one with this name."""
        return database.row((self.ledger, "account", name), self._account, sql.READ_ACCOUNT, self.ledger, name)

    def chain(self, database: Database, account: str, argument: str = "account") -> list[Account]:
        """Return an account and all that it belongs to."""
        chain: list[Account] = []
        name: str | None = account
        while name is not None:
            found = self.account(database, name)
            if found is None:
                raise InputError(
                    argument, f"there is no account {name!r}", "Correct the name, or add the account first"
                )
            chain.append(found)
            name = found.parent
            if len(chain) > MAX_DEPTH + 1:
                raise _corrupted(database, f"account {account!r} belongs to itself")
        return chain

    def _find_after_expiry(self, database: Database, key: str, now: int) -> Hold | None:
        """Give back the holds whose time is over, and return a hold. It takes one query if there are none."""
        if database.knows_row((self.ledger, "no hold has expired")):
            return self.find(database, key)
        rows = database.read(sql.READ_HOLD_AND_EXPIRED, self.ledger, key, self.ledger, now)
        found = [self._hold(database, row) for row in rows]
        if not any(hold.has_expired(now) for hold in found):
            self._note(database, {key: found[0] if found else None})
            return found[0] if found else None
        self.expire(database, now)
        return self.find(database, key)

    def prefetch(self, database: Database, keys: Sequence[str]) -> None:
        """Read the holds with these keys, for several calls whose statements are collected together."""
        now, arguments = database.now(), [argument for key in sql.padded(keys) for argument in (self.ledger, key)]
        query = sql.for_keys(sql.READ_HOLD, len(arguments) // 2, sql.AND_EXPIRED)
        rows = database.read(query, *arguments, self.ledger, now)
        with suppress(DatabaseError):  # a row is damaged: then only its call has the error
            found = {row[0]: self._hold(database, row) for row in rows}
            if not any(hold.has_expired(now) for hold in found.values()):
                self._note(database, {key: found.get(key) for key in keys})

    def _note(self, database: Database, holds: dict[str, Hold | None]) -> None:
        """Let the calls whose statements are collected together know holds, and that the time of no hold is over."""
        for key, hold in holds.items():
            database.note_row((self.ledger, "hold", key), hold)
        database.note_row((self.ledger, "no hold has expired"), True)

    def find(self, database: Database, key: str) -> Hold | None:
        """Return a hold, if there is one with this key."""
        return database.row((self.ledger, "hold", key), self._hold, sql.READ_HOLD, self.ledger, key)

    def _current(self, database: Database, key: str, now: int) -> Hold:
        """Return a hold as it is at this moment."""
        hold = self.find(database, key)
        if hold is None:
            raise InputError("key", f"there is no hold {key!r}, or it was closed long ago", "Give the key of a hold")
        if hold.has_expired(now):
            self.expire(database, now)
            hold = hold._replace(amount=0, largest=0, status=EXPIRED, closed=hold.expires)
        return hold

    def _write(self, database: Database, accounts: Iterable[Account], now: int) -> None:
        statements: list[sql.Statement] = []
        rows: dict[tuple[str, ...], Account] = {}
        for a in accounts:
            if a.spent >= LARGEST:
                what = f"account {a.name!r} would have spent {a.spent}, which is out of range"
                raise InputError("actual", what, f"Choose a larger unit; amounts are below {LARGEST}")
            amounts = a.held, a.exposed, a.spent, a.total
            if min(amounts) < 0 or max(amounts) >= LARGEST:
                raise _corrupted(database, f"account {a.name!r} would hold {a.held} and have spent {a.spent}")
            given = a.spent, a.held, a.exposed, a.since, a.updated, a.part, a.total, a.others, self.ledger, a.name
            statements.append((sql.UPDATE_ACCOUNT, given))
            rows[self.ledger, "account", a.name] = a
        statements.append(self.touch(now))
        database.write_locked(statements, rows)

    def _write_hold(self, database: Database, hold: Hold) -> None:
        given = hold.amount, hold.largest, hold.spent, hold.status, hold.closed, hold.who, self.ledger, hold.key
        database.write_locked([(sql.UPDATE_HOLD, given)], {(self.ledger, "hold", hold.key): hold})

    def _account(self, database: Database, row: Any) -> Account:
        account: Account = self._checked(database, Account(*row))
        return account

    def _hold(self, database: Database, row: Any) -> Hold:
        hold: Hold = self._checked(database, Hold(*row))
        return hold

    def touch(self, now: int) -> sql.Statement:
        """Return the statement that raises the version of the ledger."""
        return sql.TOUCH_OBJECT, (now / SECOND, self.ledger)

    def _checked(self, database: Database, row: Any) -> Any:
        try:
            row.require_sound()
        except ValueError as error:
            raise _corrupted(database, str(error)) from None
        return row


def read_group(database: Database, object_name: str, group: str) -> HoldState:
    """Return the stored state of a group's hold, or that of a new one."""
    place = _place_of_group(object_name, group)
    return database.row(place, _group, sql.READ_GROUP, object_name, group) or HoldState()


def _place_of_group(object_name: str, group: str) -> tuple[str, ...]:
    return object_name, "group", group


def read_groups(database: Database, object_name: str) -> dict[str, HoldState]:
    """Return the stored states of all groups of an object."""
    return {row[0]: _group(database, row) for row in database.read(sql.READ_GROUPS, object_name)}


def put_group(object_name: str, group: str, state: HoldState) -> sql.Statement:
    """Return the statement that stores the state of a group's hold."""
    return sql.PUT_GROUP, (group, *state, object_name)


def _group(database: Database, row: Any) -> HoldState:
    state = HoldState(*row[1:])
    try:
        state.require_sound()
    except (ValueError, TypeError):
        raise _corrupted(database, f"the hold of group {row[0]!r:.60} is inconsistent") from None
    return state


def _key(stored: str) -> str:
    """Return the key of a hold that may have been forgotten."""
    return stored[:LONGEST_KEY].rstrip() if len(stored) > LONGEST_KEY else stored


def _amount(database: Database, stored: Any) -> int:
    """Return the cost in an entry of a correction."""
    found = read_value(database, stored)
    if type(found) is not int:
        raise contradicts(database)
    return found


def _names(database: Database, text: Any) -> tuple[str, ...]:
    """Return the names in a stored list."""
    try:
        names = json.loads(text)
    except (ValueError, TypeError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise contradicts(database)
    return tuple(names)


def _corrupted(database: Database, what: str) -> DatabaseError:
    return DatabaseError(database.path, "corrupted", what, "Restore a backup")
