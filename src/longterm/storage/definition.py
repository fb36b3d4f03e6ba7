"""The arguments that a stored object was created with, some of which may be changed while it is in use."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from longterm.errors import DatabaseError
from longterm.storage.specification import changed_values, difference, specification


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

    def encode(self) -> str:
        """Return the text for the database."""
        return json.dumps(self._stored)

    def change(self, arguments: dict[str, Any]) -> None:
        """Take over other values of arguments that may be changed."""
        self._use(specification(arguments))

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
        found = json.loads(text)
        if self._is_adopting or (self.follows and changed_values(found, self._stored, self.changeable)):
            self._use(found)
        is_same = difference(found, self._stored, "") is None
        self._known = text if is_same else ""
        return is_same

    def refusal(self, path: Any, name: str, text: str) -> DatabaseError:
        """Return the error for a stored definition that is another one."""
        found = json.loads(text)
        remedy = "Open it with the arguments that it was created with, or under another name"
        what = f"{name!r} was created with other arguments"
        if changed_values(found, self._stored, self.changeable):
            remedy = "Open it with follow=True to use the stored values, or under another name"
            what = f"{what}, or they were changed since"
        return DatabaseError(path, "another definition", f"{what}: {difference(found, self._stored, '')}", remedy)
