"""Moving comparators: known values, certificates, and the dynamic regret of a trace."""

from __future__ import annotations

import numpy as np
import pytest

from longterm import InputError, Problem, hindsight, run
from longterm.catalogue import scenarios
from longterm.learners import HedgedCuts, LatestCut
from longterm.problems.constraints import Affine, L2Budget, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import Replay

pytest.importorskip("cvxpy", reason="the best path needs cvxpy")


def test_one_dimension_by_hand() -> None:
    """Targets 0, 1, 1 and a path of ½: from a to a + ½ twice; ½a² + (½ − a)² is least at a = ⅓."""
    problem = Problem(Box([-1.0], [1.0]), SquaredDistance(1, targets=Ball(1)), Affine([[1.0]], [1.0]))
    found = hindsight.best(problem, Replay([np.array([[0.0], [1.0], [1.0]])]), [3], path=0.5)
    np.testing.assert_allclose(found.points[0][0][:, 0], [1 / 3, 5 / 6, 5 / 6], atol=1e-5)
    np.testing.assert_allclose(found.loss, 0.5 / 9 + 1 / 36, rtol=1e-6)
    assert found.relative_gap[0] <= 1e-6


@pytest.mark.parametrize("path", [0.3, 3.0, 150.0])
def test_the_certificate_is_tight_and_more_path_is_never_worse(path: float) -> None:
    rng, T = np.random.default_rng(0), 60
    angle = 4 * np.pi * np.arange(T) / T
    rows = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    problem = Problem(Ball(2), Linear(2, 3.0), VaryingAffine(2, 1, 1.0, 1.0))
    costs = -rows + 0.3 * rng.uniform(-1, 1, (T, 2))
    stream = Replay([costs], [rows[:, None, :], np.full((T, 1), 0.3)])
    found = hindsight.best(problem, stream, [20, T], path=path)
    assert np.all(found.relative_gap <= 1e-6)
    for points, t in zip(found.points[0], (20, T), strict=True):
        assert points.shape == (t, 2)
        assert np.linalg.norm(np.diff(points, axis=0), axis=1).sum() <= path * (1 + 1e-9)
        assert np.max(np.sum(rows[:t] * points, axis=1)) <= 0.3 + 1e-9
    longer = hindsight.best(problem, stream, [20, T], path=2 * path)
    assert np.all(longer.loss <= found.loss + longer.gap + 1e-9)
    # As far as one likes: each round by itself, along its edge or within the disc.
    if path == 150.0:
        each = [_least(cost, row) for cost, row in zip(costs, rows, strict=True)]
        np.testing.assert_allclose(found.loss[-1], sum(each), rtol=1e-5)


def _least(cost: np.ndarray, row: np.ndarray) -> float:
    """min ⟨c, x⟩ over the disc cut by ⟨a, x⟩ ≤ 0.3."""
    free = -cost / np.linalg.norm(cost)
    if free @ row <= 0.3:
        return float(-np.linalg.norm(cost))
    along = np.array([-row[1], row[0]])
    return float(0.3 * cost @ row - np.sqrt(1 - 0.09) * abs(cost @ along))


def test_no_path_is_the_best_fixed_decision() -> None:
    problem = Problem(Ball(2), SquaredDistance(2, targets=Ball(2)), L2Budget(2, budget=0.4))
    stream = Replay([np.random.default_rng(1).uniform(-0.7, 0.7, (30, 2))])
    fixed = hindsight.best(problem, stream, [30])
    assert hindsight.best(problem, stream, [30], path=0.0).loss == fixed.loss
    little = hindsight.best(problem, stream, [30], path=1e-4)
    np.testing.assert_allclose(little.loss, fixed.loss, rtol=1e-3)
    assert little.relative_gap[0] <= 1e-6


def test_a_trace_has_dynamic_regret() -> None:
    case = scenarios.turning_half_plane(turns=1.0, rounds=128)
    learner = HedgedCuts.for_problem(case.problem, path=case.path)
    trace = run(case.problem, learner, case.stream, 128, seeds=range(2), record=[64, 128])
    best = hindsight.best(case.problem, case.stream, trace.rounds, seeds=range(2), path=case.path)
    assert best.loss.shape == (2, 2)
    bound = learner.bound(case.problem, 128, state=trace.state)
    assert np.all(trace.regret(best)[-1] <= bound["regret"])
    cut = run(
        case.problem,
        LatestCut.for_problem(case.problem),
        case.stream,
        128,
        seeds=range(2),
        record=[64, 128],
    )
    assert np.all(
        cut.regret(best)[-1] <= LatestCut.for_problem(case.problem, path=case.path).bound(case.problem, 128)["regret"]
    )


def test_invalid_arguments_are_refused() -> None:
    """Half-planes that face each other leave no path but a long one."""
    rows = np.array([[[1.0, 0.0]], [[-1.0, 0.0]]])
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0))
    stream = Replay([np.ones((2, 2)) / 2], [rows, np.full((2, 1), -0.5)])
    with pytest.raises(InputError, match="path"):
        hindsight.best(problem, stream, [2], path=0.5)
    assert hindsight.best(problem, stream, [2], path=1.5).loss < 0
