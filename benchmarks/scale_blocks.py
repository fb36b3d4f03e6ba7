"""What it does to losses that scales of a mixture pay in blocks of rounds (docs/scales.md), not in every round.

    OPENBLAS_NUM_THREADS=1 python benchmarks/scale_blocks.py

A-FTRL on all of a9a, ijcnn1 and sector and on 60,000 rows of covtype, in their own order and in a random one: the
progressive loss at each budget where scales pay in every round, and by what part it is larger in blocks.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from linear_timing import data_set
from longterm.linear_model import BudgetLinearLearner

BUDGETS, ROWS = (10.0, 100.0, 1_000.0, 10_000.0), 60_000


def loss(X, y, order, budget: float, waits: float) -> float:
    learner = BudgetLinearLearner(X.shape[1], budget, sparse=sparse.issparse(X))
    learner._rule.scalars["waits"] = waits
    learner.learn(X, y, order=order)
    return learner.cumulative_loss / len(y)


def main() -> None:
    for name in ("a9a", "ijcnn1", "covtype", "sector"):
        data = data_set(name)
        X, y = data.features[:ROWS], data.labels[:ROWS]
        if name == "sector":
            X, y = sparse.csr_array(X), np.where(y <= 52, 1.0, -1.0)
        elif sparse.issparse(X):
            X = np.ascontiguousarray(X.toarray())
        own = np.arange(len(y))
        for kind, order in (("own order", own), ("random order", np.random.default_rng(5).permutation(own))):
            found = [(loss(X, y, order, budget, 0.0), loss(X, y, order, budget, 1.0)) for budget in BUDGETS]
            cells = "  ".join(f"{every:.4f} {100 * (blocks / every - 1):+.2f} %" for every, blocks in found)
            print(f"{name:<9}{kind:<14}{cells}", flush=True)


if __name__ == "__main__":
    main()
