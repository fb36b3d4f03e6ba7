"""The command `longterm state`: what a service's database holds, and what a person changes in it."""

from __future__ import annotations

import csv
import getpass
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import tyro

from longterm import money
from longterm._base.display import TextTable
from longterm.catalogue.words import parse_words
from longterm.cli.output import terminal_width
from longterm.errors import InputError, LongtermError
from longterm.money import Chooser, Ledger, LivePacer
from longterm.money.ledger.accounts import OpenHold
from longterm.money.limit_changes import change_limits, limits_of
from longterm.server.changes import rename_settings
from longterm.storage import backup, restore
from longterm.storage.contents import StoredObject, describe, read_definition, read_open_rounds, read_record, rename
from longterm.storage.record import RecordEntry
from longterm.storage.specification import rebuilt

MOST_HOLDS = 50
"""Open holds, or rounds of one object, that `show` lists, the oldest first."""
MOST_ENTRIES = 1_000_000
LIMITED = ("chooser", "live pacer")
"""Kinds of objects with limits of their own."""
NONE = "none"
"""The value of a limit that is removed."""
_SIZES = ((86_400, "days"), (3_600, "h"), (60, "min"), (1, "s"))
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class StateCommand:
    """Show what is in a service's database, and change limits while the service runs.

      show DB                           objects, limits, accounts, open rounds, holds, leases
      set DB money/search limit=50      change limit, reserve, period, timezone or rate of an account
      set DB campaign budget=900        change budget, horizon, period or timezone of a pacer
      set DB helpdesk limit=6000        change limits, horizon, credit or bank of a chooser or router
      reset DB money/search [SPENT]     set the money that counts as spent in the present period
      reset DB campaign [SPENT]         the same for a pacer
      release DB [LEDGER] KEY           close a hold, or the lease of a dead process
      correct DB [LEDGER] KEY ACTUAL    replace the cost of a settled hold
      release DB campaign TOKEN         give up an open round of a pacer, a chooser or a router
      correct DB campaign TOKEN ACTUAL  replace the cost of a closed round
      rename DB OLD NEW                 give an object another name; stop its services first
      log DB --since 24h                who spent or changed how much and when, as CSV or JSON lines
      backup DB FILE                    write a copy of a SQLite database while services use it
      restore FILE DB                   replace a database by such a copy; stop its services first

    You may leave out LEDGER if the database has only one. A bank is a number of requests, and a credit is an amount of
    money. To remove a period, a reserve or a bank, give it the value none. The log records each hold of a ledger when
    it is settled, released or expired, and every change that is made here or over HTTP, with --note and your user name.

    for example:
      longterm state show service.db
      longterm state set service.db money/search limit=50 --note "ticket 12"
      longterm state log postgresql://localhost/service --since 2026-01-01 --format json
    """

    action: tyro.conf.Positional[
        Literal["show", "set", "reset", "release", "correct", "rename", "log", "backup", "restore"]
    ]
    """The action."""
    database: tyro.conf.Positional[str]
    """The database: a SQLite file or a PostgreSQL URL."""
    words: tyro.conf.Positional[tuple[str, ...]] = ()
    """The object or account, and the values to set, as shown above."""
    since: str = "24h"
    """The earliest time that log prints: a date, or a duration before now such as 90m, 24h or 7d."""
    format: Literal["csv", "json"] = "csv"
    """The format that log prints."""
    note: str = ""
    """The reason for a change. The log records it."""
    force: bool = False
    """Release a lease before its end, or accept a cost that looks wrong."""

    def run(self) -> None:
        """Print or change."""
        actions: dict[str, Callable[[], None]] = {
            "show": self._show,
            "set": self._set,
            "reset": self._reset,
            "release": self._release,
            "correct": self._correct,
            "rename": self._rename,
            "log": self._log,
            "backup": self._backup,
            "restore": self._restore,
        }
        actions[self.action]()

    def _show(self) -> None:
        """Print every table. An object that cannot be read is left out of those that need it, and named at the end."""
        self._words("", 0, 0)
        faults: dict[str, LongtermError] = {}
        found = [self._present(one, faults) for one in describe(self.database)]
        _print(("name", "kind", "rounds", "open", "spent", "held", "last change (UTC)"), [_row(one) for one in found])
        limited = []
        for one in found:
            if one.kind in LIMITED:
                with _noting(one.name, faults), suppress(InputError), self._limited(one.name) as opened:
                    limited.append((one.name, _limits(limits_of(opened))))  # not if its rule is not stored whole
        if limited:
            _say("")
            _print(("name", "limits"), limited)
        for one in found:
            with _noting(one.name, faults):
                if one.kind in LIMITED and one.open:
                    rounds = read_open_rounds(self.database, one.name, MOST_HOLDS)
                    _say(f"\n{one.name}: {one.open} open rounds, the oldest first")
                    _print(("token", "age"), [(token, _age(age)) for token, age in rounds])
                if one.kind == "ledger" and one.name not in faults:
                    with self._opened(one.name) as ledger:
                        _print_ledger(one.name, ledger)
        _raise_faults(faults)

    def _present(self, found: StoredObject, faults: dict[str, LongtermError]) -> StoredObject:
        """Return a ledger with the holds that are open at this moment. Its money has a table of its own."""
        if found.kind == "ledger":
            with _noting(found.name, faults), self._opened(found.name) as ledger:
                return found._replace(open=len(ledger.open_holds()), spent=None, held=None)
        return found

    def _set(self) -> None:
        target, *pairs = self._words("money/search limit=50", 2)
        given = {
            key: None if value == NONE else value
            for key, value in parse_words(" ".join(["set", *pairs]), "words")[1].items()
        }
        name, slash, part = target.partition("/")
        if read_definition(self.database, name)[0] == "ledger":
            with self._account(target) as (ledger, account, done):
                ledger.change(account, given, **done)
                _say(f"{target}: {ledger.settings[account]._asdict()}")
            return
        with self._limited(name) as found:
            before = limits_of(found)
            changes = {f"{part}.{key}" if slash else key: value for key, value in given.items()}
            change_limits(found, changes, **self._done)
            after = limits_of(found)
        changed = [f"{key} {_value(before[key])} → {_value(one)}" for key, one in after.items() if one != before[key]]
        _say(f"{name}: {', '.join(changed) or 'nothing has changed'}")

    @contextmanager
    def _limited(self, name: str) -> Iterator[Chooser | LivePacer]:
        """Open a chooser, a router or a pacer with the arguments that are stored."""
        kind, stored = read_definition(self.database, name)

        def classes(of: str) -> type | None:
            found: type | None = getattr(money, of, None)
            return found

        if kind == "live pacer":
            place = {"period": stored["period"], "timezone": stored["timezone"]}
            with LivePacer.open(self.database, rebuilt(stored["pacer"], classes), name=name, **place) as pacer:
                yield pacer
        elif kind == "chooser":
            rule, holds = rebuilt(stored["rule"], classes), rebuilt(stored["holds"], classes)
            with Chooser.open(self.database, rule, name=name, holds=holds) as chooser:
                yield chooser
        else:
            what = f"{name!r} is a {kind}, which has no limits"
            raise InputError("words", what, "Write LEDGER/ACCOUNT, or the name of a pacer, a chooser or a router")

    def _reset(self) -> None:
        target, *rest = self._words("money/search [SPENT]", 1, 2)
        if "/" not in target:
            with self._limited(target) as found:
                if not isinstance(found, LivePacer):
                    remedy = f"Raise its limit instead: longterm state set DB {target} limit=…"
                    raise InputError(
                        "words", "a chooser's money cannot be reset, since its prices depend on what was spent", remedy
                    )
                found.reset(_number("SPENT", rest[0]) if rest else 0.0, **self._done)
                _say(f"{target}: {found}")
            return
        with self._account(target) as (ledger, account, done):
            ledger.reset(account, _whole("SPENT", rest[0]) if rest else 0, **done)
            _say(f"{target}: {ledger.balance(account)}")

    def _release(self) -> None:
        *named, key = self._words("[LEDGER] KEY", 1, 2)
        if self._has_rounds(*named):
            with self._round(named[0], key) as found:
                found.skip(key, **self._done)
            _say(f"{key}: given up")
            return
        with self._opened(*named) as ledger:
            ledger.release(key, force=self.force, **self._done)
            _say(f"{key}: released")

    def _correct(self) -> None:
        *named, key, actual = self._words("[LEDGER] KEY ACTUAL", 2, 3)
        if self._has_rounds(*named):
            with self._round(named[0], key) as found:
                found.correct(key, _number("ACTUAL", actual), force=self.force, **self._done)
            _say(f"{key}: {actual}")
            return
        with self._opened(*named) as ledger:
            done = ledger.correct(key, _whole("ACTUAL", actual), force=self.force, **self._done)
            _say(str(done))

    def _has_rounds(self, name: str = "") -> bool:
        """Return whether this is an object with rounds, and not a ledger."""
        return bool(name) and read_definition(self.database, name)[0] != "ledger"

    @contextmanager
    def _round(self, name: str, token: str) -> Iterator[Chooser | LivePacer]:
        """Open the object of a round, unless a ledger holds money for the round: the service changes both at once."""
        for one in describe(self.database):
            account = None
            if one.kind == "ledger":
                with self._opened(one.name) as ledger, suppress(InputError):
                    account = ledger.account_of(f"{name} {token}")
            if account is not None:
                what = f"{token!r} has its money from {one.name}/{account}, which must change in the same transaction"
                raise InputError("words", what, "Call /correct or /force-release of the service")
        with self._limited(name) as found:
            yield found

    def _rename(self) -> None:
        old, new = self._words("OLD NEW", 2, 2)
        rename(self.database, old, new, **self._done, on_rename=rename_settings)
        _say(f"{old} is now {new}: give it this name in the service's file")

    def _backup(self) -> None:
        (path,) = self._words("FILE", 1, 1)
        backup(self.database, path)
        _say(f"{path}: a copy of {self.database}")

    def _restore(self) -> None:
        if len(self.words) != 1:
            raise InputError("words", f"are {list(self.words)}", "Write longterm state restore FILE DB")
        (database,) = self.words
        restore(self.database, database)
        _say(f"{database}: restored from {self.database}")

    def _log(self) -> None:
        self._words("", 0, 0)
        since = moment(self.since)
        rows: list[tuple[str, str, RecordEntry]] = []
        faults: dict[str, LongtermError] = {}
        for one in describe(self.database):
            with _noting(one.name, faults):
                if one.kind == "ledger":
                    with self._opened(one.name) as ledger:
                        found, unit = ledger.record(since=since, most=MOST_ENTRIES), ledger.unit
                else:
                    found, unit = read_record(self.database, one.name, since, MOST_ENTRIES), ""
                rows += [(one.name, unit, entry) for entry in found]
        rows.reverse()  # each object's entries are oldest first now, also those of one moment
        rows.sort(key=lambda row: row[-1].time)
        _print_log(rows, self.format)
        _raise_faults(faults)

    def _words(self, usage: str, least: int, most: int | None = None) -> tuple[str, ...]:
        if len(self.words) < least or (most is not None and len(self.words) > most):
            what = f"are {list(self.words)}"
            raise InputError("words", what, f"Write longterm state {self.action} DB {usage}".rstrip())
        return self.words

    @property
    def _done(self) -> dict[str, str]:
        """The author of a change and the reason, for the record."""
        return {"who": _user(), "note": self.note}

    @contextmanager
    def _opened(self, name: str = "") -> Iterator[Ledger]:
        """Open a ledger by name, or the only one."""
        if not name:
            names = [one.name for one in describe(self.database) if one.kind == "ledger"]
            if len(names) != 1:
                raise InputError("words", f"name no ledger, and there are {len(names)} ledgers", f"Name one of {names}")
            name = names[0]
        with Ledger.existing(self.database, name) as ledger:
            yield ledger

    @contextmanager
    def _account(self, target: str) -> Iterator[tuple[Ledger, str, dict[str, str]]]:
        """Open the ledger of an account, and return both with who makes the change and why."""
        name, slash, account = target.partition("/")
        if not slash:
            raise InputError("words", f"{target!r} is not an account", "Write LEDGER/ACCOUNT, such as money/search")
        with self._opened(name) as ledger:
            yield ledger, account, self._done


@contextmanager
def _noting(name: str, faults: dict[str, LongtermError]) -> Iterator[None]:
    """Note that an object cannot be read, instead of raising the error."""
    try:
        yield
    except LongtermError as error:
        faults.setdefault(name, error)


def _raise_faults(faults: dict[str, LongtermError]) -> None:
    """Raise an error that names the objects that could not be read, after the others were printed."""
    if faults:
        sys.stdout.flush()
        raise LongtermError(
            "; ".join(f"{name!r} is left out, since it cannot be read: {faults[name]}" for name in faults)
        )


def moment(text: str) -> float:
    """Return a date, or a time back such as 24h, in seconds since 1970."""
    try:
        if text[-1:] in _UNITS and text[:-1].replace(".", "", 1).isdigit():
            return (datetime.now(UTC) - timedelta(**{_UNITS[text[-1]]: float(text[:-1])})).timestamp()
        return max(datetime.fromisoformat(text).timestamp(), 0.0)
    except (ValueError, OverflowError):
        raise InputError("since", f"{text!r} is not a time", "Give a date such as 2026-01-31, or 24h") from None


def _row(found: StoredObject) -> tuple[str, ...]:
    changed = datetime.fromtimestamp(found.changed, UTC).strftime("%Y-%m-%d %H:%M:%S")
    counts = (str(found.rounds), str(found.open), _money(found.spent), _money(found.held))
    return (found.name, found.kind, *counts, changed)


def _money(amounts: dict[str, float] | None) -> str:
    shown = {name: f"{amount:.6g}" if amount % 1 else f"{amount:.0f}" for name, amount in (amounts or {}).items()}
    return ", ".join(f"{name} {amount}".lstrip() for name, amount in shown.items())


def _print_ledger(name: str, ledger: Ledger) -> None:
    _say(f"\n{name}: accounts, in {ledger.unit}")
    rows = []
    balances = ledger.accounts
    for account, its in ledger.settings.items():
        limit = f"{its.limit} a {its.period} ({its.timezone})" if its.period else f"{its.limit}"
        limit += f", {its.rate} a second come back" if its.rate else ""
        balance = balances[account]
        rows.append((account, limit, str(balance.spent), str(balance.held), its.parent or ""))
    _print(("account", "limit", "spent", "held", "belongs to"), rows)
    holds = ledger.open_holds()
    if holds:
        _say(f"\n{name}: {len(holds)} open holds and leases, the oldest first")
        listed = [
            (one.key, one.account, _kind(one), str(one.held), _age(one.age), _age(one.ends_in), one.who)
            for one in holds[:MOST_HOLDS]
        ]
        _print(("key", "account", "kind", "held", "age", "ends in", "by"), listed)


def _limits(found: dict[str, Any]) -> str:
    """Return limits as `set` takes them."""
    return ", ".join(f"{name}={_value(value)}" for name, value in found.items())


def _value(limit: Any) -> str:
    return NONE if limit in (None, "") else str(limit)


def _kind(hold: OpenHold) -> str:
    return "lease" if hold.is_lease else "hold"


def _age(seconds: float | None) -> str:
    if seconds is None:
        return ""
    size, unit = next((seconds / size, unit) for size, unit in _SIZES if abs(seconds) >= 2 * size or size == 1)
    return f"{size:.0f} {unit}"


def _print_log(rows: Sequence[tuple[str, str, RecordEntry]], style: str) -> None:
    lines = [
        {"time": datetime.fromtimestamp(entry.time, UTC).isoformat(timespec="milliseconds"), "object": name}
        | {"unit": unit, **{key: value for key, value in entry._asdict().items() if key != "time"}}
        for name, unit, entry in rows
    ]
    if style == "json":
        sys.stdout.writelines(json.dumps(line) + "\n" for line in lines)
        return
    writer = csv.DictWriter(sys.stdout, ["time", "object", "unit", *RecordEntry._fields[1:]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)


def _print(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    sys.stdout.write(TextTable(head, rows).to_text(terminal_width()) + "\n")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _whole(name: str, text: str) -> int:
    try:
        return int(text.replace("_", ""))
    except ValueError:
        raise InputError(name, f"{text!r} is not a whole number", "Give an amount in the ledger's unit") from None


def _number(name: str, text: str) -> float:
    try:
        return float(text.replace("_", ""))
    except ValueError:
        raise InputError(name, f"{text!r} is not a number", "Give an amount of money") from None


def _user() -> str:
    """Return the name of the user, for the record."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have none
        return "longterm state"
