"""The streaming object and bad input: what is refused, in which words, and that nothing was learned from it."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from linear_learners import learner_for, rows_and_labels, same
from longterm import InputError
from longterm.linear_model import BudgetLinearClassifier, BudgetLinearLearner, BudgetLinearRegressor

GOOD = np.ones(7)
BAD_STEPS = {
    "NaN": lambda learner: learner.step_dense([np.nan] * 7, 1.0),
    "infinity": lambda learner: learner.step_dense([np.inf] + [0.0] * 6, 1.0),
    "huge": lambda learner: learner.step_dense([1e200] + [0.0] * 6, 1.0),
    "wrong length": lambda learner: learner.step_dense([1.0], 1.0),
    "not a label": lambda learner: learner.step_dense(GOOD, np.nan),
    "negative weight": lambda learner: learner.step_dense(GOOD, 1.0, -1.0),
    "infinite weight": lambda learner: learner.step_dense(GOOD, 1.0, np.inf),
    "unsorted": lambda learner: learner.step([1, 0], [1.0, 1.0], 1.0),
    "twice": lambda learner: learner.step([1, 1], [1.0, 1.0], 1.0),
    "out of range": lambda learner: learner.step([7], [1.0], 1.0),
    "negative index": lambda learner: learner.step([-1], [1.0], 1.0),
    "two lengths": lambda learner: learner.step([1], [1.0, 2.0], 1.0),
    "sparse NaN": lambda learner: learner.step([1], [np.nan], 1.0),
    "fractions of an index": lambda learner: learner.step([0.5, 2.7], [1.0, 1.0], 1.0),
    "a mask for indices": lambda learner: learner.step([False, True], [1.0, 1.0], 1.0),
    "not vectors": lambda learner: learner.step([[0, 1]], [[1.0, 1.0]], 1.0),
    "words": lambda learner: learner.step_dense(GOOD, "1"),
    "no label": lambda learner: learner.step_dense(GOOD, None),
    "many labels": lambda learner: learner.step_dense(GOOD, np.ones(2)),
    "no weight": lambda learner: learner.step_dense(GOOD, 1.0, None),
}


@pytest.mark.parametrize("of", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("bad", BAD_STEPS)
def test_a_bad_row_is_refused_and_nothing_was_learned(bad, loss, of):
    X, y = rows_and_labels(n=50, regression=loss == "squared")
    for played in (0, 50):
        learner, other = (learner_for("a-ftrl", loss=loss, sparse=of) for _ in range(2))
        learner.learn(X[:played], y[:played])
        other.learn(X[:played], y[:played])
        with pytest.raises(InputError):
            BAD_STEPS[bad](learner)
        same(learner, other)


@pytest.mark.parametrize("of", [False, True])
@pytest.mark.parametrize(("loss", "y"), [("squared_hinge", -1.0), ("squared", 1e30)])
def test_a_gradient_that_is_too_long_is_refused(loss, y, of):
    learner, other = (learner_for("a-ftrl", loss=loss, sparse=of, intercept_bound=1e20) for _ in range(2))
    for each in (learner, other):
        each.step_dense(GOOD, 1.0)
    with pytest.raises(InputError, match="overflow"):
        learner.step_dense(GOOD * 1e80, y, 1e30)
    same(learner, other)
    assert learner.step_dense(GOOD, 1.0) == other.step_dense(GOOD, 1.0)
    same(learner, other)


@pytest.mark.slow
@pytest.mark.parametrize("of", [False, True])
def test_a_row_refused_in_a_round_drawn_for_the_average_leaves_the_average_as_it_was(of):
    X, y = rows_and_labels(n=1024)
    learner, other = learner_for("a-ftrl", sparse=of), learner_for("a-ftrl", sparse=of)
    for u, label in zip(X, y, strict=True):
        with pytest.raises(InputError):
            learner.step([3, 4], [1.0, np.nan], 1.0)
        same(learner, other)
        assert learner.step_dense(u, label) == other.step_dense(u, label)
    np.testing.assert_array_equal(learner.average()[0], other.average()[0])
    same(learner, other)


@pytest.mark.parametrize("rule", ["a-ftrl", "penalised-ftrl"])
@pytest.mark.parametrize("targets", [[0.0, 1e-200, 1.0, 1.0], [0.0, 1e-300, 1e30, 1.0], [0.0, 1e-100, 1e80, 1.0]])
def test_a_very_wide_interval_stays_finite(rule, targets):
    learner = learner_for(rule, d=2, loss="squared")
    learner.learn(np.ones((4, 2)), targets)
    assert learner.rounds == 4
    assert np.isfinite(learner.weights).all()
    assert abs(learner.intercept) <= 2 * max(targets)
    assert all(np.isfinite(array).all() for array in learner._arrays().values())


def spoilt(change):
    X, y = rows_and_labels(n=20)
    weights = np.ones(20)
    change(X, y, weights)
    return X, y, weights


BAD_BLOCKS = {
    "NaN": lambda X, y, w: X.__setitem__((19, 3), np.nan),
    "infinity": lambda X, y, w: X.__setitem__((19, 3), -np.inf),
    "huge": lambda X, y, w: X.__setitem__((19, 3), 1e120),
    "label": lambda X, y, w: y.__setitem__(19, 0.0),
    "negative weight": lambda X, y, w: w.__setitem__(19, -1.0),
    "NaN weight": lambda X, y, w: w.__setitem__(19, np.nan),
}


@pytest.mark.parametrize("of", [False, True])
@pytest.mark.parametrize("bad", BAD_BLOCKS)
def test_a_bad_block_is_refused_as_a_whole(bad, of):
    X, y, weights = spoilt(BAD_BLOCKS[bad])
    learner, other = learner_for("a-ftrl", sparse=of), learner_for("a-ftrl", sparse=of)
    with pytest.raises(InputError):
        learner.learn(sparse.csr_array(X) if of else X, y, weights)
    same(learner, other)


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [([0, 9], [0, 2]), ([0, -1], [0, 2]), ([0, 1], [1, 2]), ([0, 1], [0, 3]), ([0, 1, 2], [0, 3]), ([0, 1], [0, 1, 2])],
)
def test_broken_csr_matrices_are_refused(indices, indptr):
    matrix = sparse.csr_array((1, 7))
    matrix.data, matrix.indices, matrix.indptr = np.ones(2), np.array(indices), np.array(indptr)
    with pytest.raises(InputError) as refused:
        learner_for("a-ftrl", sparse=True).learn(matrix, [1.0])
    assert refused.value.argument == "X"


@pytest.mark.slow
def test_unsorted_and_repeated_csr_indices_mean_what_scipy_says():
    matrix = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([4, 1, 4]), np.array([0, 3])), shape=(1, 7))
    given_as, meant = learner_for("a-ftrl", sparse=True), learner_for("a-ftrl", sparse=True)
    given_as.learn(matrix, [1.0])
    meant.step([1, 4], [2.0, 4.0], 1.0)
    same(given_as, meant)
    assert matrix.indices.tolist() == [4, 1, 4]


@pytest.mark.parametrize(("of_indices", "of_indptr"), [("int32", "int64"), ("int64", "int32"), ("int16", "int32")])
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_csr_indices_of_any_dtype_mean_the_same(of_indices, of_indptr, order):
    X, y = rows_and_labels(n=50)
    plain, mixed = learner_for("a-ftrl", sparse=True), learner_for("a-ftrl", sparse=True)
    matrix = sparse.csr_array(X)[:, [*order, 3, 4, 5, 6]]
    margins = plain.learn(matrix, y)
    matrix.indices, matrix.indptr = matrix.indices.astype(of_indices), matrix.indptr.astype(of_indptr)
    np.testing.assert_array_equal(mixed.learn(matrix, y), margins)
    same(plain, mixed)


@pytest.mark.parametrize("order", [[0.5, 1.2], [True, False], [[0, 1]], [2], [-1]])
def test_an_invalid_order_is_refused(order):
    learner = learner_for("a-ftrl")
    with pytest.raises(InputError) as refused:
        learner.learn(np.ones((2, 7)), [1.0, -1.0], order=order)
    assert refused.value.argument == "order"
    assert learner.rounds == 0


def test_an_empty_block_changes_nothing():
    learner, other = learner_for("a-ftrl"), learner_for("a-ftrl")
    assert learner.learn(np.empty((0, 7)), []).shape == (0,)
    same(learner, other)


@pytest.mark.parametrize(
    ("more", "argument"),
    [
        ({"budget": 0.0}, "budget"),
        ({"l1": -1.0}, "l1"),
        ({"l1": 0.0, "l2": 0.0}, "l1"),
        ({"rule": "sgd"}, "rule"),
        ({"loss": "log"}, "loss"),
        ({"beta": 1.0}, "beta"),
        ({"growth": 0.0}, "growth"),
        ({"intercept_bound": -1.0}, "intercept_bound"),
        ({"budget": 1e300}, "budget"),
        ({"loss": "huber", "loss_parameter": 0.0}, "loss_parameter"),
        ({"loss": "quantile", "loss_parameter": 1.0}, "loss_parameter"),
    ],
)
def test_impossible_settings_are_refused(more, argument):
    with pytest.raises(InputError) as refused:
        BudgetLinearLearner(**({"dimension": 3, "budget": 1.0} | more))
    assert refused.value.argument == argument


# --- `partial_fit` past scikit-learn's checks is `partial_fit` through them -----------------------------------


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_labels_in_a_column_are_taken_in_every_call():
    X, y = rows_and_labels(regression=True)
    model, other = BudgetLinearRegressor(random_state=0), BudgetLinearRegressor(random_state=0)
    for _ in range(2):
        np.testing.assert_array_equal(model.partial_fit(X, y[:, None]).coef_, other.partial_fit(X, y).coef_)


@pytest.mark.parametrize("of", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("model", ["last", "average", "within_budget"])
def test_a_cached_model_is_dropped_with_the_next_row(model, of):
    X, y = rows_and_labels(n=2500, regression=True)
    looked_at, other = (BudgetLinearRegressor(predict_with=model, random_state=0) for _ in range(2))
    for part in np.split(np.arange(2500), 5):
        looked_at.partial_fit(of(X[part]), y[part])
        other.partial_fit(of(X[part]), y[part])
        looked_at.predict(X)
    np.testing.assert_array_equal(looked_at.predict(X), other.predict(X))


def test_rows_without_names_after_rows_with_names_are_warned_about():
    X, y = rows_and_labels()
    model = BudgetLinearRegressor(random_state=0).partial_fit(pd.DataFrame(X, columns=list("abcdefg")), y)
    with pytest.warns(UserWarning, match="valid feature names"):
        model.partial_fit(X, y)


def test_class_weights_that_are_set_later_count_from_then_on():
    X, y = rows_and_labels()
    model, other = (BudgetLinearClassifier(random_state=0).partial_fit(X, y, classes=[-1, 1]) for _ in range(2))
    model.set_params(class_weight={-1: 0.5, 1: 3.0}).partial_fit(X, y)
    other.partial_fit(X, y, sample_weight=np.where(y > 0, 3.0, 0.5))
    np.testing.assert_array_equal(model.coef_, other.coef_)
