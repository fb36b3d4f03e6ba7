"""Budget paths: every learner is the one that it would be alone; the choice of a budget; the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from longterm.errors import InputError, NonFiniteError
from longterm.linear_model import (
    BudgetLinearClassifier,
    BudgetLinearLearner,
    BudgetLinearRegressor,
    BudgetPath,
    BudgetPathClassifier,
    BudgetPathRegressor,
)
from longterm.linear_model._path_scores import PathScores
from longterm.linear_model.path import budgets_for, smallest_point

EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "a row of weight 2 is one round, not two",
    "check_sample_weight_equivalence_on_sparse_data": "a row of weight 2 is one round, not two",
}


def rows(n=3000, d=23, density=0.4, seed=0, *, classes=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    m = X[:, :4] @ np.array([1.0, -2.0, 0.5, 0.3]) + 0.3 * rng.standard_normal(n)
    return X, np.where(m > 0, 1.0, -1.0) if classes else 5.0 + 3.0 * m


def require_same(one: BudgetLinearLearner, other: BudgetLinearLearner) -> None:
    mine, theirs = one.__getstate__(), other.__getstate__()
    assert mine["specification"] == theirs["specification"]
    for name, array in mine["arrays"].items():
        np.testing.assert_array_equal(array, theirs["arrays"][name], err_msg=name)


@pytest.mark.parametrize("options", [{}, {"rule": "penalised-ftrl"}, {"loss": "squared"}, {"sparse": True}])
def test_a_path_is_its_learners(options):
    X, y = rows(classes="loss" not in options)
    weights = np.random.default_rng(3).random(len(y))
    order = np.random.default_rng(1).integers(len(y), size=2000)
    path = BudgetPath(X.shape[1], [0.1, 1.0, 30.0], **options)
    path.learn(sparse.csr_array(X), y, weights).learn(X, y, order=order)
    for learner, budget in zip(path.learners, (0.1, 1.0, 30.0), strict=True):
        single = BudgetLinearLearner(X.shape[1], budget, **options)
        single.learn(sparse.csr_array(X), y, weights)
        single.learn(X, y, order=order)
        require_same(learner, single)


def test_blocks_and_threads_change_nothing():
    X, y = rows(n=2777, d=5)
    whole = BudgetPath(5, np.geomspace(0.1, 10, 5), n_jobs=1).learn(X, y)
    parts = BudgetPath(5, np.geomspace(0.1, 10, 5), n_jobs=3)
    for start, stop in ((0, 1), (1, 1000), (1000, 1007), (1007, len(y))):
        parts.learn(X[start:stop], y[start:stop])
    for one, other in zip(whole.points, parts.points, strict=True):
        assert (one.loss, one.standard_error, one.nonzeros) == (other.loss, other.standard_error, other.nonzeros)
        require_same(one.learner, other.learner)


def test_standard_error_is_that_of_independent_losses():
    X, y = rows(n=20000, d=6)
    point = BudgetPath(6, [0.02], fit_intercept=False).learn(X, y).points[0]
    margins = BudgetLinearLearner(6, 0.02, fit_intercept=False).learn(X, y)
    losses = np.log1p(np.exp(-y * margins))
    np.testing.assert_allclose(point.standard_error, losses.std() / np.sqrt(len(y)), rtol=0.25)
    assert point.loss == pytest.approx(losses.mean(), rel=1e-12)


def test_standard_errors_come_from_whole_batches():
    losses = np.random.default_rng(0).random((1000, 2))
    scores, sums = PathScores(2), np.cumsum(losses, axis=0)
    for start, stop in ((0, 31), (31, 32), (32, 500), (500, 1000)):
        ends = scores.batch_ends(stop - start)
        scores.add(stop - start, sums[start + ends - 1], sums[stop - 1])
    batches = losses[: 31 * 32].reshape(31, 32, 2).mean(axis=1)
    np.testing.assert_allclose(scores.standard_errors(), batches.std(axis=0, ddof=1) / np.sqrt(31), rtol=1e-12)
    np.testing.assert_allclose(scores.means(), losses.mean(axis=0), rtol=1e-12)


def test_choices():
    X, y = rows(n=6000)
    path = BudgetPath(23, budgets_for(X, y, 12)).learn(X, y)
    points = path.points
    best, small, few = path.best(), path.smallest(), path.at_most(2)
    assert best.loss == min(point.loss for point in points)
    assert small.nonzeros <= best.nonzeros
    assert small.loss <= best.loss + best.standard_error
    assert all(p.nonzeros >= small.nonzeros for p in points if p.loss <= best.loss + best.standard_error)
    assert few.nonzeros <= 2
    assert few.loss == min(point.loss for point in points if point.nonzeros <= 2)
    assert points[0].loss > 1.1 * best.loss
    assert smallest_point(points, errors=0.0) == best
    dense = BudgetPath(23, [1000.0]).learn(X, y)
    with pytest.raises(InputError, match=r"features.*at most 2"):
        dense.at_most(2)


def test_bad_input_leaves_every_learner_unchanged():
    X, y = rows(n=100, d=4)
    path = BudgetPath(4, [1.0, 2.0]).learn(X, y)
    before = [learner.weights for learner in path.learners]
    bad = X.copy()
    bad[50, 2] = np.nan
    with pytest.raises(NonFiniteError, match="row 50"):
        path.learn(bad, y)
    with pytest.raises(InputError, match="order"):
        path.learn(X, y, order=[0, 100])
    with pytest.raises(InputError, match="budgets"):
        BudgetPath(4, [])
    for learner, old in zip(path.learners, before, strict=True):
        assert learner.rounds == 100
        np.testing.assert_array_equal(learner.weights, old)


def test_repr():
    assert repr(BudgetPath(4, [1.0, 2.5])) == (
        "BudgetPath(dimension=4, budgets=2 from 1 to 2.5, loss='logistic', rounds=0)"
    )


# --- scikit-learn's interface -----------------------------------------------------------------------------------


@parametrize_with_checks(
    [BudgetPathClassifier(budgets=3, n_jobs=1), BudgetPathRegressor(budgets=3, n_jobs=1)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:the budget of .* was never reached")
@pytest.mark.parametrize("classes", [True, False])
def test_the_model_is_that_of_the_chosen_budget(classes):
    X, y = rows(classes=classes)
    path, single = BudgetPathClassifier, BudgetLinearClassifier
    if not classes:
        path, single = BudgetPathRegressor, BudgetLinearRegressor
    model = path(8, random_state=0).fit(X, y)
    place = int(np.argmin(model.loss_path_))
    assert model.budget_ == model.budgets_[place]
    alone = single(model.budget_, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.multiplier_ == alone.multiplier_
    assert model.hard_violation_path_.shape == model.standard_error_path_.shape == model.nonzero_path_.shape == (8,)
    assert make_pipeline(StandardScaler(), clone(model)).fit(X, y).score(X, y) > 0.8


def test_partial_fit_continues_and_chooses_again():
    X, y = rows(n=4000)
    labels, grid = np.where(y > 0, "yes", "no"), [0.01, 1.0, 100.0]
    model, path = BudgetPathClassifier(grid, random_state=0), BudgetPath(23, grid)
    for start in range(0, 4000, 500):
        model.partial_fit(X[start : start + 500], labels[start : start + 500], classes=["no", "yes"])
    path.learn(X, y)
    np.testing.assert_array_equal(model.loss_path_, [point.loss for point in path.points])
    assert model.budget_ == path.best().budget
    np.testing.assert_array_equal(model.coef_[0], path.best().learner.weights)
    assert model.n_rounds_ == 4000


def test_badly_scaled_features():
    X = np.random.default_rng(0).normal(size=(2000, 3)) * [30000, 1, 1]
    assert BudgetPathClassifier(6, random_state=0).fit(X, X[:, 1] > 0).score(X, X[:, 1] > 0) > 0.98


def test_three_classes_share_a_budget():
    X, _ = rows(n=3000)
    y = np.argmax(X[:, :3], axis=1)
    model = BudgetPathClassifier(6, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 23)
    assert len(model.paths_) == 3
    assert model.score(X, y) > 0.6
    few = clone(model).set_params(max_features=3).fit(X, y)
    assert (np.count_nonzero(few.coef_, axis=1) <= 3).all()
    assert (np.count_nonzero(few.partial_fit(X, y).coef_, axis=1) <= 3).all()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"budgets": "many"}, "budgets"),
        ({"budgets": []}, "budgets: is empty"),
        ({"choose": "worst"}, "choose"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"predict_with": "first"}, "predict_with"),
        ({"max_features": 0}, "max_features"),
    ],
)
def test_bad_parameters(options, named):
    X, y = rows(n=50)
    with pytest.raises(InputError, match=named):
        BudgetPathClassifier(**options).fit(X, y)


@pytest.mark.slow
def test_figure():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = rows(n=1000)
    path = BudgetPath(23, np.geomspace(0.1, 10, 6)).learn(X, y)
    axis = path.figure()
    x, losses = axis.lines[0].get_data()
    assert list(x) == [point.nonzeros for point in path.points]
    assert list(losses) == [point.loss for point in path.points]
    assert BudgetPathClassifier(6, random_state=0).fit(X, y).figure(axis) is axis
    plt.close("all")
