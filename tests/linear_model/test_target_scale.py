"""The unit of the targets does not matter, and a budget that is never reached changes nothing."""

from functools import cache

import numpy as np
import pytest
from scipy import sparse

from linear_learners import same
from longterm.linear_model import BudgetLinearLearner, BudgetLinearRegressor

RULES = ("a-ftrl", "penalised-ftrl")
CASES = (
    ("squared", {}),
    ("squared", {"fit_intercept": False}),
    ("squared", {"rule": "penalised-ftrl"}),
    ("huber", {}),
    ("quantile", {}),
)


@cache
def streams():
    """Return rows and targets of several kinds: Gaussian, noise, heavy tails, a late jump, few rows, sparse."""
    rng = np.random.default_rng(11)
    X, weights = rng.standard_normal((200, 6)), rng.standard_normal(6)
    y, heavy = X @ weights + 0.5 * rng.standard_normal(200), rng.standard_t(1.5, 200)
    far = rng.standard_t(2, (200, 6))
    words = sparse.csr_array((rng.random((200, 300)) < 0.03) * rng.exponential(size=(200, 300)))
    told = words @ (rng.standard_normal(300) * (np.arange(300) < 50)) + 3
    return {
        "gaussian": (X, y + 40),
        "noise": (X, rng.standard_normal(200)),
        "heavy": (X, X @ weights + heavy),
        "heavy rows": (far, far @ weights + rng.standard_normal(200)),
        "constant, then not": (X, np.where(np.arange(200) < 30, 5.0, y)),
        "jump": (X, y * np.where(np.arange(200) < 100, 1e-3, 1.0)),
        "ten": (X[:10], y[:10]),
        "two": (X[:2], y[:2]),
        "sparse": (words, told + 0.3 * rng.standard_normal(200)),
        "sparse heavy": (words, told + heavy),
    }


def learned(kind, budget=None, *, loss="squared", unit=1.0, **options):
    """Return a learner of a stream in this unit of the targets, and the predictions of its rows in their own."""
    X, y = streams()[kind]
    parameter = 0.7 * unit if loss == "huber" else None
    learner = BudgetLinearLearner(
        X.shape[1], budget, loss=loss, loss_parameter=parameter, sparse=sparse.issparse(X), **options
    )
    return learner, learner.learn(X, unit * y) / unit


@pytest.mark.parametrize("kind", streams())
@pytest.mark.parametrize(("loss", "more"), CASES)
def test_the_unit_of_targets_does_not_matter(kind, loss, more):
    one, known = learned(kind, loss=loss, **more)
    for power in (-20, 20):  # rounding errors are the same
        np.testing.assert_array_equal(learned(kind, loss=loss, unit=2.0**power, **more)[1], known)
    for unit in (1e-6, 1e6):  # rounding errors may turn a comparison, so that a block of rounds ends elsewhere
        other, _ = learned(kind, loss=loss, unit=unit, **more)
        own = other.cumulative_loss / (unit if loss == "quantile" else unit**2)
        assert own == pytest.approx(one.cumulative_loss, rel=0.01)


@pytest.mark.parametrize("kind", streams())
@pytest.mark.parametrize(("loss", "more"), CASES)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_a_budget_that_no_target_can_reach_changes_no_bit(kind, loss, more, unit):
    _, known = learned(kind, loss=loss, unit=unit, **more)
    for budget in (1e22, 1e30):
        learner, found = learned(kind, budget, loss=loss, unit=unit, **more)
        assert not learner.binds
        np.testing.assert_array_equal(found, known)


@pytest.mark.parametrize("kind", streams())
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_budget_whose_ball_holds_the_largest_radius_changes_no_bit(kind, rule, unit):
    free, known = learned(kind, unit=unit, rule=rule)
    radius = free.settings.largest_radius
    for times in (1.0, 100.0):
        learner, found = learned(kind, times * (radius + radius**2 / 2), unit=unit, rule=rule)
        assert not learner.binds
        np.testing.assert_array_equal(found, known)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_regressor_follows_the_unit(unit):
    X, y = streams()["heavy"]
    known = BudgetLinearRegressor(random_state=0).partial_fit(X, y).predict(X)
    for budget in (None, 1e20):
        found = BudgetLinearRegressor(budget, random_state=0).partial_fit(X, unit * y).predict(X) / unit
        np.testing.assert_allclose(found, known, rtol=1e-6, atol=1e-6)


def test_heavy_tails_cost_less_than_no_weights_at_all():
    """With priors in another unit a stream with heavy tails lost three times as much without an intercept."""
    for kind in ("heavy", "gaussian", "heavy rows"):
        X, y = streams()[kind]
        learner = BudgetLinearLearner(6, loss="squared", fit_intercept=False)
        learner.learn(X, y)
        assert learner.cumulative_loss < 0.6 * np.sum(np.square(y))


@pytest.mark.parametrize("intercept", [False, True])
def test_a_learner_of_targets_is_restored_before_and_after_their_scale_is_known(intercept):
    X, y = streams()["gaussian"]
    learner = BudgetLinearLearner(6, loss="squared", fit_intercept=intercept)
    for stop in (0, 1, 2, 50):
        learner.learn(X[learner.rounds : stop], y[learner.rounds : stop])
        restored = BudgetLinearLearner.from_bytes(learner.to_bytes())
        same(learner, restored)
        np.testing.assert_array_equal(restored.margins(X), learner.margins(X))
    assert (learner.intercept != 0) == intercept
    stored = learner.__getstate__()
    stored["specification"]["level"] = 7.0
    if not intercept:
        with pytest.raises(ValueError, match="level"):
            learner.__setstate__(stored)
