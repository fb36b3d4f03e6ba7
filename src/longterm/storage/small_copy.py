"""Copies of objects with a small state, which every change writes whole, and with open rounds.

A subclass says how states and rounds are stored as bytes. Pacers and prediction intervals use it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from longterm.errors import AlreadyToldError, SkippedTokenError, UnknownTokenError
from longterm.storage import schema as sql
from longterm.storage.database import Database, RoundRow
from longterm.storage.packing import LARGEST_COUNT
from longterm.storage.schema import Statement

DONE, SKIPPED = 1, 2
"""The status of a closed round."""
CLOSED_KEPT = 10_000
"""The age, in rounds since, after which closed rounds are deleted, and their keys and tokens are unknown."""
DELETE_EVERY = 64

S = TypeVar("S")
T = TypeVar("T")


class OpenRound(NamedTuple, Generic[T]):
    """An open round."""

    content: T
    epoch: int


class RoundChange(NamedTuple, Generic[S, T]):
    """A new state, and one round that is opened or closed by it."""

    state: S
    version: int
    number: int
    round: OpenRound[T]
    status: int
    is_new: bool
    key: str | None = None

    def statements(self, copy: SmallCopy[S, T], name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return the statements that write it."""
        update = sql.UPDATE_OBJECT, (self.version, now, copy.encode_state(self.state), name, copy.version)
        if self.is_new:
            content = copy.encode_round(self.round.content)
            given = self.number, self.status, self.round.epoch, now, self.key, content, name, self.version
            return (update, (sql.INSERT_ROUND, given)), 2
        close = sql.close_rounds(name, self.status, [self.number])
        delete = sql.DELETE_ROUNDS, (name, copy.asked - CLOSED_KEPT)
        return (update, close, delete) if self.number % DELETE_EVERY == 0 else (update, close), 2

    def apply(self, copy: SmallCopy[S, T]) -> None:
        """Apply it to a copy."""
        copy.state, copy.version = self.state, self.version
        copy.asked = max(copy.asked, self.number)
        if self.status == sql.OPEN:
            copy.open[self.number] = self.round
        else:
            copy.open.pop(self.number, None)
        if copy.history is not None:
            copy.history[self.number] = self.round.epoch, self.status
            copy.history.pop(self.number - CLOSED_KEPT, None)
            if self.key is not None:
                copy.keys[self.key] = self.number, self.round
                if len(copy.keys) > CLOSED_KEPT:
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

    def __init__(self, state: S) -> None:
        self.state = state
        self.version = self.asked = 0
        self.open: dict[int, OpenRound[T]] = {}
        self.history: dict[int, tuple[int, int]] | None = {}
        """Epoch and status of rounds; None with a database."""
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

    def opening(self, state: S, content: T, epoch: int, key: str | None, status: int = sql.OPEN) -> RoundChange[S, T]:
        """Return the change that opens a round."""
        return RoundChange(state, self.version + 1, self.asked + 1, OpenRound(content, epoch), status, True, key)

    def closing(self, number: int, state: S, status: int) -> RoundChange[S, T]:
        """Return the change that closes an open round."""
        return RoundChange(state, self.version + 1, number, self.open[number], status, False)

    def repeated(self, key: str, database: Database | None, name: str) -> NoChange[T] | None:
        """Return the round that was opened with this key, if it is still known."""
        if database is None:
            return NoChange(*self.keys[key]) if key in self.keys else None
        rows = database.rounds(sql.READ_KEY, name, key)
        return NoChange(rows[0].number, OpenRound(self.decode_round(rows[0]), rows[0].epoch)) if rows else None

    def require_open(self, number: int, epoch: int, database: Database | None, name: str) -> None:
        """Raise a TokenError that says why there is no open round with this number and epoch."""
        found = self.open.get(number)
        if found is not None and found.epoch == epoch:
            return
        if database is None:
            known, status = (self.history or {}).get(number, (-1, sql.OPEN))
        else:
            rows = database.rounds(sql.READ_ROUND, name, number)
            known, status = (rows[0].epoch, rows[0].status) if rows else (-1, sql.OPEN)
        if known == epoch and status == DONE:
            raise AlreadyToldError(number, "its outcome was taken already", "Nothing is to be done: it counts once")
        if known == epoch and status == SKIPPED:
            raise SkippedTokenError(number, "it was skipped", "Skip only rounds whose outcome will not come")
        raise UnknownTokenError(number, "no round here has this number and epoch", self.remedy)

    def encode(self) -> bytes:
        """Return the state as bytes."""
        return self.encode_state(self.state)

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        """Become what the database holds. Raise a ValueError, LookupError, TypeError or ArithmeticError if forged."""
        if not (0 <= version <= LARGEST_COUNT and 0 <= asked <= LARGEST_COUNT):
            raise ValueError("a count is absurd")
        found = self.decode_state(state)
        rows = database.rounds(sql.READ_ROUNDS, name, 0, asked)
        rounds = {row.number: OpenRound(self.decode_round(row), row.epoch) for row in rows}
        self.require_rounds(found, rounds, asked)
        self.state, self.open, self.version, self.asked, self.history = found, rounds, version, asked, None
