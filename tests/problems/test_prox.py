"""Proximal steps in closed form: against CVXPY, their optimality conditions, and exact zeros."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, InputError, Problem, run
from longterm.learners import AFTRL, PenalisedFTRL, ProximalAOGD
from longterm.learners.interface.needs import Need
from longterm.problems.constraints import (
    Affine,
    CustomConstraint,
    DoublyStochastic,
    ElasticNetBudget,
    L1Budget,
    L2Budget,
    Maximum,
    Stack,
    VaryingAffine,
)
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box, Simplex
from longterm.problems.streams import RandomCosts

D = 5


def cases():
    """A constraint on a set, and the same two in CVXPY's words."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((3, D)), rng.uniform(0, 0.5, 3)
    low, high = np.array([-2.0, 0.1, -1.0, -1.0, -3.0]), np.array([-0.3, 2.0, 1.0, 0.5, -0.1])
    return {
        "elastic net, ball": (ElasticNetBudget(D, 1.2, l1=0.7, l2=1.3), Ball(D, 0.9)),
        "elastic net, box": (ElasticNetBudget(D, 1.2, l1=0.7, l2=1.3), Box(low, high)),
        "ℓ1, ball": (L1Budget(D, 1.0), Ball(D, 1.0)),
        "pure ridge, ball": (ElasticNetBudget(D, 1.2, l1=0.0, l2=1.0), Ball(D, 2.0)),
        "ℓ2, ball": (L2Budget(D, 0.8), Ball(D, 1.1)),
        "affine, ball": (Affine(A, b), Ball(D, 0.9, centre=np.linspace(-1, 1, D))),
        "affine, box": (Affine(A, b), Box(low, high)),
        "affine, simplex": (Affine(A, b), Simplex(D, total=2.0)),
    }


def in_cvxpy(constraint, over):
    """(x, the vector of g_j, what holds x in B)."""
    cp = pytest.importorskip("cvxpy", reason="the closed forms are checked by the extra `experiments`")
    x = cp.Variable(D)
    if isinstance(constraint, ElasticNetBudget):
        g = cp.hstack([constraint.l1 * cp.norm1(x) + constraint.l2 / 2 * cp.sum_squares(x) - constraint.budget])
    elif isinstance(constraint, L2Budget):
        g = cp.hstack([cp.norm(x) - constraint.budget])
    else:
        g = constraint.matrix @ x - constraint.limit
    if isinstance(over, Ball):
        return x, g, [cp.norm(x - over.centre) <= over.radius]
    if isinstance(over, Box):
        return x, g, [x >= over.lower, x <= over.upper]
    return x, g, [x >= 0, cp.sum(x) == over.total]


def assert_solves(found, x, objective, inside, over):
    """As good as the solver's point, and near it: the objective is strongly convex, the solver exact to about 1e-8."""
    import cvxpy as cp

    assert bool(over.contains(found))
    best = cp.Problem(cp.Minimize(objective), inside).solve(solver="CLARABEL")
    np.testing.assert_allclose(found, x.value, atol=3e-4)
    x.value = found
    assert float(objective.value) <= best + 1e-7


@pytest.mark.parametrize("case", cases())
def test_the_argmin_agrees_with_a_solver(case):
    constraint, over = cases()[case]
    x, g, inside = in_cvxpy(constraint, over)
    import cvxpy as cp

    rng, prox = np.random.default_rng(1), constraint.prox(over)
    for scale in (0.3, 1.0, 4.0):
        z, a = scale * rng.standard_normal(D), rng.uniform(0.3, 3)
        weights = rng.uniform(0, 1.5, constraint.count)
        found = prox.argmin(z, weights, np.asarray(a))
        assert_solves(found, x, z @ x + weights @ g + a / 2 * cp.sum_squares(x), inside, over)


@pytest.mark.parametrize("case", ["elastic net, ball", "ℓ1, ball", "pure ridge, ball", "ℓ2, ball"])
def test_the_penalised_argmin_agrees_with_a_solver(case):
    constraint, _ = cases()[case]
    over = Ball(D, 2.0)
    x, g, inside = in_cvxpy(constraint, over)
    import cvxpy as cp

    rng, prox = np.random.default_rng(2), constraint.prox(over)
    assert prox.set_holds_budget
    for scale, W in ((0.2, 1.0), (4.0, 0.7), (4.0, 50.0)):
        z, a = scale * rng.standard_normal(D), rng.uniform(0.3, 3)
        weight = np.minimum(prox.least_weight(z, np.asarray(a)), W)
        found = prox.argmin(z, weight[None], np.asarray(a))
        objective = z @ x + W * cp.sum(cp.pos(g)) + a / 2 * cp.sum_squares(x)
        assert_solves(found, x, objective, inside, over)


weights_of_norms = st.sampled_from([(1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.3, 2.5)])


@given(
    norms=weights_of_norms,
    seed=st.integers(0, 10**6),
    d=st.integers(1, 40),
    scale=st.sampled_from([1e-3, 0.3, 1.0, 10.0, 1e4]),
    a=st.floats(0.01, 100),
    ties=st.booleans(),
)
def test_the_least_weight_is_the_root(norms, seed, d, scale, a, ties):
    g = ElasticNetBudget(d, 0.9, *norms)
    prox = g.prox(g.enclosing_ball())
    z = scale * np.random.default_rng(seed).standard_normal(d)
    z = np.sign(z) * scale if ties else z
    weight = prox.least_weight(z, np.asarray(a))
    here = float(g.values(prox.argmin(z, weight[None], np.asarray(a)))[0])
    rounding = 1e-12 + 1e-15 * np.abs(z).sum() / a  # that of x = (z − ν)/a itself
    if weight == 0:
        assert here <= rounding
    else:
        assert abs(here) <= rounding
        little = np.asarray(weight * (1 - 1e-6))
        unprojected = ElasticNetBudget(d, 0.9, *norms).prox(Ball(d, 1e9)).argmin(z, little[None], np.asarray(a))
        assert float(g.values(unprojected)[0]) > 0  # and no smaller weight would do


def test_the_root_by_hand():
    # ρ = 1, a = 1, z = (−3, 2, ½): at ν = 3/2 x = (3/5, −1/5, 0), and 4/5 + ½ · 2/5 = 1.
    g = ElasticNetBudget(3, budget=1.0)
    prox, z = g.prox(g.enclosing_ball()), np.array([-3.0, 2.0, 0.5])
    assert float(prox.least_weight(z, np.asarray(1.0))) == pytest.approx(1.5, abs=1e-14)
    x = prox.argmin(z, np.array([1.5]), np.asarray(1.0))
    np.testing.assert_allclose(x, [0.6, -0.2, 0.0], atol=1e-15)
    assert x[2] == 0.0


@pytest.mark.parametrize("case", cases())
def test_batches_other_libraries_and_dtypes(case):
    constraint, over = cases()[case]
    prox, rng = constraint.prox(over), np.random.default_rng(3)
    z, weights = rng.standard_normal((2, 3, D)), rng.uniform(0, 1, (2, 3, constraint.count))
    a = rng.uniform(0.5, 2, (2, 3))
    together = prox.argmin(z, weights, a)
    one = prox.argmin(z[1, 2], weights[1, 2], a[1, 2])
    np.testing.assert_allclose(together[1, 2], one, atol=1e-14)
    strict = prox.argmin(*(array_api_strict.asarray(array) for array in (z, weights, a)))
    np.testing.assert_allclose(np.asarray(strict), together, atol=1e-14)
    single = [np.asarray(array, dtype=np.float32) for array in (z, weights, a)]
    assert prox.argmin(*single).dtype == np.float32
    if hasattr(prox, "least_weight"):
        assert prox.least_weight(single[0], single[2]).dtype == np.float32
        strict_weight = prox.least_weight(array_api_strict.asarray(z), array_api_strict.asarray(a))
        np.testing.assert_allclose(np.asarray(strict_weight), prox.least_weight(z, a), atol=1e-12)


@pytest.mark.parametrize("case", cases())
def test_the_norm_of_the_values_is_bounded(case):
    constraint, over = cases()[case]
    values = constraint.values(over.sample(np.random.default_rng(4), 3000))
    bound = constraint.prox(over).values_norm_bound()
    assert np.linalg.norm(values, axis=-1).max() <= bound * (1 + 1e-9)
    assert bound <= np.sqrt(constraint.count) * constraint.value_bound(over) * (1 + 1e-9)


def test_who_has_a_prox_and_who_has_not():
    affine, ball = Affine(np.ones((1, D)), [1.0]), Ball(D)
    away = Ball(D, centre=np.ones(D))
    assert Stack([affine, affine]).prox(away) is not None
    assert DoublyStochastic(3).prox(Ball(9)) is not None
    custom = CustomConstraint(D, lambda x: x[..., 0] - 1, lambda x: x, 9.0, 9.0)
    for none in (
        ElasticNetBudget(D, 1.0).prox(away),
        L2Budget(D, 1.0).prox(Box.cube(D, -1.0, 1.0)),
        VaryingAffine(D, 1, 1.0, 1.0).prox(ball),
        Stack([affine, L1Budget(D, 1.0)]).prox(ball),
        Maximum([affine, affine], over=ball).prox(ball),
        custom.prox(ball),
    ):
        assert none is None


@pytest.mark.parametrize("make", [AFTRL.for_problem, ProximalAOGD.for_problem])
def test_problems_without_a_prox_are_refused_before_round_1(make):
    ball = Ball(D, centre=np.ones(D))
    problem = Problem(ball, Linear(D), ElasticNetBudget(D, 1.0))
    with pytest.raises(InputError, match=Need.PROX.value):
        make(problem)
    varying = Problem(ball, Linear(D), VaryingAffine(D, 1, 1.0, 1.0))
    with pytest.raises(InputError, match=Need.FIXED_CONSTRAINT.value):
        make(varying)


@pytest.mark.parametrize(
    ("over", "constraint"),
    [
        (Ball(D, 0.3), ElasticNetBudget(D, 1.0)),  # {g ≤ 0} sticks out of B
        (Box.cube(D, -0.5, 2.0), L1Budget(D, 1.0)),
        (Ball(D), Affine(np.ones((1, D)), [0.5])),
    ],
)
def test_penalised_ftrl_refuses_problems_without_a_root(over, constraint):
    problem = Problem(over, Linear(D), constraint)
    with pytest.raises(InputError, match=Need.PENALTY_PROX.value):
        PenalisedFTRL.for_problem(problem)
    AFTRL.for_problem(problem)  # needs less


@pytest.mark.parametrize("make", [AFTRL.for_problem, ProximalAOGD.for_problem, PenalisedFTRL.for_problem])
def test_a_learner_made_for_another_constraint_is_refused(make):
    ours, theirs = (Problem(Ball(D, 2.0), Linear(D), L1Budget(D, budget)) for budget in (1.0, 1.5))
    with pytest.raises(InputError, match="another constraint"):
        run(theirs, make(ours), RandomCosts(D), 5)
    same = Problem(Ball(D, 2.0), Linear(D), L1Budget(D, 1.0))
    run(same, make(ours), RandomCosts(D), 5)
    run(theirs, AOGD.for_problem(ours), RandomCosts(D), 5)
