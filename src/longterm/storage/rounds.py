"""Copies of objects with rounds: a state that is written whole, and rounds that are opened, changed and closed.

Each round is a row, and each row carries the version of the state that changed it last after it was opened. A call
writes the state and the rows that it changes in one transaction. A replica that is behind reads the rows that are new,
and those that were changed since its version.
A call that opens a round and leaves the state as it is inserts a row only. `docs/explanation/stored_objects.md` has a
drawing.

A subclass of `RoundsCopy` says how states and rounds are stored as bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from longterm._base import validate
from longterm.errors import (
    AlreadyToldError,
    DatabaseError,
    InputError,
    SkippedTokenError,
    TokenError,
    UnknownTokenError,
    WindowFullError,
)
from longterm.storage import schema as sql
from longterm.storage.clock import DAY
from longterm.storage.database import Database, RoundRow
from longterm.storage.packing import LARGEST_COUNT
from longterm.storage.schema import OPEN, Statement
from longterm.storage.tokens import Token

DONE, SKIPPED, EXPIRED, CORRECTED = 1, 2, 3, 4
"""The status of a closed round. A corrected one was closed before."""
SPARED = 1024
"""Rows that were changed in this many last versions are not deleted. A replica further behind reads all open rounds."""
PRUNE_EVERY = 64
"""Old rows are deleted once in this many versions."""
SET_BACK = 3600.0
"""Forgotten keys are deleted after this time in seconds: a clock that is set back by less changes no answer."""

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
    round: OpenRound[T]
    number: int
    """The round that is opened, changed or closed; 0 for none."""
    status: int
    """Its status after the call."""
    key: str | None = None
    expired: tuple[int, ...] = ()
    """Open rounds that the call closes first, since they are too old."""
    last: int = LARGEST_COUNT
    """The state depends on there being no round after this one."""

    def statements(self, copy: RoundsCopy[S, T], name: str, now: float) -> Sequence[Statement]:
        """Return the statements that write it."""
        number, before, after = self.number, copy.version, self.version
        written: list[Statement] = []
        if after != before:
            given: tuple[Any, ...] = after, now, copy.encode_state(self.state), name, before
            if self.last < LARGEST_COUNT:
                written.append((sql.UPDATE_OBJECT_UP_TO, (*given, self.last)))
            else:
                written.append((sql.UPDATE_OBJECT, given))
        content, epoch, opened = self.round
        data = b"" if not number else copy.encode_round(content) if self.status == OPEN else copy.record(content)
        if number > copy.asked:
            given = name, number, self.status, epoch, opened, data
            if written:
                written.append((sql.INSERT_ROUND, given))
            else:
                written.append((sql.OPEN_ROUND, (*given[1:], name, before)))
        elif number:
            written.append((sql.UPDATE_ROUND, (self.status, after, data, name, number)))
        if self.key is not None:
            if copy.forgotten[0] == self.key:
                written.append((sql.DELETE_KEY, (name, *copy.forgotten)))
            answer = data if self.status == CORRECTED else copy.encode_round(content)
            written.append((sql.INSERT_KEY, (name, self.key, number, self.status, epoch, opened, answer)))
        for old in self.expired:
            data = copy.record(copy.open[old].content)
            written.append((sql.UPDATE_ROUND, (copy.expired_status, after, data, name, old)))
        if after // PRUNE_EVERY != before // PRUNE_EVERY:
            written.append((sql.DELETE_ROUNDS, (name, copy.asked - copy.closed_kept, after - SPARED)))
            written.append((sql.DELETE_KEYS, (name, now - copy.remember - SET_BACK)))
        written += copy.further_statements(self)
        return written

    def apply(self, copy: RoundsCopy[S, T]) -> None:
        """Apply it to a copy: first the rounds, then the version and the count that a stale copy is read from."""
        number, history = self.number, copy.history
        for old in self.expired:
            if history is not None and old in copy.open:
                history[old] = copy.open[old].epoch, copy.expired_status, copy.record(copy.open[old].content)
            copy.open.pop(old, None)
        if number and self.status == OPEN:
            copy.note_open(number, self.round)
        elif number:
            if history is not None:
                history[number] = self.round.epoch, self.status, copy.record(self.round.content)
            copy.open.pop(number, None)
        copy.state, copy.version = self.state, self.version
        copy.asked = max(copy.asked, number)
        if self.key is not None and copy.database is not None:
            copy.note_key(self.key, number, self.round)
        if history is not None:
            oldest = copy.asked - copy.closed_kept
            if oldest > 0:
                for old in (*self.expired, number, oldest):
                    if old <= oldest:
                        history.pop(old, None)
            if self.key is not None:
                copy.keys.pop(self.key, None)  # a forgotten one, so that the oldest keys come first
                copy.keys[self.key] = number, self.round
            while copy.keys and copy.is_forgotten(*next(iter(copy.keys.values())), self.round.opened - SET_BACK):
                copy.keys.pop(next(iter(copy.keys)), None)


class NoChange(NamedTuple, Generic[T]):
    """A call that changes nothing: one with a key that was used before, for example."""

    number: int
    round: OpenRound[T]

    def statements(self, copy: Any, name: str, now: float) -> Sequence[Statement]:
        """Return no statements."""
        return ()

    def apply(self, copy: Any) -> None:
        """Do nothing."""


NOTHING: NoChange[Any] = NoChange(0, OpenRound(None, 0, 0.0))


class Window(NamedTuple):
    """The limits of open rounds, and the time for which keys are remembered.

    Parameters
    ----------
    max_in_flight : int
        The largest number of open rounds.
    expire_after : int, optional
        The age, in rounds opened since, after which an open round expires.
    max_age : float, optional
        The age in seconds after which it expires.
    remember : float
        The seconds for which an idempotency key is remembered after its round was opened, and at least while the round
        is open.
    """

    max_in_flight: int
    expire_after: int | None = None
    max_age: float | None = None
    remember: float = DAY

    @classmethod
    def of(cls, max_in_flight: int, expire_after: int | None, max_age: float | None, remember: float) -> Window:
        """Return a window of these limits, or raise an InputError."""
        return cls(
            validate.count("max_in_flight", max_in_flight),
            None if expire_after is None else validate.count("expire_after", expire_after),
            None if max_age is None else validate.positive_scalar("max_age", max_age),
            validate.positive_scalar("remember", remember),
        )


class RoundsCopy(ABC, Generic[S, T]):
    """A copy of an object with rounds.

    Parameters
    ----------
    state : object
        The state of a new object.
    window : Window
        The limits of open rounds.
    """

    kind: str
    remedy: ClassVar[str] = "Give what the call that opened the round returned, or its text"
    expired_status = EXPIRED
    closed_kept = 10_000
    """The age, in rounds since, after which closed rounds are deleted, and their tokens are unknown."""

    def __init__(self, state: S, window: Window) -> None:
        self.state = state
        self.max_in_flight, self.expire_after, self.max_age, self.remember = window
        self.version = self.asked = 0
        self.open: dict[int, OpenRound[T]] = {}
        """The open rounds in the order of their numbers."""
        self._times: list[tuple[float, int]] = []
        """A heap of the times and numbers of open rounds, and of some closed ones, if there is a `max_age`."""
        self.database: Database | None = None
        self.name = ""
        self.history: dict[int, tuple[int, int, bytes]] | None = {}
        """Epoch, status and record of closed rounds; None with a database."""
        self.forgotten: tuple[str, int] = "", 0
        """A key that was looked up and is forgotten, and its round. The change that uses the key again deletes it."""
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

    def record(self, content: T) -> bytes:
        """Return what is kept of a closed round, for corrections. That of a corrected round is its content."""
        return b""

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

    def closing(self, number: int, state: S, status: int, last: int = LARGEST_COUNT) -> RoundChange[S, T]:
        """Return the change that closes an open round."""
        return self.changing(state, number, self.open[number], status, last=last)

    def expiry(self, state: S, expired: tuple[int, ...]) -> RoundChange[S, T]:
        """Return the change that closes rounds which are too old."""
        return self.changing(state, 0, NOTHING.round, OPEN, expired=expired)

    def changing(
        self,
        state: S,
        number: int,
        found: OpenRound[T],
        status: int,
        key: str | None = None,
        expired: tuple[int, ...] = (),
        last: int = LARGEST_COUNT,
    ) -> RoundChange[S, T]:
        """Return the change of the state and of one round, or of none if the number is 0."""
        is_new = state is not self.state or 0 < number <= self.asked or bool(expired)
        if self.max_age is not None:  # rounds that this copy has not read may be due first
            last = min(last, self.asked)
        return RoundChange(state, self.version + is_new, found, number, status, key, expired, last)

    def require_window(self, expired: tuple[int, ...]) -> None:
        """Raise a WindowFullError if as many rounds are open as were allowed, without those that expire."""
        if len(self.open) - len(expired) >= self.max_in_flight:
            raise WindowFullError(
                f"{self.max_in_flight} rounds are open, the oldest is {next(iter(self.open))}. Tell, settle or skip "
                f"some of them, or give this {self.kind} a larger max_in_flight, a smaller expire_after, or a max_age."
            )

    # --- the age of rounds -----------------------------------------------------------------------------------

    def note_open(self, number: int, found: OpenRound[T]) -> None:
        """Put an open round into the copy."""
        if self.max_age is not None and number not in self.open:
            heappush(self._times, (found.opened, number))
        self.open[number] = found

    def outnumbered(self) -> tuple[int, ...]:
        """Return the open rounds that are too old, in rounds, once another round is opened; the oldest first."""
        if self.expire_after is None:
            return ()
        found, first = [], self.asked + 1 - self.expire_after
        for number in self.open:
            if number >= first:
                break
            found.append(number)
        return tuple(found)

    def is_due(self, now: float) -> bool:
        """Return whether a round is too old, in seconds."""
        return self.max_age is not None and len(self.outdated(now)) > 0

    def outdated(self, now: float) -> tuple[int, ...]:
        """Return the open rounds that are too old in seconds, the oldest first."""
        times = self._times
        if self.max_age is None:
            return ()
        while times and times[0][1] not in self.open:
            heappop(times)
        first = now - self.max_age
        if not times or times[0][0] >= first:
            return ()
        return tuple(sorted(number for number, found in self.open.items() if found.opened < first))

    # --- rounds ----------------------------------------------------------------------------------------------

    def is_forgotten(self, number: int, found: OpenRound[T], now: float) -> bool:
        """Return whether the key of a round is not remembered any more."""
        return found.opened < now - self.remember and number not in self.open

    def repeated(self, key: str | None, now: float, *, is_correction: bool = False) -> NoChange[T] | None:
        """Return the round that was opened with this key, if there is one and it is still remembered."""
        found = self._known(key, now)
        if found is not None and isinstance(found.round.content, bytes) != is_correction:
            what = f"{key!r} names a {'request' if is_correction else 'correction'}"
            raise InputError("key", what, "Use each key either for a request or for a correction")
        return found

    def _known(self, key: str | None, now: float) -> NoChange[T] | None:
        if key is None:
            return None
        if self.database is None:
            found = NoChange(*self.keys[key]) if key in self.keys else None
        else:
            found = self.database.row(self._place_of(key), self._decode_key, sql.READ_KEY, self.name, key)
        if found is None or found.round.opened >= now - self.remember:
            return found
        if self.database is None:
            return None if self.is_forgotten(*found, now) else found
        # Another process may have closed the round since this copy was read.
        rows = self.database.rounds(sql.READ_ROUND, self.name, found.number)
        is_too_old = self.max_age is not None and found.round.opened < now - self.max_age
        if rows and rows[0].status == OPEN and not is_too_old:
            return found
        self.forgotten = key, found.number
        return None

    def _decode_key(self, database: Database, row: Any) -> NoChange[T]:
        """Return the round of a row of `longterm_keys`."""
        (checked,) = database.checked([row])
        return NoChange(checked.number, database.decoded(self._round, checked))

    def note_key(self, key: str, number: int, found: OpenRound[T]) -> None:
        """Let later calls of this transaction find a key."""
        assert self.database is not None
        self.database.note_row(self._place_of(key), NoChange(number, found))

    def _place_of(self, key: str) -> tuple[str, ...]:
        return "key", self.name, key

    def prefetch(self, keys: Sequence[str]) -> None:
        """Look up idempotency keys that calls will name, by one query."""
        if not keys or self.database is None:
            return
        database, arguments = self.database, [argument for key in sql.padded(keys) for argument in (self.name, key)]
        rows = database.read(sql.for_keys(sql.READ_KEYS, len(arguments) // 2), *arguments)
        with suppress(DatabaseError):  # this copy is behind, or a row is damaged: then only its call has the error
            found = {key: self._decode_key(database, row) for key, *row in rows}
            for key in keys:
                database.note_row(self._place_of(key), found.get(key))

    def find(self, given: Any, now: float) -> tuple[int, OpenRound[T]]:
        """Return the open round of a token, its text, or an object with a token. Raise a TokenError if there is none.

        Tokens are whatever has a number and an epoch.
        """
        number, epoch = self._token(given)
        found = self.open.get(number)
        if found is None or found.epoch != epoch:
            raise self.refusal(number, self._status(number, epoch))
        if self.max_age is not None and found.opened < now - self.max_age:
            raise self.refusal(number, self.expired_status)
        return number, found

    def closed(self, given: Any) -> tuple[int, int, bytes]:
        """Return the number, epoch and record of a closed round. Raise a TokenError if it is open or not known."""
        number, epoch = self._token(given)
        status, known, record = EXPIRED, epoch, b""
        if number in self.open:
            status, known = OPEN, self.open[number].epoch
        elif self.database is None:
            known, status, record = (self.history or {}).get(number, (epoch, EXPIRED, b""))
        else:
            for row in self.database.rounds(sql.READ_ROUND, self.name, number):
                status, known, record = row.status, row.epoch, row.content
        if status == OPEN and known == epoch:  # another process may have opened it
            raise UnknownTokenError(number, "it is open", "Settle or skip it, and correct only what was settled")
        if known != epoch or not record or number <= self.asked - self.closed_kept:
            raise self.refusal(number, None if known != epoch else EXPIRED)
        return number, epoch, record

    def _token(self, given: Any) -> tuple[int, int]:
        """Return the number and the epoch of a token, its text, or an object with a token."""
        token = Token.parse(given) if isinstance(given, str) else getattr(given, "token", given)
        number: Any = getattr(token, "number", None)
        epoch: Any = getattr(token, "epoch", None)
        if not (_is_whole(number) and _is_whole(epoch)):
            raise self._no_token(given)
        return int(number), int(epoch)

    def _no_token(self, given: Any) -> UnknownTokenError:
        if _is_whole(given):
            what = f"{given} is a bare number, which does not say which process opened the round"
            return UnknownTokenError(int(given), what, self.remedy)
        return UnknownTokenError(0, f"{given!r:.60} is not a token", self.remedy)

    def _status(self, number: int, epoch: int) -> int | None:
        """Return the status of a round that is not open; None if it was never opened here, in this epoch."""
        if number in self.open or not 1 <= number <= self.asked:
            return None
        if number <= self.asked - self.closed_kept:
            return EXPIRED
        if self.database is None:
            known, status, _ = (self.history or {}).get(number, (epoch, EXPIRED, b""))
            return status if known == epoch else None
        rows = self.database.rounds(sql.READ_ROUND, self.name, number)
        if not rows:
            return EXPIRED
        return rows[0].status if rows[0].epoch == epoch else None

    def refusal(self, number: int, status: int | None) -> TokenError:
        """Return the error for a round with this status; None if it was never opened here, in this epoch."""
        if status in (DONE, CORRECTED):
            return AlreadyToldError(number, "it has an outcome already", "Do nothing: the outcome counts once")
        if status == SKIPPED:
            return SkippedTokenError(number, "it was skipped", "Skip only rounds whose outcome will not come")
        if not 1 <= number <= self.asked:
            what = f"this {self.kind} did not issue it"
            return UnknownTokenError(number, what, f"Its tokens so far are 1 to {self.asked}. {self.remedy}")
        what = "it has another epoch: it belongs to another object, or was opened after the backup that was restored"
        if status is not None:
            what = f"it is older than {self.closed_kept} rounds, and its outcome is no longer stored"
        return UnknownTokenError(number, what, self.remedy)

    def tokens(self) -> tuple[Token, ...]:
        """Return the tokens of the open rounds, oldest first."""
        return tuple(Token(number, epoch=found.epoch) for number, found in self.open.items())

    # --- storage ---------------------------------------------------------------------------------------------

    def mark(self) -> Mapping[str, Any]:
        """Return what `reset` needs."""
        return {name: value.copy() if isinstance(value, (dict, list)) else value for name, value in vars(self).items()}

    def reset(self, mark: Mapping[str, Any]) -> None:
        """Become what the copy was when `mark` was called. Idempotent."""
        vars(self).update(mark)

    def encode(self) -> bytes:
        """Return the state as bytes."""
        return self.encode_state(self.state)

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        """Become what the database holds. Raise a ValueError, LookupError, TypeError or ArithmeticError if forged."""
        if not (0 <= version <= LARGEST_COUNT and 0 <= asked <= LARGEST_COUNT):
            raise ValueError("a count is out of range")
        self.database, self.name = database, name
        is_near = self.history is None and 0 <= version - self.version <= SPARED and self.asked <= asked
        new = self.decode_state(state, asked) if not is_near or version != self.version else self.state
        if is_near:
            rows = database.rounds(sql.READ_CHANGED, name, self.version) if version != self.version else []
            rows += database.rounds(sql.READ_NEW, name, self.asked)
        else:
            rows = database.rounds(sql.READ_OPEN, name)
        opened = {row.number: self._round(row) for row in rows if row.status == OPEN}
        if not is_near:
            self.require_rounds(new, opened, asked)
            self.open, self._times = {}, []
        for row in rows:
            if row.status != OPEN:
                self.open.pop(row.number, None)
        for number in sorted(opened):
            self.note_open(number, opened[number])
        self.state = new
        self.asked, self.version, self.history = asked, version, None  # an old version refuses every write

    def _round(self, row: RoundRow) -> OpenRound[T]:
        content: Any = row.content if row.status == CORRECTED else self.decode_round(row)
        return OpenRound(content, row.epoch, row.opened)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
