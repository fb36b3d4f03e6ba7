"""Time `hindsight.best` for 57 recorded rounds of absolute losses beside a linear program by hand for each of them.

    python benchmarks/hindsight_programs.py [ROUNDS ...]

By hand, each recorded round is SciPy's HiGHS on min Σ z_s, −z_s ≤ ⟨a_s, x⟩ − b_s ≤ z_s, A x ≤ c, −1 ≤ x ≤ 1. Seconds
of CPU, in ten dimensions with three affine constraints.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from longterm import Problem, hindsight
from longterm.problems.constraints import Affine
from longterm.problems.losses import Absolute
from longterm.problems.sets import Box
from longterm.problems.streams import Replay

D, RECORDED = 10, 57


def measure(rounds: int) -> None:
    """Print both times, their ratio, the worst gap and the largest difference of the losses."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((rounds, D))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    point = rng.uniform(-0.5, 0.5, D)
    labels = np.clip(rows @ point + 0.3 * rng.standard_normal(rounds), -1, 1)
    matrix = rng.standard_normal((3, D))
    limit = matrix @ point - 0.1
    recorded = np.unique(np.round(np.linspace(rounds / RECORDED, rounds, RECORDED)).astype(int))
    begin, losses = time.process_time(), []
    for t in recorded:
        each, none = sparse.eye_array(t), sparse.csr_array((3, t))
        table = sparse.block_array([[rows[:t], -each], [-rows[:t], -each], [matrix, none]], format="csr")
        right = np.concatenate([labels[:t], -labels[:t], limit])
        bounds = [(-1.0, 1.0)] * D + [(0.0, None)] * int(t)
        losses.append(linprog(np.r_[np.zeros(D), np.ones(t)], A_ub=table, b_ub=right, bounds=bounds).fun)
    by_hand, begin = time.process_time() - begin, time.process_time()
    problem = Problem(Box.cube(D, -1.0, 1.0), Absolute(D, 1.0, 1.0), Affine(matrix, limit))
    best = hindsight.best(problem, Replay([rows, labels]), recorded, progress=None)
    ours, worst = time.process_time() - begin, float(np.abs(best.loss - losses).max())
    print(f"T = {rounds:,}: by hand {by_hand:.2f} s, best {ours:.2f} s, ratio {ours / by_hand:.2f}, ", end="")
    print(f"worst gap {best.gap.max():.1g}, losses differ by at most {worst:.1g}")


if __name__ == "__main__":
    for asked in [int(word) for word in sys.argv[1:]] or [57, 400, 1000]:
        measure(asked)
