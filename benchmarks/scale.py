"""What many learners cost: paths of budgets, blocks of memory, pacing of whole logs, fleets. `make bench-scale`.

Every line prints the goal beside what was measured; what is compared was timed in turn, in one process, and medians of
turns are printed. benchmarks/scale_gpu.py is the part that wants a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linear_timing import data_set


class Figure(NamedTuple):
    """A line of the table."""

    work: str
    measured: float
    unit: str
    goal: str = ""


def in_turn(contestants: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each, turn by turn, after one turn that compiles."""
    for work in contestants.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, work in contestants.items():
            begin = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - begin)
    return times


def ratio(times: Mapping[str, list[float]], one: str, other: str) -> float:
    """The median over the turns."""
    return statistics.median(a / b for a, b in zip(times[one], times[other], strict=True))


def paths(repeats: int) -> Iterator[Figure]:
    """64 budgets over covtype beside single passes; against the number of budgets, d and the rows' non-zeros."""
    from longterm.linear_model import BudgetLinearLearner, BudgetPath

    data = data_set("covtype")
    X, y = data.features, np.asarray(data.labels, dtype=np.float64)
    budgets = np.geomspace(0.05, 2000, 64)
    few = 4

    def singles() -> None:
        for budget in budgets[:: len(budgets) // few]:
            BudgetLinearLearner(X.shape[1], budget, scales="one").learn(X, y)

    times = in_turn(
        {
            "single": singles,
            "one core": lambda: BudgetPath(X.shape[1], budgets, n_jobs=1).learn(X, y),
            "all cores": lambda: BudgetPath(X.shape[1], budgets).learn(X, y),
        },
        repeats,
    )
    share = few / len(budgets)
    yield Figure(
        "64 budgets, covtype, one core, / 64 single passes", share * ratio(times, "one core", "single"), "×", "≤ 0.5"
    )
    yield Figure("the same on all cores", share * ratio(times, "all cores", "single"), "×")
    yield Figure("all cores / one core", ratio(times, "all cores", "one core"), "×", "< 1: both are used")
    yield Figure("the path, one core", statistics.median(times["one core"]), "s")
    yield Figure("a learner-round", 1e9 * statistics.median(times["one core"]) / len(y) / 64, "ns")
    rng = np.random.default_rng(0)
    for d in (16, 64, 256, 1024):
        rows, labels = rng.standard_normal((4000, d)), np.where(rng.random(4000) > 0.5, 1.0, -1.0)
        made = in_turn(
            {
                "path": lambda d=d, rows=rows, labels=labels: BudgetPath(d, budgets[:16], n_jobs=1).learn(rows, labels),
                "single": lambda d=d, rows=rows, labels=labels: BudgetLinearLearner(d, 5.0, scales="one").learn(
                    rows, labels
                ),
            },
            repeats,
        )
        yield Figure(f"dense d = {d}, 16 budgets: a learner-round", 1e9 * statistics.median(made["path"]) / 64000, "ns")
        yield Figure(f"dense d = {d}, one learner: a round", 1e9 * statistics.median(made["single"]) / 4000, "ns")


MEMORY = """
import resource
from longterm import AOGD, run
from longterm.problems import doubly_stochastic
from longterm.streams import RandomPermutations
problem = doubly_stochastic(300)
run(problem, AOGD.for_problem(problem), RandomPermutations(300), rounds=300, progress=None)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def memory() -> Iterator[Figure]:
    """The largest memory of a process that plays 300 rounds of d = 90,000."""
    import longterm

    source = str(Path(longterm.__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, "-c", MEMORY],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": source},
    )
    yield Figure("doubly-stochastic p = 300, 300 rounds: largest memory", float(done.stdout), "MB", "≤ 500")


def pacing(repeats: int) -> Iterator[Figure]:
    """A whole log, compiled and step by step; one live bid."""
    from longterm.pacing import DualMirrorDescent, Outcome, PriceHistory, play, synthetic_auctions

    log = synthetic_auctions(156_063, 0)
    pacer = DualMirrorDescent.calibrated(0.1 * log.total_price, len(log), PriceHistory.of(log))
    few = synthetic_auctions(4000, 0)
    times = in_turn(
        {"compiled": lambda: play(pacer, log), "reference": lambda: play(pacer, few, engine="numpy")}, repeats
    )
    yield Figure("a whole log", len(log) / statistics.median(times["compiled"]) / 1e6, "M auctions/s", "≥ 10")
    yield Figure("the reference", len(few) / statistics.median(times["reference"]) / 1e6, "M auctions/s")
    state, values = pacer.init(), log.values[:2000].tolist()

    def live() -> None:
        now = state
        for value in values:
            bid = pacer.act(now, value)
            now = pacer.settle(now, Outcome(paid=bid * 0.5))

    times = in_turn({"live": live}, repeats)
    yield Figure("one live bid, act and settle", 1e6 * statistics.median(times["live"]) / len(values), "µs", "≤ 3")


PARTS: dict[str, Callable[[int], Iterator[Figure]]] = {
    "paths": paths,
    "memory": lambda repeats: memory(),
    "pacing": pacing,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them unless named")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, help="also write the figures there, as JSON")
    options = parser.parse_args()
    lines: list[Any] = []
    for part in options.parts or PARTS:
        for figure in PARTS[part](options.repeats):
            lines.append(figure)
            print(f"{figure.work:66} {figure.measured:10.4g} {figure.unit:14} {figure.goal}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'this process at most':66} {peak:10.4g} MB")
    if options.out is not None:
        options.out.write_text(json.dumps([line._asdict() for line in lines], indent=1))


if __name__ == "__main__":
    main()
