"""Penalties cλ² on the multiplier: those that Table 1 admits, and their bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, InputError, Problem, observe
from longterm.errors import ScheduleError
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear
from longterm.problems.sets import Box
from longterm.theory.conditions import check_conditions
from longterm.theory.paper import lemma_5
from longterm.theory.schedules import ConstantSchedule, ConvexSchedule
from longterm.theory.step_sums import step_sums
from opponents import KINDS, best_in_box, play_linear

CONSTANTS = two_dimensional().constants
TABLE_1 = ConvexSchedule(CONSTANTS.diameter, CONSTANTS.gradient_bound)


def test_a_round_by_hand():
    problem = two_dimensional()
    learner = AOGD(problem.enclosing_set, ConstantSchedule(theta=0.5, eta=0.5, mu=0.4), 0.3)
    state = learner.init()._replace(multiplier=np.asarray(2.0), x=np.array([0.5, 0.0]))
    after = learner.tell(state, observe(problem, state.x, [np.array([1.0, 0.0])]))
    np.testing.assert_allclose(after.x, [0.5 - 0.5 * (-0.5 + 2.0), 0.0])
    # 2cλ = 0.6 · 2 = 1.2: λ⁺ = 2 + 0.4 (¼ − ½ · 1.2).
    assert float(after.multiplier) == pytest.approx(2 + 0.4 * (0.25 - 0.6))


@pytest.mark.parametrize(("c", "holds"), [(0.249, False), (0.25, True), (0.4, True), (0.5, True), (0.501, False)])
def test_squares_that_table_1_admits(c, holds):
    checked = check_conditions(TABLE_1, 500, penalty=c)
    assert checked.hold is holds
    assert checked.c1.holds
    if not holds:
        assert checked.c2.failing_round == 2
        with pytest.raises(ScheduleError, match=f"C2 .* c = {c}"):
            checked.require()


@pytest.mark.parametrize(("c", "beta", "holds"), [(0.25, 0.5, True), (0.25, 0.45, False), (0.35, 0.3, True)])
def test_squares_also_need_two_c_to_be_at_least_one_minus_beta(c, beta, holds):
    schedule = ConvexSchedule(CONSTANTS.diameter, CONSTANTS.gradient_bound, beta)
    checked = check_conditions(schedule, 500, penalty=c)
    assert checked.c2.holds
    assert checked.c1.holds is holds
    bound = AOGD.for_problem(two_dimensional(), penalty=c, beta=beta).bound(two_dimensional(), 500)
    assert bool(bound) is holds
    assert holds or "C1" in bound.reason


@pytest.mark.parametrize("c", [0.25, 0.3, 0.5])
def test_the_violation_is_the_smallest_bound_over_all_multipliers(c):
    """Every λ > 0 has Σ g(x_t) ≤ (𝓡 + FT + S_θ cλ² + λ²(1/μ_1 − 2cθ_1)/2)/λ; Lemma 5 takes the smallest."""
    T, first = 300, TABLE_1.at(np.asarray(1), np.zeros(1))
    regret, violation = (float(part) for part in lemma_5(TABLE_1, CONSTANTS, T, penalty=c))
    tried = np.geomspace(1e-3, 1e3, 20001)
    sums = step_sums(TABLE_1, T)
    cost = sums.theta * c * tried**2 + (1 / first.mu - 2 * c * first.theta) * tried**2 / 2
    assert violation == pytest.approx(np.min((regret + CONSTANTS.loss_range * T + cost) / tried), rel=1e-6)


@given(kind=KINDS, seed=st.integers(0, 10**6), T=st.integers(1, 150), c=st.floats(0.25, 0.5))
def test_the_bound_holds(kind, seed, T, c):
    rng = np.random.default_rng(seed)
    row = rng.standard_normal((1, 3))
    offset = row @ rng.uniform(-0.8, 0.8, 3)
    problem = Problem(Box.cube(3, -1.0, 1.0), Linear(3, 2.0), Affine(row, offset))
    learner = AOGD.for_problem(problem, penalty=c)
    game = play_linear(problem, learner, kind, T, seed)
    bound = learner.bound(problem, T)
    regret = game.loss - best_in_box(-np.ones(3), np.ones(3), row, offset, game.costs.sum(axis=0))
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert game.values.sum() <= float(bound["signed_violation"]) * (1 + 1e-9)


def test_the_lightest_square_pays_by_the_root_of_two():
    heavy, light = (lemma_5(TABLE_1, CONSTANTS, 10**5, penalty=c) for c in (0.5, 0.25))
    assert float(light.regret) == float(heavy.regret)
    assert 1.38 < float(heavy.violation / light.violation) < 2**0.5


def test_invalid_penalties_are_refused():
    for penalty in (0.0, -0.5, np.array([0.3, 0.5])):
        with pytest.raises(InputError, match="penalty"):
            AOGD.for_problem(two_dimensional(), penalty=penalty)


def test_grids_of_schedules_have_a_bound_each():
    grid = ConvexSchedule(CONSTANTS.diameter, CONSTANTS.gradient_bound, np.array([0.6, 0.7]))
    each = [ConvexSchedule(CONSTANTS.diameter, CONSTANTS.gradient_bound, beta) for beta in (0.6, 0.7)]
    singles = [lemma_5(one, CONSTANTS, 50, penalty=0.3).violation for one in each]
    np.testing.assert_allclose(lemma_5(grid, CONSTANTS, 50, penalty=0.3).violation, singles)
