"""Rounds in flight: which tokens are open, which were closed and how, which are too old.

Tokens are numbered 1, 2, 3, … as they are asked for. A token's age is the number of rounds asked for since.
What is remembered is bounded: the open tokens by `max_in_flight`, the closed ones by `expire_after`.

A number alone does not name a round: a service that comes up again without its journal, or with one that lost its end,
gives numbers out a second time. So a token also carries a life, a random number drawn whenever a learner is made or
loaded. Files remember which numbers belong to which life: what they know of stays good, anything else is unknown.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal, NamedTuple

import numpy as np

from longterm._arrays import Array
from longterm.errors import (
    AlreadyToldError,
    ExpiredTokenError,
    SkippedTokenError,
    TokenError,
    UnknownTokenError,
    WindowFullError,
)

Closed = Literal["told", "skipped"]
Lives = tuple[tuple[int, int], ...]
"""(the first number of a life, the life), oldest first."""

LIFE_BITS = 48
LIVES_KEPT = 64
"""Tokens of lives before these are unknown, whatever their age."""
_TEXT = re.compile(rf"([0-9a-f]{{{LIFE_BITS // 4}}})-([1-9][0-9]{{0,17}})")
_REMEDY = "Give what ask() returned, or its text, str(token)"


class Token(NamedTuple):
    """One round: its number, the decision that belongs to it, and the life of the learner that gave it out.

    It travels as a short text, which JSON can hold: ``str(token)``; `tell` and `skip` take that text as well.

    Parameters
    ----------
    number : int
        The round, counted from 1.
    x : array, optional
        The decision, read-only: what the feedback must be evaluated at. None in a token made from its text.
    life : int
        The life it was given out in; 0 in files from before there were lives.

    Examples
    --------
    >>> from longterm import Token
    >>> str(Token(12, life=0x0123456789AB))
    '0123456789ab-12'
    >>> Token.parse("0123456789ab-12") == Token(12, life=0x0123456789AB)
    True
    """

    number: int
    x: Array = None
    life: int = 0

    @classmethod
    def parse(cls, text: str) -> Token:
        """The token that this text was made of, without its decision; an UnknownTokenError if there is none."""
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            shown = repr(text)[:60]
            raise UnknownTokenError(0, f"{shown} is not the text of a token", _REMEDY)
        return cls(int(match[2]), None, int(match[1], 16))

    def __str__(self) -> str:
        return f"{self.life:0{LIFE_BITS // 4}x}-{self.number}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and (self.number, self.life) == (other.number, other.life)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.number, self.life))


def draw_life() -> int:
    """A life that nobody had before."""
    return secrets.randbelow(2**LIFE_BITS - 1) + 1


def life_of(lives: Lives, number: int) -> int:
    """The life in which a number was given out; 0 before there were any."""
    return next((life for first, life in reversed(lives) if first <= number), 0)


def lives_with(lives: Lives, life: int, number: int) -> Lives:
    """The lives so far, if this number is the next to be given out, in this life; the same object if it is the last."""
    if life == (lives[-1][1] if lives else 0):
        return lives
    return (*lives, (number, life))[-LIVES_KEPT:]


@dataclass
class Window:
    """The tokens of one learner. It answers questions; `longterm.live.memory` changes it."""

    max_in_flight: int
    expire_after: int
    asked: int = 0
    open: dict[int, Token] = field(default_factory=dict)
    closed: dict[int, Closed] = field(default_factory=dict)
    lives: Lives = ()
    """Of the numbers given out so far."""

    def require_room(self) -> None:
        """Raise a WindowFullError if one more round would be one too many."""
        if len(self.open) - len(self.expiring()) >= self.max_in_flight:
            oldest = next(iter(self.open))
            raise WindowFullError(
                f"{self.max_in_flight} rounds are in flight, the oldest is {oldest}. Tell or skip some of them, or "
                "make the learner with a larger max_in_flight; with expire_after < max_in_flight it is never full."
            )

    def find(self, token: Token | str) -> Token:
        """The open token that is meant; a TokenError that says why there is none."""
        if isinstance(token, str):
            token = Token.parse(token)
        elif not isinstance(token, Token):
            raise _no_token(token)
        try:
            known = self.open.get(token.number)
        except TypeError:
            raise _no_token(token) from None
        if known is token:
            return known
        for part in (token.number, token.life):
            if isinstance(part, bool) or not isinstance(part, (int, np.integer)):
                raise _no_token(token)
        if known is None:
            raise self._why_not(token)
        if token.life != known.life:
            raise _of_another_life(token.number)
        if token.x is not None and not np.array_equal(token.x, known.x):
            raise UnknownTokenError(
                known.number, "another decision has this number here", "Tell the learner that it is of"
            )
        return known

    def expiring(self) -> tuple[int, ...]:
        """The open tokens that one more round makes too old. They are in order, the oldest first."""
        good = self.asked + 1 - self.expire_after
        for oldest in self.open:
            return () if oldest >= good else tuple(takewhile(lambda number: number < good, self.open))
        return ()

    def life_of(self, number: int) -> int:
        """The life in which this number was given out; 0 before there were any."""
        return life_of(self.lives, number)

    def lives_with(self, life: int) -> Lives:
        """`lives`, if the next number is given out in this life."""
        return lives_with(self.lives, life, self.asked + 1)

    def _why_not(self, token: Token) -> TokenError:
        number = int(token.number)
        if not 1 <= number <= self.asked:
            return UnknownTokenError(
                number, "this learner never gave it out", f"Its tokens so far are 1 to {self.asked}"
            )
        if token.life != self.life_of(number):
            return _of_another_life(number)
        how = self.closed.get(number)
        if how == "told":
            return AlreadyToldError(number, "its feedback was taken already", "Nothing is to be done: it counts once")
        if how == "skipped":
            return SkippedTokenError(number, "it was skipped", "Skip only rounds whose feedback will not come")
        return ExpiredTokenError(
            number,
            f"{self.asked - number} rounds were asked for since, more than expire_after = {self.expire_after}",
            "Tell sooner, or make the learner with a larger expire_after",
        )


def _no_token(given: Any) -> UnknownTokenError:
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        what = f"{given} is a bare number, which does not say in which life of the learner it was given out"
        return UnknownTokenError(int(given), what, _REMEDY)
    return UnknownTokenError(0, f"{given!r} is not a token", _REMEDY)


def _of_another_life(number: int) -> UnknownTokenError:
    what = "it was given out in another life: by another learner, or before a restart that does not know of it"
    return UnknownTokenError(number, what, "Leave its feedback out; here this number belongs to another round")
