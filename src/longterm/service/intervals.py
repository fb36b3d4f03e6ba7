"""Live prediction intervals: asked for by a service, told late or never, with their state in a database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from longterm._display import ReprMixin
from longterm.calibration.bases import Prediction
from longterm.calibration.certificates import Bound
from longterm.calibration.intervals import Interval, Intervals
from longterm.calibration.rule import Asked
from longterm.errors import AlreadyToldError, SkippedTokenError, TokenError, UnknownTokenError
from longterm.service.tokens import REMEDY, Token
from longterm.storage import database as sql
from longterm.storage.database import Database, Durability, Statement
from longterm.storage.packing import LARGEST_COUNT
from longterm.storage.replica import Replica, Stored

TOLD, SKIPPED = 1, 2
"""The status of a closed round."""
CLOSED_ROUNDS = 10_000
"""Older closed rounds are forgotten: their tokens are unknown then."""
DELETE_EVERY = 64


@dataclass(frozen=True)
class LiveInterval(ReprMixin):
    """An interval with the token of its round; ``str(interval)`` is the token's text.

    Parameters
    ----------
    lower, upper, prediction : float
        Limits, and the forecast they surround.
    token : Token
        Give it, or its text, to `tell` or `skip`.
    """

    lower: float
    upper: float
    prediction: float
    token: Token

    def __str__(self) -> str:
        return str(self.token)


class _Round(NamedTuple):
    """An open round: its interval and the epoch of the process that opened it."""

    interval: Interval
    epoch: int


class _Opened(NamedTuple):
    """An ask: a round is opened, and the state changes where a group is new."""

    round: _Round
    after: Intervals
    is_new_state: bool

    def statements(self, copy: _IntervalsCopy, name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return the statements that write it."""
        number, version = self.round.interval.number, copy.version + self.is_new_state
        values = number, sql.OPEN, self.round.epoch, now, None, _encode_round(self.round.interval), name, version
        insert = sql.INSERT_ROUND, values
        if not self.is_new_state:
            return (insert,), 1
        return ((sql.UPDATE_OBJECT, (version, now, _encode(self.after), name, copy.version)), insert), 2

    def apply(self, copy: _IntervalsCopy) -> None:
        """Apply it to a copy."""
        number = self.round.interval.number
        if copy.asked < number:
            copy.version += self.is_new_state
        copy.intervals, copy.asked = self.after, number
        copy.open[number] = self.round


class _Closed(NamedTuple):
    """A tell or a skip: a round is closed."""

    token: Token
    status: int
    after: Intervals

    def statements(self, copy: _IntervalsCopy, name: str, now: float) -> tuple[Sequence[Statement], int]:
        """Return the statements that write it."""
        update = sql.UPDATE_OBJECT, (copy.version + 1, now, _encode(self.after), name, copy.version)
        number = self.token.number
        close = sql.close_rounds(name, self.status, [number])
        delete = sql.DELETE_ROUNDS, (name, copy.asked - CLOSED_ROUNDS)
        return (update, close, delete) if number % DELETE_EVERY == 0 else (update, close), 2

    def apply(self, copy: _IntervalsCopy) -> None:
        """Apply it to a copy."""
        copy.intervals = self.after
        if copy.open.pop(self.token.number, None) is not None:
            copy.version += 1
        if copy.closed is not None:
            copy.closed[self.token] = self.status
            if len(copy.closed) > CLOSED_ROUNDS:
                copy.closed.pop(next(iter(copy.closed)))


class _IntervalsCopy:
    """A copy of live intervals: the rule's state, and the open rounds."""

    kind = "live intervals"

    def __init__(self, intervals: Intervals) -> None:
        self.intervals = intervals
        self.version = self.asked = 0
        self.open: dict[int, _Round] = {}
        self.closed: dict[Token, int] | None = {}
        """The status of the last closed rounds, without a database."""

    def encode(self) -> bytes:
        """Return the state as bytes."""
        return _encode(self.intervals)

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        """Become what the database holds. Raise a ValueError, LookupError or TypeError if forged."""
        _require(0 <= version <= LARGEST_COUNT and 0 <= asked <= LARGEST_COUNT, "a count is absurd")
        rounds = {
            row.number: _Round(_decode_round(row.number, row.content), row.epoch)
            for row in database.rounds(sql.READ_ROUNDS, name, 0, asked)
        }
        intervals = _decode(self.intervals, state)
        intervals.resume(asked, rounds)
        for found in rounds.values():
            _require(found.interval.asked.groups.shape[-1] <= intervals.rule.groups, "a round has too many groups")
        self.intervals, self.open, self.version, self.asked = intervals, rounds, version, asked
        self.closed = None

    def find(self, token: Token | LiveInterval | str, database: Database | None, name: str) -> Token:
        """Return the token of the open round that is meant. Raise a TokenError that says why there is none."""
        given = Token.parse(str(token)) if isinstance(token, (str, LiveInterval, Token)) else None
        if given is None:
            raise UnknownTokenError(0, f"{token!r:.60} is not a token", REMEDY)
        found = self.open.get(given.number)
        if found is not None and found.epoch == given.epoch:
            return given
        raise self._why_closed(given, database, name)

    def _why_closed(self, token: Token, database: Database | None, name: str) -> TokenError:
        status = (self.closed or {}).get(token)
        if database is not None:
            rows = database.rounds(sql.READ_ROUND, name, token.number)
            status = rows[0].status if rows and rows[0].epoch == token.epoch else None
        if status == TOLD:
            return AlreadyToldError(token.number, "its outcome was taken already", "Nothing is to be done")
        if status == SKIPPED:
            return SkippedTokenError(token.number, "it was skipped", "Skip only rounds whose outcome will not come")
        return UnknownTokenError(token.number, "no round here has this number and epoch", REMEDY)


class LiveIntervals(Stored[_IntervalsCopy], ReprMixin):
    """Prediction intervals for a service: any thread or process may ask, and tell the outcome later.

    This constructor keeps the state in memory. `LiveIntervals.open` keeps it in a database.

    Parameters
    ----------
    confidence_level : float
        Nominal coverage.
    groups : iterable of str
        Names known in advance. Other names may appear at any time.
    symmetric : bool
        One threshold of |y − prediction|, or one for each side.

    Examples
    --------
    >>> from longterm.service import LiveIntervals
    >>> live = LiveIntervals(confidence_level=0.9)
    >>> asked = live.ask(31.2, groups=["north"])
    >>> live.tell(str(asked), 33.0)
    >>> live.coverage
    {'': 1.0, 'north': 1.0}
    """

    def __init__(self, confidence_level: float = 0.9, *, groups: Iterable[str] = (), symmetric: bool = True) -> None:
        intervals = Intervals(confidence_level, groups=groups, symmetric=symmetric)
        self.confidence_level, self.symmetric = intervals.confidence_level, intervals.symmetric
        self._replica = Replica(_IntervalsCopy(intervals), [self.confidence_level, self.symmetric])

    @classmethod
    def open(
        cls,
        url: str | PathLike[str],
        confidence_level: float = 0.9,
        *,
        name: str = "intervals",
        groups: Iterable[str] = (),
        symmetric: bool = True,
        durability: Durability = "commit",
    ) -> Self:
        """Return the intervals with this name in a database, or create them there.

        Parameters
        ----------
        url : path or str
            A file for SQLite, or a URL ``postgresql://…`` (extra `postgres`).
        confidence_level, groups, symmetric
            As for new intervals. Stored ones must have the same level and symmetry, and keep their groups.
        name : str
            Their name in the database, which may hold many objects.
        durability : {"commit", "relaxed"}
            As for `LiveLearner.open`.

        Returns
        -------
        LiveIntervals

        Raises
        ------
        DatabaseError
            If the database cannot be used, or holds another object with this name.
        """
        live = cls(confidence_level, groups=groups, symmetric=symmetric)
        live._replica.attach(url, name, durability)
        return live

    def ask(self, prediction: float, groups: Iterable[str] = ()) -> LiveInterval:
        """Open a round and return its interval around a prediction; see `Intervals.ask`."""
        names = groups if isinstance(groups, str) else tuple(groups)
        interval, epoch = self._replica.transact(self._opening, prediction, names).round
        token = Token(interval.number, None, epoch)
        return LiveInterval(interval.lower, interval.upper, interval.prediction, token)

    def _opening(self, prediction: float, groups: Iterable[str]) -> _Opened:
        before = self._replica.copy.intervals
        after = before.copy()
        interval = after.ask(prediction, groups)
        return _Opened(_Round(interval, self._replica.epoch), after, len(after.names) > len(before.names))

    def tell(self, token: LiveInterval | Token | str, outcome: float) -> None:
        """Take the outcome of a round, in any order.

        Parameters
        ----------
        token : LiveInterval, Token or str
            What `ask` returned, its token, or the token's text.
        outcome : float
            The observed value.

        Raises
        ------
        TokenError
            If the token is unknown, or was told or skipped already.
        InputError
            If the outcome is not a finite number.
        """
        self._replica.transact(self._closing, token, outcome)

    def skip(self, token: LiveInterval | Token | str) -> None:
        """Close a round whose outcome will not come."""
        self._replica.transact(self._closing, token, None)

    def _closing(self, token: LiveInterval | Token | str, outcome: float | None) -> _Closed:
        replica = self._replica
        found = replica.copy.find(token, replica.database, replica.name)
        interval, after = replica.copy.open[found.number].interval, replica.copy.intervals.copy()
        if outcome is None:
            after.skip(interval)
            return _Closed(found, SKIPPED, after)
        after.tell(interval, outcome)
        return _Closed(found, TOLD, after)

    @property
    def coverage(self) -> dict[str, float]:
        """Share of outcomes inside, overall (key "") and by group."""
        return self._look().coverage

    @property
    def error(self) -> dict[str, float]:
        """Misses minus their nominal number, overall (key "") and by group."""
        return self._look().error

    def bound(self) -> Bound:
        """Return limits of `error` that hold on every sequence."""
        return self._look().bound()

    @property
    def in_flight(self) -> tuple[Token, ...]:
        """The open tokens, oldest first."""
        rounds: dict[int, _Round] = self._replica.look(lambda: dict(self._replica.copy.open))
        return tuple(Token(number, None, found.epoch) for number, found in sorted(rounds.items()))

    def _look(self) -> Intervals:
        found: Intervals = self._replica.look(lambda: self._replica.copy.intervals)
        return found


def _leaves(tree: Any) -> Any:
    """Return nested named tuples of arrays as nested lists."""
    return [_leaves(part) for part in tree] if isinstance(tree, tuple) else np.asarray(tree).tolist()


def _filled(template: Any, values: Any) -> Any:
    """Return a template's named tuples with arrays from nested lists. Raise a ValueError if a shape differs."""
    if isinstance(template, tuple):
        return type(template)(*(_filled(part, value) for part, value in zip(template, values, strict=True)))
    array = np.asarray(values, dtype=np.float64).reshape(np.shape(values) if np.size(values) else template.shape)
    _require(array.shape == template.shape and not np.isnan(array).any(), "an array of the state does not fit")
    return array


def _encode(intervals: Intervals) -> bytes:
    return json.dumps([list(intervals.names), _leaves(intervals.state)]).encode()


def _decode(like: Intervals, state: bytes) -> Intervals:
    """Return stored intervals with the level and symmetry of given ones."""
    names, values = json.loads(state)
    _require(isinstance(names, list) and len(set(names)) == len(names), "the names of the groups do not fit")
    found = Intervals(like.confidence_level, groups=names, symmetric=like.symmetric)
    found.state = _filled(found.state, values)
    return found


def _encode_round(interval: Interval) -> bytes:
    limits = interval.lower, interval.upper, interval.prediction
    return json.dumps([*limits, interval.groups, _leaves(interval.asked)]).encode()


def _decode_round(number: int, content: bytes) -> Interval:
    lower, upper, center, groups, (threshold, shift, (base, scale, experts), row, spread, told) = json.loads(content)
    _require(all(isinstance(limit, float) for limit in (lower, upper, center)), "the limits of a round are not numbers")
    prediction = Prediction(*map(np.asarray, (base, scale, experts)))
    asked = Asked(np.asarray(threshold), np.asarray(shift), prediction, *map(np.asarray, (row, spread, told)))
    return Interval(lower, upper, center, tuple(groups), number, asked)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
