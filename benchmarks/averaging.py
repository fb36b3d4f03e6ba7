"""Held-out loss of one model beside the average of models of parts of the rows: python benchmarks/averaging.py.

Each part is learned once by `BudgetLinearLearner`, and weights and intercepts are averaged. So one would train one
linear model on K workers that do not talk. Logistic losses, means of ten orders of the rows.
"""

from __future__ import annotations

import numpy as np

from longterm.data import load_sample
from longterm.linear_model import BudgetLinearLearner

BUDGET, PARTS, ORDERS = 5.0, (1, 4, 16, 64), 10


def loss(margins: np.ndarray, y: np.ndarray) -> float:
    return float(np.logaddexp(0, -y * margins).mean())


def averaged(X: np.ndarray, y: np.ndarray, parts: int) -> tuple[np.ndarray, float]:
    """Return the mean of the decisions of learners that each see a part of the rows."""
    models = []
    for rows in np.array_split(np.arange(len(y)), parts):
        learner = BudgetLinearLearner(X.shape[1], budget=BUDGET)
        learner.learn(X[rows], y[rows])
        models.append((learner.weights, learner.intercept))
    return np.mean([x for x, _ in models], axis=0), float(np.mean([b for _, b in models]))


def synthetic() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 50))
    w = rng.normal(size=50) * (rng.random(50) < 0.2)
    return X, np.where(X @ w + rng.logistic(size=40_000) > 0, 1.0, -1.0)


def main() -> None:
    sample = load_sample()
    features = sample.features.toarray() if hasattr(sample.features, "toarray") else np.asarray(sample.features)
    sets = {"covtype sample": (features, sample.signs), "synthetic, d = 50": synthetic()}
    print(f"{'held-out loss, parts':<22}" + "".join(f"{parts:>9}" for parts in PARTS))
    for name, (X, y) in sets.items():
        table = []
        for seed in range(ORDERS):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[: len(y) * 3 // 4], order[len(y) * 3 // 4 :]
            row = []
            for parts in PARTS:
                x, b = averaged(X[train], y[train], parts)
                row.append(loss(X[test] @ x + b, y[test]))
            table.append(row)
        print(f"{name:<22}" + "".join(f"{value:9.4f}" for value in np.mean(table, axis=0)) + f"   {len(train):,} rows")


if __name__ == "__main__":
    main()
