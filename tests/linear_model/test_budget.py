"""The budget of the estimators: its units, its warnings, its multiplier, and the limit on features."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import StandardScaler

from longterm.errors import BudgetWarning, InputError
from longterm.linear_model import BudgetLinearClassifier, BudgetLinearLearner, BudgetLinearRegressor


def badly_scaled(n=5000):
    X = np.random.default_rng(0).normal(size=(n, 3)) * [30000, 1, 1]
    return X, X[:, 1] > 0


def mixed_columns(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.gamma(2, 500, n), rng.random((n, 3)) < 0.3, rng.normal(size=(n, 4))])
    return X, 0.002 * X[:, 0] - 2 + X[:, 1] - X[:, 4] + rng.logistic(size=n) > 0


def log_loss(model, X, y):
    return float(np.mean(np.logaddexp(0, np.where(y, -1, 1) * model.decision_function(X))))


# --- units ----------------------------------------------------------------------------------------------------


def test_a_budget_on_badly_scaled_features():
    X, y = badly_scaled()
    model = BudgetLinearClassifier(budget=3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.99
    weights = model.coef_[0] * X.std(axis=0)
    assert np.abs(weights).sum() + 0.5 * weights @ weights <= 3 * (1 + 1e-9)


@pytest.mark.parametrize("stream", [False, True])
def test_the_budget_counts_weights_times_the_sizes_of_features(stream):
    X, y = mixed_columns()
    model = BudgetLinearClassifier(3.0, random_state=0)
    model = model.partial_fit(X, y, classes=[False, True]) if stream else model.fit(X, y)
    sizes, share = model._learners[0].sizes, (X[:, 1:4] != 0).mean(axis=0)
    np.testing.assert_allclose(sizes[[0, 4, 5, 6, 7]], X[:, [0, 4, 5, 6, 7]].std(axis=0), rtol=0.05)
    np.testing.assert_allclose(sizes[1:4], share**0.25, rtol=0.05)
    own = model.coef_within_budget_[0] * sizes
    assert 2.7 < np.abs(own).sum() + 0.5 * own @ own <= 3.0 * (1 + 1e-12)


def streams():
    """Return rows and targets: Gaussian, heavy tails, a late jump, tiny targets, counts of words."""
    rng = np.random.default_rng(11)
    X, weights = rng.standard_normal((150, 6)), rng.standard_normal(6)
    y, far = X @ weights + 0.5 * rng.standard_normal(150), rng.standard_t(2, (150, 6))
    words = sparse.csr_array((rng.random((150, 300)) < 0.03) * rng.exponential(size=(150, 300)))
    return {
        "gaussian": (X, y + 40),
        "heavy": (far, far @ weights + rng.standard_t(1.5, 150)),
        "jump": (X, y * np.where(np.arange(150) < 70, 1e-3, 1.0)),
        "tiny": (X, 1e-4 * y),
        "words": (words, words @ rng.standard_normal(300) + rng.standard_t(1.5, 150)),
    }


OPTIONS = (
    {"loss": "squared"},
    {"loss": "squared", "fit_intercept": False},
    {"loss": "squared", "intercept_bound": 2.0},
    {"loss": "huber", "rule": "penalised-ftrl"},
    {"loss": "quantile"},
    {"loss": "logistic"},
    {"loss": "hinge", "fit_intercept": False, "rule": "penalised-ftrl"},
)


@pytest.mark.parametrize("kind", streams())
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_budget_that_is_never_reached_changes_no_bit(kind, options):
    X, y = streams()[kind]
    y = np.where(y > np.median(y), 1.0, -1.0) if options["loss"] in ("logistic", "hinge") else y

    def learned(budget):
        learner = BudgetLinearLearner(X.shape[1], budget, sparse=kind == "words", **options)
        return learner, [learner.learn(X[k : k + 1], y[k : k + 1])[0] for k in range(len(y))]

    free, known = learned(None)
    again = BudgetLinearLearner(X.shape[1], sparse=kind == "words", **options)
    largest = 0.0
    for k in range(len(y)):
        again.learn(X[k : k + 1], y[k : k + 1])
        largest = max(largest, again.size(again.weights))
    for times in (1.01, 100.0, 1e9):
        learner, found = learned(times * largest)
        assert not learner.binds
        np.testing.assert_array_equal(found, known)
        assert learner.cumulative_loss == free.cumulative_loss
    tight, _ = learned(largest / 2)
    assert tight.binds


@pytest.mark.parametrize("rule", ["a-ftrl", "penalised-ftrl"])
@pytest.mark.parametrize("kind", ["gaussian", "heavy", "jump"])
def test_no_decision_passes_a_budget_by_more_than_its_ball_allows(kind, rule):
    X, y = streams()[kind]
    for budget in (1e-3, 0.1, 1.0):
        learner = BudgetLinearLearner(X.shape[1], budget, loss="squared", rule=rule)
        for row, target in zip(X, y, strict=True):
            before = learner.hard_violation
            learner.step_dense(row, target)
            excess = learner.hard_violation - before
            parameters, units = learner._state.parameters[0], learner.scale.units
            most = learner.settings.constraint.value_bound(learner.settings.constraint.enclosing_ball())
            assert excess <= most * max(units[1] / units[0], 1.0) ** 2 * (1 + 1e-9)
            if learner.binds:
                assert learner._state.mixture(0).radius[0] <= parameters["budget_radius"] * (1 + 1e-12)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("regression", [False, True])
def test_a_spare_budget_of_an_estimator_is_no_budget(stream, regression):
    X, y = mixed_columns(1000)
    y = 30 * (X[:, 4] - X[:, 1]) + X[:, 0] if regression else y
    losses = []
    for budget in (None, 1e10 if regression else 1e4, 1e15):
        model = (BudgetLinearRegressor if regression else BudgetLinearClassifier)(budget, passes=2, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)
            learn = model.partial_fit if stream else model.fit
            learn(X, y, **({"classes": [False, True]} if stream and not regression else {}))
        losses.append(model.cumulative_loss_)
    assert losses[0] == losses[1] == losses[2]


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_targets_far_from_zero_without_an_intercept(unit):
    X, y = streams()["heavy"]
    learner = BudgetLinearLearner(6, loss="squared", fit_intercept=False)
    learner.learn(X, unit * y)
    assert learner.cumulative_loss < 0.95 * np.sum(np.square(unit * y)) / 2


def test_units_of_words_hardly_matter_in_a_stream():
    """Counts by Zipf's law, most of them met late, beside words that are divided by their root mean square."""
    rng = np.random.default_rng(3)
    words, labels = 4000, rng.choice([-1.0, 1.0], 600)
    tilt = np.exp(0.7 * rng.standard_normal(words) * (rng.random(words) < 0.3))
    chances = {side: tilt**side / np.arange(1, words + 1) for side in (-1.0, 1.0)}
    drawn = [rng.choice(words, 60, p=chances[y] / chances[y].sum()) for y in labels]
    X = sparse.csr_array((np.ones(36_000), (np.repeat(np.arange(600), 60), np.concatenate(drawn))), shape=(600, words))
    X.sum_duplicates()
    sizes, losses = np.sqrt(np.maximum((X * X).sum(axis=0), 1) / np.maximum((X > 0).sum(axis=0), 1)), []
    for units in (1 / sizes, *(10.0 ** rng.uniform(-2, 3, (4, words)))):
        learner = BudgetLinearLearner(words, sparse=True)
        learner.learn(sparse.csr_array(X.multiply(units)), labels)
        losses.append(learner.cumulative_loss)
    assert max(losses[1:]) < 1.05 * losses[0]


def test_units_that_differ_by_a_hundred_thousand_hardly_matter_in_a_stream():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=(1500, 6)), rng.random((1500, 10)) < rng.uniform(0.02, 0.5, 10)])
    y = X @ rng.normal(size=16) + rng.logistic(size=1500) > 0
    losses = [
        BudgetLinearClassifier().partial_fit(X * units, y, classes=[False, True]).cumulative_loss_
        for units in (np.ones(16), *(10.0 ** rng.uniform(-2, 3, (3, 16))))
    ]
    assert max(losses[1:]) < 1.05 * losses[0]


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_units_of_features_change_nothing(unit):
    X, y = mixed_columns()
    one, other = (BudgetLinearClassifier(2.0, random_state=0).fit(X * [k, 1, 1, 1, 1, 1, 1, 1], y) for k in (1, unit))
    scores = other.decision_function(X * [unit, 1, 1, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(scores, one.decision_function(X), rtol=0, atol=0.01)


# --- warnings -------------------------------------------------------------------------------------------------


def only_warning(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    assert [one.category for one in caught] == [BudgetWarning]
    assert caught[0].filename == __file__
    return str(caught[0].message)


def test_warnings_point_at_the_caller_and_say_what_to_do():
    X, y = badly_scaled(1000)
    X2, y2 = mixed_columns(500)
    constant = BudgetLinearClassifier(1e-9, rule="penalised-ftrl", l2=0.0)
    assert "constant" in only_warning(lambda: constant.fit(0 * X, y))
    assert "Give a smaller budget" in only_warning(lambda: BudgetLinearClassifier(1e6, random_state=0).fit(X2, y2))
    unscaled = BudgetLinearClassifier(3.0, scale_features=False)
    assert "StandardScaler" in only_warning(lambda: unscaled.fit(X, y))


def test_a_budget_that_binds_does_not_warn():
    X, y = mixed_columns(500)
    assert BudgetLinearClassifier(0.5, random_state=0).fit(X, y).budget_binds_
    assert not BudgetLinearClassifier(random_state=0).fit(X, y).budget_binds_


# --- the multiplier -------------------------------------------------------------------------------------------


def best_loss(X, y, budget, l1, l2, classifies):
    """Return the least mean loss over the weights of standardised features within the budget."""
    n, d = X.shape
    X = np.hstack([StandardScaler().fit_transform(X), np.ones((n, 1))])
    signs = np.append(np.ones(d), -np.ones(d))

    def loss(point):  # positive parts, negative parts, intercept
        margins = X @ np.append(point[:d] - point[d:-1], point[-1])
        if classifies:
            slopes, value = -y / (1 + np.exp(y * margins)), np.logaddexp(0, -y * margins).mean()
        else:
            slopes, value = margins - y, 0.5 * np.mean((margins - y) ** 2)
        gradient = X.T @ slopes / n
        return value, np.concatenate([gradient[:d], -gradient[:d], gradient[-1:]])

    def rest(point):
        return budget - l1 * point[:-1].sum() - 0.5 * l2 * np.sum((point[:d] - point[d:-1]) ** 2)

    def rest_gradient(point):
        return np.append(-l1 - l2 * signs * np.tile(point[:d] - point[d:-1], 2), 0.0)

    start = np.append(np.zeros(2 * d), 0.0 if classifies else y.mean())
    found = minimize(
        loss,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0, None)] * 2 * d + [(None, None)],
        constraints={"type": "ineq", "fun": rest, "jac": rest_gradient},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success
    return found.fun


def cancer():
    data = load_breast_cancer()
    return data.data[:, :12], np.where(data.target > 0, 1.0, -1.0)


def diabetes():
    data = load_diabetes()
    return data.data * 100, data.target / 50


CASES = {
    "badly scaled": (lambda: badly_scaled(), 2.0, 0.0, BudgetLinearClassifier),
    "mixed columns": (lambda: mixed_columns(), 1.5, 1.0, BudgetLinearClassifier),
    "breast cancer": (cancer, 3.0, 1.0, BudgetLinearClassifier),
    "diabetes": (diabetes, 1.0, 1.0, BudgetLinearRegressor),
}


@pytest.mark.parametrize("name", CASES)
def test_the_multiplier_is_the_derivative_of_the_best_loss(name):
    make, budget, l2, kind = CASES[name]
    X, y = make()
    classifies = kind is BudgetLinearClassifier
    model = kind(budget, l2=l2, random_state=0).fit(X, y)
    labels = np.where(y > 0, 1.0, -1.0) if classifies else y
    loss = partial(best_loss, X, labels, l1=1.0, l2=l2, classifies=classifies)
    derivative = (loss(0.95 * budget) - loss(1.05 * budget)) / (0.1 * budget)
    assert model.multiplier_ == pytest.approx(derivative, rel=0.2)


def test_the_multiplier_of_a_budget_that_does_not_bind_and_of_a_stream():
    X, y = mixed_columns(500)
    model = BudgetLinearClassifier(random_state=0).fit(X, y)
    assert model.multiplier_ == 0.0
    model.partial_fit(X, y)
    with pytest.raises(AttributeError, match="dual_variable_"):
        model.multiplier_  # noqa: B018
    assert model.dual_variable_ >= 0


def test_several_classes_have_a_multiplier_each():
    X = np.random.default_rng(0).normal(size=(900, 4))
    model = BudgetLinearClassifier(1.0, random_state=0).fit(X, X[:, :3].argmax(axis=1))
    assert model.multiplier_.shape == (3,)
    assert (model.multiplier_ > 0).all()


# --- max_features ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [None, 5.0])
def test_max_features_keeps_the_features_that_matter(budget):
    X, y = mixed_columns()
    model = BudgetLinearClassifier(budget, max_features=3, random_state=0).fit(X, y)
    assert set(np.flatnonzero(model.coef_)) == {0, 1, 4}
    alone = BudgetLinearClassifier(budget, random_state=0).fit(X[:, [0, 1, 4]], y)
    assert log_loss(model, X, y) == pytest.approx(log_loss(alone, X[:, [0, 1, 4]], y), rel=0.02)
    model.partial_fit(X, y)
    assert model.n_nonzero_ <= 3


def test_max_features_of_a_sparse_matrix():
    X, _ = mixed_columns()
    wide = sparse.csr_array(np.hstack([X[:, 1:4], np.zeros((len(X), 600))]))
    model = BudgetLinearClassifier(max_features=2, random_state=0).fit(wide, X[:, 1] > X[:, 2])
    assert set(np.flatnonzero(model.coef_)) == {0, 1}


# --- losses ---------------------------------------------------------------------------------------------------


def test_the_level_of_a_quantile():
    X, y = diabetes()
    with pytest.raises(InputError, match=r"loss_parameter: 1.5 is not the level of a quantile"):
        BudgetLinearRegressor(loss="quantile", loss_parameter=1.5).fit(X, y)
