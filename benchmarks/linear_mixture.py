"""Part (e) of benchmarks/linear.py: what a mixture of scales costs a round, beside the round with one scale.

A-FTRL with constants found online, through the door with all its checks, in time of the processor. The mixture's own
work does not depend on d: it is more to rows of twenty numbers than to text.

    OPENBLAS_NUM_THREADS=1 python benchmarks/linear_mixture.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from linear_timing import Line, data_set, nanoseconds, ratio
from longterm.linear_model import BudgetLinearLearner

ROWS, REPEATS, BUDGET = 20_000, 31, 100.0


def passes(X: Any, y: Any) -> dict[str, tuple[Callable[[], object], int]]:
    """One pass from nothing, with one scale and with eight."""

    def work(scales: str) -> Callable[[], object]:
        return lambda: BudgetLinearLearner(X.shape[1], BUDGET, scales=scales, sparse=sparse.issparse(X)).learn(X, y)

    return {name: (work(scales), X.shape[0]) for name, scales in (("one scale", "one"), ("mixture", "mixed"))}


def measure() -> Iterator[Line]:
    for name in ("covtype", "a9a", "ijcnn1", "sector"):
        data = data_set(name)
        X, y = data.features[:ROWS], data.labels[:ROWS]
        if name == "sector":
            X, y = sparse.csr_array(X), np.where(y <= 52, 1.0, -1.0)
        elif sparse.issparse(X):
            X = np.ascontiguousarray(X.toarray())
        times = nanoseconds(passes(X, y), REPEATS, time.thread_time)
        for contestant, found in times.items():
            remark = f"d = {X.shape[1]}"
            if contestant == "mixture":
                remark = f"{ratio(times, 'mixture', 'one scale'):.2f} × one scale (to reach: 1.15)"
            yield Line(name, contestant, statistics.median(found), remark=remark)


if __name__ == "__main__":
    for line in measure():
        print(f"{line.setting:<28}{line.contestant:<16}{line.value:>10,.0f}  {line.unit}  {line.remark}", flush=True)
