"""Copies of objects with a small state, which is written whole, and with open rounds.

A subclass says how states and rounds are stored as bytes. A change opens a round, closes rounds, or both. One that
leaves the state as it is inserts a row only. Another one also raises the version, by one for each round that it
touches. The last `RECENT` rounds touched are stored behind the state with their status, so that a replica that is not
further behind drops those and reads only new rounds. The rows of closed rounds are written for up to `WRITE_EVERY` of
them at once, so that most calls are one statement.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from longterm.errors import AlreadyToldError, SkippedTokenError, TokenError, UnknownTokenError
from longterm.storage import schema as sql
from longterm.storage.database import Database, RoundRow
from longterm.storage.packing import LARGEST_COUNT
from longterm.storage.schema import Statement

DONE, SKIPPED, EXPIRED = 1, 2, 3
"""The status of a closed round."""
CLOSED_KEPT = 10_000
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
    """The state after a round is opened, or rounds are closed, or both."""

    state: S
    version: int
    recent: array[int]
    closed: tuple[int, ...]
    status: int
    """The status of the closed rounds."""
    number: int = 0
    """The round that is opened; 0 for none."""
    round: OpenRound[T] = OpenRound(None, 0, 0.0)  # type: ignore[arg-type]
    key: str | None = None

    def statements(self, copy: SmallCopy[S, T], name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return the statements that write it."""
        written: list[Statement] = []
        if self.version != copy.version:
            state = copy.encode_state(self.state) + self.recent.tobytes()
            written.append((sql.UPDATE_OBJECT, (self.version, now, state, name, copy.version)))
        if self.number:
            content, epoch, opened = self.round
            given = self.number, sql.OPEN, epoch, opened, self.key, copy.encode_round(content), name, self.version
            written.append((sql.INSERT_ROUND, given))
        guarded = len(written)
        if self.version // WRITE_EVERY != copy.version // WRITE_EVERY:
            closed = list(unwritten(copy.version, copy.recent)) + [(number, self.status) for number in self.closed]
            for status in (DONE, SKIPPED, EXPIRED):
                numbers = [number for number, found in closed if found == status]
                parts = [numbers[start : start + 500] for start in range(0, len(numbers), 500)]
                written += [sql.close_rounds(name, status, part) for part in parts]
            written.append((sql.DELETE_ROUNDS, (name, copy.asked - copy.closed_kept)))
        return written, guarded

    def apply(self, copy: SmallCopy[S, T]) -> None:
        """Apply it to a copy: first the rounds, then the version and the count that a stale copy is read from."""
        history = copy.history
        for number in self.closed:
            if history is not None and number in copy.open:
                history[number] = copy.open[number].epoch, self.status
            copy.open.pop(number, None)
        if self.number:
            copy.open[self.number] = self.round
        copy.state, copy.version, copy.recent = self.state, self.version, self.recent
        if self.number:
            copy.asked = self.number
            if history is not None and self.key is not None:
                copy.keys[self.key] = self.number, self.round
        if history is not None:
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


class SmallCopy(ABC, Generic[S, T]):
    """A copy of an object with a small state.

    Parameters
    ----------
    state : object
        The state of a new object.
    """

    kind: str
    remedy: ClassVar[str] = "Give what the call that opened the round returned, or its text"
    closed_kept = CLOSED_KEPT
    """The age, in rounds since, after which closed rounds are deleted, and their keys and tokens are unknown."""

    def __init__(self, state: S) -> None:
        self.state = state
        self.version = self.asked = 0
        self.recent = array("q", bytes(_RECENT_BYTES))
        self.open: dict[int, OpenRound[T]] = {}
        self.history: dict[int, tuple[int, int]] | None = {}
        """Epoch and status of closed rounds; None with a database."""
        self.keys: dict[str, tuple[int, OpenRound[T]]] = {}
        """Rounds by key, without a database."""

    @abstractmethod
    def encode_state(self, state: S) -> bytes:
        """Return a state as bytes."""

    @abstractmethod
    def decode_state(self, data: bytes) -> S:
        """Return a state from bytes. Raise a ValueError, LookupError, TypeError or ArithmeticError if forged."""

    @abstractmethod
    def encode_round(self, content: T) -> bytes:
        """Return an open round as bytes."""

    @abstractmethod
    def decode_round(self, row: RoundRow) -> T:
        """Return an open round from its row. Raise as `decode_state` does."""

    def require_rounds(self, state: S, rounds: dict[int, OpenRound[T]], asked: int) -> None:
        """Raise a ValueError unless stored rounds can be open in this state."""

    def opening(
        self, state: S, content: T, epoch: int, key: str | None, expired: tuple[int, ...] = ()
    ) -> RoundChange[S, T]:
        """Return the change that opens a round after others have expired."""
        number, opened = self.asked + 1, OpenRound(content, epoch, time.time())
        touched = [4 * one + EXPIRED for one in expired] + ([] if state is self.state else [4 * number + sql.OPEN])
        return RoundChange(state, *self._touching(touched), expired, EXPIRED, number, opened, key)

    def closing(self, number: int, state: S, status: int) -> RoundChange[S, T]:
        """Return the change that closes an open round."""
        return RoundChange(state, *self._touching([4 * number + status]), (number,), status)

    def _touching(self, touched: list[int]) -> tuple[int, array[int]]:
        """Return the version and the recent rounds after a change of these rounds, each with its status."""
        if not touched:
            return self.version, self.recent
        recent = self.recent[:]
        for place, code in enumerate(touched, self.version):
            recent[place % RECENT] = code
        return self.version + len(touched), recent

    def repeated(self, key: str, database: Database | None, name: str) -> NoChange[T] | None:
        """Return the round that was opened with this key, if it is still known."""
        if database is None:
            return NoChange(*self.keys[key]) if key in self.keys else None
        rows = database.rounds(sql.READ_KEY, name, key)
        return NoChange(rows[0].number, database.decoded(self._round, rows[0])) if rows else None

    def require_open(self, number: int, epoch: int, database: Database | None, name: str) -> OpenRound[T]:
        """Return the open round with this number and epoch. Raise a TokenError that says why there is none."""
        found = self.open.get(number)
        if found is not None and found.epoch == epoch:
            return found
        if found is not None or not 1 <= number <= self.asked:
            status = None
        elif database is None:
            known, status = (self.history or {}).get(number, (epoch, EXPIRED))
            status = status if known == epoch else None
        else:
            rows = database.rounds(sql.READ_ROUND, name, number)
            status = EXPIRED if not rows else rows[0].status if rows[0].epoch == epoch else None
            if status == sql.OPEN:
                status = dict(unwritten(self.version, self.recent)).get(number)
        raise self.refusal(number, status)

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

    def encode(self) -> bytes:
        """Return the state as bytes."""
        return self.encode_state(self.state) + self.recent.tobytes()

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        """Become what the database holds. Raise a ValueError, LookupError, TypeError or ArithmeticError if forged."""
        if not (0 <= version <= LARGEST_COUNT and 0 <= asked <= LARGEST_COUNT):
            raise ValueError("a count is absurd")
        new, recent = self.decode_state(state[:-_RECENT_BYTES]), array("q", state[-_RECENT_BYTES:])
        is_near = self.history is None and 0 <= version - self.version <= RECENT and self.asked <= asked
        rounds = dict(self.open) if is_near else {}
        for row in database.rounds(sql.READ_ROUNDS, name, self.asked if is_near else 0, asked):
            rounds[row.number] = self._round(row)
        for number, _ in touched(self.version if is_near else version, version, recent):
            rounds.pop(number, None)
        self.require_rounds(new, rounds, asked)
        self.state, self.recent, self.open = new, recent, rounds
        self.asked, self.version, self.history = asked, version, None  # an old version refuses every write

    def _round(self, row: RoundRow) -> OpenRound[T]:
        return OpenRound(self.decode_round(row), row.epoch, row.opened)


def touched(first: int, version: int, recent: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the rounds that were closed since a version, with their status, and those that no row says yet."""
    for place in range(min(first, version - version % WRITE_EVERY), version):
        number, status = divmod(recent[place % RECENT], 4)
        if status != sql.OPEN:
            yield number, status


def unwritten(version: int, recent: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the closed rounds whose rows still say that they are open, with their status."""
    return touched(version, version, recent)


def count_open(version: int, state: bytes, numbers: set[int]) -> int:
    """Return how many of the rounds whose rows say that they are open are so."""
    return len(numbers.difference(dict(unwritten(version, array("q", state[-_RECENT_BYTES:])))))
