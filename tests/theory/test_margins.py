"""Slater points and margins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from hypothesis_settings import examples
from longterm import InputError, SlaterPoint, find_slater_point
from longterm.learners import NoViolationAOGD, NoViolationMahdaviOGD
from longterm.learners.tightened.mahdavi_no_violation import fixed_point
from longterm.problems import budgeted_logistic, doubly_stochastic, two_dimensional
from longterm.problems.constants import Constants
from longterm.problems.constraints import Affine, L2Budget, Maximum
from longterm.problems.sets import Ball
from longterm.problems.slater import require_slack
from longterm.theory.margin_sizes import allowed_violation, coefficient, exact_margin, needed_horizon
from longterm.theory.paper import lemma_5
from longterm.theory.schedules import ConstantSchedule, ConvexSchedule, StronglyConvexSchedule
from zoo import D, sets

SETS = sets()
seeds = st.integers(0, 10**6)

# --- Slater points ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
@examples(12)
@given(seed=seeds, count=st.integers(1, 4))
def test_a_slater_point_is_found_and_is_nearly_the_best(name, seed, count):
    rng, B = np.random.default_rng(seed), SETS[name]
    matrix = rng.standard_normal((count, D))
    inside = B.sample(rng, 4).mean(axis=0)
    slack = rng.uniform(0.2, 1.0)
    g = Affine(matrix, matrix @ inside + slack)
    point = find_slater_point(g, B)
    assert bool(B.contains(point.x))
    assert float(g.values(point.x).max()) == pytest.approx(-point.epsilon)
    assert point.epsilon >= slack * 0.97
    if name == "box":
        rows = np.hstack([matrix, np.ones((count, 1))])  # max s subject to A x + s ≤ b
        bounds = [*zip(B.lower, B.upper, strict=True), (None, None)]
        best = linprog([0.0] * D + [-1.0], A_ub=rows, b_ub=g.limit, bounds=bounds).x[-1]
        assert 0.9 * best <= point.epsilon <= best * (1 + 1e-9)


def test_a_budget_has_most_slack_at_zero():
    problem = budgeted_logistic(np.ones((3, 4)), budget=1.5)
    point = find_slater_point(problem.constraint, problem.enclosing_set)
    assert (point.epsilon, point.x.tolist()) == (1.5, [0.0] * 4)


@pytest.mark.parametrize("enclosing", ["ball", "rows"])
def test_equalities_have_no_interior(enclosing):
    problem = doubly_stochastic(3, enclosing)
    with pytest.raises(InputError, match=r"no interior: constraints .* are opposite") as refused:
        NoViolationAOGD.for_problem(problem, horizon=1000, margin="theorem")
    assert "equality" in refused.value.remedy
    with pytest.raises(InputError, match="no interior"):
        NoViolationMahdaviOGD.for_problem(problem, horizon=1000)


@pytest.mark.slow
def test_opposite_constraints_with_room_between_them_are_no_equality():
    slab = Affine([[2.0, 0.0], [-1.0, 0.0]], [1.0, 0.1])  # −0.1 ≤ x_1 ≤ ½
    point = find_slater_point(slab, Ball(2))
    assert 0.19 <= point.epsilon <= 0.4  # max min(1 − 2x, 0.1 + x) = 0.4 at x = 0.3
    assert find_slater_point(Affine([[2.0, 0.0], [-1.0, 0.0]], [1.0, -0.2]), Ball(2)).epsilon > 0.1
    with pytest.raises(InputError, match="no interior"):
        find_slater_point(Affine([[2.0, 0.0], [-1.0, 0.0]], [1.0, -0.5]), Ball(2))


@pytest.mark.slow
def test_the_error_reports_the_best_slack_found():
    hidden = Maximum([Affine([[1.0, 0.0], [-1.0, 0.0]], [0.0, 0.0])], over=Ball(2))
    with pytest.raises(InputError, match="no strictly feasible point was found"):
        find_slater_point(hidden, Ball(2))


def test_a_slack_of_rounding_size_is_no_interior():
    with pytest.raises(InputError, match="no strictly feasible point"):
        find_slater_point(L2Budget(2, budget=1e-12), Ball(2))


def test_a_users_point_is_checked():
    problem = two_dimensional()
    g, B = problem.constraint, problem.enclosing_set
    with pytest.raises(InputError, match=r"has slack 0\.75 here, but 0\.8 was declared"):
        require_slack(SlaterPoint(0.8, np.array([-0.5, 0.0])), g, B)
    with pytest.raises(InputError, match="D"):
        NoViolationAOGD.for_problem(problem, horizon=1000, margin="theorem", slater=SlaterPoint(3.0))
    with pytest.raises(InputError, match="epsilon"):
        SlaterPoint(0.0)


# --- margins ------------------------------------------------------------------------------------------------


FACTS = {
    "radius": 1.0,
    "diameter": 2.0,
    "loss_gradient_bound": 1.0,
    "constraint_gradient_bound": 1.0,
    "constraint_bound": 1.5,
    "loss_range": 2.0,
}


def constants(**changed):
    return Constants(**{**FACTS, **changed})


def test_c1_and_c0_by_hand():
    # R = G = 1, F = 2, D = 3/2, β = 2/3: K = 2 + 4·2.25/4 + 3 = 7.25, c_1 = √(24 · 9.25 · 3)
    schedule = ConvexSchedule(2.0, 1.0, 2 / 3)
    assert coefficient(schedule, constants()) == pytest.approx(np.sqrt(666))
    assert needed_horizon(schedule, constants(), 0.5) == pytest.approx((2 * np.sqrt(666)) ** 3)
    # σ = ½, G = 1: θ_1 = 12, K = 2 + 4·2.25/8 = 3.125, c_1 = √(48 · 5.125 · 3)
    strong = StronglyConvexSchedule(1.0, 0.5, 2 / 3)
    assert coefficient(strong, constants(strong_convexity=0.5)) == pytest.approx(np.sqrt(738))


def test_a_horizon_that_overflows_is_refused():
    schedule = ConvexSchedule(2.0, 1.0, 0.01)
    with pytest.raises(InputError, match=r"horizon c_0 .* not finite"):
        needed_horizon(schedule, constants(), 1e-6)
    problem = two_dimensional()
    made = NoViolationAOGD.for_problem(problem, horizon=10**6, margin=1e-3, beta=0.004)
    assert made.needed_horizon is None
    with pytest.raises(InputError, match="not finite"):
        NoViolationAOGD.for_problem(problem, horizon=100, margin="theorem", beta=0.004)


@given(beta=st.floats(0.2, 0.9), T=st.integers(60, 20_000), D=st.floats(0.1, 10), F=st.floats(0.01, 10))
def test_the_exact_margin_is_the_fixed_point_and_never_above_the_theorems(beta, T, D, F):
    schedule, facts = ConvexSchedule(2.0, 1.0, beta), constants(constraint_bound=D, loss_range=F)
    gamma = exact_margin(schedule, facts, T)
    assert gamma * T == pytest.approx(float(allowed_violation(schedule, facts, T, gamma)))
    lemma = lemma_5(schedule, constants(constraint_bound=D + gamma, loss_range=F), T)
    assert gamma * T == pytest.approx(float(lemma.violation))
    theorem = coefficient(schedule, facts) * T ** (-beta / 2)
    assert gamma <= theorem or theorem > D  # the closed form is for γ ≤ D


def test_the_exact_margin_is_about_three_times_smaller():
    for beta in (0.5, 2 / 3):
        schedule = ConvexSchedule(2.0, 1.0, beta)
        ratio = coefficient(schedule, constants()) * 1e6 ** (-beta / 2) / exact_margin(schedule, constants(), 10**6)
        assert 2.5 < ratio < 3.5


def test_margins_that_do_not_exist_are_refused():
    with pytest.raises(InputError, match="T² = 9 is not above A"):
        exact_margin(ConvexSchedule(2.0, 1.0, 0.5), constants(), 3)
    with pytest.raises(InputError, match="not of Table 1"):
        coefficient(ConstantSchedule(0.1, 0.1, 0.1), constants())
    with pytest.raises(InputError, match="another gradient bound"):
        coefficient(ConvexSchedule(2.0, 0.5, 0.5), constants())
    with pytest.raises(InputError, match="another diameter"):
        coefficient(ConvexSchedule(1.0, 1.0, 0.5), constants())
    with pytest.raises(InputError, match="another strong convexity"):
        coefficient(StronglyConvexSchedule(1.0, 2.0, 0.5), constants(strong_convexity=1.0))


@given(R=st.floats(0.1, 10), G=st.floats(0.1, 10), D=st.floats(0.1, 10), F=st.floats(0.01, 100))
def test_the_fixed_point_of_theorem_8_solves_both_equations(R, G, D, F):
    a, b = fixed_point(
        constants(radius=R, loss_gradient_bound=G, constraint_gradient_bound=G, constraint_bound=D, loss_range=F)
    )
    assert a == pytest.approx(R * np.sqrt(2 * G**2 + 3 * (D**2 + b**2)), rel=1e-6)
    assert b == pytest.approx(2 * np.sqrt(F * (4 * G**2 * R**2 / a + a / R**2)), rel=1e-6)
