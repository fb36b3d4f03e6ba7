"""Learners without violation: runs that end with Σ g(x_t) ≤ 0 over 20 seeds, and their bounds on any stream."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from leaning import Leaning
from longterm import AOGD, InputError, Problem, SlaterPoint, find_slater_point, run
from longterm.errors import AssumptionWarning
from longterm.learners import DecayingMarginAOGD, DoublingRestarts, NoViolationAOGD, NoViolationMahdaviOGD
from longterm.learners.tightened.mahdavi_no_violation import fixed_point
from longterm.learners.tightened.margins import ConstantMargin, DecayingMargin
from longterm.problems import budgeted_logistic, two_dimensional
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.named.adversarial import late_reversal
from longterm.problems.sets import Ball, Box, Simplex
from longterm.problems.streams import RandomCosts, Replay, ResampledRows
from longterm.problems.streams.costs import SwitchingCosts
from longterm.theory.schedules import ConvexSchedule
from zoo import problems

seeds = st.integers(0, 10**6)


TARGETS = Leaning(2, towards=(1.0, 0.0))

# --- runs: Σ g(x_t) ≤ 0 over 20 seeds, regret under its bound -----------------------------------------------

SIMPLEX = Problem(Simplex(4), Linear(4), Affine([[1.0, 0.0, 0.0, 1.0]], [0.4]), name="simplex")
BOX = Problem(Box.cube(3, -1.0, 1.0), Linear(3), Affine([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]], [0.2, 0.3]), name="box")
rng = np.random.default_rng(3)
FEATURES = rng.standard_normal((40, 5))
LABELS = np.sign(FEATURES @ [2.0, -1.0, 1.0, 0.0, 0.0])  # separable: the losses want a long x
LOGISTIC = budgeted_logistic(FEATURES, budget=1.0)
REVERSAL = late_reversal(epsilon=1.0)
PRODUCT = problems()["maximum on a product"][0]


def best_two_dimensional(stream, T, seed):
    targets = stream.draw(seed, 0, T).loss[0]
    x = np.minimum(targets.mean(axis=0), [0.25, np.inf])
    return 0.5 * ((x - targets) ** 2).sum()


def best_linear_program(problem):
    def best(stream, T, seed):
        total = stream.draw(seed, 0, T).loss[0].sum(axis=0)
        g, B = problem.constraint, problem.enclosing_set
        if isinstance(B, Simplex):
            return linprog(total, A_ub=g.matrix, b_ub=g.limit, A_eq=np.ones((1, 4)), b_eq=[1.0]).fun
        return linprog(total, A_ub=g.matrix, b_ub=g.limit, bounds=np.stack([B.lower, B.upper], axis=1)).fun

    return best


def best_logistic(stream, T, seed):
    """Over many feasible points; the bound holds against each."""
    points = LOGISTIC.enclosing_set.sample(np.random.default_rng(seed), 400)
    points = np.concatenate([points, np.outer(np.linspace(0, 0.35, 50), [2.0, -1.0, 1.0, 0.0, 0.0])])
    points = points[LOGISTIC.constraint.values(points)[:, 0] <= 0]
    counts = np.bincount(stream.drawn(seed, 0, T), minlength=len(FEATURES))
    return min(float(counts @ LOGISTIC.loss.value(x, FEATURES, LABELS)) for x in points)


def best_reversal(stream, T, seed):
    return -abs(stream.draw(seed, 0, T).loss[0].sum())


def best_product(stream, T, seed):
    """Over many feasible points; the bound holds against each."""
    mean = stream.draw(seed, 0, T).loss[0].mean(axis=0)
    points = PRODUCT.enclosing_set.sample(np.random.default_rng(seed), 2000)
    points = points[PRODUCT.constraint.values(points)[:, 0] <= 0]
    nearest = ((points - mean) ** 2).sum(axis=1).min()
    return T / 2 * (nearest + 1 - mean @ mean)  # targets have length 1


PUSHED = {
    "two-dimensional": (two_dimensional(), TARGETS, best_two_dimensional),
    "box": (BOX, Leaning(3, towards=(-0.7, -0.7, 0.0)), best_linear_program(BOX)),
    "box, switching": (BOX, SwitchingCosts(3), best_linear_program(BOX)),
    "simplex": (SIMPLEX, Leaning(4, towards=(-1.0, 0.0, 0.0, 0.0)), best_linear_program(SIMPLEX)),
    "logistic": (LOGISTIC, ResampledRows(FEATURES, LABELS), best_logistic),
    "reversal": (REVERSAL, SwitchingCosts(1), best_reversal),
    "product": (PRODUCT, Leaning(4, towards=(1.0, 0.0, 1.0, 0.0)), best_product),
}


def assert_no_violation(name, learner, T, record=None):
    problem, stream, best = PUSHED[name]
    assert all(assumption.holds for assumption in learner.assumptions)
    engine = "jax" if T > 30_000 and find_spec("jax") else "numpy"
    trace = run(problem, learner, stream, T, seeds=range(20), record=record or [T], engine=engine)
    bound = learner.bound(problem, T)
    assert float(bound["signed_violation"]) <= 1e-9 * T
    assert np.all(trace.signed_violation[-1] <= 0)
    optimum = np.array([best(stream, T, seed) for seed in range(20)])
    assert np.all(trace.cumulative_loss[-1] - optimum <= float(bound["regret"]))
    return trace


@pytest.mark.parametrize(
    ("name", "steps", "T"),
    [
        ("two-dimensional", "convex", 1000),
        ("two-dimensional", "strongly convex", 3000),
        ("box", "convex", 1000),
        ("box, switching", "convex", 1000),
        ("simplex", "convex", 7500),
        ("logistic", "convex", 7500),
        ("reversal", "convex", 1500),
    ],
)
def test_exact_margins_where_their_condition_holds(name, steps, T):
    problem = PUSHED[name][0]
    assert_no_violation(name, NoViolationAOGD.for_problem(problem, horizon=T, steps=steps), T)


@pytest.mark.slow
def test_the_margin_is_needed():
    """The same streams without a margin end above 0: the tests above could fail."""
    for name in ("two-dimensional", "box", "simplex", "logistic"):
        problem, stream, _ = PUSHED[name]
        trace = run(problem, AOGD.for_problem(problem), stream, 1000, seeds=range(20), record=[1000])
        assert np.all(trace.signed_violation[-1] > 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["box", pytest.param("box, switching", marks=pytest.mark.cross), "reversal"])
def test_the_theorems_margin_from_c0_on(name):
    problem = PUSHED[name][0]
    T = int(np.ceil(NoViolationAOGD.for_problem(problem, horizon=10, margin="theorem").needed_horizon))
    assert T <= 200_000
    assert_no_violation(name, NoViolationAOGD.for_problem(problem, horizon=T, margin="theorem"), T)


@pytest.mark.cross
@pytest.mark.parametrize(
    ("name", "steps", "beta"),
    [
        ("two-dimensional", "convex", 2 / 3),
        ("two-dimensional", "strongly convex", 2 / 3),
        ("simplex", "convex", 2 / 3),
        ("logistic", "convex", 0.8),  # at β = 2/3 its c_0 is 231,437
    ],
)
def test_the_theorems_margin_from_a_large_c0_on(name, steps, beta):
    problem, options = PUSHED[name][0], {"steps": steps, "beta": beta, "margin": "theorem"}
    T = int(np.ceil(NoViolationAOGD.for_problem(problem, horizon=10, **options).needed_horizon))
    assert T <= 200_000
    assert_no_violation(name, NoViolationAOGD.for_problem(problem, horizon=T, **options), T)


@pytest.mark.cross
def test_an_exact_margin_where_c0_is_out_of_reach():
    """c_0 is in the millions here, and exact sums do with 10⁵ rounds."""
    rule = AOGD.for_problem(PRODUCT, beta=0.9)
    learner = NoViolationAOGD.for_problem(PRODUCT, horizon=100_000, learner=rule)
    assert learner.needed_horizon > 10**6
    assert_no_violation("product", learner, 100_000)


@pytest.mark.cross
def test_doubling_epochs_end_without_violation():
    problem = PUSHED["box"][0]
    learner = DoublingRestarts.for_problem(problem, of="no_violation_aogd", beta=0.8)
    (_, first), (start, length), _ = learner.epochs(start_of_third := 3 * learner.first_epoch + 1)
    trace = assert_no_violation("box", learner, start_of_third - 1, record=[first, start + 400])
    assert np.all(trace.signed_violation[0] <= 0)
    inside = learner.bound(problem, [first, start + 400, start + length - 1])
    assert np.all(trace.signed_violation[1] <= inside["signed_violation"][1])


@pytest.mark.slow
def test_a_decaying_margin_ends_without_violation():
    problem = PUSHED["box"][0]
    learner = DecayingMarginAOGD.for_problem(problem, beta=0.8)
    horizons = np.array([100, 1000, 2500, 5000, 9000])
    violation = learner.bound(problem, horizons)["signed_violation"]
    assert violation[0] > 0 > violation[-1]  # the guarantee begins somewhere between
    assert_no_violation("box", learner, 9000)


@pytest.mark.slow
def test_convex_ogd_without_violation():
    problem = PUSHED["box"][0]
    b = fixed_point(problem.constants).b
    T = int(np.ceil((b / find_slater_point(problem.constraint, problem.enclosing_set).epsilon) ** 4))
    assert T <= 20_000
    learner = NoViolationMahdaviOGD.for_problem(problem, horizon=T)
    trace = assert_no_violation("box", learner, T)
    stream, best = PUSHED["box"][1:]
    bound = learner.bound(problem, T)
    assert float(bound["signed_violation"]) <= 0
    optimum = np.array([best(stream, T, seed) for seed in range(20)])
    assert np.all(trace.cumulative_loss[-1] - optimum <= float(bound["regret"]))


def test_a_scale_below_one_can_be_enough_on_a_stream():
    """Theory is cautious: with a third of the margin these streams still end without violation."""
    problem, stream, _ = PUSHED["two-dimensional"]
    learner = NoViolationAOGD.for_problem(problem, horizon=2000, scale=0.3)
    with pytest.warns(AssumptionWarning, match="1 ≤ scale"):
        trace = run(problem, learner, stream, 2000, seeds=range(20), record=[2000])
    assert np.all(trace.signed_violation[-1] <= 0)


# --- bounds on any stream, before their guarantee sets in ---------------------------------------------------


def decaying(rule, point, coefficient):
    """A-OGD with γ_t = min(ε, c t^{−β/2})."""
    margin = DecayingMargin(coefficient, rule.schedule.beta / 2, point.epsilon)
    return DecayingMarginAOGD(learner=rule, margin=margin, slater=point)


@given(seed=seeds, rounds=st.integers(1, 120), beta=st.floats(0.1, 0.9), share=st.floats(0.01, 0.9))
def test_bounds_hold_whatever_the_margin(seed, rounds, beta, share):
    rng = np.random.default_rng(seed)
    costs = RandomCosts(3).draw(seed, 0, rounds).loss[0]
    costs[rng.random(rounds) < 0.7] = [-0.6, -0.8, 0.0]  # most of the time out of the set
    stream, point = Replay([costs]), find_slater_point(BOX.constraint, BOX.enclosing_set)
    rule, gamma = AOGD.for_problem(BOX, beta=beta), share * point.epsilon
    best = best_linear_program(BOX)(stream, rounds, 0)
    known = NoViolationAOGD(learner=rule, slater=point, margin=ConstantMargin(gamma), coefficient=3 * gamma)
    for learner in (
        known,
        decaying(rule, point, 3 * gamma),
        DoublingRestarts(known, first_epoch=5),
    ):
        trace, bound = run(BOX, learner, stream), learner.bound(BOX, rounds)
        assert float(trace.cumulative_loss[-1]) - best <= float(bound["regret"]) * (1 + 1e-9)
        assert float(trace.signed_violation[-1]) <= float(bound["signed_violation"]) + 1e-9


def test_the_bound_of_a_decaying_margin_by_hand():
    # β = ½, R = G = 1 (θ_1 = 6, η_t = t^{−½}, μ_t = √t/(6(t + 1))), ε = 1, c = 1.
    schedule, T, epsilon = ConvexSchedule(2.0, 1.0, 0.5), 2, 1.0
    learner = decaying(AOGD(Ball(2), schedule), SlaterPoint(epsilon), 1.0)
    gamma = np.array([1, 2, 3]) ** -0.25
    mu = np.array([1 / 12, np.sqrt(2) / 18])
    steps = 1 / 2 + 2 * (np.sqrt(2) - 1) + (1 + 1 / np.sqrt(2))  # r²/(2η_1) + (Δ²/2) U_η + G² S_η
    moves = 4 / epsilon * ((gamma[0] - gamma[1]) * 1 + (gamma[1] - gamma[2]) * np.sqrt(2))
    regret = steps + mu @ (1.5 + gamma[:2]) ** 2 + moves
    root = np.sqrt(2 * (12 + 6 / np.sqrt(2)) * (regret + 2 * T))  # S_θ + δ_μ = 6 + 6/√2 + 6
    facts = {"radius": 1.0, "diameter": 2.0, "constraint_bound": 1.5, "loss_range": 2.0}  # G = 1
    declared = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]), declared=facts)
    bound = learner.bound(declared, T)
    assert float(bound["regret"]) == pytest.approx(regret + 2 / epsilon * gamma[:2].sum())
    assert float(bound["signed_violation"]) == pytest.approx(root - gamma[:2].sum())


def test_bounds_at_many_rounds_are_those_at_each():
    point = SlaterPoint(2.0)
    rule = AOGD.for_problem(BOX, beta=0.6)
    known = NoViolationAOGD(learner=rule, slater=point, margin=ConstantMargin(0.3), coefficient=1.0)
    for learner in (
        known,
        decaying(rule, point, 1.0),
        DoublingRestarts(known, first_epoch=5),
    ):
        together = learner.bound(BOX, [40, 3, 6, 5])
        for i, T in enumerate((40, 3, 6, 5)):
            alone = learner.bound(BOX, T)
            for measure in ("regret", "signed_violation"):
                assert float(alone[measure]) == pytest.approx(together[measure][i])


def test_the_bounds_of_a_grid_are_those_of_each():
    point, c = SlaterPoint(2.0), BOX.constants

    def made(coefficient, beta):
        rule = AOGD(BOX.enclosing_set, ConvexSchedule(c.diameter, c.gradient_bound, beta))
        margin = ConstantMargin(coefficient / 3)
        known = NoViolationAOGD(learner=rule, slater=point, margin=margin, coefficient=coefficient)
        return known, decaying(rule, point, coefficient), DoublingRestarts(known, first_epoch=5)

    cs, betas = np.array([0.3, 0.9]), np.array([[0.4], [0.5], [0.8]])
    for k, grid in enumerate(made(cs, betas)):
        together = grid.bound(BOX, [7, 30])
        assert together["regret"].shape == (2, 3, 2)
        for i, j in np.ndindex(3, 2):
            alone = made(float(cs[j]), float(betas[i, 0]))[k].bound(BOX, [7, 30])
            for measure in ("regret", "signed_violation"):
                np.testing.assert_allclose(together[measure][:, i, j], alone[measure], rtol=1e-12)
    only_margins = made(cs, 0.6)[0].bound(BOX, 10)["regret"]
    assert only_margins.shape == (2,)


def test_constraints_may_change_where_some_point_keeps_its_slack():
    rng = np.random.default_rng(5)
    T, epsilon = 3000, 0.9
    normals = rng.standard_normal((T, 1, 2)) * 0.3 + [1.0, 0.0]
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, row_norm=1.0, limit_bound=1.0))
    offsets = np.full((T, 1), epsilon)  # at 0 every g_t is −ε
    costs = Leaning(2, towards=(-1.0, 0.0)).draw(0, 0, T).loss[0]
    with pytest.raises(InputError, match="changes from round to round"):
        NoViolationAOGD.for_problem(problem, horizon=T)
    learner = NoViolationAOGD.for_problem(problem, horizon=T, slater=SlaterPoint(epsilon))
    assert all(assumption.holds for assumption in learner.assumptions)
    trace = run(problem, learner, Replay([costs], [normals, offsets]))
    assert float(trace.signed_violation[-1]) <= 0
    # x* = the best of the points that are feasible in every round, here in the direction of the costs
    angle = np.linspace(0, 2 * np.pi, 721)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    reach = epsilon / np.maximum((normals[:, 0] @ points.T).max(axis=0), epsilon)
    best = (costs.sum(axis=0) @ (reach[:, None] * points).T).min()
    assert float(trace.cumulative_loss[-1]) - best <= float(learner.bound(problem, T)["regret"])
