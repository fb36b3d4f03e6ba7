"""Linear models whose rows are dictionaries, learned one at a time."""

from __future__ import annotations

import math
import pickle
from array import array
from collections.abc import Collection, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model.evolving import EvolvingLinearLearner

FIRST_COLUMNS = 64
"""The number of columns at the beginning."""
BUFFERED_ROWS = 16
"""Without a budget, this many rows are buffered before the first is learned: they determine the budget."""
GENEROUS_RADIUS = 1000.0
"""The radius without a budget, for rows of length 1 and targets with a standard deviation of 1."""


Row = tuple[NDArray[np.int64], FloatArray]
"""Columns, increasing, and the values there."""


def _sorted_row(columns: Collection[int], x: Mapping[Hashable, Any]) -> Row:
    """Return the row of a dictionary. Raise InputError for a value that is no number."""
    try:
        values = np.frombuffer(array("d", x.values()))
    except TypeError:
        name = next(name for name, value in x.items() if not isinstance(value, int | float | np.number))
        raise InputError("x", f"{name!r} is {x[name]!r:.40}", "Give numbers. Convert texts to numbers first") from None
    places = np.fromiter(columns, np.int64, len(columns))
    order = np.argsort(places)
    return places[order], values[order]


class DictionaryModel:
    """A linear model of dictionaries: the columns of the names, the learner, and the buffered rows."""

    loss: str

    def __init__(
        self,
        budget: float | None = None,
        l1: float = 1.0,
        l2: float = 1.0,
        half_life: float | None = None,
        seed: int = 0,
    ) -> None:
        self.budget, self.l1, self.l2, self.half_life, self.seed = budget, l1, l2, half_life, seed
        self._columns: dict[Hashable, int] = {}
        self._learner: EvolvingLinearLearner | None = None
        self._buffer: list[tuple[dict[Hashable, float], float, float]] = []
        # River scores a row and then learns it: the last dictionary is kept with its row.
        self._last: tuple[dict[Hashable, Any], Row] = {}, _sorted_row((), {})

    @property
    def weights(self) -> dict[Hashable, float]:
        """The non-zero weights by name."""
        if self._learner is None:
            return {}
        x = self._learner.weights
        return {name: float(x[column]) for name, column in self._columns.items() if x[column] != 0}

    @property
    def intercept(self) -> float:
        """The intercept in force."""
        return self._initial_margin() if self._learner is None else self._learner.intercept

    @property
    def learner(self) -> EvolvingLinearLearner | None:
        """The learner, with its sums of losses and violations; None before the first row is learned."""
        return self._learner

    @property
    def _raw_memory_usage(self) -> int:
        """The size of the pickled model in bytes; River's default would count the compiled kernels, too."""
        return len(pickle.dumps(self))

    def _initial_margin(self) -> float:
        """Return the margin that predicts before the first row is learned: for classes the log-odds so far."""
        positive = sum(weight for _, y, weight in self._buffer if y > 0)
        negative = sum(weight for _, y, weight in self._buffer if y < 0)
        return math.log((positive + 0.5) / (negative + 0.5))

    # --- one at a time ----------------------------------------------------------------------------------------

    def _row(self, x: Mapping[Hashable, Any], add: bool) -> Row:
        """Return the row; new names get a column if `add`, and are left out otherwise."""
        last, row = self._last
        if x == last:
            return row
        columns = self._columns
        try:
            found = tuple(map(columns.__getitem__, x))
        except KeyError:
            _sorted_row(range(len(x)), x)  # raises before a name is added
            if not add:  # a name that was never learned has weight 0
                known = {name: value for name, value in x.items() if name in columns}
                return _sorted_row([columns[name] for name in known], known)
            for name in x:
                columns.setdefault(name, len(columns))
            self._grow()
            found = tuple(map(columns.__getitem__, x))
        row = _sorted_row(found, x)
        self._last = dict(x), row
        return row

    def _grow(self) -> None:
        """Give the learner columns for all names."""
        learner = self._learner
        if learner is not None and len(self._columns) > learner.settings.dimension:
            learner.grow(self._capacity())

    def _capacity(self) -> int:
        """Return a number of columns for all names, a power of 2."""
        return max(FIRST_COLUMNS, 1 << (len(self._columns) - 1).bit_length())

    def _margin(self, x: Mapping[Hashable, Any]) -> float:
        if self._learner is None:
            return self._initial_margin()
        return self._learner.margin(*self._row(x, False))

    def _learn(self, x: Mapping[Hashable, Any], y: float, weight: float) -> None:
        learner = self._learner
        if learner is not None:
            learner.step(*self._row(x, True), y, weight)
            return
        if self.budget is None:
            self._row(x, add=False)  # raises now if a value is no number
            if not math.isfinite(y):
                raise InputError("y", f"is {y!r}", "Give finite targets")
            self._buffer.append((dict(x), y, weight))
            if len(self._buffer) == BUFFERED_ROWS:
                self._start()
            return
        self._start()
        self._learn(x, y, weight)

    def _start(self) -> None:
        budget = self._generous_budget() if self.budget is None else self.budget
        self._learner = EvolvingLinearLearner(
            self._capacity(),
            budget,
            l1=self.l1,
            l2=self.l2,
            loss=self.loss,
            half_life=self.half_life,
            sparse=True,
            seed=self.seed,
        )
        buffered, self._buffer = self._buffer, []
        for x, y, weight in buffered:
            self._learner.step(*self._row(x, add=True), y, weight)

    def _generous_budget(self) -> float:
        """Return a budget that will not bind, from the lengths and targets of the buffered rows."""
        rows = [np.array([float(value) for value in x.values()]) for x, _, _ in self._buffer]
        lengths = np.array([math.sqrt(float(row @ row)) for row in rows])
        lengths = lengths[(lengths > 0) & np.isfinite(lengths)]
        radius = GENEROUS_RADIUS * self._target_spread() / (float(np.median(lengths)) if lengths.size else 1.0)
        return self.l1 * radius + 0.5 * self.l2 * radius**2

    def _target_spread(self) -> float:
        """Return the unit of the targets; 1 for classes."""
        return 1.0
