"""Prediction intervals around any forecast, with named groups: the stateful object behind the estimators."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._display import ReprMixin
from longterm.calibration.certificates import Bound
from longterm.calibration.plot import Settled, plot_coverage
from longterm.calibration.rule import Asked, Calibration, CalibrationState
from longterm.errors import InputError

HISTORY = 20_000
"""Settled intervals that `Intervals.plot` can draw."""


class Interval(NamedTuple):
    """An interval for one outcome.

    Parameters
    ----------
    lower, upper, prediction : float
        Limits, and the forecast they surround.
    asked : Asked
        The ask that `Intervals.tell` needs.
    groups : tuple of str
        Names of the groups of the round.
    """

    lower: float
    upper: float
    prediction: float
    asked: Asked
    groups: tuple[str, ...] = ()


class Intervals(ReprMixin):
    """Intervals that hold the outcome at a given long-run frequency, overall and in every named group.

    Parameters
    ----------
    confidence_level : float
        Nominal coverage, 0.9 for example.
    groups : iterable of str
        Names known in advance. Other names may appear at any time.
    symmetric : bool
        Use one threshold of |y − prediction|. False: one threshold on each side, each with half of the misses.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.calibration import Intervals
    >>> rng, held = np.random.default_rng(0), 0
    >>> intervals = Intervals(0.9)
    >>> for _ in range(1000):
    ...     interval, y = intervals.ask(0.0), rng.normal()
    ...     held += interval.lower <= y <= interval.upper
    ...     intervals.tell(interval, y)
    >>> bool(abs(held - 900) < 10)
    True
    """

    def __init__(self, confidence_level: float = 0.9, *, groups: Iterable[str] = (), symmetric: bool = True) -> None:
        level = validate.scalar("confidence_level", validate.number("confidence_level", confidence_level))
        if not 0.0 < level < 1.0:
            raise InputError("confidence_level", f"{level!r} is outside (0, 1)", "Give 0.9 for 90 % coverage")
        self.confidence_level = level
        self.symmetric = bool(symmetric)
        miss_rate: Any = 1.0 - level if symmetric else np.full(2, 0.5 * (1.0 - level))
        self.rule = Calibration(miss_rate)
        self.state: CalibrationState = self.rule.init()
        self.names: dict[str, int] = {}
        self.open_rounds = 0
        self._history: deque[Settled] = deque(maxlen=HISTORY)
        for name in groups:
            self._add_group(name)

    def ask(self, prediction: float, groups: Iterable[str] = ()) -> Interval:
        """Return the interval around a prediction for a round that belongs to these groups."""
        center = float(prediction)
        if not np.isfinite(center):
            raise InputError("prediction", f"{prediction!r} is not finite", "Give a finite number")
        names = tuple(groups) if not isinstance(groups, str) else (groups,)
        members = self._columns(groups)
        asked = self.rule.ask(self.state, self._one_hot(members), open_rounds=self.open_rounds)
        self.open_rounds += 1
        below, above = np.broadcast_to(asked.threshold, (2,))
        lower, upper = center - float(below), center + float(above)
        if lower > upper:  # the two sides crossed: both thresholds are negative together
            lower = upper = 0.5 * (lower + upper)
        return Interval(lower, upper, center, asked, names)

    def tell(self, interval: Interval, outcome: float) -> None:
        """Take the outcome of an interval, in any order; outcomes that never come are given to `skip`."""
        y = float(outcome)
        if not np.isfinite(y):
            raise InputError("outcome", f"{outcome!r} is not finite", "Give a finite number, or skip the round")
        error = y - interval.prediction
        score: Any = abs(error) if self.symmetric else np.array([-error, error])
        self.state = self.rule.tell(self.state, self.rule.with_all_groups(interval.asked), score)
        self.open_rounds -= 1
        covered = interval.lower <= y <= interval.upper
        self._history.append(Settled(covered, interval.upper - interval.lower, interval.groups))

    def skip(self, interval: Interval) -> None:
        """Give up an interval whose outcome will not come."""
        self.open_rounds -= 1

    @property
    def coverage(self) -> dict[str, float]:
        """Share of outcomes inside, overall (key "") and by group."""
        shares = self._of_sides(self.rule.coverage(self.state) - 1.0) + 1.0
        return {name: float(shares[column]) for name, column in {"": 0, **self.names}.items()}

    @property
    def error(self) -> dict[str, float]:
        """Misses minus their nominal number, overall (key "") and by group."""
        sums = self._of_sides(self.rule.excess(self.state))
        return {name: float(sums[column]) for name, column in {"": 0, **self.names}.items()}

    def bound(self) -> Bound:
        """Return limits of `error` that hold on every sequence; see `Calibration.bound`."""
        return self.rule.bound(self.state)

    def plot(self, *, window: int = 200, axes: Any = None) -> Any:
        """Draw rolling coverage overall and by group, the width, and the sum of errors within its certificate."""
        try:
            bound = self.bound()
        except InputError:
            bound = None
        return plot_coverage(self._history, self.confidence_level, bound, window=window, axes=axes)

    def _of_sides(self, values: Any) -> Any:
        return values if self.symmetric else values.sum(axis=0)

    def _columns(self, groups: Iterable[str]) -> list[int]:
        if isinstance(groups, str):
            raise InputError("groups", f"{groups!r} is one string", "Give a list of names")
        names = list(groups)
        for name in names:
            if name not in self.names:
                self._add_group(name)
        return [0, *(self.names[name] for name in names)]

    def _one_hot(self, members: list[int]) -> Any:
        if self.rule.groups == 1:
            return None
        row = np.zeros(self.rule.groups)
        row[members] = 1.0
        return np.broadcast_to(row, (*self.state.told.shape, self.rule.groups))

    def _add_group(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise InputError("groups", f"{name!r} is not a name", "Name each group by a non-empty string")
        if name in self.names:
            raise InputError("groups", f"{name!r} is given twice", "Give each name once")
        self.rule, self.state = self.rule.add_group(self.state)
        self.names[name] = self.rule.groups - 1
