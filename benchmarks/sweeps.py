"""Time a sweep beside batched runs and single runs: python benchmarks/sweeps.py.

Five values of β on 20 sequences. `longterm run` plays the sequences of a curve in one call, and writes a record for
each. Processor seconds, medians of five.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable
from statistics import median

from longterm import AOGD, run
from longterm.lab import Backend, ExperimentSpec, LearnerSpec, ProblemSpec, run_experiment
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations

SIZE, ROUNDS, SEEDS, BETAS = 8, 1000, tuple(range(20)), [0.5, 0.6, 0.7, 0.8, 0.9]


def seconds(function: Callable[[], object], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        begin = time.process_time()
        function()
        taken.append(time.process_time() - begin)
    return median(taken)


def main() -> None:
    problem, stream = doubly_stochastic(SIZE), RandomPermutations(SIZE)
    learners = [AOGD.for_problem(problem, beta=beta) for beta in BETAS]
    problem_spec = ProblemSpec("doubly_stochastic", {"size": SIZE})
    spec = ExperimentSpec(problem_spec, (LearnerSpec("aogd", {"beta": BETAS}),), ROUNDS, SEEDS, engine="numpy")

    def batched() -> None:
        for learner in learners:
            run(problem, learner, stream, ROUNDS, seeds=SEEDS, progress=None)

    def single() -> None:
        for learner in learners:
            for seed in SEEDS:
                run(problem, learner, stream, ROUNDS, seeds=seed, progress=None)

    def sweep() -> None:
        with tempfile.TemporaryDirectory() as folder:
            run_experiment(spec, folder, backend=Backend(workers=1), out=io.StringIO())

    batched()
    base = seconds(batched)
    print(f"five batched runs    {base:6.2f} s")
    print(f"longterm run         {seconds(sweep) / base:6.2f} times that")
    print(f"a hundred single runs{seconds(single, 1) / base:6.2f} times that")


if __name__ == "__main__":
    main()
