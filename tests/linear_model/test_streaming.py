"""The streaming object: one row = a block, split = whole, constants, average, interval, snapshots."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hypothesis_settings import examples
from linear_learners import learner_for, rows_and_labels, same, step_all
from longterm import AOGD, Problem, observe
from longterm.errors import SnapshotError
from longterm.learners import AFTRL, AdaGradAOGD, AdaptiveAFTRL, AdaptivePenalisedFTRL, PenalisedFTRL
from longterm.linear_model import BudgetLinearLearner
from longterm.linear_model._average import Average
from longterm.linear_model._settings import Settings
from longterm.problems.constraints import ElasticNetBudget, OnFirst
from longterm.problems.losses import LeastSquares, Logistic
from longterm.problems.sets import Box, Product

RULES = ("a-ftrl", "a-ogd", "penalised-ftrl")


# --- rows, blocks, splits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_one_row_at_a_time_is_a_block_bit_for_bit(rule, loss):
    X, y = rows_and_labels(n=1500, regression=loss == "huber")
    weights = np.random.default_rng(1).uniform(0, 2, len(y))
    single, block, parts = (learner_for(rule, loss=loss) for _ in range(3))
    margins = step_all(single, X, y, weights)
    np.testing.assert_array_equal(margins, block.learn(X, y, weights))
    same(single, block)
    for stretch in (slice(0, 1), slice(1, 1100), slice(1100, None)):
        parts.learn(X[stretch], y[stretch], weights[stretch])
    same(parts, block)


def test_sparse_rows_one_at_a_time_are_a_block_bit_for_bit_and_agree_with_dense_ones():
    X, y = rows_and_labels(n=1500)
    single, block, dense = learner_for("a-ftrl", sparse=True), learner_for("a-ftrl", sparse=True), learner_for("a-ftrl")
    matrix = sparse.csr_array(X)
    margins = block.learn(matrix, y)
    for i, label in enumerate(y):
        where = np.flatnonzero(X[i])
        assert single.step(where, X[i, where], label) == margins[i]
    same(single, block)
    np.testing.assert_allclose(dense.learn(X, y), margins, atol=1e-9)
    np.testing.assert_allclose(dense.weights, block.weights, atol=1e-9)
    assert dense.nonzeros == block.nonzeros == np.count_nonzero(block.weights)
    assert block.hard_violation == pytest.approx(dense.hard_violation, abs=1e-8)


@pytest.mark.parametrize("of", [True, False])
def test_rows_of_the_other_kind_are_converted(of):
    X, y = rows_and_labels()
    learner, other = learner_for("a-ftrl", sparse=of), learner_for("a-ftrl", sparse=of)
    learner.learn(X, y)
    other.learn(sparse.csr_array(X), y)
    np.testing.assert_allclose(learner.weights, other.weights, atol=1e-12)
    margin = other.step_dense(X[0], y[0])
    where = np.flatnonzero(X[0])
    assert learner.step(where, X[0, where], y[0]) == pytest.approx(margin, abs=1e-12)


def test_an_order_is_the_rows_in_that_order():
    X, y = rows_and_labels(regression=True)
    order = np.random.default_rng(3).permutation(len(y))
    one, other = (learner_for("a-ftrl", loss="squared") for _ in range(2))
    np.testing.assert_array_equal(one.learn(X, y, order=order), other.learn(X[order], y[order]))
    same(one, other)


# --- constants ------------------------------------------------------------------------------------------------


def reference_problem(loss, r):
    g = ElasticNetBudget(5, 2.0, l1=0.8, l2=1.3)
    B = Product([g.enclosing_ball(), Box([-r], [r])])
    family = Logistic(6, np.hypot(3.0, 1)) if loss == "logistic" else LeastSquares(6, np.hypot(3.0, 1), 4.0)
    return Problem(B, family, OnFirst(g, free=1))


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_constants_are_those_of_the_reference_learners(loss):
    problem, given = reference_problem(loss, 1.5), {"feature_norm": 3.0, "label_bound": 4.0}

    def parameters(rule, constants):
        return Settings(5, 2.0, 0.8, 1.3, loss, None, rule, 1.5, given=constants).parameters()

    aftrl, made = AFTRL.for_problem(problem), parameters("a-ftrl", given)
    assert (made.step, made.theta_0) == (pytest.approx(aftrl.scale.step), pytest.approx(aftrl.dual.theta_0))
    penalised, made = PenalisedFTRL.for_problem(problem), parameters("penalised-ftrl", given)
    assert (made.step, made.weight_0) == (pytest.approx(penalised.scale.step), pytest.approx(penalised.dual.w_0))
    steps, made = AOGD.for_problem(problem).schedule.at(np.asarray(1), np.zeros(1)), parameters("a-ogd", given)
    assert (made.step, made.theta_0) == (pytest.approx(float(steps.eta)), pytest.approx(float(steps.theta)))
    g = ElasticNetBudget(5, 2.0, l1=0.8, l2=1.3)  # found online, the intercept is a learner of its own
    alone = Problem(g.enclosing_ball(), Logistic(5, 3.0), g)
    assert parameters("a-ftrl", None).theta_0 == pytest.approx(AdaptiveAFTRL.for_problem(alone).dual.theta_0)
    assert parameters("a-ogd", None).theta_0 == pytest.approx(AdaGradAOGD.for_problem(alone).dual.theta_0)
    assert parameters("penalised-ftrl", None).weight_0 == pytest.approx(
        AdaptivePenalisedFTRL.for_problem(alone).dual.w_0
    )
    assert parameters("a-ftrl", None).step == 0


def test_a_run_is_that_of_the_reference_learner():
    g = ElasticNetBudget(5, 2.0, l1=0.8, l2=1.3)
    problem = Problem(g.enclosing_ball(), Logistic(5, 3.0), g)
    X, y = rows_and_labels(n=200, d=5)
    reference, ours = (
        AdaptiveAFTRL.for_problem(problem),
        BudgetLinearLearner(5, 2.0, l1=0.8, l2=1.3, fit_intercept=False, scales="one"),
    )
    state = reference.init()
    for u, label in zip(X, y, strict=True):
        seen = observe(problem, state.x, [u, np.float64(label)])
        ours.step_dense(u, label)
        state = reference.update(state, seen)
    np.testing.assert_allclose(ours.weights, state.x, atol=1e-9)
    assert ours.multiplier == pytest.approx(float(state.multiplier[0]), abs=1e-9)


# --- the average, the model within the budget -----------------------------------------------------------------


def test_the_average_is_that_of_all_rounds_in_expectation():
    X, y = rows_and_labels(n=4096, d=3, seed=2)
    exact = np.zeros(3)
    watched = learner_for("a-ogd", d=3)
    for u, label in zip(X, y, strict=True):
        exact += watched.weights / len(y)
        watched.step_dense(u, label)
    drawn = []
    for seed in range(40):
        learner = learner_for("a-ogd", d=3, seed=seed)
        learner.learn(X, y)
        drawn.append(learner.average()[0])
    deviation = np.std(drawn, axis=0)
    assert deviation.max() > 0
    assert np.all(np.abs(np.mean(drawn, axis=0) - exact) < 4 * deviation / np.sqrt(40) + 1e-12)


def test_an_average_by_hand():
    average = Average(2, seed=0)
    average.add(np.array([1.0, 0.0]), 3.0)
    average.add(np.array([3.0, 2.0]), 5.0)
    x, intercept = average.value(3 * 1024, np.array([5.0, 1.0]), 1.0)  # the third stretch has had no round yet
    np.testing.assert_allclose(x, [3.0, 1.0])
    assert intercept == 3.0
    x, intercept = average.value(1024 + 5, np.array([5.0, 1.0]), 1.0)  # the second has, and stands for all of itself
    np.testing.assert_allclose(x, [2.0, 1.0])
    assert intercept == 4.0


def test_before_the_first_draw_the_average_is_the_decision_in_force():
    X, y = rows_and_labels(n=5)
    learner = learner_for("a-ftrl", seed=1)
    learner.learn(X, y)
    np.testing.assert_array_equal(learner.average()[0], learner.weights)


@given(seed=st.integers(0, 10**6), budget=st.floats(1e-3, 1e3), rows=st.integers(1, 40))
@examples(30)
def test_one_model_is_within_the_budget_always(seed, budget, rows):
    rng = np.random.default_rng(seed)
    learner = BudgetLinearLearner(6, budget, l1=rng.uniform(0, 2), l2=rng.uniform(0.1, 2), seed=seed)
    learner.learn(rng.standard_normal((rows, 6)), np.sign(rng.standard_normal(rows)))
    x, _ = learner.within_budget()
    assert learner.settings.constraint.values(x)[0] <= 0.0


# --- the intercept's interval ---------------------------------------------------------------------------------


def test_the_interval_begins_at_the_first_target_and_is_widened_by_hand():
    learner = BudgetLinearLearner(1, 1.0, loss="squared", scales="one")
    assert learner.step_dense([0.0], 7.0) == 0.0  # nothing was known
    assert learner.settings.intercept_bound == 0.0
    assert learner.step_dense([0.0], 9.0) == 7.0
    assert learner.settings.intercept_bound == 4.0
    # slope −2, so Σ slope² = 4, a = 2/4, b = 2/a = 4: the end of the interval.
    assert learner.intercept == 11.0
    learner.step_dense([0.0], 10.9)  # slope 0.1: b = 1.9 · 4/√4.01
    scalars = learner._state.scalars
    scalars["intercept_slope"] = -50.0  # what an interval that is too short leaves behind
    curvature = np.sqrt(scalars["intercept_squares"][0]) / 4.0
    learner._widen(10.0)
    assert learner.settings.intercept_bound == 20.0
    assert np.sqrt(scalars["intercept_squares"][0]) / 20.0 == pytest.approx(curvature)
    # What the old interval could not follow is forgotten: the slope is cut to what holds b at its end.
    assert scalars["intercept_slope"][0] == pytest.approx(-4.0 * curvature)


@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(["squared", "huber", "quantile"]),
    rule=st.sampled_from(["a-ftrl", "penalised-ftrl"]),
    growth=st.floats(1.0, 1.2),
    level=st.floats(-1e3, 1e3),
)
def test_the_bound_holds_while_the_interval_is_widened(seed, loss, rule, growth, level):
    """Against every model within the budget whose intercept lies in the first interval."""
    rng = np.random.default_rng(seed)
    n, d = 60, 3
    X = rng.standard_normal((n, d))
    y = level + np.cumprod(np.full(n, growth)) * rng.standard_normal(n)
    learner = BudgetLinearLearner(d, 1.0, loss=loss, rule=rule, scales="one")
    learner.learn(X, y)
    scalars, radius = learner._state.scalars[0], learner.settings.constraint.enclosing_ball().radius
    bound = 2.5 * radius * np.sqrt(scalars["gradient_squares"])
    bound += 2.5 * learner.settings.intercept_bound * np.sqrt(scalars["intercept_squares"])
    if rule == "a-ftrl":
        bound += 5 * radius * scalars["longest_gradient"] * (1 + (n ** (2 / 3) - 1) / (2 / 3))
    first = 2 * abs(y[1] - y[0])
    points = learner.settings.constraint.enclosing_ball().sample(rng, 200)
    points = points[learner.settings.constraint.values(points)[:, 0] <= 0]
    ends = y[0] + first * rng.choice([-1.0, 0.0, 1.0], len(points))
    residuals = points @ X.T + ends[:, None] - y
    size = np.abs(residuals)
    losses = {
        "squared": residuals**2 / 2,
        "huber": np.where(size <= 1, residuals**2 / 2, size - 0.5),
        "quantile": size / 2,
    }[loss]
    assert learner.cumulative_loss - losses.sum(axis=1).min() <= bound * (1 + 1e-9)


# --- badly scaled streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared", "quantile"])
def test_badly_scaled_rows_overflow_nothing(rule, loss):
    X, y = rows_and_labels(n=2000, regression=loss in ("squared", "quantile"))
    X[:, 3] *= 1e6
    X[:5] *= 1e-9
    X[5:10] = 0.0
    X[1000:] *= 1e3
    learner = learner_for(rule, loss=loss)
    with np.errstate(all="raise", under="ignore"):
        learner.learn(X, y)
    assert np.isfinite(learner.weights).all()
    assert all(np.isfinite(array).all() for array in learner._arrays().values())
    R = learner.settings.constraint.enclosing_ball().radius
    assert np.linalg.norm(learner.weights) <= R * (1 + 1e-9)


# --- snapshots and pickles ------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_learner_continues_from_a_snapshot_and_from_a_pickle_bit_for_bit(tmp_path, of, loss):
    X, y = rows_and_labels(n=3000, regression=loss == "squared")
    whole = learner_for("a-ftrl", loss=loss, sparse=of, seed=5)
    part = learner_for("a-ftrl", loss=loss, sparse=of, seed=5)
    whole.learn(X, y)
    part.learn(X[:1700], y[:1700])
    part.save(tmp_path / "learner")
    for again in (BudgetLinearLearner.load(tmp_path / "learner"), pickle.loads(pickle.dumps(part))):
        same(again, part)
        again.learn(X[1700:], y[1700:])
        same(again, whole)
    assert part.rounds == 1700


def test_a_damaged_snapshot_is_refused(tmp_path):
    path = tmp_path / "learner"
    learner_for("a-ftrl").save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(SnapshotError):
        BudgetLinearLearner.load(path)


def test_predictions_are_signs_of_margins_or_margins():
    X, y = rows_and_labels(50)
    classifier, regressor = BudgetLinearLearner(7, 5.0), BudgetLinearLearner(7, 5.0, loss="squared")
    classifier.learn(X, y)
    regressor.learn(X, 3.0 + y)
    np.testing.assert_array_equal(classifier.predict(X), np.where(classifier.margins(X) > 0, 1.0, -1.0))
    np.testing.assert_array_equal(regressor.predict(X.tolist()), regressor.margins(X))
    assert classifier.predict(np.zeros((0, 7))).shape == (0,)
    assert set(classifier.predict(sparse.csr_array(X))) == {-1.0, 1.0}
