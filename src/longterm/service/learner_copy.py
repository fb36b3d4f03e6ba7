"""The state of a live learner with its open rounds, and the changes that calls make to it.

A round is opened by `ask` and closed once: told, skipped or expired. Opening inserts a row. Closing writes the new
state, which holds the numbers of the last `RECENT` closed rounds, so that one statement is enough. The status of closed
rounds is written to their rows for `FLUSH_EVERY` of them at once. Other replicas learn from the same numbers which
rounds to drop. Rows of closed rounds are deleted when they are older than `expire_after`.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from longterm._arrays import Array
from longterm.engines.sums import Sums
from longterm.errors import (
    AlreadyToldError,
    ExpiredTokenError,
    NonFiniteError,
    SkippedTokenError,
    TokenError,
    UnknownTokenError,
    WindowFullError,
)
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.service.state import LiveState, require_near
from longterm.service.tokens import REMEDY, Token
from longterm.storage import schema as sql
from longterm.storage.database import Database
from longterm.storage.packing import (
    LARGEST_COUNT,
    StatePacker,
    raw_bytes,
    require_sound,
    restored_state,
    unpack_checked,
)
from longterm.storage.schema import Statement

KIND = "live learner"
TOLD, SKIPPED, EXPIRED = 1, 2, 3
"""The status of a closed round."""
RECENT = 64
FLUSH_EVERY = 32
_SUMS = ("loss", "signed", "hard", "squared", "largest")


class Counters(NamedTuple):
    """The numbers of rounds by what became of them."""

    told: int = 0
    skipped: int = 0
    expired: int = 0
    losses_told: int = 0
    largest_delay: int = 0

    @property
    def closed(self) -> int:
        """The number of closed rounds, which is the version of the state."""
        return self.told + self.skipped + self.expired


class RoundOpened(NamedTuple):
    """An ask: a round is opened, and rounds that became too old expire."""

    token: Token
    opened: float
    """The time, in seconds since 1970."""
    key: str | None
    expiry: RoundsClosed | None

    def statements(self, copy: LearnerCopy, name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return the statements that write it."""
        (number, x, epoch), opened, key, expiry = self
        version = copy.version if expiry is None else expiry.version
        insert = sql.INSERT_ROUND, (number, sql.OPEN, epoch, opened, key, raw_bytes(x), name, version)
        if expiry is None:
            return (insert,), 1
        (update, *others), _ = expiry.statements(copy, name, now)
        return (update, insert, *others), 2

    def apply(self, copy: LearnerCopy) -> None:
        """Apply it to a copy."""
        token, opened, key, expiry = self
        if expiry is not None:
            expiry.apply(copy)
        number = token.number
        copy.open[number] = token
        copy.asked = number
        if copy.max_age is not None:
            copy.opened[number] = opened
        if copy.closed is not None:
            copy.closed.pop(number - copy.expire_after - 1, None)
            if key is not None:
                copy.keys[key] = token
                for old in list(takewhile(lambda key: copy.keys[key].number < copy.oldest_kept, copy.keys)):
                    copy.keys.pop(old, None)


class RoundRepeated(NamedTuple):
    """An ask with a key that was used before. Nothing changes."""

    token: Token

    def statements(self, copy: LearnerCopy, name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return no statements."""
        return (), 0

    def apply(self, copy: LearnerCopy) -> None:
        """Do nothing."""


class RoundsClosed(NamedTuple):
    """A tell, a skip or an expiry: rounds are closed, and a tell leads to another state."""

    numbers: tuple[int, ...]
    status: int
    state: Any
    sums: Sums
    counters: Counters
    version: int
    recent: array[int]
    flushed: int

    def statements(self, copy: LearnerCopy, name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return the statements that write it."""
        numbers, status, state, sums, counters, version, recent, flushed = self
        blob = copy.encode_state(state, sums, counters, recent, flushed)
        update = sql.UPDATE_OBJECT, (version, now, blob, name, copy.version)
        if flushed == copy.flushed:
            return (update,), 1
        closed = [divmod(copy.recent[v % RECENT], 4) for v in range(copy.flushed, copy.version)]
        closed += [(number, status) for number in numbers]
        marks = []
        for mark in (TOLD, SKIPPED, EXPIRED):
            marked = [number for number, found in closed if found == mark]
            marks += [sql.close_rounds(name, mark, marked[k : k + 500]) for k in range(0, len(marked), 500)]
        return (update, *marks, (sql.DELETE_ROUNDS, (name, copy.oldest_kept))), 1

    def apply(self, copy: LearnerCopy) -> None:
        """Apply it to a copy."""
        numbers, status, copy.state, copy.sums, copy.counters, copy.version, copy.recent, copy.flushed = self
        for number in numbers:
            copy.open.pop(number, None)
            copy.opened.pop(number, None)
            if copy.closed is not None:
                copy.closed[number] = status


class LearnerCopy:
    """A copy of a live learner's state.

    Parameters
    ----------
    learner : Learner
        The rule.
    max_in_flight, expire_after : int
        The largest number of open rounds, and the age in rounds at which they expire.
    max_age : float or None
        The age in seconds at which they expire.
    """

    kind = KIND

    def __init__(self, learner: Learner[Any], max_in_flight: int, expire_after: int, max_age: float | None) -> None:
        self._learner = learner
        self.max_in_flight, self.expire_after, self.max_age = max_in_flight, expire_after, max_age
        self._start = self.state = learner.init()
        self._x = x = learner.ask(self.state)
        self._is_single = x.ndim == 1
        self.sums = Sums.zero(x.shape[:-1], 0)
        self.counters = Counters()
        self.version = self.asked = self.flushed = 0
        self.open: dict[int, Token] = {}
        self.opened: dict[int, float] = {}
        """The times of the asks of open rounds, with `max_age`."""
        self.recent = array("q", bytes(8 * RECENT))
        self.closed: dict[int, int] | None = {}
        """The status of closed rounds by number, without a database."""
        self.keys: dict[str, Token] = {}
        """Rounds by the key of their ask, without a database."""
        others = {
            "sums": np.zeros((len(_SUMS), *x.shape[:-1])),
            "counters": np.zeros(len(Counters._fields) + 1, dtype=np.int64),
            "recent": np.zeros(RECENT, dtype=np.int64),
        }
        names = {"counters": [*Counters._fields, "flushed"]}
        self._packer = StatePacker(self.state, names, others)

    @property
    def oldest_kept(self) -> int:
        """The number of the oldest round that has not expired."""
        return self.asked - self.expire_after

    # --- changes ---------------------------------------------------------------------------------------------

    def opening(self, epoch: int, now: float, key: str | None) -> RoundOpened:
        """Return the change that opens a round with the learner's present decision."""
        number, expiry = self.asked + 1, None
        if self.open:
            expired = self._expiring(number - self.expire_after, now)
            if len(self.open) - len(expired) >= self.max_in_flight:
                raise WindowFullError(
                    f"{self.max_in_flight} rounds are in flight, the oldest is {next(iter(self.open))}. Tell or skip "
                    "some of them, or make the learner with a larger max_in_flight; with expire_after < max_in_flight "
                    "it is never full."
                )
            if expired:
                counters = self.counters._replace(expired=self.counters.expired + len(expired))
                expiry = self._closing(expired, EXPIRED, self.state, self.sums, counters)
        x = np.array(self._learner.ask(self.state))
        x.setflags(write=False)
        return RoundOpened(Token(number, x, epoch), now, key, expiry)

    def telling(self, number: int, state: Any, feedback: Feedback) -> RoundsClosed:
        """Return the change that closes an open round with a new state. Raise a NonFiniteError if it has overflowed."""
        leaves = self._packer.leaves(state)
        if not _are_finite(leaves):
            place = next(place for place, value in enumerate(leaves) if not np.isfinite(value).all())
            what = "would hold a number that is not finite after this update"
            remedy = "Check the feedback of this round; the state is as it was"
            raise NonFiniteError(f"state.{self._packer.names[place]}", what, remedy, round=number)
        told, skipped, expired, losses_told, largest_delay = self.counters
        loss, delay = feedback.loss, self.asked - number
        counters = Counters(
            told + 1,
            skipped,
            expired,
            losses_told if loss is None else losses_told + 1,
            delay if delay > largest_delay else largest_delay,
        )
        return self._closing((number,), TOLD, state, self._sums_with(feedback.constraint, loss), counters)

    def skipping(self, number: int) -> RoundsClosed:
        """Return the change that closes an open round without feedback."""
        counters = self.counters._replace(skipped=self.counters.skipped + 1)
        return self._closing((number,), SKIPPED, self.state, self.sums, counters)

    def _closing(
        self, numbers: tuple[int, ...], status: int, state: Any, sums: Sums, counters: Counters
    ) -> RoundsClosed:
        version, recent, flushed = self.version + len(numbers), self.recent, self.flushed
        if self.closed is None:
            recent = recent[:]
            for place, number in enumerate(numbers, self.version):
                recent[place % RECENT] = 4 * number + status
            if version - flushed >= FLUSH_EVERY:
                flushed = version
        return RoundsClosed(numbers, status, state, sums, counters, version, recent, flushed)

    def _expiring(self, oldest: int, now: float) -> tuple[int, ...]:
        """Return the open rounds that are too old. They are in order, the oldest first."""
        if self.max_age is None:
            return tuple(takewhile(lambda number: number < oldest, self.open))
        first = now - self.max_age
        return tuple(takewhile(lambda number: number < oldest or self.opened[number] < first, self.open))

    def _sums_with(self, constraint: Array, loss: Array | None) -> Sums:
        """Return `Sums.add`, without making arrays for the numbers of a single learner."""
        total_loss, signed, hard, squared, largest, per_constraint = self.sums
        if not self._is_single:
            value = np.zeros(total_loss.shape) if loss is None else loss
            return self.sums.add(Feedback(None, constraint, None, value, per_constraint))
        worst = float(constraint)
        positive = worst if worst > 0.0 else 0.0
        return Sums(
            total_loss if loss is None else total_loss + float(loss),
            signed + worst,
            hard + positive,
            squared + positive * positive,
            worst if worst > largest else largest,
            per_constraint,
        )

    # --- tokens ----------------------------------------------------------------------------------------------

    def find(self, token: Token | str, database: Database | None, name: str) -> Token:
        """Return the open token that is meant. Raise a TokenError that says why there is none."""
        if isinstance(token, str):
            token = Token.parse(token)
        elif not isinstance(token, Token):
            raise _no_token(token)
        try:
            found = self.open.get(token.number)
        except TypeError:
            raise _no_token(token) from None
        if found is token:
            return token
        for part in (token.number, token.epoch):
            if isinstance(part, bool) or not isinstance(part, (int, np.integer)):
                raise _no_token(token)
        if found is None:
            raise self._why_closed(int(token.number), int(token.epoch), database, name)
        if token.epoch != found.epoch:
            raise _of_another_epoch(token.number)
        if token.x is not None and not np.array_equal(token.x, found.x):
            raise UnknownTokenError(
                token.number, "another decision has this number here", "Tell the learner that opened this round"
            )
        return found

    def _why_closed(self, number: int, epoch: int, database: Database | None, name: str) -> TokenError:
        if not 1 <= number <= self.asked:
            what = "this learner never gave it out"
            return UnknownTokenError(number, what, f"Its tokens so far are 1 to {self.asked}")
        status = None
        if database is None:
            status = (self.closed or {}).get(number)
        else:
            rows = database.rounds(sql.READ_ROUND, name, number)
            if rows and rows[0].epoch != epoch:
                return _of_another_epoch(number)
            unflushed = (divmod(self.recent[v % RECENT], 4) for v in range(self.flushed, self.version))
            status = dict(unflushed).get(number, rows[0].status if rows else None)
        if status == TOLD:
            return AlreadyToldError(number, "its feedback was taken already", "Nothing is to be done: it counts once")
        if status == SKIPPED:
            return SkippedTokenError(number, "it was skipped", "Skip only rounds whose feedback will not come")
        return ExpiredTokenError(
            number,
            f"{self.asked - number} rounds were asked for since; expire_after = {self.expire_after}, "
            f"max_age = {self.max_age}",
            "Tell sooner, or make the learner with a larger expire_after or max_age",
        )

    def token_with_key(self, key: str, database: Database | None, name: str) -> Token | None:
        """Return the token of the round that was opened with this key, if it is still known."""
        if database is None:
            return self.keys.get(key)
        rows = database.rounds(sql.READ_KEY, name, key)
        if not rows:
            return None
        (x,) = self._decisions([rows[0].content])
        return Token(rows[0].number, x, rows[0].epoch)

    # --- storage ---------------------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """Return the state as bytes."""
        return self.encode_state(self.state, self.sums, self.counters, self.recent, self.flushed)

    def encode_state(self, state: Any, sums: Sums, counters: Counters, recent: array[int], flushed: int) -> bytes:
        """Return a state as bytes."""
        if self._is_single:
            numbers = _SINGLE.pack(*sums[:5], *counters, flushed)
        else:
            whole = np.array([*counters, flushed], dtype="<i8")
            numbers = np.array(sums[:5], dtype="<f8").tobytes() + whole.tobytes()
        return self._packer.encode(state, numbers + recent.tobytes())

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        """Become what the database holds. Raise ValueError, LookupError, TypeError or ArithmeticError if forged."""
        _, arrays = unpack_checked(state)
        counts = [int(count) for count in _checked(arrays, "counters", np.int64, (len(Counters._fields) + 1,))]
        sums = _checked(arrays, "sums", np.float64, (len(_SUMS), *self._x.shape[:-1]))
        recent = array("q", _checked(arrays, "recent", np.int64, (RECENT,)).tobytes())
        *counted, flushed = counts
        counters = Counters(*counted)
        _require(min(counts) >= 0 and max(counts) <= LARGEST_COUNT and asked <= LARGEST_COUNT, "a count is absurd")
        _require(counters.losses_told <= counters.told, "there are losses of more rounds than were told")
        _require(counters.largest_delay <= asked, "a delay is longer than the run")
        _require(version == counters.closed, "the version is not the number of closed rounds")
        _require(0 <= version - flushed < FLUSH_EVERY, "too many closed rounds are not in the table")
        _require(not np.isnan(sums).any(), "a sum is not a number")
        new = restored_state(self._start, arrays)
        require_sound(self._start, new)
        _require(int(np.max(np.asarray(new.round))) <= counters.told + 1, "the state is of more rounds than were told")
        require_near(self._learner, self._learner.ask(new))
        rounds, opened = self._rounds(database, name, version, asked, recent, flushed)
        _require(len(rounds) + version == asked, "the rounds do not add up")
        self.state, self.counters, self.recent, self.flushed = new, counters, recent, flushed
        loss, signed, hard, squared, largest = sums
        self.sums = Sums(loss, signed, hard, squared, largest, self.sums.per_constraint)
        self.open, self.opened, self.version, self.asked, self.closed = rounds, opened, version, asked, None

    def _rounds(
        self, database: Database, name: str, version: int, asked: int, recent: array[int], flushed: int
    ) -> tuple[dict[int, Token], dict[int, float]]:
        """Return the open rounds, known ones that were not closed since and new ones, and the times of their asks."""
        is_known = self.closed is None and 0 <= version - self.version <= RECENT and self.asked <= asked
        found, opened = (dict(self.open), dict(self.opened)) if is_known else ({}, {})
        rows = database.rounds(sql.READ_ROUNDS, name, self.asked if is_known else 0, asked)
        for row, x in zip(rows, self._decisions([row.content for row in rows]), strict=True):
            _require(row.number >= 1 and 0 <= row.epoch < 2**63, "a round has an absurd number")
            found[row.number] = Token(row.number, x, row.epoch)
            if self.max_age is not None:
                opened[row.number] = row.opened
        for v in range(min(self.version, flushed) if is_known else flushed, version):
            found.pop(recent[v % RECENT] // 4, None)
            opened.pop(recent[v % RECENT] // 4, None)
        return found, opened

    def _decisions(self, contents: list[bytes]) -> Array:
        """Return stored decisions, one in each row. Raise a ValueError if one cannot be the learner's."""
        _require(all(len(content) == self._x.nbytes for content in contents), "a decision has the wrong size")
        stored = np.frombuffer(b"".join(contents), dtype=self._x.dtype.newbyteorder("<"))
        decisions = stored.astype(self._x.dtype).reshape(len(contents), *self._x.shape)
        _require(bool(np.isfinite(decisions).all()), "an open decision is not finite")
        require_near(self._learner, decisions)
        decisions.setflags(write=False)
        return decisions

    # --- views -----------------------------------------------------------------------------------------------

    def view(self) -> LiveState:
        """Return everything that users can read, independent of the copy."""
        state, sums = self.state, self.sums
        return LiveState(
            round=int(np.max(np.asarray(state.round))),
            x=np.array(self._learner.ask(state)),
            report={name: _copied(value) for name, value in self._learner.report(state).items()},
            asked=self.asked,
            in_flight=len(self.open),
            cumulative_loss=_copied(sums.loss),
            signed_violation=_copied(sums.signed),
            hard_violation=_copied(sums.hard),
            squared_violation=_copied(sums.squared),
            largest_violation=_copied(sums.largest),
            **self.counters._asdict(),
        )


_SINGLE = struct.Struct("<5d6q")


def _checked(arrays: dict[str, Array], name: str, dtype: Any, shape: tuple[int, ...]) -> Array:
    found = arrays.get(name)
    _require(isinstance(found, np.ndarray) and found.dtype == dtype and found.shape == shape, f"{name} does not fit")
    return found


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _are_finite(values: Iterable[Array]) -> bool:
    """Return whether all numbers are finite. A finite square of a vector proves it in half the time."""
    for value in values:
        if type(value) is not np.ndarray:
            if not math.isfinite(value):
                return False
        elif (value.ndim != 1 or not math.isfinite(value.dot(value))) and not np.isfinite(value).all():
            return False
    return True


def _copied(value: Array) -> Array:
    """Return an independent copy; a number where there is only one."""
    return np.array(value)[()]


def _no_token(given: Any) -> UnknownTokenError:
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        what = f"{given} is a bare number, which does not say which process opened the round"
        return UnknownTokenError(int(given), what, REMEDY)
    return UnknownTokenError(0, f"{given!r} is not a token", REMEDY)


def _of_another_epoch(number: int) -> UnknownTokenError:
    what = "it is of another epoch: of another learner, or opened after the backup that this one was restored from"
    return UnknownTokenError(number, what, "Leave its feedback out; here this number belongs to another round")
