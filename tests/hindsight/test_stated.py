"""CVXPY statements of problems, and the certificates of their solutions."""

import numpy as np
import pytest

from longterm import InputError, Problem, hindsight
from longterm.data import load_sample
from longterm.hindsight.cvxpy_statements import state_loss
from longterm.hindsight.gaps import certified_gap
from longterm.problems import budgeted_logistic, covariance, doubly_stochastic
from longterm.problems.constraints import Affine, L1Budget, L2Budget, Stack
from longterm.problems.losses import Absolute, CustomLoss, Hinge, LeastSquares, Linear, SquaredDistance
from longterm.problems.projections.birkhoff import project_onto_doubly_stochastic
from longterm.problems.sets import Ball, Box, Simplex
from longterm.problems.streams import RandomCosts, RandomPermutations, Replay, ResampledRows
from longterm.problems.streams.points import PairwiseSigns
from zoo import problems

STATED = {
    name: problems()[name]
    for name in (
        "two-dimensional",
        "doubly stochastic",
        "doubly stochastic in rows",
        "budgeted logistic",
        "adversary on a box",
        "random costs on a simplex",
        "ball in a ball",
        "consensus on a path",
        "maximum on a product",
    )
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STATED)
def test_the_certificate_is_valid_and_tight_at_the_best_point(name):
    problem, stream = STATED[name]
    best = hindsight.best(problem, stream, [7, 60], seeds=[1, 2], method="cvxpy")
    assert best.x.shape == (2, 2, problem.dimension)
    scale = np.array([7, 60])[:, None] * problem.constants.loss_range
    assert problem.constraint.values(best.x).max() <= 1e-6 * problem.constants.constraint_bound
    if name != "maximum on a product":  # one subgradient stands for many at its kink
        assert np.all(best.gap <= 1e-5 * scale)
    # At any feasible point the gap bounds how much worse than the best it is.
    rng = np.random.default_rng(0)
    parameters = [np.asarray(array, dtype=np.float64) for array in stream.draw(1, 0, 60).loss]
    for other in problem.enclosing_set.sample(rng, 6):
        values, gradients = problem.loss.value_and_gradient(np.broadcast_to(other, (60, len(other))), *parameters)
        gap = float(certified_gap(problem, other, gradients.sum(axis=0)))
        assert values.sum() - best.loss[1, 0] <= gap + 1e-6 * scale[1, 0]
        if problem.constraint.values(other).max() > 0:
            continue
        assert best.loss[1, 0] <= values.sum() + 1e-6 * scale[1, 0]


@pytest.mark.slow
def test_fast_comparators_agree_with_the_stated_problem():
    problem, stream = STATED["budgeted logistic"]
    fast = hindsight.best(problem, stream, [5, 50], seeds=3)
    slow = hindsight.best(problem, stream, [5, 50], seeds=3, method="cvxpy")
    np.testing.assert_allclose(fast.loss, slow.loss, rtol=1e-6)
    problem, stream = STATED["doubly stochastic"]
    fast = hindsight.best(problem, stream, [5, 50], seeds=[3])
    slow = hindsight.best(problem, stream, [5, 50], seeds=[3], method="cvxpy")
    np.testing.assert_allclose(fast.loss, slow.loss, rtol=1e-6)
    np.testing.assert_allclose(fast.x, slow.x, atol=1e-4)
    assert np.all(fast.gap <= 1e-12 * fast.loss)


def test_the_fast_comparator_agrees_with_cvxpy_on_real_rows():
    rows = load_sample()
    problem, stream = budgeted_logistic(rows.features, 7.0), ResampledRows(rows.features, rows.labels)
    fast = hindsight.best(problem, stream, [30, 600], seeds=[0, 1])
    slow = hindsight.best(problem, stream, [30, 600], seeds=[0, 1], method="cvxpy")
    np.testing.assert_allclose(fast.loss, slow.loss, rtol=2e-6)
    assert fast.relative_gap.max() <= 1e-6
    assert slow.relative_gap.max() <= 1e-4


@pytest.mark.slow
def test_projected_means_have_a_tight_certificate_and_wrong_ones_a_loose_one(monkeypatch):
    problem = Problem(Ball(9, radius=3.0), SquaredDistance(9), doubly_stochastic(3).constraint)
    targets = np.random.default_rng(0).uniform(0, 1, (50, 9))
    right = hindsight.best(problem, Replay([targets]), [1, 50])
    for k, t in enumerate((1, 50)):
        nearest = project_onto_doubly_stochastic(targets[:t].mean(axis=0), 3)
        np.testing.assert_allclose(right.x[k], nearest, atol=1e-12)
    assert np.all(right.gap <= 1e-9 * right.loss)
    slow = hindsight.best(problem, Replay([targets]), [1, 50], method="cvxpy")
    np.testing.assert_allclose(right.loss, slow.loss, rtol=1e-6)
    monkeypatch.setitem(problem.__dict__, "projection", lambda y: 0 * y + 1 / 3)
    wrong = hindsight.best(problem, Replay([targets]), [1, 50])
    assert np.all(wrong.gap >= wrong.loss - right.loss - 1e-12)
    assert np.all(wrong.relative_gap > 1e-3)


@pytest.mark.parametrize(
    ("loss", "constraint", "over"),
    [
        (Hinge(3, 3.0), L1Budget(3, 1.0), Ball(3, 1.0)),
        (Absolute(3, 3.0, 1.0), L2Budget(3, 0.5), Box.cube(3, -1.0, 1.0)),
        (LeastSquares(3, 3.0, 1.0), Stack([L2Budget(3, 0.5), Affine([[1.0, 1.0, 0.0]], [0.1])]), Ball(3)),
    ],
)
def test_statements_of_row_losses_agree_with_the_losses(loss, constraint, over):
    import cvxpy as cp

    rng = np.random.default_rng(1)
    features, labels = rng.uniform(-1, 1, (20, 3)), np.sign(rng.standard_normal(20))
    x = cp.Variable(3)
    stated = state_loss(loss, x, features, labels)
    for point in over.sample(rng, 10):
        x.value = point
        assert stated.value == pytest.approx(loss.value(point, features, labels).sum())
    best = hindsight.best(Problem(over, loss, constraint), ResampledRows(features, labels), [30], method="cvxpy")
    drawn = ResampledRows(features, labels).draw(0, 0, 30).loss
    points = over.project(0.3 * rng.standard_normal((500, 3)))
    points = points[constraint.values(points).max(axis=-1) <= 0]
    assert len(points) > 50
    assert np.all([loss.value(point, *drawn).sum() >= best.loss[0] - 1e-6 for point in points])


def test_parts_without_a_statement_are_refused():
    own = CustomLoss(2, lambda x: x[..., 0], lambda x: 0 * x, gradient_bound=1.0, value_range=2.0)
    problem = Problem(Ball(2), own, Affine([[1.0, 0.0]], [0.5]))
    with pytest.raises(InputError, match=r"CustomLoss has no CVXPY statement.*@state_loss\.register"):
        hindsight.best(problem, Replay([np.zeros((3, 1))]), [3], method="cvxpy")
    with pytest.raises(InputError, match="ended after round 3"):
        hindsight.best(doubly_stochastic(2), Replay([np.zeros((3, 4))]), [5], method="cvxpy")


def test_a_registered_statement_of_a_custom_loss():
    class Doubled(Linear):
        pass

    @state_loss.register
    def _(loss: Doubled, x, costs):
        return 2 * costs.sum(axis=0) @ x

    import cvxpy as cp

    x = cp.Variable(2)
    x.value = np.ones(2)
    assert state_loss(Doubled(2), x, np.ones((3, 2))).value == 12
    assert state_loss(Linear(2), x, np.ones((3, 2))).value == 6
    problem = Problem(Simplex(2), Linear(2), Affine([[1.0, 0.0]], [0.4]))
    best = hindsight.best(problem, RandomCosts(2), [9], seeds=1, method="cvxpy")
    assert best.gap[0] <= 1e-6
    permutations = hindsight.best(doubly_stochastic(2, enclosing="rows"), RandomPermutations(2), [9], method="cvxpy")
    assert permutations.relative_gap[0] <= 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("unit_diagonal", [True, False])
def test_statements_of_correlation_matrices(unit_diagonal):
    problem, stream = covariance(4, unit_diagonal=unit_diagonal), PairwiseSigns(4, 0.9)
    slow = hindsight.best(problem, stream, [3, 30], seeds=[0, 1], method="cvxpy")
    assert problem.constraint.values(slow.x).max() <= 1e-6
    fast = hindsight.best(problem, stream, [3, 30], seeds=[0, 1])
    np.testing.assert_allclose(slow.loss, fast.loss, rtol=1e-6)
    np.testing.assert_allclose(slow.x, fast.x, atol=1e-4)
    assert slow.gap.max() <= 1e-3  # of a solver that is exact to about 1e-6
    assert fast.relative_gap.max() <= 1e-6
    # Valid at any point of the set, feasible or not, and tight only at the best.
    targets = stream.draw(1, 0, 30).loss[0]
    for other in problem.enclosing_set.sample(np.random.default_rng(0), 20):
        other = (other.reshape(4, 4) + other.reshape(4, 4).T).ravel() / 2
        value = 0.5 * np.sum((other - targets) ** 2)
        gap = float(certified_gap(problem, other, np.sum(other - targets, axis=0)))
        assert value - fast.loss[1, 1] <= gap * (1 + 1e-9)
