"""Microseconds per round of A-OGD on doubly-stochastic matrices, p = 8, compared with hand-written NumPy.

Both hand-written loops are batched over learners and have no checks. "update" computes the algorithm only;
"update + sums" also computes the totals of a trace. All loops are timed in turn, several times; medians are printed.

    python benchmarks/rounds.py

Then hedged cuts are compared with A-OGD on the arena's problems and on five others, one learner each: the best of
several runs in turn, and the median of the ratios.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

import fresh_problems
from longterm import AOGD, Problem, run
from longterm.catalogue.scenarios import SCENARIOS
from longterm.learners import HedgedCuts
from longterm.problems import doubly_stochastic, fair_logistic
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import RandomCosts, RandomPermutations, Replay, ResampledRows, Stream

SIZE = 8
REPEATS = 7
ARENA = (
    "doubly_stochastic",
    "budgeted_logistic",
    "covariance",
    "consensus",
    "expert_advice",
    "noisy_doubly_stochastic",
    "online_linear_program",
    "routing",
    "switching_constraints",
    "job_scheduling",
)
"""The arena's problems that need no download."""


def by_hand(targets: np.ndarray, learners: int, *, sums: bool) -> np.ndarray:
    """Run A-OGD on the doubly-stochastic problem in plain NumPy, `learners` at once."""
    p, d = SIZE, SIZE * SIZE
    R, beta, ones = np.sqrt(p), np.full(learners, 2 / 3), np.ones(p)
    G = 2 * R
    rows, columns = np.kron(np.eye(p), np.ones(p)), np.kron(np.ones(p), np.eye(p))
    A = np.concatenate([-np.eye(d), rows, -rows, columns, -columns])
    x, multiplier = np.zeros((learners, d)), np.zeros(learners)
    loss = signed = hard = squared = np.zeros(learners)
    largest, each = np.full(learners, -np.inf), np.zeros((learners, len(A)))
    for t, target in enumerate(targets, start=1):
        X = x.reshape(learners, p, p)
        r, c = X @ ones - 1, ones @ X - 1
        values = np.concatenate([-x, r, -r, c, -c], axis=-1)
        g = values.max(axis=-1)
        index = (values >= g[:, None] - 9e-9).argmax(axis=-1)
        gradient = x - target
        if sums:
            positive = np.maximum(g, 0)
            loss = loss + 0.5 * np.vecdot(gradient, gradient)
            signed, hard, squared = signed + g, hard + positive, squared + positive * positive
            largest, each = np.maximum(largest, g), each + values
        decay = t**beta
        theta, eta = 6 * R * G / decay, R / (G * decay)
        step = x - eta[:, None] * (gradient + multiplier[:, None] * A[index])
        x = step * (R / np.maximum(np.sqrt(np.vecdot(step, step)), R))[:, None]
        multiplier = np.maximum(multiplier + (g - theta * multiplier) / (theta * (t + 1)), 0)
    return x


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def main() -> None:
    problem = doubly_stochastic(SIZE)
    print(
        f"A-OGD, doubly-stochastic p = {SIZE}, median of {REPEATS}: microseconds per round, and per learner and round"
    )
    print(f"{'learners':>9}{'longterm':>12}{'each':>9}{'update':>11}{'ratio':>8}{'+ sums':>11}{'ratio':>8}")
    for learners, rounds in ((1, 2000), (10, 2000), (1000, 500)):
        targets = RandomPermutations(SIZE).draw(0, 0, rounds).loss[0]
        stream = Replay([targets])
        learner = AOGD.for_problem(problem, beta=2 / 3 if learners == 1 else np.full(learners, 2 / 3))
        contestants = {
            "ours": lambda learner=learner, stream=stream: run(problem, learner, stream, progress=None),
            "update": lambda targets=targets, n=learners: by_hand(targets, n, sums=False),
            "sums": lambda targets=targets, n=learners: by_hand(targets, n, sums=True),
        }
        same = np.allclose(contestants["ours"]().state.x, contestants["update"](), rtol=0, atol=1e-9)
        assert same, "the two loops compute different things"
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(REPEATS):
            for name, work in contestants.items():
                times[name].append(seconds(work))
        ours, update, sums = (1e6 * statistics.median(t) / rounds for t in times.values())
        print(
            f"{learners:>9}{ours:>12.1f}{ours / learners:>9.2f}"
            f"{update:>11.1f}{ours / update:>8.2f}{sums:>11.1f}{ours / sums:>8.2f}"
        )
    print("target: ratio to the update at most 4 for one learner, at most 1.5 for a thousand")
    hedged_beside_aogd()


def hedged_beside_aogd(rounds: int = 500) -> None:
    """Print the time of a round of hedged cuts relative to A-OGD."""
    row = np.random.default_rng(0).standard_normal((1, 10))
    box = Problem(Box.cube(10, -1.0, 1.0), Linear(10), Affine(row, [0.1]))
    scenarios: dict[str, tuple[Problem, Stream]] = {
        "doubly-stochastic, p = 4": (doubly_stochastic(4), RandomPermutations(4)),
        "a box, one constraint": (box, RandomCosts(10)),
    }
    for size, rows in ((50, 100), (1000, 1000)):
        matrix = np.random.default_rng(0).standard_normal((rows, size)) / size**0.5
        many = Affine(matrix, np.full(rows, 0.1))
        for B in (Ball(size), Box.cube(size, -1.0, 1.0)):
            name = f"{type(B).__name__.lower()}, d = {size}, m = {rows}"
            scenarios[name] = Problem(B, Linear(size), many), RandomCosts(size)
    for name in ARENA:
        case = SCENARIOS[name]()
        scenarios[name.replace("_", " ")] = case.problem, case.stream
    scenarios["fair logistic, rows as in a9a"] = fair_logistic_on_random_rows()
    for name, build in fresh_problems.BUILDERS.items():
        case = build()
        scenarios[name.replace("_", " ")] = case.problem, case.stream
    ratios = []
    print(f"\n{'hedged cuts':<32}{'g':>10}{'A-OGD':>9}{'hedged':>9}{'ratio':>8}")
    for name, (problem, stream) in scenarios.items():
        contestants = [AOGD.for_problem(problem), HedgedCuts.for_problem(problem)]
        times = [
            [
                seconds(lambda one=one, case=(problem, stream): run(case[0], one, case[1], rounds, progress=None))
                for one in contestants
            ]
            for _ in range(2 * REPEATS)
        ]
        plain, hedged = (1e6 * min(column) / rounds for column in zip(*times, strict=True))
        g = problem.constraint
        kind = f"{'curved' if not (g.parameters or g.is_affine) else 'affine'}, {g.count}"
        ratios.append(hedged / plain)
        print(f"{name:<32}{kind:>10}{plain:>9.1f}{hedged:>9.1f}{hedged / plain:>8.2f}")
    print(f"median {statistics.median(ratios):.2f}; target: at most 5 for m up to 100, at most 8 at d = m = 1,000")


def fair_logistic_on_random_rows() -> tuple[Problem, Stream]:
    """Return fair logistic regression on random rows of the size of a9a."""
    rng = np.random.default_rng(0)
    features = (rng.random((2000, 121)) < 0.11).astype(np.float64)
    sensitive, labels = rng.integers(0, 2, 2000), rng.choice([-1.0, 1.0], 2000)
    return fair_logistic(features, sensitive, budget=10.0, limit=0.01), ResampledRows(features, labels)


if __name__ == "__main__":
    main()
