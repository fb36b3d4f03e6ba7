"""Compare linear models with default settings (make bench-models; results: docs/benchmarks/models.md).

Progressive loss: each row is scored before it is learned; the mean log loss of the first 2,000 rows of each order.
Ours, SGDClassifier (default settings, and the best of seven settings for each data set, chosen in hindsight), Vowpal
Wabbit and River with default settings, and the base rate (Krichevsky–Trofimov).
Held-out loss: `fit` on those rows, then log loss, error and non-zeros on up to 5,000 others. Ours, LogisticRegression
(ℓ2 with default settings, ℓ1 and ℓ2 cross-validated).
Churn: an invented table of 5,000 rows with mixed columns; ours with budgets and limits on the number of features,
SGDClassifier with ℓ1 penalties.
Regression: squared errors over the variance of the targets, progressive, and held out beside cross-validated ridge.
`--figure` draws held-out loss against non-zeros, ours over budgets and LogisticRegression over C.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from longterm.data import load, load_adult, load_elec2, load_sample
from longterm.linear_model import BudgetLinearClassifier, BudgetLinearRegressor, BudgetPathClassifier

ROWS, TEST = 2000, 5000
SETTINGS = [{"alpha": a} for a in (1e-5, 1e-4, 1e-3)] + [
    {"learning_rate": "constant", "eta0": eta, "alpha": 1e-6} for eta in (0.003, 0.03, 0.3, 3.0)
]


def data_sets() -> Iterator[tuple[str, Any, Any, bool]]:
    """Yield name, rows, labels ±1, and whether the order of the file is that of time."""
    a9a = load("a9a")
    yield "a9a", a9a.features, a9a.labels, False
    yield "a9a, 500 rows", a9a.features, a9a.labels, False
    rng = np.random.default_rng(0)
    rare = rng.choice(np.flatnonzero(a9a.labels > 0), 14, replace=False)
    kept = np.concatenate([rare, rng.choice(np.flatnonzero(a9a.labels < 0), 6986, replace=False)])
    yield "a9a, 0.2 % positive", a9a.features[kept], a9a.labels[kept], False
    ijcnn1 = load("ijcnn1")
    yield "ijcnn1", ijcnn1.features, ijcnn1.labels, False
    yield "ijcnn1, 500 rows", ijcnn1.features, ijcnn1.labels, False
    sample = load_sample()
    yield "sample (covtype)", sample.features, sample.labels, False
    sector = load("sector")
    yield "sector, classes 1–52", sector.features, np.where(sector.labels <= 52, 1.0, -1.0), False
    adult = load_adult()
    yield "Adult", _adult(adult.columns), adult.labels, False
    e = load_elec2()
    columns = (e.period, e.nsw_price, e.nsw_demand, e.vic_price, e.vic_demand, e.transfer)
    yield "ELEC2, in time", np.ascontiguousarray(np.stack(columns, axis=1)), e.labels, True
    cancer, digits = load_breast_cancer(), load_digits()
    yield "breast cancer", cancer.data, np.where(cancer.target > 0, 1.0, -1.0), False
    yield "digits, even or odd", digits.data, np.where(digits.target % 2 == 0, 1.0, -1.0), False


def _adult(columns: dict[str, Any]) -> Any:
    """Return the table with numbers standardised and a column for each word."""
    columns_out = []
    for name, values in columns.items():
        if name in ("income", "fnlwgt"):
            continue
        if values.dtype.kind == "f":
            columns_out.append(((values - values.mean()) / values.std())[:, None])
        else:
            columns_out.append((values[:, None] == np.unique(values)).astype(float))
    return sparse.csr_array(np.concatenate(columns_out, axis=1))


def as_learned(X: Any) -> Any:
    """Return few columns as an array, many as CSR with 32-bit indices, which scikit-learn requires."""
    if not sparse.issparse(X):
        return X
    if X.shape[1] < 200:
        return np.ascontiguousarray(X.toarray())
    return sparse.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def log_loss(margins: Any, y: Any) -> float:
    return float(np.mean(np.logaddexp(0.0, -y * np.asarray(margins))))


# --- progressive ----------------------------------------------------------------------------------------------


def ours_in_stream(X: Any, y: Any, **more: Any) -> Any:
    model = BudgetLinearClassifier(**more).partial_fit(X[:1], y[:1], classes=[-1.0, 1.0])
    return np.append(0.0, model._learners[0].learn(X[1:], y[1:]))


def base_rate(X: Any, y: Any) -> Any:
    before = np.concatenate([[0], np.cumsum(y > 0)[:-1]])
    return np.log((before + 0.5) / (np.arange(len(y)) - before + 0.5))


def sgd_in_stream(X: Any, y: Any, **setting: Any) -> Any:
    from sklearn.linear_model import SGDClassifier

    model, margins = SGDClassifier(loss="log_loss", random_state=0, **setting), np.zeros(len(y))
    for i in range(len(y)):
        if i:
            margins[i] = model.decision_function(X[i : i + 1])[0]
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[-1.0, 1.0])
    return margins


def _dictionaries(X: Any) -> list[dict[int, float]]:
    rows = sparse.csr_array(X)
    parts = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [dict(zip(rows.indices[a:b].tolist(), rows.data[a:b].tolist(), strict=True)) for a, b in parts]


def river_in_stream(X: Any, y: Any) -> Any:
    from river.linear_model import LogisticRegression

    model, margins = LogisticRegression(), np.zeros(len(y))
    for i, row in enumerate(_dictionaries(X)):
        p = model.predict_proba_one(row)[True]
        margins[i] = np.log(max(p, 1e-15) / max(1 - p, 1e-15))
        model.learn_one(row, bool(y[i] > 0))
    return margins


def vowpal_wabbit_in_stream(X: Any, y: Any, loss: str = "logistic") -> Any:
    from vowpalwabbit import Workspace

    model, margins = Workspace(loss_function=loss, quiet=True), np.zeros(len(y))
    for i, row in enumerate(_dictionaries(X)):
        example = model.parse(f"{y[i]:.9g} | " + " ".join(f"{k}:{v:.9g}" for k, v in row.items()))
        model.learn(example)
        margins[i] = example.get_simplelabel_prediction()
        model.finish_example(example)
    return margins


# --- held out -------------------------------------------------------------------------------------------------


def logistic_regressions() -> dict[str, Callable[[], Any]]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    grid = {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}

    def chosen(**more: Any) -> Any:
        return GridSearchCV(LogisticRegression(max_iter=2000, **more), grid, cv=3, scoring="neg_log_loss")

    return {
        "LogisticRegression ℓ2": lambda: LogisticRegression(max_iter=2000),
        "LogisticRegression ℓ2, CV": chosen,
        "LogisticRegression ℓ1, CV": lambda: chosen(penalty="l1", solver="liblinear"),
    }


def nonzeros(model: Any) -> int:
    return int(np.count_nonzero(getattr(model, "best_estimator_", model).coef_))


def show(name: str, values: list[list[float]], heads: tuple[str, ...]) -> None:
    means = np.mean(values, axis=0)
    spread = np.std([v[0] for v in values])
    rest = "  ".join(f"{head} {mean:.4g}" for head, mean in zip(heads[1:], means[1:], strict=True))
    print(f"    {name:<34}{means[0]:.4f} ± {spread:.4f}   {rest}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--seed", type=int, default=7, help="draws the orders")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--quick", action="store_true", help="without SGDClassifier, slow one row at a time")
    parser.add_argument("--only", nargs="*", default=[""], help="data sets whose names begin so")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, X, y, in_time in data_sets():
        if not name.startswith(tuple(options.only)):
            continue
        X = as_learned(X)
        n = 500 if "500" in name else 2000 if "0.2" in name else min(options.rows, len(y) * 2 // 3)
        orders = (
            [np.arange(len(y))]
            if in_time
            else [np.random.default_rng([options.seed, k]).permutation(len(y)) for k in range(options.orders)]
        )
        print(f"{name}: {n} rows, d = {X.shape[1]}, {len(orders)} orders", flush=True)
        print("  progressive log loss, time in ms")
        streams: dict[str, Callable[..., Any]] = {"base rate": base_rate, "ours": ours_in_stream}
        streams["ours, penalised FTRL"] = lambda X, y: ours_in_stream(X, y, rule="penalised-ftrl")
        if not options.quick:
            streams["SGDClassifier"] = sgd_in_stream
        if find_spec("vowpalwabbit"):
            streams["Vowpal Wabbit"] = vowpal_wabbit_in_stream
        if find_spec("river"):
            streams["River"] = river_in_stream
        for which, score in streams.items():
            score(X[:20], y[:20])  # compile the kernels
            found = []
            for order in orders:
                rows, labels = X[order[:n]], y[order[:n]]
                begin = time.perf_counter()
                loss = log_loss(score(rows, labels), labels)
                found.append([loss, 1000 * (time.perf_counter() - begin)])
            show(which, found, ("loss", "ms"))
        if not options.quick:
            tuned = min(
                ([[log_loss(sgd_in_stream(X[o[:n]], y[o[:n]], **s), y[o[:n]])] for o in orders[:2]] for s in SETTINGS),
                key=lambda found: float(np.mean(found)),
            )
            show("SGDClassifier, best of seven", tuned, ("loss",))
        print("  held-out log loss, error, non-zeros, time in ms")
        fits: dict[str, Callable[[], Any]] = {
            "ours": lambda: BudgetLinearClassifier(random_state=0),
            "ours, one pass": lambda: BudgetLinearClassifier(random_state=0, passes=1),
        } | logistic_regressions()
        for which, make in fits.items():
            found = []
            for order in orders:
                train, test = order[:n], order[n : n + TEST]
                begin = time.perf_counter()
                model = make().fit(X[train], y[train])
                took = 1000 * (time.perf_counter() - begin)
                margins = model.decision_function(X[test])
                error = float(np.mean((margins > 0) != (y[test] > 0)))
                found.append([log_loss(margins, y[test]), error, nonzeros(model), took])
            show(which, found, ("loss", "error", "non-zeros", "ms"))
    if "" in options.only or "churn" in options.only:
        show_churn(options.orders)
    if "" in options.only or "regression" in options.only:
        for name, X, y, in_time in regressions():
            show_regression(name, X, y, in_time)
    if options.figure:
        draw(options.figure)


# --- a churn table --------------------------------------------------------------------------------------------


def churn_table(seed: int, rows: int = 5000) -> tuple[Any, Any]:
    """Return an invented table of seven numbers and four categorical columns (19 indicators), and labels ±1."""
    rng = np.random.default_rng(seed)
    tenure, charge = rng.gamma(1.3, 20.0, rows), rng.normal(65, 28, rows).clip(18, 130)
    total, age = tenure * charge * rng.normal(1, 0.05, rows), rng.normal(45, 15, rows).clip(18, 90)
    calls, late, usage = rng.poisson(1.5, rows), rng.poisson(0.4, rows), rng.lognormal(3, 1, rows)
    effects = (
        [0.5, -0.4, -0.9],
        [0.35, -0.1, -0.1, -0.15],
        [0, 0, 0.1, -0.1, 0.2, -0.2, 0.3, -0.3],
        [0, 0.1, -0.2, 0.4],
    )
    margins = 0.012 * (charge - 65) - 0.02 * (tenure - 26) + 0.25 * (calls - 1.5) + 0.3 * (late - 0.4) - 1.15
    columns = [tenure, charge, total, age, calls, late, usage]
    for effect in effects:
        words = rng.choice(len(effect), rows, p=rng.dirichlet(np.full(len(effect), 4.0)))
        margins = margins + np.array(effect)[words]
        columns += list(np.eye(len(effect))[words].T)
    return np.stack(columns, axis=1), np.where(rng.logistic(size=rows) < margins, 1.0, -1.0)


def show_churn(orders: int) -> None:
    """Print held-out losses on a quarter of the churn table; SGDClassifier and LogisticRegression on scaled columns."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def scaled(model: Any) -> Any:
        return make_pipeline(StandardScaler(), model)

    def sgd(alpha: float) -> Any:
        return scaled(SGDClassifier(loss="log_loss", penalty="l1", alpha=alpha, random_state=0))

    fits: dict[str, Callable[[], Any]] = {
        "ours": lambda: BudgetLinearClassifier(random_state=0),
        "ours, budget 2, l2 = 0": lambda: BudgetLinearClassifier(2.0, l2=0.0, random_state=0),
        "ours, max_features 7": lambda: BudgetLinearClassifier(max_features=7, random_state=0),
        "ours, budget 20, max_features 7": lambda: BudgetLinearClassifier(20.0, max_features=7, random_state=0),
        "ours, path, max_features 7": lambda: BudgetPathClassifier(max_features=7, random_state=0),
        "LogisticRegression ℓ2": lambda: scaled(LogisticRegression(max_iter=1000)),
        "SGDClassifier": lambda: scaled(SGDClassifier(loss="log_loss", random_state=0)),
        "SGDClassifier ℓ1, α = 0.01": lambda: sgd(0.01),
        "SGDClassifier ℓ1, α = 0.02": lambda: sgd(0.02),
    }
    print(f"churn table: 3750 rows, d = 26, {orders} tables")
    print("  held-out log loss, error, non-zeros, time in ms")
    for which, make in fits.items():
        found = []
        for seed in range(orders):
            X, y = churn_table(seed)
            begin = time.perf_counter()
            model = make().fit(X[:3750], y[:3750])
            took = 1000 * (time.perf_counter() - begin)
            margins = model.decision_function(X[3750:])
            error, size = (
                float(np.mean((margins > 0) != (y[3750:] > 0))),
                nonzeros(getattr(model, "steps", [[model]])[-1][-1]),
            )
            found.append([log_loss(margins, y[3750:]), error, size, took])
        show(which, found, ("loss", "error", "non-zeros", "ms"))


# --- regression -----------------------------------------------------------------------------------------------


def regressions() -> Iterator[tuple[str, Any, Any, bool]]:
    """Yield name, rows, targets, and whether the order is that of time."""
    e, day = load_elec2(), 48
    lags = (day, day + 1, 2 * day, 3 * day, 6 * day, 7 * day)
    demand, period = e.nsw_demand, np.round(e.period * (day - 1)).astype(int)
    rows = np.stack([demand[7 * day - lag : len(demand) - lag] for lag in lags], axis=1)
    yield "NSW demand, a day ahead", np.hstack([rows, np.eye(day)[period[7 * day :]]]), demand[7 * day :], True
    diabetes = load_diabetes()
    yield "diabetes", diabetes.data, diabetes.target, False
    if find_spec("river"):
        from river.datasets import TrumpApproval

        rows_and_targets = [(list(row.values()), target) for row, target in TrumpApproval()]
        X, y = (np.array(part, dtype=np.float64) for part in zip(*rows_and_targets, strict=True))
        yield "TrumpApproval", X, y, True


def show_regression(name: str, X: Any, y: Any, in_time: bool) -> None:
    """Print squared errors over the variance of the targets: progressive, and of the last third held out."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    print(f"{name}: {len(y)} rows, d = {X.shape[1]}", flush=True)
    orders = [np.random.default_rng([7, k]).permutation(len(y)) for k in range(5)]
    progressive, wabbit, ours, ridge = [], [], [], []
    for order in [np.arange(len(y))] if in_time else orders:
        rows, targets, cut = X[order], y[order], len(y) * 2 // 3
        model = BudgetLinearRegressor().partial_fit(rows[:1], targets[:1])
        margins = model._learners[0].learn(rows[1:], targets[1:])
        progressive.append([float(np.mean((margins - targets[1:]) ** 2) / np.var(targets))])
        if find_spec("vowpalwabbit"):
            margins = vowpal_wabbit_in_stream(rows, targets, "squared")[1:]
            wabbit.append([float(np.mean((margins - targets[1:]) ** 2) / np.var(targets))])
        for found, model in (
            (ours, BudgetLinearRegressor(random_state=0)),
            (ridge, make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))),
        ):
            errors = model.fit(rows[:cut], targets[:cut]).predict(rows[cut:]) - targets[cut:]
            found.append([float(np.mean(errors**2) / np.var(targets[cut:]))])
    lines = {"ours, progressive": progressive, "Vowpal Wabbit, progressive": wabbit}
    for which, values in (lines | {"ours, held out": ours, "RidgeCV, held out": ridge}).items():
        if values:
            show(which, values, ("error",))


def draw(path: Path) -> None:
    """Draw held-out loss against non-zeros on a9a and sector."""
    import matplotlib.pyplot as plt
    from sklearn.linear_model import LogisticRegression

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    wanted = [one for one in data_sets() if one[0] in ("a9a", "sector, classes 1–52")]
    for axis, (name, X, y, _) in zip(axes, wanted, strict=True):
        X = as_learned(X)
        order = np.random.default_rng([7, 0]).permutation(len(y))
        train, test = order[:ROWS], order[ROWS : ROWS + TEST]
        ours = [
            BudgetLinearClassifier(b, l2=0.0, rule=rule, random_state=0).fit(X[train], y[train])
            for rule in ("a-ftrl",)
            for b in np.geomspace(0.5, 2000, 14)
        ]
        theirs = [
            LogisticRegression(C=c, penalty="l1", solver="liblinear", max_iter=2000).fit(X[train], y[train])
            for c in np.geomspace(0.005, 100, 12)
        ]
        for models, label, mark in ((ours, "ours, ℓ1 budgets", "o-"), (theirs, "LogisticRegression ℓ1", "s--")):
            points = sorted((nonzeros(m), log_loss(m.decision_function(X[test]), y[test])) for m in models)
            axis.plot(*zip(*points, strict=True), mark, label=label, markersize=3)
        axis.set_xscale("symlog")
        axis.set_xlabel("weights that are not 0")
        axis.set_ylabel("held-out log loss")
        axis.set_title(name, loc="left", fontsize=10)
        axis.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
