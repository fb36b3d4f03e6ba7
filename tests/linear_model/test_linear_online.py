"""Compiled kernels whose constants are found online: one round is the adaptive reference learner's."""

from dataclasses import replace

import numpy as np
import pytest

from linear_games import LOSSES, Game, draw_row, kernel_state, make_game
from longterm import Feedback, observe
from longterm.constraints import Affine
from longterm.learners import AdaGradAOGD, AdaptiveAFTRL, AdaptivePenalisedFTRL
from longterm.learners.adagrad_aogd import AdaGradAOGDState
from longterm.learners.adaptive_aftrl import AdaptiveAFTRLState
from longterm.learners.adaptive_penalised_ftrl import AdaptivePenalisedFTRLState
from longterm.linear_model import _layout as at
from longterm.linear_model._layout import State
from longterm.linear_model._losses import value_and_slope
from longterm.linear_model.play import decision, play
from longterm.sets import Box

RULES = ("aogd", "aftrl", "penalised_ftrl")


def make_online(rule, loss, rng, *, intercept):
    game = make_game(rule, loss, rng, intercept=intercept)
    over, prox, p = (
        game.problem.enclosing_set,
        game.problem.constraint.prox(game.problem.enclosing_set),
        game.parameters,
    )
    scale = float(np.exp(rng.uniform(-2, 2)))
    if rule == "aogd":
        return Game(
            rule, game.problem, game.budget, AdaGradAOGD(over, scale, p.beta), replace(p, step=0, theta_0=scale)
        )
    if rule == "aftrl":
        return Game(
            rule, game.problem, game.budget, AdaptiveAFTRL(prox, scale, p.beta), replace(p, step=0, theta_0=scale)
        )
    learner = AdaptivePenalisedFTRL(prox, scale, 0.5)
    return Game(rule, game.problem, game.budget, learner, replace(p, step=0, weight_0=scale, growth=0.5))


def draw_online_states(game, rng):
    """The same state twice: of a later round, with gradients seen."""
    t, over, d = int(np.exp(rng.uniform(np.log(2), 12))), game.problem.enclosing_set, game.budget.dimension
    squares, largest, theta_sum = (np.asarray(value) for value in np.exp(rng.uniform(-2, 4, 3)))
    round, multiplier = np.asarray(t), np.asarray(rng.choice([0.0, rng.exponential()]))
    if game.rule == "aogd":
        raw = rng.standard_normal(over.dimension) * rng.choice([0.0, 1.0], size=over.dimension)
        x = over.project(raw * rng.choice([0.1, 3.0]) * over.radius)
        state, numbers = (
            AdaGradAOGDState(round, x, multiplier, squares, largest, theta_sum),
            kernel_state(game, t, x[:d], multiplier, 0.0, x),
        )
    else:
        z = rng.standard_normal(over.dimension) * np.exp(rng.uniform(-2, 4))
        curvature = np.sqrt(squares) / over.radius
        weight = np.asarray(rng.uniform(0, 1.2) * np.abs(z[:d]).max() / max(game.budget.l1, 0.3))
        if game.rule == "penalised_ftrl":
            total, weight = weight * 10, np.minimum(game.learner.prox.least_weight(z, curvature), weight * 10)
            x = game.learner.prox.argmin(z, weight[None], curvature)
            state = AdaptivePenalisedFTRLState(round, x, weight, z, total, squares, largest, theta_sum)
            numbers = kernel_state(game, t, z[:d], weight, total, x, z)
        else:
            x = game.learner.prox.argmin(z, weight[None], curvature)
            state = AdaptiveAFTRLState(round, x, multiplier[None], z, weight[None], squares, largest, theta_sum)
            numbers = kernel_state(game, t, z[:d], multiplier, weight, x, z)
    numbers.numbers[[at.SQUARES, at.LARGEST, at.BOUND_SUM]] = squares, largest, theta_sum
    return state, numbers


def assert_same_round(game, state, numbers, row, label, weight):
    following, _ = game.reference_round(state, row, label, weight)
    p = game.parameters.as_array()
    play(game.rule, p, numbers, row[None], np.array([label]), weights=np.array([weight]))
    x, intercept = decision(game.rule, p, numbers)
    played = np.append(x, intercept) if game.intercept else x
    np.testing.assert_allclose(played, following.x, rtol=1e-10, atol=1e-10)
    bound_sum = following.inverse_sum if game.rule == "penalised_ftrl" else following.theta_sum
    found = numbers.numbers[[at.MULTIPLIER, at.SQUARES, at.LARGEST, at.BOUND_SUM]]
    wanted = [np.squeeze(following.multiplier), following.square_sum, following.largest_gradient, bound_sum]
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    return following


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES)
def test_one_round_is_the_adaptive_learners(rule, loss, dtype):
    rng = np.random.default_rng([RULES.index(rule), LOSSES.index(loss), dtype == np.float32])
    for _ in range(40):
        game = make_online(rule, loss, rng, intercept=False)
        assert_same_round(game, *draw_online_states(game, rng), *draw_row(game, rng, dtype))


@pytest.mark.parametrize("rule", RULES)
def test_a_game_that_begins_without_gradients_is_the_adaptive_learners(rule):
    rng = np.random.default_rng(RULES.index(rule))
    game = make_online(rule, "hinge", rng, intercept=False)
    state, numbers = game.learner.init(), State.start(game.budget.dimension)
    for t in range(60):
        row, label, weight = draw_row(game, rng, np.float64)
        state = assert_same_round(game, state, numbers, row, label, weight if t > 5 else 0.0)
        assert t > 5 or np.all(state.x == 0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES)
def test_the_intercept_is_a_learner_of_its_own(rule, loss):
    """Two reference learners, one for the weights and one for the intercept; each sees its part of the gradient."""
    rng = np.random.default_rng([RULES.index(rule), LOSSES.index(loss), 7])
    for r in (0.3, 5.0):
        game = make_online(rule, loss, rng, intercept=False)
        parameters = replace(game.parameters, intercept_bound=r)
        interval = Box([-r], [r])
        free = Affine([[1.0]], [10 * r])  # never binds
        own = AdaGradAOGD(interval, 1.0) if rule == "aogd" else AdaptiveAFTRL(free.prox(interval), 1.0)
        x, b, state = game.learner.init(), own.init(), State.start(game.budget.dimension)
        for t in range(40):
            row, label, weight = draw_row(game, rng, np.float64)
            weight = weight if t > 3 else 0.0
            _, slope = value_and_slope.py_func(
                parameters.loss, parameters.loss_parameter, float(row @ x.x + b.x[0]), label
            )
            seen = observe(game.problem, x.x, [row, np.float64(label)])
            seen_by_b = Feedback(np.array([weight * slope]), np.asarray(b.x[0] - 10 * r), np.ones(1))
            x = game.learner.update(x, seen._replace(loss_gradient=weight * slope * row))
            b = own.update(b, seen_by_b)
            play(rule, parameters.as_array(), state, row[None], np.array([label]), weights=np.array([weight]))
            weights, intercept = decision(rule, parameters.as_array(), state)
            np.testing.assert_allclose(weights, x.x, rtol=1e-9, atol=1e-9)
            assert intercept == pytest.approx(float(b.x[0]), rel=1e-9, abs=1e-9)
