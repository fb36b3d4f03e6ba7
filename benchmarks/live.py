"""Time ask + tell of one live learner in memory and in a database, beside the bare update.

    python benchmarks/live.py [FOLDER]

"update" is the learner's rule on the same feedback; "memory" is ask and tell without a database; "relaxed" and "commit"
are SQLite's. All take turns, round by round, so that each finds the others' data in the caches. PostgreSQL is measured
after them where a server can be started. `processes.py` has several processes on one learner.

With FOLDER, a checkout of an earlier longterm whose live learners have a journal, both take turns of 1,000 rounds:

    git worktree add ../then 9f89349
    python benchmarks/live.py ../then
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from longterm import AOGD, Feedback, LiveLearner, Problem, observe
from longterm.problems.constraints import L2Budget
from longterm.problems.losses import SquaredDistance
from longterm.problems.sets import Ball
from postgres import Server, server

ROUNDS, SYNCED_ROUNDS, WARM_UP, TURNS = 4000, 200, 100, 20
WORKER = """
import json, sys, tempfile, time, numpy as np
from longterm import AOGD, LiveLearner, Problem, observe
from longterm.problems.constraints import L2Budget
from longterm.problems.losses import SquaredDistance
from longterm.problems.sets import Ball

d, kind = int(sys.argv[1]), sys.argv[2]
problem = Problem(Ball(d), SquaredDistance(d, targets=Ball(d)), L2Budget(d, budget=0.5))
learner, told = AOGD.for_problem(problem), observe(problem, np.zeros(d), [np.eye(d)[0]])
with tempfile.TemporaryDirectory() as folder:
    if kind == "journal":
        live = LiveLearner(learner, problem, journal=folder + "/journal", fsync=False)
    else:
        live = LiveLearner.open(folder + "/service.db", learner, problem, durability=kind)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            live.tell(live.ask(), told)
            times.append(time.perf_counter() - begin)
        print(json.dumps(sorted(times)[len(times) // 2]), flush=True)
    live.close()
"""


def game(d: int) -> tuple[Problem, AOGD]:
    problem = Problem(Ball(d), SquaredDistance(d, targets=Ball(d)), L2Budget(d, budget=0.5))
    return problem, AOGD.for_problem(problem)


def bare(learner: AOGD) -> Callable[[Feedback], None]:
    state = learner.init()

    def update(told: Feedback) -> None:
        nonlocal state
        state = learner.update(state, told)

    return update


def served(live: LiveLearner) -> Callable[[Feedback], None]:
    return lambda told: live.tell(live.ask(), told)


def timed(players: dict[str, Callable[[Feedback], None]], told: Feedback, rounds: int) -> dict[str, list[float]]:
    """Return the microseconds of each round of each player, taken in turn."""
    taken: dict[str, list[float]] = {name: [] for name in players}
    for _ in range(WARM_UP + rounds):
        for name, play in players.items():
            begin = time.perf_counter_ns()
            play(told)
            taken[name].append((time.perf_counter_ns() - begin) / 1000)
    return {name: times[WARM_UP:] for name, times in taken.items()}


def beside(earlier: Path) -> None:
    """Print medians of this version and of an earlier one with a journal, in turn."""
    print(f"ask + tell, microseconds, medians of {TURNS} turns of 1,000 rounds")
    print(f"{'d':>6}{'journal then':>14}{'SQLite now':>12}{'ratio':>8}")
    for d in (10, 100, 1000):
        roots = {"journal": earlier.resolve(), "relaxed": Path(__file__).resolve().parents[1]}
        workers = {
            kind: subprocess.Popen(
                [sys.executable, "-c", WORKER, str(d), kind],
                env=os.environ | {"PYTHONPATH": str(root / "src")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for kind, root in roots.items()
        }
        taken: dict[str, list[float]] = {kind: [] for kind in workers}
        for _ in range(TURNS):
            for kind, worker in workers.items():
                assert worker.stdin is not None
                assert worker.stdout is not None
                worker.stdin.write("1000\n")
                worker.stdin.flush()
                taken[kind].append(1e6 * json.loads(worker.stdout.readline()))
        for worker in workers.values():
            worker.communicate()
        then, now = statistics.median(taken["journal"]), statistics.median(taken["relaxed"])
        print(f"{d:>6}{then:>14.1f}{now:>12.1f}{now / then:>8.2f}")


def main() -> None:
    if len(sys.argv) > 1:
        beside(Path(sys.argv[1]))
        return
    with server() as running:
        report(running)


def report(running: Server | None) -> None:
    """Print the times of one process."""
    print(f"ask + tell of one A-OGD learner, microseconds, {ROUNDS} rounds ({SYNCED_ROUNDS} with commit)")
    print(f"{'d':>6}{'':>12}{'median':>12}{'p99':>12}{'to the update':>16}")
    for d in (10, 100, 1000):
        problem, learner = game(d)
        told = observe(problem, np.zeros(d), [np.eye(d)[0]])
        with tempfile.TemporaryDirectory() as folder:
            stored = {
                kind: LiveLearner.open(f"{folder}/{kind}.db", learner, problem, durability=kind)  # type: ignore[arg-type]
                for kind in ("relaxed", "commit")
            }
            memory, relaxed = served(LiveLearner(learner, problem)), served(stored["relaxed"])
            taken = timed({"update": bare(learner), "memory": memory, "relaxed": relaxed}, told, ROUNDS)
            taken |= timed({"commit": served(stored["commit"])}, told, SYNCED_ROUNDS)
            if running is not None:
                for kind in ("relaxed", "commit"):
                    name = f"{kind} {d}"
                    stored[name] = LiveLearner.open(running.url, learner, problem, name=name, durability=kind)  # type: ignore[arg-type]
                    taken |= timed({f"PG {kind}": served(stored[name])}, told, SYNCED_ROUNDS)
            for live in stored.values():
                live.close()
        update = statistics.median(taken["update"])
        for name, times in taken.items():
            median, late = statistics.median(times), statistics.quantiles(times, n=100)[98]
            print(f"{d:>6}{name:>12}{median:>12.1f}{late:>12.1f}{median / update:>16.1f}")


if __name__ == "__main__":
    main()
