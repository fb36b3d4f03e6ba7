"""A-FTRL on sparse rows, held to the dense layout."""

import math

import numpy as np
import pytest

from linear_learners import learner_with, put, require_sound
from longterm.linear_model.kernels.layout import FIELDS, Parameters
from longterm.problems.constraints import ElasticNetBudget


def drawn_state(rng, d, parameters):
    """z and scalars, with the cases that hurt: on the threshold, a hair above it, all dead, in the ball, tiny, huge."""
    scale = 10.0 ** rng.uniform(-8, 8)
    z = scale * rng.standard_normal(d) * (rng.random(d) < rng.choice([0.0, 0.2, 1.0]))
    threshold = scale * rng.choice([0.0, 0.3, 1.0, 5.0]) * rng.random()
    multiplier_sum = threshold / parameters.l1 if parameters.l1 else threshold
    threshold = multiplier_sum * parameters.l1
    edge = rng.random(d)
    near = np.array([threshold, np.nextafter(threshold, np.inf), threshold * (1 + 1e-12), -threshold])
    z = np.where(edge < 0.3, rng.choice(near, d), z)
    t = int(10 ** rng.uniform(0, 7))
    squares = float(np.vdot(z, z)) * rng.uniform(1 / t, 10) + 1e-300
    w = np.maximum(np.abs(z) - threshold, 0.0)
    state = {"round": t, "multiplier": multiplier_sum * rng.random(), "multiplier_sum": multiplier_sum}
    state |= {"norm_1": math.fsum(w), "norm_2": math.fsum(w * w)}
    state |= {"gradient_squares": squares, "longest_gradient": math.sqrt(squares / t)}
    bound = parameters.intercept_bound
    curvature = math.sqrt(squares) / math.hypot(parameters.radius, bound)
    slope = scale * rng.standard_normal()
    state |= {"intercept_slope": slope, "intercept": np.clip(-slope / curvature, -bound, bound)}
    length, free = math.sqrt(state["norm_2"]), 1 / (curvature + multiplier_sum * parameters.l2)
    return z, state | {"scale": parameters.radius / length if length * free > parameters.radius else free}


def drawn_row(rng, d):
    """Column numbers, values, and the row as a dense one."""
    chosen = np.sort(rng.choice(d, rng.integers(0, d + 1), replace=False))
    values = rng.standard_normal(len(chosen)) * rng.choice([1.0, 1e-3, 1e3])
    u = np.zeros(d)
    u[chosen] = values
    return chosen, values, u


@pytest.mark.slow
@pytest.mark.parametrize("loss", range(6))
def test_one_round_is_the_dense_learners(loss):
    rng = np.random.default_rng([7, loss])
    for _ in range(300):
        d = int(rng.integers(1, 40))
        l1, l2 = [(1.0, 1.0), (0.5, 0.0), (0.0, 1.0)][rng.integers(3)]
        g = ElasticNetBudget(d, 10.0 ** rng.uniform(-2, 2), l1=l1, l2=l2)
        given = Parameters(
            g.budget,
            l1,
            l2,
            g.enclosing_ball().radius,
            intercept_bound=float(rng.choice([0.0, 2.0])),
            loss=loss,
            loss_parameter=0.3,
            theta_0=10.0 ** rng.uniform(-3, 3),
        )
        z, state = drawn_state(rng, d, given)
        ours, theirs = (put(learner_with("a-ftrl", given, d, sparse=of), z, **state) for of in (True, False))
        (columns, values, u), y, weight = drawn_row(rng, d), rng.choice([-1.0, 1.0]), rng.uniform(0, 2)
        theirs.step_dense(u, y, weight)
        ours.step(columns, values, y, weight)
        require_sound(ours)
        assert np.allclose(ours.weights, theirs.weights, rtol=1e-10, atol=1e-10 * given.radius)
        assert ours.intercept == pytest.approx(theirs.intercept, rel=1e-10, abs=1e-10)
        assert ours.rounds == theirs.rounds
        names = [field.name for field in FIELDS]
        for name in names[names.index("loss_sum") : names.index("scale")]:
            mine, their = ours._state.number(name), theirs._state.number(name)
            assert np.allclose(mine, their, rtol=1e-9, atol=1e-10 * g.budget), name
        # Without a threshold z = 5e-324 is active, and its x is 0.
        if l1 * ours._state.number("multiplier_sum") * ours._state.number("scale") > 0:
            assert ours.nonzeros == np.count_nonzero(ours.weights)
