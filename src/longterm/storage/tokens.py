"""Tokens: names of rounds that stay unique when numbers are used twice.

Rounds are numbered 1, 2, 3, … by the database. A database that is restored from a backup gives lost numbers out again.
So a token also carries the epoch of the process that opened its round, a random number, and a token whose epoch is not
that of the stored round is unknown.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from numpy.typing import NDArray

from longterm.errors import InputError, UnknownTokenError

EPOCH_BITS = 48
_TEXT = re.compile(rf"([0-9a-f]{{{EPOCH_BITS // 4}}})-([1-9][0-9]{{0,17}})")
LONGEST_KEY = 200
REMEDY = "Give what ask() returned, or its text, str(token)"


class Token(NamedTuple):
    """The name of one round: its number, its decision, and the epoch of the process that opened it.

    Its text, ``str(token)``, is short and fits into JSON; `tell` and `skip` take it as well.

    Parameters
    ----------
    number : int
        The round, counted from 1.
    x : array, optional
        The decision, read-only, at which the feedback must be evaluated. None in a token made from its text.
    epoch : int
        A random number of the process that opened the round.

    Examples
    --------
    >>> from longterm import Token
    >>> str(Token(12, epoch=0x0123456789AB))
    '0123456789ab-12'
    >>> Token.parse("0123456789ab-12") == Token(12, epoch=0x0123456789AB)
    True
    """

    number: int
    x: NDArray[Any] = None  # type: ignore[assignment]  # that of `ask` has one, and only it is read
    epoch: int = 0

    @classmethod
    def parse(cls, text: str) -> Token:
        """Return the token with this text, without its decision. Raise an UnknownTokenError if there is none."""
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise UnknownTokenError(0, f"{text!r:.60} is not the text of a token", REMEDY)
        return cls(int(match[2]), epoch=int(match[1], 16))

    @staticmethod
    def is_text(text: str) -> bool:
        """Return whether a text has the form of a token."""
        return _TEXT.fullmatch(text) is not None

    def __str__(self) -> str:
        return f"{self.epoch:0{EPOCH_BITS // 4}x}-{self.number}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and (self.number, self.epoch) == (other.number, other.epoch)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.number, self.epoch))


def is_storable(text: Any) -> bool:
    """Return whether a value is a text that every database can store: without NUL and surrogates."""
    if not isinstance(text, str) or "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_key(key: str | None) -> str | None:
    """Return an idempotency key, or raise an InputError."""
    if key is not None and not (is_storable(key) and 0 < len(key) <= LONGEST_KEY):
        raise InputError("key", f"{key!r:.60} is not a key", f"Give a text of 1 to {LONGEST_KEY} characters")
    return key
