"""Factors for features, found on the stream: the same decisions however rows come, and units that do not matter."""

import numpy as np
import pytest
from scipy import sparse

from linear_learners import rows_and_labels, same
from longterm.linear_model import BudgetLinearClassifier, BudgetLinearLearner
from longterm.linear_model._feature_scale import (
    FACTOR_BOUND,
    LONGEST_ROW,
    PAST_WEIGHT,
    POWER,
    TARGET_POWER,
    FeatureScale,
)
from longterm.linear_model._rows import max_abs_bound

UNITS = np.array([1.0, 1e-3, 50.0, 1.0, 7.0, 1e4, 0.3])


def scaled_learner(**more):
    return BudgetLinearLearner(7, **({"budget": 1e4, "scale_features": True} | more))


def rows(n=150):
    X, y = rows_and_labels(n=n)
    X[:, 3] *= np.arange(n) % 5 == 0  # seldom other than 0
    return X * UNITS, y


@pytest.mark.parametrize(("rule", "kind"), [("a-ftrl", False), ("a-ftrl", True), ("penalised-ftrl", False)])
def test_blocks_rows_orders_and_files_change_nothing(tmp_path, rule, kind):
    X, y = rows()
    whole, single, split, ordered = (scaled_learner(rule=rule, sparse=kind) for _ in range(4))
    margins = whole.learn(X, y)
    np.testing.assert_array_equal(margins, [single.step_dense(row, label) for row, label in zip(X, y, strict=True)])
    split.learn(X[:40], y[:40])
    split.save(tmp_path / "file")
    split = BudgetLinearLearner.load(tmp_path / "file")
    np.testing.assert_array_equal(margins[40:], split.learn(X[40:], y[40:]))
    reverse = np.arange(len(y))[::-1]
    ordered.learn(X[::-1], y[::-1], order=reverse)
    for other in (single, split, ordered):
        same(whole, other)


def test_sparse_rows_are_dense_rows():
    X, y = rows(400)
    X *= np.random.default_rng(2).random(X.shape) < 0.4
    X[0] = 0.0
    # without an intercept no feature is centred
    dense, by_rows, by_steps = (scaled_learner(sparse=kind, fit_intercept=False) for kind in (False, True, True))
    np.testing.assert_allclose(dense.learn(X, y), by_rows.learn(sparse.csr_array(X), y), atol=1e-7)
    for row, label in zip(X, y, strict=True):
        columns = np.flatnonzero(row)
        by_steps.step(columns, row[columns], label)
    np.testing.assert_allclose(dense.weights, by_rows.weights, rtol=1e-6)
    same(by_rows, by_steps)


def test_weights_are_for_rows_before_scaling():
    X, y = rows(100)
    learner = scaled_learner()
    learner.learn(X[:70], y[:70])
    expected = learner.margins(X[70:71])[0]
    assert learner.step_dense(X[70], y[70]) == pytest.approx(expected, rel=1e-12)


def test_new_factors_leave_the_sum_of_gradients_and_meet_the_checks_of_a_file():
    X, y = rows(64)
    for kind in (False, True):
        learner = scaled_learner(sparse=kind, budget=5.0)  # it binds: the threshold is above 0
        learner.learn(X, y)
        scale, z = learner._scale, learner._state.z
        before = z / scale.factors + scale.means * scale.slopes
        learner._update_if_due(scale)
        after = z / scale.factors + scale.means * scale.slopes
        np.testing.assert_allclose(after, PAST_WEIGHT * before, rtol=1e-10)
        if not kind:
            np.testing.assert_array_equal(scale.means != 0, np.arange(7) != 3)  # which is seldom other than 0
        same(learner, BudgetLinearLearner.__new__(BudgetLinearLearner).__setstate__(learner.__getstate__()) or learner)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_unit_of_a_feature_hardly_matters(factor):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 8))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.logistic(size=1000) > 0, 1.0, -1.0)
    losses = []
    for unit in (1.0, factor):
        X[:, 0] *= unit
        model = BudgetLinearClassifier().partial_fit(X[:300], y[:300], classes=[-1, 1])
        before = model.cumulative_loss_
        losses.append(model.partial_fit(X[300:], y[300:]).cumulative_loss_ - before)
    assert losses[1] == pytest.approx(losses[0], rel=0.03)


def test_features_of_easy_rows_have_longer_steps_and_those_of_steep_ones_no_shorter():
    rng = np.random.default_rng(3)
    X = (rng.random((400, 3)) < 0.2).astype(float)
    slopes = np.where(X[:, 0] > 0, 0.1, np.where(X[:, 1] > 0, 0.9, 0.5))
    plain, known = FeatureScale(3, True), FeatureScale(3, True)
    plain.observe(X, np.zeros(400))
    known.observe(X, slopes)
    for one in (plain, known):
        one.update()
    ratio = known.factors / plain.factors
    seen = int(X[:, 0].sum())
    h = (slopes[X[:, 0] > 0] @ slopes[X[:, 0] > 0] / np.mean(slopes**2) + 8) / (seen + 8)
    assert h < 0.3
    np.testing.assert_allclose(ratio[0] / ratio[1], h**-0.25, rtol=1e-12)
    np.testing.assert_allclose(ratio[1], ratio[2], rtol=0.02)


def test_one_row_that_is_too_large_spoils_no_feature():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 6))
    scale, spoilt = FeatureScale(6, True), FeatureScale(6, True)
    scale.observe(X, np.zeros(400))
    X[50] *= 1000.0
    for row in X:
        if spoilt.is_due:
            spoilt.update()
        spoilt.observe(row[None], np.zeros(1))
    for one in (scale, spoilt):
        one.update()
    np.testing.assert_allclose(spoilt.factors, scale.factors, rtol=0.2)


def test_an_offset_of_the_features_hardly_matters():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 8))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.logistic(size=600) > 0, 1.0, -1.0)
    losses = []
    for offset in (0.0, 30.0):
        model = BudgetLinearClassifier().partial_fit(X[:200] + offset, y[:200], classes=[-1, 1])
        before = model.cumulative_loss_
        losses.append(model.partial_fit(X[200:] + offset, y[200:]).cumulative_loss_ - before)
        margins = (X + offset) @ model.coef_[0] + model.intercept_[0]
        np.testing.assert_allclose(margins, model.decision_function(X + offset), rtol=1e-9)
    assert losses[1] == pytest.approx(losses[0], rel=0.05)


def test_sparse_rows_are_centred_where_the_layout_is_dense():
    X, y = rows(100)
    by_rows, by_steps, whole = scaled_learner(), scaled_learner(), scaled_learner()
    by_rows.learn(sparse.csr_array(X), y)
    for row, label in zip(X, y, strict=True):
        columns = np.flatnonzero(row)
        by_steps.step(columns, row[columns], label)
    whole.learn(X, y)
    same(whole, by_rows)
    same(whole, by_steps)


def test_predictions_are_clipped_to_the_reach_of_the_targets():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5)) * 1e4
    y = 40 + 0.01 * rng.standard_normal(200)
    for kind in (False, True):
        learner = BudgetLinearLearner(5, 1e6, loss="squared", sparse=kind)
        margins, reach = learner.learn(X, y), np.maximum.accumulate(np.abs(y - y[0]))
        assert (np.abs(margins[1:] - y[0]) <= 1.5 * reach[:-1] + 1e-9).all()


@pytest.mark.parametrize(("loss", "power"), [("squared", TARGET_POWER), ("logistic", POWER)])
def test_rare_features_get_longer_steps_less_so_for_targets(loss, power):
    X = np.ones((64, 2))
    X[:, 1] = np.arange(64) % 8 == 0
    learner = BudgetLinearLearner(2, 1e4, loss=loss, scale_features=True, sparse=True)  # so that nothing is centred
    learner.learn(X, np.where(np.arange(64) % 3, 1.0, -1.0))
    learner.learn(X[:1], [1.0])  # factors are made anew before the 65th row
    factors = learner._scale.factors
    assert factors[1] / factors[0] == pytest.approx((65 / 9) ** power)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_the_bound_on_entries_is_no_less_than_the_largest(dtype, size):
    values = (size * np.random.default_rng(0).standard_normal((2000, 3))).astype(dtype)
    assert np.abs(values).max() <= max_abs_bound(values) < np.inf
    for wrong in (np.nan, np.inf, -np.inf):
        values[1234, 1] = wrong
        assert not np.isfinite(max_abs_bound(values))


def test_a_round_does_not_take_its_own_prediction_beyond_the_target():
    rng = np.random.default_rng(1)
    X = 1 + 0.1 * rng.standard_normal((300, 4))
    y = np.append(1e-3 * rng.standard_normal(20), np.sin(np.arange(280) / 10))  # near the first, then far
    factors, errors = {}, {}
    for loss, parameter in (("squared", None), ("huber", 1e9)):
        learner = BudgetLinearLearner(4, 1e4, loss=loss, loss_parameter=parameter, scale_features=True)
        margins, found = [], []
        for row, target in zip(X, y, strict=True):
            margins.append(learner.step_dense(row, target))
            found.append(learner._state.number("scale"))
        factors[loss], errors[loss] = max(found[1:]), float(np.mean((np.array(margins)[20:] - y[20:]) ** 2))
    assert factors["squared"] == FACTOR_BOUND < factors["huber"]  # the same loss, without the cap
    assert errors["squared"] < 0.8 * errors["huber"]


def test_no_more_features_than_allowed_whatever_the_factors():
    X, y = rows(300)
    learner = scaled_learner(rule="penalised-ftrl", max_features=2)
    for row, label in zip(X, y, strict=True):
        learner.step_dense(row, label)
        assert learner.nonzeros <= 2


def test_estimators_scale_features_unless_they_forget():
    X, y = rows()
    for more in ({}, {"budget": 3.0}, {"half_life": 9.0}, {"scale_features": False}):
        model = BudgetLinearClassifier(**more).partial_fit(X, y, classes=[-1, 1])
        assert (model._learners[0]._scale is not None) == (more.keys() <= {"budget"})
    known = BudgetLinearClassifier().fit(X, y)._learners[0]._scale
    np.testing.assert_allclose(known.means[[0, 1, 2]], X[:, [0, 1, 2]].mean(axis=0), atol=1e-12)
    for columns in (40, 600):  # many and sparse, or few
        words = sparse.random_array((50, columns), density=0.1, rng=0)
        assert BudgetLinearClassifier().fit(words, y[:50])._learners[0]._scale.centred == (columns == 40)


def test_an_invalid_scale_is_refused():
    X, y = rows(20)
    learner = scaled_learner()
    learner.learn(X, y)
    stored = learner.__getstate__()
    for name, value in (
        ("expected", 1e6),
        ("units", 0.0),
        ("factors", 0.0),
        ("squares", np.nan),
        ("counts", -1),
        ("seen", 21.0),
        ("steepness", -1.0),
    ):
        broken = {key: array.copy() for key, array in stored["arrays"].items()}
        broken[f"scale.{name}"][0] = value
        with pytest.raises(ValueError, match="scale"):
            learner.__setstate__({"specification": stored["specification"], "arrays": broken})


def test_a_scale_without_rows_or_with_many_is_restored(tmp_path):
    learner = scaled_learner()
    learner.save(tmp_path / "file")
    BudgetLinearLearner.load(tmp_path / "file").learn(*rows(5))
    learner.learn(*rows(20))
    learner._scale.counts[0] = 2**40
    learner.save(tmp_path / "file")
    same(learner, BudgetLinearLearner.load(tmp_path / "file"))


@pytest.mark.parametrize("kind", [False, True])
def test_a_column_that_comes_after_the_last_update_keeps_its_factor(kind):
    X, y = rows(40)
    X[:20, 2] = 0.0
    learner = scaled_learner(sparse=kind)
    learner.learn(X[:20], y[:20])
    first = learner._scale.factors[2]
    learner.learn(X[20:30], y[20:30])
    assert learner._scale.factors[2] != first  # its first value says in which unit it is
    learner = scaled_learner(sparse=kind)
    learner.learn(X[:20], y[:20])
    learner._scale.counts[0] = 2**18
    factors = learner._scale.factors.copy()
    for start in range(20, 40, 5):
        learner.learn(X[start : start + 5], y[start : start + 5])
    assert (learner._scale.factors <= factors).all()  # a dense row that would be too long is shortened
    if kind:
        np.testing.assert_array_equal(learner._scale.factors, factors)


def test_losses_that_are_steeper_in_some_rows_than_in_all_are_no_state():
    scale = FeatureScale(2, True)
    scale.observe(np.ones((3, 2)), np.array([0.5, 1.0, 0.25]))
    arrays = scale.arrays()
    assert FeatureScale.restored(2, arrays).arrays().keys() == arrays.keys()
    arrays["steepness"][0] = 1e300
    with pytest.raises(ValueError, match="larger sum for one feature"):
        FeatureScale.restored(2, arrays)


def indicators(n=4000):
    """Return standardised rows: one feature that matters, and twenty that jump once in 500 rows."""
    rng = np.random.default_rng(0)
    rare = (rng.random((n, 20)) < 1 / 500) - 1 / 500
    X = np.column_stack([rng.standard_normal(n), rare / np.sqrt(1 / 500)])
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


def test_standardised_indicators_do_not_break_a_model():
    """A feature that has not varied yet has a large factor, with which its first jump would be thousands long."""
    X, y = indicators()
    stream = BudgetLinearClassifier().partial_fit(X, y, classes=[-1, 1])
    assert stream.cumulative_loss_ < 0.45 * len(y)
    assert BudgetLinearClassifier(random_state=0).fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("rule", ["a-ftrl", "penalised-ftrl"])
def test_no_row_is_learned_longer_than_the_longest(rule, monkeypatch):
    X, y = indicators(600)
    lengths, observe = [], FeatureScale.observe

    def noted(scale, rows, slopes):
        lengths.append(np.linalg.norm((rows - scale.means) * scale.factors, axis=1).max())
        observe(scale, rows, slopes)

    monkeypatch.setattr(FeatureScale, "observe", noted)
    learners = [BudgetLinearLearner(21, 1e4, scale_features=True, rule=rule) for _ in range(2)]
    learners[0].learn(X, y)
    assert 1 < max(lengths) <= LONGEST_ROW
    for start in range(0, 600, 7):
        learners[1].learn(X[start : start + 7], y[start : start + 7])
    same(*learners)


def test_reduced_factors_by_hand():
    scale = FeatureScale(4, centred=True)
    scale.means[:] = [1.0, 0.0, 0.0, 0.0]
    change = scale.reduce(np.array([1.0, 0.99 * LONGEST_ROW, 0.1, -0.99 * LONGEST_ROW / 4]))
    np.testing.assert_allclose(change, [1, 0.5, 1, 1])
    np.testing.assert_allclose(scale.factors, change)


def streams():
    """Return rows of several kinds, with labels: dense, collinear, heavy-tailed, constant, odd units, few, sparse."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 12))
    y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=300) > 0, 1.0, -1.0)
    words = sparse.csr_array((rng.random((300, 900)) < 0.02) * rng.exponential(size=(300, 900)))
    return {
        "dense": (X, y),
        "collinear": (X[:, :2] @ rng.standard_normal((2, 12)), y),
        "heavy": (rng.standard_t(1.5, size=(300, 12)), y),
        "constant": (np.where(np.arange(12) % 3, X, 7.0), y),
        "odd": (X * 10.0 ** rng.uniform(-4, 4, 12), y),
        "few": (X[:5], y[:5]),
        "sparse": (words, y),
        "odd sparse": (sparse.csr_array(words.multiply(10.0 ** rng.uniform(-4, 4, 900))), y),
    }


@pytest.mark.parametrize("kind", streams())
@pytest.mark.parametrize("rule", ["a-ftrl", "penalised-ftrl"])
def test_a_budget_that_is_never_reached_changes_no_bit(kind, rule):
    X, y = streams()[kind]
    margins = {}
    for budget in (None, 1e12, 1e7, 1e4):
        learner = BudgetLinearLearner(X.shape[1], budget, rule=rule, sparse=sparse.issparse(X))
        margins[budget] = learner.learn(X, y)
        assert not learner.binds
    for budget in (1e12, 1e7, 1e4):
        np.testing.assert_array_equal(margins[budget], margins[None])


def test_no_row_is_learned_in_units_of_the_first():
    """Many words in units of their own. With factors of the first row for longer one draw lost 2.4 times as much."""
    rng, d = np.random.default_rng(4), 20_000
    words = rng.random((200, d)) < np.minimum(3 / np.arange(1, d + 1) ** 0.8, 0.9)
    X = sparse.csr_array(words * rng.exponential(size=words.shape))
    margins = words[:, :40] @ rng.standard_normal(40)
    y = np.where(margins > np.median(margins), 1.0, -1.0)
    losses = []
    for seed in range(6):
        learner = BudgetLinearLearner(d, sparse=True)
        learner.learn(sparse.csr_array(X.multiply(10.0 ** np.random.default_rng(seed).uniform(-2, 3, d))), y)
        losses.append(learner.cumulative_loss)
    assert max(losses) <= 1.1 * min(losses)


def test_an_update_passes_over_the_columns_met_and_over_no_other():
    learner = BudgetLinearLearner(1000, sparse=True)
    for t in range(70):
        learner.step([t, t + 1], [1.0, 2.0], 1.0 if t % 3 else -1.0)
    scale = learner.scale
    columns = scale.update().columns
    np.testing.assert_array_equal(columns, np.arange(71))
    restored = BudgetLinearLearner.from_bytes(learner.to_bytes())
    for one in (learner, restored):
        one.step([5, 900], [1.0, 1.0], 1.0)
    np.testing.assert_array_equal(restored.scale.update().columns, learner.scale.update().columns)
