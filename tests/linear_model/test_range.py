"""One range of numbers, whichever way a row comes; inside it nothing overflows, outside nothing is changed."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from longterm import InputError
from longterm.linear_model import BudgetLinearLearner, BudgetLinearRegressor, EvolvingLinearLearner

FIRST = np.array([0.5, -1.0, 2.0])
SIZES = [0.0, 1e-300, 1e-160, 1e-90, 1e-12, 1e12, 3e12, 1e29, 1e31, 1e43, 3e44, 1e45, 1e88, 3e89, 1e91, 1e160, 1e307]


def images(learner):
    state = learner.__getstate__()
    return repr(state["specification"]), {name: array.tobytes() for name, array in state["arrays"].items()}


def ways(kind, **options):
    """The same learner, and how it is given one more row."""
    for way in ("dense", "sparse", "block", "sparse block"):
        yield way, kind(3, 1.0, **options)


def give(learner, way, u, y, weight):
    """The margin."""
    columns = np.flatnonzero(u)
    if way == "dense":
        return learner.step_dense(u, y, weight)
    if way == "sparse":
        return learner.step(columns, u[columns], y, weight)
    return learner.learn(u[None] if way == "block" else csr_array(u[None]), [y], [weight])[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss",
    [
        "logistic",
        "squared",
        *(pytest.param(loss, marks=pytest.mark.cross) for loss in ("squared_hinge", "huber", "quantile")),
    ],
)
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (BudgetLinearLearner, {}),
        (BudgetLinearLearner, {"sparse": True}),
        (BudgetLinearLearner, {"rule": "penalised-ftrl", "fit_intercept": False}),
        (BudgetLinearLearner, {"rule": "penalised-ftrl", "scale_features": True}),
        (EvolvingLinearLearner, {"sparse": True}),
        (EvolvingLinearLearner, {"half_life": 3.0}),
    ],
)
def test_every_method_accepts_the_same_rows_with_the_same_bits(kind, options, loss):
    classifies = loss in ("logistic", "squared_hinge")
    for size in SIZES:
        for what in ("row", "weight", *(() if classifies else ("target",))):
            u = FIRST * size if what == "row" else np.array([0.0, 1.0, -1.0])
            y, weight = size if what == "target" else 1.0, size if what == "weight" else 1.0
            made = []
            for way, learner in ways(kind, loss=loss, **options):
                learner.learn(FIRST[None], [1.0])
                before = images(learner)
                try:
                    margin = give(learner, way, u, y, weight)
                except InputError:
                    assert images(learner) == before, (way, what, size)
                    made.append(None)
                    continue
                assert margin is None or np.isfinite(margin), (way, what, size)
                assert np.isfinite([*learner.weights, learner.intercept]).all(), (way, what, size)
                made.append(images(learner))
            assert all(one == made[0] for one in made), (what, size)
            assert (made[0] is not None) or size > 1e12, (what, size)
            assert (made[0] is None) or size < 1e91, (what, size)


def test_a_block_is_accepted_if_its_rows_are_one_by_one():
    """Not by the largest row, target and weight of the block together: each row has its own."""
    X, y, weights = np.diag([1e44, 1.0, 1.0]), np.array([1.0, 1e80, 1.0]), np.array([1.0, 1.0, 1e80])
    options = {"loss": "squared", "fit_intercept": False, "scale_features": False}
    one_by_one, at_once = BudgetLinearLearner(3, 1.0, **options), BudgetLinearLearner(3, 1.0, **options)
    margins = [one_by_one.step_dense(u, target, weight) for u, target, weight in zip(X, y, weights, strict=True)]
    np.testing.assert_array_equal(at_once.learn(X, y, weights), margins)
    assert images(one_by_one) == images(at_once)
    shuffled = BudgetLinearLearner(3, 1.0, **options)
    shuffled.learn(X, y, weights, order=[2, 0, 1])
    with pytest.raises(InputError, match="see row 1"):
        shuffled.learn(X * np.array([[1.0], [1e30], [1.0]]), y, weights, order=[2, 0, 1])


def test_the_range_of_a_row_does_not_depend_on_a_weight_of_zero():
    learner = BudgetLinearLearner(2, 1.0)
    learner.learn([[1.0, 2.0]], [1.0])
    before = images(learner)
    for X in ([[1.0, 1.0], [1e200, 0.0]], csr_array([[1.0, 1.0], [1e200, 0.0]])):
        with pytest.raises(InputError, match="see row 1"):
            learner.learn(X, [1.0, 1.0], [1.0, 0.0])
        assert images(learner) == before


def test_rows_that_are_too_large_after_scaling_roll_the_block_back():
    """The first row sets the unit, and the second, in range as it came, is 1e90 times as long."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 2)) * 1e-50, np.array([1.0, -2.0, 3.0, 0.5, 1.0, 1.0])
    X[4] = 1e40
    for sparse in (False, True):
        block, single = (BudgetLinearLearner(2, 1.0, loss="squared", scale_features=True, sparse=sparse) for _ in "12")
        before = images(block)
        with pytest.raises(InputError, match=r"large|overflow"):
            block.learn(X, y)
        assert images(block) == before
        block.learn(X[:4], y[:4])
        for u, target in zip(X[:4], y[:4], strict=True):
            single.step_dense(u, target)
        before = images(single)
        with pytest.raises(InputError, match="large"):
            single.step_dense(X[4], 1e6)  # neither the interval nor the factors have changed
        assert images(single) == before == images(block)


def test_a_long_row_with_a_far_target_is_clipped_as_in_a_block():
    """What a kernel refuses must not have moved where margins are cut off."""
    X, y = np.array([[-1e11], [9e10], [0.0], [1.2e12]]), np.array([-0.5, 0.3, 1.7, 2e42])
    one_by_one, at_once = (BudgetLinearLearner(1, 1.0, loss="huber") for _ in range(2))
    margins = [one_by_one.step_dense(u, target) for u, target in zip(X, y, strict=True)]
    np.testing.assert_array_equal(at_once.learn(X, y), margins)


@pytest.mark.parametrize("threshold", [1e-300, 1e-170, 1e-130, 1.0, 1e300])
@pytest.mark.parametrize("size", [1e-200, 1e-60, 1.0, 1e43])
def test_thresholds_of_any_size_leave_finite_models(threshold, size):
    learner = BudgetLinearLearner(1, 1e6, loss="huber", loss_parameter=threshold)
    learner.learn(np.zeros((3, 1)), np.array([1.0, 0.5, -2.0]) * size)
    assert np.isfinite(learner.intercept)
    assert np.isfinite(learner.step_dense([0.0], size))


@pytest.mark.parametrize("weight", ["much", None])
def test_an_invalid_weight_is_refused_with_a_half_life(weight):
    learner = EvolvingLinearLearner(2, 1.0, half_life=5.0)
    with pytest.raises(InputError, match="weight"):
        learner.step_dense([1.0, 1.0], 1.0, weight)


@pytest.mark.filterwarnings("ignore::longterm.errors.BudgetWarning")
def test_estimators_have_the_range_of_learners():
    X, y = np.array([[1.0], [-1.0], [2.0]]), np.array([1.0, 2.0, 1e86])
    BudgetLinearRegressor(1.0, scale_features=False, random_state=0).partial_fit(X, y).partial_fit(X, y)
    BudgetLinearRegressor(1.0, scale_features=False, random_state=0).fit(X, y)
    far = BudgetLinearRegressor(1.0, scale_features=False, random_state=0)
    with pytest.raises(InputError, match="large"):
        far.partial_fit(X, [1.0, 2.0, 1e91])
    with pytest.raises(InputError, match="large"):
        far.fit(X, [1.0, 2.0, 1e91])


@pytest.mark.parametrize("columns", [[0, 5], [2, 1], [-1, 0], [0, 0]])
def test_columns_are_checked_before_scaling(columns):
    learner = BudgetLinearLearner(3, 1.0, scale_features=True, sparse=True)
    learner.learn([[1.0, 2.0, 3.0], [1.0, 0.0, 1.0]], [1.0, -1.0])
    with pytest.raises(InputError, match="indices"):
        learner.step(np.array(columns), np.array([1.0, 2.0]), 1.0)
