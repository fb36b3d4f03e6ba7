"""Constants found online: one round is the adaptive reference learner's."""

from dataclasses import replace

import numpy as np
import pytest

from linear_learners import LOSSES, learner_with
from linear_references import Pair, draw_row, make_pair, our_learner
from longterm import Feedback, observe
from longterm.learners import AdaGradAOGD, AdaptiveAFTRL, AdaptivePenalisedFTRL
from longterm.learners.ftrl.ftrl_scales import OnlineScale, OnlineState
from longterm.learners.ftrl.growing_penalty import GrowingPenalty
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.linear_model.kernels.losses import value_and_slope
from longterm.problems.constraints import Affine
from longterm.problems.sets import Box

RULES = ("a-ogd", "a-ftrl", "penalised-ftrl")


def make_online(rule, loss, rng, *, intercept):
    pair = make_pair(rule, loss, rng, intercept=intercept)
    over, p, scale = pair.problem.enclosing_set, pair.parameters, float(np.exp(rng.uniform(-2, 2)))
    prox = pair.problem.constraint.prox(over)
    if rule == "penalised-ftrl":
        learner, parameters = (
            AdaptivePenalisedFTRL(prox, OnlineScale(), GrowingPenalty(scale, 0.5)),
            replace(p, step=0, weight_0=scale, growth=0.5),
        )
    else:
        dual = Multiplier(scale, p.beta)
        learner = AdaGradAOGD(over, dual) if rule == "a-ogd" else AdaptiveAFTRL(prox, OnlineScale(), dual)
        parameters = replace(p, step=0, theta_0=scale)
    return Pair(rule, pair.problem, pair.budget, learner, parameters)


def draw_online_states(pair, rng):
    """The same state twice: of a later round, with gradients seen."""
    t, over, d = int(np.exp(rng.uniform(np.log(2), 12))), pair.problem.enclosing_set, pair.budget.dimension
    squares, largest, theta_sum = (np.asarray(value) for value in np.exp(rng.uniform(-2, 4, 3)))
    multiplier, start = np.asarray(rng.choice([0.0, rng.exponential()])), pair.learner.init()
    start, dual = start._replace(round=np.asarray(t)), start.dual
    if pair.rule != "penalised-ftrl":
        dual = dual._replace(multiplier=multiplier[None], theta_sum=theta_sum)
    if pair.rule == "a-ogd":
        raw = rng.standard_normal(over.dimension) * rng.choice([0.0, 1.0], size=over.dimension)
        x = over.project(raw * rng.choice([0.1, 3.0]) * over.radius)
        state = start._replace(x=x, square_sum=squares[None], largest_gradient=largest, dual=dual)
        learner = our_learner(pair, t, x[:d], multiplier, 0.0, x)
    else:
        z = rng.standard_normal(over.dimension) * np.exp(rng.uniform(-2, 4))
        start = start._replace(gradient_sum=z, scale=OnlineState(squares, largest))
        curvature = np.sqrt(squares) / over.radius
        weight = np.asarray(rng.uniform(0, 1.2) * np.abs(z[:d]).max() / max(pair.budget.l1, 0.3))
        if pair.rule == "penalised-ftrl":
            total, weight = weight * 10, np.minimum(pair.learner.prox.least_weight(z, curvature), weight * 10)
            x = pair.learner.prox.argmin(z, weight[None], curvature)
            dual = dual._replace(weight_sum=total, inverse_sum=theta_sum)
            state = start._replace(x=x, weight=weight[None], dual=dual)
            learner = our_learner(pair, t, z[:d], weight, total, x, z)
        else:
            x = pair.learner.prox.argmin(z, weight[None], curvature)
            state = start._replace(x=x, weight=weight[None], dual=dual)
            learner = our_learner(pair, t, z[:d], multiplier, weight, x, z)
    for name, value in (("gradient_squares", squares), ("longest_gradient", largest), ("bound_sum", theta_sum)):
        learner._state.scalars[name] = value
    return state, learner


def assert_same_round(pair, state, learner, row, label, weight):
    following, _ = pair.reference_round(state, row, label, weight)
    learner.learn(row[None], [label], [weight])
    np.testing.assert_allclose(pair.decision(learner), following.x, rtol=1e-10, atol=1e-10)
    bound_sum = following.dual.inverse_sum if pair.rule == "penalised-ftrl" else following.dual.theta_sum
    gradients = following if pair.rule == "a-ogd" else following.scale
    names = ("multiplier", "gradient_squares", "longest_gradient", "bound_sum")
    wanted = [np.squeeze(following.multiplier), np.squeeze(gradients.square_sum), gradients.largest_gradient, bound_sum]
    np.testing.assert_allclose([learner._state.number(name) for name in names], wanted, rtol=1e-10, atol=1e-10)
    return following


@pytest.mark.parametrize("draws", [12, pytest.param(40, marks=pytest.mark.cross)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES)
def test_one_round_is_the_adaptive_learners(rule, loss, dtype, draws):
    rng = np.random.default_rng([RULES.index(rule), LOSSES.index(loss), dtype == np.float32])
    for _ in range(draws):
        pair = make_online(rule, loss, rng, intercept=False)
        assert_same_round(pair, *draw_online_states(pair, rng), *draw_row(pair, rng, dtype))


@pytest.mark.parametrize("rule", RULES)
def test_a_pair_that_begins_without_gradients_is_the_adaptive_learners(rule):
    rng = np.random.default_rng(RULES.index(rule))
    pair = make_online(rule, "hinge", rng, intercept=False)
    state, learner = pair.learner.init(), pair.learner_of_ours()
    for t in range(60):
        row, label, weight = draw_row(pair, rng, np.float64)
        state = assert_same_round(pair, state, learner, row, label, weight if t > 5 else 0.0)
        assert t > 5 or np.all(state.x == 0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES)
def test_the_intercept_is_a_learner_of_its_own(rule, loss):
    """Two reference learners, one for the weights and one for the intercept; each sees its part of the gradient."""
    rng = np.random.default_rng([RULES.index(rule), LOSSES.index(loss), 7])
    for r in (0.3, 5.0):
        pair = make_online(rule, loss, rng, intercept=False)
        parameters = replace(pair.parameters, intercept_bound=r)
        interval = Box([-r], [r])
        free = Affine([[1.0]], [10 * r])  # never binds
        if rule == "a-ogd":
            for_b = AdaGradAOGD(interval, Multiplier(1.0))
        else:
            for_b = AdaptiveAFTRL(free.prox(interval), OnlineScale(), Multiplier(1.0))
        x, b = pair.learner.init(), for_b.init()
        learner = learner_with(rule, parameters, pair.budget.dimension)
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
