"""Hard violation, loss and time of hedged cuts with remembered half-spaces, relative to the default.

    OPENBLAS_NUM_THREADS=1 python benchmarks/remembered.py [sequences] [rounds]

Every scenario is played by the default and by `HedgedCuts(remembered=64)` on the same sequences. The table has the mean
hard violation Σ [max_j g_j]₊ and the mean loss of both, the ratio of the violations, the violation divided by theorem
(d), and the time of a round relative to A-OGD.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from longterm import AOGD, Problem, observe, run
from longterm.catalogue.scenarios import SCENARIOS
from longterm.learners import HedgedCuts, Learner
from longterm.problems.constraints import VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball
from longterm.problems.streams import Replay, Stream

SCENARIO = tuple[Problem, Stream]


def half_spaces(d: int, count: int = 1) -> Problem:
    """Return half-spaces on the unit ball, and linear costs."""
    return Problem(Ball(d), Linear(d), VaryingAffine(d, count, 1.0, 1.0))


def unit(rows: np.ndarray) -> np.ndarray:
    """Return the rows divided by their lengths."""
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def replay(rng: np.random.Generator, rows: np.ndarray, limits: np.ndarray) -> SCENARIO:
    """Return limits (T, m, d) and costs with a mean that pushes across them."""
    T, count, d = rows.shape
    push = unit(rng.standard_normal(d))
    costs = unit(push + rng.standard_normal((T, d)) / d**0.5)
    return half_spaces(d, count), Replay([costs], [rows, limits])


def returning(T: int, seed: int) -> SCENARIO:
    """Return twenty limits in five dimensions that return in random order."""
    rng = np.random.default_rng(seed)
    rows = unit(rng.standard_normal((20, 5)))[rng.integers(20, size=T)]
    return replay(rng, rows[:, None, :], np.full((T, 1), 0.1))


def fresh(d: int, count: int = 1) -> Callable[[int, int], SCENARIO]:
    """Return limits that are new in every round: half-spaces at a distance of 0.1 from the centre."""

    def build(T: int, seed: int) -> SCENARIO:
        rng = np.random.default_rng(seed)
        return replay(rng, unit(rng.standard_normal((T, count, d))), np.full((T, count), 0.1))

    return build


def moved(T: int, seed: int) -> SCENARIO:
    """Return a change after half of the rounds, after which no point satisfies old and new limits."""
    rng = np.random.default_rng(seed)
    normal = unit(rng.standard_normal(5))
    signs = np.where(np.arange(T) < T // 2, 1.0, -1.0)[:, None]
    rows = unit(signs * normal + 0.3 * rng.standard_normal((T, 5)) / 5**0.5)
    return replay(rng, rows[:, None, :], np.full((T, 1), -0.2))


def empty(T: int, seed: int) -> SCENARIO:
    """Return three limits, no two of which can be broken alone, with an empty intersection."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi / 3 * rng.integers(3, size=T)
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return replay(rng, rows[:, None, :], np.full((T, 1), -0.05))


def of_catalogue(name: str, **options: Any) -> Callable[[int, int], SCENARIO]:
    """Return a problem of the catalogue, with one sequence."""

    def build(T: int, seed: int) -> SCENARIO:
        found = SCENARIOS[name](**options)
        block = found.stream.draw(seed, 0, T)
        return found.problem, Replay(block.loss, block.constraint)

    return build


BUILDERS: dict[str, Callable[[int, int], SCENARIO]] = {
    "limits that return, d = 5": returning,
    "fresh limits, d = 5": fresh(5),
    "fresh limits, d = 50": fresh(50),
    "ten fresh limits a round, d = 50": fresh(50, 10),
    "jobs": of_catalogue("job_scheduling"),
    "switching constraints": of_catalogue("switching_constraints"),
    "nothing in common after T/2": moved,
    "empty intersection": empty,
}


def adversary(learner: Learner[Any], d: int, rounds: int, seed: int) -> tuple[float, float]:
    """Play half-spaces that cut off the decision but not x*, and costs that push away from x*: violation and loss."""
    problem, rng = half_spaces(d), np.random.default_rng(seed)
    goal, state, hard, loss = 0.3 * unit(rng.standard_normal(d)), learner.init(), 0.0, 0.0
    for _ in range(rounds):
        x = np.asarray(learner.ask(state))
        away = unit(x - goal + 1e-9 * rng.standard_normal(d))
        normal = unit(away + 0.5 * unit(rng.standard_normal(d)))
        cost = -unit(away + 0.5 * unit(rng.standard_normal(d)))
        feedback = observe(problem, x, [cost], [normal[None, :], np.asarray([normal @ goal])])
        hard, loss = hard + max(float(feedback.constraint), 0.0), loss + float(cost @ x)
        state = learner.tell(state, feedback)
    return hard, loss


def main(sequences: int = 5, rounds: int = 4096) -> None:
    """Print the table."""
    print(f"T = {rounds}, {sequences} sequences; default -> remembered = 64")
    print(f"{'':<34}{'hard':>9}{'->':>9}{'ratio':>8}{'of (d)':>8}{'loss':>9}{'->':>9}{'time/A-OGD':>12}{'->':>7}")
    for name, build in BUILDERS.items():
        found: dict[str, list[tuple[float, float, float]]] = {"a": [], "default": [], "memory": []}
        share = 0.0
        for seed in range(sequences):
            problem, stream = build(rounds, seed)
            learners = {
                "a": AOGD.for_problem(problem),
                "default": HedgedCuts.for_problem(problem),
                "memory": HedgedCuts.for_problem(problem, remembered=64),
            }
            for key, learner in learners.items():
                begin = time.thread_time()
                trace = run(problem, learner, stream, rounds, record=[rounds], progress=None)
                took = time.thread_time() - begin
                found[key].append((float(trace.hard_violation[-1]), float(trace.cumulative_loss[-1]), took))
            bound = learners["memory"].bound(problem, rounds, state=trace.state)
            share = max(share, found["memory"][-1][0] / float(bound["hard_violation"]))
        plain, default, memory = (np.mean(found[key], axis=0) for key in found)
        print(
            f"{name:<34}{default[0]:>9.2f}{memory[0]:>9.2f}{memory[0] / default[0]:>8.3f}{share:>8.3f}"
            f"{default[1]:>9.0f}{memory[1]:>9.0f}{default[2] / plain[2]:>12.2f}{memory[2] / plain[2]:>7.2f}",
            flush=True,
        )
    for d in (2, 5):
        rows = [
            [adversary(HedgedCuts.for_problem(half_spaces(d), remembered=M), d, rounds, seed) for M in (0, 64)]
            for seed in range(sequences)
        ]
        default, memory = np.mean(rows, axis=0)
        print(
            f"{f'adversary, d = {d}':<34}{default[0]:>9.2f}{memory[0]:>9.2f}{memory[0] / default[0]:>8.3f}{'':>8}"
            f"{default[1]:>9.0f}{memory[1]:>9.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
