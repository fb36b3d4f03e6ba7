"""With one radius, one round of A-FTRL is that of the reference learner with constants found online."""

from dataclasses import replace

import numpy as np
import pytest

from linear_learners import LOSSES, learner_with
from linear_references import draw_row, make_pair, our_learner
from longterm import Feedback, observe
from longterm.learners import AdaptiveAFTRL
from longterm.learners.ftrl.ftrl_scales import OnlineScale, OnlineState
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.linear_model.kernels.layout import WEIGHT_SCALES, WEIGHTS
from longterm.linear_model.kernels.losses import value_and_slope
from longterm.linear_model.kernels.mixture import place
from longterm.problems.constraints import Affine
from longterm.problems.sets import Box

SUMS = ("cumulative_loss", "signed_violation", "hard_violation", "squared_violation")
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def draw_states(pair, rng):
    """The same state twice: of a later round, with gradients seen."""
    t, over, d = int(np.exp(rng.uniform(np.log(2), 12))), pair.problem.enclosing_set, pair.budget.dimension
    squares, largest, theta_sum = (np.asarray(value) for value in np.exp(rng.uniform(-2, 4, 3)))
    multiplier, start = np.asarray(rng.choice([0.0, rng.exponential()])), pair.learner.init()
    z = rng.standard_normal(d) * np.exp(rng.uniform(-2, 4))
    start = start._replace(round=np.asarray(t), gradient_sum=z, scale=OnlineState(squares, largest))
    curvature = np.sqrt(squares) / over.radius
    weight = np.asarray(rng.uniform(0, 1.2) * np.abs(z).max() / max(pair.budget.l1, 0.3))
    dual = start.dual._replace(multiplier=multiplier[None], theta_sum=theta_sum)
    x = pair.learner.prox.argmin(z, weight[None], curvature)
    learner = our_learner(pair, t, z, multiplier, weight, x)
    for name, value in (("gradient_squares", squares), ("longest_gradient", largest), ("bound_sum", theta_sum)):
        learner._state.scalars[name] = value
    place.py_func(learner._state.mixture(WEIGHTS), WEIGHT_SCALES, float(squares), 0.0, 0.0)  # a charge needs factors
    return start._replace(x=x, weight=weight[None], dual=dual), learner


def sums_of(learner):
    return np.array([getattr(learner, name) for name in SUMS])


def assert_same_round(pair, state, learner, row, label, weight):
    """One round of both."""
    following, seen = pair.reference_round(state, row, label, weight)
    before = sums_of(learner)
    margin = learner.learn(row[None], [label], [weight])[0]
    hard = max(float(seen.constraint), 0.0)
    np.testing.assert_allclose(margin, row.astype(np.float64) @ pair.learner.ask(state), **CLOSE)
    np.testing.assert_allclose(sums_of(learner) - before, [seen.loss, seen.constraint, hard, hard**2], **CLOSE)
    np.testing.assert_allclose(learner.weights, following.x, **CLOSE)
    names, scale = ("multiplier", "gradient_squares", "longest_gradient", "bound_sum"), following.scale
    wanted = [np.squeeze(following.multiplier), np.squeeze(scale.square_sum)]
    wanted += [scale.largest_gradient, following.dual.theta_sum]
    np.testing.assert_allclose([learner._state.number(name) for name in names], wanted, **CLOSE)
    assert learner.rounds + 1 == following.round
    return following


@pytest.mark.parametrize("draws", [12, pytest.param(40, marks=pytest.mark.cross)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES)
def test_one_round_is_the_adaptive_learners(loss, dtype, draws):
    rng = np.random.default_rng([LOSSES.index(loss), dtype == np.float32])
    for _ in range(draws):
        pair = make_pair(loss, rng)
        assert_same_round(pair, *draw_states(pair, rng), *draw_row(pair, rng, dtype))


def test_a_pair_that_begins_without_gradients_is_the_adaptive_learners():
    rng = np.random.default_rng(0)
    pair = make_pair("hinge", rng)
    state, learner = pair.learner.init(), pair.learner_of_ours()
    for t in range(60):
        row, label, weight = draw_row(pair, rng, np.float64)
        state = assert_same_round(pair, state, learner, row, label, weight if t > 5 else 0.0)
        assert t > 5 or np.all(state.x == 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_intercept_is_a_learner_of_its_own(loss):
    """Two reference learners, one for the weights and one for the intercept; each sees its part of the gradient."""
    rng = np.random.default_rng([LOSSES.index(loss), 7])
    for r in (0.3, 5.0):
        pair = make_pair(loss, rng)
        parameters = replace(pair.parameters, intercept_bound=r)
        interval = Box([-r], [r])
        free = Affine([[1.0]], [10 * r])  # never binds
        for_b = AdaptiveAFTRL(free.prox(interval), OnlineScale(), Multiplier(1.0))
        x, b = pair.learner.init(), for_b.init()
        learner = learner_with(pair.rule, parameters, pair.budget.dimension, one_scale=True)
        for t in range(40):
            row, label, weight = draw_row(pair, rng, np.float64)
            weight = weight if t > 3 else 0.0
            _, slope = value_and_slope.py_func(
                parameters.loss, parameters.loss_parameter, float(row @ x.x + b.x[0]), label
            )
            seen = observe(pair.problem, x.x, [row, np.float64(label)])
            seen_by_b = Feedback(np.array([weight * slope]), np.asarray(b.x[0] - 10 * r), np.ones(1))
            x = pair.learner.update(x, seen._replace(loss_gradient=weight * slope * row))
            b = for_b.update(b, seen_by_b)
            learner.step_dense(row, label, weight)
            np.testing.assert_allclose(learner.weights, x.x, rtol=1e-9, atol=1e-9)
            assert learner.intercept == pytest.approx(float(b.x[0]), rel=1e-9, abs=1e-9)
