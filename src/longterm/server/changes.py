"""Changes of the settings file, applied to objects that exist already when the service starts.

A limit may be changed in the file, or by `longterm state set` while the service runs. The last change is to hold. So
the database remembers what the file said when it was last applied, and only what has changed in the file since is
applied. Workers that are replaced later apply nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from longterm.errors import DatabaseError
from longterm.money.limit_changes import Limited, change_limits, limits_of
from longterm.storage import schema as sql
from longterm.storage.contents import INTERNAL, describe
from longterm.storage.database import Database
from longterm.storage.rows_replica import NoCopy, RowsReplica
from longterm.storage.stored_object import Stored

KIND = f"{INTERNAL}settings"
OBJECT = "longterm server settings"
"""Its name in the database."""
LOG = logging.getLogger("longterm.server")
WHO = "the settings file"
"""The author of changes from the file, in the records of objects."""


class AppliedSettings(Stored[NoCopy]):
    """The settings of each object and account in the file that was applied last.

    Parameters
    ----------
    url : str
        The service's database.
    """

    _replica: RowsReplica

    def __init__(self, url: str) -> None:
        self._replica = RowsReplica(KIND, {})
        self._replica.attach(url, OBJECT, "commit")
        self._before: dict[str, dict[str, Any]] = self._replica.run(_read)
        self._stated: dict[str, dict[str, Any]] = {}

    def apply(
        self, place: str, wanted: dict[str, Any], present: dict[str, Any], change: Callable[[dict[str, Any]], None]
    ) -> None:
        """Make the changes of one table of the file, log them, and remember what the table says.

        A change is remembered directly after it is made. So if the start is refused later, a start with the old file
        undoes the change.

        Parameters
        ----------
        place : str
            The table in the file.
        wanted : dict
            What the file says.
        present : dict
            What the database says.
        change : callable
            The function that makes changes, given new values by name.
        """
        self._stated[place] = wanted
        changed = differing(place, wanted, self._before.get(place), present)
        if changed:
            change(changed)
            for key, value in changed.items():
                LOG.warning("%s.%s: %r before, %r now", place, key, present[key], value)
            self.write()

    def write(self) -> None:
        """Remember what the tables said that `apply` had so far. Settings of other tables stay."""

        def write(database: Database) -> None:
            _put(database, _read(database) | self._stated)

        self._replica.run(write)


def _read(database: Database) -> dict[str, dict[str, Any]]:
    contents = database.parts(OBJECT, -1, 0)
    try:
        found = json.loads(contents[0]) if contents else {}
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise DatabaseError(database.path, "corrupted", "the settings in it are damaged", "Restore a backup")
    return found


def _put(database: Database, settings: dict[str, dict[str, Any]]) -> None:
    touched = sql.TOUCH_OBJECT, (database.seconds(), OBJECT)
    database.write_locked([touched, (sql.PUT_PART, (OBJECT, 0, json.dumps(settings).encode()))])


def rename_settings(database: Database, old: str, new: str) -> None:
    """Remember the settings of an object under its new name, so that the next start finds them unchanged."""
    settings = _read(database)
    if settings:
        _put(database, {_renamed(place, old, new): wanted for place, wanted in settings.items()})


def _renamed(place: str, old: str, new: str) -> str:
    """Return the place of an object's table, or of an account's table, after the object has a new name."""
    kind, _, rest = place.partition(".")
    if rest == old or (kind == "ledger" and rest.startswith(f"{old}.accounts.")):
        return f"{kind}.{new}{rest[len(old) :]}"
    return place


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


def apply_limits(found: Limited, place: str, wanted: dict[str, Any], applied: AppliedSettings) -> None:
    """Apply what has changed in the file about a chooser, a router or a pacer.

    Parameters
    ----------
    found : Chooser or LivePacer
        The object, opened with `follow`.
    place : str
        Its table in the file.
    wanted : dict
        What the file says.
    applied : AppliedSettings
        What the file said when it was last applied.
    """
    applied.apply(place, wanted, limits_of(found), partial(change_limits, found, who=WHO))


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
        if one.kind.startswith(INTERNAL):
            continue
        if one.name not in names:
            advice = "If it was renamed in the file, run: longterm state rename DB OLD NEW"
            LOG.warning("the database has the %s %r, which is not in the file. %s", one.kind, one.name, advice)
        for account in sorted(set(one.spent or {}) - accounts[one.name] if one.name in accounts else ()):
            LOG.warning("the ledger %r has the account %r, which is not in the file", one.name, account)


def warn_of_actions(place: str, stored: Sequence[str], names: Sequence[str]) -> None:
    """Log the actions of a chooser, or the models of a router, that are in the database and not in the file."""
    others = list(stored[len(names) :])
    if others:
        LOG.warning("%s: the database has %r, which the file has not. They are not used", place, others)
