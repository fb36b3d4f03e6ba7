"""Microseconds of ask + tell for one live learner, without a journal and with one, beside the bare update.

"update" is the learner's own rule on the same feedback, nothing else; "live" is ask and tell with a ready
Feedback: token, checks, sums, lock; "journal" writes both down as well; "fsync" also waits for the disk. "2 writes"
is the floor of a journal: "live", and as many bytes given to the operating system after ask and after tell, with no
checksum and no order of events.
All are timed round by round in one run, those before fsync in turn, so that each finds the others' data in the
processor's caches; "alone" is the same in a loop of its own. The last is the disk's speed, not ours.

    python benchmarks/live.py [FOLDER]

With a folder, a checkout of an earlier longterm, both take turns of 200 rounds with d = 10: of the one, say, whose 53
microseconds (93 with a journal) were to become 20 (35).

    git worktree add ../then bb1d5b7
    python benchmarks/live.py ../then
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from longterm import AOGD, Feedback, LiveLearner, Problem, observe
from longterm.constraints import L2Budget
from longterm.losses import SquaredDistance
from longterm.sets import Ball

ROUNDS = 4000
SYNCED_ROUNDS = 200
WARM_UP = 100
TURNS, A_TURN = 60, 200
ONE_OF_TWO = """
import statistics, sys, tempfile
import live
from longterm import AOGD, LiveLearner, Problem
from longterm.constraints import L2Budget
from longterm.losses import SquaredDistance
from longterm.sets import Ball

problem = Problem(Ball(10), SquaredDistance(10, targets=Ball(10)), L2Budget(10, budget=0.5))
learner = AOGD.for_problem(problem) if hasattr(AOGD, "for_problem") else AOGD.convex(problem)
written = LiveLearner(learner, problem, journal=tempfile.mkdtemp() + "/written", fsync=False)
served = {"live": live.served(LiveLearner(learner, problem)), "journal": live.served(written)}
plays = {"update": live.bare(learner)} | served
feedback = live.feedback_of(problem)
for line in sys.stdin:
    start = int(line) % (len(feedback) - live.WARM_UP)
    turn = feedback[start : start + live.WARM_UP + int(sys.argv[1])]
    print(*(statistics.median(live.timed({name: play}, turn)[name]) for name, play in plays.items()), flush=True)
"""
"""What each of two versions is asked to do in a process of its own, with its own benchmarks/live.py."""


def feedback_of(problem: Problem) -> list[Feedback]:
    """What every contestant is told, ready-made."""
    targets = np.random.default_rng(0).standard_normal((WARM_UP + ROUNDS, problem.dimension))
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    return [observe(problem, np.zeros(problem.dimension), [target]) for target in targets]


def timed(contestants: dict[str, Callable[[Feedback], None]], feedback: list[Feedback]) -> dict[str, list[float]]:
    """Microseconds of each round of each contestant, taken in turn."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for told in feedback:
        for name, play in contestants.items():
            begin = time.perf_counter_ns()
            play(told)
            taken[name].append((time.perf_counter_ns() - begin) / 1000)
    return {name: times[WARM_UP:] for name, times in taken.items()}


def bare(learner: AOGD) -> Callable[[Feedback], None]:
    state = learner.init()

    def update(told: Feedback) -> None:
        nonlocal state
        state = learner.update(state, told)

    return update


def served(live: LiveLearner) -> Callable[[Feedback], None]:
    return lambda told: live.tell(live.ask(), told)


def served_and_written(live: LiveLearner, file: BinaryIO, d: int) -> Callable[[Feedback], None]:
    """Ask and tell, and after each a write of what the journal's record of it takes."""
    asked, told_to = bytes(36), bytes(85 + 8 * d)

    def play(told: Feedback) -> None:
        token = live.ask()
        os.write(file.fileno(), asked)
        live.tell(token, told)
        os.write(file.fileno(), told_to)

    return play


def beside(earlier: Path) -> None:
    """Turns of this version and of an earlier one: medians, and the ratio turn by turn."""
    here = Path(__file__).resolve().parents[1]
    processes = {
        name: subprocess.Popen(
            [sys.executable, "-c", ONE_OF_TWO, str(A_TURN)],
            env=os.environ | {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root / 'benchmarks'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, root in (("then", earlier.resolve()), ("now", here))
    }
    taken: dict[str, list[list[float]]] = {name: [] for name in processes}
    for turn in range(TURNS):
        for name, process in processes.items():
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{turn * A_TURN}\n")
            process.stdin.flush()
            taken[name].append([float(part) for part in process.stdout.readline().split()])
    for process in processes.values():
        process.communicate()
    print(f"medians of {TURNS} turns of {A_TURN} rounds, d = 10, microseconds")
    print(f"{'':>10}{'then':>10}{'now':>10}{'ratio':>10}")
    for place, name in enumerate(("update", "live", "journal")):
        then, now = ([turn[place] for turn in taken[who]] for who in ("then", "now"))
        ratio = statistics.median(b / a for a, b in zip(then, now, strict=True))
        print(f"{name:>10}{statistics.median(then):>10.1f}{statistics.median(now):>10.1f}{ratio:>10.2f}")


def main() -> None:
    if len(sys.argv) > 1:
        beside(Path(sys.argv[1]))
        return
    print(f"ask + tell of one A-OGD learner, microseconds, {ROUNDS} rounds ({SYNCED_ROUNDS} with fsync)")
    print(f"{'d':>6}{'':>10}{'median':>12}{'p99':>12}{'to the update':>16}{'alone':>12}")
    for d in (10, 100, 1000):
        problem = Problem(Ball(d), SquaredDistance(d, targets=Ball(d)), L2Budget(d, budget=0.5))
        learner, feedback = AOGD.for_problem(problem), feedback_of(problem)
        with (
            tempfile.TemporaryDirectory() as folder,
            LiveLearner(learner, problem, journal=Path(folder) / "written", fsync=False) as written,
            LiveLearner(learner, problem, journal=Path(folder) / "forced") as forced,
            (Path(folder) / "bytes").open("wb", buffering=0) as file,
        ):
            fast = {
                "update": bare(learner),
                "live": served(LiveLearner(learner, problem)),
                "2 writes": served_and_written(LiveLearner(learner, problem), file, d),
                "journal": served(written),
            }
            alone = {name: timed({name: play}, feedback)[name] for name, play in fast.items()}
            taken = timed(fast, feedback) | timed({"fsync": served(forced)}, feedback[: WARM_UP + SYNCED_ROUNDS])
        update = statistics.median(taken["update"])
        for name, times in taken.items():
            median, late = statistics.median(times), statistics.quantiles(times, n=100)[98]
            by_itself = f"{statistics.median(alone[name]):>12.1f}" if name in alone else ""
            print(f"{d:>6}{name:>10}{median:>12.1f}{late:>12.1f}{median / update:>16.1f}{by_itself}")


if __name__ == "__main__":
    main()
