"""A sparse web set, invented: `fit` without a budget beside cross-validated LogisticRegression. See docs/models.md.

    python benchmarks/web.py

300 features that are 0 or 1, twelve of them 1 in a row on average, 3 % positives, weights from a Gaussian prior, which
is the one of an ℓ2 penalty. Features are equally frequent (skew 0) or fall off with their rank (1, 1.5), and go
together by eight topics. Held-out log loss of 10,000 other rows, means of three orders.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit

from longterm.linear_model import BudgetLinearClassifier
from models import log_loss, logistic_regressions

FEATURES, IN_A_ROW, POSITIVE, TOPICS, ORDERS, TEST = 300, 12, 0.03, 8, 3, 10_000


def web(rows: int, skew: float, deviation: float, seed: int) -> tuple[Any, Any]:
    """Rows and labels ±1."""
    rng = np.random.default_rng([seed, 11])
    often = (1.0 + np.arange(FEATURES)) ** -skew
    for _ in range(5):
        often = np.minimum(often * IN_A_ROW / often.sum(), 0.6)
    weights, topics = rng.normal(0, deviation, FEATURES), np.exp(rng.standard_normal((TOPICS, FEATURES)))
    chances = np.minimum(often * topics[rng.integers(TOPICS, size=rows)] / topics.mean(axis=0), 0.9)
    X = (rng.random((rows, FEATURES)) < chances).astype(float)
    margins = X @ weights
    level = brentq(lambda b: float(np.mean(expit(margins + b))) - POSITIVE, -60, 60)
    return sparse.csr_matrix(X), np.where(rng.random(rows) < expit(margins + level), 1.0, -1.0)


def main() -> None:
    cases = [(n, skew, deviation) for n in (2000, 10_000) for skew in (0.0, 1.0, 1.5) for deviation in (0.7, 1.5)]
    for n, skew, deviation in [*cases, (50_000, 1.0, 1.0)]:
        X, y = web(n + TEST, skew, deviation, seed=2026)
        found = []
        for k in range(ORDERS):
            order = np.random.default_rng([17, k]).permutation(len(y))
            train, test, row = order[:n], order[n:], []
            for model in (
                BudgetLinearClassifier(random_state=0),
                logistic_regressions()["LogisticRegression ℓ2, CV"](),
            ):
                begin = time.process_time()
                model.fit(X[train], y[train])
                row += [log_loss(model.decision_function(X[test]), y[test]), time.process_time() - begin]
            found.append(row)
        ours, seconds, theirs, their_seconds = np.mean(found, axis=0)
        print(
            f"{n:>6} rows, skew {skew}, deviation {deviation}: ours {ours:.4f} ({seconds:.2f} s)   "
            f"ℓ2, CV {theirs:.4f} ({their_seconds:.2f} s)   ratio {ours / theirs:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
