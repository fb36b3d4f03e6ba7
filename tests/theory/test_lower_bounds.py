"""The proofs of docs/explanation/lower_bounds.md, played against learners."""

import numpy as np
import pytest

from longterm import AOGD, Problem, observe, run
from longterm.learners import DriftPlusPenalty, HedgedCuts, ProxPenalty, SinhaVaze
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Box
from longterm.problems.streams import Replay

LINE = Problem(Box([0.0], [1.0]), Linear(1), VaryingAffine(1, 1, row_norm=1.0, limit_bound=0.0))
MAKERS = [
    AOGD.for_problem,
    HedgedCuts.for_problem,
    ProxPenalty.for_problem,
    lambda problem: DriftPlusPenalty.for_problem(problem, horizon=400, preset="neely-yu"),
    lambda problem: SinhaVaze.for_problem(problem, horizon=400),
]


@pytest.mark.parametrize("make", MAKERS)
def test_feasible_on_average_cannot_be_matched(make):
    n = 200
    costs = np.concatenate([np.full((n, 1), -1.0), np.zeros((n, 1))])
    measures = []
    for later in (-1.0, 0.0):
        rows = np.concatenate([np.ones((n, 1, 1)), np.full((n, 1, 1), later)])
        trace = run(LINE, make(LINE), Replay([costs], [rows, np.zeros((2 * n, 1))]))
        measures.append((float(trace.cumulative_loss[-1]), float(trace.signed_violation[-1])))
    regret, violation = n + measures[0][0], measures[1][1]
    assert regret + violation == pytest.approx(n)
    assert max(regret, violation) >= n / 2


@pytest.mark.parametrize("make", MAKERS)
def test_hard_violation_cannot_be_small_from_noisy_values(make):
    """What the learner sees is the same in both worlds, so its decisions are."""
    rng, T, sigma, x_sum, violation = np.random.default_rng(0), 400, 0.5, 0.0, 0.0
    learner = make(LINE)
    state = learner.init()
    for _ in range(T):
        x = learner.ask(state)
        told = observe(LINE, x, [np.array([-1.0])], [np.array([[sigma * rng.choice([-1.0, 1.0])]]), np.zeros(1)])
        x_sum, violation = x_sum + float(x[0]), violation + max(float(told.constraint), 0.0)
        state = learner.tell(state, told)
    assert max(T - x_sum, violation) >= 0.9 * sigma * T / 3  # 0.9: one run of random signs


@pytest.mark.parametrize("make", MAKERS)
def test_the_square_root(make):
    T, problem = 100, Problem(Box([-1.0], [1.0]), Linear(1), Affine([[0.01]], [0.02]))
    regret = []
    for seed in range(12):
        costs = np.random.default_rng(seed).choice([-1.0, 1.0], (T, 1))
        regret.append(float(run(problem, make(problem), Replay([costs])).cumulative_loss[-1]) + abs(costs.sum()))
    assert np.mean(regret) >= 0.5 * np.sqrt(T / 2)  # 0.5: twelve runs
