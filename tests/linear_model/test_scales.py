"""Mixtures of scales, compiled: rounds are the reference learners'; the intercept; budgets that do no harm."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hypothesis_settings import examples
from linear_learners import rows_and_labels, same
from linear_references import reference_loss
from longterm import Problem, observe
from longterm.errors import InputError
from longterm.learners import MixedAFTRL, MixedPenalisedFTRL
from longterm.linear_model import BudgetLinearClassifier, BudgetLinearLearner
from longterm.linear_model.kernels.layout import RESIDUAL, RESIDUAL_SCALES, WEIGHTS
from longterm.problems.constraints import ElasticNetBudget

RULES = ("a-ftrl", "penalised-ftrl")


@pytest.mark.slow
@pytest.mark.parametrize("norms", [(1.0, 1.0), (1.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("budget", [0.5, 30.0, 1e4])
@pytest.mark.parametrize("rule", ["a-ftrl", "penalised-ftrl"])
def test_rounds_are_the_reference_learners(rule, budget, norms):
    X, y = rows_and_labels(n=200)
    X[:3] = 0  # nothing is known of the scale before the first row
    l1, l2 = norms
    g = ElasticNetBudget(7, budget, l1=l1, l2=l2)
    problem = Problem(g.enclosing_ball(), reference_loss("logistic", 7, 0.0), g)
    typical = 1 / (4 * np.linalg.norm(X[np.flatnonzero(X.any(axis=1))[0]]))
    if rule == "a-ftrl":
        learner = MixedAFTRL.for_problem(problem, typical_size=typical)
    else:
        learner = MixedPenalisedFTRL.for_problem(problem, typical_size=typical)
    state, ours = (
        learner.init(),
        BudgetLinearLearner(7, budget, l1=l1, l2=l2, rule=rule, fit_intercept=False, scale_features=False),
    )
    for row, label in zip(X, y, strict=True):
        state = learner.update(state, observe(problem, state.x, [row, np.float64(label)]))
        ours.step_dense(row, label)
        np.testing.assert_allclose(ours.weights, state.x, rtol=1e-7, atol=1e-9)
        assert ours.multiplier == pytest.approx(float(np.squeeze(state.multiplier)), rel=1e-7, abs=1e-9)
    np.testing.assert_allclose(ours._state.mixture(WEIGHTS).loss, state.scale.hedge.losses, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours._state.mixture(WEIGHTS).share, state.scale.weights, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_shares_change_at_the_end_of_blocks_only(rule):
    X, y = rows_and_labels(n=3000)
    learner, changes, before = BudgetLinearLearner(7, 100.0, rule=rule), 0, np.zeros(9)
    for row, label in zip(X, y, strict=True):
        learner.step_dense(row, label)
        share = learner._state.mixture(WEIGHTS).share.copy()
        changes, before = changes + bool((share != before).any()), share
    assert 3000 // 128 <= changes < 900


def test_sparse_rounds_are_dense_ones():
    X, y = rows_and_labels(n=800)
    dense, by_rows = (BudgetLinearLearner(7, 3.0, sparse=kind, scale_features=False) for kind in (False, True))
    np.testing.assert_allclose(dense.learn(X, y), by_rows.learn(sparse.csr_array(X), y), atol=1e-8)
    np.testing.assert_allclose(dense.weights, by_rows.weights, atol=1e-9)
    assert dense.intercept == pytest.approx(by_rows.intercept, abs=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_a_generous_budget_costs_at_most_two_per_cent(rule):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((500, 30)) * (rng.random((500, 30)) < 0.3)
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + rng.logistic(size=500) > 0, 1.0, -1.0)
    losses = []
    for budget in (1.0, 10.0, 100.0, 1000.0, 10_000.0):
        learner = BudgetLinearLearner(30, budget, rule=rule)
        learner.learn(X, y)
        losses.append(learner.cumulative_loss)
    assert max(losses[2:]) <= 1.02 * min(losses)


# --- the intercept --------------------------------------------------------------------------------------------


def weighted(rng, n):
    return rng.choice([0.0, 0.3, 1.0], size=n)


def bound_of_the_offset(weights):
    """(Ω/2)·ln(π(W/Ω + ½)), and ω·ln(ω/the largest before) in rounds whose weight is a new largest."""
    weights = weights[weights > 0]
    before, largest = np.maximum.accumulate(weights)[:-1], weights.max()
    records = weights[1:] > before
    later = weights[1:][records]
    return 0.5 * largest * math.log(math.pi * (weights.sum() / largest + 0.5)) + later @ np.log(later / before[records])


@pytest.mark.parametrize("kind", ["small", "large", "wide", "falling", "growing"])
@pytest.mark.parametrize("seed", range(6))
def test_the_offset_is_behind_the_best_constant_by_what_is_proved(seed, kind):
    """Rows of zeros and a residual that is not fed: KT's inequality, with weights, in every order."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(400) < rng.choice([0.002, 0.1, 0.5]), 1.0, -1.0)
    y = np.sort(y)[:: rng.choice([1, -1])] if seed % 2 else y
    weights = {
        "small": lambda: weighted(rng, len(y)),
        "large": lambda: np.full(len(y), 100.0),
        "wide": lambda: 10.0 ** rng.uniform(-3, 3, len(y)),
        "falling": lambda: 2.0 ** -np.arange(0.0, 40.0, 0.1),
        "growing": lambda: 2.0 ** np.arange(0.0, 40.0, 0.1) * rng.choice([1.0, 1e3], len(y), p=[0.99, 0.01]),
    }[kind]()
    plus = minus = heaviest = loss = 0.0
    for label, weight in zip(y, weights, strict=True):
        half = 0.5 * heaviest
        offset = math.log((plus + half) / (minus + half)) if half else 0.0
        loss += weight * math.log1p(math.exp(-label * offset))
        plus, minus = plus + weight * (label > 0), minus + weight * (label < 0)
        heaviest = max(heaviest, weight)
    W = plus + minus
    best = -sum(part * math.log(part / W) for part in (plus, minus) if part > 0)
    assert loss <= best + bound_of_the_offset(weights) + 1e-12 * loss


@pytest.mark.parametrize("weights", [[100.0] * 200, [1.0] * 100 + [1e4], list(2.0 ** np.arange(30))])
@pytest.mark.parametrize("last", [1.0, -1.0])
def test_large_weights_cost_the_intercept_their_size(weights, last):
    """The learner itself, on rows of zeros: with the weight 100 it is 271 behind, not ½·ln(π(W + ½)) = 5.5."""
    learner, weights = BudgetLinearLearner(1, 1.0), np.array(weights)
    y = np.append(np.ones(len(weights) - 1), last)
    learner.learn(np.zeros((len(y), 1)), y, weights)
    excess, bound = excess_and_bound(learner, y, weights)
    assert excess <= bound


def excess_and_bound(learner, y, weights):
    """The loss above that of the best constant rate, and the theorem's bound without the cost of blocks."""
    plus, W = weights[y > 0].sum(), weights.sum()
    best = -sum(part * math.log(part / W) for part in (plus, W - plus) if part > 0)
    bound = bound_of_the_offset(weights)
    for number, count in ((WEIGHTS, 9), (RESIDUAL, RESIDUAL_SCALES + 1)):
        m = learner._state.mixture(number)
        if not m.cap:  # no gradient yet
            continue
        R, prior = m.radius[:count], np.exp(m.prior[:count])
        assert prior.sum() == pytest.approx(1)
        alpha = math.sqrt(4 * m.cap**2 + 0.25 * m.clipped_squares)
        bound += alpha * (R[-1] * (-math.log(prior[-1]) - 1) + prior @ R) + m.cap * R[0]
    return learner.cumulative_loss - best, bound


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("budget", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("share", [0.005, 0.1, 0.5])
def test_never_worse_than_the_base_rate(share, budget, scaled):
    """The theorem's bound, with labels that are noise, rows in any order and weights."""
    rng = np.random.default_rng(int(1000 * share))
    n = 1500
    X = rng.standard_normal((n, 10))
    y = np.where(rng.random(n) < share, 1.0, -1.0)
    weights = weighted(rng, n) if share < 0.5 else rng.choice([0.0, 0.1, 2.0, 30.0], size=n)
    learner = BudgetLinearLearner(10, budget, scale_features=scaled)
    learner.learn(X, y, weights)
    excess, bound = excess_and_bound(learner, y, weights)
    assert excess <= bound
    if budget <= 100:
        assert excess <= 25 * weights.max()  # what the theorem leaves is far from what happens


@pytest.mark.parametrize("good", [257, 4097])
def test_what_was_gained_before_an_update_of_the_scale_is_not_spent_after_it(good):
    """Labels agree with the feature, then disagree. If updates multiplied the scales' charges too, the excess would
    grow linearly: 115 after 9,245 rows."""
    u = np.resize([1.0, -1.0], good + 5 * good // 4)
    y = np.where(np.arange(len(u)) < good, u, -u)
    learner, worst = BudgetLinearLearner(1, 0.22, scale_features=True), -math.inf
    for start in range(0, len(u), 64):
        stop = min(start + 64, len(u))
        learner.learn(u[start:stop, None], y[start:stop])
        excess, bound = excess_and_bound(learner, y[:stop], np.ones(stop))
        assert excess <= bound
        worst = max(worst, excess)
    assert worst <= 1.0


@given(st.integers(0, 2**32 - 1))
@examples(30)
def test_scaled_features_are_never_worse_than_the_base_rate_in_any_order(seed):
    """Features whose size, sign and use change from phase to phase."""
    rng = np.random.default_rng(seed)
    n, d = 600, 3
    ends = np.sort(rng.integers(0, n, 4))
    phase = np.searchsorted(ends, np.arange(n))
    X = np.exp(rng.normal(0, 1.5, (5, d)))[phase] * rng.standard_normal((n, d)) + rng.normal(0, 1, (5, d))[phase]
    X *= rng.random((n, d)) < rng.random((5, d))[phase]
    y = np.where(np.sum(X * rng.normal(0, 2, (5, d))[phase], axis=1) + rng.logistic(size=n) > 0, 1.0, -1.0)
    learner = BudgetLinearLearner(d, float(10 ** rng.uniform(-1, 3)), scale_features=True)
    for start in range(0, n, 50):
        learner.learn(X[start : start + 50], y[start : start + 50])
        excess, bound = excess_and_bound(learner, y[: start + 50], np.ones(start + 50))
        assert excess <= bound


def test_weights_are_counted():
    """A row of weight 2 counts as two rows of weight 1, up to the largest weight's half."""
    learner = BudgetLinearLearner(1, 1.0)
    for label, weight in ((1.0, 2.0), (-1.0, 1.0), (-1.0, 0.0)):
        learner.step_dense([0.0], label, weight)
    s = learner._state.scalars[0]
    assert (s["positive_weight"], s["negative_weight"], s["heaviest"]) == (2.0, 1.0, 2.0)
    assert learner.intercept - s["residual"] == pytest.approx(math.log((2 + 1) / (1 + 1)))


def test_rare_positives_are_predicted_as_rare_as_they_are():
    rng = np.random.default_rng(0)
    n = 2000
    X = (rng.random((n, 50)) < 0.2).astype(float)
    y = -np.ones(n)
    y[rng.choice(n, 4, replace=False)] = 1.0
    learner = BudgetLinearLearner(50, 100.0)
    before, margins = 0.0, np.empty(n)
    moves = []
    for i in range(n):
        margins[i] = learner.step_dense(X[i], y[i])
        moves.append(abs(learner.intercept - before))
        before = learner.intercept
    assert np.mean(1 / (1 + np.exp(-margins))) <= 1.3 * 0.002 + 0.5 / n * 2
    assert max(moves[1:]) <= 1.6


@pytest.mark.parametrize("scale", [1e6, 1.0, 1e-6])
@pytest.mark.parametrize("level", [0.0, 1e4])
def test_regression_does_not_depend_on_the_targets_unit_and_hardly_on_their_level(scale, level):
    """Targets and weights scaled alike, an offset of 10⁴ deviations: the same model in the other unit."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((3000, 5))
    y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(3000)
    learner = BudgetLinearLearner(5, 10.0 * scale, l1=1.0, l2=0.0, loss="squared")
    learner.learn(X, scale * (y + level))
    assert learner.intercept / scale - level == pytest.approx(0, abs=0.1)
    np.testing.assert_allclose(learner.weights / scale, [1, -1, 0, 0, 0], atol=0.2)


# --- settings and snapshots -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize(("rule", "kind"), [("a-ftrl", False), ("a-ftrl", True), ("penalised-ftrl", False)])
def test_a_saved_learner_continues_bit_for_bit(tmp_path, rule, kind, loss):
    X, y = rows_and_labels(n=400, regression=loss == "squared")
    learner = BudgetLinearLearner(7, 5.0, rule=rule, sparse=kind, loss=loss)
    learner.learn(X[:150], y[:150])
    learner.save(tmp_path / "model")
    loaded = BudgetLinearLearner.load(tmp_path / "model")
    same(learner, loaded)
    np.testing.assert_array_equal(learner.learn(X[150:], y[150:]), loaded.learn(X[150:], y[150:]))
    same(learner, loaded)


# --- at most k features ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 3, 10])
def test_no_decision_has_more_features_than_allowed(most):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 40))
    y = np.where(2 * X[:, 0] - 1.5 * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(400) > 0, 1.0, -1.0)
    learner = BudgetLinearLearner(40, 1e3, rule="penalised-ftrl", max_features=most)
    for row, label in zip(X, y, strict=True):
        learner.step_dense(row, label)
        assert learner.nonzeros <= most
    found = np.flatnonzero(learner.weights)
    assert set(found) <= {0, 1, 2} if most <= 3 else {0, 1, 2} <= set(found)
    assert len(found) >= min(most, 2)


def test_max_features_in_estimators():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 30))
    y = X[:, 3] - X[:, 7] > 0
    model = BudgetLinearClassifier(max_features=2, random_state=0).fit(X, y)
    assert set(np.flatnonzero(model.coef_)) == {3, 7}
    assert model.score(X, y) > 0.95
    with pytest.raises(InputError, match="max_features"):
        BudgetLinearClassifier(max_features=2, l1=0.0).fit(X, y)


# --- what fit answers with ------------------------------------------------------------------------------------


def test_fit_answers_with_a_recent_average_within_the_budget_and_a_stream_with_the_iterate():
    X, y = rows_and_labels(n=600)
    model = BudgetLinearClassifier(0.5, random_state=0, scale_features=False).fit(X, y)
    learner = model._learners[0]
    assert ElasticNetBudget(7, 0.5).values(model.coef_[0])[0] <= 0
    assert not np.array_equal(model.coef_[0], learner.weights)
    assert 0 < np.count_nonzero(model.coef_) < 7  # 0 where most decisions are
    model.partial_fit(X[:5], y[:5])
    np.testing.assert_array_equal(model.coef_[0], learner.weights)


@pytest.mark.slow
def test_seeds_move_the_held_out_loss_by_less_than_one_per_cent():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1500, 15))
    y = np.where(X @ rng.standard_normal(15) + 2 * rng.logistic(size=1500) > 0, 1, -1)
    losses = []
    for seed in range(5):
        model = BudgetLinearClassifier(random_state=seed).fit(X[:700], y[:700])
        losses.append(np.logaddexp(0, -y[700:] * model.decision_function(X[700:])).mean())
    assert max(losses) < 1.01 * min(losses)


def test_one_row_a_thousand_times_too_large_does_little_harm():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((3000, 8))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.logistic(size=3000) > 0, 1.0, -1.0)
    losses = {}
    for factor in (1.0, 1000.0):
        rows = X.copy()
        rows[100] *= factor
        model = BudgetLinearClassifier().partial_fit(rows[:101], y[:101], classes=[-1, 1])
        margins = model._learners[0].learn(rows[101:], y[101:])
        losses[factor] = np.logaddexp(0, -y[101:] * margins)[1000:].mean()
    assert losses[1000.0] < 1.25 * losses[1.0]
