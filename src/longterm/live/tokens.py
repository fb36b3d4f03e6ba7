"""Rounds in flight: which tokens are open, which were closed and how, which are too old.

Tokens are numbered 1, 2, 3, … as they are asked for. A token's age is the number of rounds asked for since.
What is remembered is bounded: the open tokens by `max_in_flight`, the closed ones by `expire_after`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal

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


@dataclass(frozen=True, eq=False)
class Token:
    """One round: its number and the decision that belongs to it.

    Parameters
    ----------
    number : int
        The round, counted from 1.
    x : array
        The decision, read-only: what the feedback must be evaluated at.
    """

    number: int
    x: Array


@dataclass
class Window:
    """The tokens of one learner. It answers questions; `longterm.live.memory` changes it."""

    max_in_flight: int
    expire_after: int
    asked: int = 0
    open: dict[int, Token] = field(default_factory=dict)
    closed: dict[int, Closed] = field(default_factory=dict)

    def require_room(self) -> None:
        """Raise a WindowFullError if one more round would be one too many."""
        if len(self.open) - len(self.expiring()) >= self.max_in_flight:
            oldest = next(iter(self.open))
            raise WindowFullError(
                f"{self.max_in_flight} rounds are in flight, the oldest is {oldest}. Tell or skip some of them, or "
                "make the learner with a larger max_in_flight; with expire_after < max_in_flight it is never full."
            )

    def find(self, token: Token | int) -> Token:
        """The open token that is meant; a TokenError that says why there is none."""
        number = token.number if isinstance(token, Token) else token
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise UnknownTokenError(0, f"{token!r} is not a token", "Give what ask() returned, or its number")
        number = int(number)
        known = self.open.get(number)
        if known is None:
            raise self._why_not(number)
        if isinstance(token, Token) and token is not known and not np.array_equal(token.x, known.x):
            raise UnknownTokenError(number, "another decision has this number here", "Tell the learner that it is of")
        return known

    def expiring(self) -> list[int]:
        """The open tokens that one more round makes too old. They are in order, the oldest first."""
        return list(takewhile(lambda number: self.asked + 1 - number > self.expire_after, self.open))

    def _why_not(self, number: int) -> TokenError:
        if not 1 <= number <= self.asked:
            return UnknownTokenError(
                number, "this learner never gave it out", f"Its tokens so far are 1 to {self.asked}"
            )
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
