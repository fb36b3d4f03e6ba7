"""Changes of the settings file, applied to accounts that exist already when the service starts.

A limit may be changed in the file, or by `longterm state set` while the service runs. The last change is to hold. So
the database remembers what the file said when it was last applied, and only what has changed in the file since is
applied. Workers that are replaced later apply nothing.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from longterm.errors import DatabaseError, InputError
from longterm.money import Ledger
from longterm.money.limit_changes import Limited, change_limits, limits_of
from longterm.storage import schema as sql
from longterm.storage.contents import describe
from longterm.storage.database import Database
from longterm.storage.rows_replica import NoCopy, RowsReplica
from longterm.storage.stored_object import Stored

KIND = "server settings"
OBJECT = "longterm server settings"
"""Its name in the database."""
LOG = logging.getLogger("longterm.server")
WHO = "the settings file"
"""Who changes an account, in the record of its ledger."""


class AppliedSettings(Stored[NoCopy]):
    """What the settings file said about each account when it was last applied.

    Parameters
    ----------
    url : str
        The service's database.
    """

    _replica: RowsReplica

    def __init__(self, url: str) -> None:
        self._replica = RowsReplica(KIND, {})
        self._replica.attach(url, OBJECT, "commit")

    def read(self) -> dict[str, dict[str, Any]]:
        """Return the settings by place, such as ``ledger.money.accounts.team``."""
        found: dict[str, dict[str, Any]] = self._replica.run(self._read)
        return found

    def _read(self, database: Database) -> dict[str, dict[str, Any]]:
        contents = database.parts(self._replica.name, -1, 0)
        try:
            found = json.loads(contents[0]) if contents else {}
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
            raise DatabaseError(database.path, "corrupted", "the settings in it are damaged", "Restore a backup")
        return found

    def add(self, settings: dict[str, dict[str, Any]]) -> None:
        """Remember settings. Those of other places stay."""

        def write(database: Database) -> None:
            content = json.dumps(self._read(database) | settings).encode()
            touched = sql.TOUCH_OBJECT, (database.seconds(), self._replica.name)
            database.write_locked([touched, (sql.PUT_PART, (self._replica.name, 0, content))])

        self._replica.run(write)


def differing(
    place: str, wanted: dict[str, Any], before: dict[str, Any] | None, present: dict[str, Any]
) -> dict[str, Any]:
    """Return what the file has changed since it was last applied. Log what was changed in the database since.

    Parameters
    ----------
    place : str
        Its table in the file, for messages.
    wanted : dict
        What the file says.
    before : dict, optional
        What the file said when it was last applied; None if that is not known.
    present : dict
        What the database says.
    """
    changed = {}
    for key, value in wanted.items():
        if value == present[key]:
            continue
        if before is None or value != before.get(key):
            changed[key] = value
        else:
            text = "%s.%s: %r in the database was set after %r in the file, and stays"
            LOG.warning(text, place, key, present[key], value)
    return changed


def log_changes(place: str, changed: dict[str, Any], present: dict[str, Any]) -> None:
    """Log what was applied, with old and new values."""
    for key, value in changed.items():
        LOG.warning("%s.%s: %r before, %r now", place, key, present[key], value)


def apply_limits(found: Limited, place: str, wanted: dict[str, Any], applied: dict[str, dict[str, Any]] | None) -> None:
    """Apply what has changed in the file about a chooser, a router or a pacer that exists.

    Parameters
    ----------
    found : Chooser or LivePacer
        The object, opened with `follow`. It is closed if the change cannot be made.
    place : str
        Its table in the file, for messages.
    wanted : dict
        What the file says.
    applied : dict, optional
        What the file said when it was last applied, by table; None if changes are not to be applied.
    """
    if applied is None:
        return
    try:
        present = limits_of(found)
        changed = differing(place, wanted, applied.get(place), present)
        if changed:
            change_limits(found, changed, who=WHO)
            log_changes(place, changed, present)
    except InputError as error:
        found.close()
        raise InputError(f"{place}.{error.argument}", error.what, error.remedy) from error
    except BaseException:
        found.close()
        raise


def apply_account(ledger: Ledger, place: str, name: str, wanted: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Apply what has changed in the file about an account that exists.

    Parameters
    ----------
    ledger : Ledger
        Its ledger.
    place : str
        Its table in the file, for messages.
    name : str
        The account.
    wanted : dict
        What the file says.
    before : dict, optional
        What the file said when it was last applied; None if that is not known.

    Raises
    ------
    InputError
        If the change cannot be made. The message names what can.
    """
    present = ledger.settings[name]._asdict()
    changed = differing(place, wanted, before, present)
    if "parent" in changed:
        what = f"was {present['parent']!r}, is {changed['parent']!r}, and an account keeps its parent"
        raise InputError(f"{place}.parent", what, "Undo the change, or add an account with another name")
    if changed:
        ledger.change(name, changed, who=WHO)
        log_changes(place, changed, present)


def warn_of_others(url: str, names: set[str], accounts: dict[str, set[str]]) -> None:
    """Log the objects and accounts that are in the database and not in the file.

    Parameters
    ----------
    url : str
        The database.
    names : set of str
        The objects in the file.
    accounts : dict of str to set
        The accounts in the file, by ledger.
    """
    for one in describe(url):
        if one.kind.startswith("server "):
            continue
        if one.name not in names:
            advice = "If it was renamed in the file, run: longterm state rename DB OLD NEW"
            LOG.warning("the database has the %s %r, which is not in the file. %s", one.kind, one.name, advice)
        for account in sorted(set(one.spent or {}) - accounts[one.name] if one.name in accounts else ()):
            LOG.warning("the ledger %r has the account %r, which is not in the file", one.name, account)
