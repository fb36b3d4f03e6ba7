"""The streaming object: one row = a block, split = whole, constants, average, interval, snapshots."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hypothesis_settings import examples
from linear_learners import learner_for, rows_and_labels, same, step_all
from longterm import Problem
from longterm.errors import InputError, SnapshotError
from longterm.learners import AdaptiveAFTRL, AdaptivePenalisedFTRL
from longterm.linear_model import BudgetLinearLearner
from longterm.linear_model._average import Average
from longterm.linear_model._settings import Settings
from longterm.problems.constraints import ElasticNetBudget
from longterm.problems.losses import Logistic

RULES = ("a-ftrl", "penalised-ftrl")


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


def test_constants_are_those_of_the_reference_learners():
    g = ElasticNetBudget(5, 2.0, l1=0.8, l2=1.3)
    problem, made = Problem(g.enclosing_ball(), Logistic(5, 3.0), g), Settings(5, 2.0, 0.8, 1.3).parameters()
    assert made.theta_0 == pytest.approx(AdaptiveAFTRL.for_problem(problem).dual.theta_0)
    assert made.weight_0 == pytest.approx(AdaptivePenalisedFTRL.for_problem(problem).dual.w_0)


# --- the average, the model within the budget -----------------------------------------------------------------


def test_the_average_is_that_of_all_rounds_in_expectation():
    x = np.random.default_rng(0).standard_normal((4096, 3)).cumsum(axis=0)
    drawn = []
    for seed in range(200):
        average = Average(3, seed)
        while average.next_round() <= len(x):
            average.add(x[average.next_round() - 1], 0.0)
        drawn.append(average.value(len(x), x[-1], 0.0)[0])
    deviation = np.std(drawn, axis=0)
    assert deviation.min() > 0
    assert np.all(np.abs(np.mean(drawn, axis=0) - x.mean(axis=0)) < 4 * deviation / np.sqrt(200))


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
    learner = BudgetLinearLearner(1, 1.0, loss="squared")
    assert learner.step_dense([0.0], 7.0) == 0.0  # nothing was known
    assert learner.settings.residual_radius == 0.0
    assert learner.step_dense([0.0], 9.0) == 7.0
    assert learner.settings.residual_radius == 4.0
    assert learner._state.number("intercept_slope") == -2.0
    learner.step_dense([0.0], 17.0)  # ten away: the residual begins at 0 again
    assert learner.settings.residual_radius == 20.0
    assert learner._state.number("intercept_slope") == pytest.approx(
        learner._state.number("intercept_squares") ** 0.5 * -1
    )


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


def test_frames_of_arrow_and_nullable_columns():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), np.where(rng.random(50) < 0.5, 1, -1)
    plain = BudgetLinearLearner(3, budget=1.0)
    plain.learn(X, y)
    frame = pandas.DataFrame(X, columns=list("abc"))
    for numbers, signs in (("double[pyarrow]", "int64[pyarrow]"), ("Float64", "Int64")):
        typed = frame.astype(numbers)
        learner = BudgetLinearLearner(3, budget=1.0)
        learner.learn(typed, pandas.Series(y).astype(signs))
        np.testing.assert_array_equal(learner.weights, plain.weights)
        typed.loc[7, "b"] = None
        with pytest.raises(InputError, match="row 7 holds NaN"):
            learner.learn(typed, y)
        with pytest.raises(InputError, match="has dtype object"):
            learner.learn(typed.assign(b="text"), y)
        assert learner.rounds == 50
