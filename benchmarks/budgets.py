"""The effect of the budget and of the seed on a linear model: figures of docs/benchmarks/models.md.

    python benchmarks/budgets.py

Budgets: progressive loss without scaled features on streams of 500, 1,000 and 2,000 rows, means of ten orders; sector
whole, in one order.
Seeds: `fit` on 2,000 rows (500 where the name says so) with six seeds, the loss of up to 5,000 others.
"""

from __future__ import annotations

import warnings

import numpy as np

from longterm.data import load
from longterm.linear_model import BudgetLinearClassifier
from models import ROWS, TEST, as_learned, data_sets, log_loss, ours_in_stream

BUDGETS, ORDERS, SEEDS = (10.0, 100.0, 1_000.0, 10_000.0), 10, 6


def budgets() -> None:
    print(f"progressive log loss at budgets {', '.join(f'{budget:g}' for budget in BUDGETS)}; means of {ORDERS} orders")
    for name in ("a9a", "ijcnn1", "covtype", "sector"):
        data = load(name)
        labels = np.where(data.labels <= 52, 1.0, -1.0) if name == "sector" else data.labels
        among = min(len(labels), 60_000)  # of covtype the first 60,000 rows
        for rows in (500, 1000, 2000) if name != "sector" else (len(labels),):
            losses = np.empty((ORDERS if name != "sector" else 1, len(BUDGETS)))
            for k in range(len(losses)):
                chosen = np.random.default_rng([7, k]).permutation(among)[:rows]
                X, y = as_learned(data.features[np.sort(chosen)]), labels[np.sort(chosen)]
                mixed = np.random.default_rng([8, k]).permutation(rows)
                for place, budget in enumerate(BUDGETS):
                    margins = ours_in_stream(X[mixed], y[mixed], budget=budget, scale_features=False)
                    losses[k, place] = log_loss(margins, y[mixed])
            print(
                f"  {name:<9}{rows:>6} rows   " + "  ".join(f"{loss:.3f}" for loss in losses.mean(axis=0)), flush=True
            )


def seeds() -> None:
    print(f"held-out log loss over {SEEDS} seeds of fit: mean, deviation, largest over smallest, in per cent")
    for name, X, y, _ in data_sets():
        X, n = as_learned(X), 500 if "500" in name else min(ROWS, len(y) * 2 // 3)
        order = np.random.default_rng([7, 0]).permutation(len(y))
        train, test = order[:n], order[n : n + TEST]
        losses = np.array(
            [
                log_loss(
                    BudgetLinearClassifier(random_state=k).fit(X[train], y[train]).decision_function(X[test]), y[test]
                )
                for k in range(SEEDS)
            ]
        )
        apart = 100 * losses.std() / losses.mean(), 100 * (losses.max() / losses.min() - 1)
        print(f"  {name:<24}{losses.mean():.4f}   {apart[0]:.2f} %   {apart[1]:.2f} %", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    budgets()
    seeds()
