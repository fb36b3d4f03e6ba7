"""The part of benchmarks/scale.py that wants a GPU: `make bench-gpu`. Rows like those of covtype, or covtype itself.

    python benchmarks/scale_gpu.py [rows.npz with X and y, or -] [gpu.json]

With a second name the points of the figure are written there (benchmarks/draw_costs.py).
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

BUDGETS, SEQUENCES, LEARNERS, DIMENSION = 16_384, 4096, 1_000_000, 64


def rows_like_covtype(count: int = 581_012) -> tuple[Any, Any]:
    """54 columns, ten of them dense in [0, 1], two ones among the rest."""
    rng = np.random.default_rng(0)
    X = np.zeros((count, 54), dtype=np.float32)
    X[:, :10] = rng.random((count, 10))
    X[np.arange(count), 10 + rng.integers(4, size=count)] = 1.0
    X[np.arange(count), 14 + rng.integers(40, size=count)] = 1.0
    weights = rng.standard_normal(54)
    return X, np.where(X @ weights - np.median(X @ weights) + rng.logistic(size=count) > 0, 1.0, -1.0)


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The median, after one call that compiles."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def paths(X: Any, y: Any) -> None:
    from longterm.linear_model import BudgetPath

    budgets = np.geomspace(0.05, 2000, BUDGETS)
    for dtype in ("float64", "float32"):
        begin = time.perf_counter()
        path = BudgetPath(X.shape[1], budgets, device="gpu", dtype=dtype)
        made = time.perf_counter() - begin
        path.learn(X[:1000], y[:1000])
        taken = seconds(lambda path=path: path.learn(X, y), 1)
        print(f"{BUDGETS} budgets, {dtype}: learn {taken:.2f} s (goal 2), making the learners {made:.2f} s")


def sequences(X: Any, y: Any) -> None:
    from longterm.linear_model.sequences import random_sequences

    longest = float(np.linalg.norm(X.astype(np.float64), axis=1).max())
    for dtype in ("float32", "float64"):
        options = {"constants": {"feature_norm": longest}, "fit_intercept": False, "device": "gpu", "dtype": dtype}
        taken = seconds(lambda options=options: random_sequences(X, y, budget=6.987, sequences=SEQUENCES, **options))
        print(f"{SEQUENCES} sequences, A-OGD, {dtype}: {taken:.3f} s (goal 0.6), rows sent and checked with it")


POINTS: list[dict[str, Any]] = []


def fleets() -> None:
    """Whole fleets and random tenths, against the number of learners; the floor is a copy of the same bytes."""
    import jax
    from jax import numpy as jnp

    from longterm import AOGD, Feedback, Fleet
    from longterm.sets import Ball
    from longterm.theory.schedules import ConvexSchedule

    learner = AOGD(Ball(DIMENSION), ConvexSchedule(2.0, 10.0, beta=2 / 3))
    panel = f"GPU: time of a fleet's call, ms, d = {DIMENSION}, against learners"
    for learners in (10_000, 100_000, LEARNERS):
        fleet = Fleet(learner, learners, dtype=np.float32, engine="jax")
        keys = jax.random.split(jax.random.key(0), 3)
        gradients = [0.1 * jax.random.normal(key, (learners, DIMENSION), jnp.float32) for key in keys[:2]]
        told = Feedback(gradients[0], jax.random.normal(keys[2], (learners,), jnp.float32), gradients[1])
        few = learners // 10
        who = jnp.asarray(np.random.default_rng(0).permutation(learners)[:few].astype(np.int32))
        some = Feedback(*(array[:few] for array in told[:3]))
        for name, count, feedback, numbers in (("all", learners, told, None), ("a random tenth", few, some, who)):
            for wait in (True, False):
                calls = 50 if wait else 400

                def work(
                    calls: int = calls,
                    fleet: Any = fleet,
                    feedback: Any = feedback,
                    numbers: Any = numbers,
                    wait: bool = wait,
                ) -> None:
                    for _ in range(calls):
                        fleet.tell(feedback, numbers, wait=wait)
                    fleet.check()

                taken = seconds(work) / calls
                how, rate = "each answer waited for" if wait else "answers read later", count / taken / 1e9
                what = f"fleet of {learners}, d = {DIMENSION}, {name}, {how}"
                print(f"{what}: {1e3 * taken:.3f} ms a call, {rate:.2f} G/s (goals 3, 1)", flush=True)
                POINTS.append({"panel": panel, "curve": f"{name}, {how}", "x": learners, "y": 1e3 * taken})
        added = jax.jit(lambda a, b, c: a + b + c)  # reads three arrays and writes one, as a round must

        def floor(added: Any = added, a: Any = gradients[0], b: Any = gradients[1]) -> None:
            for _ in range(50):
                made = added(a, b, a)
            made.block_until_ready()

        taken = seconds(floor) / 50
        print(f"three reads and a write of {learners} rows: {1e3 * taken:.3f} ms", flush=True)
        POINTS.append({"panel": panel, "curve": "floor: three reads, a write", "x": learners, "y": 1e3 * taken})


def streams() -> None:
    """A run whose rounds are drawn on the device, against the number of seeds."""
    from longterm import AOGD, run
    from longterm.problems import doubly_stochastic
    from longterm.streams import RandomPermutations

    problem, rounds = doubly_stochastic(8), 2000
    learner, stream = AOGD.for_problem(problem), RandomPermutations(8)
    for count in (1, 100, 1000, 10_000):
        seeds: Any = range(count) if count > 1 else 0
        taken = seconds(
            lambda seeds=seeds: run(problem, learner, stream, rounds, seeds=seeds, engine="jax", progress=None)
        )
        print(
            f"doubly-stochastic p = 8, {count} seeds: {1e6 * taken / rounds:.1f} µs a round (goal 30 at 1000)",
            flush=True,
        )
        panel = "GPU: time of a round of run(engine='jax'), µs, against seeds"
        POINTS.append({"panel": panel, "curve": "doubly stochastic, p = 8", "x": count, "y": 1e6 * taken / rounds})
    for record, what in ((None, "the rounds recorded by default"), ([20_000], "the last recorded")):
        options: Any = {"seeds": range(1000), "engine": "jax", "progress": None, "record": record}
        taken = seconds(lambda options=options: run(problem, learner, stream, 20_000, **options), 1)
        print(f"1000 seeds, 20,000 rounds, {what}: {1e6 * taken / 20_000:.1f} µs a round (goal 30)", flush=True)
    few = {"seeds": range(20), "progress": None}
    here, there = run(problem, learner, stream, 200, **few), run(problem, learner, stream, 200, engine="jax", **few)
    print(f"differs from NumPy's by {np.abs(here.cumulative_loss - there.cumulative_loss).max():.1e}")


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] != "-":
        with np.load(sys.argv[1]) as given:
            X, y = given["X"], given["y"]
    else:
        X, y = rows_like_covtype()
    fleets()
    streams()
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps({"points": POINTS}, indent=1))
    paths(X, y)
    sequences(X, y)


if __name__ == "__main__":
    main()
