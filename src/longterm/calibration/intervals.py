"""Prediction intervals around any forecast, with named groups: the stateful object behind the estimators."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from longterm._base import validate
from longterm._base.display import ReprMixin
from longterm.calibration.bases import Asked
from longterm.calibration.certificates import Bound
from longterm.calibration.plot import plot_coverage
from longterm.calibration.rule import Calibration, CalibrationState
from longterm.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HISTORY = 20_000
"""The number of settled intervals that `Intervals.plot` can draw."""


class Interval(NamedTuple):
    """An interval for one outcome: limits, the forecast, names of groups, the number of the ask, the rule's ask."""

    lower: float
    upper: float
    prediction: float
    groups: tuple[str, ...]
    number: int
    asked: Asked


def require_names(groups: Iterable[str], remedy: str = "Give a list of names") -> tuple[str, ...]:
    """Return the names of a round's groups."""
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise InputError("groups", f"{groups!r} is not a list", remedy)
    names = tuple(groups)
    for name in names:
        if not isinstance(name, str) or not name:
            raise InputError("groups", f"{name!r} is not a name", "Give each group a non-empty string as its name")
    return names


class Intervals(ReprMixin):
    """Intervals that hold the outcome at a given long-run frequency, overall and in every named group.

    Parameters
    ----------
    confidence_level : float
        Nominal coverage, 0.9 for example.
    groups : iterable of str
        Names known in advance. Other names may appear at any time.
    symmetric : bool
        Use one threshold of |y − prediction|. False: one threshold on each side, each with half of the misses. The two
        may cross. An outcome beyond both then counts as two misses.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.calibration.intervals import Intervals
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
        level = validate.scalar("confidence_level", validate.open_unit_interval("confidence_level", confidence_level))
        self.confidence_level = level
        self.symmetric = bool(symmetric)
        self.rule = Calibration(1.0 - level if symmetric else np.full(2, 0.5 * (1.0 - level)))
        self.state: CalibrationState = self.rule.init()
        self.names: dict[str, int] = {}
        """Columns of the groups; column 0 holds every round."""
        self._asked = 0
        self._open: set[int] = set()
        self._history: deque[tuple[bool, float, tuple[str, ...]]] = deque(maxlen=HISTORY)
        """Settled intervals: whether it covered, its width, its groups."""
        self._add_groups(groups)

    def copy(self) -> Self:
        """Return independent intervals with the same state, without the history of `plot`."""
        other = copy(self)
        other.names = dict(self.names)
        other.resume(self._asked, self._open)
        return other

    def resume(self, asked: int, open_rounds: Iterable[int]) -> None:
        """Set the number of asks and the numbers of the open ones, and forget the history."""
        self._asked, self._open, self._history = asked, set(open_rounds), deque(maxlen=HISTORY)

    @property
    def open_rounds(self) -> int:
        """Number of intervals that were neither told nor skipped."""
        return len(self._open)

    def ask(self, prediction: float, groups: Iterable[str] = ()) -> Interval:
        """Return the interval around a prediction for a round that belongs to these groups."""
        center = validate.scalar("prediction", validate.number("prediction", prediction))
        names = self._add_groups(groups)
        row: Any = None
        if self.names:
            row = np.zeros(self.rule.groups)
            row[[0, *(self.names[name] for name in names)]] = 1.0
        asked = self.rule.ask(self.state, row, open_rounds=self.open_rounds)
        self._asked += 1
        self._open.add(self._asked)
        below, above = np.broadcast_to(asked.threshold, (2,)).tolist()
        lower, upper = center - below, center + above
        if lower > upper:  # a negative threshold: no outcome is inside
            lower = upper = 0.5 * (lower + upper)
        return Interval(lower, upper, center, names, self._asked, asked)

    def tell(self, interval: Interval, outcome: float) -> None:
        """Take the outcome of an interval, in any order; outcomes that never come are given to `skip`."""
        y = validate.scalar("outcome", validate.number("outcome", outcome))
        self._require_open(interval)
        error = y - interval.prediction
        score: Any = abs(error) if self.symmetric else np.array([-error, error])
        self.state = self.rule.tell(self.state, interval.asked, score)
        self._open.remove(interval.number)
        covered = interval.lower <= y <= interval.upper
        self._history.append((covered, interval.upper - interval.lower, interval.groups))

    def skip(self, interval: Interval) -> None:
        """Give up an interval whose outcome will not come."""
        self._require_open(interval)
        self._open.remove(interval.number)

    @property
    def coverage(self) -> dict[str, float]:
        """Share of outcomes inside, overall (key "") and by group.

        With two thresholds it is 1 less the misses on both sides, so the true share is at least as large.
        """
        return self._by_name(1.0 - self._of_sides(1.0 - self.rule.coverage(self.state)))

    @property
    def error(self) -> dict[str, float]:
        """Misses minus their nominal number, ties left out, overall (key "") and by group; see `Calibration.excess`.

        With two thresholds it is the sum of both sides.
        """
        return self._by_name(self._of_sides(self.rule.excess(self.state)))

    def bound(self) -> Bound:
        """Return limits of `error` that hold on every sequence; see `Calibration.bound`."""
        lower, upper, theorem = self.rule.bound(self.state)
        return Bound(self._of_sides(lower), self._of_sides(upper), theorem)

    def plot(self, *, window: int = 200, axes: Sequence[Axes] | None = None) -> Figure:
        """Draw rolling coverage overall and by group, the width, and the sum of errors within its certificate.

        Return the Matplotlib figure.
        """
        return plot_coverage(self._history, self.confidence_level, self.bound(), window, axes)

    def _of_sides(self, values: Any) -> Any:
        return values if self.symmetric else values.sum(axis=0)

    def _by_name(self, values: Any) -> dict[str, float]:
        return {name: float(values[column]) for name, column in {"": 0, **self.names}.items()}

    def _add_groups(self, groups: Iterable[str]) -> tuple[str, ...]:
        """Return the names of a round's groups, and add a column for each new one."""
        names = require_names(groups)
        for name in names:
            if name not in self.names:
                self.rule, self.state = self.rule.add_group(self.state)
                self.names[name] = self.rule.groups - 1
        return names

    def _require_open(self, interval: Interval) -> None:
        if not isinstance(interval, Interval):
            raise InputError(
                "interval", f"{interval!r:.60} is not an interval", "Pass the interval that `ask` returned"
            )
        if interval.number not in self._open:
            raise InputError(
                "interval", f"number {interval.number} is not open", "Call tell or skip once for each interval"
            )
