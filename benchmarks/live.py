"""Microseconds of ask + tell for one live learner, without a journal and with one, beside the bare update.

"update" is the learner's own rule on the same feedback, nothing else; "live" is ask and tell with a ready
Feedback: token, checks, sums, lock; "journal" writes both down as well; "fsync" also waits for the disk. "2 writes"
is the floor of a journal: "live", and as many bytes given to the operating system after ask and after tell, with no
checksum and no order of events.
All are timed round by round in one run, those before fsync in turn, so that each finds the others' data in the
processor's caches; "alone" is the same in a loop of its own. The last is the disk's speed, not ours.

    python benchmarks/live.py
"""

from __future__ import annotations

import os
import statistics
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


def main() -> None:
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
