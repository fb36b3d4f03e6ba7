"""Time a sweep beside the same calls by hand: python benchmarks/sweeps.py.

Five values of β on 20 sequences. By hand: one batched run for each value, and the best decisions in hindsight, which
cost the same for one sequence at a time. `longterm run` also writes a record for each run, about 1.7 ms each. Processor
seconds, medians of five rounds that take turns.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable
from statistics import median

from longterm import AOGD, hindsight, run
from longterm.catalogue.lookup import find_problem
from longterm.lab import Backend, ExperimentSpec, LearnerSpec, ProblemSpec, run_experiment
from longterm.lab.experiments.recorded_rounds import recorded_rounds

SEEDS, BETAS = tuple(range(20)), [0.5, 0.6, 0.7, 0.8, 0.9]


def seconds(function: Callable[[], object]) -> float:
    begin = time.process_time()
    function()
    return time.process_time() - begin


def compare(name: str, rounds: int) -> None:
    scenario = find_problem(name).build()
    problem, stream = scenario.problem, scenario.stream
    learners = [AOGD.for_problem(problem, beta=beta) for beta in BETAS]
    spec = ExperimentSpec(ProblemSpec(name, {}), (LearnerSpec("aogd", {"beta": BETAS}),), rounds, SEEDS, engine="numpy")
    recorded = recorded_rounds(rounds, spec.record)

    def batched() -> None:
        for learner in learners:
            run(problem, learner, stream, rounds, seeds=SEEDS, progress=None)

    def best() -> None:
        hindsight.best(problem, stream, recorded, seeds=SEEDS, benchmark=scenario.benchmark, progress=None)

    def single() -> None:
        for seed in SEEDS:
            run(problem, learners[0], stream, rounds, seeds=seed, progress=None)

    def sweep() -> None:
        with tempfile.TemporaryDirectory() as folder:
            run_experiment(spec, folder, backend=Backend(workers=1), out=io.StringIO())

    works = (batched, best, sweep)
    for work in works:
        work()
    times = [[seconds(work) for work in works] for _ in range(5)]
    runs, found, whole = (median(column) for column in zip(*times, strict=True))
    ratio = median(third / (first + second) for first, second, third in times)
    print(f"{name}, {rounds} rounds: five batched runs {runs:.2f} s, best decisions {found:.2f} s")
    print(f"  longterm run {whole:.2f} s, {ratio:.2f} times both and {whole / runs:.2f} times the runs alone")
    print(f"  twenty single runs {5 * seconds(single) / runs:.1f} times a batched one")


def main() -> None:
    for rounds in (1000, 2000):
        compare("doubly_stochastic", rounds)
    compare("routing", 2000)


if __name__ == "__main__":
    main()
