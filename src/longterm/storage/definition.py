"""The arguments that a stored object was created with, some of which may be changed while it is in use."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection
from typing import Any

from longterm.errors import DatabaseError
from longterm.storage.specification import changed_values, difference, specification

EARLIER, MOST_EARLIER = "earlier", 32
"""The key of a stored definition with the earlier values of arguments by place, and the most that are stored."""
LOG = logging.getLogger("longterm.storage")


class Definition:
    """The arguments of an object as its database has them.

    Parameters
    ----------
    arguments : dict
        The constructor arguments: the learner or rule, for example.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._stored = specification(arguments)
        self.changeable: Collection[str] = ()
        """The places of arguments that may be changed in the database."""
        self.adopt: Callable[[dict[str, Any]], None] = lambda stored: None
        """Use the values that a stored definition has for these arguments. Idempotent."""
        self.follows = False
        """True once the object is open: what other processes change is adopted."""
        self._is_adopting = False
        """True after `adopt` was interrupted: the copy may have values that are not those of its definition."""
        self._known = ""
        """The text that was accepted last."""
        self._earlier: dict[str, list[Any]] = {}
        """The values that arguments had before they were changed in the database, by place."""

    def encode(self) -> str:
        """Return the text for the database."""
        return json.dumps(self._stored | ({EARLIER: self._earlier} if self._earlier else {}))

    def change(self, arguments: dict[str, Any]) -> None:
        """Take over other values of arguments that may be changed, and remember the earlier ones."""
        before, earlier = self._stored, dict(self._earlier)
        self._use(specification(arguments))
        for place, value in (changed_values(before, self._stored, self.changeable) or {}).items():
            earlier[place] = [*(one for one in earlier.get(place, ()) if one != value), value][-MOST_EARLIER:]
        self._earlier = earlier

    def _use(self, stored: dict[str, Any]) -> None:
        self._is_adopting = True
        self.adopt(stored)
        self._stored, self._known, self._is_adopting = stored, "", False

    def accept(self, text: str) -> bool:
        """Return whether a stored definition is this one, after following what may be followed.

        Raise a ValueError, LookupError, TypeError, ArithmeticError or RecursionError if it is none.
        """
        if text == self._known and not self._is_adopting:
            return True
        found, earlier = _decoded(text)
        if self._is_adopting or self._must_follow(found, earlier):
            self._use(found)
        self._earlier = earlier
        is_same = difference(found, self._stored, "") is None
        self._known = text if is_same else ""
        return is_same

    def _must_follow(self, found: dict[str, Any], earlier: dict[str, list[Any]]) -> bool:
        """Return whether to use stored values that differ.

        Code that still has a value from before a change follows the change. A value that the object never had is new:
        it is followed only if that was asked for.
        """
        given = changed_values(self._stored, found, self.changeable)
        if not given or self.follows:
            return bool(given)
        must = all(value in earlier.get(place, ()) for place, value in given.items())
        if must:
            LOG.warning(
                "a limit was changed in the database, and stays: %s in the code", difference(found, self._stored, "")
            )
        return must

    def refusal(self, path: Any, name: str, text: str) -> DatabaseError:
        """Return the error for a stored definition that is another one."""
        found, _ = _decoded(text)
        remedy = "Open it with the arguments that it was created with, or under another name"
        what = f"{name!r} was created with other arguments"
        if changed_values(found, self._stored, self.changeable):
            remedy = "Open it with follow=True to use the stored values, then call change() for new ones"
            what = f"{what}, or they were changed since"
        return DatabaseError(path, "another definition", f"{what}: {difference(found, self._stored, '')}", remedy)


def _decoded(text: str) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the stored arguments and their earlier values. Raise a ValueError if they are none."""
    found = json.loads(text)
    earlier = found.pop(EARLIER, {}) if isinstance(found, dict) else None
    if not isinstance(earlier, dict) or not all(isinstance(values, list) for values in earlier.values()):
        raise ValueError("its arguments are no table")
    return found, earlier
