"""Part (b) of benchmarks/linear.py: A-FTRL on sparse rows, beside scikit-learn's SGD, and as d grows.

sector: labels 1–52 against the others, budget 1000, constants found online; one pass of a new learner over
the rows, with all checks, beside `SGDClassifier(alpha=1e-4, penalty="elasticnet").partial_fit` on the same
rows in the same order.
Zipf: rows of 100 non-zeros whose columns have frequencies 1/rank and lie anywhere, d from 10⁴ to 10⁷. A first pass also
touches new memory, 16 bytes for each of the d coordinates; "later" are passes over the
same rows with the learner of the pass before.

    OPENBLAS_NUM_THREADS=1 python benchmarks/linear_sparse.py
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier

from linear_timing import Line, data_set, nanoseconds, ratio
from longterm.linear_model import BudgetLinearLearner

BUDGET = 1000.0
DIMENSIONS = (10**4, 10**5, 10**6, 10**7)
ROWS, NONZEROS = 50_000, 100
REPEATS = 7
LOSSES = {"logistic": "log_loss", "hinge": "hinge"}
"""Our names, and scikit-learn's."""


def learner_for(dimension: int, loss: str = "logistic") -> BudgetLinearLearner:
    """Return a learner with constants found online."""
    return BudgetLinearLearner(dimension, BUDGET, loss=loss, fit_intercept=False, sparse=True)


def pass_over(
    rows: csr_matrix, labels: np.ndarray, loss: str = "logistic", learner: BudgetLinearLearner | None = None
) -> Callable[[], object]:
    """Return one pass, of a new learner or of the learner of the pass before."""
    return lambda: (learner or learner_for(rows.shape[1], loss)).learn(rows, labels)


def sgd(rows: csr_matrix, labels: np.ndarray, loss: str) -> Callable[[], object]:
    def work() -> None:
        model = SGDClassifier(loss=LOSSES[loss], alpha=1e-4, penalty="elasticnet", shuffle=False)
        model.partial_fit(rows, labels, classes=[-1.0, 1.0])

    return work


def sector() -> tuple[csr_matrix, np.ndarray]:
    data = data_set("sector")
    rows = csr_matrix(data.features)
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows, np.where(data.labels <= 52, 1.0, -1.0)


def zipf(dimension: int, rows: int = ROWS, seed: int = 0) -> tuple[csr_matrix, np.ndarray]:
    """Return rows whose columns have frequencies about 1/rank, and labels of a sparse model with noise."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(dimension).astype(np.int32)
    columns = np.empty((rows, NONZEROS), dtype=np.int32)
    for part in np.split(columns, range(5000, rows, 5000)):
        ranks = np.sort(np.exp(rng.random((len(part), 4 * NONZEROS)) * np.log(dimension)).astype(np.int64) - 1, axis=1)
        lottery = rng.random(ranks.shape)
        lottery[:, 1:][ranks[:, 1:] == ranks[:, :-1]] = 2.0  # never drawn twice, unless a row has too few
        chosen = np.argpartition(lottery, NONZEROS, axis=1)[:, :NONZEROS]
        part[:] = np.sort(names[np.take_along_axis(ranks, chosen, axis=1)], axis=1)
    values = rng.standard_normal(columns.shape) / np.sqrt(NONZEROS)
    truth = rng.standard_normal(dimension) * (rng.random(dimension) < 0.1)
    labels = np.where((values * truth[columns]).sum(axis=1) + 0.1 * rng.standard_normal(rows) > 0, 1.0, -1.0)
    starts = np.arange(0, columns.size + 1, NONZEROS, dtype=np.int32)
    return csr_matrix((values.ravel(), columns.ravel(), starts), shape=(rows, dimension)), labels


def measure() -> Iterator[Line]:
    rows, labels = sector()
    for loss in LOSSES:
        n = rows.shape[0]
        contestants = {"SGDClassifier": (sgd(rows, labels, loss), n), "A-FTRL": (pass_over(rows, labels, loss), n)}
        times = nanoseconds(contestants, REPEATS)
        for name, found in times.items():
            against = f"{ratio(times, name, 'SGDClassifier'):.2f} times SGDClassifier (to reach: 1.4)"
            yield Line(
                f"sector, {loss}", name, statistics.median(found), remark=against if name == "A-FTRL" else "sparse"
            )
    rows, labels = zipf(DIMENSIONS[-1])
    learner, model = learner_for(DIMENSIONS[-1]), SGDClassifier(loss="log_loss", penalty="elasticnet", shuffle=False)
    model.partial_fit(rows, labels, classes=[-1.0, 1.0])
    contestants = {
        "SGDClassifier": (lambda: model.partial_fit(rows, labels), ROWS),
        "A-FTRL": (pass_over(rows, labels, learner=learner), ROWS),
    }
    times = nanoseconds(contestants, REPEATS)
    for name, found in times.items():
        against = f"{ratio(times, name, 'SGDClassifier'):.2f} times SGDClassifier (goal 1.0)"
        yield Line("Zipf, d = 10^7, later pass", name, statistics.median(found), remark=against)
    for kind in ("later", "first"):
        passes = {}
        for d in DIMENSIONS:
            rows, labels = zipf(d)
            passes[str(d)] = pass_over(rows, labels, learner=learner_for(d) if kind == "later" else None), ROWS
        times = nanoseconds(passes, REPEATS)
        for d in DIMENSIONS:
            against = f"{ratio(times, str(d), str(DIMENSIONS[0])):.2f} times d = 10^4"
            if kind == "later" and d == DIMENSIONS[-1]:
                against += " (to reach: 2)"
            setting = f"Zipf, d = 10^{len(str(d)) - 1}, {kind} pass"
            yield Line(setting, "A-FTRL", statistics.median(times[str(d)]), remark=against)


if __name__ == "__main__":
    for line in measure():
        print(f"{line.setting:<28}{line.contestant:<16}{line.value:>10,.0f}  {line.unit}  {line.remark}", flush=True)
