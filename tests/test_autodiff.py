import numpy as np
import pytest

from longterm import AOGD, InputError, Problem, run
from longterm.constraints import L2Budget
from longterm.losses import SquaredDistance
from longterm.sets import Ball, Box
from longterm.streams import RandomCosts

pytest.importorskip("jax", reason="automatic differentiation needs the extra `jax`")
import jax.numpy as jnp

from longterm.autodiff import KinkWarning, constraint_from_jax, loss_from_jax

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


@pytest.mark.parametrize("engine", ["numpy", "jax"])
def test_a_run_equals_the_analytic_run(engine):
    g = L2Budget(3, budget=0.7)
    ours, analytic = Problem(BALL, from_jax(), g), Problem(BALL, SquaredDistance(3, targets=Ball(3)), g)
    one = run(ours, AOGD.strongly_convex(ours), RandomCosts(3), 100, seeds=range(2), engine=engine)
    other = run(analytic, AOGD.strongly_convex(analytic), RandomCosts(3), 100, seeds=range(2))
    np.testing.assert_allclose(one.cumulative_loss, other.cumulative_loss, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "where"),
    [
        (lambda x: jnp.sum(jnp.abs(x), axis=-1) - 1, "x = 0"),
        (lambda x: jnp.max(x, axis=-1), "x = 0"),
        (lambda x: jnp.maximum(x[..., 0] - 0.5, 0.0), "a tie"),
    ],
)
def test_kinks_are_warned_of(function, where):
    with pytest.warns(KinkWarning, match=f"at {where}"):
        constraint_from_jax(function, Box.cube(3, -2.0, 2.0), gradient_bound=2.0, value_bound=9.0)


def test_a_gradient_that_is_nan_is_refused():
    with pytest.raises(InputError, match="x = 0"):
        constraint_from_jax(lambda x: jnp.sqrt(jnp.sum(x**2, axis=-1)) - 1, BALL, gradient_bound=1.0, value_bound=1.0)


def test_a_slope_that_is_no_subgradient_is_refused():
    def flat_at_zero(x):  # |x_0|, but a branch hides the slope left of 0.5 from JAX
        return jnp.where(x[..., 0] < 0.4, jnp.floor(x[..., 0] * 1e7) / 1e7, x[..., 0])

    with pytest.raises(InputError, match="no subgradient"):
        loss_from_jax(flat_at_zero, BALL, gradient_bound=1.0, value_range=4.0)


def test_functions_must_be_batched():
    with pytest.raises(InputError, match="returned shape"):
        loss_from_jax(lambda x: x**2, BALL, gradient_bound=1.0, value_range=4.0)
