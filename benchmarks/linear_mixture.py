"""Part (e) of benchmarks/linear.py: what a mixture of scales costs a round, beside the round with one scale.

A-FTRL with constants found online, through the door with all its checks, in time of the processor. The mixture's own
work does not depend on d: it is more to rows of twenty numbers than to text.

    OPENBLAS_NUM_THREADS=1 python benchmarks/linear_mixture.py [FOLDER]

With a folder, the source of an earlier longterm, its round is timed in turn: of one that had no mixtures, say.

    git worktree add ../then bb1d5b7
    OPENBLAS_NUM_THREADS=1 python benchmarks/linear_mixture.py ../then/src
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from linear_timing import Line, data_set, ratio
from longterm.linear_model import BudgetLinearLearner

ROWS, REPEATS, BUDGET = 20_000, 31, 100.0
EARLIER = """
import sys, time
import numpy as np
from scipy import sparse
from longterm.linear_model import BudgetLinearLearner
X, y = sparse.load_npz(sys.argv[1]).tocsr(), np.load(sys.argv[2])
X = X if sys.argv[3] == "sparse" else np.ascontiguousarray(X.toarray())
for _ in sys.stdin:
    begin = time.thread_time()
    BudgetLinearLearner(X.shape[1], float(sys.argv[4]), sparse=sparse.issparse(X)).learn(X, y)
    print(time.thread_time() - begin, flush=True)
"""
"""What an earlier longterm is asked to do in a process of its own, a pass for every line that it is given."""


def pass_of(X: Any, y: Any, scales: str) -> Callable[[], float]:
    """Seconds of one pass from nothing."""

    def seconds() -> float:
        begin = time.thread_time()
        BudgetLinearLearner(X.shape[1], BUDGET, scales=scales, sparse=sparse.issparse(X)).learn(X, y)
        return time.thread_time() - begin

    return seconds


def pass_of_earlier(source: str, X: Any, y: Any, folder: Path) -> Callable[[], float]:
    """The same of the longterm in this folder, in a process of its own."""
    sparse.save_npz(folder / "rows.npz", sparse.csr_matrix(X))
    np.save(folder / "labels.npy", y)
    kind = "sparse" if sparse.issparse(X) else "dense"
    process = subprocess.Popen(
        [sys.executable, "-c", EARLIER, folder / "rows.npz", folder / "labels.npy", kind, str(BUDGET)],
        env=os.environ | {"PYTHONPATH": str(Path(source).resolve())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    asked, answers = process.stdin, process.stdout

    def seconds() -> float:
        asked.write("\n")
        asked.flush()
        return float(answers.readline())

    return seconds


def measure(earlier: str | None = None) -> Iterator[Line]:
    for name in ("covtype", "a9a", "ijcnn1", "sector"):
        data = data_set(name)
        X, y = data.features[:ROWS], data.labels[:ROWS]
        if name == "sector":
            X, y = sparse.csr_array(X), np.where(y <= 52, 1.0, -1.0)
        elif sparse.issparse(X):
            X = np.ascontiguousarray(X.toarray())
        with tempfile.TemporaryDirectory() as folder:
            passes = {"one scale": pass_of(X, y, "one"), "mixture": pass_of(X, y, "mixed")}
            if earlier is not None:
                passes["earlier"] = pass_of_earlier(earlier, X, y, Path(folder))
            for seconds in passes.values():
                seconds()  # compiles, reads pages, warms caches
            turns = [{who: 1e9 * seconds() / len(y) for who, seconds in passes.items()} for _ in range(REPEATS)]
        times = {who: [turn[who] for turn in turns] for who in passes}
        for who, found in times.items():
            remark = f"d = {X.shape[1]}"
            if who == "mixture":
                remark = f"{ratio(times, 'mixture', 'one scale'):.2f} × one scale (to reach: 1.15)"
            elif who == "earlier":
                remark = f"mixture {ratio(times, 'mixture', who):.2f} × this (to reach: 1.15)"
            yield Line(name, who, statistics.median(found), remark=remark)


if __name__ == "__main__":
    for line in measure(*sys.argv[1:2]):
        print(f"{line.setting:<28}{line.contestant:<16}{line.value:>10,.0f}  {line.unit}  {line.remark}", flush=True)
