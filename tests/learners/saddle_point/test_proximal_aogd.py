"""Proximal A-OGD: by hand, its bounds, what it shares with A-OGD."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budget_problems import best_in_budget, budget_problem, factors, horizons, seeds
from longterm import InputError, Problem, observe, run
from longterm.learners import ProximalAOGD
from longterm.learners.ftrl.ftrl_scales import GivenScale
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.learners.interface.feedback import Feedback
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine, ElasticNetBudget
from longterm.problems.losses import Linear
from longterm.problems.named.adversarial import late_reversal
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import Replay
from opponents import KINDS, best_in_box, play_linear


def test_first_rounds_by_hand():
    problem = two_dimensional()  # ½‖x − target‖², g = x₁ − ¼
    learner = ProximalAOGD(problem.constraint.prox(problem.enclosing_set), GivenScale(0.5), Multiplier(1.0, 0.5))
    state = learner.init()
    for _ in range(2):
        state = learner.tell(state, observe(problem, learner.ask(state), [np.array([1.0, 0.0])]))
    # x_2 = ½; λ_3 = μ_2 (½ − ¼) = √2/12; x_3 = ½ − (1/√8)(−½ + λ_3), with the new multiplier.
    multiplier = np.sqrt(2) / 12
    assert float(state.multiplier[0]) == pytest.approx(multiplier)
    assert float(state.x[0]) == pytest.approx(0.5 - (multiplier - 0.5) / np.sqrt(8))


def test_a_round_under_a_budget_by_hand():
    # v = x − η∇f, x⁺ = soft(v, ηλ)/(1 + ηλ) with η_4 = 1, λ_5 = ½ + (½ − ½ · ½)/(½ · 5) = 0.6.
    g = ElasticNetBudget(3, budget=1.0)
    learner = ProximalAOGD(g.prox(Ball(3, 10.0)), GivenScale(step=2.0), Multiplier(theta_0=1.0, beta=0.5))
    start = learner.init()
    dual = start.dual._replace(multiplier=np.array([0.5]))
    before = start._replace(round=np.asarray(4), x=np.array([1.0, -1.0, 0.3]), dual=dual)
    after = learner.update(before, Feedback(np.array([-1.0, 1.0, -0.1]), np.asarray(0.5), np.zeros(3)))
    np.testing.assert_allclose(after.multiplier, [0.6])
    np.testing.assert_allclose(after.x, np.array([1.4, -1.4, 0.0]) / 1.6, atol=1e-15)
    assert after.x[2] == 0.0


@given(kind=KINDS, seed=seeds, T=horizons, theta=factors, step=st.floats(0.2, 5), beta=st.floats(0.05, 0.95))
def test_bounds_under_a_budget(kind, seed, T, theta, step, beta):
    problem = budget_problem(seed)
    tuned = ProximalAOGD.for_problem(problem, beta=beta)
    scale, dual = GivenScale(step * tuned.scale.step), Multiplier(theta * tuned.dual.theta_0, beta)
    learner = ProximalAOGD(tuned.prox, scale, dual)
    game = play_linear(problem, learner, kind, T, seed)
    bound = learner.bound(problem, T)
    assert game.loss - best_in_budget(problem.constraint, game.costs.sum(axis=0)) <= float(bound["regret"]) * (1 + 1e-9)
    assert game.values.sum() <= float(bound["long_term_violation"]) * (1 + 1e-9)


@given(kind=KINDS, seed=seeds, T=horizons, theta=factors)
def test_bounds_with_a_multiplier_for_each_affine_constraint(kind, seed, T, theta):
    rng = np.random.default_rng(seed)
    B, rows = Box(rng.uniform(-2, -0.5, 3), rng.uniform(0.5, 2, 3)), rng.standard_normal((4, 3))
    problem = Problem(B, Linear(3), Affine(rows, rows @ rng.uniform(-0.4, 0.4, 3)))
    learner = ProximalAOGD.for_problem(problem, theta_0=theta * ProximalAOGD.for_problem(problem).dual.theta_0)
    game = play_linear(problem, learner, kind, T, seed)
    best = best_in_box(B.lower, B.upper, problem.constraint.matrix, problem.constraint.limit, game.costs.sum(axis=0))
    bound = learner.bound(problem, T)
    assert game.loss - best <= float(bound["regret"]) * (1 + 1e-9)
    assert np.linalg.norm(np.maximum(game.values.sum(axis=0), 0)) <= float(bound["long_term_violation"]) * (1 + 1e-9)


@given(seed=seeds, T=horizons, theta=factors, beta=st.floats(0.05, 0.95))
def test_bounds_for_strongly_convex_losses(seed, T, theta, beta):
    problem = two_dimensional()
    angles = np.random.default_rng(seed).uniform(0, 2 * np.pi, T)
    targets = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    theta_0 = theta * ProximalAOGD.for_problem(problem, steps="strongly convex").dual.theta_0
    learner = ProximalAOGD.for_problem(problem, steps="strongly convex", beta=beta, theta_0=theta_0)
    trace = run(problem, learner, Replay([targets]), record=[T])
    best = np.minimum(targets.mean(axis=0), [0.25, np.inf])
    regret = float(trace.cumulative_loss[-1]) - 0.5 * ((targets - best) ** 2).sum()
    bound = learner.bound(problem, T)
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert float(trace.signed_violation[-1]) <= float(bound["long_term_violation"]) * (1 + 1e-9)


def test_the_regret_bound_is_nearly_attained():
    """Walk to one end, wait until the steps are small, then the slope turns: the whole diameter has to be crossed."""
    problem, T, tail = late_reversal(), 1000, 126
    prox = problem.constraint.prox(problem.enclosing_set)
    learner = ProximalAOGD(prox, GivenScale(step=0.5), Multiplier(theta_0=1.0))
    t = np.arange(1, T + 1)
    costs = np.where(t <= 4, -1.0, np.where(t > T - tail, 1.0, 0.0))
    trace = run(problem, learner, Replay([costs[:, None]]), record=[T])
    regret = float(trace.cumulative_loss[-1]) + abs(costs.sum())
    assert 0.8 < regret / float(learner.bound(problem, T)["regret"]) <= 1


def test_strong_convexity_must_be_there():
    with pytest.raises(InputError, match="not strongly convex"):
        ProximalAOGD.for_problem(budget_problem(1), steps="strongly convex")
    problem = two_dimensional()
    sharp = Problem(problem.enclosing_set, problem.loss, problem.constraint, declared={"strong_convexity": 3.0})
    with pytest.raises(InputError, match="σ = 3"):
        run(problem, ProximalAOGD.for_problem(sharp, steps="strongly convex"), Replay([np.ones((3, 2)) / 2]))
