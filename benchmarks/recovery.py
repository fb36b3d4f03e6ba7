"""Time the restart of a live learner and of a chooser after a kill.

    python benchmarks/recovery.py [ROUNDS]

A child plays ROUNDS rounds (100,000 by default), leaves 1,000 of them open, and is killed. "recovery" is the time of
`open` in the parent, with the write-ahead log as the child left it.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from longterm import AOGD, LiveLearner, Problem, observe
from longterm.problems.constraints import L2Budget
from longterm.problems.losses import SquaredDistance
from longterm.problems.sets import Ball

OPEN = 1000


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(f"{'d':>6}{'rounds':>10}{'database MB':>13}{'log MB':>9}{'recovery ms':>13}")
    for d in (2, 10, 1000):
        problem = Problem(Ball(d), SquaredDistance(d, targets=Ball(d)), L2Budget(d, budget=0.5))
        learner, told = AOGD.for_problem(problem), observe(problem, np.zeros(d), [np.eye(d)[0]])
        options = {"max_in_flight": 2 * OPEN, "expire_after": 10 * OPEN}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "service.db"
            child = os.fork()
            if child == 0:
                live = LiveLearner.open(path, learner, problem, durability="relaxed", **options)  # type: ignore[arg-type]
                for _ in range(rounds):
                    live.tell(live.ask(), told)
                for _ in range(OPEN):
                    live.ask()
                os.kill(os.getpid(), signal.SIGKILL)
            os.waitpid(child, 0)
            sizes = [Path(f"{path}{end}").stat().st_size / 1e6 for end in ("", "-wal")]
            times = []
            for _ in range(5):
                begin = time.perf_counter()
                live = LiveLearner.open(path, learner, problem, **options)  # type: ignore[arg-type]
                times.append(time.perf_counter() - begin)
                if len(times) == 5:
                    live.close()
            recovery = max(times[0], statistics.median(times))
        print(f"{d:>6}{rounds:>10}{sizes[0]:>13.1f}{sizes[1]:>9.1f}{1e3 * recovery:>13.1f}")


if __name__ == "__main__":
    main()
