"""Sequences on which a bound fails if one of its terms is left out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from longterm import Problem, run
from longterm.constraints import VaryingAffine
from longterm.learners import HedgedCuts, LatestCut
from longterm.learners.meta import AdaptMLProd
from longterm.losses import CustomLoss, Linear
from longterm.sets import Box
from longterm.streams import Replay

INTERVAL = Box([-1.0], [1.0])


def opposite_ends(T: int) -> tuple[Problem, Replay, float]:
    """No losses, and x ≤ −1 and x ≥ 1 in turn: every round is violated by 2, and feasible points have a path of 2T."""
    rows = np.where(np.arange(T) % 2 == 0, 1.0, -1.0)[:, None, None]
    stream = Replay([np.zeros((T, 1))], [rows, np.full((T, 1), -1.0)])
    return Problem(INTERVAL, Linear(1), VaryingAffine(1, 1, 1.0, 1.0)), stream, 2.0 * (T - 1)


def violations_and_bounds(problem: Problem, learner: Any, stream: Replay, T: int) -> list[tuple[float, float]]:
    """The hard and the squared violation, each beside its bound."""
    trace = run(problem, learner, stream)
    bound = (
        learner.bound(problem, T, state=trace.state) if isinstance(learner, HedgedCuts) else learner.bound(problem, T)
    )
    measures = {"hard_violation": trace.hard_violation, "squared_violation": trace.squared_violation}
    return [(float(values[-1]), float(bound[measure])) for measure, values in measures.items()]


def test_hedged_cuts_need_the_number_of_experts() -> None:
    """Without losses S = ℓ = 0, and K is all that is left of the bound on the violation."""
    problem = Problem(INTERVAL, Linear(1), VaryingAffine(1, 1, 1.0, 1.0))
    stream = Replay([np.zeros((1, 1))], [np.ones((1, 1, 1)), np.full((1, 1), -0.5)])
    for found, bound in violations_and_bounds(problem, HedgedCuts.for_problem(problem), stream, 1):
        assert 0 < found <= bound
    for found, bound in violations_and_bounds(problem, HedgedCuts(INTERVAL, factors=(0.5,)), stream, 1):
        assert 0 < found <= bound


def test_hedged_cuts_need_the_path() -> None:
    T = 60
    problem, stream, path = opposite_ends(T)
    learner = HedgedCuts.for_problem(problem, path=path)
    L, diameter, K = 1.0, 2.0, learner.experts
    without = (L * diameter * math.sqrt(T * K), 2 * (L * diameter) ** 2 * K)
    for (found, bound), less in zip(violations_and_bounds(problem, learner, stream, T), without, strict=True):
        assert less < found <= bound


def test_hedged_cuts_need_the_moves_of_the_curved_expert() -> None:
    """Losses push to the right, x ≤ −1 holds in every second round: steps 1/(σt) are as long as B for 2000 rounds."""
    T, sigma = 1000, 5e-4
    loss = CustomLoss(
        1,
        function=lambda x, c: c * x[..., 0] + sigma / 2 * x[..., 0] ** 2,
        derivative=lambda x, c: c[..., None] + sigma * x,
        gradient_bound=1.001,
        value_range=2.1,
        parameters={"c": ()},
        strong_convexity=sigma,
    )
    problem = Problem(INTERVAL, loss, VaryingAffine(1, 1, 1.0, 1.0))
    rows = np.where(np.arange(T) % 2 == 0, 0.0, 1.0)[:, None, None]
    stream = Replay([np.full(T, -1.0)], [rows, np.full((T, 1), -1.0) * rows[:, 0] + (1 - rows[:, 0])])
    learner = HedgedCuts.for_problem(problem)
    assert learner.curved
    trace = run(problem, learner, stream)
    log, factors = float(trace.state.log_sum), np.asarray(learner.factors)
    cut = len(factors) + 2 * factors.sum() * math.sqrt(T * log) + (factors**2).sum() * log
    hard = 2 * math.sqrt(T * cut) + 0.5 * 2 * math.sqrt(T * log)
    squared = 2 * 4 * cut + 2 * (0.5 * 2) ** 2 * log
    bound = learner.bound(problem, T, state=trace.state)
    assert hard < trace.hard_violation[-1] <= bound["hard_violation"]
    assert squared < trace.squared_violation[-1] <= bound["squared_violation"]


@pytest.mark.parametrize("K", [2, 8, 64])
def test_adapt_ml_prod_needs_its_logarithm(K: int) -> None:
    """One large loss sets the range, then expert 0 gains a little in every round: it costs about 2B ln K to find it."""
    rule, gain = AdaptMLProd(), 0.01
    memory = rule.start(np.zeros(K))
    lost = 0.0
    for t in range(round(6 * math.log(K) / gain) + 200):
        p = rule.weights(memory)
        losses = (np.arange(K) == K - 1) - p[K - 1] if t == 0 else -gain * ((np.arange(K) == 0) - p[0])
        lost -= losses[0]
        memory = rule.update(memory, losses)
    bound = float(rule.regret(memory)[0])
    squares, reach = float(rule.squares(memory)[0]), float(memory[-2])
    spread = max(2 * reach, math.sqrt((reach**2 + squares) / math.log(K)))
    logarithm = math.log(K + memory[-1] / math.e)
    assert lost <= bound
    assert lost > bound - 0.99 * logarithm * spread, "the bound with a hundredth of the logarithm is false"


def test_latest_cut_needs_the_path_in_its_violation() -> None:
    T = 400
    problem, stream, path = opposite_ends(T)
    still = violations_and_bounds(problem, LatestCut.for_problem(problem), stream, T)
    moving = violations_and_bounds(problem, LatestCut.for_problem(problem, path=path), stream, T)
    assert all(found > bound for found, bound in still), "without P the bounds are false"
    assert all(found <= bound for found, bound in moving)
