import pickle
from copy import deepcopy

import array_api_strict
import numpy as np
import pytest

from longterm import InputError, challenge
from longterm.problems.constraints import Affine, DoublyStochastic, ElasticNetBudget, L1Budget, L2Budget, Maximum, Stack
from longterm.problems.constraints.base import Constraint, max_with_index
from longterm.problems.constraints.doubly_stochastic import MAX_TABLE_SIZE
from longterm.problems.losses import Absolute, Hinge, Linear, Logistic, SquaredDistance
from longterm.problems.sets import Ball, Box, RowStochastic
from zoo import constraint_sizes, constraints, losses, parameters_of, sets

LOSSES, SETS = losses(), sets()
CONSTRAINTS = {**constraints(), **constraint_sizes()}
each_loss = pytest.mark.parametrize("name", LOSSES)
each_constraint = pytest.mark.parametrize("name", CONSTRAINTS)
each_set = pytest.mark.parametrize("where", SETS)


@each_constraint
def test_a_constraint_can_be_copied_and_sent_to_another_process(name):
    g = CONSTRAINTS[name]
    assert deepcopy(g).parameters == g.parameters
    if name != "custom":  # that of the zoo is made of lambdas
        assert pickle.loads(pickle.dumps(g)).parameters == g.parameters


def slope(function, x, step=1e-6):
    """Central differences, where the function is smooth."""
    moves = step * np.eye(x.shape[-1])
    return np.stack([(function(x + m) - function(x - m)) / (2 * step) for m in moves], axis=-1)


@each_loss
def test_loss_gradient_is_the_slope(name):
    f = LOSSES[name]
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, parameters = rng.standard_normal((4, f.dimension)), parameters_of(f, rng)
        np.testing.assert_allclose(
            f.gradient(x, *parameters), slope(lambda z, p=parameters: f.value(z, *p), x), atol=1e-6
        )


@each_loss
@each_set
def test_no_counterexample_to_the_facts_of_a_loss(name, where):
    f = LOSSES[name]
    rng = np.random.default_rng(1)
    for _ in range(5):
        assert challenge(f, SETS[where], parameters=parameters_of(f, rng), samples=500) == []


@each_constraint
def test_pullback_is_the_weighted_sum_of_gradients(name):
    g = CONSTRAINTS[name]
    rng = np.random.default_rng(2)
    for _ in range(20):
        x, parameters = rng.standard_normal((4, g.dimension)), parameters_of(g, rng)
        weights = rng.uniform(0, 1, (4, g.count))
        jacobian = slope(lambda z, p=parameters: g.values(z, *p), x)
        np.testing.assert_allclose(
            g.pullback(x, weights, *parameters), np.einsum("nm,nmd->nd", weights, jacobian), atol=1e-6
        )
        for j in range(g.count):
            found = g.gradient_of(x, np.full(4, j), *parameters)
            np.testing.assert_allclose(found, jacobian[:, j], atol=1e-6)
        direction = rng.standard_normal((4, g.dimension))
        pushed = g.pushforward(x, direction, *parameters)
        np.testing.assert_allclose(pushed, np.einsum("nmd,nd->nm", jacobian, direction), atol=1e-5)
        np.testing.assert_allclose(Constraint.pushforward(g, x, direction, *parameters), pushed, atol=1e-12)
        seen = g.linearised(x, *parameters)
        np.testing.assert_allclose(seen.values, g.values(x, *parameters), atol=1e-12)
        np.testing.assert_allclose(seen.pullback(weights), g.pullback(x, weights, *parameters), atol=1e-12)
        np.testing.assert_allclose(seen.pushforward(direction), pushed, atol=1e-12)
        found, wanted = g.squared_excess(x, *parameters), Constraint.squared_excess(g, x, *parameters)
        np.testing.assert_allclose(found[0], wanted[0], atol=1e-12)
        np.testing.assert_allclose(found[1], wanted[1], atol=1e-12)


@each_set
@pytest.mark.parametrize("name", constraints())
def test_no_counterexample_to_the_facts_of_a_constraint(name, where):
    g = CONSTRAINTS[name]
    rng = np.random.default_rng(3)
    for _ in range(3):
        assert challenge(g, SETS[where], parameters=parameters_of(g, rng), samples=500) == []


@each_constraint
def test_constraints_under_strict_arrays(name):
    g = CONSTRAINTS[name]
    rng = np.random.default_rng(4)
    x, weights, parameters = rng.standard_normal((2, 3, g.dimension)), rng.uniform(0, 1, (2, 3, g.count)), []
    parameters = parameters_of(g, rng)
    strict = [array_api_strict.asarray(p) for p in parameters]
    sx, sw = array_api_strict.asarray(x), array_api_strict.asarray(weights)
    index = rng.integers(g.count, size=(2, 3))
    same = [
        (g.values(sx, *strict), g.values(x, *parameters)),
        (g.pullback(sx, sw, *strict), g.pullback(x, weights, *parameters)),
        (g.gradient_of(sx, array_api_strict.asarray(index), *strict), g.gradient_of(x, index, *parameters)),
        (g.pushforward(sx, sx, *strict), g.pushforward(x, x, *parameters)),
        (g.squared_excess(sx, *strict)[1], g.squared_excess(x, *parameters)[1]),
    ]
    for found, wanted in same:
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=1e-13)


@each_loss
def test_losses_under_strict_arrays(name):
    f = LOSSES[name]
    rng = np.random.default_rng(5)
    x, parameters = rng.standard_normal((2, 3, f.dimension)), parameters_of(f, rng)
    strict = f.value_and_gradient(array_api_strict.asarray(x), *(array_api_strict.asarray(p) for p in parameters))
    for found, wanted in zip(strict, f.value_and_gradient(x, *parameters), strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=1e-13)


# --- facts, exactly -----------------------------------------------------------------------------------------


def test_facts_of_the_paper_doubly_stochastic():
    p = 8
    B, g, f = Ball(p * p, radius=np.sqrt(p)), DoublyStochastic(p), SquaredDistance(p * p)
    assert g.count == 96
    assert g.value_bound(B) == pytest.approx(p + 1)
    attained = np.zeros((p, p))
    attained[0] = -1
    assert g.values(attained.ravel()).max() == pytest.approx(p + 1)
    assert bool(B.contains(attained.ravel()))
    assert g.gradient_bound(B) == pytest.approx(np.sqrt(p))
    assert f.gradient_bound(B) == pytest.approx(2 * np.sqrt(p))
    assert f.value_range(B) == pytest.approx(2 * p)
    assert g.value_bound(RowStochastic(p, p)) == pytest.approx(p - 1)  # all mass in one column


def test_doubly_stochastic_is_its_affine_system():
    p = 3
    g = DoublyStochastic(p)
    A = np.stack([g.gradient_of(np.zeros(9), np.asarray(j)) for j in range(g.count)])
    same = Affine(A, -g.values(np.zeros(9)))
    np.testing.assert_array_equal(g.as_affine().matrix, A)
    x, weights = np.random.default_rng(0).standard_normal((5, 9)), np.random.default_rng(1).uniform(0, 1, (5, 21))
    np.testing.assert_allclose(g.values(x), same.values(x), atol=1e-14)
    np.testing.assert_allclose(g.pullback(x, weights), same.pullback(x, weights), atol=1e-14)
    B = Ball(9, radius=2.0)
    assert g.value_bound(B) == pytest.approx(same.value_bound(B))


def test_gradients_of_large_doubly_stochastic_matrices_need_no_table():
    p = MAX_TABLE_SIZE + 1
    g, x = DoublyStochastic(p), np.random.default_rng(0).standard_normal(p * p)
    index = np.array([0, 7, p * p - 1, p * p, p * p + p, p * p + 3 * p - 1, g.count - 1])
    step = np.random.default_rng(1).standard_normal(p * p)
    slopes = (g.values(x + step) - g.values(x))[index]
    found = g.gradient_of(np.tile(x, (len(index), 1)), index)
    np.testing.assert_allclose(found @ step, slopes, atol=1e-12)
    assert np.count_nonzero(found, axis=1).tolist() == [1, 1, 1, p, p, p, p]


def test_affine_constraints_are_recognised():
    g, h = Affine([[1.0, 2.0]], [0.5]), Affine([[3.0, 4.0], [5.0, 6.0]], [1.0, -1.0])
    x = np.array([0.3, -0.2])
    np.testing.assert_allclose(Stack([g, h]).as_affine().values(x), Stack([g, h]).values(x))
    assert Stack([g, L1Budget(2, budget=1.0)]).as_affine() is None
    assert L2Budget(2, budget=1.0).as_affine() is None


def test_facts_of_the_paper_elastic_net():
    d, rho = 22, 3.4
    g = ElasticNetBudget(d, budget=rho)
    B = g.enclosing_ball()
    R = np.sqrt(1 + 2 * rho) - 1
    assert pytest.approx(R) == B.radius
    assert g.gradient_bound(B) == pytest.approx(np.sqrt(d) + R)
    assert g.value_bound(B) == pytest.approx(max(rho, (np.sqrt(d) - 1) * R))
    corner = np.full(d, R / np.sqrt(d))
    assert g.values(corner)[0] == pytest.approx((np.sqrt(d) - 1) * R)
    assert Logistic(d, 1.98).value_range(B) == pytest.approx(1.98 * R)


@pytest.mark.parametrize(("l1", "l2"), [(1.0, 0.0), (0.0, 2.0), (0.5, 3.0), (1.0, 1e-14)])
def test_enclosing_ball_is_the_smallest_about_zero(l1, l2):
    g = ElasticNetBudget(4, budget=2.0, l1=l1, l2=l2)
    on_axis = np.zeros(4)
    on_axis[1] = g.enclosing_ball().radius
    assert g.values(on_axis)[0] == pytest.approx(0, abs=1e-12)


def test_affine_bound_is_exact_on_a_box():
    g, B = Affine([[1.0, -2.0]], [0.5]), Box([-1.0, 0.0], [3.0, 4.0])
    corners = np.array([[a, b] for a in (-1.0, 3.0) for b in (0.0, 4.0)])
    assert g.value_bound(B) == np.abs(g.values(corners)).max() == 9.5


def test_doubly_stochastic_bound_counts_the_entries():
    assert DoublyStochastic(2).value_bound(Box.cube(4, -9.0, 0.0)) == pytest.approx(19.0)  # 1 − (−9 − 9)
    point = [-9.0, 8.0, 8.0, -9.0]  # all sums are −1, so that the entries have the last word
    assert DoublyStochastic(2).value_bound(Box(point, point)) == pytest.approx(9.0)


def test_ranges_are_attained():
    B = Ball(2, radius=2.0)
    assert Linear(2, 3.0).value_range(B) == 12.0  # from −6 to 6
    u = np.array([1.0, 0.0])
    ends = np.array([[-2.0, 0.0], [2.0, 0.0]])
    for label, bound in ((0.5, 0.5), (5.0, 5.0)):
        f = Absolute(2, feature_norm=1.0, label_bound=bound)
        values = f.value(np.concatenate([ends, [[min(label, 2.0), 0.0]]]), u, label)
        assert f.value_range(B) == pytest.approx(np.ptp(values))
    assert Hinge(2, 1.0).value_range(B) == pytest.approx(3.0)  # margins −2 and 1


# --- ties and kinks -----------------------------------------------------------------------------------------


def test_lowest_index_within_tolerance_wins():
    values = np.array([[0.1, 0.5, 0.5 + 1e-12, 0.5], [0.5 + 1e-6, 0.5, 0.5 + 1e-6, 0.0]])
    top, index = max_with_index(values, 1e-9)
    assert index.tolist() == [1, 0]
    np.testing.assert_array_equal(top, values.max(axis=1))


def test_maximum_breaks_ties_by_index():
    g = Maximum([Affine([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])], over=Ball(2))
    x = np.array([[0.3, 0.3 + 1e-12], [0.1, 0.2]])
    np.testing.assert_array_equal(g.pullback(x, np.ones((2, 1))), [[1, 0], [0, 1]])


def test_kinks():
    zero = np.zeros(3)
    one = np.ones(1)
    np.testing.assert_array_equal(L1Budget(3, budget=1.0).pullback(zero, one), zero)
    np.testing.assert_array_equal(L2Budget(3, budget=1.0).pullback(zero, one), zero)
    np.testing.assert_array_equal(ElasticNetBudget(3, budget=1.0).pullback(zero, one), zero)
    u = np.array([1.0, 0.0, 0.0])
    np.testing.assert_array_equal(Absolute(3, 1.0, 1.0).gradient(0.5 * u, u, 0.5), zero)
    np.testing.assert_array_equal(Hinge(3, 1.0).gradient(u, u, 1.0), zero)
    np.testing.assert_array_equal(Hinge(3, 1.0).gradient(0.99 * u, u, 1.0), -u)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_gradient_of_a_norm_is_at_most_one_long_next_to_zero(dtype):
    """There the squares of the entries have few digits, or none."""
    sizes = np.geomspace(np.finfo(dtype).smallest_subnormal, 1e-3, 500).astype(dtype)
    gradients = L2Budget(1, budget=1.0).pullback(sizes[:, None], np.ones(1, dtype))
    assert np.abs(gradients).max() <= 1 + 8 * np.finfo(dtype).eps


def test_logistic_does_not_overflow():
    f = Logistic(1, feature_norm=1.0)
    value, gradient = f.value_and_gradient(np.array([[-1e4], [1e4], [0.0]]), np.array([1.0]), np.array(1.0))
    np.testing.assert_allclose(value, [1e4, 0, np.log(2)])
    np.testing.assert_allclose(gradient[:, 0], [-1, 0, -0.5])


# --- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Affine([[1.0, 2.0]], [1.0, 2.0]), "limit"),
        (lambda: Affine([1.0, 2.0], [1.0]), "matrix"),
        (lambda: Affine([[np.nan, 2.0]], [1.0]), "matrix"),
        (lambda: ElasticNetBudget(3, budget=0.0), "budget"),
        (lambda: ElasticNetBudget(3, budget=1.0, l1=0.0, l2=0.0), "l1"),
        (lambda: ElasticNetBudget(3, budget=1.0, l1=-1.0), "l1"),
        (lambda: L2Budget(3, budget=-2.0), "budget"),
        (lambda: Stack([L1Budget(2, budget=1.0), L1Budget(3, budget=1.0)]), "parts"),
        (lambda: Stack([]), "parts"),
        (lambda: Stack([1, 2]), "parts"),
        (lambda: Maximum([L1Budget(3, budget=1.0)], over=Ball(2)), "over"),
        (lambda: Linear(2, cost_norm=0.0), "cost_norm"),
        (lambda: Logistic(2, feature_norm=float("inf")), "feature_norm"),
        (lambda: DoublyStochastic(0), "size"),
    ],
)
def test_impossible_functions_are_refused(make, argument):
    with pytest.raises(InputError) as refused:
        make()
    assert refused.value.argument == argument
