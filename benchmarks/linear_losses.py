"""Ratios of losses of the linear models: spare budgets, odd units, and text that was not seen.

Sets are real, and generated ones that were not used to choose anything: collinear, heavy-tailed, with constants, and
text whose words follow Zipf's law.

    python benchmarks/linear_losses.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss

from linear_timing import data_set
from longterm.linear_model import BudgetLinearClassifier, BudgetLinearRegressor

ROWS, LOW, HIGH = 2000, -2.0, 3.0
"""Rows of a stream; columns are multiplied by 10^U(LOW, HIGH)."""
BUDGETS = (1e7, 1e5, 1e3, 100.0, 30.0)
"""Spare budgets: those that bind are left out."""
Rows = tuple[Any, Any]


def real(name: str, rng: np.random.Generator, first: int = 0) -> Rows:
    """Return random rows of a data set; with `first` its classes up to that are the positive ones."""
    data = data_set(name)
    chosen = rng.permutation(len(data.labels))[:ROWS]
    labels = data.labels[chosen]
    rows = sparse.csr_matrix(data.features)[chosen] if sparse.issparse(data.features) else data.features[chosen]
    return rows, np.where(labels <= first, 1.0, -1.0) if first else labels


def table(kind: str, rng: np.random.Generator, count: int = ROWS) -> Rows:
    """Return a generated table with labels of a sparse logistic model."""
    X = rng.standard_normal((count, 30))
    if kind == "collinear":
        X = rng.standard_normal((count, 5)) @ rng.standard_normal((5, 30)) + 0.05 * X
    elif kind == "heavy-tailed":
        X = rng.standard_t(2, size=(count, 30))
    elif kind == "constants":
        X[:, ::3] = 5 * rng.standard_normal(10)
    margins = np.clip(X, -5, 5) @ (rng.standard_normal(30) * (rng.random(30) < 0.4))
    return X, np.where(margins - np.median(margins) + rng.logistic(size=count) > 0, 1.0, -1.0)


def text(rng: np.random.Generator, count: int = ROWS, length: int = 60, *, tfidf: bool = False) -> Rows:
    """Return counts, or tf-idf rows of length 1, of words with Zipf's law, a third of them tilted by the label."""
    words = 20_000
    tilt, labels = np.exp(0.7 * rng.standard_normal(words) * (rng.random(words) < 0.3)), rng.choice([-1.0, 1.0], count)
    chances = {side: tilt**side / np.arange(1, words + 1) for side in (-1.0, 1.0)}
    drawn = [rng.choice(words, rng.poisson(length) + 1, p=chances[y] / chances[y].sum()) for y in labels]
    rows = np.repeat(np.arange(count), [len(one) for one in drawn])
    made = sparse.csr_matrix((np.ones(len(rows)), (rows, np.concatenate(drawn))), shape=(count, words))
    if tfidf:
        shares = (1 + np.bincount(made.indices, minlength=words)) / (1 + count)
        made.data = (1 + np.log(made.data)) * -np.log(shares[made.indices])
        made = sparse.csr_matrix(sparse.diags_array(1 / np.sqrt(made.multiply(made).sum(axis=1)).A1) @ made)
        made.indices, made.indptr = made.indices.astype(np.int32), made.indptr.astype(np.int32)
    return made, np.where(rng.random(count) < 0.05, -labels, labels)


SETS: dict[str, Callable[[np.random.Generator], Rows]] = {
    "covtype": lambda rng: real("covtype", rng),
    "ijcnn1": lambda rng: real("ijcnn1", rng),
    "a9a": lambda rng: real("a9a", rng),
    "sector, classes 1-52": lambda rng: real("sector", rng, 52),
    "collinear": lambda rng: table("collinear", rng),
    "heavy-tailed": lambda rng: table("heavy-tailed", rng),
    "constants": lambda rng: table("constants", rng),
    "40 rows": lambda rng: table("", rng, 40),
    "text, counts": text,
    "text, tf-idf": lambda rng: text(rng, tfidf=True),
}


def progressive(rows: Any, labels: Any, budget: float | None = None) -> tuple[float, bool]:
    """Return the progressive loss of the defaults, and True if the budget was ever reached."""
    model = BudgetLinearClassifier(budget, random_state=0).partial_fit(rows, labels, classes=[-1.0, 1.0])
    return model.cumulative_loss_, bool(model.budget_binds_)


def in_odd_units(rows: Any, rng: np.random.Generator) -> Any:
    units = 10.0 ** rng.uniform(LOW, HIGH, rows.shape[1])
    return sparse.csr_matrix(rows.multiply(units)) if sparse.issparse(rows) else rows * units


def streams(seeds: int = 2) -> Iterator[tuple[str, float, float]]:
    """Yield the name of a set, the ratio of its worst spare budget, and the mean ratio of odd units."""
    for name, make in SETS.items():
        spare, odd = [], []
        for seed in range(seeds):
            rows, labels = make(np.random.default_rng(seed))
            own, _ = progressive(rows, labels)
            found = [progressive(rows, labels, budget) for budget in BUDGETS]
            spare += [loss / own for loss, binds in found if not binds]
            odd.append(progressive(in_odd_units(rows, np.random.default_rng(seed + 9)), labels)[0] / own)
        yield name, max(spare), float(np.mean(odd))


def targets() -> Iterator[tuple[str, float]]:
    """Yield the name of a set of targets, and the ratio of its worst spare budget."""
    for kind in ("", "collinear", "heavy-tailed", "constants"):
        for noise in (2.0, 1.5):  # degrees of freedom
            rng = np.random.default_rng(0)
            rows, _ = table(kind, rng)
            y = rows @ rng.standard_normal(rows.shape[1]) + rng.standard_t(noise, len(rows))
            free = BudgetLinearRegressor(random_state=0).partial_fit(rows, y).cumulative_loss_
            found = [BudgetLinearRegressor(b, random_state=0).partial_fit(rows, y) for b in (1e9, *BUDGETS)]
            ratios = [one.cumulative_loss_ / free for one in found if not one.budget_binds_]
            yield f"targets, {kind or 'Gaussian'}, t({noise:g})", max(ratios, default=1.0)


def unseen() -> Iterator[tuple[str, float, float, dict[int, float]]]:
    """Yield a task, the held-out loss of `fit` over those of SGD and LogisticRegression, and with few features."""
    learn, test = data_set("sector"), data_set("sector.t")
    rng, tasks = np.random.default_rng(0), {}
    for low in (10, 52):
        both = [(one.features, np.where(one.labels <= low, 1.0, -1.0)) for one in (learn, test)]
        tasks[f"sector, classes 1-{low}"] = (*both[0], *both[1])
    for number in range(3):
        classes = rng.choice(np.arange(1, 106), 20, replace=False)
        parts = [(one, np.isin(one.labels, classes)) for one in (learn, test)]
        both = [(one.features[of], np.where(np.isin(one.labels[of], classes[:10]), 1.0, -1.0)) for one, of in parts]
        tasks[f"sector, 10 classes of 20, {number}"] = (*both[0], *both[1])
    for tfidf in (False, True):
        rows, labels = text(rng, 2 * ROWS, tfidf=tfidf)
        tasks[f"text, {'tf-idf' if tfidf else 'counts'}"] = rows[:ROWS], labels[:ROWS], rows[ROWS:], labels[ROWS:]
    for name, (X, y, X_new, y_new) in tasks.items():

        def loss(model: Any, given: Any = (X, y, X_new, y_new)) -> float:
            rows = [sparse.csr_matrix(one) for one in given[::2]]
            for one in rows:
                one.indices, one.indptr = one.indices.astype(np.int32), one.indptr.astype(np.int32)
            return float(log_loss(given[3], model.fit(rows[0], given[1]).predict_proba(rows[1])))

        ours = loss(BudgetLinearClassifier(random_state=0))
        sgd = np.mean([loss(SGDClassifier(loss="log_loss", random_state=seed)) for seed in range(3)])
        few = {k: loss(BudgetLinearClassifier(max_features=k, random_state=0)) / ours for k in (60, 200, 1000)}
        yield name, ours / float(sgd), ours / loss(LogisticRegression(max_iter=1000)), few


def main() -> None:
    print(f"{'progressive loss, 2,000 rows':<32}{'spare budget over none':>24}{'odd units over own':>20}")
    for name, spare, odd in streams():
        print(f"{name:<32}{spare:>24.3f}{odd:>20.3f}", flush=True)
    for name, spare in targets():
        print(f"{name:<32}{spare:>24.3f}", flush=True)
    print("goals: at most 1.01, at most 1.05")
    print(f"{'held-out loss of fit':<32}{'over SGD':>10}{'over LogisticRegression':>25}  max_features over all")
    for name, sgd, regression, few in unseen():
        listed = ", ".join(f"{k}: {ratio:.2f}" for k, ratio in few.items())
        print(f"{name:<32}{sgd:>10.2f}{regression:>25.2f}  {listed}", flush=True)
    print("goals: at most 1.05, below 1, and falling")


if __name__ == "__main__":
    main()
