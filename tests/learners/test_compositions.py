"""Compositions of slots that no published learner has: their bounds hold, or they are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, InputError, Problem, SlaterPoint
from longterm.learners import FTRL
from longterm.learners.ftrl.ftrl_scales import GivenScale, OnlineScale
from longterm.learners.ftrl.growing_penalty import GrowingPenalty
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.learners.ftrl.scale_mixture import ScaleMixture
from longterm.learners.optimistic.optimistic_aftrl import ForecastScale
from longterm.learners.saddle_point.multiplier_rules import OnePerConstraint
from longterm.learners.tightened.margins import ConstantMargin
from longterm.learners.tightened.tightened import Tightened
from longterm.problems.constraints import Affine, ElasticNetBudget
from longterm.problems.losses import Linear
from longterm.problems.sets import Box
from longterm.theory.schedules import ConstantSchedule, ConvexSchedule
from opponents import KINDS, best_in_box, play_linear


def budget_problem():
    g = ElasticNetBudget(3, 1.0)
    return Problem(g.enclosing_ball(), Linear(3), g)


@given(kind=KINDS, seed=st.integers(0, 10**6), T=st.integers(1, 150), beta=st.floats(0.2, 0.9))
def test_aogd_with_a_multiplier_for_each_constraint_and_the_steps_of_table_1(kind, seed, T, beta):
    rng = np.random.default_rng(seed)
    B, rows = Box(rng.uniform(-2, -0.5, 3), rng.uniform(0.5, 2, 3)), rng.standard_normal((3, 3))
    problem = Problem(B, Linear(3), Affine(rows, rows @ rng.uniform(-0.4, 0.4, 3)))
    c = problem.constants
    for G in (c.gradient_bound * 2**0.5, 3 * c.gradient_bound):  # G √((m + 1)/2): the closed form; larger: Lemma 5
        learner = AOGD(B, ConvexSchedule(c.diameter, G, beta), duals=OnePerConstraint(3))
        game = play_linear(problem, learner, kind, T, seed)
        limit = problem.constraint.limit
        best = best_in_box(B.lower, B.upper, problem.constraint.matrix, limit, game.costs.sum(axis=0))
        bound = learner.bound(problem, T)
        assert game.loss - best <= float(bound["regret"]) * (1 + 1e-9)
        violation = np.linalg.norm(np.maximum(game.values.sum(axis=0), 0))
        assert violation <= float(bound["long_term_violation"]) * (1 + 1e-9)


def test_a_margin_is_for_one_multiplier():
    rule = AOGD(Box.cube(2, -1.0, 1.0), ConstantSchedule(0.5, 0.1, 0.1), duals=OnePerConstraint(2))
    with pytest.raises(InputError, match="2 multipliers") as refused:
        Tightened(learner=rule, margin=ConstantMargin(0.1), slater=SlaterPoint(1.0))
    assert refused.value.argument == "learner"


def test_slots_that_do_not_fit_are_refused():
    problem = budget_problem()
    prox = problem.constraint.prox(problem.enclosing_set)
    with pytest.raises(InputError, match="priced mixture cannot use"):
        FTRL(prox, ScaleMixture(1.0, priced=True), GrowingPenalty(1.0))
    affine = Affine(np.eye(2), [0.1, 0.2]).prox(Box.cube(2, -1.0, 1.0))
    with pytest.raises(InputError, match="positive part"):
        FTRL(affine, OnlineScale(), GrowingPenalty(1.0))
    with pytest.raises(InputError, match="one ray"):
        FTRL(affine, ScaleMixture(1.0), Multiplier(1.0))


def test_a_forecast_with_a_penalty_plays_without_a_theorem():
    problem = budget_problem()
    learner = FTRL(problem.constraint.prox(problem.enclosing_set), ForecastScale(1.0), GrowingPenalty(1.0))
    game = play_linear(problem, learner, "switching", 50, 0)
    bound = learner.bound(problem, 50, state=game.state)
    assert not bound
    assert "ForecastScale" in bound.reason
    assert np.maximum(game.values, 0).sum() < 1.0


def test_a_composition_of_code_has_bounds():
    problem = budget_problem()
    prox = problem.constraint.prox(problem.enclosing_set)
    plain = FTRL(prox, GivenScale(0.7), Multiplier(0.3, 0.5))
    bound = plain.bound(problem, [10, 1000])
    assert set(bound) == {"regret", "long_term_violation"}
    with pytest.raises(InputError, match="Call its constructor"):
        FTRL.for_problem(problem)
