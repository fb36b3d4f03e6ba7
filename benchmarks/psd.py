"""Positive semi-definite matrices: paying for a projection in every round, or not.

Two tables. The first plays `longterm.covariance` with signs reported pair by pair and prints regret, violations (of
λ_min ≥ 0.1) and the microseconds that each learner itself needs for a round: the loss's gradient, the oracle it asks,
its update. All learners use their strongly convex form. The second times the ways to one extreme eigenvector, and
the projections, on a matrix as A-OGD plays them and on one whose smallest eigenvalue stands apart.

With one thread the times mean something: OPENBLAS_NUM_THREADS=1 python benchmarks/psd.py
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from longterm import AOGD, Problem, hindsight, observe, run
from longterm.errors import AssumptionWarning
from longterm.learners import Feedback, Learner, NoViolationAOGD, ProjectedOGD
from longterm.problems import covariance
from longterm.problems.constraints import Scaled
from longterm.problems.constraints.extreme_eigenvector import full_decomposition, lapack_one
from longterm.problems.projections.correlation import project_onto_correlation
from longterm.problems.projections.psd import project_onto_psd_in_ball
from longterm.problems.streams.points import PairwiseSigns

ROUNDS, SEEDS, TIMED = 1000, range(3), 50
LAPACK_PAYS_FROM = 20
"""From about this n one eigenvector from LAPACK is cheaper than all of them (second table)."""


def own_microseconds(problem: Problem, learner: Learner[Any], stream: PairwiseSigns) -> float:
    """Median time of what the learner needs for one of the last rounds: no trace, no check, no oracle unasked."""
    state = run(problem, learner, stream, ROUNDS - TIMED, progress=None).state
    targets = stream.draw(0, ROUNDS - TIMED, ROUNDS).loss[0]
    times = []
    for target in targets:
        begin = time.perf_counter()
        x = learner.ask(state)
        if isinstance(learner, ProjectedOGD):
            told = Feedback(problem.loss.gradient(x, target), None, None)
        else:
            told = observe(problem, x, [target])
        state = learner.update(state, told)
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def without_violation(problem: Problem) -> Learner[Any]:
    """A-OGD on g + γ with the exact-sum γ, as large as the Slater point leaves room for: no theorem at this T."""
    return NoViolationAOGD.for_problem(problem, horizon=ROUNDS, steps="strongly convex")


def play(size: int, *, unit_diagonal: bool) -> None:
    way = lapack_one if size >= LAPACK_PAYS_FROM else full_decomposition
    problem = covariance(size, unit_diagonal=unit_diagonal, eigenvector=way)
    factor = problem.constants.loss_gradient_bound
    scaled = replace(problem, constraint=Scaled(problem.constraint, factor))
    stream = PairwiseSigns(size)
    best = hindsight.best(problem, stream, [ROUNDS], seeds=SEEDS)
    contestants = {
        "A-OGD": (problem, AOGD.for_problem(problem, steps="strongly convex"), 1.0),
        "A-OGD, g scaled by G": (scaled, AOGD.for_problem(scaled, steps="strongly convex"), factor),
        "A-OGD without violation": (scaled, without_violation(scaled), factor),
        "projected OGD": (problem, ProjectedOGD.for_problem(problem, steps="strongly convex"), 1.0),
    }
    kind = "correlation" if unit_diagonal else "covariance"
    for name, (played, learner, unit) in contestants.items():
        trace = run(played, learner, stream, ROUNDS, seeds=SEEDS, record=[ROUNDS], progress=None)
        regret, signed, hard = (
            float(values[-1].mean()) for values in (trace.regret(best), trace.signed_violation, trace.hard_violation)
        )
        cost = own_microseconds(played, learner, stream)
        print(f"{kind:<12}{size:>5}  {name:<26}{regret:>10.1f}{signed / unit:>12.2f}{hard / unit:>12.2f}{cost:>12.0f}")


def microseconds(work: Callable[[], object], repeats: int = 7) -> float:
    work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def compare_oracles(size: int) -> None:
    problem, stream = covariance(size), PairwiseSigns(size)
    # Where A-OGD stands after 500 rounds, but for what little λ does to it.
    played = stream.draw(0, 0, 500).loss[0].mean(axis=0)
    feasible = problem.projection(played).reshape(size, size)
    v = np.linalg.eigh(feasible)[1][:, 0]
    apart = feasible - 2 * np.outer(v, v)  # λ_min = −1.9, the next 0.1
    for name, matrix in (("as played", played.reshape(size, size)), ("one apart", apart)):
        ways = [microseconds(lambda way=way, X=matrix: way(X)) for way in (full_decomposition, lapack_one)]
        flat = matrix.ravel()
        ball = microseconds(lambda x=flat: project_onto_psd_in_ball(x, size, size, 1.0, 0.1))
        correlation = microseconds(lambda x=flat: project_onto_correlation(x, np.ones(size), 0.1), repeats=3)
        print(f"{size:>5}  {name:<12}" + "".join(f"{value:>14.0f}" for value in (*ways, ball, correlation)))


def main() -> None:
    warnings.simplefilter("ignore", AssumptionWarning)  # T is far below what the no-violation theorem asks for
    print(f"f = ½‖X − Y_t‖², λ_min(X) ≥ 0.1, T = {ROUNDS}, means over {len(SEEDS)} sequences, µs of one learner")
    print(f"{'problem':<12}{'n':>5}  {'learner':<26}{'regret':>10}{'Σ g':>12}{'Σ [g]₊':>12}{'µs/round':>12}")
    for unit_diagonal in (True, False):
        for size in (10, 30, 100):
            play(size, unit_diagonal=unit_diagonal)
    print("\nmicroseconds: one extreme eigenvector two ways, and two projections")
    names = ("full", "LAPACK one", "Π in a ball", "Π correlation")
    print(f"{'n':>5}  {'matrix':<12}" + "".join(f"{name:>14}" for name in names))
    for size in (10, 20, 30, 100, 300, 1000):
        compare_oracles(size)


if __name__ == "__main__":
    main()
