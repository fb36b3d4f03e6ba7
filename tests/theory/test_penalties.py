"""Penalties φ: admissible ones, equality with A-OGD for λ²/2, and the bound for others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, InputError, Problem, observe, run
from longterm.constraints import Affine
from longterm.errors import ScheduleError
from longterm.losses import Linear
from longterm.problems import two_dimensional
from longterm.sets import Box
from longterm.streams import RandomCosts
from longterm.theory.paper import lemma_5
from longterm.theory.penalties import QUADRATIC, Penalty, check_penalty
from longterm.theory.schedules import ConstantSchedule, ConvexSchedule
from longterm.theory.step_sums import step_sums
from opponents import KINDS, best_in_box, play_linear

CONSTANTS = two_dimensional().constants
TABLE_1 = ConvexSchedule(CONSTANTS.diameter, CONSTANTS.gradient_bound)


def square(c):
    return Penalty(lambda u: c * u**2, lambda u: 2 * c * u, strong_convexity=2 * c)


def bent(a, b):
    """a λ² up to 1, then steeper by degrees: (a + b) λ² far out; convex, between the two."""
    return Penalty(
        lambda u: a * u**2 + b * np.maximum(u - 1, 0) ** 2, lambda u: 2 * a * u + 2 * b * np.maximum(u - 1, 0), 2 * a
    )


def test_the_half_square_is_the_paper_s_rule():
    problem = Problem(Box.cube(3, -1.0, 1.0), Linear(3), Affine([[1.0, 1.0, 0.0]], [-0.5]))
    plain, squared = AOGD.for_problem(problem), AOGD.for_problem(problem, penalty=square(0.5))
    ours, theirs = (run(problem, made, RandomCosts(3), 300) for made in (squared, plain))
    np.testing.assert_array_equal(ours.cumulative_loss, theirs.cumulative_loss)
    np.testing.assert_array_equal(ours.multiplier, theirs.multiplier)
    bound, lemma = squared.bound(problem, [7, 300]), lemma_5(plain.schedule, problem.constants, [7, 300])
    np.testing.assert_allclose(bound["regret"], lemma.regret)
    np.testing.assert_allclose(bound["signed_violation"], lemma.violation, rtol=1e-9)
    assert plain.penalty.is_half_square
    assert not squared.penalty.is_half_square  # a function of one's own: nobody can tell
    closed = plain.bound(problem, [7, 300])  # the closed form of Theorem 1
    assert np.all(closed["regret"] >= lemma.regret)


def test_a_round_by_hand():
    problem = two_dimensional()
    learner = AOGD(problem.enclosing_set, ConstantSchedule(theta=0.5, eta=0.5, mu=0.4), bent(0.3, 0.1))
    state = learner.init()._replace(multiplier=np.asarray(2.0), x=np.array([0.5, 0.0]))
    after = learner.tell(state, observe(problem, state.x, [np.array([1.0, 0.0])]))
    np.testing.assert_allclose(after.x, [0.5 - 0.5 * (-0.5 + 2.0), 0.0])
    # φ'(2) = 0.6 · 2 + 0.2 · 1 = 1.4: λ⁺ = 2 + 0.4 (¼ − ½ · 1.4).
    assert float(after.multiplier) == pytest.approx(2 + 0.4 * (0.25 - 0.7))


@pytest.mark.parametrize(("c", "holds"), [(0.249, False), (0.25, True), (0.4, True), (0.5, True), (0.501, False)])
def test_squares_that_table_1_admits(c, holds):
    checked = check_penalty(square(c), TABLE_1, CONSTANTS, 500)
    assert checked.hold is holds
    assert checked.c1.holds
    if not holds:
        assert checked.c2.failing_round == 2
        with pytest.raises(ScheduleError, match="C2'"):
            checked.require()


@pytest.mark.parametrize(("c", "beta", "holds"), [(0.25, 0.5, True), (0.25, 0.45, False), (0.35, 0.3, True)])
def test_squares_also_need_two_c_to_be_at_least_one_minus_beta(c, beta, holds):
    checked = check_penalty(
        square(c), ConvexSchedule(CONSTANTS.diameter, CONSTANTS.gradient_bound, beta), CONSTANTS, 500
    )
    assert checked.c2.holds
    assert checked.c1.holds is holds
    assert bool(AOGD.for_problem(two_dimensional(), penalty=c, beta=beta).bound(two_dimensional(), 500)) is holds


@pytest.mark.parametrize(
    "penalty",
    [
        Penalty(lambda u: u**4 / 4, lambda u: u**3),
        Penalty(lambda u: u**1.5, lambda u: 1.5 * u**0.5),
        Penalty(lambda u: np.sqrt(1 + u**2) - 1, lambda u: u / np.sqrt(1 + u**2)),
        Penalty(lambda u: u, lambda u: 1 + 0 * u),
    ],
)
def test_other_growth_is_refused(penalty):
    """Every admissible φ lies between two quadratics: faster and slower growth fail C2', and so does φ'(0) > 0."""
    assert not check_penalty(penalty, TABLE_1, CONSTANTS, 500).c2.holds


@given(a=st.floats(0.05, 0.9), b=st.floats(0.0, 0.6))
def test_admissible_penalties_lie_between_two_quadratics(a, b):
    penalty = bent(a, b)
    if check_penalty(penalty, TABLE_1, CONSTANTS, 50).c2.holds:
        tried = np.linspace(0, CONSTANTS.constraint_bound * float(step_sums(TABLE_1, 50).mu), 50)
        assert np.all(penalty.value(tried) >= tried**2 / 6 - 1e-12)
        assert np.all(penalty.value(tried) <= 0.75 * tried**2 + 1e-12)


def test_c1_knows_how_convex_a_penalty_is():
    flat = Penalty(lambda u: 0.4 * u**2, lambda u: 0.8 * u)  # κ left at 0: Table 1's falling μ_t is not covered
    checked = check_penalty(flat, TABLE_1, CONSTANTS, 100)
    assert not checked.c1.holds
    assert checked.c2.holds
    constant = ConstantSchedule(theta=1.0, eta=0.05, mu=0.1, gradient_bound=2.0)
    assert check_penalty(flat, constant, CONSTANTS, 100).hold  # a constant μ needs no κ
    bound = AOGD.for_problem(two_dimensional(), penalty=flat).bound(two_dimensional(), 100)
    assert not bound
    assert "C1'" in bound.reason


@given(kind=KINDS, seed=st.integers(0, 10**6), T=st.integers(2, 150), c=st.floats(0.25, 0.5), b=st.floats(0.0, 0.02))
def test_the_bound_holds(kind, seed, T, c, b):
    rng = np.random.default_rng(seed)
    row = rng.standard_normal((1, 3))
    offset = row @ rng.uniform(-0.8, 0.8, 3)
    problem = Problem(Box.cube(3, -1.0, 1.0), Linear(3, 2.0), Affine(row, offset))
    schedule = AOGD.for_problem(problem).schedule
    admitted = check_penalty(bent(c, b), schedule, problem.constants, T).hold
    learner = AOGD.for_problem(problem, penalty=bent(c, b) if admitted else square(c))
    game = play_linear(problem, learner, kind, T, seed)
    bound = learner.bound(problem, T)
    regret = game.loss - best_in_box(-np.ones(3), np.ones(3), row, offset, game.costs.sum(axis=0))
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert game.values.sum() <= float(bound["signed_violation"]) * (1 + 1e-9)


def test_the_lightest_square_pays_by_the_root_of_two():
    learners = [AOGD.for_problem(two_dimensional(), penalty=square(c)) for c in (0.5, 0.25)]
    heavy, light = (learner.bound(two_dimensional(), 10**5) for learner in learners)
    assert float(light["regret"]) == float(heavy["regret"])
    assert 1.38 < float(heavy["signed_violation"] / light["signed_violation"]) < 2**0.5


@pytest.mark.parametrize(
    ("value", "derivative", "kappa"),
    [
        (lambda u: 1 + u**2, lambda u: 2 * u, 0.0),  # φ(0) ≠ 0
        (lambda u: u**2, lambda u: 3 * u, 0.0),  # not its derivative
        (lambda u: np.sqrt(u), lambda u: 0.5 / np.sqrt(np.maximum(u, 1e-9)), 0.0),  # not convex
        (lambda u: u**2 / 2, lambda u: u, 1.5),  # κ too large
        (lambda u: np.where(u > 1, np.inf, u), lambda u: 1 + 0 * u, 0.0),  # not finite
        (lambda u: np.asarray(0.0), lambda u: u, 0.0),  # not for arrays
    ],
)
def test_invalid_penalties_are_refused(value, derivative, kappa):
    with pytest.raises(InputError, match="penalty"):
        Penalty(value, derivative, kappa)


def test_grids_are_refused():
    grid = ConvexSchedule(2.0, 1.0, np.array([0.3, 0.5]))
    with pytest.raises(InputError, match="one at a time"):
        check_penalty(QUADRATIC, grid, CONSTANTS, 10)
