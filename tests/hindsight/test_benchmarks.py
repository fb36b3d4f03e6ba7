"""Changing constraints: comparator sets, the best decision, and its certificate."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact_sums import exact_theorem_1
from longterm import AOGD, InputError, Problem, hindsight, run
from longterm.hindsight.closed_forms import minimise_linear
from longterm.problems import EveryRound, InExpectation, OnAverage
from longterm.problems.constraints import (
    Affine,
    CustomConstraint,
    ElasticNetBudget,
    L2Budget,
    Scaled,
    Stack,
    VaryingAffine,
)
from longterm.problems.losses import Hinge, Linear, SquaredDistance
from longterm.problems.sets import Ball, Box, Product, Simplex
from longterm.problems.streams import RandomCosts, Replay, ResampledRows

BENCHMARKS = {"every round": EveryRound(), "on average": OnAverage()}
SETS = {"box": Box.cube(4, -1.0, 1.0), "simplex": Simplex(4), "product": Product([Simplex(2), Box.cube(2, -1.0, 1.0)])}


def changing(rounds, d=4, m=2, seed=0):
    """Unit rows that have a mean, with room for 0 and for the centres of the sets."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((rounds, m, d)) - 1.0
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows, rng.uniform(0.6, 0.9, (rounds, m))


def linear(over, rounds=60, seed=0):
    costs = RandomCosts(4).draw(seed, 0, rounds).loss[0] + 0.3
    problem = Problem(over, Linear(4, 2.0), VaryingAffine(4, 2, 1.0, 1.0))
    return problem, Replay([costs], changing(rounds, seed=seed))


@pytest.mark.parametrize("over", SETS.values(), ids=SETS)
@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=BENCHMARKS)
def test_linear_losses_agree_with_cvxpy_and_the_certificate_is_tight(over, benchmark):
    problem, stream = linear(over)
    best = hindsight.best(problem, stream, [1, 7, 60], benchmark=benchmark)
    slow = hindsight.best(problem, stream, [1, 7, 60], benchmark=benchmark, method="cvxpy")
    np.testing.assert_allclose(best.loss, slow.loss, atol=1e-5)
    assert np.all(best.gap <= 1e-8)
    matrix, offset = stream.draw(0, 0, 60).constraint
    excess = np.vecdot(matrix, best.x[-1]) - offset
    worst = excess.max() if isinstance(benchmark, EveryRound) else excess.sum(axis=0).max()
    assert worst <= 1e-8
    if isinstance(over, Box):
        assert worst > -1e-8  # some constraint stops it


@pytest.mark.parametrize("over", [SETS["box"], Ball(4, radius=0.9)], ids=["box", "ball"])
@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=BENCHMARKS)
def test_squared_losses_agree_with_cvxpy_and_the_certificate_is_tight(over, benchmark):
    targets = Ball(4, radius=3.0)
    rng = np.random.default_rng(1)
    problem = Problem(over, SquaredDistance(4, targets=targets), VaryingAffine(4, 2, 1.0, 1.0))
    stream = Replay([targets.project(rng.standard_normal((40, 4)) + 1.5)], changing(40))
    best = hindsight.best(problem, stream, [5, 40], seeds=[0, 1], benchmark=benchmark)
    slow = hindsight.best(problem, stream, [5, 40], seeds=[0, 1], benchmark=benchmark, method="cvxpy")
    np.testing.assert_allclose(best.loss, slow.loss, rtol=1e-6)
    np.testing.assert_allclose(best.x, slow.x, atol=1e-3)
    assert best.relative_gap.max() <= 1e-9


def test_a_wrong_decision_gets_a_loose_certificate(monkeypatch):
    problem, stream = linear(SETS["box"])
    right = hindsight.best(problem, stream, [60])
    where = "longterm.hindsight.closed_forms.minimise_linear"
    with monkeypatch.context() as patch:
        patch.setattr(where, lambda cost, allowed, over: (0 * cost, np.zeros(allowed.count)))
        wrong = hindsight.best(problem, stream, [60])
    assert wrong.loss[0] - wrong.gap[0] <= right.loss[0] <= wrong.loss[0]
    assert wrong.gap[0] > 1
    # With the right multipliers, the gap of a wrong decision is what it loses, no more and no less.
    with monkeypatch.context() as patch:
        patch.setattr(where, lambda cost, allowed, over: (0 * cost, minimise_linear(cost, allowed, over)[1]))
        told = hindsight.best(problem, stream, [60])
    assert told.loss[0] - told.gap[0] == pytest.approx(right.loss[0])


@pytest.mark.slow
def test_fixed_constraints_are_every_benchmark():
    fixed = Problem(SETS["box"], Linear(4), Affine(np.eye(4)[:2], [0.2, 0.3]))
    best = [hindsight.best(fixed, RandomCosts(4), [9, 30], benchmark=b) for b in BENCHMARKS.values()]
    slow = hindsight.best(fixed, RandomCosts(4), [9, 30], method="cvxpy")
    for one in best:
        np.testing.assert_allclose(one.loss, slow.loss, atol=1e-6)


def test_the_mean_in_expectation_is_the_limit_of_the_average():
    rng = np.random.default_rng(2)
    matrix = np.broadcast_to([[1.0, 1.0]], (20_000, 1, 2))
    stream = Replay([-np.ones((20_000, 2))], [matrix, rng.uniform(0.0, 1.0, (20_000, 1))])
    problem = Problem(Box.cube(2, -1.0, 1.0), Linear(2, 2.0), VaryingAffine(2, 1, 2.0, 1.0))
    known = hindsight.best(problem, stream, [20_000], benchmark=InExpectation(Affine([[1.0, 1.0]], [0.5])))
    seen = hindsight.best(problem, stream, [20_000], benchmark=OnAverage())
    assert known.loss[0] == pytest.approx(-10_000)
    assert seen.loss[0] == pytest.approx(known.loss[0], rel=0.01)
    every = hindsight.best(problem, stream, [20_000])
    assert every.loss[0] > -10  # the strictest of 20,000 rounds leaves next to nothing


def test_rows_of_stacked_and_scaled_constraints():
    rows, offsets = changing(5)
    both = Stack([Affine([[1.0, 0.0, 0.0, 0.0]], [0.5]), Scaled(VaryingAffine(4, 2, 1.0, 1.0), 3.0)])
    matrix, offset = both.affine_rounds(5, rows, offsets)
    x = np.random.default_rng(0).standard_normal(4)
    values = both.values(np.broadcast_to(x, (5, 4)), rows, offsets)
    np.testing.assert_allclose(np.vecdot(matrix, x) - offset, values)
    assert matrix.shape == (5, 3, 4)
    assert Stack([both, L2Budget(4, 1.0)]).affine_rounds(5, rows, offsets) is None


def test_incomparable_results_are_refused():
    problem, stream = linear(SETS["box"])
    opposite = Replay([np.zeros((2, 4))], [np.eye(4)[[0, 0]][:, None] * [[[1.0]], [[-1.0]]], np.full((2, 1), -0.5)])
    narrow = Problem(SETS["box"], Linear(4), VaryingAffine(4, 1, 1.0, 1.0))
    assert hindsight.best(narrow, opposite, [1]).loss == 0
    with pytest.raises(InputError, match=r"feasible in every round up to round 2.*OnAverage"):
        hindsight.best(narrow, opposite, [1, 2])
    with pytest.raises(InputError, match="ended after round 60"):
        hindsight.best(problem, stream, [61])


@pytest.mark.slow
def test_losses_and_sets_without_a_closed_form_go_on_to_another_solver():
    problem, stream = linear(SETS["box"])
    rows = ResampledRows(np.eye(4), np.ones(4))
    for asked, of in (
        (Problem(Ball(4), problem.loss, problem.constraint), stream),
        (Problem(Ball(4), Hinge(4, 1.0), Affine([[1.0, 0.0, 0.0, 0.0]], [0.5])), rows),
        (Problem(Ball(4), Linear(4), ElasticNetBudget(4, 1.0)), RandomCosts(4)),
    ):
        best, own, slow = (hindsight.best(asked, of, [3, 30], method=m) for m in ("auto", "numerical", "cvxpy"))
        for one in (best, own):
            np.testing.assert_allclose(one.loss, slow.loss, rtol=1e-5)
            assert one.relative_gap.max() <= 1e-6


@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=BENCHMARKS)
def test_changing_custom_constraints_agree_with_affine_ones(benchmark):
    problem, stream = linear(SETS["box"], rounds=20)
    same = CustomConstraint(
        4,
        lambda x, matrix, offset: (np.vecdot(matrix, x[..., None, :]) - offset)[..., 0],
        lambda x, matrix, offset: np.broadcast_to(matrix[..., 0, :], x.shape),
        1.0,
        4.0,
        {"matrix": (1, 4), "offset": (1,)},
    )
    matrix, offset = changing(20, m=1)
    costs = stream.draw(0, 0, 20).loss
    known = replace(problem, constraint=VaryingAffine(4, 1, 1.0, 1.0))
    own = replace(problem, constraint=same)
    exact = hindsight.best(known, Replay(costs, [matrix, offset]), [5, 20], benchmark=benchmark)
    found = hindsight.best(own, Replay(costs, [matrix, offset]), [5, 20], benchmark=benchmark)
    assert found.solver == "numerical"
    np.testing.assert_allclose(found.loss, exact.loss, rtol=1e-6)
    assert np.all(found.loss - found.gap <= exact.loss + 1e-9)


def test_a_long_table_of_rows_is_certified_in_little_memory():
    targets = Replay([np.full((3000, 2), 2.0)], changing(3000, d=2, m=4))
    problem = Problem(Ball(2, 3.0), SquaredDistance(2), VaryingAffine(2, 4, 1.0, 1.0))
    best = hindsight.best(problem, targets, [3000])
    assert best.relative_gap[0] <= 1e-9


@given(seed=st.integers(0, 10**6), beta=st.floats(0.1, 0.9))
def test_the_theorem_holds_against_the_best_of_every_round(seed, beta):
    problem, stream = linear(SETS["box"], rounds=120, seed=seed)
    trace = run(problem, AOGD.for_problem(problem, beta=beta), stream, record=[30, 120])
    best = hindsight.best(problem, stream, [30, 120])
    bound = exact_theorem_1(problem.constants, [30, 120], beta)
    assert np.all(trace.regret(best) + best.gap <= bound.regret)
    assert np.all(trace.signed_violation <= bound.violation)
