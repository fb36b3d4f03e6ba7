"""The operations of a ledger inside a transaction, which a chooser or a pacer in the same database uses as well."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

from longterm.errors import DatabaseError, InputError
from longterm.money.holds import ExcessHold, HoldState
from longterm.money.ledger.accounts import EXPIRED, LARGEST, OPEN, RELEASED, SECOND, SETTLED, Account, Hold
from longterm.storage import schema as sql
from longterm.storage.database import Database

MAX_DEPTH = 8
KEEP_DAYS = 7
"""Closed holds are kept for this time, so that repeated calls are recognised."""
PRUNE_EVERY = 256


class LedgerRows:
    """The rows of one ledger. Every method is called inside a transaction that has locked the ledger.

    Parameters
    ----------
    ledger : str
        The name of the ledger.
    holds : ExcessHold, optional
        The rule for holds with a group; None holds the worst case.
    """

    def __init__(self, ledger: str, holds: ExcessHold | None = None) -> None:
        self.ledger, self.holds = ledger, holds
        self._calls = 0

    # --- holds ------------------------------------------------------------------------------------------------

    def hold(
        self, database: Database, account: str, largest: int, key: str, life: int | None, group: str | None
    ) -> int:
        """Hold the amount of the rule for a request that costs at most `largest`. Return the amount."""
        amount = largest
        if self.holds is not None and group is not None:
            amount = math.ceil(self.holds.amount(read_group(database, self.ledger, group), largest))
        return self.hold_exactly(database, account, amount, largest, key, life, group)

    def hold_exactly(
        self,
        database: Database,
        account: str,
        amount: int,
        largest: int,
        key: str,
        life: int | None = None,
        group: str | None = None,
    ) -> int:
        """Hold an amount for a request that costs at most `largest`. Return the amount of the first call."""
        now = database.now()
        known = self.find(database, key)
        if known is not None:
            if known.account != account or (known.status == OPEN and known.largest + known.spent != largest):
                raise InputError("key", f"{key!r} holds another amount, or another account's", "Use a key once")
            return known.amount
        self.expire(database, now)
        chain = [one.at(now).holding(amount, largest) for one in self.chain(database, account)]
        self._write(database, chain)
        expires = None if life is None else now + life
        given = key, account, amount, largest, group, now, expires, self.ledger
        database.write_locked([(sql.INSERT_HOLD, given)])
        self._calls += 1
        if self._calls % PRUNE_EVERY == 0:
            database.write_locked([(sql.DELETE_HOLDS, (self.ledger, now - KEEP_DAYS * 86_400 * SECOND))])
        return amount

    def room(self, database: Database, account: str) -> tuple[int, int]:
        """Return the largest amount that can be held in an account, and the largest cost of a request."""
        now = database.now()
        self.expire(database, now)
        rooms = [one.at(now).room() for one in self.chain(database, account)]
        return min(room[0] for room in rooms), min(room[1] for room in rooms)

    def settle(self, database: Database, key: str, actual: int) -> None:
        """Replace a hold by the actual cost."""
        hold = self._require(database, key)
        if hold.status == SETTLED and hold.spent == actual:
            return
        if hold.status in (SETTLED, RELEASED):
            how = f"settled with {hold.spent}" if hold.status == SETTLED else "released"
            raise InputError("key", f"{key!r} was {how} already", "Settle a hold once")
        if self.holds is not None and hold.group is not None:
            held = float(hold.amount + hold.spent) if hold.status == OPEN else None
            state = self.holds.after(read_group(database, self.ledger, hold.group), float(actual), held)
            database.write_locked([put_group(self.ledger, hold.group, state)])
        self._close(database, hold, actual, SETTLED)

    def release(self, database: Database, key: str) -> None:
        """Give back a hold."""
        hold = self._require(database, key)
        if hold.status == SETTLED:
            raise InputError("key", f"{key!r} was settled already", "Release only holds that cost nothing")
        if hold.status == OPEN:
            self._close(database, hold, hold.spent, RELEASED)

    def report(self, database: Database, key: str, spent: int) -> None:
        """Record the part of an open hold that was spent so far."""
        hold = self._require(database, key)
        if hold.status not in (OPEN, EXPIRED):
            raise InputError("key", f"{key!r} is not open", "Report only what an open hold spends")
        more, now, chain = max(spent - hold.spent, 0), database.now(), self.chain(database, hold.account)
        held, exposed = (min(more, part) if hold.status == OPEN else 0 for part in (hold.amount, hold.largest))
        self._write(database, [one.at(now).changed(more, -held, -exposed) for one in chain])
        given = hold.amount - held, hold.largest - exposed, hold.spent + more, hold.status, self.ledger, key
        database.write_locked([(sql.UPDATE_HOLD, given)])

    def expire(self, database: Database, now: int) -> None:
        """Give back the holds whose time is over."""
        while rows := database.read(sql.READ_EXPIRED, self.ledger, now):
            for row in rows:
                hold = self._checked(database, Hold(*row))
                self._close(database, hold, hold.spent, EXPIRED)

    def _close(self, database: Database, hold: Hold, actual: int, status: int) -> None:
        """Write the end of a hold: it holds nothing, and has spent `actual` in all."""
        now, more, chain = database.now(), actual - hold.spent, self.chain(database, hold.account)
        held, exposed = (hold.amount, hold.largest) if hold.status == OPEN else (0, 0)
        self._write(database, [one.at(now).changed(more, -held, -exposed) for one in chain])
        database.write_locked([(sql.UPDATE_HOLD, (0, 0, actual, status, self.ledger, hold.key))])

    # --- rows -------------------------------------------------------------------------------------------------

    def accounts(self, database: Database) -> list[Account]:
        """Return all accounts at this moment, by name."""
        now = database.now()
        self.expire(database, now)
        rows = database.read(sql.READ_ACCOUNTS, self.ledger)
        return [self._checked(database, Account(*row)).at(now) for row in rows]

    def account(self, database: Database, name: str) -> Account | None:
        """Return an account as it is stored, if there is one with this name."""
        rows = database.read(sql.READ_ACCOUNT, self.ledger, name)
        return self._checked(database, Account(*rows[0])) if rows else None

    def chain(self, database: Database, account: str, argument: str = "account") -> list[Account]:
        """Return an account and all that it belongs to."""
        chain: list[Account] = []
        name: str | None = account
        while name is not None:
            found = self.account(database, name)
            if found is None:
                raise InputError(argument, f"there is no account {name!r}", "Add it with add_account")
            chain.append(found)
            name = found.parent
            if len(chain) > MAX_DEPTH + 1:
                raise _corrupted(database, f"account {account!r} belongs to itself")
        return chain

    def find(self, database: Database, key: str) -> Hold | None:
        """Return a hold, if there is one with this key."""
        rows = database.read(sql.READ_HOLD, self.ledger, key)
        return self._checked(database, Hold(*rows[0])) if rows else None

    def _require(self, database: Database, key: str) -> Hold:
        hold = self.find(database, key)
        if hold is None:
            raise InputError("key", f"there is no hold {key!r}", "Give the key of a hold")
        return hold

    def _write(self, database: Database, accounts: Iterable[Account]) -> None:
        statements: list[sql.Statement] = []
        for a in accounts:
            if not all(0 <= number < LARGEST for number in (a.held, a.exposed, a.spent)):
                raise _corrupted(database, f"account {a.name!r} would hold {a.held} and have spent {a.spent}")
            given = a.spent, a.held, a.exposed, a.since, a.updated, self.ledger, a.name
            statements.append((sql.UPDATE_ACCOUNT, given))
        statements.append((sql.TOUCH_OBJECT, (time.time(), self.ledger)))
        database.write_locked(statements)

    def _checked(self, database: Database, row: Any) -> Any:
        try:
            row.require_sound()
        except ValueError as error:
            raise _corrupted(database, str(error)) from None
        return row


def read_group(database: Database, object_name: str, group: str) -> HoldState:
    """Return the stored state of a group's hold, or that of a new one."""
    rows = database.read(sql.READ_GROUP, object_name, group)
    return _group(database, rows[0]) if rows else HoldState()


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
        raise _corrupted(database, f"the hold of group {row[0]!r:.60} makes no sense") from None
    return state


def _corrupted(database: Database, what: str) -> DatabaseError:
    return DatabaseError(database.path, "corrupted", what, "Restore a backup")
