"""Copies of objects with rounds: a state that is written whole, and rounds that are opened, changed and closed.

A subclass of `RoundsCopy` says how states and rounds are stored as bytes. A change that opens a round and leaves the
state as it is inserts a row only. Every other change writes the state and raises the version, by one for each round
that it touches. The last `RECENT` rounds touched are stored behind the state with their status. So a replica that is
not further behind reads only new rounds and those that were changed. And the rows of closed rounds are written for
`WRITE_EVERY` versions at once, so that most calls are one statement.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from longterm.errors import AlreadyToldError, SkippedTokenError, TokenError, UnknownTokenError
from longterm.storage import schema as sql
from longterm.storage.database import Database, RoundRow
from longterm.storage.packing import LARGEST_COUNT
from longterm.storage.schema import OPEN, Statement
from longterm.storage.tokens import Token

DONE, SKIPPED, EXPIRED = 1, 2, 3
"""The status of a closed round."""
RECENT = 64
WRITE_EVERY = 32
_RECENT_BYTES = 8 * RECENT

S = TypeVar("S")
T = TypeVar("T")


class OpenRound(NamedTuple, Generic[T]):
    """An open round, the epoch of the process that opened it, and the time in seconds since 1970."""

    content: T
    epoch: int
    opened: float


class RoundChange(NamedTuple, Generic[S, T]):
    """The state after a call, and the rounds that it touches."""

    state: S
    version: int
    recent: array[int]
    """The last rounds touched, by version, as 4 · number + status."""
    round: OpenRound[T]
    number: int
    """The round that is opened, changed or closed; 0 for none."""
    status: int
    """Its status after the call."""
    key: str | None = None
    expired: tuple[int, ...] = ()
    """The oldest open rounds, which the call closes first."""

    def statements(self, copy: RoundsCopy[S, T], name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return the statements that write it."""
        number, before, written = self.number, copy.version, []  # type: int, int, list[Statement]
        if self.version != before:
            state = copy.encode_state(self.state) + self.recent.tobytes()
            written.append((sql.UPDATE_OBJECT, (self.version, now, state, name, before)))
        if number > copy.asked:
            content, epoch, opened = self.round
            given = number, self.status, epoch, opened, self.key, copy.encode_round(content), name, self.version
            written.append((sql.INSERT_ROUND, given))
        guarded = len(written)
        if 0 < number <= copy.asked and self.status == OPEN:
            written.append((sql.UPDATE_ROUND, (copy.encode_round(self.round.content), name, number)))
        if self.version // WRITE_EVERY != before // WRITE_EVERY:
            closed = list(unwritten(before, copy.recent)) + [(old, copy.expired_status) for old in self.expired]
            if 0 < number <= copy.asked:
                closed.append((number, self.status))
            for status in (DONE, SKIPPED, EXPIRED):
                written += sql.close_rounds(name, status, [one for one, found in closed if found == status])
            written.append((sql.DELETE_ROUNDS, (name, copy.asked - copy.closed_kept)))
        written += copy.further_statements(self)
        return written, guarded

    def apply(self, copy: RoundsCopy[S, T]) -> None:
        """Apply it to a copy: first the rounds, then the version and the count that a stale copy is read from."""
        number, history = self.number, copy.history
        for old in self.expired:
            if history is not None and old in copy.open:
                history[old] = copy.open[old].epoch, copy.expired_status
            copy.open.pop(old, None)
        if number and self.status == OPEN:
            copy.open[number] = self.round
        elif number:
            if history is not None:
                history[number] = self.round.epoch, self.status
            copy.open.pop(number, None)
        copy.state, copy.version, copy.recent = self.state, self.version, self.recent
        copy.asked = max(copy.asked, number)
        if history is not None:
            if self.key is not None:
                copy.keys[self.key] = number, self.round
            history.pop(copy.asked - copy.closed_kept, None)
            while len(history) > copy.closed_kept:
                history.pop(next(iter(history)), None)
            while copy.keys and next(iter(copy.keys.values()))[0] <= copy.asked - copy.closed_kept:
                copy.keys.pop(next(iter(copy.keys)), None)


class NoChange(NamedTuple, Generic[T]):
    """A call with a key that was used before."""

    number: int
    round: OpenRound[T]

    def statements(self, copy: Any, name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return no statements."""
        return (), 0

    def apply(self, copy: Any) -> None:
        """Do nothing."""


class RoundsCopy(ABC, Generic[S, T]):
    """A copy of an object with rounds.

    Parameters
    ----------
    state : object
        The state of a new object.
    expire_after : int, optional
        The age, in rounds opened since, after which an open round expires.
    max_age : float, optional
        The age in seconds after which it expires.
    """

    kind: str
    remedy: ClassVar[str] = "Give what the call that opened the round returned, or its text"
    expired_status = EXPIRED
    closed_kept = 10_000
    """The age, in rounds since, after which closed rounds are deleted, and their keys and tokens are unknown."""

    def __init__(self, state: S, expire_after: int | None = None, max_age: float | None = None) -> None:
        self.state, self.expire_after, self.max_age = state, expire_after, max_age
        self.version = self.asked = 0
        self.recent = array("q", bytes(_RECENT_BYTES))
        self.open: dict[int, OpenRound[T]] = {}
        """The open rounds in the order of their numbers."""
        self.database: Database | None = None
        self.name = ""
        self.history: dict[int, tuple[int, int]] | None = {}
        """Epoch and status of closed rounds; None with a database."""
        self.keys: dict[str, tuple[int, OpenRound[T]]] = {}
        """Rounds by key, without a database."""

    # --- what a subclass defines -----------------------------------------------------------------------------

    @abstractmethod
    def encode_state(self, state: S) -> bytes:
        """Return a state as bytes."""

    @abstractmethod
    def decode_state(self, data: bytes, asked: int) -> S:
        """Return a state from bytes. Raise a ValueError, LookupError, TypeError or ArithmeticError if forged."""

    @abstractmethod
    def encode_round(self, content: T) -> bytes:
        """Return an open round as bytes."""

    @abstractmethod
    def decode_round(self, row: RoundRow) -> T:
        """Return an open round from its row. Raise as `decode_state` does."""

    def require_rounds(self, state: S, rounds: dict[int, OpenRound[T]], asked: int) -> None:
        """Raise a ValueError unless these can be all open rounds in this state."""

    def further_statements(self, change: RoundChange[S, T]) -> Sequence[Statement]:
        """Return statements that write what is in neither the state nor the rounds."""
        return ()

    # --- changes ---------------------------------------------------------------------------------------------

    def opening(
        self,
        state: S,
        content: T,
        epoch: int,
        key: str | None,
        expired: tuple[int, ...] = (),
        *,
        now: float,
        status: int = OPEN,
    ) -> RoundChange[S, T]:
        """Return the change that opens a round after others have expired."""
        return self.changing(state, self.asked + 1, OpenRound(content, epoch, now), status, key, expired)

    def closing(self, number: int, state: S, status: int) -> RoundChange[S, T]:
        """Return the change that closes an open round."""
        return self.changing(state, number, self.open[number], status)

    def changing(
        self,
        state: S,
        number: int,
        found: OpenRound[T],
        status: int,
        key: str | None = None,
        expired: tuple[int, ...] = (),
    ) -> RoundChange[S, T]:
        """Return the change of the state and of one round, or of none if the number is 0."""
        version, recent = self.version, self.recent
        touched = [4 * old + self.expired_status for old in expired]
        if state is not self.state or 0 < number <= self.asked:
            touched.append(4 * number + status)
        if touched:
            recent = recent[:]
            for one in touched:
                recent[version % RECENT] = one
                version += 1
        return RoundChange(state, version, recent, found, number, status, key, expired)

    def expiring(self, now: float) -> tuple[int, ...]:
        """Return the open rounds that are too old, the oldest first."""
        if not self.open:
            return ()
        oldest = -math.inf if self.expire_after is None else self.asked + 1 - self.expire_after
        first = -math.inf if self.max_age is None else now - self.max_age
        return tuple(takewhile(lambda number: number < oldest or self.open[number].opened < first, self.open))

    # --- rounds ----------------------------------------------------------------------------------------------

    def repeated(self, key: str | None) -> NoChange[T] | None:
        """Return the round that was opened with this key, if there is one and it is still known."""
        if key is None:
            return None
        if self.database is None:
            return NoChange(*self.keys[key]) if key in self.keys else None
        rows = self.database.rounds(sql.READ_KEY, self.name, key)
        return NoChange(rows[0].number, self.database.decoded(self._round, rows[0])) if rows else None

    def find(self, given: Any) -> tuple[int, OpenRound[T]]:
        """Return the open round of a token, its text, or an object with a token. Raise a TokenError if there is none.

        Tokens are whatever has a number and an epoch.
        """
        token = Token.parse(given) if isinstance(given, str) else getattr(given, "token", given)
        number: Any = getattr(token, "number", None)
        epoch: Any = getattr(token, "epoch", None)
        if not (_is_whole(number) and _is_whole(epoch)):
            raise self._no_token(given)
        number, epoch = int(number), int(epoch)
        found = self.open.get(number)
        if found is None or found.epoch != epoch:
            raise self.refusal(number, self._status(number, epoch))
        return number, found

    def _no_token(self, given: Any) -> UnknownTokenError:
        if _is_whole(given):
            what = f"{given} is a bare number, which does not say which process opened the round"
            return UnknownTokenError(int(given), what, self.remedy)
        return UnknownTokenError(0, f"{given!r:.60} is not a token", self.remedy)

    def _status(self, number: int, epoch: int) -> int | None:
        """Return the status of a round that is not open; None if it was never opened here, in this epoch."""
        if number in self.open or not 1 <= number <= self.asked:
            return None
        if self.database is None:
            known, status = (self.history or {}).get(number, (epoch, EXPIRED))
            return status if known == epoch else None
        rows = self.database.rounds(sql.READ_ROUND, self.name, number)
        if not rows:
            return EXPIRED
        status = dict(unwritten(self.version, self.recent)).get(number, rows[0].status)
        return status if rows[0].epoch == epoch else None

    def refusal(self, number: int, status: int | None) -> TokenError:
        """Return the error for a round with this status; None if it was never opened here, in this epoch."""
        if status == DONE:
            return AlreadyToldError(number, "its outcome was taken already", "Nothing is to be done: it counts once")
        if status == SKIPPED:
            return SkippedTokenError(number, "it was skipped", "Skip only rounds whose outcome will not come")
        if not 1 <= number <= self.asked:
            what = f"this {self.kind} never gave it out"
            return UnknownTokenError(number, what, f"Its tokens so far are 1 to {self.asked}. {self.remedy}")
        what = "it is of another epoch: of another object, or opened after the backup that this one was restored from"
        if status is not None:
            what = f"it is older than {self.closed_kept} rounds, and what became of it is not known any more"
        return UnknownTokenError(number, what, self.remedy)

    def tokens(self) -> tuple[Token, ...]:
        """Return the tokens of the open rounds, oldest first."""
        return tuple(Token(number, None, found.epoch) for number, found in self.open.items())

    # --- storage ---------------------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """Return the state as bytes."""
        return self.encode_state(self.state) + self.recent.tobytes()

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        """Become what the database holds. Raise a ValueError, LookupError, TypeError or ArithmeticError if forged."""
        if not (0 <= version <= LARGEST_COUNT and 0 <= asked <= LARGEST_COUNT):
            raise ValueError("a count is absurd")
        self.database, self.name = database, name
        data, recent = split_state(state)
        new = self.decode_state(data, asked)
        is_near = self.history is None and 0 <= version - self.version <= RECENT and self.asked <= asked
        rounds = dict(self.open) if is_near else {}
        for row in database.rounds(sql.READ_ROUNDS, name, self.asked if is_near else 0, asked):
            rounds[row.number] = self._round(row)
        changes = list(touched(self.version, version, recent)) if is_near else []
        for number in {number for number, status in changes if status == OPEN and number in self.open}:
            rounds |= {row.number: self._round(row) for row in database.rounds(sql.READ_ROUND, name, number)}
        for number, status in (*changes, *unwritten(version, recent)):
            if status != OPEN:
                rounds.pop(number, None)
        if not is_near:
            self.require_rounds(new, rounds, asked)
        self.state, self.recent, self.open = new, recent, rounds
        self.asked, self.version, self.history = asked, version, None  # an old version refuses every write

    def _round(self, row: RoundRow) -> OpenRound[T]:
        return OpenRound(self.decode_round(row), row.epoch, row.opened)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def touched(first: int, version: int, recent: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the rounds that were touched between two versions, with their status."""
    return (divmod(recent[place % RECENT], 4) for place in range(first, version))


def unwritten(version: int, recent: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the closed rounds whose rows still say that they are open, with their status."""
    return (one for one in touched(version - version % WRITE_EVERY, version, recent) if one[1] != OPEN)


def split_state(state: bytes) -> tuple[bytes, array[int]]:
    """Return a stored state and the recent rounds behind it. Raise a ValueError or TypeError if there are none."""
    recent = array("q", state[-_RECENT_BYTES:])
    if len(recent) != RECENT:
        raise ValueError("the recent rounds are missing")
    return state[:-_RECENT_BYTES], recent
