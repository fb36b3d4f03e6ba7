"""Several classes: one softmax model with one budget, beside one-vs-rest with the same budget in all.

One-vs-rest gives each of its K models ρ/K, so that all weights together are within ρ, too; and, for comparison, ρ each.
All take one pass by `fit`, in several orders, and are measured on held-out rows: log loss, error, and the expected
calibration error: rows in 15 bins of equal width by their largest probability, Σ (share of the bin) |accuracy − mean
largest probability|.

    python benchmarks/softmax.py
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from longterm.data import load
from longterm.linear_model import BudgetLinearClassifier, BudgetSoftmaxClassifier

BINS, WORDS = 15, 1000


def calibration_error(probabilities: NDArray[Any], right: NDArray[np.bool_]) -> float:
    """Σ_b (n_b/n) |accuracy_b − confidence_b| over bins of equal width of the largest probability."""
    confidence = probabilities.max(axis=1)
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, right - confidence, BINS)
    return float(np.abs(gaps).sum() / len(right))


def digits(seed: int) -> tuple[Any, Any, Any, Any]:
    """scikit-learn's digits: 1,797 rows, 64 features, 10 classes; 1,200 to learn from."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order] / 16, y[order]
    return X[:1200], y[:1200], X[1200:], y[1200:]


def sector(seed: int) -> tuple[Any, Any, Any, Any]:
    """Sector, 105 classes, its 1,000 most frequent words: 6,412 rows, 4,800 of them, drawn, to learn from."""
    data = load("sector")
    X = sparse.csr_array(data.features)
    words = np.argsort(-np.bincount(X.indices, minlength=X.shape[1]), kind="stable")[:WORDS]
    X, y = sparse.csr_array(X[:, np.sort(words)]), np.asarray(data.labels)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order[:4800]], y[order[:4800]], X[order[4800:]], y[order[4800:]]


def contestants(budget: float, classes: int, seed: int) -> Iterator[tuple[str, Any]]:
    yield "softmax, one budget", BudgetSoftmaxClassifier(budget, passes=1, random_state=seed)
    yield "one-vs-rest, ρ/K each", BudgetLinearClassifier(budget / classes, passes=1, random_state=seed)
    yield "one-vs-rest, ρ each", BudgetLinearClassifier(budget, passes=1, random_state=seed)


def line(name: str, model: Any, parts: tuple[Any, Any, Any, Any]) -> tuple[float, ...]:
    X, y, held, labels = parts
    began = time.perf_counter()
    model.fit(X, y)
    took = (time.perf_counter() - began) / len(y) * 1e6
    p = model.predict_proba(held)
    right = model.classes_[p.argmax(axis=1)] == labels
    size = np.abs(model.coef_).sum() + 0.5 * (model.coef_**2).sum()
    clipped = np.clip(p, 1e-15, 1)
    clipped /= clipped.sum(axis=1, keepdims=True)
    loss = log_loss(labels, clipped, labels=model.classes_)
    return loss, 1 - right.mean(), calibration_error(p, right), size, np.count_nonzero(model.coef_), took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=["digits", "sector"])
    parser.add_argument("--orders", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # a budget that binds hard, or not at all, is what is compared here
    plans = {"digits": (digits, (30.0, 100.0, 1e4)), "sector": (sector, (1000.0, 1e4, 1e6))}
    for name in given.sets:
        make, budgets = plans[name]
        print(
            f"{name:<27}{'log loss':>9}{'error':>8}{'ECE':>8}{'size':>11}{'non-zeros':>11}{'µs a row':>10}", flush=True
        )
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(given.orders):
            parts = make(seed)
            for budget in budgets:
                for title, model in contestants(budget, len(np.unique(parts[1])), seed):
                    found.setdefault(f"{budget:g}: {title}", []).append(line(title, model, parts))
            if name == "digits":
                found.setdefault("LogisticRegression", []).append(line("batch", LogisticRegression(), parts))
        for title, lines in found.items():
            loss, error, gap, size, nonzeros, took = np.mean(lines, axis=0)
            print(f"  {title:<28}{loss:>6.3f}{error:>8.1%}{gap:>8.3f}{size:>11,.1f}{nonzeros:>11,.0f}{took:>10,.0f}")


if __name__ == "__main__":
    main()
