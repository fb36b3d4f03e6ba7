"""Learners for comparators that move: first rounds by hand, and their theorems on paths and streams that hurt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import InputError, Problem, observe, run
from longterm.learners import (
    Ader,
    HedgedRestarts,
    LatestCut,
    Learner,
    ProjectedOGD,
    Restarted,
    TrackedPenalty,
)
from longterm.learners.tracking.tracker import mixture
from longterm.problems import doubly_stochastic
from longterm.problems.constraints import Affine, L1Budget, L2Budget, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box, Set
from longterm.problems.streams import Replay

INTERVAL = Box([-1.0], [1.0])
T = 160


def turning(turns: float = 2.0, rounds: int = T, offset: float = 0.3) -> tuple[Problem, Replay, np.ndarray]:
    """A half-plane that turns, costs that push across its edge; the nearest point of its edge is the best there is."""
    angle = 2 * np.pi * turns * np.arange(rounds) / rounds
    rows = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0))
    return problem, Replay([-rows], [rows[:, None, :], np.full((rounds, 1), offset)]), offset * rows


def path_of(points: np.ndarray) -> float:
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def play(problem: Problem, learner: Learner[Any], points: np.ndarray, seed: int, slack: float) -> dict[str, float]:
    """Costs away from u_t or anywhere, half-spaces that hold u_t with some slack: what the adversary knows is x_t."""
    rng, state = np.random.default_rng(seed), learner.init()
    regret = hard = squared = 0.0
    for u in points:
        x = learner.ask(state)
        away = x - u if rng.random() < 0.6 else rng.standard_normal(2)
        cost = away / max(float(np.linalg.norm(away)), 1e-12)
        row = u - x if rng.random() < 0.5 else rng.standard_normal(2)
        row = row / max(float(np.linalg.norm(row)), 1e-12)
        feedback = observe(problem, x, [cost], [row[None, :], np.array([row @ u + slack])])
        worst = max(float(feedback.constraint), 0.0)
        regret, hard, squared = regret + cost @ (x - u), hard + worst, squared + worst**2
        state = learner.tell(state, feedback)
    return {"regret": regret, "hard_violation": hard, "squared_violation": squared}


def moving(seed: int, speed: float, B: Set) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = [B.project(rng.uniform(-1, 1, 2))]
    for _ in range(T - 1):
        points.append(B.project(points[-1] + speed * rng.standard_normal(2) * (rng.random() < 0.3)))
    return np.array(points)


@pytest.mark.slow
@examples(15)
@given(seed=st.integers(0, 10**6), speed=st.sampled_from([0.0, 0.05, 1.0]), ball=st.booleans())
def test_bounds_hold_against_paths(seed: int, speed: float, ball: bool) -> None:
    B: Set = Ball(2) if ball else Box.cube(2, -1.0, 1.0)
    problem = Problem(B, Linear(2), VaryingAffine(2, 1, 1.0, 3.0))
    points = moving(seed, speed, B)
    P = path_of(points)
    learners: list[Learner[Any]] = [
        LatestCut.for_problem(problem, path=P),
        LatestCut.for_problem(problem, path=P, beta=0.7, onto="set"),
        *(
            TrackedPenalty.for_problem(problem, horizon=T, tracker=tracker, penalty=penalty, slack=0.4, path=P)
            for tracker in ("ader", "restarts")
            for penalty in ("none", "slater")
        ),
    ]
    for learner in learners:
        found = play(problem, learner, points, seed, 0.4)
        for measure, value in learner.bound(problem, T).items():
            assert found[measure] <= value + 1e-9, (type(learner).__name__, measure)


def test_latest_cut_by_hand() -> None:
    """g = x₁ + x₂ ≤ 0 on a box: y = (1, ½), cut to (¼, −¼); the nearest point of the set is the same."""
    problem = Problem(Box.cube(2, -1.0, 1.0), Linear(2, 4.0), Affine([[1.0, 1.0]], [0.0]))
    for onto in ("cut", "set"):
        learner = LatestCut(problem.enclosing_set, first_step=1.0, decay=0.5, onto=onto)  # type: ignore[arg-type]
        state = learner.tell(learner.init(), observe(problem, np.zeros(2), [np.array([-1.0, -0.5])]))
        np.testing.assert_allclose(learner.ask(state), [0.25, -0.25], atol=1e-12)


def test_onto_the_set_is_the_nearest_point() -> None:
    """Where the cut leaves B, coming back to B breaks the constraint again; the set's own projection does not."""
    B, row = Box.cube(2, -1.0, 1.0), np.array([0.2, 1.0])
    problem = Problem(B, Linear(2, 9.0), Affine([row], [-0.9]))
    exact = problem.projection
    assert exact is not None
    rng = np.random.default_rng(0)
    for _ in range(20):
        cost = rng.uniform(-3, 3, 2)
        learner = LatestCut(B, first_step=1.0, decay=0.5, onto="set")
        state = learner.tell(learner.init(), observe(problem, np.zeros(2), [cost]))
        np.testing.assert_allclose(learner.ask(state), exact(B.project(-cost)), atol=1e-9)


def test_hedged_restarts_are_the_rule_as_written() -> None:
    """Line by line, T = 12: four levels on a ball; the blocks of level k end after every 2^k rounds."""
    B, rng = Ball(2), np.random.default_rng(3)
    costs = rng.standard_normal((12, 2)) * rng.uniform(0, 2, (12, 1))
    rule, x = HedgedRestarts(B, 9.0, 12), np.array([0.3, -0.2])
    memory = rule.memory(x)
    N, C = rule.levels, 2 * np.log(4 * 13)
    assert N == 4
    points, starts, sums, S = np.tile(x, (N, 1)), np.tile(x, (N, 1)), np.zeros((N, 2)), np.zeros(N)
    w, gap = np.ones(N) / N, 0.0
    for t, d in enumerate(costs, start=1):
        losses = (points - w @ points) @ d
        if gap == 0:
            v, mixed = w * (losses == losses.min()), losses.min()
        else:
            v = w * np.exp(C / gap * (losses.min() - losses))
            mixed = losses.min() - gap / C * np.log(v.sum())
        gap, w = gap - mixed, (t * v / v.sum() + 1 / N) / (t + 1)
        sums, S = sums - d, S + d @ d
        points = np.stack([B.project(a + 2 / np.sqrt(s) * z) for a, s, z in zip(starts, S, sums, strict=True)])
        over, start = t % 2 ** np.arange(N) == 0, w @ points
        points[over], starts[over], sums[over], S[over] = start, start, 0, 0
        x, memory = rule.step(x, memory, d, np.asarray(t))
        np.testing.assert_allclose(x, w @ points, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_the_mean_of_equal_points_is_that_point() -> None:
    """A rounding error would decide between levels that play the same point."""
    rng = np.random.default_rng(0)
    for point, weights in zip(rng.standard_normal((50, 3)), rng.random((50, 10)), strict=True):
        np.testing.assert_array_equal(mixture(weights, np.stack([point] * 10)), point)


def test_nothing_is_lost_by_not_knowing_the_period() -> None:
    """Costs turn every 500 rounds, the best period of restarts (docs/benchmarks/choosing.md, drift)."""
    d, stretch, rng = 20, 500, np.random.default_rng(0)
    levels = rng.standard_normal((8, d))
    levels /= 2 * np.linalg.norm(levels, axis=1, keepdims=True)
    costs = np.repeat(levels, stretch, axis=0) + rng.standard_normal((4000, d)) / (2 * np.sqrt(d))
    costs /= np.maximum(np.linalg.norm(costs, axis=1, keepdims=True), 1.0)
    problem = Problem(Ball(d), Linear(d), L1Budget(d, budget=1.0))
    best = -np.abs(costs.reshape(-1, stretch, d).sum(axis=1)).max(axis=1).sum()
    ours = TrackedPenalty.for_problem(problem, horizon=4000, tracker="restarts", penalty="projection")
    told = Restarted(ProjectedOGD.for_problem(problem), every=stretch)
    regret = []
    for learner in (ours, told):
        trace = run(problem, learner, Replay([costs]), record=[4000])
        regret.append(float(trace.cumulative_loss[-1] - best))
        assert trace.hard_violation[-1] < 1e-9
    assert regret[0] <= regret[1]
    np.testing.assert_allclose(regret, [30.4, 32.4], atol=0.05)  # as docs/benchmarks/choosing.md prints them


def test_ader_by_hand() -> None:
    """T = 4, G' = 1, B = [−1, 1]: three experts with steps 1, 2, 4; the first cost is 1."""
    rule, x = Ader(INTERVAL, 1.0, 4), np.zeros(1)
    assert rule.experts == 3
    x, memory = rule.step(x, rule.memory(x), np.array([0.25]), np.asarray(1))
    np.testing.assert_allclose(memory[:, 0], [-0.25, -0.5, -1.0])
    prior = np.array([1 / 2, 1 / 6, 1 / 12])
    np.testing.assert_allclose(x, prior @ memory[:, 0] / prior.sum())
    x, memory = rule.step(x, memory, np.array([1.0]), np.asarray(2))
    weights = prior * np.exp(np.sqrt(8 / 4) / 2 * np.array([0.25, 0.5, 1.0]))
    np.testing.assert_allclose(x, weights @ [-1.0, -1.0, -1.0] / weights.sum())


def test_violation_of_the_tracked_penalty() -> None:
    problem, stream, points = turning(1.0)
    learner = TrackedPenalty.for_problem(problem, horizon=T, slack=0.3)
    trace = run(problem, learner, stream)
    assert trace.hard_violation[-1] <= learner.violation_bound(T, path_of(points))
    with pytest.raises(InputError, match="nothing bounds the violation"):
        TrackedPenalty.for_problem(problem, horizon=T, penalty="none").violation_bound(T, 0.0)


def test_distance_penalty_on_a_fixed_set() -> None:
    problem = Problem(Ball(2), Linear(2), L2Budget(2, budget=0.5))
    angle = np.linspace(0, 4 * np.pi, T)
    costs = -np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = -0.5 * costs
    learner = TrackedPenalty.for_problem(problem, horizon=T, path=path_of(points))
    assert learner.price.distance_weight == 2.0
    trace = run(problem, learner, Replay([costs]))
    both = trace.cumulative_loss[-1] + 0.5 * T + trace.hard_violation[-1]
    assert both <= learner.bound(problem, T)["regret"]


def test_bounds_of_the_trackers_by_hand() -> None:
    """Δ = 2, G' = 3, T = 1: one expert or level, or two where Ader has its grid; no path."""
    made = {kind: kind(INTERVAL, 3.0, 1) for kind in (Ader, HedgedRestarts)}
    numbers = {kind: float(rule.dynamic_regret(np.asarray(1.0), 0.0)) for kind, rule in made.items()}
    C = 2 * np.log(2)  # 2 ln(N(T + 1)) with N = 1
    assert numbers[HedgedRestarts] == pytest.approx(5.34 * 6 + 2 * 6 * ((C / 4) ** 0.5 + 2 / 3 * C + 1))
    assert numbers[Ader] == pytest.approx(1.5 * 6 + 6 * (1 / 8) ** 0.5 * (1 + 2 * np.log(2)))
    moving = float(made[HedgedRestarts].dynamic_regret(np.asarray(1.0), 0.5))
    assert moving == pytest.approx(numbers[HedgedRestarts] + 3.0 * 0.5)  # G' n P


def test_invalid_arguments_are_refused() -> None:
    varying, _, _ = turning()
    many = doubly_stochastic(3)
    with pytest.raises(InputError, match="slack"):
        TrackedPenalty.for_problem(varying, horizon=10)
    with pytest.raises(InputError, match="projection"):
        TrackedPenalty.for_problem(varying, horizon=10, penalty="distance")
    with pytest.raises(InputError, match="one affine"):
        LatestCut.for_problem(many, onto="set").check(many)
    with pytest.raises(InputError, match="horizon"):
        TrackedPenalty.for_problem(varying, horizon=10, slack=0.1).bound(varying, 11)


@pytest.mark.parametrize("unit", [1e-15, 1e-6, 1.0])
def test_the_latest_cut_in_float32_in_any_unit(unit: float) -> None:
    """The cut puts the decision on the limit, 0.2. Without it each round exceeds the limit by 0.8."""
    problem = Problem(Ball(1), Linear(1), Affine([[unit]], [0.2 * unit]))
    stream, learner = Replay([-np.ones((100, 1))]), LatestCut.for_problem(problem)
    trace = run(problem, learner, stream, dtype=np.float32, progress=None)
    assert trace.hard_violation[-1] <= 1e-4 * unit
