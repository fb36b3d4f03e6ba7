"""Intervals for thousands of series at once, with the columns of statsforecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.display import ReprMixin
from longterm.calibration.bases import Asked
from longterm.calibration.corrections import MissCounts
from longterm.calibration.rule import LARGEST_SCORE, Calibration
from longterm.errors import InputError

Frame = Any
"""A pandas DataFrame; pandas is an extra."""


class _Batch(NamedTuple):
    """Intervals of one model in one call: rows of the state, forecasts, asks, and (series, time) of the open ones."""

    rows: Any
    centers: FloatArray
    asked: Asked
    open: dict[int, tuple[Any, Any]]


def _require_numbers(argument: str, columns: Frame) -> FloatArray:
    """Return the columns as numbers; a difference of two of them is a score that the rule accepts."""
    try:
        numbers: FloatArray = columns.to_numpy(dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(argument, f"contains values that are not numbers ({error})", "Give numeric columns") from None
    sizes = np.abs(numbers[np.isfinite(numbers)])
    if np.any(sizes > 0.5 * LARGEST_SCORE):
        what = f"contains the number {sizes.max():.3g}, which is above {0.5 * LARGEST_SCORE:g}"
        raise InputError(argument, what, "Correct or drop its row")
    return numbers


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
    >>> from longterm.calibration.panel import PanelIntervals
    >>> panel = PanelIntervals(level=[80, 95])
    >>> frame = pd.DataFrame({"unique_id": ["a", "b"], "ds": [1, 1], "Naive": [3.0, 4.0]})
    >>> list(panel.predict(frame).columns)
    ['unique_id', 'ds', 'Naive', 'Naive-lo-80', 'Naive-hi-80', 'Naive-lo-95', 'Naive-hi-95']
    >>> panel.update(pd.DataFrame({"unique_id": ["a", "b"], "ds": [1, 1], "y": [3.5, 4.0]}))
    2
    """

    def __init__(self, level: Sequence[float] = (90,)) -> None:
        levels = np.unique(validate.number("level", level))
        if levels[0] <= 0.0 or levels[-1] >= 100.0:
            raise InputError("level", f"{level!r} is not a list of percentages", "Give [80, 95] for example")
        self.level = [int(one) if one == int(one) else one for one in levels.tolist()]
        self._rules = Calibration(1.0 - levels / 100.0, nested=True)
        self._state = self._rules.init((0, len(levels)))
        self._rows: dict[tuple[Any, int, str], int] = {}
        self._batches: list[_Batch] = []
        self._open_of_row = np.zeros(0)

    def predict(self, forecasts: Frame) -> Frame:
        """Return the forecasts with columns `MODEL-lo-LEVEL` and `MODEL-hi-LEVEL` for every model and level.

        Their columns are unique_id, ds and one per model. Rows of a series are steps ahead 1, 2, … in their order.
        """
        if {"unique_id", "ds"} - set(forecasts.columns):
            raise InputError(
                "forecasts",
                f"has the columns {list(forecasts.columns)}",
                "Give the columns unique_id, ds and one for each model",
            )
        others = ("unique_id", "ds", "y", "cutoff")
        models = [c for c in forecasts.columns if c not in others and "-lo-" not in c and "-hi-" not in c]
        centers = _require_numbers("forecasts", forecasts[models])
        if not np.all(np.isfinite(centers)):
            raise InputError("forecasts", "contains NaN or infinity", "Drop these rows")
        step = forecasts.groupby("unique_id", sort=False).cumcount().tolist()
        ids, times = forecasts["unique_id"].tolist(), forecasts["ds"].tolist()
        result = forecasts.copy()
        for j, model in enumerate(models):
            rows = self._rows_of([(i, h, model) for i, h in zip(ids, step, strict=True)])
            part = _map(lambda values, rows=rows: values[rows], self._state)
            asked = self._rules.ask(part, open_rounds=self._open_of_row[rows][:, None])
            for k, level in enumerate(self.level):
                result[f"{model}-lo-{level}"] = centers[:, j] - asked.threshold[:, k]
                result[f"{model}-hi-{level}"] = centers[:, j] + asked.threshold[:, k]
            keys = dict(enumerate(zip(ids, times, strict=True)))
            self._batches.append(_Batch(rows, centers[:, j], asked, keys))
            self._open_of_row[rows] += 1.0
        return result

    def update(self, actuals: Frame) -> int:
        """Take outcomes (columns unique_id, ds, y) and return how many intervals they settled.

        Outcomes of other rounds are ignored, so a whole history may be given again and again.
        """
        if {"unique_id", "ds", "y"} - set(actuals.columns):
            raise InputError(
                "actuals", f"has the columns {list(actuals.columns)}", "Give the columns unique_id, ds and y"
            )
        finite = actuals.loc[np.isfinite(_require_numbers("actuals", actuals["y"]))]
        keys = zip(finite["unique_id"].tolist(), finite["ds"].tolist(), strict=True)
        known = dict(zip(keys, finite["y"].tolist(), strict=True))
        settled = 0
        for batch in self._batches:
            places = [place for place, key in batch.open.items() if key in known]
            if places:
                self._tell(batch, np.array(places), np.array([known[batch.open[place]] for place in places]))
                settled += len([batch.open.pop(place) for place in places])
        self._batches = [batch for batch in self._batches if batch.open]
        return settled

    def _tell(self, batch: _Batch, places: Any, outcomes: FloatArray) -> None:
        rows = batch.rows[places]
        asked = _map(lambda values: values[places], batch.asked)
        part = _map(lambda values: values[rows], self._state)
        told = self._rules.tell(part, asked, np.abs(outcomes - batch.centers[places])[:, None])

        def put(values: Any, new: Any) -> None:
            values[rows] = new

        _map(put, self._state, told)
        self._open_of_row[rows] -= 1.0

    @property
    def coverage_(self) -> dict[float, float]:
        """Share of outcomes inside, by level, over all series."""
        total = MissCounts(*(values.sum(axis=0) for values in self._state.counts))
        return dict(zip(self.level, total.coverage()[..., 0].tolist(), strict=True))

    def _rows_of(self, keys: list[tuple[Any, int, str]]) -> Any:
        """Return the rows of the state of these rules; new ones are appended."""
        new = [key for key in dict.fromkeys(keys) if key not in self._rows]
        if new:
            self._rows.update(zip(new, range(len(self._rows), len(self._rows) + len(new)), strict=True))
            fresh = self._rules.init((len(new), len(self.level)))
            self._state = _map(lambda old, more: np.concatenate([old, more]), self._state, fresh)
            self._open_of_row = np.concatenate([self._open_of_row, np.zeros(len(new))])
        return np.array([self._rows[key] for key in keys], dtype=np.int64)
