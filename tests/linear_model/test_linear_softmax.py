"""Softmax under one budget: the loss, the rounds against the loop of the house, and what the estimator promises."""

import array_api_strict
import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.utils import estimator_checks

from longterm import InputError, challenge, run
from longterm.errors import SnapshotError
from longterm.hindsight.cvxpy_statements import state_loss
from longterm.learners import MixedAFTRL, MixedPenalisedFTRL
from longterm.linear_model import BudgetSoftmaxClassifier
from longterm.linear_model._rows import row_block
from longterm.linear_model._softmax import SoftmaxLearner, SoftmaxSettings, residual_problem
from longterm.losses import Logistic, Softmax
from longterm.sets import Ball, Box
from longterm.streams import Replay

K, D = 3, 2


def draw(rng, shape=()):
    u = rng.standard_normal((*shape, D))
    return 2.0 * u / np.linalg.norm(u, axis=-1, keepdims=True), rng.integers(K, size=shape).astype(float)


def three_classes(rng, count=60, features=4):
    X = rng.standard_normal((count, features))
    return X, np.argmax(X[:, :3] + 0.3 * rng.standard_normal((count, 3)), axis=1)


# --- the loss -----------------------------------------------------------------------------------------------------


def test_gradient_is_the_slope_and_batches_are_rounds():
    f, rng = Softmax(K, D, feature_norm=2.0), np.random.default_rng(0)
    x, (u, y) = 2 * rng.standard_normal((20, K * D)), draw(rng, (20,))
    value, gradient = f.value_and_gradient(x, u, y)
    for move, found in zip(1e-6 * np.eye(K * D), gradient.T, strict=True):
        np.testing.assert_allclose((f.value(x + move, u, y) - f.value(x - move, u, y)) / 2e-6, found, atol=1e-7)
    for n in range(20):
        one, slope = f.value_and_gradient(x[n], u[n], y[n])
        np.testing.assert_allclose(one, value[n], rtol=1e-14)
        np.testing.assert_allclose(slope, gradient[n], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("over", [Ball(K * D, radius=1.5), Box(np.full(6, -0.2), np.full(6, 3.0))], ids=["ball", "box"])
def test_no_counterexample_to_its_facts(over):
    f, rng = Softmax(K, D, feature_norm=2.0), np.random.default_rng(1)
    for _ in range(5):
        assert challenge(f, over, parameters=list(draw(rng)), samples=500) == []


def test_its_bounds_are_reached_for_far_weights():
    f, u = Softmax(2, 1, feature_norm=2.0), np.array([2.0])
    for radius in (0.5, 20.0):  # of two classes on a ball about 0 both are exact
        ball, x = Ball(2, radius=radius), radius * np.array([1.0, -1.0]) / np.sqrt(2)
        found = f.value(x, u, np.float64(1)) - f.value(-x, u, np.float64(1))
        assert 0.99 * f.value_range(ball) <= found <= f.value_range(ball)
    assert np.linalg.norm(f.gradient(x, u, np.float64(1))) == pytest.approx(f.gradient_bound(ball))


def test_of_two_classes_it_is_the_logistic_loss():
    rng, of_two = np.random.default_rng(2), Logistic(D, feature_norm=2.0)
    x, (u, _) = rng.standard_normal((9, D)), draw(rng, (9,))
    both = np.concatenate([0 * x, x], axis=-1)
    for label in (0.0, 1.0):
        found = Softmax(2, D, feature_norm=2.0).value(both, u, np.full(9, label))
        np.testing.assert_allclose(found, of_two.value(x, u, np.full(9, 2 * label - 1)), rtol=1e-13)


def test_under_strict_arrays_and_far_out():
    f, rng, xp = Softmax(K, D, feature_norm=2.0), np.random.default_rng(3), array_api_strict
    x, (u, y) = 1e3 * rng.standard_normal((2, 5, K * D)), draw(rng, (2, 5))
    value, gradient = f.value_and_gradient(x, u, y)
    assert np.isfinite(value).all()
    assert (value >= 0).all()
    strict, slope = f.value_and_gradient(xp.asarray(x), xp.asarray(u), xp.asarray(y))
    np.testing.assert_allclose(np.asarray(strict), value, rtol=1e-13)
    np.testing.assert_allclose(np.asarray(slope), gradient, rtol=1e-12, atol=1e-300)


def test_labels_that_are_no_class_are_refused():
    f = Softmax(K, D, feature_norm=2.0)
    for wrong in (-1.0, 0.5, 3.0):
        with pytest.raises(InputError, match=r"round 8.*0 … 2"):
            f.check_parameters([np.zeros((2, D)), np.array([1.0, wrong])], 7)
    with pytest.raises(InputError, match="at least 2"):
        Softmax(1, D, feature_norm=2.0)


@pytest.mark.slow
def test_its_cvxpy_statement_is_the_sum_of_losses():
    cvxpy = pytest.importorskip("cvxpy")
    f, rng = Softmax(K, D, feature_norm=2.0), np.random.default_rng(4)
    u, y = draw(rng, (7,))
    x = cvxpy.Variable(K * D, value=rng.standard_normal(K * D))
    assert state_loss(f, x, u, y).value == pytest.approx(f.value(x.value, u, y).sum(), rel=1e-12)


# --- the rounds ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rule", [MixedAFTRL, MixedPenalisedFTRL], ids=lambda rule: rule.name)
def test_without_intercepts_it_is_the_loop_of_the_house(rule):
    X, y = three_classes(np.random.default_rng(5), 40)
    X /= np.linalg.norm(X, axis=1).max()  # what the problem declares, and the loop checks
    name = "a-ftrl" if rule is MixedAFTRL else "penalised-ftrl"
    settings = SoftmaxSettings(3, 4, 1.5, rule=name, fit_intercept=False)
    trace = run(settings.problem, rule.for_problem(settings.problem), Replay([X, y.astype(float)]), rounds=40)
    model = BudgetSoftmaxClassifier(1.5, rule=name, fit_intercept=False).partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_allclose(model.coef_.reshape(-1), trace.state.x, rtol=1e-12, atol=1e-15)
    assert model.cumulative_loss_ == pytest.approx(trace.cumulative_loss[-1], rel=1e-12)
    assert model.signed_violation_ == pytest.approx(trace.signed_violation[-1], rel=1e-9)
    assert model.budget_binds_
    assert np.abs(model.coef_).max() > 0


@pytest.mark.parametrize("budget", [0.3, 3.0, 1e4])
@pytest.mark.parametrize("intercepts", [True, False])
def test_compiled_rounds_are_those_of_the_reference(budget, intercepts):
    rng = np.random.default_rng(12)
    X = rng.standard_normal((90, 4))
    y, weights = np.argmax(X[:, :3], axis=1), rng.uniform(0.5, 1.5, 90)
    X[rng.random(X.shape) < 0.1] = 0.0
    X[0], weights[[3, 9]] = 0.0, 0.0
    compiled, reference = (SoftmaxLearner(SoftmaxSettings(3, 4, budget, fit_intercept=intercepts)) for _ in range(2))
    for part in (slice(0, 20), slice(20, 90)):
        compiled.learn_checked(row_block(X[part], 4), y[part].astype(float), weights[part])
        for u, label, weight in zip(X[part], y[part], weights[part], strict=True):
            reference._learn(u, slice(None), int(label), float(weight))
        for name, expected in reference.arrays().items():
            found = compiled.arrays()[name]
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype), name
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)
    assert compiled.binds == (budget < 1e4)


@pytest.mark.slow
def test_never_far_above_the_best_constant_shares():
    """Noise: Σ loss ≤ that of the best shares + Dirichlet's excess + what the experts at 0 of both learners allow."""
    rng = np.random.default_rng(6)
    T, X, y = 300, 3 * rng.standard_normal((300, 4)), rng.choice(3, size=300, p=[0.9, 0.08, 0.02])
    learner = BudgetSoftmaxClassifier(1e4).partial_fit(X, y, classes=[0, 1, 2])._learner
    shares = np.bincount(y, minlength=3) / T
    best = -T * np.sum(shares * np.log(shares))
    excess = gammaln(T + 1.5) + gammaln(0.5) - gammaln(T + 0.5) - gammaln(1.5)
    allowed = learner._rule.scale_bounds(learner.settings.problem, learner.state)[-1]
    allowed += learner._residual_rule.scale_bounds(residual_problem(3), learner.residual)[-1]
    assert learner.cumulative_loss <= best + excess + allowed
    silent = SoftmaxLearner(SoftmaxSettings(3, 4, 1e4))
    for t in range(T):  # the offset alone, by the theorem about it
        silent._learn(np.zeros(4), slice(None), int(y[t]), 1.0)
        silent.residual = silent._residual_rule.init()
    assert silent.cumulative_loss <= best + excess


# --- the estimator ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # its checks try what warns
def test_scikit_learns_own_checks_pass():
    found = estimator_checks.check_estimator(BudgetSoftmaxClassifier(passes=2), on_fail=None, on_skip=None)
    failed = {check["check_name"] for check in found if check["status"] == "failed"}
    assert failed == {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}


def test_one_budget_holds_all_classes_and_probabilities_are_of_one_model():
    X, y = three_classes(np.random.default_rng(7), 150)
    names = np.array(["a", "b", "c"])[y]
    model = BudgetSoftmaxClassifier(budget=6.0, passes=2, random_state=0).fit(X, names)
    W = model.coef_
    assert W.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert np.abs(W).sum() + 0.5 * (W**2).sum() <= 6.0
    assert model.budget_binds_
    assert model.n_rounds_ == 300
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X))
    assert (model.predict(X) == model.classes_[p.argmax(axis=1)]).all()
    assert model.score(X, names) > 0.8
    text = str(model.summary())
    assert "by all classes" in text
    assert "x0" in text


def test_rows_may_be_sparse_and_come_in_any_blocks():
    X, y = three_classes(np.random.default_rng(8))
    X[np.abs(X) < 0.5] = 0.0
    whole = BudgetSoftmaxClassifier(5.0).partial_fit(X, y, classes=[0, 1, 2])
    parts = BudgetSoftmaxClassifier(5.0).partial_fit(sparse.csr_array(X[:25]), y[:25], classes=[0, 1, 2])
    parts.partial_fit(sparse.csr_array(X[25:]), y[25:])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-10)


def test_weights_of_rows_and_classes_multiply_losses():
    X, y = three_classes(np.random.default_rng(9), 30)
    by_class = BudgetSoftmaxClassifier(5.0, class_weight={0: 1.0, 1: 3.0, 2: 1.0}).partial_fit(X, y, classes=[0, 1, 2])
    by_row = BudgetSoftmaxClassifier(5.0)
    by_row.partial_fit(X, y, classes=[0, 1, 2], sample_weight=np.where(y == 1, 3.0, 1.0))
    plain = BudgetSoftmaxClassifier(5.0).partial_fit(X, y, classes=[0, 1, 2])
    assert (by_class.coef_ == by_row.coef_).all()
    assert (by_class.intercept_ == by_row.intercept_).all()
    assert by_row.intercept_[1] - by_row.intercept_[0] > plain.intercept_[1] - plain.intercept_[0]


def test_files_go_on_bit_for_bit_and_others_are_refused(tmp_path):
    X, y = three_classes(np.random.default_rng(10))
    model = BudgetSoftmaxClassifier(5.0, passes=1, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    again = BudgetSoftmaxClassifier.load(tmp_path / "model")
    assert (again.coef_ == model.coef_).all()
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    for one in (model, again):
        one.partial_fit(X[:9], y[:9])
    assert (again.coef_ == model.coef_).all()
    assert again.cumulative_loss_ == model.cumulative_loss_
    specification, arrays = model._learner.specification(), model._learner.arrays()
    for name, wrong in (("counts", -arrays["counts"]), ("total", arrays["total"][1:]), ("sums", np.full(5, np.nan))):
        with pytest.raises(ValueError, match=r"softmax model|below 0"):
            SoftmaxLearner.from_parts(specification, arrays | {name: wrong})
    model._learners[0] = SoftmaxLearner(SoftmaxSettings(2, 4, 5.0))
    model.save(tmp_path / "forged")
    with pytest.raises(SnapshotError, match="belong together"):
        BudgetSoftmaxClassifier.load(tmp_path / "forged")


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_units_and_offsets_of_features_change_next_to_nothing_in_fit(factor):
    X, y = three_classes(np.random.default_rng(12))
    other = X.copy()
    other[:, 0] = factor * (other[:, 0] + 5.0)
    plain, moved = (BudgetSoftmaxClassifier(random_state=0).fit(rows, y) for rows in (X, other))
    np.testing.assert_allclose(moved.predict_proba(other), plain.predict_proba(X), atol=0.02)
    assert moved.cumulative_loss_ == pytest.approx(plain.cumulative_loss_, rel=0.02)  # of the rounds, too


@pytest.mark.slow
def test_a_scaled_model_is_saved_goes_on_and_keeps_its_budget(tmp_path):
    X, y = three_classes(np.random.default_rng(13))
    X = X * np.array([1.0, 50.0, 1e-2, 1.0]) + 2.0
    model = BudgetSoftmaxClassifier(random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    again = BudgetSoftmaxClassifier.load(tmp_path / "model")
    for one in (model, again):
        one.partial_fit(X[:9], y[:9])
    np.testing.assert_array_equal(again.coef_, model.coef_)
    learner = model._learner
    scores = X @ learner.weights.reshape(3, 4).T + learner.intercept
    seen = learner.scale.scaled(X) @ learner.state.x.reshape(3, 4).T + learner._own_intercept
    np.testing.assert_allclose(scores, seen, rtol=1e-9, atol=1e-9)
    far, b = learner.nearest_within_budget(1e6 * learner.weights, learner.intercept)
    assert learner.size(far) <= learner.settings.budget * (1 + 1e-12)
    before, after = (learner.scale.means @ one.reshape(3, 4).T for one in (1e6 * learner.weights, far))
    np.testing.assert_allclose(after + b, before + learner.intercept, rtol=1e-6)
    with pytest.raises(ValueError, match="features' scale"):
        SoftmaxLearner.from_parts(learner.specification(), learner.arrays() | {"scale.factors": -learner.scale.factors})


def test_what_is_not_known_is_refused():
    X, y = three_classes(np.random.default_rng(11), 9)
    for wrong in ({"rule": "mahdavi"}, {"predict_with": "none"}, {"budget": -1.0}, {"beta": 2.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            BudgetSoftmaxClassifier(**wrong).fit(X, y)


@pytest.mark.slow
def test_on_digits_it_is_near_a_batch_model_without_a_penalty_to_tune():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16, y[order]
    ours = BudgetSoftmaxClassifier(passes=1, random_state=0).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
    assert ours >= LogisticRegression().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) - 0.04
