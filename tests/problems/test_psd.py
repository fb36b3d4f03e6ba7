"""λ_min(X) ≥ floor: its subgradient by two methods, its bounds, its problem and its stream."""

import dataclasses

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact_sums import exact_strongly_convex
from longterm import AOGD, InputError, Problem, challenge, hindsight, observe, run
from longterm.problems import covariance
from longterm.problems.constraints import Affine, L2Budget, PositiveSemidefinite, Scaled
from longterm.problems.constraints.extreme_eigenvector import full_decomposition, lapack_one, start_vector
from longterm.problems.losses import SquaredDistance
from longterm.problems.sets import Ball, Box
from longterm.problems.streams.points import PairwiseSigns

WAYS = {"full": full_decomposition, "lapack": lapack_one}
each_way = pytest.mark.parametrize("way", WAYS)


def symmetric(rng, *shape):
    X = rng.standard_normal(shape)
    return (X + X.swapaxes(-1, -2)) / 2


@each_way
@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_smallest_eigenvalue_and_a_unit_eigenvector(way, n):
    X = symmetric(np.random.default_rng(n), 4, n, n)
    value, v = WAYS[way](X)
    np.testing.assert_allclose(value, np.linalg.eigvalsh(X)[:, 0], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(v, axis=-1), 1, atol=1e-12)
    np.testing.assert_allclose((X @ v[..., None])[..., 0], value[:, None] * v, atol=1e-12)


@each_way
def test_batch_dtype_and_library(way):
    X = symmetric(np.random.default_rng(0), 2, 3, 5, 5)
    value, v = WAYS[way](X)
    for i, j in np.ndindex(2, 3):
        one, w = WAYS[way](X[i, j])
        np.testing.assert_allclose(one, value[i, j], atol=1e-12)
        np.testing.assert_allclose(np.outer(w, w), np.outer(v[i, j], v[i, j]), atol=1e-9)
    assert {a.dtype for a in WAYS[way](X.astype(np.float32))} == {np.dtype(np.float32)}
    strict = WAYS[way](array_api_strict.asarray(X))
    np.testing.assert_allclose(np.asarray(strict[1]), v, atol=1e-12)


def test_repeated_smallest_eigenvalue_chooses_the_part_of_a_fixed_vector():
    """Rounding must not choose: nudging the matrix by 1e-13 leaves v where it is."""
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    X = (Q * np.array([-1.0, -1.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0])) @ Q.T
    s = start_vector(8)
    wanted = Q[:, :3] @ (Q[:, :3].T @ s)
    wanted /= np.linalg.norm(wanted)
    for matrix in (X, X + 1e-13 * symmetric(rng, 8, 8)):
        v = full_decomposition((matrix + matrix.T) / 2)[1]
        np.testing.assert_allclose(np.outer(v, v), np.outer(wanted, wanted), atol=1e-9)
        v = lapack_one((matrix + matrix.T) / 2)[1]
        assert v @ matrix @ v == pytest.approx(-1.0)
    identity = full_decomposition(np.eye(5))[1]
    np.testing.assert_allclose(np.abs(identity), np.abs(start_vector(5)), atol=1e-14)


def test_a_fixed_vector_at_right_angles_falls_back_on_the_first_eigenvector():
    s = start_vector(2)
    across = np.array([-s[1], s[0]])
    X = np.outer(s, s) - np.outer(across, across)  # λ_min = −1 at `across`, on which s has no part
    v = full_decomposition(X)[1]
    np.testing.assert_allclose(np.outer(v, v), np.outer(across, across), atol=1e-12)


@each_way
def test_same_bytes_every_time(way):
    for X in (symmetric(np.random.default_rng(3), 20, 20), np.diag([1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0])):
        assert WAYS[way](X)[1].tobytes() == WAYS[way](X)[1].tobytes()


@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), floor=st.sampled_from([0.0, 0.3]))
def test_facts_of_the_constraint(seed, n, floor):
    g = PositiveSemidefinite(n, floor)
    for B in (Ball(n * n, 1.3, np.eye(n).ravel()), Box.cube(n * n, -1.0, 2.0), Ball(n * n)):
        assert challenge(g, B, samples=200, seed=seed) == []


def test_facts_are_attained_on_a_ball_about_the_identity():
    n, R, floor = 4, 1.5, 0.2
    g, B = PositiveSemidefinite(n, floor), Ball(n * n, R, np.eye(n).ravel())
    low, high = np.eye(n), np.eye(n) * (1 + R / np.sqrt(n))
    low[0, 0] -= R
    values = [float(g.values(x.ravel())[0]) for x in (low, high)]
    assert values == [pytest.approx(floor - (1 - R)), pytest.approx(floor - 1 - R / np.sqrt(n))]
    assert g.value_bound(B) == pytest.approx(np.abs(values).max())


def test_an_unsymmetric_matrix_counts_by_its_symmetric_part():
    g, x = PositiveSemidefinite(2), np.array([1.0, 3.0, -1.0, 1.0])
    np.testing.assert_allclose(g.values(x), [0.0], atol=1e-15)
    gradient = g.pullback(x, np.ones(1))
    np.testing.assert_allclose(gradient, [-0.5, 0.5, 0.5, -0.5])


def test_observe_decomposes_once():
    calls = []

    def counted(matrix):
        calls.append(matrix.shape)
        return full_decomposition(matrix)

    problem = Problem(Ball(9), SquaredDistance(9), PositiveSemidefinite(3, eigenvector=counted))
    told = observe(problem, np.zeros((2, 9)), [np.zeros((2, 9))])
    assert calls == [(2, 3, 3)]
    np.testing.assert_allclose(np.linalg.norm(told.constraint_gradient, axis=-1), 1)


@each_way
def test_a_run_with_each_method(way):
    usual, other = covariance(8), covariance(8, eigenvector=WAYS[way])
    stream = PairwiseSigns(8)
    one, two = (
        run(p, AOGD.for_problem(p, steps="strongly convex"), stream, 100, seeds=range(2)) for p in (usual, other)
    )
    np.testing.assert_allclose(one.signed_violation, two.signed_violation, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("unit_diagonal", [True, False])
def test_the_problem(unit_diagonal):
    """An interior, targets within bounds, a mean that is infeasible, and A-OGD under its theorem."""
    n, rounds, seeds = 8, [10, 100, 400], range(3)
    problem, stream = covariance(n, unit_diagonal=unit_diagonal), PairwiseSigns(n)
    c = problem.constants
    assert (c.radius, c.diameter, c.gradient_bound) == (
        pytest.approx(np.sqrt(n * (n - 1))),
        *2 * (pytest.approx(2 * np.sqrt(n * (n - 1))),),
    )
    assert float(problem.constraint.values(problem.enclosing_set.centre)[0]) == pytest.approx(0.1 - 1)
    targets = stream.draw(0, 0, 400).loss[0]
    assert np.all(problem.enclosing_set.contains(targets))
    assert float(problem.constraint.values(targets.mean(axis=0))[0]) > 0
    trace = run(problem, AOGD.for_problem(problem, steps="strongly convex"), stream, 400, seeds=seeds, record=rounds)
    best = hindsight.best(problem, stream, rounds, seeds=seeds)
    bound = exact_strongly_convex(c, rounds)
    assert np.all(trace.regret(best) <= bound.regret[:, None])
    assert np.all(trace.signed_violation <= bound.violation[:, None])
    assert np.all(trace.hard_violation[-1] > 0)  # the constraint matters


def test_signs_are_symmetric_with_the_right_mean():
    matrices = PairwiseSigns(4, decay=0.6).draw(0, 0, 4000).loss[0].reshape(-1, 4, 4)
    np.testing.assert_array_equal(matrices, matrices.swapaxes(1, 2))
    assert set(np.unique(matrices)) == {-1.0, 1.0}
    i = np.arange(4)
    np.testing.assert_allclose(matrices.mean(axis=0), 0.6 ** np.abs(i[:, None] - i), atol=0.06)
    assert np.linalg.eigvalsh(matrices)[:, 0].min() < -1


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: covariance(1), "size"),
        (lambda: covariance(4, floor=1.0), "floor"),
        (lambda: covariance(4, floor=-0.1), "floor"),
        (lambda: PositiveSemidefinite(0), "size"),
        (lambda: PositiveSemidefinite(3, floor=np.nan), "floor"),
        (lambda: PairwiseSigns(3, decay=1.1), "decay"),
        (lambda: PairwiseSigns(3, decay=-0.1), "decay"),
    ],
)
def test_impossible_problems_are_refused(make, argument):
    with pytest.raises(InputError) as refused:
        make()
    assert refused.value.argument == argument


def test_a_scaled_constraint_is_the_same_set_in_other_units():
    problem = covariance(6)
    ten = dataclasses.replace(problem, constraint=Scaled(problem.constraint, 10.0))
    assert ten.constants.gradient_bound == problem.constants.gradient_bound  # the losses' is the longer one
    assert ten.constants.constraint_bound == pytest.approx(10 * problem.constants.constraint_bound)
    x = np.random.default_rng(0).standard_normal((3, 36))
    np.testing.assert_array_equal(ten.projection(x), problem.projection(x))
    affine = Affine([[1.0, 2.0]], [0.5])
    np.testing.assert_allclose(Scaled(affine, 3.0).as_affine().values(np.ones(2)), 3 * affine.values(np.ones(2)))
    assert Scaled(L2Budget(2, budget=1.0), 3.0).as_affine() is None
    with pytest.raises(InputError, match="factor"):
        Scaled(affine, 0.0)
    one, other = (run(p, AOGD.for_problem(p, steps="strongly convex"), PairwiseSigns(6), 200) for p in (problem, ten))
    assert 0.1 * float(other.signed_violation[-1]) < float(one.signed_violation[-1])  # and A-OGD feels it more
