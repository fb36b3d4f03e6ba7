"""Paths of budgets: every learner is what it would have been alone; the choice among them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from longterm.errors import InputError, NonFiniteError
from longterm.linear_model import (
    BudgetLinearLearner,
    BudgetPath,
    BudgetPathClassifier,
    BudgetPathRegressor,
    budgets_for,
)
from longterm.linear_model.kernels.functions import exponential, falling_power, log1p_of_share, logarithm
from longterm.linear_model.path import at_most_of, smallest_of

EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "a row of weight 2 is one round, not two",
    "check_sample_weight_equivalence_on_sparse_data": "a row of weight 2 is one round, not two",
}
CLOSE = {"rtol": 1e-9, "atol": 1e-9}
LOSSES = ("logistic", "hinge", "squared_hinge", "squared", "huber", "quantile")


def rows(n=3000, d=23, density=0.4, seed=0, *, classes=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    m = X[:, :4] @ np.array([1.0, -2.0, 0.5, 0.3]) + 0.3 * rng.standard_normal(n)
    return X, np.where(m > 0, 1.0, -1.0) if classes else 5.0 + 3.0 * m


def require_same(one: BudgetLinearLearner, other: BudgetLinearLearner) -> None:
    assert one.rounds == other.rounds
    np.testing.assert_allclose(one.weights, other.weights, **CLOSE)
    assert one.nonzeros == other.nonzeros
    for name in (
        "intercept",
        "multiplier",
        "cumulative_loss",
        "signed_violation",
        "hard_violation",
        "squared_violation",
    ):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), err_msg=name, **CLOSE)
    for (x, b), (y, c) in ((one.average(), other.average()), (one.within_budget(), other.within_budget())):
        np.testing.assert_allclose(x, y, **CLOSE)
        np.testing.assert_allclose(b, c, **CLOSE)
    for field in one._rule.scalars.dtype.names:
        np.testing.assert_allclose(one._rule.scalars[field], other._rule.scalars[field], err_msg=field, **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_a_path_is_its_learners(loss):
    """Eighteen learners: a group that is full and two that are left; β differs within a group."""
    X, y = rows(classes=loss in LOSSES[:3])
    weights = np.random.default_rng(3).random(len(y))
    path = BudgetPath(X.shape[1], np.geomspace(0.1, 30, 9), betas=[0.5, 0.7], loss=loss)
    path.learn(X, y, weights)
    for point in path.points:
        single = BudgetLinearLearner(X.shape[1], point.budget, beta=point.beta, loss=loss, scales="one")
        single.learn(X, y, weights)
        require_same(point.learner, single)
        np.testing.assert_allclose(point.loss, single.cumulative_loss / len(y), **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_given_constants(loss):
    """A few rows from the same state: whole trajectories with these steps are chaotic on every processor."""
    classes = loss in LOSSES[:3]
    X, y = rows(n=320, classes=classes)
    constants = {"feature_norm": 12.0} | ({} if classes else {"label_bound": 60.0})
    path = BudgetPath(X.shape[1], np.geomspace(0.1, 30, 9), loss=loss, constants=constants)
    for start in range(0, len(y), 4):
        singles = [pickle.loads(pickle.dumps(learner)) for learner in path.learners]
        path.learn(X[start : start + 4], y[start : start + 4])
        for single, learner in zip(singles, path.learners, strict=True):
            single.learn(X[start : start + 4], y[start : start + 4])
            require_same(learner, single)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dense", "float32", "csr", "csr in sparse memory"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_forms_of_rows(form, shuffled):
    X, y = rows(n=2500)
    given = {"dense": X, "float32": X.astype(np.float32)}.get(form, sparse.csr_array(X))
    order = np.random.default_rng(1).integers(len(y), size=2000) if shuffled else None
    in_sparse_memory = form == "csr in sparse memory"
    path = BudgetPath(X.shape[1], np.geomspace(0.3, 10, 6), sparse=in_sparse_memory, fit_intercept=not shuffled)
    path.learn(given, y, order=order)
    for point in path.points:
        single = BudgetLinearLearner(
            X.shape[1], point.budget, fit_intercept=not shuffled, sparse=in_sparse_memory, scales="one"
        )
        single.learn(given, y, order=order)
        require_same(point.learner, single)


@pytest.mark.parametrize("scales", ["mixed", "priced"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_mixtures_of_scales(loss, scales):
    X, y = rows(n=2000, classes=loss == "logistic")
    path = BudgetPath(X.shape[1], np.geomspace(0.3, 30, 5), loss=loss, scales=scales).learn(X, y)
    for point in path.points:
        single = BudgetLinearLearner(X.shape[1], point.budget, loss=loss, scales=scales)
        single.learn(X, y)
        require_same(point.learner, single)
        np.testing.assert_array_equal(point.learner._rule.mixture, single._rule.mixture)


def test_rules_and_seeds_side_by_side():
    X, y = rows()
    path = BudgetPath(23, [0.5, 5.0], rules=["a-ftrl", "a-ogd", "penalised-ftrl"], seeds=[0, 7], n_jobs=1).learn(X, y)
    assert len(path.points) == 12
    for point in path.points:
        single = BudgetLinearLearner(23, point.budget, rule=point.rule, seed=point.seed, scales="one")
        single.learn(X, y)
        require_same(point.learner, single)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_blocks_change_nothing(loss):
    """Nor do threads: bit for bit, standard errors too."""
    X, y = rows(n=2 * 16384 + 777, d=5, classes=loss == "logistic")
    whole = BudgetPath(5, np.geomspace(0.1, 10, 20), loss=loss, n_jobs=1).learn(X, y)
    parts = BudgetPath(5, np.geomspace(0.1, 10, 20), loss=loss, n_jobs=3)
    for start, stop in ((0, 1), (1, 1000), (1000, 20000), (20000, len(y))):
        parts.learn(X[start:stop], y[start:stop])
    for one, other in zip(whole.points, parts.points, strict=True):
        assert (one.loss, one.standard_error, one.nonzeros) == (other.loss, other.standard_error, other.nonzeros)
        np.testing.assert_array_equal(one.learner.weights, other.learner.weights)
        np.testing.assert_array_equal(one.learner.average()[0], other.learner.average()[0])


def test_standard_error_is_that_of_independent_losses():
    """Rows that come in no order: batches know what single losses know."""
    X, y = rows(n=20000, d=6)
    path = BudgetPath(6, np.geomspace(0.01, 0.05, 4), fit_intercept=False).learn(X, y)
    point = path.points[2]
    learner = BudgetLinearLearner(6, point.budget, fit_intercept=False, scales="one")
    margins = learner.learn(X, y)
    losses = np.log1p(np.exp(-y * margins))
    np.testing.assert_allclose(point.standard_error, losses.std() / np.sqrt(len(y)), rtol=0.25)


def test_rows_that_are_not_scored():
    X, y = rows(n=1000, d=6)
    path = BudgetPath(6, [0.5, 1.0, 2.0, 5.0]).learn(X, y)
    before = [(point.loss, point.standard_error) for point in path.points]
    path.learn(X, y, scored=False)
    assert [(point.loss, point.standard_error) for point in path.points] == before
    assert path.learners[0].rounds == 2000
    path.learn(X, y)
    third = BudgetLinearLearner(6, 2.0, scales="one")
    third.learn(X, y)
    first = third.cumulative_loss
    third.learn(X, y)
    second = third.cumulative_loss
    third.learn(X, y)
    np.testing.assert_allclose(path.points[2].loss, (third.cumulative_loss - second + first) / 2000, rtol=1e-12)


def test_choices():
    X, y = rows(n=6000)
    path = BudgetPath(23, budgets_for(X, y)).learn(X, y)
    points = path.points
    best, small, few = path.best(), path.smallest(), path.at_most(2)
    assert best.loss == min(point.loss for point in points)
    assert small.nonzeros <= best.nonzeros
    assert small.loss <= best.loss + best.standard_error
    assert all(p.nonzeros >= small.nonzeros for p in points if p.loss <= best.loss + best.standard_error)
    assert few.nonzeros <= 2
    assert few.loss == min(point.loss for point in points if point.nonzeros <= 2)
    assert points[0].loss > 1.1 * best.loss
    assert points[-1].loss > 1.1 * best.loss  # both ends of the grid are visibly wrong
    assert smallest_of(points, errors=0.0) == best
    dense = [point for point in points if point.nonzeros > 2]
    with pytest.raises(InputError, match=r"features.*at most 2"):
        at_most_of(dense, 2)


def test_what_is_refused_leaves_every_learner_as_it_was():
    X, y = rows(n=100, d=4)
    path = BudgetPath(4, [1.0, 2.0, 3.0, 4.0]).learn(X, y)
    before = [learner.weights for learner in path.learners]
    bad = X.copy()
    bad[50, 2] = np.nan
    with pytest.raises(NonFiniteError, match="row 50"):
        path.learn(bad, y)
    with pytest.raises(InputError, match="order"):
        path.learn(X, y, order=[0, 100])
    with pytest.raises(InputError, match="budgets"):
        BudgetPath(4, [])
    with pytest.raises(InputError, match="rules"):
        BudgetPath(4, [1.0], rules=[])
    for learner, old in zip(path.learners, before, strict=True):
        assert learner.rounds == 100
        np.testing.assert_array_equal(learner.weights, old)


@pytest.mark.slow
def test_functions_without_calls():
    x = -np.concatenate([np.linspace(0, 40, 20001), np.geomspace(1e-12, 700, 2000)])
    made = np.array([exponential(one) for one in x])
    assert (np.abs(made / np.exp(x) - 1) <= 4e-16 * (2 - x)).all()
    s = np.concatenate([np.linspace(0, 1, 20001), np.geomspace(1e-300, 1, 2000)])
    np.testing.assert_allclose([log1p_of_share(one) for one in s], np.log1p(s), rtol=1e-15)
    assert exponential(-1e300) == 0
    assert np.isnan(exponential(np.nan))
    x = np.concatenate([np.geomspace(1e-300, 1e300, 2001), 1 + np.geomspace(1e-12, 0.5, 500)])
    np.testing.assert_allclose([logarithm(one) for one in x], np.log(x), rtol=1e-15, atol=3e-16)
    t = np.unique(np.geomspace(1, 1e15, 500).astype(np.int64))
    np.testing.assert_allclose([falling_power(logarithm(one), 2 / 3) for one in t], t ** (-2 / 3), rtol=1e-14)


# --- scikit-learn's interface -----------------------------------------------------------------------------------


@parametrize_with_checks(
    [BudgetPathClassifier(budgets=5, n_jobs=1), BudgetPathRegressor(budgets=5, n_jobs=1)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_classifier_is_the_learner_it_chose():
    X, y = rows()
    model = BudgetPathClassifier(random_state=0, shuffle=False, passes=1).fit(X, y)
    assert len(model.budgets_) == 32
    place = int(np.argmin(model.loss_path_))
    assert model.budget_ == model.budgets_[place]
    single = BudgetLinearLearner(23, model.budget_, scales="one")
    single.learn(X, y)
    np.testing.assert_allclose(model.coef_[0], single.weights, **CLOSE)
    assert model.n_nonzero_ == model.nonzero_path_[place] == single.nonzeros
    assert model.predict_proba(X).shape == (3000, 2)
    assert model.hard_violation_path_.shape == model.standard_error_path_.shape == (32,)


def test_partial_fit_goes_on_and_chooses_anew():
    X, y = rows(n=4000)
    labels = np.where(y > 0, "yes", "no")
    grid = np.geomspace(0.01, 100, 12)
    streamed = BudgetPathClassifier(grid, random_state=0)
    for start in range(0, 4000, 500):
        streamed.partial_fit(X[start : start + 500], labels[start : start + 500], classes=["no", "yes"])
    whole = BudgetPathClassifier(grid, random_state=0, shuffle=False, passes=1).fit(X, labels)
    np.testing.assert_array_equal(streamed.loss_path_, whole.loss_path_)
    np.testing.assert_array_equal(streamed.coef_, whole.coef_)
    assert streamed.n_rounds_ == 4000


def test_three_classes_share_a_budget():
    X, _ = rows(n=3000)
    y = np.argmax(X[:, :3], axis=1)
    model = BudgetPathClassifier(16, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 23)
    assert len({path.learners[0].settings.budget for path in model.paths_}) == 1
    assert len({learner.settings.budget for learner in model._learners}) == 1
    assert model.score(X, y) > 0.6
    few = clone(model).set_params(max_features=9).fit(X, y)
    assert np.count_nonzero(few.coef_) <= 9


def test_regressor_with_an_interval_that_widens():
    X, y = rows(classes=False)
    model = BudgetPathRegressor(random_state=0, shuffle=False, passes=1).fit(X, y)
    single = BudgetLinearLearner(23, model.budget_, loss="squared", scales="one")
    single.learn(X, y)
    np.testing.assert_allclose(model.coef_, single.weights, **CLOSE)
    np.testing.assert_allclose(model.intercept_, single.intercept, **CLOSE)
    assert make_pipeline(StandardScaler(), clone(model)).fit(X, y).score(X, y) > 0.9


def test_wide_sparse_rows_have_sparse_memory():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 5000), density=0.002, rng=rng, format="csr")
    y = np.where(rng.random(300) > 0.5, 1, -1)
    model = BudgetPathClassifier(4, random_state=0, n_jobs=1).fit(X, y)
    assert model.paths_[0].learners[0]._rule.is_sparse
    narrow = BudgetPathClassifier(4, random_state=0, n_jobs=1).fit(X[:, :50], y)
    assert not narrow.paths_[0].learners[0]._rule.is_sparse


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"budgets": "many"}, "budgets"),
        ({"choose": "worst"}, "choose"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"predict_with": "recent"}, "predict_with"),
    ],
)
def test_what_estimators_refuse(options, named):
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
