"""Sequences on which a bound fails if one of its terms is left out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import Problem, observe, run
from longterm.learners import HedgedCuts, LatestCut
from longterm.learners.cuts import hedged_cuts_bounds
from longterm.learners.cuts.meta import AdaptMLProd
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import CustomLoss, Linear
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import Replay

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


def there_and_back(problem: Problem, learner: HedgedCuts, T: int) -> tuple[float, float, Any]:
    """Costs push to the right until x is near 1, then x ≤ −1 is asked for; the hard and the squared violation."""
    state, hard, squared = learner.init(), 0.0, 0.0
    for _ in range(T):
        x = learner.ask(state)
        row, limit, cost = (1.0, -1.0, 0.0) if x[0] >= 0.9 else (0.0, 1.0, -1.0)
        broken = max(row * float(x[0]) - limit, 0.0)
        hard, squared = hard + broken, squared + broken**2
        parameters = [np.asarray(cost) if problem.constants.strong_convexity else np.array([cost])]
        seen = observe(problem, x, parameters, [np.array([[row]]), np.array([limit])])
        state = learner.update(state, seen)
    return hard, squared, state


def curved_problem(sigma: float) -> Problem:
    """Losses c x + (σ/2) x² on [−1, 1] with a constraint that changes."""
    loss = CustomLoss(
        1,
        function=lambda x, c: c * x[..., 0] + sigma / 2 * x[..., 0] ** 2,
        derivative=lambda x, c: c[..., None] + sigma * x,
        gradient_bound=1 + sigma,
        value_range=2 + sigma,
        parameters={"c": ()},
        strong_convexity=sigma,
    )
    return Problem(INTERVAL, loss, VaryingAffine(1, 1, 1.0, 1.0))


def test_hedged_cuts_need_the_number_of_experts() -> None:
    """Without losses nobody moves, and K R² is all that is left of A. With one expert the bound is attained."""
    problem = Problem(INTERVAL, Linear(1), VaryingAffine(1, 1, 1.0, 1.0))
    stream = Replay([np.zeros((1, 1))], [np.ones((1, 1, 1)), np.full((1, 1), -1.0)])
    for found, bound in violations_and_bounds(problem, HedgedCuts.for_problem(problem), stream, 1):
        assert 0 < found <= bound
    for found, bound in violations_and_bounds(problem, HedgedCuts(INTERVAL, factors=(0.5,)), stream, 1):
        assert found == pytest.approx(bound, rel=1e-12)


def test_hedged_cuts_need_the_path() -> None:
    T = 60
    problem, stream, path = opposite_ends(T)
    learner = HedgedCuts.for_problem(problem, path=path)
    without = (math.sqrt(T * learner.experts), learner.experts)  # L = R = 1
    for (found, bound), less in zip(violations_and_bounds(problem, learner, stream, T), without, strict=True):
        assert less < found <= bound


def test_hedged_cuts_need_the_travel_of_an_expert() -> None:
    """Steps Δ/(2√t): A without 2ΔH is R² = 1."""
    T, problem = 100, Problem(INTERVAL, Linear(1), VaryingAffine(1, 1, 1.0, 1.0))
    learner = HedgedCuts(INTERVAL, factors=(0.5,))
    hard, squared, state = there_and_back(problem, learner, T)
    bound = learner.bound(problem, T, state=state)
    assert math.sqrt(T) < hard <= bound["hard_violation"]
    assert 1.0 < squared <= bound["squared_violation"]


@pytest.mark.parametrize("sigma", [0.02, 0.1])
def test_hedged_cuts_need_the_travel_of_the_curved_expert(sigma: float) -> None:
    """Beside an expert that hardly moves: A without the travel of steps 1/(σt) is 2R² + Δ² ln T."""
    T, problem = 400, curved_problem(sigma)
    learner = HedgedCuts(INTERVAL, factors=(1e-6,), sigma=sigma, meta=AdaptMLProd())
    hard, squared, state = there_and_back(problem, learner, T)
    bound, less = learner.bound(problem, T, state=state), 2 + 4 * math.log(T) + 0.001
    assert less < squared <= bound["squared_violation"]
    assert hard <= bound["hard_violation"]
    alone = HedgedCuts(INTERVAL, factors=(), sigma=sigma)
    hard, squared, state = there_and_back(problem, alone, T)
    bound = alone.bound(problem, T)
    assert 1.0 < squared <= bound["squared_violation"]
    assert math.sqrt(T) < hard <= bound["hard_violation"]


@given(seed=st.integers(0, 2**32 - 1))
@examples(200)
def test_a_violation_is_paid_by_the_distance_to_the_comparator(seed: int) -> None:
    """The lemma of (b): a² ≤ ‖z − x*‖² − ‖x⁺ − x*‖² + 2Δ min(h, Δ), a the distance of z from the half-space."""
    rng = np.random.default_rng(seed)
    B = Ball(int(rng.integers(1, 4)))
    z, best = B.sample(rng, 2)
    normal = rng.standard_normal(B.dimension)
    normal /= np.linalg.norm(normal)
    limit = normal @ best + rng.choice([0.0, rng.exponential()])
    step = rng.standard_normal(B.dimension) if rng.random() < 0.7 else normal * rng.choice([-1.0, 1.0])
    h = rng.choice([0.01, 0.3, 3.0]) * rng.random()
    y = z - h * step / np.linalg.norm(step)
    after = B.project(y - max(normal @ y - limit, 0.0) * normal)
    a = max(normal @ z - limit, 0.0)
    assert a**2 <= np.sum((z - best) ** 2) - np.sum((after - best) ** 2) + 2 * 2.0 * min(h, 2.0) + 1e-12


def test_every_term_of_the_violation_is_in_the_bound() -> None:
    """Numbers worked by hand, for terms that no sequence was found for: R² of each expert, ln T, H₂."""
    R, diameter, T, P = 1.0, 2.0, 100.0, 3.0
    plain = hedged_cuts_bounds.travel_of_factors(np.array([0.5, 0.125]), diameter, np.asarray(T), np.asarray(4.0))
    assert (float(plain.lengths), float(plain.squares)) == (0.625 * 2 * 20, (0.25 + 1 / 64) * 4 * 4)
    for sigma, lengths, squares in (
        (0.05, 21 * (1 + math.log(100 / 10.5)), 2 * 21 * 2),  # ρ = 21 = 10.5 Δ
        (5.0, 1.2 * (1 + math.log(100)), 2 * 1.2**2),  # ρ = 1.2 < Δ
        (0.001, 2 * 100.0, 4 * 100.0),  # ρ = 1001: every step is as long as B
    ):
        curved = hedged_cuts_bounds.travel_of_decay(curved_problem(sigma).constants, np.asarray(sigma), np.asarray(T))
        assert (float(curved.lengths), float(curved.squares)) == pytest.approx((lengths, squares), rel=1e-12)
        harmonic = [min((1 + sigma) / sigma / t, 2.0) for t in range(1, 101)]
        assert sum(harmonic) <= float(curved.lengths)
        assert sum(h * h for h in harmonic) <= float(curved.squares)
    both = hedged_cuts_bounds.Travel(np.asarray(30.0), np.asarray(9.0))
    one = Problem(INTERVAL, Linear(1), VaryingAffine(1, 1, 1.0, 1.0))
    several = Problem(INTERVAL, Linear(1), VaryingAffine(1, 2, 1.0, 1.0))
    A = 3 * (R**2 + 2 * diameter * P) + 2 * diameter * 30 + diameter**2 * math.log(T)
    for problem, L, squared in ((one, 1.0, A), (several, 1.5, (1.5 * math.sqrt(A + 9) + 3) ** 2)):
        found = hedged_cuts_bounds.violation_bounds(problem, L, 3, both, np.asarray(T), path=P, shared=True, bank=False)
        assert found["squared_violation"] == pytest.approx(squared, rel=1e-12)
        assert found["hard_violation"] == pytest.approx(math.sqrt(T * squared), rel=1e-12)


def test_hedged_cuts_count_every_expert() -> None:
    """Without losses that push and with a large σ: A = K R² + Δ² ln T + 2ΔH for K = 3, two of them without travel."""
    sigma, T = 5.0, 50
    problem = curved_problem(sigma)
    learner = HedgedCuts(INTERVAL, factors=(0.5, 0.125), sigma=sigma, meta=AdaptMLProd())
    stream = Replay([np.zeros(T)], [np.zeros((T, 1, 1)), np.ones((T, 1))])
    state = run(problem, learner, stream).state
    travel = 1.2 * (1 + math.log(T))  # x stays at 0, where gradients are 0: S_T = 0
    expected = 3 + 4 * math.log(T) + 4 * travel
    assert learner.bound(problem, T, state=state)["squared_violation"] == pytest.approx(expected, rel=1e-12)


def test_a_fixed_constraint_has_every_term() -> None:
    """(c) by hand: the first round, the tolerance, and rounds that needed more cuts."""
    problem = Problem(INTERVAL, Linear(1), Affine([[1.0]], [0.5]))  # D = 1.5
    found = hedged_cuts_bounds.fixed_bounds(
        problem, 1.0, 0.25, np.asarray(0.0), 0.005, np.asarray(100.0), np.asarray(3.0)
    )
    assert float(found["hard_violation"]) == pytest.approx(0.25 + 2 * 0.005 * 2 * 10 + 1.5 * 3, rel=1e-12)
    squared = 0.25**2 + (0.005 * 2) ** 2 * (1 + math.log(100)) + 1.5**2 * 3
    assert float(found["squared_violation"]) == pytest.approx(squared, rel=1e-12)


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
