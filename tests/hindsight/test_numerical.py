"""The numerical solver for convex losses and constraints: its results and its certificates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import InputError, Problem, hindsight
from longterm.hindsight.search import Search
from longterm.problems import covariance, two_dimensional
from longterm.problems.constraints import Affine, CustomConstraint, ElasticNetBudget, L1Budget, L2Budget, Stack
from longterm.problems.losses import Absolute, CustomLoss, Hinge, LeastSquares, Linear, Logistic, SquaredDistance
from longterm.problems.sets import Ball, Box, Product, RowStochastic, Set, Simplex
from longterm.problems.streams import Replay, ResampledRows
from longterm.problems.streams.base import Block
from longterm.problems.streams.points import PairwiseSigns
from zoo import problems


def rows(d, n=200):
    rng = np.random.default_rng(d)
    features = rng.standard_normal((n, d)) / np.sqrt(d)
    labels = np.sign(features @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n))
    return features, labels, float(np.linalg.norm(features, axis=1).max())


def same_as_cvxpy(problem, stream, rounds):
    own = hindsight.best(problem, stream, rounds, method="numerical")
    slow = hindsight.best(problem, stream, rounds, method="cvxpy")
    scale = np.abs(slow.loss) + problem.constants.loss_range
    np.testing.assert_allclose(own.loss / scale, slow.loss / scale, atol=2e-6)
    # The lower bound is below the loss of every feasible point, that of CVXPY (feasible to 1e-8 or so) among them.
    assert np.all(own.loss - own.gap <= slow.loss + 1e-6 * scale)
    assert problem.constraint.values(own.x).max() <= 1e-9 * problem.constants.constraint_bound
    assert np.all(problem.enclosing_set.contains(own.x))
    return own


LOSSES = {
    "logistic": lambda d, norm: Logistic(d, norm),
    "least squares": lambda d, norm: LeastSquares(d, norm, 1.0),
    "hinge": lambda d, norm: Hinge(d, norm),
    "absolute": lambda d, norm: Absolute(d, norm, 1.0),
}
CONSTRAINTS = {
    "affine": lambda d: Affine(np.eye(d)[:2] + 0.3, [0.2, 0.1]),
    "ball": lambda d: L2Budget(d, 0.6),
    "cross-polytope": lambda d: L1Budget(d, 0.9),
    "elastic net and planes": lambda d: Stack([ElasticNetBudget(d, 0.8), Affine(np.eye(d)[:2], [0.1, 0.2])]),
}


SETS = {
    "ball": Ball(4),
    "box": Box.cube(4, -0.7, 0.7),
    "product": Product([Ball(2), Box.cube(2, -0.5, 0.5)]),
}


def sets_losses_constraints():
    """All of them; in `make test` every other pair of a loss and a constraint, with the sets in turn."""
    for i, loss in enumerate(LOSSES):
        for j, constraint in enumerate(CONSTRAINTS):
            for k, over in enumerate(SETS):
                kept = (i - j) % 2 == 0 and (i + j) % 3 == k
                yield pytest.param(over, loss, constraint, marks=[] if kept else pytest.mark.cross)


@pytest.mark.slow
@pytest.mark.parametrize(("over", "loss", "constraint"), list(sets_losses_constraints()))
def test_smooth_and_kinked_problems_agree_with_cvxpy(over, loss, constraint):
    features, labels, norm = rows(4)
    problem = Problem(SETS[over], LOSSES[loss](4, norm), CONSTRAINTS[constraint](4))
    own = same_as_cvxpy(problem, ResampledRows(features, labels), [5, 150])
    assert own.relative_gap.max() <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, (problem, _) in problems().items() if not problem.constraint.parameters]
)
def test_the_numerical_solver_agrees_with_special_solvers(name):
    problem, stream = problems()[name]
    special = hindsight.best(problem, stream, [7, 60], seeds=[1, 2])
    own = hindsight.best(problem, stream, [7, 60], seeds=[1, 2], method="numerical")
    scale = np.array([7, 60])[:, None] * problem.constants.loss_range
    np.testing.assert_allclose(own.loss / scale, special.loss / scale, atol=1e-6)
    assert np.all(own.loss - own.gap <= special.loss + 1e-9 * scale)
    assert np.all(own.gap <= 2e-6 * scale)


@pytest.mark.slow
def test_fifty_coordinates_smooth_and_strongly_convex():
    d = 50
    targets = np.random.default_rng(1).standard_normal((100, d)) / np.sqrt(d) + 0.2
    curved = CustomLoss(
        d,
        lambda x, y: (np.cosh(x - y) - 1).sum(-1),
        lambda x, y: np.sinh(x - y),
        gradient_bound=50.0,
        value_range=200.0,
        strong_convexity=1.0,
        parameters={"target": (d,)},
    )
    disc = CustomConstraint(d, lambda x: (x * x).sum(-1) - 0.3, lambda x: 2 * x, 2.0, 1.0)
    best = hindsight.best(Problem(Ball(d), curved, disc), Replay([targets]), [100])
    assert best.solver == "numerical"
    assert best.relative_gap[0] <= 1e-9  # of a strongly convex loss the gap is quadratic in the error
    # Lagrange: ∇F = −2μx at x, for one μ ≥ 0.
    gradient = np.sinh(best.x[0] - targets).sum(axis=0)
    ratios = -gradient / best.x[0]
    np.testing.assert_allclose(ratios, ratios.mean(), rtol=1e-4)
    assert ratios.mean() > 0


@pytest.mark.slow
def test_a_loss_from_jax_agrees_with_the_closed_form():
    pytest.importorskip("jax")
    from jax import numpy as jnp

    from longterm.problems.autodiff import constraint_from_jax, loss_from_jax

    over = Ball(2)
    loss = loss_from_jax(
        lambda x, y: 0.5 * jnp.sum((x - y) ** 2, axis=-1),
        over,
        gradient_bound=2.0,
        value_range=2.0,
        parameters={"target": (2,)},
    )
    wall = constraint_from_jax(lambda x: x[..., 0] - 0.25, over, gradient_bound=1.0, value_bound=1.25)
    stream = Replay([np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])])
    exact = hindsight.best(two_dimensional(), stream, [1, 2, 3])
    for problem in (Problem(over, loss, wall), Problem(over, loss, two_dimensional().constraint)):
        best = hindsight.best(problem, stream, [1, 2, 3])
        assert best.solver == "numerical"
        np.testing.assert_allclose(best.loss, exact.loss, rtol=1e-6)
        assert np.all(best.loss - best.gap <= exact.loss * (1 + 1e-12))
        assert best.relative_gap.max() <= 1e-6


class OwnDisc(Set):
    """A set of one's own, of which nothing but projection and support is known."""

    def __init__(self):
        self.dimension, self.radius, self.diameter = 2, 1.0, 2.0
        self.centre = np.zeros(2)

    def project(self, x):
        return Ball(2).project(x)

    def extreme_point(self, direction):
        return Ball(2).extreme_point(direction)

    def largest_norm(self, order):
        return Ball(2).largest_norm(order)


def test_a_custom_set():
    features, labels, norm = rows(2)
    for loss in (Logistic(2, norm), Hinge(2, norm)):
        constraint = Affine([[1.0, 1.0]], [0.3])
        own = hindsight.best(Problem(OwnDisc(), loss, constraint), ResampledRows(features, labels), [80])
        known = hindsight.best(Problem(Ball(2), loss, constraint), ResampledRows(features, labels), [80])
        assert own.solver == "numerical"
        np.testing.assert_allclose(own.loss, known.loss, rtol=1e-6)
        assert own.relative_gap[0] <= 1e-6


def test_a_feasible_set_without_interior_and_one_point_alone():
    quartic = CustomLoss(
        4, lambda x, y: ((x - y) ** 4).sum(-1), lambda x, y: 4 * (x - y) ** 3, 50.0, 50.0, 0.0, {"y": (4,)}
    )
    targets = Replay([np.random.default_rng(0).uniform(0, 1, (20, 4))])
    equal = Affine([[1.0, -1.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0]], [0.0, 0.0])  # x_1 = x_2
    for over in (Simplex(4), RowStochastic(2, 2), Ball(4)):
        best = hindsight.best(Problem(over, quartic, equal), targets, [20])
        assert best.x[0, 0] == pytest.approx(best.x[0, 1], abs=1e-9)
        assert best.relative_gap[0] <= 1e-6
    point = Problem(Ball(1), Linear(1), Affine([[1.0]], [-1.0]))  # x ≤ −1 on [−1, 1]
    best = hindsight.best(point, Replay([np.ones((3, 1))]), [3], method="numerical")
    np.testing.assert_allclose(best.x, [[-1.0]], atol=1e-8)


def test_a_gap_that_cannot_be_closed_is_reported(monkeypatch):
    monkeypatch.setattr("longterm.hindsight.cutting_planes.MAX_PLANES", 1)
    d = 10
    features, labels, norm = rows(d)
    kinked = Stack([ElasticNetBudget(d, 0.5), Affine(np.eye(d)[:3], [0.01, 0.01, 0.02])])
    problem, stream = Problem(Box.cube(d, -1.0, 1.0), Hinge(d, norm), kinked), ResampledRows(features, labels)
    short = hindsight.best(problem, stream, [100], method="numerical")
    best = hindsight.best(problem, stream, [100], method="cvxpy")
    assert short.relative_gap[0] > 1e-6
    assert short.loss[0] - short.gap[0] <= best.loss[0]


def test_an_empty_set_is_refused():
    far = CustomConstraint(2, lambda x: ((x - 3) ** 2).sum(-1) - 1, lambda x: 2 * (x - 3), 12.0, 40.0)
    problem = Problem(Ball(2), Linear(2), far)
    with pytest.raises(InputError, match="no x of B has g"):
        hindsight.best(problem, Replay([np.ones((3, 2))]), [3])


@pytest.mark.slow
@examples(25)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 5), kinked=st.booleans(), far=st.floats(0.0, 3.0))
def test_no_feasible_point_is_below_the_lower_bound(seed, d, kinked, far):
    """Distances, plain or squared, to random targets, in what half-spaces and a disc leave of a ball or a box."""
    rng = np.random.default_rng(seed)
    targets = far * rng.standard_normal((8, d))

    def distance(x, y):
        return np.abs(x - y).sum(-1) if kinked else ((x - y) ** 2).sum(-1)

    def slope(x, y):
        return np.sign(x - y) if kinked else 2 * (x - y)

    loss = CustomLoss(d, distance, slope, 1e3, 1e3, 0.0 if kinked else 2.0, {"y": (d,)})
    disc = CustomConstraint(d, lambda x: (x * x).sum(-1) - 0.5, lambda x: 2 * x, 20.0, 20.0)
    planes = Affine(rng.standard_normal((2, d)), rng.uniform(0.05, 0.5, 2))
    over = Ball(d) if seed % 2 else Box(-rng.uniform(0.2, 1, d), rng.uniform(0.2, 1, d))
    problem = Problem(over, loss, Stack([disc, planes]))
    best = hindsight.best(problem, Replay([targets]), [8])
    assert problem.constraint.values(best.x).max() <= 1e-7
    points = np.asarray(over.project(rng.standard_normal((4000, d))))
    points = np.concatenate([points, best.x + 1e-3 * (points - best.x)])
    points = points[(problem.constraint.values(points).max(axis=-1) <= 0) & over.contains(points, 1e-15)]
    losses = distance(points[:, None], targets).sum(axis=1)
    assert np.all(losses >= best.loss[0] - best.gap[0] - 1e-9 * (1 + abs(best.loss[0])))
    assert best.gap[0] <= 1e-6 * abs(best.loss[0]) + 1e-10


def test_semidefinite_matrices_and_another_loss():
    problem, stream = covariance(3), PairwiseSigns(3)
    other = Problem(problem.enclosing_set, SquaredDistance(9), Stack([problem.constraint]))
    best = hindsight.best(other, stream, [20], method="numerical")
    known = hindsight.best(problem, stream, [20])
    np.testing.assert_allclose(best.loss, known.loss, rtol=1e-4)
    assert best.loss[0] - best.gap[0] <= known.loss[0] * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_of_a_quadratic_is_the_minimum_from_any_point(seed):
    """F and its linearised model differ by nothing, so strong duality makes the bound exact."""
    rng = np.random.default_rng(seed)
    targets = 2 * rng.standard_normal((6, 3))
    problem = Problem(Ball(3), SquaredDistance(3, Ball(3, 9.0)), Affine(rng.standard_normal((2, 3)), [0.1, 0.2]))
    best = hindsight.best(problem, Replay([targets]), [6])
    search = Search(problem, Block((targets,)), 1e-9)
    search.visit(problem.enclosing_set.centre)
    search.certify()
    assert search.lower == pytest.approx(best.loss[0], rel=1e-6)
    assert search.lower <= best.loss[0] * (1 + 1e-12)
