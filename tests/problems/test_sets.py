import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import InputError
from longterm.problems.sets import Ball, Box, Product, RowStochastic, Simplex
from zoo import D, sets

SETS = sets()
each_set = pytest.mark.parametrize("name", SETS)


def points(seed: int, count: int = 30) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, D)) * rng.choice([0.1, 1.0, 10.0], (count, 1))


@each_set
@given(seed=st.integers(0, 10**6))
def test_projection_is_the_nearest_point(name, seed):
    B = SETS[name]
    x = points(seed)
    nearest = B.project(x)
    assert np.all(B.contains(nearest))
    # The projection is the only point z* of B with ⟨x − z*, z − z*⟩ ≤ 0 for every z in B.
    others = B.sample(np.random.default_rng(seed), 40)
    angle = np.einsum("nd,nkd->nk", x - nearest, others[None] - nearest[:, None])
    assert np.all(angle <= 1e-9 * (1 + np.abs(x).max()) ** 2)


@each_set
def test_projection_of_a_member_is_itself(name):
    B = SETS[name]
    inside = B.sample(np.random.default_rng(0), 200)
    np.testing.assert_allclose(B.project(inside), inside, rtol=0, atol=1e-12)


@each_set
def test_batches_equal_single_calls(name):
    B = SETS[name]
    x = points(1, 12).reshape(3, 4, D)
    for call in (B.project, B.extreme_point, B.contains, B.support):
        single = np.array([[call(x[i, j]) for j in range(4)] for i in range(3)])
        np.testing.assert_allclose(call(x), single, rtol=1e-13, atol=1e-14)


@each_set
def test_constants_are_attained_and_never_exceeded(name):
    B = SETS[name]
    sample = B.sample(np.random.default_rng(2), 3000)
    to_centre = np.linalg.norm(sample - B.centre, axis=1)
    assert B.radius * (1 - 1e-9) <= to_centre.max() <= B.radius * (1 + 1e-9)
    apart = np.linalg.norm(sample[:1500] - sample[1500:], axis=1).max()
    opposite = [B.extreme_point(d) - B.extreme_point(-d) for d in (sample - B.centre)[:1500]]
    farthest = max(apart, np.linalg.norm(opposite, axis=1).max())
    assert 0.9 * B.diameter <= farthest <= B.diameter * (1 + 1e-9)
    for order in (1, 2):
        lengths = np.linalg.norm(sample, order, axis=1)
        assert 0.97 * B.largest_norm(order) <= lengths.max() <= B.largest_norm(order) * (1 + 1e-9)
    directions = points(3)
    assert np.all(B.support(directions)[:, None] >= directions @ sample.T - 1e-9)
    assert bool(B.contains(B.centre))


@each_set
def test_outside_is_not_contained(name):
    B = SETS[name]
    assert not np.any(B.contains(B.centre + 1.01 * B.diameter * np.eye(D)))


@each_set
def test_strict_arrays_give_the_same(name):
    B = SETS[name]
    x = points(4)
    for call in (B.project, B.extreme_point, B.support, B.contains):
        strict = call(array_api_strict.asarray(x))
        np.testing.assert_allclose(np.asarray(strict), call(x), rtol=0, atol=1e-13)


@each_set
def test_float32_stays_float32(name):
    B = SETS[name]
    assert B.project(points(5).astype(np.float32)).dtype == np.float32


def test_ball_leaves_inner_points_bit_for_bit():
    x = np.random.default_rng(0).uniform(-0.3, 0.3, (100, 5))
    assert np.array_equal(Ball(5).project(x), x)


def test_simplex_projection_by_hand():
    np.testing.assert_allclose(Simplex(3).project(np.array([2.0, 0.0, 0.0])), [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose(Simplex(2).project(np.array([0.0, 0.0])), [0.5, 0.5])
    np.testing.assert_allclose(RowStochastic(2, 2).project(np.array([1.0, 0.5, -3.0, 0.0])), [0.75, 0.25, 0, 1])


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Ball(0), "dimension"),
        (lambda: Ball(2, radius=0.0), "radius"),
        (lambda: Ball(2, radius=-1.0), "radius"),
        (lambda: Ball(2, radius=float("nan")), "radius"),
        (lambda: Ball(2, centre=np.zeros(3)), "centre"),
        (lambda: Ball(2, centre=5.0), "centre"),
        (lambda: Box([], []), "lower"),
        (lambda: Box([0.0, 2.0], [1.0, 1.0]), "lower"),
        (lambda: Box([0.0], [1.0, 1.0]), "upper"),
        (lambda: Box([np.inf], [np.inf]), "lower"),
        (lambda: Simplex(3, total=0.0), "total"),
        (lambda: RowStochastic(0, 3), "rows"),
        (lambda: Product([]), "factors"),
    ],
)
def test_impossible_sets_are_refused(make, argument):
    with pytest.raises(InputError) as refused:
        make()
    assert refused.value.argument == argument


@pytest.mark.parametrize("radius", [1e-300, 1e-165, 1e-30, 1e-7, 1.0, 1e7, 1e30, 1e160, 1e300])
@pytest.mark.parametrize("far", [0.25, 1.0, 3.0, 1e5, 1e130])
def test_a_ball_projects_at_every_scale(radius, far):
    unit = np.array([[0.6, 0.0, 0.8], [0.0, -1.0, 0.0]])
    distance = min(radius * far, 1e305)
    found = Ball(3, radius).project(unit * distance)
    np.testing.assert_allclose(found / radius, unit * min(distance / radius, 1.0), rtol=1e-14)
    if far < 1:
        np.testing.assert_array_equal(found, unit * distance)  # bit for bit
    assert Ball(3, radius).contains(found).all()
    assert Ball(3, radius).contains(unit * distance).tolist() == [far <= 1.0 or distance <= radius] * 2


def test_a_ball_projects_from_where_squares_overflow():
    points = np.array([[3e200, 4e200], [0.3, 0.4], [0.0, 0.0], [-1e300, 0.0]])
    found = Ball(2).project(points)  # without a warning, which would be an error here
    np.testing.assert_allclose(Ball(2).project(points[0]), [0.6, 0.8], rtol=1e-14)
    assert not Ball(2).contains(points[0])
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0], [-1.0, 0.0]], rtol=1e-14)
    strict = pytest.importorskip("array_api_strict")
    np.testing.assert_allclose(np.asarray(Ball(2).project(strict.asarray(points))), found, rtol=1e-14)


def test_a_ball_projects_float32_at_its_scales():
    for radius in (1e-25, 1e-3, 1e25):
        found = Ball(2, radius).project(np.array([3 * radius, 4 * radius], dtype=np.float32))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found / radius, [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 1), (1, 2), (2, 3), (4, 4)])
def test_the_diameter_of_row_stochastic_matrices_is_attained(rows, columns):
    B = RowStochastic(rows, columns)
    vertices = np.asarray(B.extreme_point(np.random.default_rng(0).standard_normal((200, rows * columns))))
    distances = np.linalg.norm(vertices[:, None] - vertices, axis=-1)
    assert distances.max() == pytest.approx(B.diameter, abs=1e-12)
    assert np.linalg.norm(vertices - B.centre, axis=-1).max() == pytest.approx(B.radius, abs=1e-12)


@each_set
def test_tangents_keep_products_with_differences_of_members(name):
    B, rng = SETS[name], np.random.default_rng(1)
    directions = rng.standard_normal((20, B.dimension))
    differences = B.sample(rng, 20) - B.sample(rng, 20)
    tangents = B.tangent(directions)
    np.testing.assert_allclose(np.vecdot(tangents, differences), np.vecdot(directions, differences), atol=1e-9)
    np.testing.assert_allclose(B.tangent(differences), differences, atol=1e-9 * B.diameter)
    assert np.all(np.linalg.norm(tangents, axis=-1) <= np.linalg.norm(directions, axis=-1) + 1e-12)


def test_a_product_of_equal_simplices_projects_each_of_them():
    B, x = Product([Simplex(3)] * 4 + [Simplex(3, total=2.0)]), np.random.default_rng(2).standard_normal((7, 15))
    expected = [Simplex(3, total=2.0 if k == 4 else 1.0).project(x[:, 3 * k : 3 * k + 3]) for k in range(5)]
    np.testing.assert_allclose(B.project(x), np.concatenate(expected, axis=-1), atol=1e-14)
    assert Simplex(3).tangent(np.array([3.0, 0.0, 0.0])).tolist() == [2.0, -1.0, -1.0]
