"""The tables of live objects, and every statement that is executed on them, for SQLite and PostgreSQL alike.

An object is a row of `longterm_objects`: its name, kind, specification, version and packed state. Its rounds are rows
of `longterm_rounds`, the answers that idempotency keys repeat rows of `longterm_keys`, and large pieces of its state
rows of `longterm_parts`. Ledgers have accounts, holds and groups. The last messages of a queue that an object has
applied are rows of `longterm_positions`. A change of the state raises the version, and a
statement names the version that it starts from. So a statement of a replica with an old copy changes no row, and that
replica reads again. Every round carries the version that changed it last after it was opened, 0 before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

Statement = tuple[str, Sequence[Any]]
"""SQL with ``?`` for arguments, and the arguments."""
SCHEMA_VERSION = 1
OPEN = 0
"""The status of an open round or hold. Objects have their own codes for closed ones."""

TABLES = (
    "CREATE TABLE longterm_schema (version INTEGER NOT NULL)",
    "CREATE TABLE longterm_objects (name TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, specification TEXT NOT NULL, "
    "version BIGINT NOT NULL, changed DOUBLE PRECISION NOT NULL, state {bytes} NOT NULL)",
    "CREATE TABLE longterm_rounds (object TEXT NOT NULL, number BIGINT NOT NULL, status SMALLINT NOT NULL, "
    "epoch BIGINT NOT NULL, opened DOUBLE PRECISION NOT NULL, changed BIGINT NOT NULL, content {bytes} NOT NULL, "
    "PRIMARY KEY (object, number)){clustered}",
    "CREATE TABLE longterm_keys (object TEXT NOT NULL, key TEXT NOT NULL, number BIGINT NOT NULL, "
    "status SMALLINT NOT NULL, epoch BIGINT NOT NULL, opened DOUBLE PRECISION NOT NULL, content {bytes} NOT NULL, "
    "PRIMARY KEY (object, key)){clustered}",
    "CREATE TABLE longterm_parts (object TEXT NOT NULL, number BIGINT NOT NULL, content {bytes} NOT NULL, "
    "PRIMARY KEY (object, number))",
    "CREATE TABLE longterm_accounts (ledger TEXT NOT NULL, name TEXT NOT NULL, parent TEXT, maximum BIGINT NOT NULL, "
    "reserve BIGINT, period TEXT, zone TEXT NOT NULL, rate BIGINT NOT NULL, spent BIGINT NOT NULL, "
    "held BIGINT NOT NULL, exposed BIGINT NOT NULL, since TEXT NOT NULL, updated BIGINT NOT NULL, "
    "part BIGINT NOT NULL, total BIGINT NOT NULL, others TEXT NOT NULL, PRIMARY KEY (ledger, name))",
    "CREATE TABLE longterm_holds (ledger TEXT NOT NULL, key TEXT NOT NULL, account TEXT NOT NULL, "
    "amount BIGINT NOT NULL, largest BIGINT NOT NULL, asked BIGINT NOT NULL, answer BIGINT NOT NULL, grouped TEXT, "
    "spent BIGINT NOT NULL, status SMALLINT NOT NULL, lease SMALLINT NOT NULL, opened BIGINT NOT NULL, "
    "expires BIGINT, closed BIGINT, who TEXT NOT NULL, PRIMARY KEY (ledger, key)){clustered}",
    "CREATE TABLE longterm_entries (object TEXT NOT NULL, number BIGINT NOT NULL, made BIGINT NOT NULL, "
    "what TEXT NOT NULL, account TEXT NOT NULL, key TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL, "
    "who TEXT NOT NULL, note TEXT NOT NULL, moved TEXT NOT NULL, correction TEXT, PRIMARY KEY (object, number))",
    "CREATE TABLE longterm_groups (object TEXT NOT NULL, name TEXT NOT NULL, hold DOUBLE PRECISION NOT NULL, "
    "settled BIGINT NOT NULL, costs DOUBLE PRECISION NOT NULL, excess DOUBLE PRECISION NOT NULL, "
    "largest DOUBLE PRECISION NOT NULL, PRIMARY KEY (object, name))",
    "CREATE TABLE longterm_positions (object TEXT NOT NULL, source TEXT NOT NULL, number BIGINT NOT NULL, "
    "PRIMARY KEY (object, source)){clustered}",
    "CREATE INDEX longterm_open_holds ON longterm_holds (ledger, lease, expires) WHERE status = 0",
    "CREATE INDEX longterm_closed_holds ON longterm_holds (ledger, closed) WHERE status <> 0",
    "CREATE INDEX longterm_corrections ON longterm_entries (object, key)",
    "CREATE INDEX longterm_changes ON longterm_rounds (object, changed) WHERE changed > 0",
    "CREATE INDEX longterm_key_times ON longterm_keys (object, opened)",
)
_ASKED = "COALESCE((SELECT MAX(number) FROM longterm_rounds WHERE object = o.name), 0)"
OBJECTS = f"SELECT name, kind, changed, state, {_ASKED} FROM longterm_objects o ORDER BY name"
COUNT_OPEN = "SELECT COUNT(*) FROM longterm_rounds WHERE object = ? AND status = 0"
READ_MONEY = "SELECT name, spent, held FROM longterm_accounts WHERE ledger = ? ORDER BY name"
READ_OBJECT = f"SELECT kind, specification, version, state, {_ASKED} FROM longterm_objects o WHERE name = ?"
READ_VERSION = f"SELECT version, {_ASKED} FROM longterm_objects o WHERE name = ?"
INSERT_OBJECT = (
    "INSERT INTO longterm_objects (name, kind, specification, version, changed, state) VALUES (?, ?, ?, 0, ?, ?) "
    "ON CONFLICT (name) DO NOTHING"
)
UPDATE_OBJECT = "UPDATE longterm_objects SET version = ?, changed = ?, state = ? WHERE name = ? AND version = ?"
UPDATE_OBJECT_UP_TO = (
    f"{UPDATE_OBJECT} AND NOT EXISTS "
    "(SELECT 1 FROM longterm_rounds WHERE object = longterm_objects.name AND number > ?)"
)
_ROW = "number, status, epoch, opened, content"
_NEW_ROUND = "INSERT INTO longterm_rounds (object, number, status, epoch, opened, changed, content) SELECT"
INSERT_ROUND = f"{_NEW_ROUND} ?, ?, ?, ?, ?, 0, ? WHERE TRUE"
OPEN_ROUND = f"{_NEW_ROUND} name, ?, ?, ?, ?, 0, ? FROM longterm_objects WHERE name = ? AND version = ?"
UPDATE_ROUND = "UPDATE longterm_rounds SET status = ?, changed = ?, content = ? WHERE object = ? AND number = ?"
READ_ROUND = f"SELECT {_ROW} FROM longterm_rounds WHERE object = ? AND number = ?"
READ_OPEN = f"SELECT {_ROW} FROM longterm_rounds WHERE object = ? AND status = 0"
READ_CHANGED = f"SELECT {_ROW} FROM longterm_rounds WHERE object = ? AND changed > ? AND changed > 0"
READ_NEW = f"SELECT {_ROW} FROM longterm_rounds WHERE object = ? AND number > ?"
DELETE_ROUNDS = "DELETE FROM longterm_rounds WHERE object = ? AND number <= ? AND status <> 0 AND changed <= ?"
INSERT_KEY = f"INSERT INTO longterm_keys (object, key, {_ROW}) SELECT ?, ?, ?, ?, ?, ?, ? WHERE TRUE"
READ_KEY = f"SELECT {_ROW} FROM longterm_keys WHERE object = ? AND key = ?"
READ_KEYS = f"SELECT key, {_ROW} FROM longterm_keys WHERE object = ? AND key = ?"
DELETE_KEY = "DELETE FROM longterm_keys WHERE object = ? AND key = ? AND number = ?"
DELETE_KEYS = (
    "DELETE FROM longterm_keys WHERE object = ? AND opened < ? AND NOT EXISTS (SELECT 1 FROM longterm_rounds r "
    "WHERE r.object = longterm_keys.object AND r.number = longterm_keys.number AND r.status = 0)"
)
READ_PARTS_SINCE = "SELECT number, content FROM longterm_parts WHERE object = ? AND number >= ? ORDER BY number"
READ_PARTS = "SELECT content FROM longterm_parts WHERE object = ? AND number > ? AND number <= ? ORDER BY number"
READ_PART = "SELECT number, content FROM longterm_parts WHERE object = ? AND number = ?"
READ_NEW_PARTS = "SELECT number, content FROM longterm_parts WHERE object = ? AND substr(content, 1, 8) > ?"
INSERT_PART = "INSERT INTO longterm_parts (object, number, content) SELECT ?, ?, ? WHERE TRUE"
PUT_PART = f"{INSERT_PART} ON CONFLICT (object, number) DO UPDATE SET content = excluded.content"
DELETE_PARTS = "DELETE FROM longterm_parts WHERE object = ?"
DELETE_OLD_PARTS = "DELETE FROM longterm_parts WHERE object = ? AND number > ? AND number <= ?"
_ACCOUNT = (
    "name, parent, maximum, reserve, period, zone, rate, spent, held, exposed, since, updated, part, total, others"
)
READ_ACCOUNTS = f"SELECT {_ACCOUNT} FROM longterm_accounts WHERE ledger = ? ORDER BY name"
READ_ACCOUNT = f"SELECT {_ACCOUNT} FROM longterm_accounts WHERE ledger = ? AND name = ?"
INSERT_ACCOUNT = (
    f"INSERT INTO longterm_accounts ({_ACCOUNT}, ledger) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?, ?, 0, 0, '', ?)"
)
SET_LIMITS = "UPDATE longterm_accounts SET maximum = ?, reserve = ? WHERE ledger = ? AND name = ?"
SET_PERIOD = (
    "UPDATE longterm_accounts SET period = ?, zone = ?, rate = ?, spent = ?, since = ?, updated = ?, part = 0, "
    "others = ? WHERE ledger = ? AND name = ?"
)
_BALANCE = "spent = ?, held = ?, exposed = ?, since = ?, updated = ?, part = ?, total = ?, others = ?"
UPDATE_ACCOUNT = f"UPDATE longterm_accounts SET {_BALANCE} WHERE ledger = ? AND name = ?"
_HOLD = "key, account, amount, largest, asked, answer, grouped, spent, status, lease, opened, expires, closed, who"
READ_HOLD = f"SELECT {_HOLD} FROM longterm_holds WHERE ledger = ? AND key = ?"
READ_EXPIRED = (
    f"SELECT {_HOLD} FROM longterm_holds WHERE ledger = ? AND status = 0 AND lease = 0 AND expires <= ? "
    "ORDER BY expires, key LIMIT 1000"
)
AND_EXPIRED = f" UNION ALL SELECT * FROM ({READ_EXPIRED}) AS expired"
READ_HOLD_AND_EXPIRED = f"{READ_HOLD}{AND_EXPIRED}"
READ_OPEN_HOLDS = f"SELECT {_HOLD} FROM longterm_holds WHERE ledger = ? AND status = 0 ORDER BY opened, key"
READ_CLOSED_HOLDS = (
    f"SELECT {_HOLD} FROM longterm_holds WHERE ledger = ? AND status <> 0 AND closed >= ? ORDER BY closed DESC LIMIT ?"
)
COUNT_HOLDS = "SELECT COUNT(*) FROM longterm_holds WHERE ledger = ? AND status = 0"
COUNT_LATE = "SELECT COUNT(*) FROM longterm_holds WHERE ledger = ? AND status = 0 AND lease = 1 AND expires <= ?"
PUT_HOLD = (
    f"INSERT INTO longterm_holds ({_HOLD}, ledger) SELECT ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, NULL, ?, ? WHERE TRUE "
    "ON CONFLICT (ledger, key) DO UPDATE SET amount = excluded.amount, largest = excluded.largest, "
    "answer = excluded.answer, status = 0, opened = excluded.opened, expires = excluded.expires, closed = NULL, "
    "who = excluded.who"
)
UPDATE_HOLD = (
    "UPDATE longterm_holds SET amount = ?, largest = ?, spent = ?, status = ?, closed = ?, who = ? "
    "WHERE ledger = ? AND key = ?"
)
RENAME_HOLD = "UPDATE longterm_holds SET key = ? WHERE ledger = ? AND key = ?"
RENAME_ENTRIES = "UPDATE longterm_entries SET key = ? WHERE object = ? AND key = ?"
DELETE_HOLDS = "DELETE FROM longterm_holds WHERE ledger = ? AND status <> 0 AND closed < ?"
_ENTRY = "made, what, account, key, old, new, who, note"
READ_ENTRIES = f"SELECT {_ENTRY} FROM longterm_entries WHERE object = ? AND made >= ? ORDER BY number DESC LIMIT ?"
READ_CORRECTIONS = (
    "SELECT account, key, old, new, moved, correction FROM longterm_entries "
    "WHERE object = ? AND key = ? AND correction IS NOT NULL ORDER BY number"
)
INSERT_ENTRY = (
    f"INSERT INTO longterm_entries ({_ENTRY}, moved, correction, object, number) "
    "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, COALESCE(MAX(number), 0) + 1 FROM longterm_entries WHERE object = ?"
)
DELETE_ENTRIES = (  # not the corrections of a hold that can be corrected again: what it costs is in the last one
    "DELETE FROM longterm_entries WHERE object = ? AND made < ? AND NOT EXISTS (SELECT 1 FROM longterm_holds h "
    "WHERE h.ledger = longterm_entries.object AND h.key = longterm_entries.key)"
)
TOUCH_OBJECT = "UPDATE longterm_objects SET version = version + 1, changed = ? WHERE name = ?"
TOUCH_IF_CURRENT = f"{TOUCH_OBJECT} AND version = ?"
READ_TOUCHED = "SELECT version FROM longterm_objects WHERE name = ?"
_GROUP = "name, hold, settled, costs, excess, largest"
READ_GROUPS = f"SELECT {_GROUP} FROM longterm_groups WHERE object = ? ORDER BY name"
READ_GROUP = f"SELECT {_GROUP} FROM longterm_groups WHERE object = ? AND name = ?"
PUT_GROUP = (
    f"INSERT INTO longterm_groups ({_GROUP}, object) SELECT ?, ?, ?, ?, ?, ?, ? WHERE TRUE ON CONFLICT (object, name) "
    "DO UPDATE SET hold = excluded.hold, settled = excluded.settled, costs = excluded.costs, excess = excluded.excess, "
    "largest = excluded.largest"
)
READ_POSITION = "SELECT number FROM longterm_positions WHERE object = ? AND source = ?"
PUT_POSITION = (
    "INSERT INTO longterm_positions (object, source, number) SELECT ?, ?, ? WHERE TRUE "
    "ON CONFLICT (object, source) DO UPDATE SET number = excluded.number"
)
LAST_TIME = "SELECT MAX(changed) FROM longterm_objects"
_NAMED = {
    "longterm_objects": "name",
    "longterm_rounds": "object",
    "longterm_keys": "object",
    "longterm_parts": "object",
    "longterm_accounts": "ledger",
    "longterm_holds": "ledger",
    "longterm_entries": "object",
    "longterm_groups": "object",
    "longterm_positions": "object",
}
"""The column of each table that has the name of an object."""
RENAME_OBJECT = [f"UPDATE {table} SET {column} = ? WHERE {column} = ?" for table, column in _NAMED.items()]
_PLACE = "CAST(? AS INTEGER)"
_OF_OBJECT = (
    f"substr(key, 1, {_PLACE}) = ? AND ltrim(substr(key, {_PLACE}, 12), '0123456789abcdef') = '' "
    f"AND substr(key, {_PLACE}, 1) = '-' AND length(key) > ? AND ltrim(substr(key, {_PLACE}), '0123456789') = ''"
)
"""A key that an object has given to a hold: its name, a space and the text of a token."""
RENAME_HOLDS = [
    f"UPDATE {table} SET key = ? || substr(key, {_PLACE}) WHERE {_OF_OBJECT}"
    for table in ("longterm_holds", "longterm_entries")
]
REDEFINE_OBJECT = "UPDATE longterm_objects SET specification = ?, version = version + 1, changed = ? WHERE name = ?"
LOCK_OBJECT = "SELECT version FROM longterm_objects WHERE name = ? FOR UPDATE"


@cache
def for_keys(query: str, number: int, tail: str = "") -> str:
    """Return the query for an object and a key as one for several keys.

    It consists of single look-ups. PostgreSQL would plan ``key IN (…)`` once, when the table is small, as a scan of the
    whole table.
    """
    return " UNION ALL ".join([query] * number) + tail


def padded(keys: Sequence[str]) -> Sequence[str]:
    """Return keys with the last one repeated, so that there are 1, 2, 4, … and few different texts are prepared."""
    return [*keys, *[keys[-1]] * ((1 << (len(keys) - 1).bit_length()) - len(keys))]


_first, _last, _ends, _name_and_first = itemgetter(0, 1), itemgetter(-2, -1), itemgetter(-1, 0), itemgetter(-2, 0)
_ROW_WRITTEN: dict[str, tuple[str, Callable[[Sequence[Any]], tuple[Any, ...]]]] = {
    INSERT_ROUND: ("longterm_rounds", _first),
    OPEN_ROUND: ("longterm_rounds", _name_and_first),
    UPDATE_ROUND: ("longterm_rounds", _last),
    INSERT_KEY: ("longterm_keys", _first),
    INSERT_PART: ("longterm_parts", _first),
    PUT_POSITION: ("longterm_positions", _first),
    UPDATE_ACCOUNT: ("longterm_accounts", _last),
    PUT_HOLD: ("longterm_holds", _ends),
    UPDATE_HOLD: ("longterm_holds", _last),
    PUT_GROUP: ("longterm_groups", _ends),
}
REPLACED = (UPDATE_ROUND, PUT_POSITION, UPDATE_ACCOUNT, UPDATE_HOLD, PUT_GROUP)
"""Statements whose effect on a row is that of the last one, if the same statement is executed on it several times."""


def row_written(statement: Statement) -> tuple[str, tuple[Any, ...] | None]:
    """Return the table that a statement changes, and the key of its row; None if it may change several rows."""
    text, arguments = statement
    if text in _ROW_WRITTEN:
        table, key_of = _ROW_WRITTEN[text]
        return table, key_of(arguments)
    return f"longterm_{text.partition('longterm_')[2].split()[0]}", None
