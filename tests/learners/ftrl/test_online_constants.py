"""Learners that find their constants: by hand, their bounds on badly scaled streams, silence at first, scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budget_problems import best_in_budget, budget_problem, horizons, seeds
from longterm import Feedback, InputError, Problem, observe, run
from longterm._base.states import state_leaves
from longterm.learners import AdaGradAOGD, AdaptiveAFTRL, AdaptivePenalisedFTRL
from longterm.learners.ftrl.ftrl_scales import OnlineScale
from longterm.learners.ftrl.growing_penalty import GrowingPenalty
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.problems import budgeted_logistic
from longterm.problems.constraints import Affine, L1Budget, L2Budget, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import Replay, ResampledRows
from opponents import KINDS, best_in_box, play_linear

LEARNERS = (AdaptiveAFTRL, AdaptivePenalisedFTRL, AdaGradAOGD)
each_learner = pytest.mark.parametrize("made", LEARNERS)


MEASURE = {
    AdaptiveAFTRL: "long_term_violation",
    AdaptivePenalisedFTRL: "hard_violation",
    AdaGradAOGD: "signed_violation",
}


def bound_of(learner, problem, state, loss_range=None):
    """Regret and violation, for losses of another range than the problem's where one is given."""
    if loss_range is not None:
        declared = {"loss_range": loss_range}
        problem = Problem(problem.enclosing_set, problem.loss, problem.constraint, declared=declared)
    bound = learner.bound(problem, int(np.max(state.round)) - 1, state=state)
    assert set(bound) == {"regret", MEASURE[type(learner)]}
    return float(bound["regret"]), float(bound[MEASURE[type(learner)]])


def told(gradient, constraint, constraint_gradient=(0.0, 0.0)):
    return Feedback(np.array(gradient), np.asarray(constraint), np.array(constraint_gradient))


# --- by hand ------------------------------------------------------------------------------------------------


def test_first_rounds_of_aftrl_by_hand():
    g = L1Budget(2, budget=1.0)
    learner = AdaptiveAFTRL(g.prox(Ball(2, 2.0)), OnlineScale(), Multiplier(theta_0=3.0, beta=0.5))
    state = learner.tell(learner.init(), told([-3.0, 4.0], -1.0))
    # V_1 = 25, a_2 = 5/2, λ_2 = 0: x_2 = (3, −4)/2.5, on the ball. M_1 = 5: θ_1 = 3/5, 1/μ_1 = 6/5.
    np.testing.assert_allclose(state.x, [1.2, -1.6])
    assert (float(state.multiplier[0]), float(state.dual.theta_sum)) == (0.0, pytest.approx(1.2))
    state = learner.tell(state, told([0.0, -12.0], 1.8))
    # M_2 = 12: θ_2 = 1/(4√2), μ_2 = 4√2/3, λ_3 = 2.4√2; V_2 = 169, a_3 = 6.5; −z_2 = (3, 8).
    assert float(state.multiplier[0]) == pytest.approx(2.4 * np.sqrt(2))
    np.testing.assert_allclose(state.x, [0.0, (8 - 2.4 * np.sqrt(2)) / 6.5], atol=1e-15)
    assert float(state.dual.theta_sum) == pytest.approx(1.2 + 1 / (4 * np.sqrt(2)))


def test_first_rounds_of_penalised_ftrl_by_hand():
    g = L1Budget(2, budget=1.0)
    learner = AdaptivePenalisedFTRL(g.prox(Ball(2, 2.0)), OnlineScale(), GrowingPenalty(w_0=0.05, growth=1.0))
    state = learner.tell(learner.init(), told([-3.0, 4.0], -1.0))
    # w_2 = 0.05 · 5 · 4 = 1; alone, (3, −4)/2.5 needs ν with 7 − 2ν = 2.5 on the budget: 2.25 > 1.
    assert float(state.dual.weight_sum) == float(state.multiplier[0]) == 1.0
    np.testing.assert_allclose(state.x, [2 / 2.5, -3 / 2.5])
    assert float(state.dual.inverse_sum) == pytest.approx(2 / 1.0)
    state = learner.tell(state, told([0.0, 0.0], 1.0))
    # w_3 = 0.05 · 5 · 9 = 2.25: W_3 = 3.25 holds ν = 2.25.
    assert float(state.multiplier[0]) == pytest.approx(2.25)
    np.testing.assert_allclose(state.x, [0.75 / 2.5, -1.75 / 2.5])
    assert float(state.dual.inverse_sum) == pytest.approx(2 + 1 / 2.25)


def test_first_rounds_of_aogd_by_hand():
    learner = AdaGradAOGD(Ball(2, 2.0), Multiplier(theta_0=3.0, beta=0.5))
    state = learner.tell(learner.init(), told([-3.0, 4.0], 0.6, [1.0, 0.0]))
    # S_1 = 25, η_1 = 4/√50: x_2 = 4(3, −4)/√50, longer than 2, so 2(3, −4)/5. θ_1 = 3/5, μ_1 = 1/1.2, λ_2 = ½.
    np.testing.assert_allclose(state.x, [1.2, -1.6])
    assert float(state.multiplier[0]) == pytest.approx(0.5)
    state = learner.tell(state, told([3.0, 0.0], -0.1, [4.0, 0.0]))
    # d_2 = (5, 0): S_2 = 50, η_2 = 0.4, x_3 = (−0.8, −1.6). M_2 = 5: θ_2 = 0.6/√2, λ_3 = ½ + (√2/1.8)(−0.1 − 0.3/√2).
    np.testing.assert_allclose(state.x, [-0.8, -1.6])
    assert float(state.multiplier[0]) == pytest.approx(0.5 + np.sqrt(2) / 1.8 * (-0.1 - 0.3 / np.sqrt(2)))


# --- bounds -------------------------------------------------------------------------------------------------


def scales_of(kind, T, seed):
    """How long the gradients are: alike, tiny or silent at first, changed in the middle, of all sizes."""
    t, rng = np.arange(T), np.random.default_rng(seed)
    return {
        "even": np.ones(T),
        "tiny first": np.where(t < 3, 1e-6, 1.0),
        "silent first": np.where(t < T // 2, 0.0, 1.0),
        "larger later": np.where(t < T // 2, 1.0, 1e6),
        "smaller later": np.where(t < T // 2, 1e6, 1.0),
        "growing": 2.0 ** np.minimum(t, 300),
        "wild": 10.0 ** rng.uniform(-8, 8, T),
        "never": np.zeros(T),
    }[kind]


SCALES = st.sampled_from(
    ["even", "tiny first", "silent first", "larger later", "smaller later", "growing", "wild", "never"]
)


@each_learner
@given(kind=KINDS, scale=SCALES, seed=seeds, T=horizons, factor=st.floats(0.05, 20), power=st.floats(0.05, 0.95))
def test_bounds_on_badly_scaled_streams(made, kind, scale, seed, T, factor, power):
    problem, scales = budget_problem(seed), scales_of(scale, T, seed)
    tuned = made.for_problem(problem)
    if made is AdaptivePenalisedFTRL:
        learner = made.for_problem(problem, w_0=factor * tuned.dual.w_0, growth=power)
    else:
        learner = made.for_problem(problem, beta=power, theta_0=factor * tuned.dual.theta_0)
    with np.errstate(all="raise", under="ignore"):
        game = play_linear(problem, learner, kind, T, seed, scales)
    most, allowed = bound_of(learner, problem, game.state, problem.constants.loss_range * scales.max())
    regret = game.loss - best_in_budget(problem.constraint, game.costs.sum(axis=0)) if scales.any() else 0.0
    assert regret <= most * (1 + 1e-9) + 1e-9
    hard = made is AdaptivePenalisedFTRL
    violation = np.maximum(game.values, 0).sum() if hard else game.values.sum()
    assert violation <= allowed * (1 + 1e-9) + 1e-12 * T
    assert all(np.isfinite(field).all() for field in state_leaves(game.state).values())


@given(kind=KINDS, scale=SCALES, seed=seeds, T=horizons)
def test_bounds_with_a_multiplier_for_each_affine_constraint(kind, scale, seed, T):
    rng, scales = np.random.default_rng(seed), scales_of(scale, T, seed)
    B, rows = Box(np.full(3, -1.5), np.full(3, 1.5)), rng.standard_normal((4, 3))
    problem = Problem(B, Linear(3), Affine(rows, rng.uniform(0.0, 0.4, 4)))
    learner = AdaptiveAFTRL.for_problem(problem)
    game = play_linear(problem, learner, kind, T, seed, scales)
    total, unit = game.costs.sum(axis=0), max(np.abs(game.costs).max(), 1e-300)  # the solver wants ordinary numbers
    matrix, offset = problem.constraint.matrix, problem.constraint.limit
    best = unit * best_in_box(B.lower, B.upper, matrix, offset, total / unit)
    most, allowed = bound_of(learner, problem, game.state, problem.constants.loss_range * scales.max())
    assert game.loss - best <= most * (1 + 1e-9) + 1e-9 * scales.max()
    together = np.linalg.norm(np.maximum(game.values.sum(axis=0), 0))
    assert together <= allowed * (1 + 1e-9)


@given(
    sizes=st.lists(
        st.floats(0, 1e6, allow_subnormal=False).map(lambda b: b if b > 1e-100 else 0.0), min_size=1, max_size=60
    )
)
def test_the_lemma_behind_the_primal_side(sizes):
    """Σ h(b_t, √V_{t−1}/R) ≤ 2R√V_T, with R = 1."""
    b = np.array(sizes)
    before = np.sqrt(np.concatenate([[0.0], np.cumsum(b**2)[:-1]]))
    length = np.where(b <= 2 * before, b / np.maximum(before, 1e-300), 2.0)
    assert (b * length - before * length**2 / 2).sum() <= 2 * np.linalg.norm(b) * (1 + 1e-12)


def test_the_lemma_cannot_do_with_less():
    """A single gradient after silence costs 2R√V: the constant 2 is attained."""
    problem = Problem(Ball(2), Linear(2), L1Budget(2, budget=2.0))
    costs = np.array([[1.0, 0.0], [-1e9, 0.0]])  # x_2 = (−1, 0), then a surprise
    trace = run(problem, AdaptiveAFTRL.for_problem(problem), Replay([costs]), on_broken_bound="warn")
    regret = float(trace.cumulative_loss[-1]) + 1e9 - 1
    assert regret == pytest.approx(2 * np.sqrt(float(trace.state.scale.square_sum)), rel=1e-6)


@given(seed=seeds, T=horizons, kind=KINDS)
def test_aogds_directions_are_bounded_beforehand(seed, T, kind):
    problem = budget_problem(seed)
    learner, c = AdaGradAOGD.for_problem(problem), problem.constants
    game, t = play_linear(problem, learner, kind, T, seed), np.arange(1, T + 1)
    theta = learner.dual.theta_0 / (2.0 * t ** (2 / 3))  # every cost has norm 2
    regret = game.loss - best_in_budget(problem.constraint, game.costs.sum(axis=0))
    bound = 2 * c.diameter * 2 * np.sqrt(T) + 6 * (c.diameter * c.constraint_gradient_bound) ** 2 / theta[-1]
    bound += c.constraint_bound**2 / 2 * ((t + 2) / (t + 1) / (theta * t)).sum()
    assert regret <= bound


# --- what the rules are for ---------------------------------------------------------------------------------


@each_learner
def test_until_the_first_gradient_nothing_moves(made):
    problem = budget_problem(1)
    learner = made.for_problem(problem)
    state, silent = learner.init(), observe(problem, np.zeros(4), [np.zeros(4)])
    for _ in range(5):
        state = learner.tell(state, silent)
    np.testing.assert_array_equal(state.x, np.zeros(4))
    assert not np.any(state.multiplier)
    assert bound_of(learner, problem, state) == (0.0, 0.0)
    state = learner.tell(state, observe(problem, state.x, [np.array([0.0, 1e-8, 0.0, 0.0])]))
    assert state.x[1] < 0


WAITING = (AdaptiveAFTRL, AdaGradAOGD)


def knowing(state, first):
    """The state with another first round that has a gradient."""
    return state._replace(dual=state.dual._replace(first_gradient=np.asarray(first)))


BREAKING = Problem(Box.cube(1, -1.0, 1.0), Linear(1), Affine([[1.0]], [-0.5]))  # g = x + ½, and g(x_1) = ½


@pytest.mark.parametrize(("made", "violation"), [(AdaptiveAFTRL, 252.7), (AdaGradAOGD, 245.5)])
def test_rounds_before_the_first_gradient_count(made, violation):
    """500 silent rounds at a centre that breaks the constraint, then 500 with the cost −1."""
    learner, costs = made.for_problem(BREAKING), np.repeat([[0.0], [-1.0]], 500, axis=0)
    trace = run(BREAKING, learner, Replay([costs]), record=[500, 1000])
    assert int(trace.state.dual.first_gradient) == 501
    assert float(trace.signed_violation[-1]) == pytest.approx(violation, abs=0.05)
    _, allowed = bound_of(learner, BREAKING, trace.state)
    _, without = bound_of(learner, BREAKING, knowing(trace.state, 1))
    assert without < float(trace.signed_violation[-1]) <= allowed  # leaving them out would be false
    assert allowed == pytest.approx(without + 500 * 0.5)
    silent = run(BREAKING, learner, Replay([np.zeros((1000, 1))]), record=[1000])
    assert bound_of(learner, BREAKING, silent.state) == (0.0, pytest.approx(500.0))
    assert float(silent.signed_violation[-1]) == 500.0


@pytest.mark.parametrize("made", WAITING)
@given(kind=KINDS, seed=seeds, T=horizons, silent=st.integers(0, 200))
def test_bounds_with_a_centre_that_breaks_the_constraint(made, kind, seed, T, silent):
    rng, scales = np.random.default_rng(seed), (np.arange(T) >= silent).astype(float)
    row = rng.standard_normal((1, 3))
    problem = Problem(Box.cube(3, -1.0, 1.0), Linear(3), Affine(row, -rng.uniform(0.1, 0.9) * np.abs(row).sum(axis=1)))
    learner = made.for_problem(problem)
    game = play_linear(problem, learner, kind, T, seed, scales)
    assert int(game.state.dual.first_gradient) == (silent + 1 if silent < T else 0)
    _, allowed = bound_of(learner, problem, game.state)
    assert game.values.sum() <= allowed * (1 + 1e-9)


def test_constraints_that_change_are_counted_with_what_they_can_be():
    """g_t(x_1) is not known in hindsight: with g_t(x*) ≤ 0 it is at most min(D, G_g R)."""
    problem = Problem(Box.cube(1, -1.0, 1.0), Linear(1), VaryingAffine(1, 1, row_norm=1.0, limit_bound=0.5))
    learner, T = AdaGradAOGD.for_problem(problem), 60
    silent = Replay([np.zeros((T, 1))], [np.ones((T, 1, 1)), np.full((T, 1), -0.5)])  # x + ½
    trace = run(problem, learner, silent)
    assert float(trace.signed_violation[-1]) == 30.0
    assert bound_of(learner, problem, trace.state) == (0.0, 60.0)


def test_a_grid_of_learners_has_a_first_gradient_each():
    learner = AdaptiveAFTRL.for_problem(BREAKING, beta=np.array([0.5, 0.7]))
    state = learner.init((2,))
    for cost in ([0.0, 0.0], [0.0, 1.0], [1.0, 1.0]):
        state = learner.tell(state, observe(BREAKING, state.x, [np.array(cost)[:, None]]))
    assert state.dual.first_gradient.tolist() == [3, 2]
    bound = learner.bound(BREAKING, 3, state=state)["long_term_violation"]
    assert bound.shape == (2,)
    assert bound[0] >= 1.0


def test_a_bound_before_the_run_says_when_to_ask():
    problem = budget_problem(1)
    for made in LEARNERS:
        bound = made.for_problem(problem).bound(problem, 100)
        assert not bound
        assert "state=trace.state" in bound.reason


@given(seed=seeds, silent=st.integers(0, 50), growth=st.floats(0.1, 2))
def test_the_sum_of_inverse_weights_is_bounded_beforehand(seed, silent, growth):
    """(τ + 1)/w_{τ+1} + Σ 1/w_t ≤ (1 + 1/e)(τ + 1)^{−e}/(κ M_τ) with w_{t+1} = κ M_t (t + 1)^{1+e}."""
    problem, T = budget_problem(seed), silent + 100
    learner = AdaptivePenalisedFTRL.for_problem(problem, growth=growth)
    game = play_linear(problem, learner, "random", T, seed, (np.arange(T) >= silent).astype(float))
    weights = learner.dual.w_0 * 2.0 * np.arange(silent + 2, T + 2) ** (1 + growth)  # every cost has norm 2
    exact = (silent + 2) / weights[0] + (1 / weights[1:]).sum()
    assert float(game.state.dual.inverse_sum) == pytest.approx(exact)
    assert exact <= (1 + 1 / growth) * (silent + 2) ** -growth / (learner.dual.w_0 * 2.0)


@each_learner
def test_losses_in_other_units_lead_to_the_same_decisions(made):
    problem, costs = budget_problem(1), np.random.default_rng(0).uniform(-1, 1, (60, 4))
    learner, far = made.for_problem(problem), 2.0**40  # a power of two: the same bits
    one, other = (
        run(problem, learner, Replay([scale * costs]), on_broken_bound="warn", record=[60]) for scale in (1.0, far)
    )
    np.testing.assert_array_equal(one.state.x, other.state.x)
    np.testing.assert_allclose(far * one.state.multiplier, other.state.multiplier, rtol=1e-14)


@pytest.mark.slow
@each_learner
def test_one_feature_in_units_a_million_times_too_small(made):
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((400, 8))
    labels = np.sign(rows[:, 0] + 0.5 * rng.standard_normal(400))
    rows[:, 7] *= 1e6
    problem = budgeted_logistic(rows, budget=1.0)
    with np.errstate(over="raise", invalid="raise"):
        trace = run(problem, made.for_problem(problem), ResampledRows(rows, labels), 3000, record=[3000])
    most, allowed = bound_of(made.for_problem(problem), problem, trace.state)
    assert np.isfinite(trace.state.x).all()
    violation = trace.hard_violation if made is AdaptivePenalisedFTRL else trace.signed_violation
    assert float(violation[-1]) <= allowed
    assert float(trace.cumulative_loss[-1]) <= 3000 * np.log(2) + most  # x* = 0 is feasible


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda p: AdaptiveAFTRL.for_problem(p, theta_0=0.0), "theta_0"),
        (lambda p: AdaptiveAFTRL.for_problem(p, beta=1.0), "beta"),
        (lambda p: AdaGradAOGD.for_problem(p, theta_0=np.nan), "theta_0"),
        (lambda p: AdaGradAOGD.for_problem(p, beta=0.0), "beta"),
        (lambda p: AdaptivePenalisedFTRL.for_problem(p, w_0=-1.0), "w_0"),
        (lambda p: AdaptivePenalisedFTRL.for_problem(p, growth=0.0), "growth"),
        (
            lambda p: AdaptivePenalisedFTRL(
                L1Budget(1, budget=0.5).prox(Box([-0.5], [3.0])), OnlineScale(), GrowingPenalty(1.0)
            ),
            "prox",
        ),
        (lambda p: AdaptivePenalisedFTRL.for_problem(Problem(Ball(2, 0.5), Linear(2), L2Budget(2, 0.8))), "learner"),
    ],
)
def test_bad_input_is_refused(call, argument):
    with pytest.raises(InputError) as refused:
        call(budget_problem(1))
    assert refused.value.argument == argument
