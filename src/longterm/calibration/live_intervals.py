"""Live prediction intervals: asked for by a service, told late or never, with their state in a database."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np

from longterm._base import validate
from longterm._base.display import ReprMixin
from longterm._base.messages import shown
from longterm.calibration.bases import Asked
from longterm.calibration.certificates import Bound
from longterm.calibration.intervals import Interval, Intervals
from longterm.errors import InputError
from longterm.storage.clock import DAY, SYSTEM, Clock
from longterm.storage.database import Database, RoundRow
from longterm.storage.engine import Durability
from longterm.storage.packing import require
from longterm.storage.positions import require_position
from longterm.storage.replica import Replica
from longterm.storage.rounds import DONE, SKIPPED, NoChange, OpenRound, RoundChange, RoundsCopy, Window
from longterm.storage.stored_object import Metrics, Stored
from longterm.storage.tokens import REMEDY, Token, require_key


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


class _IntervalsCopy(RoundsCopy[Intervals, Interval]):
    """A copy of live intervals: the rule's state, and the open rounds."""

    kind = "live intervals"
    remedy = REMEDY

    def state_without(self, expired: Iterable[int]) -> Intervals:
        """Return a copy of the state after these rounds were skipped."""
        after = self.state.copy()
        for number in expired:
            after.skip(self.open[number].content)
        return after

    def encode_state(self, state: Intervals) -> bytes:
        return json.dumps([list(state.names), _leaves(state.state)]).encode()

    def decode_state(self, data: bytes, asked: int) -> Intervals:
        names, values = json.loads(data)
        require(isinstance(names, list) and len(set(names)) == len(names), "the names of the groups do not fit")
        found = Intervals(self.state.confidence_level, groups=names, symmetric=self.state.symmetric)
        found.state = _filled(found.state, values)
        return found

    def encode_round(self, content: Interval) -> bytes:
        limits = content.lower, content.upper, content.prediction
        return json.dumps([*limits, content.groups, _leaves(content.asked)]).encode()

    def decode_round(self, row: RoundRow) -> Interval:
        lower, upper, center, groups, asked = json.loads(row.content)
        require(all(isinstance(limit, float) for limit in (lower, upper, center)), "the limits are not numbers")
        return Interval(lower, upper, center, tuple(groups), row.number, Asked(*map(np.asarray, asked)))

    def require_rounds(self, state: Intervals, rounds: dict[int, OpenRound[Interval]], asked: int) -> None:
        for found in rounds.values():
            require(found.content.asked.groups.shape[-1] <= state.rule.groups, "a round has too many groups")

    def restore(self, database: Database, name: str, version: int, asked: int, state: bytes) -> None:
        super().restore(database, name, version, asked, state)
        self.state.resume(asked, self.open)


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
        One threshold of |y − prediction|, or one for each side. See `Intervals`.
    max_groups : int
        The largest number of groups. An ask with another name raises an InputError.
    max_in_flight : int
        The largest number of open rounds; `ask` raises a WindowFullError when it is reached.
    expire_after : int, optional
        The age, in rounds asked for since, at which an open round is skipped.
    max_age : float, optional
        The age in seconds at which it is skipped, by whichever call comes next.
    remember : float
        The seconds for which an idempotency key is remembered; at least while its round is open.
    clock : Clock
        The time; tests give their own.

    Examples
    --------
    >>> from longterm.calibration.live_intervals import LiveIntervals
    >>> live = LiveIntervals(confidence_level=0.9)
    >>> asked = live.ask(31.2, groups=["north"])
    >>> live.tell(str(asked), 33.0)
    >>> live.coverage
    {'': 1.0, 'north': 1.0}
    """

    def __init__(
        self,
        confidence_level: float = 0.9,
        *,
        groups: Iterable[str] = (),
        symmetric: bool = True,
        max_groups: int = 1000,
        max_in_flight: int = 100_000,
        expire_after: int | None = None,
        max_age: float | None = None,
        remember: float = DAY,
        clock: Clock = SYSTEM,
    ) -> None:
        intervals = Intervals(confidence_level, groups=groups, symmetric=symmetric)
        self.confidence_level, self.symmetric = intervals.confidence_level, intervals.symmetric
        definition = {"confidence_level": self.confidence_level, "symmetric": self.symmetric}
        self.max_groups = validate.count("max_groups", max_groups)
        self._require_groups(intervals)
        window = Window.of(max_in_flight, expire_after, max_age, remember)
        self._replica = Replica(_IntervalsCopy(intervals, window), definition, clock=clock)
        self._replica.expire = self._expiring

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
        max_groups: int = 1000,
        max_in_flight: int = 100_000,
        expire_after: int | None = None,
        max_age: float | None = None,
        remember: float = DAY,
        clock: Clock = SYSTEM,
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
        max_groups, max_in_flight, expire_after, max_age, remember, clock
            As for new intervals; give the same in every process.

        Returns
        -------
        LiveIntervals

        Raises
        ------
        DatabaseError
            If the database cannot be used, or holds another object with this name.
        """
        live = cls(
            confidence_level,
            groups=groups,
            symmetric=symmetric,
            max_groups=max_groups,
            max_in_flight=max_in_flight,
            expire_after=expire_after,
            max_age=max_age,
            remember=remember,
            clock=clock,
        )
        live._replica.attach(url, name, durability)
        return live

    def ask(self, prediction: float, groups: Iterable[str] = (), key: str | None = None) -> LiveInterval:
        """Open a round and return its interval around a prediction; see `Intervals.ask`.

        Parameters
        ----------
        prediction : float
            The forecast.
        groups : iterable of str
            The groups of the round.
        key : str, optional
            An idempotency key: an ask with the key of another one returns its interval, for as long as `remember` says.
        """
        try:
            names = groups if isinstance(groups, str) else tuple(groups)
        except TypeError:
            raise InputError("groups", f"{shown(groups)} is not a list", "Give a list of names") from None
        change = self._replica.transact(self._opening, prediction, names, require_key(key))
        interval = change.round.content
        token = Token(change.number, epoch=change.round.epoch)
        return LiveInterval(interval.lower, interval.upper, interval.prediction, token)

    def _opening(
        self, prediction: float, groups: Iterable[str], key: str | None
    ) -> RoundChange[Intervals, Interval] | NoChange[Interval]:
        copy, now = self._replica.copy, self._replica.now()
        known = copy.repeated(key, now)
        if known is not None:
            return known
        expired = copy.outnumbered()
        copy.require_window(expired)
        after = copy.state_without(expired)
        interval = after.ask(prediction, groups)
        self._require_groups(after)
        return copy.opening(after, interval, self._replica.epoch, key, expired, now=now)

    def _require_groups(self, intervals: Intervals) -> None:
        if len(intervals.names) > self.max_groups:
            what = f"would become {len(intervals.names)} in total, but at most {self.max_groups} are allowed"
            raise InputError("groups", what, "Use fewer names (no request ids), or a larger max_groups")

    def _expiring(self, now: float) -> RoundChange[Intervals, Interval]:
        """Return the change that skips the rounds which are too old."""
        copy = self._replica.copy
        expired = copy.outdated(now)
        return copy.expiry(copy.state_without(expired), expired)

    def tell(
        self, token: LiveInterval | Token | str, outcome: float, *, position: tuple[str, int] | None = None
    ) -> None:
        """Take the outcome of a round, in any order.

        Parameters
        ----------
        token : LiveInterval, Token or str
            What `ask` returned, its token, or the token's text.
        outcome : float
            The observed value.
        position : (str, int), optional
            The partition of a queue and the number of the message there. A message counts once, however often the
            queue delivers it. Numbers must grow along a partition.

        Raises
        ------
        TokenError
            If the token is unknown, or was told or skipped already.
        RepeatedPositionError
            If the object has applied this position, or a later one of the partition.
        InputError
            If the outcome is not a finite number.
        """
        self._replica.apply_message(require_position(position), self._closing, token, outcome)

    def skip(self, token: LiveInterval | Token | str) -> None:
        """Close a round whose outcome will not come."""
        self._replica.transact(self._closing, token, None)

    def _closing(self, token: LiveInterval | Token | str, outcome: float | None) -> RoundChange[Intervals, Interval]:
        copy = self._replica.copy
        number, found = copy.find(token, self._replica.now())
        after = copy.state.copy()
        if outcome is None:
            after.skip(found.content)
            return copy.closing(number, after, SKIPPED)
        after.tell(found.content, outcome)
        return copy.closing(number, after, DONE)

    @property
    def coverage(self) -> dict[str, float]:
        """Share of outcomes inside, overall (key "") and by group; see `Intervals.coverage`."""
        return self._look().coverage

    @property
    def error(self) -> dict[str, float]:
        """Misses minus their nominal number, ties left out, overall (key "") and by group; see `Intervals.error`."""
        return self._look().error

    def bound(self) -> Bound:
        """Return limits of `error` that hold on every sequence."""
        return self._look().bound()

    def metrics(self) -> Metrics:
        """Return figures for monitoring; `coverage` and `error` are by group, and "" is overall."""
        figures: Metrics = self._replica.look(self._metrics)
        return figures

    def _metrics(self) -> Metrics:
        copy = self._replica.copy
        figures: Metrics = {"requests": copy.asked, "open": len(copy.open), "target": self.confidence_level}
        return figures | {"coverage": dict(copy.state.coverage), "error": dict(copy.state.error)}

    @property
    def in_flight(self) -> tuple[Token, ...]:
        """The open tokens, oldest first."""
        found: tuple[Token, ...] = self._replica.look(self._replica.copy.tokens)
        return found

    def _look(self) -> Intervals:
        found: Intervals = self._replica.look(lambda: self._replica.copy.state)
        return found


def _leaves(tree: Any) -> Any:
    """Return nested named tuples of arrays as nested lists."""
    return [_leaves(part) for part in tree] if isinstance(tree, tuple) else np.asarray(tree).tolist()


def _filled(template: Any, values: Any) -> Any:
    """Return a template's named tuples with arrays from nested lists. Raise a ValueError if a shape differs."""
    if isinstance(template, tuple):
        return type(template)(*(_filled(part, value) for part, value in zip(template, values, strict=True)))
    array = np.asarray(values, dtype=np.float64).reshape(np.shape(values) if np.size(values) else template.shape)
    require(array.shape == template.shape and not np.isnan(array).any(), "an array of the state does not fit")
    return array
