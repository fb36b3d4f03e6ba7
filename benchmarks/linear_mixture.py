"""Part (e) of benchmarks/linear.py: the time of a round with a mixture of scales, beside a round with one scale.

A-FTRL with constants found online, with all checks, in processor time. The mixture's own work does not depend on d.

    OPENBLAS_NUM_THREADS=1 python benchmarks/linear_mixture.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from linear_timing import Line, data_set, ratio
from longterm.linear_model import BudgetLinearLearner

ROWS, REPEATS, BUDGET = 20_000, 31, 100.0


def pass_of(X: Any, y: Any, scales: str) -> Callable[[], float]:
    """Return a function that measures one pass of a new learner, in seconds."""

    def seconds() -> float:
        begin = time.thread_time()
        BudgetLinearLearner(X.shape[1], BUDGET, scales=scales, sparse=sparse.issparse(X)).learn(X, y)
        return time.thread_time() - begin

    return seconds


def measure() -> Iterator[Line]:
    for name in ("covtype", "a9a", "ijcnn1", "sector"):
        data = data_set(name)
        X, y = data.features[:ROWS], data.labels[:ROWS]
        if name == "sector":
            X, y = sparse.csr_array(X), np.where(y <= 52, 1.0, -1.0)
        elif sparse.issparse(X):
            X = np.ascontiguousarray(X.toarray())
        passes = {"one scale": pass_of(X, y, "one"), "mixture": pass_of(X, y, "mixed")}
        for seconds in passes.values():
            seconds()  # compiles, reads pages, fills caches
        turns = [{who: 1e9 * seconds() / len(y) for who, seconds in passes.items()} for _ in range(REPEATS)]
        times = {who: [turn[who] for turn in turns] for who in passes}
        for who, found in times.items():
            remark = f"d = {X.shape[1]}"
            if who == "mixture":
                remark = f"{ratio(times, 'mixture', 'one scale'):.2f} × one scale"
            yield Line(name, who, statistics.median(found), remark=remark)


if __name__ == "__main__":
    for line in measure():
        print(f"{line.setting:<28}{line.contestant:<16}{line.value:>10,.0f}  {line.unit}  {line.remark}", flush=True)
