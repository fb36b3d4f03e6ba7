"""One row at a time: `step` and `partial_fit` beside River, Vowpal Wabbit and scikit-learn, on the same rows.

Every contestant scores a row and learns it, and is handed the row as a service would have it for that library: an array
for us, a dictionary for River, a line of text for Vowpal Wabbit (and, apart, an example that was parsed beforehand:
parsing is then free of charge). Medians over single rows, in turns.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from linear_timing import Line, data_set

TURNS, ROWS = 9, 1000


def measure() -> Iterator[Line]:
    yield from _part("covtype, 54 features", _dense_rows("covtype"), budget=7.0)
    yield from _part("sector, sparse", _sparse_rows("sector"), budget=1000.0)


def _dense_rows(name: str) -> Any:
    data, rng = data_set(name), np.random.default_rng(0)
    chosen = rng.choice(len(data.labels), ROWS, replace=False)
    return data.features[chosen], data.labels[chosen]


def _sparse_rows(name: str) -> Any:
    data, rng = data_set(name), np.random.default_rng(0)
    chosen = rng.choice(len(data.labels), ROWS, replace=False)
    rows = data.features[chosen].tocsr()
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)  # what SGD takes
    return rows, np.where(data.labels[chosen] <= 52, 1.0, -1.0)


def _part(setting: str, rows: Any, budget: float) -> Iterator[Line]:
    X, y = rows
    contestants = _ours(X, y, budget) | _peers(X, y, budget)
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(TURNS + 1):  # the first turn warms up
        for name, learn in contestants.items():
            times[name].append(_median_of_rows(learn))
    medians = {name: statistics.median(turns[1:]) for name, turns in times.items()}
    for name, median in medians.items():
        against = "step" if name not in ("partial_fit", "SGD partial_fit") else "partial_fit"
        share = "" if name == against else f"{median / medians[against]:.1f} × {against}"
        yield Line(setting, name, median, "ns/row", share)


def _median_of_rows(learn: Callable[[int], object]) -> float:
    taken = []
    for i in range(ROWS):
        begin = time.perf_counter_ns()
        learn(i)
        taken.append(time.perf_counter_ns() - begin)
    return statistics.median(taken)


def _ours(X: Any, y: Any, budget: float) -> dict[str, Callable[[int], object]]:
    from longterm.linear_model import BudgetLinearClassifier, BudgetLinearLearner

    sparse = not isinstance(X, np.ndarray)
    learner = BudgetLinearLearner(X.shape[1], budget, sparse=sparse)
    model, single = BudgetLinearClassifier(budget), [X[i : i + 1] for i in range(ROWS)]
    model.partial_fit(single[0], y[:1], classes=[-1.0, 1.0])
    labels = [float(label) for label in y]
    if sparse:
        pairs = [(row.indices.astype(np.int64), row.data) for row in single]
        step: Callable[[int], object] = lambda i: learner.step(*pairs[i], labels[i])  # noqa: E731
    else:
        singles = list(X)
        step = lambda i: learner.step_dense(singles[i], labels[i])  # noqa: E731
    return {"step": step, "partial_fit": lambda i: model.partial_fit(single[i], y[i : i + 1])}


def _peers(X: Any, y: Any, budget: float) -> dict[str, Callable[[int], object]]:
    from river import linear_model, optim
    from sklearn.linear_model import SGDClassifier

    from longterm.compat.river import LinearClassifierStream as RiverClassifier

    single = [X[i : i + 1] for i in range(ROWS)]
    sgd = SGDClassifier(loss="log_loss", penalty="elasticnet")
    sgd.partial_fit(single[0], y[:1], classes=[-1.0, 1.0])
    entries = [_entries(row) for row in single]
    rows = [{f"f{j}": value for j, value in row} for row in entries]
    positive = [bool(label > 0) for label in y]
    penalised = linear_model.LogisticRegression(optimizer=optim.SGD(0.1), l1=1e-6)

    def score_and_learn(model: Any) -> Callable[[int], object]:
        def one(i: int) -> object:
            margin = model.predict_proba_one(rows[i])
            model.learn_one(rows[i], positive[i])
            return margin

        return one

    return {
        "River": score_and_learn(penalised),
        "River, no penalty": score_and_learn(linear_model.LogisticRegression()),
        "ours, River interface": score_and_learn(RiverClassifier(budget)),
        **_vowpal_wabbit(entries, y),
        "SGD partial_fit": lambda i: sgd.partial_fit(single[i], y[i : i + 1]),
    }


def _vowpal_wabbit(entries: list[list[tuple[int, float]]], y: Any) -> dict[str, Callable[[int], object]]:
    """Return Vowpal Wabbit's contestants, none if it is not installed."""
    if find_spec("vowpalwabbit") is None:
        return {}
    import vowpalwabbit

    wabbit = vowpalwabbit.Workspace("--loss_function logistic --l1 1e-6 -b 18 --quiet")
    lines = [f"{int(y[i])} | " + " ".join(f"{j}:{v:.6g}" for j, v in row) for i, row in enumerate(entries)]
    examples = [wabbit.parse(line) for line in lines]
    return {
        "Vowpal Wabbit, line": lambda i: wabbit.learn(lines[i]),
        "Vowpal Wabbit, parsed": lambda i: wabbit.learn(examples[i]),
    }


def _entries(row: Any) -> list[tuple[int, float]]:
    if isinstance(row, np.ndarray):
        return [(int(j), float(row[0, j])) for j in np.flatnonzero(row[0])]
    return [(int(j), float(v)) for j, v in zip(row.indices, row.data, strict=True)]


if __name__ == "__main__":
    for line in measure():
        print(f"{line.setting:<24}{line.contestant:<24}{line.value:>12,.0f} {line.unit}  {line.remark}", flush=True)
