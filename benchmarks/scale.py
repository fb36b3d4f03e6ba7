"""Time and memory of many learners: paths of budgets, memory, pacing of whole logs, fleets. `make bench-scale`.

Every line has a goal beside the measurement. Contestants are timed in turn, in one process. Medians of the turns are
printed. benchmarks/scale_gpu.py has the part that needs a GPU.
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
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fleet
from linear_timing import data_set


class Figure(NamedTuple):
    """A line of the table."""

    work: str
    measured: float
    unit: str
    goal: str = ""


def in_turn(contestants: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each, turn by turn, after one turn that compiles."""
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
    """Return the median ratio over the turns."""
    return statistics.median(a / b for a, b in zip(times[one], times[other], strict=True))


def paths(repeats: int) -> Iterator[Figure]:
    """Measure 64 budgets over covtype beside single passes."""
    from longterm.linear_model import BudgetLinearLearner, BudgetPath

    data = data_set("covtype")
    X, y = data.features, np.asarray(data.labels, dtype=np.float64)
    budgets = np.geomspace(0.05, 2000, 64)
    few = 4

    def singles() -> None:
        for budget in budgets[:: len(budgets) // few]:
            BudgetLinearLearner(X.shape[1], budget).learn(X, y)

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
                "single": lambda d=d, rows=rows, labels=labels: BudgetLinearLearner(d, 5.0).learn(rows, labels),
            },
            repeats,
        )
        yield Figure(f"dense d = {d}, 16 budgets: a learner-round", 1e9 * statistics.median(made["path"]) / 64000, "ns")
        yield Figure(f"dense d = {d}, one learner: a round", 1e9 * statistics.median(made["single"]) / 4000, "ns")


MEMORY = """
from pathlib import Path
from longterm import AOGD, run
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations
problem = doubly_stochastic(300)
run(problem, AOGD.for_problem(problem), RandomPermutations(300), rounds=300, progress=None)
# Of this program alone; ru_maxrss is also that of the process it was started by.
lines = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) for line in lines if "VmHWM" in line) / 1024)
"""


def memory() -> Iterator[Figure]:
    """Measure the peak memory of a process with 300 rounds of d = 90,000."""
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
    """Measure the auctions of a log, and one live bid."""
    from longterm.money import DualMirrorDescent, Outcome, PriceHistory, replay_auctions, synthetic_auctions

    log = synthetic_auctions(4000, 0)
    pacer = DualMirrorDescent.calibrated(0.1 * log.total_price, len(log), PriceHistory.of(log))
    times = in_turn({"replay": lambda: replay_auctions(pacer, log)}, repeats)
    yield Figure("a log", len(log) / statistics.median(times["replay"]) / 1e6, "M auctions/s")
    state, values = pacer.init(), log.values[:2000].tolist()

    def live() -> None:
        now = state
        for value in values:
            bid = pacer.act(now, value)
            now = pacer.settle(now, Outcome(paid=bid * 0.5))

    times = in_turn({"live": live}, repeats)
    yield Figure("one live bid, act and settle", 1e6 * statistics.median(times["live"]) / len(values), "µs", "≤ 10")


class Point(NamedTuple):
    """A point of the figure in docs/benchmarks/what_it_costs.md: what one of `panel`'s curves is at `x`."""

    panel: str
    curve: str
    x: float
    y: float


POINTS: list[Point] = []

GROWTH = """
import sys
from pathlib import Path
import numpy as np
from longterm import AOGD, Problem, run
from longterm.problems.constraints import L2Budget
from longterm.problems.losses import SquaredDistance
from longterm.problems.sets import Ball
from longterm.problems.streams import NoisyTargets
d, rounds = int(sys.argv[1]), int(sys.argv[2])
def most():  # as above
    return next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
before = most()
problem = Problem(Ball(d), SquaredDistance(d, targets=Ball(d)), L2Budget(d, budget=0.5))
run(problem, AOGD.for_problem(problem), NoisyTargets(np.zeros(d), 0.5 / d**0.5), rounds, progress=None)
print(before, most())
"""


def growth(repeats: int) -> Iterator[Figure]:
    """Measure time and memory against d, T, the number of learners and the non-zeros of rows, for the figure."""
    import importlib.util

    from scipy.sparse import random_array

    from longterm import AOGD, Fleet, Problem, run
    from longterm.linear_model import BudgetLinearLearner
    from longterm.problems.constraints import L2Budget
    from longterm.problems.losses import SquaredDistance
    from longterm.problems.sets import Ball
    from longterm.problems.streams import NoisyTargets
    from longterm.theory.schedules import ConvexSchedule

    def seconds(work: Callable[[], object]) -> float:
        """Return the least processor time of a few turns, after one that compiles."""
        work()
        taken = []
        for _ in range(repeats):
            begin = time.process_time()
            work()
            taken.append(time.process_time() - begin)
        return min(taken)

    large = np.zeros(2**23)
    other = large.copy()
    copied = 2 * large.nbytes / seconds(lambda: np.copyto(other, large))
    yield Figure("a copy moves", copied / 1e9, "GB/s")
    engines = ["numpy", *(["jax"] if importlib.util.find_spec("jax") else [])]
    for d in (10, 100, 1000, 10_000, 100_000):
        problem = Problem(Ball(d), SquaredDistance(d, targets=Ball(d)), L2Budget(d, budget=0.5))
        learner, stream = AOGD.for_problem(problem), NoisyTargets(np.zeros(d), 0.5 / d**0.5)
        rounds = max(64, min(2000, 4_000_000 // d))
        for engine in engines:
            taken = seconds(partial(run, problem, learner, stream, rounds, engine=engine, progress=None))
            POINTS.append(Point("time of a round, µs, against d", f"run, {engine}", d, 1e6 * taken / rounds))
        # A round reads the target and x, and writes x.
        POINTS.append(Point("time of a round, µs, against d", "floor: one copy", d, 1e6 * 3 * 8 * d / copied))
    problem = Problem(Ball(10), SquaredDistance(10, targets=Ball(10)), L2Budget(10, budget=0.5))
    learner, stream = AOGD.for_problem(problem), NoisyTargets(np.zeros(10), 0.1)
    for rounds in (100, 1000, 10_000, 100_000):
        for engine in engines:
            if rounds > 10_000 and engine == "numpy":
                continue
            taken = seconds(partial(run, problem, learner, stream, rounds, engine=engine, progress=None))
            POINTS.append(Point("time of a run, s, against T", f"d = 10, {engine}", rounds, taken))
    source = str(Path(__file__).resolve().parents[1] / "src")
    for d, rounds in (
        (10, 100),
        (10, 1000),
        (10, 10_000),
        (10_000, 100),
        (10_000, 1000),
        (100_000, 100),
        (100_000, 1000),
    ):
        done = subprocess.run(
            [sys.executable, "-c", GROWTH, str(d), str(rounds)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": source},
        )
        before, most = (float(kilobytes) / 1024 for kilobytes in done.stdout.split())
        panel = "largest memory of a process, MB, against T"
        POINTS.append(Point(panel, f"d = {d:,}", rounds, most))
        POINTS.append(Point(panel, "floor: before the first round", rounds, before))
    rng = np.random.default_rng(0)
    panel = "time of a fleet's row, ns, against learners"
    for size in (10**3, 10**4, 10**5, 10**6):
        told, beta = size // 10, rng.uniform(0.4, 0.8, size)
        feedback, numbers = fleet.feedback(rng, told), rng.permutation(size)[:told]
        many = Fleet(AOGD(Ball(10), ConvexSchedule(2.0, 1.0, beta)), size)
        bare = np.zeros((told, 10)), np.zeros(told), np.ones(told), beta[:told], feedback
        taken, floor = seconds(partial(many.tell, feedback, numbers)), seconds(partial(fleet.bare, *bare))
        POINTS.append(Point(panel, "a tenth told, d = 10", size, 1e9 * taken / told))
        POINTS.append(Point(panel, "floor: the bare update", size, 1e9 * floor / told))
    for nonzeros in (1, 10, 100, 1000):
        rows = random_array((2000, 100_000), density=nonzeros / 100_000, rng=rng, format="csr")
        labels = np.where(rng.random(2000) > 0.5, 1.0, -1.0)
        taken = seconds(partial(BudgetLinearLearner(100_000, 10.0, sparse=True).learn, rows, labels))
        panel = "time of a row, µs, against its non-zeros"
        POINTS.append(Point(panel, "linear, sparse, d = 10⁵", nonzeros, 1e6 * taken / 2000))
        # Each non-zero is read with its index, and z and its neighbours are read and written.
        POINTS.append(Point(panel, "floor of the sparse: one copy", nonzeros, 1e6 * 32 * nonzeros / copied))
    for d in (10, 100, 1000):
        rows = rng.standard_normal((2000, d))
        labels = np.where(rng.random(2000) > 0.5, 1.0, -1.0)
        taken = seconds(partial(BudgetLinearLearner(d, 10.0).learn, rows, labels))
        POINTS.append(
            Point("time of a row, µs, against its non-zeros", "linear, dense, d non-zeros", d, 1e6 * taken / 2000)
        )
    floors = [point for point in POINTS if point.curve == "floor: before the first round"]
    for point in floors[3:]:  # each is the same process
        POINTS.remove(point)
    for point in POINTS:
        yield Figure(f"{point.panel}: {point.curve}, {point.x:g}", point.y, "")


PARTS: dict[str, Callable[[int], Iterator[Figure]]] = {
    "paths": paths,
    "memory": lambda repeats: memory(),
    "pacing": pacing,
    "growth": growth,
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
        measured = {"figures": [line._asdict() for line in lines], "points": [point._asdict() for point in POINTS]}
        options.out.write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
