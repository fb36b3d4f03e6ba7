"""The compiled engine compared with the reference engine: microseconds per round, and the time of compiling.

Doubly-stochastic matrices, p = 8. The times include the generation of the stream.

    python benchmarks/engines.py
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from longterm import AOGD, run
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations

REPEATS = 3


def seconds(engine: str, rounds: int, learner: Any, problem: Any, seeds: Any) -> float:
    begin = time.perf_counter()
    run(problem, learner, RandomPermutations(8), rounds, engine=engine, seeds=seeds, progress=None)
    return time.perf_counter() - begin


def main() -> None:
    problem = doubly_stochastic(8)
    learner = AOGD.for_problem(problem)
    begin = time.perf_counter()
    run(problem, learner, RandomPermutations(8), 4096, engine="jax", progress=None)
    print(f"A-OGD, doubly-stochastic p = 8; first JAX run, compiling included: {time.perf_counter() - begin:.1f} s")
    print(f"{'learners':>9}{'rounds':>9}{'numpy us':>11}{'jax us':>9}{'times faster':>14}")
    for seeds, rounds in ((0, 20_000), (0, 100_000), (range(10), 10_000)):
        learners = 1 if seeds == 0 else len(seeds)
        seconds("jax", rounds, learner, problem, seeds)
        times: dict[str, list[float]] = {"numpy": [], "jax": []}
        for _ in range(REPEATS):
            for engine, found in times.items():
                found.append(seconds(engine, rounds, learner, problem, seeds))
        numpy, jax = (1e6 * statistics.median(found) / rounds for found in times.values())
        print(f"{learners:>9}{rounds:>9}{numpy:>11.1f}{jax:>9.2f}{numpy / jax:>14.1f}")
    print("target: at least 10 times faster for one learner")


if __name__ == "__main__":
    main()
