"""Projections against CVXPY, against their optimality conditions, and at their edges."""

import array_api_strict
import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, nnls

from hypothesis_settings import examples
from longterm.errors import InputError
from longterm.problems.projections.birkhoff import project_onto_doubly_stochastic
from longterm.problems.projections.correlation import project_onto_correlation
from longterm.problems.projections.elastic_net import project_onto_elastic_net
from longterm.problems.projections.polyhedron import Polyhedron
from longterm.problems.projections.psd import project_onto_psd_in_ball
from longterm.problems.sets import Ball, Simplex

D, P, N = 7, 4, 5
RNG = np.random.default_rng(11)
ROWS, LIMITS = RNG.standard_normal((9, D)), RNG.uniform(0.1, 1.0, 9)
HALVES = Polyhedron(ROWS, LIMITS)
WITH_EQUATIONS = Polyhedron(np.vstack([ROWS, np.ones(D), -np.ones(D)]), np.concatenate([LIMITS, [0.3, -0.3]]))
IN_BALL = Polyhedron(ROWS, LIMITS, Ball(D, radius=0.6, centre=np.full(D, 0.1)))


def on_psd(n, *more):
    """CVXPY's constraints for a flattened matrix: symmetric, and whatever `more` says of it."""

    def of(x):
        X = cp.reshape(x, (n, n), order="C")
        return [X == X.T, *(rule(X) for rule in more)]

    return of


def above(floor, n):
    return lambda X: (X + X.T) / 2 - floor * np.eye(n) >> 0


# name: (dimension, our projection, CVXPY's constraints on x, a point inside)
CASES = {
    "elastic net": (
        D,
        lambda x: project_onto_elastic_net(x, 1.2, 0.7, 1.3),
        lambda x: [0.7 * cp.norm1(x) + 0.65 * cp.sum_squares(x) <= 1.2],
        np.zeros(D),
    ),
    "l1 ball": (D, lambda x: project_onto_elastic_net(x, 1.5, 1.0, 0.0), lambda x: [cp.norm1(x) <= 1.5], np.zeros(D)),
    "l2 ball": (D, lambda x: project_onto_elastic_net(x, 2.0, 0.0, 1.0), lambda x: [cp.norm(x) <= 2.0], np.zeros(D)),
    "simplex": (D, Simplex(D, 1.5).project, lambda x: [x >= 0, cp.sum(x) == 1.5], np.full(D, 1.5 / D)),
    "polyhedron": (D, HALVES, lambda x: [ROWS @ x <= LIMITS], np.zeros(D)),
    "with equations": (
        D,
        WITH_EQUATIONS,
        lambda x: [ROWS @ x <= LIMITS, cp.sum(x) == 0.3],
        WITH_EQUATIONS(np.zeros(D)),
    ),
    "polyhedron in a ball": (D, IN_BALL, lambda x: [ROWS @ x <= LIMITS, cp.norm(x - 0.1) <= 0.6], np.zeros(D)),
    "doubly stochastic": (
        P * P,
        lambda x: project_onto_doubly_stochastic(x, P),
        lambda x: [x >= 0, *(cp.sum(cp.reshape(x, (P, P), order="C"), axis=a) == 1 for a in (0, 1))],
        np.full(P * P, 1 / P),
    ),
    "psd with floor in a ball": (
        N * N,
        lambda x: project_onto_psd_in_ball(x, N, radius=1.7, centre=1.0, floor=0.3),
        on_psd(N, above(0.3, N), lambda X: cp.norm(X - np.eye(N), "fro") <= 1.7),
        np.eye(N).ravel(),
    ),
    "correlation": (
        N * N,
        lambda x: project_onto_correlation(x, np.ones(N), floor=0.1),
        on_psd(N, above(0.1, N), lambda X: cp.diag(X) == 1),
        np.eye(N).ravel(),
    ),
}
each_case = pytest.mark.parametrize("name", CASES)


def by_cvxpy(constraints, w):
    """CVXPY's answer by SCS, which reaches 1e-12 here; interior points stop near 1e-7 where a constraint just holds."""
    x = cp.Variable(len(w))
    cp.Problem(cp.Minimize(cp.sum_squares(x - w)), constraints(x)).solve(
        solver=cp.SCS, eps_abs=1e-13, eps_rel=1e-13, max_iters=200_000
    )
    return x.value


def edge_points(name):
    """Inside, on the boundary, zero, one coordinate, and random points of several sizes; shape (…, d)."""
    d, project, _, inside = CASES[name]
    rng = np.random.default_rng(5)
    outside = rng.standard_normal((5, d)) * np.array([[1e-3], [0.3], [1.0], [3.0], [30.0]])
    single = np.zeros(d)
    single[2] = 4.0
    boundary = project(outside[2])
    return np.stack([*outside, inside, boundary, np.zeros(d), single])


@each_case
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_agrees_with_cvxpy(name):
    _, project, constraints, _ = CASES[name]
    points = edge_points(name)
    found = project(points)
    for w, ours in zip(points, found, strict=True):
        assert np.abs(ours - by_cvxpy(constraints, w)).max() <= 1e-10 * max(1.0, np.abs(w).max())


@each_case
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_is_the_nearest_point_at_every_scale(name, size):
    """Where a solver's digits end: z is in the set, and ⟨w − z, z' − z⟩ ≤ 0 for all z' of it, as only for Π(w)."""
    d, project, _, _ = CASES[name]
    rng = np.random.default_rng(6)
    points = size * rng.standard_normal((6, d))
    nearest = project(points)
    others = project(rng.standard_normal((200, d)) * rng.choice([0.1, 1.0, 5.0], (200, 1)))
    # The set's own diameter is of order one: what is left is rounding in w − z, of the size of w.
    angles = np.einsum("nd,nkd->nk", points - nearest, others[None] - nearest[:, None])
    assert angles.max() <= 1e-12 * max(1.0, size) ** 2
    again = project(nearest)
    assert np.abs(again - nearest).max() <= 1e-12 * max(1.0, 1e3 * size)


@each_case
def test_points_inside_stay(name):
    _, project, _, inside = CASES[name]
    np.testing.assert_allclose(project(inside), inside, rtol=0, atol=1e-14)


@each_case
def test_batches_equal_single_calls(name):
    d, project, _, _ = CASES[name]
    x = 2 * np.random.default_rng(7).standard_normal((2, 3, d))
    single = np.stack([[project(x[i, j]) for j in range(3)] for i in range(2)])
    np.testing.assert_allclose(project(x), single, rtol=0, atol=1e-12)
    assert project(x[:0]).shape == (0, 3, d)


@each_case
def test_other_libraries_and_float32(name):
    d, project, _, _ = CASES[name]
    x = np.random.default_rng(8).standard_normal((3, d))
    strict = project(array_api_strict.asarray(x))
    assert type(strict) is type(array_api_strict.asarray(x))
    np.testing.assert_allclose(np.asarray(strict), project(x), rtol=0, atol=1e-13)
    narrow = project(x.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, project(x), rtol=0, atol=3e-6)


# --- one by one ---------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**6),
    l1=st.floats(0, 5),
    l2=st.floats(0, 5),
    budget=st.floats(1e-3, 50),
    size=st.sampled_from([1e-8, 1.0, 1e5]),
)
def test_elastic_net_meets_its_budget(seed, l1, l2, budget, size):
    if l1 + l2 < 1e-2:
        l1 = 1.0
    w = size * np.random.default_rng(seed).standard_normal(9)
    z = project_onto_elastic_net(w, budget, l1, l2)
    spent = l1 * np.abs(z).sum() + 0.5 * l2 * z @ z
    if l1 * np.abs(w).sum() + 0.5 * l2 * w @ w <= budget:
        np.testing.assert_array_equal(z, w)
    else:
        assert spent == pytest.approx(budget, rel=1e-12, abs=1e-12 * size * l1)
        nu = (w - z)[np.abs(z) > 0] / (l1 * np.sign(z) + l2 * z)[np.abs(z) > 0]  # one multiplier for all survivors
        np.testing.assert_allclose(nu, nu.max(), rtol=1e-8)
        assert np.all(np.abs(w)[z == 0] <= l1 * nu.max() * (1 + 1e-8))


def test_elastic_net_by_hand():
    # ν = 1: (3 − 1)/2 = 1, and 1 + ½ = 1.5.
    np.testing.assert_allclose(project_onto_elastic_net(np.array([3.0, 1.0, 0.5]), 1.5), [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(project_onto_elastic_net(np.array([-4.0]), 1.5), [-1.0])
    np.testing.assert_allclose(project_onto_elastic_net(np.array([3.0, 4.0]), 2.0, l1=0.0), [1.2, 1.6])


@pytest.mark.parametrize("far", [1e3, 1e17, 1e154, 1e300])
def test_closed_forms_are_accurate_for_distant_points(far):
    """No square overflows, and what is far away does not drown the answer."""
    x = far * np.array([-1.0, 0.5, 0.5])
    np.testing.assert_allclose(project_onto_elastic_net(x, 2.0, l2=0.0), [-2.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(project_onto_elastic_net(x, 3.0, l1=0.0), [-2.0, 1.0, 1.0], rtol=1e-12)
    z = project_onto_elastic_net(x, 2.0)  # ν + 1 = (far + 1)/(|z_1| + 1) = (far/2 + 1)/(z_2 + 1), where z_2 > 0
    np.testing.assert_allclose(np.abs(z).sum() + 0.5 * z @ z, 2.0, rtol=1e-12)
    np.testing.assert_allclose(z[1:], max((0.5 * far + 1) / (far + 1) * (1 - z[0]) - 1, 0.0), rtol=1e-9)
    flat = project_onto_psd_in_ball(np.diag([far, -far]).ravel(), 2, radius=1.5)
    np.testing.assert_allclose(flat, [1.5, 0.0, 0.0, 0.0], atol=1e-12)


def test_searches_refuse_distant_points():
    with pytest.raises(InputError, match="x: has an entry of 1e\\+200"):
        project_onto_doubly_stochastic(np.array([1e200, 0.0, 0.0, 0.0]), 2)


@given(seed=st.integers(0, 10**6), size=st.sampled_from([0.01, 0.3, 3.0, 100.0]), p=st.integers(1, 7))
def test_doubly_stochastic_conditions(seed, size, p):
    """X ≥ 0 with sums of 1, and no permutation matrix lies on the far side of it."""
    rng = np.random.default_rng(seed)
    W = size * rng.standard_normal((p, p))
    if seed % 3 == 0:
        W = np.round(W)  # ties
    X = project_onto_doubly_stochastic(W.ravel(), p).reshape(p, p)
    tolerance = 1e-12 * (1 + size)
    assert X.min() >= 0
    assert max(np.abs(X.sum(axis=a) - 1).max() for a in (0, 1)) <= tolerance * p
    # Optimal: ⟨W − X, Y − X⟩ ≤ 0 for every permutation Y, so for the best of them.
    gain = (W - X)[linear_sum_assignment(X - W)].sum() - np.sum((W - X) * X)
    assert gain <= 10 * tolerance * p**2 * (1 + size)


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 20.0]), boxed=st.booleans())
def test_polyhedra_conditions(seed, scale, boxed):
    """Feasible, and w − z a non-negative combination of the rows that hold with equality."""
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(1, 6)), int(rng.integers(1, 12))
    A, b = rng.standard_normal((m, d)), rng.uniform(0.0, 1.0, m)
    if boxed:
        A, b = np.vstack([A, np.eye(d), -np.eye(d)]), np.concatenate([b, np.ones(2 * d)])
    w = scale * rng.standard_normal(d)
    z = Polyhedron(A, b)(w)
    assert (A @ z - b).max() <= 1e-12 * (1 + scale)
    tight = A[(A @ z - b) >= -1e-9 * (1 + scale)]
    if len(tight):
        assert nnls(tight.T, w - z)[1] <= 1e-8 * (1 + scale)
    else:
        np.testing.assert_array_equal(z, w)


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.5, 3.0, 50.0]))
@examples(40)
def test_a_polyhedron_in_a_ball(seed, scale):
    """In both sets, and never farther than the best of many points that are feasible for certain."""
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    A, b, ball = rng.standard_normal((m, d)), rng.uniform(0.05, 0.8, m), Ball(d, 1.0, 0.1 * rng.standard_normal(d))
    both, alone = Polyhedron(A, b, ball), Polyhedron(A, b)
    w = scale * rng.standard_normal(d)
    z = both(w)
    assert (A @ z - b).max() <= 1e-10
    assert np.linalg.norm(z - ball.centre) <= 1 + 1e-10
    # 1/s − 1 is the ball's multiplier: z is the projection of a point between the centre and w. It also has to be that
    # of the combination of tight rows and, where the ball is tight, of z − centre.
    tight = A[(A @ z - b) >= -1e-9]
    if np.linalg.norm(z - ball.centre) >= 1 - 1e-9:
        tight = np.vstack([tight, z - ball.centre])
    assert (nnls(tight.T, w - z)[1] if len(tight) else np.linalg.norm(w - z)) <= 1e-7 * scale
    grid = ball.centre + np.linspace(0, 1, 301)[:, None] * (w - ball.centre)
    candidates = alone(grid)
    feasible = candidates[np.linalg.norm(candidates - ball.centre, axis=1) <= 1 + 1e-12]
    assert np.linalg.norm(w - z) <= np.linalg.norm(w - feasible, axis=1).min() + 1e-9 * scale


def test_psd_by_hand():
    X = np.diag([3.0, -2.0])
    np.testing.assert_allclose(project_onto_psd_in_ball(X.ravel(), 2, radius=9.0), [3, 0, 0, 0], atol=1e-15)
    np.testing.assert_allclose(project_onto_psd_in_ball(X.ravel(), 2, radius=1.0), [1, 0, 0, 0], atol=1e-15)
    both = np.diag([3.0, 4.0]).ravel()
    np.testing.assert_allclose(project_onto_psd_in_ball(both, 2, radius=1.0), [0.6, 0, 0, 0.8], atol=1e-15)
    skew = np.array([1.0, 5.0, -5.0, 1.0])
    np.testing.assert_allclose(project_onto_psd_in_ball(skew, 2, radius=9.0), [1, 0, 0, 1])


@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), gap=st.floats(0, 2), radius=st.floats(0.1, 5))
def test_psd_in_a_ball_by_bisection(seed, n, gap, radius):
    """The eigenvalues are c + max(f, s u) with the largest s ≤ 1 that the ball allows, found here the slow way."""
    rng, centre = np.random.default_rng(seed), 0.7
    X = 3 * rng.standard_normal((n, n))
    X = X + X.T
    u, Q = np.linalg.eigh(X - centre * np.eye(n))
    low, high = 0.0, 1.0
    for _ in range(100):
        s = high if np.linalg.norm(np.maximum(-gap, high * u)) <= radius else (low + high) / 2
        low, high = (s, high) if np.linalg.norm(np.maximum(-gap, s * u)) <= radius else (low, s)
    wanted = (Q * (centre + np.maximum(-gap, low * u))) @ Q.T
    found = project_onto_psd_in_ball(X.ravel(), n, radius, centre, floor=centre - gap)
    np.testing.assert_allclose(found, wanted.ravel(), atol=1e-11)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), size=st.sampled_from([0.1, 1.0, 30.0]))
@examples(30)
def test_correlation_conditions(seed, n, size):
    """diag 1, X ⪰ floor, and X − W − Diag(y) ⪰ 0 orthogonal to X − floor·I for some y."""
    rng, floor = np.random.default_rng(seed), 0.05
    W = size * rng.standard_normal((n, n))
    W = (W + W.T) / 2
    X = project_onto_correlation(W.ravel(), np.ones(n), floor).reshape(n, n)
    np.testing.assert_array_equal(np.diagonal(X), np.ones(n))
    np.testing.assert_array_equal(X, X.T)
    slack = X - floor * np.eye(n)
    assert np.linalg.eigvalsh(slack)[0] >= -1e-13 * n
    # (X − W − Diag(y)) slack = 0: n² linear equations for y.
    rows = np.stack([(np.outer(e, e) @ slack).ravel() for e in np.eye(n)], axis=1)
    y = np.linalg.lstsq(rows, ((X - W) @ slack).ravel(), rcond=None)[0]
    dual = X - W - np.diag(y)
    assert np.abs(dual @ slack).max() <= 1e-9 * (1 + size)
    assert np.linalg.eigvalsh(dual)[0] >= -1e-9 * (1 + size)
