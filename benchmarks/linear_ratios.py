"""Ratios of times and losses of the linear models, all measured in one run of about three minutes.

Every piece of work runs in turns with what it is compared with. Times are CPU times of the thread, and a ratio is the
median over the turns. `--beside SRC` also times another checkout of this package, in a process that takes turns with
this one. The first fit is timed in new processes with an empty folder for the cache of Numba.

    OPENBLAS_NUM_THREADS=1 python benchmarks/linear_ratios.py --losses
    OPENBLAS_NUM_THREADS=1 python benchmarks/linear_ratios.py --beside /path/to/other/checkout/src
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

FIRST_FIT = """
import sys, time
from longterm.data import load, load_sample
from longterm.linear_model import BudgetLinearClassifier
data = load_sample() if sys.argv[1] == "dense" else load("sector")
rows, labels = (data.features, data.labels) if sys.argv[1] == "dense" else (data.features[:500], data.labels[:500] > 52)
begin = time.process_time()
BudgetLinearClassifier(random_state=0).fit(rows, labels)
print(time.process_time() - begin)
"""
OWN = (
    "covtype, partial_fit",
    "covtype, learner",
    "covtype, file order",
    "covtype, random order",
    "a9a, partial_fit",
    "a9a, one row at a time",
    "sector, never binds",
    "sector, budget binds",
    "sector, partial_fit",
    "sector, fit, one pass",
    "sample, fit, one pass",
    "sample, budget 5, fit",
)
"""Work of this package, which another checkout does, too."""
TABLE = (
    ("covtype, partial_fit", "covtype, SGD l2", "at most 0.625 (1.6 times faster)"),
    ("covtype, file order", "covtype in C, file order", "at most 1.3"),
    ("covtype, random order", "covtype in C, random order", "at most 1.7"),
    ("sector, never binds", "sector, SGD", "at most 0.7"),
    ("sector, budget binds", "sector, SGD", "at most 1.3"),
    ("sector, partial_fit", "sector, SGD", "at most 2"),
    ("a9a, partial_fit", "a9a, SGD l2", ""),
)
"""What is compared with what, and the goal."""


def work_by_name() -> dict[str, Callable[[], object]]:
    """Return everything that is timed; what this checkout cannot do is missing."""
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import SGDClassifier

    from linear_sparse import sector
    from linear_timing import data_set
    from longterm.data import load_sample
    from longterm.linear_model import BudgetLinearClassifier, BudgetLinearLearner

    covtype, a9a, sample = data_set("covtype"), data_set("a9a"), load_sample()
    text, is_low = sector()
    wide, adult = text.shape[1], csr_matrix(a9a.features)
    adult.indices, adult.indptr = adult.indices.astype(np.int32), adult.indptr.astype(np.int32)
    few = [
        (adult.indices[a:b].astype(np.int64), adult.data[a:b], float(y))
        for a, b, y in zip(adult.indptr[:5000], adult.indptr[1:5001], a9a.labels[:5000], strict=True)
    ]

    def stream(rows: Any, labels: Any, **options: Any) -> Callable[[], object]:
        return lambda: BudgetLinearClassifier(**options).partial_fit(rows, labels, classes=[-1.0, 1.0])

    def batch(rows: Any, labels: Any, **options: Any) -> Callable[[], object]:
        return lambda: BudgetLinearClassifier(random_state=0, passes=1, **options).fit(rows, labels)

    def learner(rows: Any, labels: Any, budget: float, **options: Any) -> Callable[[], object]:
        return lambda: BudgetLinearLearner(rows.shape[1], budget, **options).learn(rows, labels)

    def one_row() -> None:
        made = BudgetLinearLearner(adult.shape[1], 100.0, sparse=True, scale_features=False)
        for indices, values, label in few:
            made.step(indices, values, label)

    def sgd(rows: Any, labels: Any, penalty: str) -> Callable[[], object]:
        model: Any = SGDClassifier(loss="log_loss", penalty=penalty, l1_ratio=0.5, random_state=0)
        return lambda: model.partial_fit(rows, labels, classes=[-1.0, 1.0])

    plain: dict[str, Any] = {"fit_intercept": False, "scale_features": False}
    sparse = {**plain, "sparse": True}
    made = {
        "covtype, partial_fit": stream(covtype.features, covtype.labels),
        "covtype, learner": learner(covtype.features, covtype.labels, 6.987, **plain),
        "covtype, SGD l2": sgd(covtype.features, covtype.labels, "l2"),
        "a9a, partial_fit": stream(adult, a9a.labels),
        "a9a, one row at a time": one_row,
        "a9a, SGD l2": sgd(adult, a9a.labels, "l2"),
        "sector, never binds": learner(text, is_low, 1e6, **sparse),
        "sector, budget binds": learner(text, is_low, 1000.0, **sparse),
        "sector, partial_fit": stream(text, is_low),
        "sector, fit, one pass": batch(text, is_low),
        "sector, SGD": sgd(text, is_low, "elasticnet"),
        "sector, SGD l2": sgd(text, is_low, "l2"),
        "sample, fit, one pass": batch(sample.features, sample.labels),
        "sample, budget 5, fit": batch(sample.features, sample.labels, budget=5.0),
    }
    assert not BudgetLinearLearner(wide, 1e6, **sparse).binds
    return made | kernels(covtype)


def kernels(covtype: Any) -> dict[str, Callable[[], object]]:
    """Return the loop of A-FTRL on covtype and the same in C, or nothing where this checkout has another layout."""
    try:
        from linear_dense import BUDGET, NO_ORDER, in_c, ours, require_same
        from longterm.linear_model._settings import Settings
    except ImportError:
        return {}
    rows, labels = covtype.features, covtype.labels
    p, shuffled = Settings(rows.shape[1], BUDGET).parameters(), np.random.default_rng(0).permutation(len(rows))
    made: dict[str, Callable[[], object]] = {}
    for name, order in (("file order", NO_ORDER), ("random order", shuffled)):
        require_same(p, rows, labels, order)
        made[f"covtype, {name}"] = lambda order=order: ours(p, rows, labels, order)
        made[f"covtype in C, {name}"] = lambda order=order: in_c(p, rows, labels, order)
    return made


def seconds(work: Callable[[], object]) -> float:
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def serve() -> None:
    """Time work by the names that arrive on standard input; "" for what this checkout cannot do."""
    answers, sys.stdout = sys.stdout, sys.stderr
    works = work_by_name()
    for line in sys.stdin:
        work = works.get(line.rstrip("\n"))
        answers.write("\n" if work is None else f"{seconds(work)}\n")
        answers.flush()


class Other:
    """Another checkout, in a process of its own."""

    def __init__(self, source: str) -> None:
        environment = os.environ | {"PYTHONPATH": source}
        command = [sys.executable, __file__, "--serve"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def seconds(self, name: str) -> float | None:
        given, answers = self.process.stdin, self.process.stdout
        assert given is not None
        assert answers is not None
        given.write(f"{name}\n")
        given.flush()
        answer = answers.readline().strip()
        return float(answer) if answer else None


def first_fit(kind: str, source: str | None = None) -> float:
    """Return the CPU seconds of the first fit in a new process without cached kernels."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder} | ({"PYTHONPATH": source} if source else {})
        done = subprocess.run(
            [sys.executable, "-c", FIRST_FIT, kind], env=environment, capture_output=True, text=True, check=True
        )
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--beside", help="the folder src of another checkout")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--only", default="", help="work whose names begin so")
    parser.add_argument("--losses", action="store_true", help="print the ratios of linear_losses.py, too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    works = {name: work for name, work in work_by_name().items() if name.startswith(options.only)}
    other = Other(options.beside) if options.beside else None
    times: dict[str, list[float]] = {name: [] for name in works}
    before: dict[str, list[float]] = {name: [] for name in OWN if name in works}
    for turn in range(options.turns + 1):  # the first compiles kernels, reads pages and warms caches
        for name, work in works.items():
            found = seconds(work)
            also = other.seconds(name) if other is not None and name in before else None
            if turn:
                times[name].append(found)
                before.get(name, []).extend([] if also is None else [also])
    print(f"{'work':<24}{'beside':<28}{'ratio':>6}  goal")
    for name, peer, goal in TABLE:
        if name in times and peer in times:
            ratio = statistics.median(a / b for a, b in zip(times[name], times[peer], strict=True))
            print(f"{name:<24}{peer:<28}{ratio:>6.2f}  {goal}")
    for name, found in before.items():
        if found:
            ratio = statistics.median(a / b for a, b in zip(times[name], found, strict=True))
            print(f"{name:<24}{'the other checkout':<28}{ratio:>6.2f}")
    for name in works:
        print(f"{name:<52}{1000 * statistics.median(times[name]):>8.1f} ms")
    for kind in ("dense", "sparse"):
        if kind.startswith(options.only) or not options.only:
            also = f", the other checkout {first_fit(kind, options.beside):.1f}" if options.beside else ""
            print(f"first fit, {kind}: {first_fit(kind):.1f} CPU s{also}; goal: at most 3")
    if options.losses:
        import linear_losses

        linear_losses.main()


if __name__ == "__main__":
    main()
