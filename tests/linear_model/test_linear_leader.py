"""The leader of all rows, and what `fit` without a budget makes of it."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from longterm.linear_model import BudgetLinearClassifier, BudgetLinearRegressor, _fit
from longterm.linear_model._feature_scale import FeatureScale
from longterm.linear_model._fit import Choice, HeldOut, Part
from longterm.linear_model._leader import Leader, Leaders, MarginLosses, Scaling, SoftmaxLosses
from longterm.linear_model._rows import row_block
from longterm.linear_model.kernels.losses import CODES

LOGISTIC, SQUARED = MarginLosses(CODES["logistic"], 0.0), MarginLosses(CODES["squared"], 0.0)
NONE = np.empty(0)


def rows(n=300, d=6, classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    X[:, 0] += 3.0
    labels = np.argmax(X[:, :classes] + rng.gumbel(size=(n, classes)), axis=1)
    return X, labels


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_penalised_model_of_others(kind, weighted):
    """scikit-learn's, of rows as they are scaled, whose penalty leaves the intercept out, too."""
    X, labels = rows()
    y, weights = np.where(labels > 0, 1.0, -1.0), np.random.default_rng(1).uniform(1, 3, len(X)) if weighted else NONE
    scale = FeatureScale.of_block(row_block(X, 6), 6, True)
    seen, ridge = (X - scale.means) * scale.factors, 0.3
    penalty = ridge * (weights.mean() if weighted else 1.0)
    for losses, targets, model in (
        (LOGISTIC, y, LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=1000)),
        (SQUARED, X @ np.arange(6.0) + y, Ridge(penalty, tol=1e-12)),
    ):
        model.fit(seen, targets, sample_weight=weights if weighted else None)
        found = Leader(losses, kind(X), targets, weights, scale, True).found([ridge])[0]
        np.testing.assert_allclose(X @ found[:-1] + found[-1], _scores(model, seen), atol=0.02)


def _scores(model, rows):
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


def test_of_several_classes_it_is_the_penalised_softmax_model():
    X, labels = rows(classes=3)
    model = LogisticRegression(C=1 / 0.3, tol=1e-10, max_iter=1000).fit(X, labels)
    found = Leader(SoftmaxLosses(3), X, labels.astype(float), NONE, None, True).found([0.3])[0]
    scores = X @ found[:-3].reshape(3, 6).T + found[-3:]
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chances, model.predict_proba(X), atol=0.01)


@pytest.mark.parametrize("losses", [LOGISTIC, SQUARED, MarginLosses(CODES["huber"], 0.5), SoftmaxLosses(3)])
def test_slopes_are_those_of_the_sum(losses):
    rng = np.random.default_rng(2)
    several = isinstance(losses, SoftmaxLosses)
    scores, weights = rng.standard_normal((20, 3) if several else 20), rng.uniform(0, 2, 20)
    labels = rng.integers(3, size=20).astype(float) if several else np.where(rng.random(20) < 0.5, 1.0, -1.0)
    slopes = losses.slopes(scores, labels, weights)
    for place in np.ndindex(scores.shape):
        step = np.zeros(scores.shape)
        step[place] = 1e-6
        up, down = (losses.total(scores + sign * step, labels, weights) for sign in (1, -1))
        assert slopes[place] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_without_an_intercept_there_is_none_and_points_come_back():
    X, labels = rows()
    scale = FeatureScale.of_block(row_block(X, 6), 6, False)
    leader = Leader(LOGISTIC, X, np.where(labels > 0, 1.0, -1.0), NONE, scale, False)
    point = leader.at(1.0, leader.start())
    assert point[-1] == 0
    assert np.abs(point[:-1]).max() > 0.1
    np.testing.assert_allclose(leader.point(*leader.model(point)), point, rtol=1e-12)


def test_scalings_are_tried_where_they_differ():
    X, _labels = rows()
    powers, units = [Scaling(0.0), Scaling(0.25)], [Scaling(0.0, 0.5), Scaling(0.0, 0.0)]
    some = np.random.default_rng(1).standard_normal((300, 6)) + 5.0  # never 0, of one size
    rare = X * (np.arange(len(X)) % 4 == 0)[:, None]
    for given, wanted in ((some * [1, 2, 3, 4, 5, 6], units), (rare, powers + units)):
        assert Leaders(LOGISTIC, given, row_block(given, 6), True, True).differing(powers + units) == wanted
    leaders = Leaders(LOGISTIC, some, row_block(some, 6), None, True)
    assert leaders.differing(powers + units) == []  # nothing is scaled
    assert not leaders.is_centred


def test_parts_of_a_leader_are_found_together():
    X, labels = rows()
    leaders = Leaders(LOGISTIC, X, row_block(X, 6), True, True)
    y = np.where(labels > 0, 1.0, -1.0)
    parts = Part(0.5, 0.3), Part(0.3, 4.0), Part(0.2, 1.0, Scaling(0.0, 0.0))
    mixed = Choice(1, 0.0, parts).leader(lambda scaling: leaders.of(y, NONE, scaling))
    alone = sum(p.weight * leaders.of(y, NONE, p.scaling).found([p.strength])[0] for p in parts)
    np.testing.assert_allclose(mixed, alone, atol=2e-3)


def test_units_count_where_they_say_what_matters():
    """Weights that are alike in the features' own units, which differ by a hundred: what a plain ridge expects."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((3000, 60)) * np.geomspace(1, 0.01, 60)
    y = np.where(X @ np.ones(60) + rng.logistic(size=3000) > 0, 1, -1)
    ours = BudgetLinearClassifier(random_state=0).fit(X[:500], y[:500])
    batch = [LogisticRegression(C=C, max_iter=1000).fit(X[:500], y[:500]) for C in (0.1, 1.0, 10.0)]
    assert log_loss(ours, X[500:], y[500:]) < 1.01 * min(log_loss(model, X[500:], y[500:]) for model in batch)


def test_targets_in_time_leave_the_rounds_half_of_the_answer(monkeypatch):
    """Errors that wander; the same rows in another order have none that do."""
    rng, seen = np.random.default_rng(5), []
    X = rng.standard_normal((600, 4))
    y = X @ np.arange(4.0) + np.cumsum(0.2 * rng.standard_normal(600))
    choice = HeldOut.choice
    monkeypatch.setattr(HeldOut, "choice", lambda self, *more: seen.append(choice(self, *more)) or seen[-1])
    mixed = rng.permutation(600)
    monkeypatch.setattr(_fit, "SHARES", (0.0,))
    for rows_, targets in ((X, y), (X[mixed], y[mixed])):
        BudgetLinearRegressor(random_state=0).fit(rows_, targets)
    BudgetLinearClassifier(random_state=0).fit(X, y > 0)  # classes, too, come in runs
    assert [one.share for one in seen] == [0.5, 0.0, 0.0]


def web(n, seed):
    """Rows of a sparse web set: 200 features that are 0 or 1, 5 % positives, weights from a Gaussian prior."""
    rng = np.random.default_rng(seed)
    often = np.minimum(10 * (1 + np.arange(200.0)) ** -1 / 5.9, 0.5)
    X = (rng.random((n, 200)) < often).astype(float)
    weights = np.random.default_rng(0).standard_normal(200)
    margins = 1.5 * (X @ weights)
    return X, np.where(margins - np.quantile(margins, 0.95) + rng.logistic(size=n) > 0, 1, -1)


def log_loss(model, X, y):
    return float(np.mean(np.logaddexp(0.0, -y * model.decision_function(X))))


@pytest.mark.slow
def test_many_weak_features_ask_for_a_strength_and_not_for_passes():
    X, y = web(6000, 1)
    ours = BudgetLinearClassifier(random_state=0).fit(X[:2000], y[:2000])
    rounds = [BudgetLinearClassifier(random_state=0, passes=p).fit(X[:2000], y[:2000]) for p in (1, 2, 4, 10)]
    batch = [LogisticRegression(C=C, max_iter=1000).fit(X[:2000], y[:2000]) for C in (0.1, 1.0, 10.0)]
    loss, of_rounds, of_batch = (
        min(log_loss(model, X[2000:], y[2000:]) for model in models) for models in ([ours], rounds, batch)
    )
    assert loss < 0.98 * of_rounds  # the best number of passes in hindsight
    assert loss < 1.02 * of_batch  # the best strength in hindsight


def test_the_answer_is_that_of_rows_alone_where_the_leader_has_all_of_it(monkeypatch):
    X, y = web(300, 2)
    choice = HeldOut.choice
    monkeypatch.setattr(HeldOut, "choice", lambda self, *more: choice(self, *more)._replace(share=0.0))
    one, two = (BudgetLinearClassifier(random_state=seed).fit(X, y) for seed in (0, 1))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.cumulative_loss_ != two.cumulative_loss_


@pytest.mark.parametrize("more", [{"intercept_bound": 1.0}, {"half_life": 50.0}, {"max_features": 3}, {"passes": 3}])
def test_bounds_and_orders_leave_no_room_for_a_leader(more, monkeypatch):
    X, labels = rows(100)

    def refuse(*_):
        raise AssertionError("a leader was asked for")

    monkeypatch.setattr(Leader, "at", refuse)
    BudgetLinearClassifier(**more).fit(X, labels)
    with pytest.raises(AssertionError):
        BudgetLinearClassifier().fit(X, labels)


def test_targets_of_any_level_and_unit_are_learned_alike():
    X, labels = rows(200)
    y = X @ np.arange(6.0) + labels
    plain = BudgetLinearRegressor(random_state=0).fit(X, y).predict(X)
    other = BudgetLinearRegressor(random_state=0).fit(X, 1e-3 * y + 1e3).predict(X)
    np.testing.assert_allclose((other - 1e3) * 1e3, plain, atol=0.02 * np.std(y))
