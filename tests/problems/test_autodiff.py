import numpy as np
import pytest

from longterm import AOGD, InputError, Problem, run
from longterm.problems.constraints import L2Budget
from longterm.problems.losses import SquaredDistance
from longterm.problems.sets import Ball, Box, Simplex
from longterm.problems.streams import RandomCosts

pytest.importorskip("jax", reason="automatic differentiation needs the extra `jax`")
import jax.numpy as jnp

from longterm.errors import KinkWarning
from longterm.problems.autodiff import constraint_from_jax, loss_from_jax

BALL = Ball(3, radius=2.0)


def distance(x, y):
    return 0.5 * jnp.sum((x - y) ** 2, axis=-1)


def from_jax():
    return loss_from_jax(
        distance, BALL, gradient_bound=3.0, value_range=4.5, strong_convexity=1.0, parameters={"y": (3,)}
    )


def test_smooth_functions_equal_the_analytic_ones():
    f, wanted = from_jax(), SquaredDistance(3, targets=Ball(3))
    x, y = np.random.default_rng(0).standard_normal((2, 4, 3))
    for found, analytic in zip(f.value_and_gradient(x, y), wanted.value_and_gradient(x, y), strict=True):
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, analytic, atol=1e-15)
    assert f.gradient(x.astype(np.float32), y.astype(np.float32)).dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "jax"])
def test_a_run_equals_the_analytic_run(engine):
    g = L2Budget(3, budget=0.7)
    ours, analytic = Problem(BALL, from_jax(), g), Problem(BALL, SquaredDistance(3, targets=Ball(3)), g)
    one = run(ours, AOGD.for_problem(ours, steps="strongly convex"), RandomCosts(3), 100, seeds=range(2), engine=engine)
    other = run(analytic, AOGD.for_problem(analytic, steps="strongly convex"), RandomCosts(3), 100, seeds=range(2))
    np.testing.assert_allclose(one.cumulative_loss, other.cumulative_loss, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "where"),
    [
        (lambda x: jnp.sum(jnp.abs(x), axis=-1) - 1, "x = 0"),
        (lambda x: jnp.max(x, axis=-1), "x = 0"),
        (lambda x: jnp.maximum(x[..., 0] - 0.5, 0.0), "a tie"),
        (lambda x: 1e-4 * jnp.sum(jnp.abs(x), axis=-1), "x = 0"),
    ],
)
def test_kinks_are_warned_of(function, where):
    with pytest.warns(KinkWarning, match=f"at {where}"):
        constraint_from_jax(function, Box.cube(3, -2.0, 2.0), gradient_bound=2.0, value_bound=9.0)


def test_a_gradient_that_is_nan_is_refused():
    with pytest.raises(InputError, match="x = 0"):
        constraint_from_jax(lambda x: jnp.sqrt(jnp.sum(x**2, axis=-1)) - 1, BALL, gradient_bound=1.0, value_bound=1.0)


def test_a_slope_that_is_not_a_subgradient_is_refused():
    def flat_at_zero(x):  # |x_0|, but a branch hides the slope left of 0.5 from JAX
        return jnp.where(x[..., 0] < 0.4, jnp.floor(x[..., 0] * 1e7) / 1e7, x[..., 0])

    with pytest.raises(InputError, match="not a subgradient"):
        loss_from_jax(flat_at_zero, BALL, gradient_bound=1.0, value_range=4.0)


def weighted_squares(x, c):
    return jnp.sum(c * x**2, axis=-1)


def test_a_function_may_be_convex_for_some_parameters_only():
    f = loss_from_jax(weighted_squares, BALL, gradient_bound=9.0, value_range=9.0, parameters={"c": (3,)})
    assert f.gradient(np.ones(3), np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


def test_given_parameters_must_make_it_convex():
    facts = {"gradient_bound": 9.0, "value_range": 9.0, "parameters": {"c": (3,)}}
    loss_from_jax(weighted_squares, BALL, examples=[np.ones((5, 3))], **facts)
    with pytest.raises(InputError, match=r"not convex at x = 0: in coordinate 2 its slope falls"):
        loss_from_jax(weighted_squares, BALL, examples=[np.array([[1.0, 1.0, -1.0]])], **facts)
    with pytest.raises(InputError, match=r"slope falls"):
        loss_from_jax(weighted_squares, BALL, examples=RandomCosts(3), **facts)
    with pytest.raises(InputError, match=r"examples: have shapes"):
        loss_from_jax(weighted_squares, BALL, examples=[np.ones((5, 2))], **facts)


def test_a_function_is_compiled_once_for_a_shape():
    traced = []

    def function(x, y):
        traced.append(x.shape)
        return distance(x, y)

    f = loss_from_jax(function, BALL, gradient_bound=3.0, value_range=4.5, parameters={"y": (3,)})
    f.value_and_gradient(np.zeros(3), np.zeros(3))
    before = len(traced)
    for _ in range(20):
        f.value_and_gradient(np.zeros(3), np.zeros(3))
    assert len(traced) == before


def test_functions_must_be_batched():
    with pytest.raises(InputError, match="returned"):
        loss_from_jax(lambda x: x**2, BALL, gradient_bound=1.0, value_range=4.0)


@pytest.mark.parametrize(
    "function", [lambda x, a: jnp.maximum(jnp.sum(x * a, axis=-1), 0.0), lambda x, a: jnp.abs(jnp.sum(x * a, axis=-1))]
)
def test_kinks_caused_by_parameters_raise_a_warning(function):
    with pytest.warns(KinkWarning, match="x = 0"):
        loss_from_jax(function, BALL, gradient_bound=9.0, value_range=9.0, parameters={"a": (3,)})


@pytest.mark.parametrize(
    ("function", "over"),
    [
        (lambda x: 1000 * jnp.sum(x**2, axis=-1), BALL),
        (lambda x: jnp.sum(x**2, axis=-1) + 0.3 * x[..., 0] + 1e7, BALL),
        (lambda x: -jnp.sqrt(1.5 - jnp.sum(x**2, axis=-1)), Ball(16)),
        (lambda x: jnp.sum(x * jnp.log(x), axis=-1), Simplex(3)),
    ],
)
def test_smooth_functions_pass_without_a_word(function, over):
    loss_from_jax(function, over, gradient_bound=1e6, value_range=1e6)


def test_functions_that_sum_over_the_batch_are_refused():
    with pytest.raises(InputError, match="twice"):
        constraint_from_jax(lambda x: jnp.sum(x * x) - 0.25, BALL, gradient_bound=9.0, value_bound=9.0)


def test_a_loss_is_not_strongly_convex_unless_declared():
    f = loss_from_jax(distance, BALL, gradient_bound=3.0, value_range=4.5, parameters={"y": (3,)})
    assert f.strong_convexity == 0.0
    assert from_jax().strong_convexity == 1.0
