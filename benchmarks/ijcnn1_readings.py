"""Compute why the ijcnn1 panels of the paper's Figures 3 and 4 cannot be reached, and the nearest reading of the paper.

    python benchmarks/ijcnn1_readings.py [SEQUENCES]

Figure 4 ends near −128 (A-OGD) and −187 (Convex OGD). As g(x) = ‖x‖₁ + ½‖x‖² − ρ is at least −ρ, a sum of g over n
logged rounds is at least −nρ, whatever is played. The paper's ρ gives 30 % non-zero coefficients offline.

The nearest reading on all four numbers has columns scaled to [−1, 1], the G of the loss alone (max ‖u_t‖) in the steps,
and ρ = 18. Needs the data set: `longterm data fetch ijcnn1`.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from numpy.typing import NDArray

from longterm import AOGD, Problem, hindsight, run
from longterm.data import load
from longterm.hindsight import choose_budget
from longterm.hindsight.offline_logistic import least_log_loss
from longterm.lab.experiments.paper_experiments import READ_OFF
from longterm.lab.experiments.recorded_rounds import logged_rounds
from longterm.lab.experiments.result import LOGGED
from longterm.learners import MahdaviOGD
from longterm.problems import budgeted_logistic
from longterm.problems.streams import ResampledRows
from longterm.theory.schedules import ConstantSchedule, ConvexSchedule

NEAREST_BUDGET = 18.0
FIGURES = READ_OFF["ijcnn1"]


def print_floor(features: NDArray[np.float64], labels: NDArray[np.float64], logged: int) -> None:
    """Print the least sum of g over the logged rounds, and the offline solution at the ρ that the figures need."""
    chosen = choose_budget(features, labels, 0.3, progress=None)
    print(f"ρ for 30 % non-zeros: {chosen.budget:.3f}, {chosen.count} of {features.shape[1]} coefficients")
    print(f"least sum of g over {logged} logged rounds: {-logged * chosen.budget:.1f}")
    for name, read in FIGURES.items():
        needed = -read[LOGGED] / logged
        offline = least_log_loss(features, labels, needed)
        print(f"{name}: {read[LOGGED]:g} needs ρ ≥ {needed:.2f}, with {offline.count} non-zeros offline")


def play(problem: Problem, learner: AOGD, stream: ResampledRows, rounds: int, seed: int) -> tuple[float, float]:
    """Return the regret and the sum of g over the logged rounds."""
    logged = logged_rounds(rounds)
    record = np.unique([*logged, *logged - 1]).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gradients of g are longer than this reading's G
        trace = run(problem, learner, stream, rounds, seeds=seed, record=record, on_broken_bound="warn", progress=None)
    best = hindsight.best(problem, stream, [rounds], seeds=seed, progress=None)
    places = np.searchsorted(trace.rounds, logged)
    violation = np.asarray(trace.signed_violation)
    sums = float((violation[places] - violation[places - 1]).sum())
    return float(np.asarray(trace.cumulative_loss)[-1] - best.loss[-1]), sums


def steps_of_convex_ogd(problem: Problem, G: float, rounds: int) -> ConstantSchedule:
    """Return η = R/√(2(G² + D²)T), μ = η and θ = 4G²η, with the D that the paper states: √d R + R²/2."""
    R = problem.constants.radius
    D = np.sqrt(problem.dimension) * R + R**2 / 2
    eta = float(R / np.sqrt(2 * (G**2 + D**2) * rounds))
    return ConstantSchedule(theta=4 * G**2 * eta, eta=eta, mu=eta, gradient_bound=G)


def main() -> None:
    """Print the floor and the nearest reading."""
    sequences = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    data = load("ijcnn1")
    features, labels = np.asarray(data.features), np.asarray(data.labels)
    rounds = len(labels)
    print_floor(features, labels, len(logged_rounds(rounds)))
    low, high = features.min(axis=0), features.max(axis=0)
    scaled = 2 * (features - low) / (high - low) - 1
    problem, stream = budgeted_logistic(scaled, NEAREST_BUDGET), ResampledRows(scaled, labels)
    G = float(np.linalg.norm(scaled, axis=1).max())
    ours = AOGD(problem.enclosing_set, ConvexSchedule(problem.constants.diameter, G, 2 / 3))
    theirs = MahdaviOGD(problem.enclosing_set, steps_of_convex_ogd(problem, G, rounds))
    print(f"\nnearest reading, ρ = {NEAREST_BUDGET:g}, G = {G:.3g}, {sequences} sequences: regret, logged sum")
    for (name, read), learner in zip(FIGURES.items(), (ours, theirs), strict=True):
        results = np.array([play(problem, learner, stream, rounds, seed) for seed in range(sequences)])
        regret, logged = results.mean(axis=0)
        print(f"{name}: {regret:,.0f}, {logged:.0f}; the figures show {read['regret']:,g}, {read[LOGGED]:g}")


if __name__ == "__main__":
    main()
