"""Regression on series in the order of time: held-out errors beside RidgeCV, progressive errors beside Vowpal Wabbit.

    python benchmarks/in_time.py

The last third of each cut of a series is predicted by `fit` on the rows before it. The series are demand, price and
transfer of ELEC2, predicted from lags of a day and more; load, sun and carbon of one building (where
`citylearn-2022.csv.gz` is among the data); and TrumpApproval (where River is installed).

    python benchmarks/in_time.py --streams

The same series as streams, each row predicted before it is learned: squared errors over Vowpal Wabbit's, with default
settings, up to the first 500, 2,000, 8,760 and 20,000 rows.
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from longterm.data import load_elec2
from longterm.linear_model import BudgetLinearRegressor
from models import regressions, vowpal_wabbit_in_stream

DAY, HOURS = 48, 24


def lagged(values: Any, lags: tuple[int, ...], more: Any) -> tuple[Any, Any]:
    """Return rows of earlier values and other known features, and targets."""
    first = max(lags)
    rows = [values[first - lag : len(values) - lag] for lag in lags]
    return np.hstack([np.stack(rows, axis=1), more[first:]]), values[first:]


def series() -> Iterator[tuple[str, Any, Any, tuple[tuple[int, int], ...]]]:
    """Yield name, rows, targets, and the first and last row of each cut."""
    data = {name: (X, y) for name, X, y, in_time in regressions() if in_time}
    spans = ((0, 3000), (5000, 8000), (10_000, 12_000), (13_000, 16_000), (20_000, 26_000), (27_000, 29_000))
    yield "NSW demand", *data["NSW demand, a day ahead"], spans
    e, lags = load_elec2(), (DAY, DAY + 1, 2 * DAY, 3 * DAY, 7 * DAY)
    periods, known = np.eye(DAY)[np.round(e.period * (DAY - 1)).astype(int)], 18_000  # Victoria's are constant before
    for name in ("nsw_price", "vic_demand", "vic_price", "transfer"):
        X, y = lagged(getattr(e, name)[known:], lags, periods[known:])
        yield name, X, y, ((0, 2500), (8000, 12_000), (15_000, 20_000))
    building = Path(os.environ.get("LONGTERM_DATA", ".")) / "citylearn-2022.csv.gz"
    if building.exists():
        with gzip.open(building, "rt") as file:
            lines = list(csv.DictReader(file))
        of = {name: np.array([float(line[name]) for line in lines]) for name in lines[0]}
        more = np.hstack([np.eye(HOURS)[of["hour"].astype(int) - 1], of["temperature_predicted_24h"][:, None]])
        for name in ("load", "solar", "carbon"):
            X, y = lagged(of[name], (HOURS, HOURS + 1, HOURS + 2, 2 * HOURS, 3 * HOURS, 7 * HOURS), more)
            yield name, X, y, ((0, 1500), (2000, 4000), (4500, 7000), (5500, 8500))
    if "TrumpApproval" in data:
        cuts = ((0, 500), (0, 600), (0, 750), (0, 900), (0, 1001), (100, 700), (150, 1001), (250, 1001), (300, 800))
        yield "TrumpApproval", *data["TrumpApproval"], (*cuts, (400, 1001), (500, 1001), (600, 1001))


def main() -> None:
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    for name, X, y, cuts in series():
        ratios = []
        for start, stop in cuts:
            cut, errors = start + (stop - start) * 2 // 3, []
            for model in (
                BudgetLinearRegressor(random_state=0),
                make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15))),
            ):
                predictions = model.fit(X[start:cut], y[start:cut]).predict(X[cut:stop])
                errors.append(float(np.mean((predictions - y[cut:stop]) ** 2)))
            ratios.append(errors[0] / errors[1])
        print(f"{name}: ours over RidgeCV, geometric mean of {len(cuts)} cuts {np.exp(np.mean(np.log(ratios))):.3f}")


def streams() -> None:
    ends = (500, 2000, 8760, 20_000)
    print(f"{'series':<16}" + "".join(f"{end:>10}" for end in ends))
    for name, X, y, _ in series():
        rows, targets = np.ascontiguousarray(X[: ends[-1]]), y[: ends[-1]]
        model = BudgetLinearRegressor().partial_fit(rows[:1], targets[:1])
        ours = model._learners[0].learn(rows[1:], targets[1:])
        theirs = vowpal_wabbit_in_stream(rows, targets, "squared")[1:]
        ours, theirs = (np.cumsum((margins - targets[1:]) ** 2) for margins in (ours, theirs))
        ratios = (ours[min(end, len(targets)) - 2] / theirs[min(end, len(targets)) - 2] for end in ends)
        print(f"{name:<16}" + "".join(f"{ratio:>10.3g}" for ratio in ratios), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    streams() if "--streams" in sys.argv else main()
