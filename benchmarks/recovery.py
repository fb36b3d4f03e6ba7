"""How long a live learner takes to come up again, how much its journal grows, and how long a request waits meanwhile.

"recovery" is the worst moment: a journal just before its checkpoint, by the defaults. "waited" is the longest of all
asks and tells, without fsync, in a run with some checkpoints; "beside" the longest in one without any: what the
machine does by itself.

    python benchmarks/recovery.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from longterm import AOGD, LiveLearner, Problem, observe
from longterm.constraints import L2Budget
from longterm.live.checkpoints import CHECKPOINT_AFTER
from longterm.losses import SquaredDistance
from longterm.sets import Ball

OPEN = 1000
"""Rounds in flight: a checkpoint writes the decision of each."""


def main() -> None:
    print("     d  bytes a round  records  recovery s  checkpoints   waited  beside ms")
    for d in (2, 10, 1000):
        problem = Problem(Ball(d), SquaredDistance(d, targets=Ball(d)), L2Budget(d, budget=0.5))
        learner = AOGD.for_problem(problem)
        told = observe(problem, np.zeros(d), [np.eye(d)[0]])
        with tempfile.TemporaryDirectory() as name:
            path, records = Path(name) / "journal", CHECKPOINT_AFTER[0]
            with LiveLearner(learner, problem, journal=path, fsync=False, checkpoint_after=None) as live:
                while live._recorded.memory.sequence < records and path.stat().st_size < CHECKPOINT_AFTER[1]:
                    live.tell(live.ask(), told)
                records = live._recorded.memory.sequence
            size = path.stat().st_size
            recovery = []
            for _ in range(3):
                begin = time.perf_counter()
                LiveLearner(learner, problem, journal=path, fsync=False).close()
                recovery.append(time.perf_counter() - begin)
            waited, checkpoints = longest(learner, problem, told, Path(name) / "short", 2000)
            beside, _ = longest(learner, problem, told, Path(name) / "long", None)
        seconds, size_of_a_round = statistics.median(recovery), 2 * size / records
        print(
            f"{d:>6}{size_of_a_round:>15.0f}{records:>9}{seconds:>12.2f}{checkpoints:>13}{waited:>9.1f}{beside:>11.1f}"
        )


def longest(learner: AOGD, problem: Problem, told: object, path: Path, after: int | None) -> tuple[float, int]:
    """Milliseconds of the longest call, and how many checkpoints there were."""
    worst, starts = 0.0, set()
    options = {"fsync": False, "max_in_flight": 2 * OPEN, "expire_after": 10 * OPEN, "checkpoint_after": after}
    with LiveLearner(learner, problem, journal=path, **options) as live:  # type: ignore[arg-type]
        for _ in range(OPEN):
            live.ask()
        for _ in range(6000):
            begin = time.perf_counter_ns()
            token = live.ask()
            middle = time.perf_counter_ns()
            live.tell(token, told)  # type: ignore[arg-type]
            worst = max(worst, middle - begin, time.perf_counter_ns() - middle)
            starts.add(live._recorded.journal.start.sequence)  # type: ignore[union-attr]
    return worst / 1e6, len(starts) - 1


if __name__ == "__main__":
    main()
