"""Penalised FTRL: by hand, its bounds, and a hard violation that stops growing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budget_problems import best_of, budget_problem, horizons, seeds
from longterm import InputError, Problem, observe, run
from longterm.learners import AFTRL, PenalisedFTRL
from longterm.learners.ftrl.ftrl_scales import GivenScale
from longterm.learners.ftrl.growing_penalty import GrowingPenalty
from longterm.problems.constraints import ElasticNetBudget, L1Budget, L2Budget
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import RandomCosts
from longterm.problems.streams.costs import SwitchingCosts
from opponents import KINDS, play_linear


def test_first_rounds_by_hand():
    problem = Problem(Ball(2, 2.0), Linear(2, 2.0), L1Budget(2, budget=0.5))
    learner = PenalisedFTRL(
        problem.constraint.prox(problem.enclosing_set), GivenScale(1.0), GrowingPenalty(w_0=0.1, growth=1.0)
    )
    state = learner.init()
    np.testing.assert_array_equal(state.x, [0, 0])
    assert float(state.dual.weight_sum) == pytest.approx(0.1)
    state = learner.tell(state, observe(problem, state.x, [np.array([-2.0, 0.1])]))
    # W_2 = 0.1 (1 + 4) = ½; alone, (2, −0.1)/√2 needs ν = 2 − √2/2 > ½: so ν = ½ and g = 1.5/√2 − ½ > 0.
    np.testing.assert_allclose(state.x, [1.5 / np.sqrt(2), 0.0])
    assert (state.x[1], float(state.multiplier[0])) == (0.0, pytest.approx(0.5))
    state = learner.tell(state, observe(problem, state.x, [np.array([0.5, 0.0])]))
    # W_3 = 1.4 holds ν = 1.5 − √3/2 = 0.634: x = (½, 0), on the budget.
    assert float(state.multiplier[0]) == pytest.approx(1.5 - np.sqrt(3) / 2)
    np.testing.assert_allclose(state.x, [0.5, 0.0])


@given(
    kind=KINDS,
    seed=seeds,
    T=horizons,
    which=st.sampled_from(["elastic net", "ℓ1", "ℓ2", "box"]),
    w=st.floats(1e-4, 10),
    growth=st.floats(0.1, 2),
    step=st.floats(0.2, 5),
)
def test_bounds(kind, seed, T, which, w, growth, step):
    problem = budget_problem(seed)
    if which != "elastic net":
        g = L2Budget(4, 0.7) if which == "ℓ2" else L1Budget(4, 0.7)
        # A box whose centre is not 0, and is infeasible: round 1 is in the theorem too.
        B = Box(np.full(4, -0.7), np.array([3.0, 0.7, 2.0, 1.0])) if which == "box" else Ball(4, 1.0)
        problem = Problem(B, Linear(4, 2.0), g)
    tuned = PenalisedFTRL.for_problem(problem)
    learner = PenalisedFTRL(tuned.prox, GivenScale(step * tuned.scale.step), GrowingPenalty(w * tuned.dual.w_0, growth))
    game = play_linear(problem, learner, kind, T, seed)
    bound = learner.bound(problem, T)
    assert game.loss - best_of(problem.constraint, game.costs.sum(axis=0)) <= float(bound["regret"]) * (1 + 1e-9)
    assert np.maximum(game.values, 0).sum() <= float(bound["hard_violation"]) * (1 + 1e-9) + 1e-12 * T


@pytest.mark.slow
def test_hard_violation_stops_growing_where_that_of_aftrl_goes_on():
    g = ElasticNetBudget(4, budget=1.0)
    problem = Problem(g.enclosing_ball(), Linear(4), g)
    # A tiny w_0, so that there is something to see; the tuned one breaks the budget by nothing here.
    learner = PenalisedFTRL.for_problem(problem, w_0=1e-5, growth=0.5)
    keep = {"record": [100, 1000, 4000], "progress": None}
    trace = run(problem, learner, SwitchingCosts(4), 4000, **keep)
    first, second, third = trace.hard_violation.tolist()
    assert 1 < first <= second
    assert third == pytest.approx(second, abs=1e-9)
    assert third <= float(learner.bound(problem, 4000)["hard_violation"])
    growing = run(problem, AFTRL.for_problem(problem), SwitchingCosts(4), 4000, **keep).hard_violation
    assert growing[2] > 1.5 * growing[1]


def test_the_tuned_bound_is_three_times_D_for_any_horizon():
    problem = budget_problem(1)
    violation = PenalisedFTRL.for_problem(problem).bound(problem, [10**3, 10**12])["hard_violation"]
    assert violation[0] < violation[1]
    assert violation[1] == pytest.approx(3 * problem.constants.constraint_bound, rel=1e-5)


def test_iterates_stay_sparse_and_within_the_budget():
    problem = Problem(Ball(20, 1.0), Linear(20), L1Budget(20, budget=1.0))
    learner = PenalisedFTRL.for_problem(problem)
    trace = run(problem, learner, RandomCosts(20), 500)
    assert np.count_nonzero(trace.state.x) < 20
    assert float(trace.largest_violation[-1]) <= 1e-12


def test_a_heavy_penalty_is_ftrl_on_the_budget_itself():
    problem = Problem(Ball(3, 2.0), Linear(3), L2Budget(3, budget=0.5))
    game = play_linear(problem, PenalisedFTRL.for_problem(problem, w_0=1e9), "switching", 100, seed=2)
    z = np.zeros(3)
    for t, (decision, cost) in enumerate(zip(game.decisions, game.costs, strict=True), start=1):
        np.testing.assert_allclose(decision, Ball(3, 0.5).project(-2.0 / np.sqrt(t) * z), atol=1e-12)
        z = z + cost


@pytest.mark.parametrize(
    ("changed", "argument"), [({"w_0": 0.0}, "w_0"), ({"growth": 0.0}, "growth"), ({"w_0": np.inf}, "w_0")]
)
def test_bad_input_is_refused(changed, argument):
    with pytest.raises(InputError) as refused:
        PenalisedFTRL.for_problem(budget_problem(1), **changed)
    assert refused.value.argument == argument
