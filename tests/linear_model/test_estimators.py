"""The scikit-learn estimators: scikit-learn's checks, fit and partial_fit, kinds of input, bad input, attributes."""

import pickle
import tracemalloc
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from longterm.linear_model import BudgetLinearClassifier, BudgetLinearLearner, BudgetLinearRegressor
from longterm.problems.constraints import ElasticNetBudget

WEIGHTS_ARE_REPEATS = {
    "check_sample_weight_equivalence_on_dense_data": "a row of weight 2 is one round, not two",
    "check_sample_weight_equivalence_on_sparse_data": "a row of weight 2 is one round, not two",
}


def failing(estimator):
    """The checks that an estimator fails."""
    found = estimator_checks.check_estimator(estimator, on_fail=None, on_skip=None)
    return {check["check_name"] for check in found if check["status"] == "failed"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # its checks try what warns
@pytest.mark.parametrize(
    "estimator",
    [
        BudgetLinearClassifier(),
        BudgetLinearRegressor(),
        pytest.param(BudgetLinearClassifier(3.0), marks=pytest.mark.cross),
        pytest.param(BudgetLinearRegressor(3.0, max_features=2), marks=pytest.mark.cross),
        pytest.param(BudgetLinearClassifier(rule="penalised-ftrl", loss="hinge", passes=2), marks=pytest.mark.cross),
        pytest.param(BudgetLinearRegressor(rule="penalised-ftrl", loss="huber"), marks=pytest.mark.cross),
    ],
    ids=str,
)
def test_scikit_learn_checks(estimator):
    assert failing(estimator) == set(WEIGHTS_ARE_REPEATS)


@pytest.mark.filterwarnings("ignore")  # its checks try what warns
@pytest.mark.parametrize("estimator", [SGDClassifier(), SGDRegressor()], ids=str)
@pytest.mark.parametrize("check", WEIGHTS_ARE_REPEATS)
def test_sgd_estimators_fail_the_same_checks(estimator, check):
    with pytest.raises(AssertionError, match="not equivalent"):
        getattr(estimator_checks, check)(type(estimator).__name__, estimator)


def two_classes(n=600, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    return X, np.where(X[:, 0] - 0.7 * X[:, 1] + 0.2 * rng.standard_normal(n) > 0, "yes", "no")


def three_classes(n=600, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, :3] + 0.2 * rng.standard_normal((n, 3))).argmax(axis=1)


def targets(n=600, d=8, seed=0):
    X, _ = two_classes(n, d, seed)
    return X, 50 + 2 * X[:, 0] - X[:, 1] + 0.1 * np.random.default_rng(seed + 1).standard_normal(n)


# --- learning -------------------------------------------------------------------------------------------------


def same(one, other):
    for mine, theirs in zip(one._learners, other._learners, strict=True):
        assert mine._specification() == theirs._specification()
        for name, array in mine._arrays().items():
            np.testing.assert_array_equal(array, theirs._arrays()[name], err_msg=name)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_partial_fit_in_parts_equals_one_pass_of_fit(kind):
    X, y = two_classes()
    X = sparse.csr_array(X) if kind == "sparse" else X
    whole = BudgetLinearClassifier(10.0, passes=1, shuffle=False, random_state=3, scale_features=False).fit(X, y)
    parts = BudgetLinearClassifier(10.0, random_state=3, scale_features=False)
    for stretch in (slice(0, 1), slice(1, 2), slice(2, 250), slice(250, 600)):
        parts.partial_fit(X[stretch], y[stretch], classes=["no", "yes"] if stretch.start == 0 else None)
    same(parts, whole)
    assert parts.n_rounds_ == 600


@pytest.mark.slow
def test_every_kind_of_input_gives_the_same_model():
    X, y = two_classes()
    reference = BudgetLinearClassifier(random_state=0).fit(X, y)
    others = {
        "csr": sparse.csr_array(X),
        "csc": sparse.csc_matrix(X),
        "coo": sparse.coo_array(X),
        "fortran": np.asfortranarray(X),
        "list": X.tolist(),
        "pandas": pd.DataFrame(X, columns=[f"x{j}" for j in range(8)]),
        "float32": X.astype(np.float32),
    }
    for name, given in others.items():
        model = BudgetLinearClassifier(random_state=0).fit(given, y)
        tolerance = 1e-3 if name == "float32" else 1e-9
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=tolerance, err_msg=name)
        assert (model.predict(given) == reference.predict(X)).mean() > 0.99
    assert model.fit(others["pandas"], y).feature_names_in_.tolist() == [f"x{j}" for j in range(8)]


@pytest.mark.parametrize("rule", ["a-ftrl", "penalised-ftrl"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
def test_every_rule_and_loss_classifies(rule, loss):
    X, y = two_classes()
    model = BudgetLinearClassifier(3.0, rule=rule, loss=loss, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.84  # a tenth of the rows have 0 in both columns that matter
    assert hasattr(model, "predict_proba") == (loss == "logistic")


@pytest.mark.filterwarnings("ignore:the budget of .* was never reached")
@pytest.mark.parametrize("rule", ["a-ftrl", "penalised-ftrl"])
@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_every_rule_and_loss_regresses_at_any_level_and_scale(rule, loss):
    X, y = targets()
    for scale, level in ((1.0, 0.0), (1e4, -3e5), (1e-4, 7.0)):
        wanted = level + scale * y
        budget = 10 * max(scale, scale**2)
        threshold = scale if loss == "huber" else None
        model = BudgetLinearRegressor(budget, rule=rule, loss=loss, loss_parameter=threshold, random_state=0)
        assert model.fit(X, wanted).score(X, wanted) > 0.8


def test_several_classes_are_one_against_the_rest():
    X, y = three_classes()
    model = BudgetLinearClassifier(5.0, passes=1, shuffle=False, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 6)
    assert model.score(X, y) > 0.85
    for k in range(3):
        alone = BudgetLinearClassifier(5.0, passes=1, shuffle=False, random_state=0).fit(X, y == k)
        np.testing.assert_array_equal(alone.coef_[0], model.coef_[k])
        assert alone.cumulative_loss_ == model.cumulative_loss_[k]
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), model.predict(X))


def test_probabilities_are_the_logistic_function_of_the_margin():
    X, y = two_classes()
    model = BudgetLinearClassifier(random_state=0).fit(X, y)
    margins = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), margins)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-margins)))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


@pytest.mark.slow
def test_class_weights_are_weights_of_rows():
    X, y = two_classes()
    by_class = BudgetLinearClassifier(class_weight={"yes": 3.0, "no": 0.5}, random_state=0).fit(X, y)
    by_row = BudgetLinearClassifier(random_state=0).fit(X, y, sample_weight=np.where(y == "yes", 3.0, 0.5))
    same(by_class, by_row)
    _, counts = np.unique(y, return_counts=True)
    balanced = BudgetLinearClassifier(class_weight="balanced", random_state=0).fit(X, y)
    shares = BudgetLinearClassifier(random_state=0).fit(X, y, sample_weight=np.where(y == "no", *(300 / counts)))
    np.testing.assert_allclose(balanced.coef_, shares.coef_, atol=1e-9)
    part = BudgetLinearClassifier(10.0, class_weight={"yes": 3.0, "no": 0.5}, random_state=0)
    part.partial_fit(X[:1], y[:1], classes=["no", "yes"]).partial_fit(X[1:], y[1:])
    other, weights = BudgetLinearClassifier(10.0, random_state=0), np.where(y == "yes", 3.0, 0.5)
    other.partial_fit(X[:1], y[:1], classes=["no", "yes"], sample_weight=weights[:1])
    same(part, other.partial_fit(X[1:], y[1:], sample_weight=weights[1:]))


def test_number_of_passes():
    X, y = two_classes(n=600)
    assert BudgetLinearClassifier(random_state=0).fit(X, y).n_rounds_ in (600, 1200, 3000)
    assert BudgetLinearClassifier(passes=3).fit(X, y).n_rounds_ == 1800
    assert BudgetLinearClassifier(random_state=0).fit(np.tile(X, (100, 1)), np.tile(y, 100)).n_rounds_ == 60_000


def test_noise_is_learned_once_where_later_passes_would_learn_it_by_heart():
    rng = np.random.default_rng(0)
    X = sparse.csr_array((np.ones(12_000), rng.integers(0, 5000, 12_000), np.arange(0, 12_001, 20)), shape=(600, 5000))
    X.sum_duplicates()
    y = rng.random(600) < 0.5
    model = BudgetLinearClassifier(random_state=0).fit(X, y)
    assert model.n_rounds_ == 600
    again = BudgetLinearClassifier(random_state=0, passes=5).fit(X, y)
    fresh = sparse.csr_array((np.ones(4000), rng.integers(0, 5000, 4000), np.arange(0, 4001, 20)), shape=(200, 5000))
    truth = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    losses = [np.logaddexp(0, -truth * one.decision_function(fresh)).mean() for one in (model, again)]
    assert losses[0] < 0.9 * losses[1]


def test_pickles_clones_pipelines_and_grid_search():
    X, y = two_classes()
    model = BudgetLinearClassifier(2.0, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    same(again.partial_fit(X, y), model.partial_fit(X, y))
    assert not hasattr(clone(model), "_learners")
    assert clone(model).get_params() == model.get_params()
    pipeline = make_pipeline(StandardScaler(), BudgetLinearClassifier(random_state=0))
    search = GridSearchCV(pipeline, {"budgetlinearclassifier__budget": [0.01, 1.0, 30.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.88
    assert search.best_params_ != {"budgetlinearclassifier__budget": 0.01}


def test_a_subclass_with_another_parameter():
    class Named(BudgetLinearClassifier):
        def __init__(self, budget=None, name=""):
            super().__init__(budget, random_state=0)
            self.name = name

    X, y = two_classes()
    model = clone(Named(2.0, "mine")).fit(X, y)
    assert (model.budget, model.name) == (2.0, "mine")
    np.testing.assert_array_equal(model.coef_, BudgetLinearClassifier(2.0, random_state=0).fit(X, y).coef_)


# --- attributes -----------------------------------------------------------------------------------------------


def test_attributes_are_those_of_the_learner():
    X, y = two_classes(n=5000)
    options = {"shuffle": False, "predict_with": "last", "scale_features": False}
    model = BudgetLinearClassifier(1.0, passes=1, random_state=0, **options).fit(X, y)
    learner = BudgetLinearLearner(8, 1.0, scale_features=False, seed=model._learners[0]._average.seed)
    learner.learn(X, np.where(y == "yes", 1.0, -1.0))
    g = ElasticNetBudget(8, 1.0)
    np.testing.assert_array_equal(model.coef_[0], learner.weights)
    np.testing.assert_array_equal(model.average_coef_[0], learner.average()[0])
    assert model.average_intercept_[0] == learner.average()[1] == model.intercept_within_budget_[0]
    assert g.values(model.coef_within_budget_[0])[0] <= 0
    assert model.dual_variable_ == learner.multiplier
    assert model.cumulative_loss_ == learner.cumulative_loss
    assert model.signed_violation_ == learner.signed_violation <= model.hard_violation_ == learner.hard_violation
    assert model.squared_violation_ == learner.squared_violation
    assert model.n_nonzero_ == np.count_nonzero(model.coef_)


def test_predict_with():
    X, y = targets()
    for which in ("last", "average", "within_budget"):
        model = BudgetLinearRegressor(1.0, predict_with=which, random_state=0).fit(X, y)
        chosen = {"last": model._learners[0].weights, "average": model.average_coef_}.get(
            which, model.coef_within_budget_
        )
        np.testing.assert_array_equal(model.coef_, chosen)
        np.testing.assert_allclose(model.predict(X), X @ chosen + model.intercept_)
    assert isinstance(model.intercept_, float)


def test_attributes_before_fit():
    for name in ("coef_", "intercept_", "multiplier_", "dual_variable_", "average_coef_", "n_rounds_"):
        with pytest.raises(NotFittedError):
            getattr(BudgetLinearClassifier(), name)


@pytest.mark.slow
def test_partial_fit_on_sparse_rows_never_passes_over_all_columns():
    d, rng = 2_000_000, np.random.default_rng(0)
    rows = [
        sparse.csr_array((rng.standard_normal(20), np.sort(rng.choice(d, 20, replace=False)), [0, 20]), shape=(1, d))
        for _ in range(30)
    ]
    model = BudgetLinearClassifier(random_state=0)
    for row in rows[:5]:
        model.partial_fit(row, [1], classes=[0, 1])
    tracemalloc.start()
    for row in rows[5:]:
        model.partial_fit(row, [0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000  # an array of d numbers would be 16 MB
    assert model.n_rounds_ == 30


# --- bad input ------------------------------------------------------------------------------------------------

X2, Y2 = two_classes(n=40)
XT, YT = targets(n=40)


@cache
def fitted(estimator):
    """The bytes of a model: fitted once for all that spoils it."""
    X, y = (XT, YT) if estimator == "regressor" else (X2, Y2)
    made = BudgetLinearRegressor(random_state=0) if estimator == "regressor" else BudgetLinearClassifier(random_state=0)
    return pickle.dumps(made.fit(sparse.csr_array(X) if estimator == "sparse classifier" else X, y))


def with_entry(X, value):
    damaged = X.copy()
    damaged[3, 2] = value
    return damaged


def unfit_csr(indices):
    matrix = sparse.csr_array((1, 8))
    matrix.data, matrix.indices, matrix.indptr = np.ones(2), np.array(indices), np.array([0, 2])
    return matrix


BAD = {
    "NaN": lambda X, y: (with_entry(X, np.nan), y, None),
    "infinity": lambda X, y: (with_entry(X, np.inf), y, None),
    "huge": lambda X, y: (with_entry(X, 1e120), y, None),
    "sparse NaN": lambda X, y: (sparse.csr_array(with_entry(X, np.nan)), y, None),
    "too few features": lambda X, y: (X[:, :3], y, None),
    "negative weight": lambda X, y: (X, y, np.full(len(y), -1.0)),
    "NaN weight": lambda X, y: (X, y, np.full(len(y), np.nan)),
    "weights of another length": lambda X, y: (X, y, np.ones(3)),
    "no rows": lambda X, y: (X[:0], y[:0], None),
    "words": lambda X, y: (np.full(X.shape, "word", dtype=object), y, None),
    "labels of another length": lambda X, y: (X, y[:-1], None),
    "one dimension": lambda X, y: (X[0], y[0], None),
    "column out of range": lambda X, y: (unfit_csr([0, 9]), y[:1], None),
    "negative column": lambda X, y: (unfit_csr([0, -1]), y[:1], None),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # scikit-learn sums infinities before it refuses them
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("estimator", ["classifier", "regressor", "sparse classifier"])
@pytest.mark.parametrize("bad", BAD)
def test_bad_input_leaves_the_model_unchanged(bad, estimator, method):
    X, y = (XT, YT) if estimator == "regressor" else (X2, Y2)
    model = pickle.loads(fitted(estimator))
    before = pickle.dumps(model)
    damaged, labels, weights = BAD[bad](X, y)
    if bad == "too few features" and method == "fit":
        return  # `fit` starts again with any number of features
    with pytest.raises(ValueError, match=r"\w{3}"):
        getattr(model, method)(damaged, labels, sample_weight=weights)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.fit(X2, np.full(40, "yes")), "greater than one"),
        (lambda m: m.partial_fit(X2, np.full(40, "maybe")), "not there before"),
        (lambda m: m.partial_fit(X2, Y2, classes=["no", "maybe"]), "not the same"),
        (lambda m: clone(m).partial_fit(X2, Y2), "first call"),
        (lambda m: clone(m).set_params(class_weight="balanced").partial_fit(X2, Y2, classes=["no", "yes"]), "balanced"),
        (lambda m: m.set_params(class_weight="balanced").partial_fit(X2, Y2), "balanced"),
        (lambda m: m.set_params(class_weight={"no": -1.0}).partial_fit(X2, Y2), "at least 0"),
        (lambda m: m.set_params(class_weight={"no": np.nan}).fit(X2, Y2), "at least 0"),
        (lambda m: m.fit(X2, YT), "Unknown label type"),
        (lambda m: clone(m).set_params(loss="squared").fit(X2, Y2), "loss"),
        (lambda m: clone(m).set_params(budget=-1.0).fit(X2, Y2), "budget"),
        (lambda m: clone(m).set_params(passes=0).fit(X2, Y2), "passes"),
        (lambda m: clone(m).set_params(predict_with="best").fit(X2, Y2), "predict_with"),
        (lambda m: clone(m).set_params(rule="sgd").fit(X2, Y2), "rule"),
        (lambda m: BudgetLinearRegressor(loss="hinge").fit(XT, YT), "loss"),
        (lambda m: BudgetLinearRegressor().fit(XT, np.full(40, np.nan)), "NaN"),
        (lambda m: BudgetLinearRegressor().fit(XT, YT).partial_fit(XT, np.full(40, np.inf)), "infinity"),
    ],
)
def test_error_messages(call, words):
    model = pickle.loads(fitted("classifier"))
    before = pickle.dumps(model._learners)
    with pytest.raises(ValueError, match=words):
        call(model)
    assert pickle.dumps(model._learners) == before
