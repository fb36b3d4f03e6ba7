"""Intervals for thousands of series at once, with the columns of statsforecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from longterm._display import ReprMixin
from longterm.calibration.levels import Levels
from longterm.calibration.rule import Asked
from longterm.errors import InputError

Frame = Any
"""A pandas DataFrame; pandas is an extra."""


def _map(function: Any, *trees: Any) -> Any:
    """Apply a function to the arrays of nested named tuples."""
    if isinstance(trees[0], tuple):
        return type(trees[0])(*(_map(function, *parts) for parts in zip(*trees, strict=True)))
    return function(*trees)


class PanelIntervals(ReprMixin):
    """Intervals around the forecasts of many series, one rule per series, step ahead and model.

    Parameters
    ----------
    level : sequence of float
        Confidence levels in percent, as in statsforecast.

    Examples
    --------
    >>> import pandas as pd
    >>> from longterm.calibration import PanelIntervals
    >>> panel = PanelIntervals(level=[80, 95])
    >>> frame = pd.DataFrame({"unique_id": ["a", "b"], "ds": [1, 1], "Naive": [3.0, 4.0]})
    >>> list(panel.predict(frame).columns)
    ['unique_id', 'ds', 'Naive', 'Naive-lo-80', 'Naive-hi-80', 'Naive-lo-95', 'Naive-hi-95']
    >>> panel.update(pd.DataFrame({"unique_id": ["a", "b"], "ds": [1, 1], "y": [3.5, 4.0]}))
    2
    """

    def __init__(self, level: Sequence[float] = (90,)) -> None:
        levels = sorted(float(one) for one in level)
        if not levels or levels[0] <= 0.0 or levels[-1] >= 100.0:
            raise InputError("level", f"{level!r} is not a list of percentages", "Give [80, 95] for example")
        self.level = [int(one) if one == int(one) else one for one in levels]
        self._rules = Levels(tuple(1.0 - one / 100.0 for one in levels))
        self._state = self._rules.init((0,))
        self._rows: dict[tuple[Any, int, str], int] = {}
        self._open: dict[tuple[Any, Any], list[tuple[int, float, Asked]]] = {}
        self._open_of_row = np.zeros(0, dtype=np.int64)

    def predict(self, forecasts: Frame) -> Frame:
        """Return the forecasts with columns `MODEL-lo-LEVEL` and `MODEL-hi-LEVEL` for every model and level.

        Parameters
        ----------
        forecasts : DataFrame
            Columns unique_id, ds and one per model. Rows of a series are steps ahead 1, 2, … in their order.
        """
        models = self._models(forecasts)
        step = forecasts.groupby("unique_id", sort=False).cumcount().to_numpy()
        ids, times = forecasts["unique_id"].tolist(), forecasts["ds"].tolist()
        result = forecasts.copy()
        for model in models:
            rows = self._rows_of([(i, int(h), model) for i, h in zip(ids, step, strict=True)])
            centers = forecasts[model].to_numpy(dtype=np.float64)
            if not np.all(np.isfinite(centers)):
                raise InputError("forecasts", f"column {model!r} holds NaN or infinity", "Drop these rows")
            part = _map(lambda values, rows=rows: values[rows], self._state)
            asked = self._rules.ask(part, open_rounds=self._open_of_row[rows][:, None])
            self._open_of_row[rows] += 1
            for j, level in enumerate(self.level):
                result[f"{model}-lo-{level}"] = centers - asked.threshold[:, j]
                result[f"{model}-hi-{level}"] = centers + asked.threshold[:, j]
            for k, key in enumerate(zip(ids, times, strict=True)):
                one = _map(lambda values, k=k: values[k], asked)
                self._open.setdefault(key, []).append((int(rows[k]), float(centers[k]), one))
        return result

    def update(self, actuals: Frame) -> int:
        """Take outcomes (columns unique_id, ds, y) and return how many intervals they settled.

        Outcomes of other rounds are ignored, so a whole history may be given again and again.
        """
        if {"unique_id", "ds", "y"} - set(actuals.columns):
            raise InputError("actuals", f"has columns {list(actuals.columns)}", "Give unique_id, ds and y")
        known = actuals.loc[np.isfinite(actuals["y"].to_numpy(dtype=np.float64))]
        outcomes = zip(known["unique_id"].tolist(), known["ds"].tolist(), known["y"].tolist(), strict=True)
        due = [(row, abs(float(y) - center), asked)
               for i, ds, y in outcomes
               for row, center, asked in self._open.pop((i, ds), [])]  # fmt: skip
        waiting = due
        while waiting:  # one outcome per rule and pass, in the order given
            batch: list[tuple[int, float, Asked]] = []
            later: list[tuple[int, float, Asked]] = []
            seen: set[int] = set()
            for one in waiting:
                (later if one[0] in seen else batch).append(one)
                seen.add(one[0])
            self._tell(batch)
            waiting = later
        return len(due)

    def _tell(self, batch: list[tuple[int, float, Asked]]) -> None:
        rows = np.array([row for row, _, _ in batch])
        asked = _map(lambda *values: np.stack(values), *(one for _, _, one in batch))
        part = _map(lambda values: values[rows], self._state)
        told = self._rules.tell(part, asked, np.array([score for _, score, _ in batch]))

        def put(values: Any, new: Any) -> Any:
            values[rows] = new
            return values

        self._state = _map(put, self._state, told)
        self._open_of_row[rows] -= 1

    @property
    def coverage_(self) -> dict[float, float]:
        """Share of outcomes inside, by level, over all series."""
        counts = self._state.counts
        rounds, misses = counts.rounds[..., 0].sum(axis=0), counts.misses[..., 0].sum(axis=0)
        return {
            one: float(1.0 - m / n) if n else float("nan") for one, n, m in zip(self.level, rounds, misses, strict=True)
        }

    def _models(self, forecasts: Frame) -> list[str]:
        if {"unique_id", "ds"} - set(forecasts.columns):
            raise InputError("forecasts", f"has columns {list(forecasts.columns)}", "Give unique_id, ds and the models")
        models = [c for c in forecasts.columns if c not in ("unique_id", "ds", "y", "cutoff")]
        return [c for c in models if "-lo-" not in c and "-hi-" not in c]

    def _rows_of(self, keys: list[tuple[Any, int, str]]) -> Any:
        new = [key for key in dict.fromkeys(keys) if key not in self._rows]
        if new:
            for key in new:
                self._rows[key] = len(self._rows)
            fresh = self._rules.init((len(new),))
            self._state = _map(lambda old, more: np.concatenate([old, more]), self._state, fresh)
            self._open_of_row = np.concatenate([self._open_of_row, np.zeros(len(new), dtype=np.int64)])
        return np.array([self._rows[key] for key in keys])
