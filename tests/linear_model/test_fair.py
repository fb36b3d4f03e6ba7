"""Parity between groups: first rows by hand, new and rare groups, bad input, files."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from longterm.errors import InputError, NonFiniteError, SnapshotError
from longterm.linear_model import BudgetLinearClassifier, FairLinearClassifier
from longterm.linear_model._parity import BLOCK, LARGEST_PRICE, GroupPrices


def rows(n=4000, seed=0):
    """Return rows of two groups: those of "a" are more often positive."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n)
    X = rng.standard_normal((n, 4)) + np.where(group == "a", 0.5, 0.0)[:, None]
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, "yes", "no"), group


def gap(model, X, group):
    positive = model.predict(X) == "yes"
    return max(abs(positive[group == name].mean() - positive.mean()) for name in np.unique(group))


def test_the_first_block_by_hand():
    """24 rows of a, all predicted positive, 8 of b, none: r = ¾, so the gaps are ¼ and −¾."""
    prices = GroupPrices("demographic_parity", 0.05, 100)
    numbers, labels = prices.numbers_of(["a"] * 24 + ["b"] * 8), np.ones(32)
    assert not prices.observe(numbers[:31], labels[:31], numbers[:31] == 0)
    assert (prices.signed_weights(numbers, labels) == 1).all()
    assert prices.observe(numbers[31:], labels[31:], numbers[31:] == 0)
    np.testing.assert_allclose(prices.multipliers, [[2 * 0.2, 0], [0, 2 * 0.7]])
    mean = 0.75 * 0.4 - 0.25 * 1.4
    np.testing.assert_allclose(prices.signed_weights(numbers[[0, 31]], labels[[0, 31]]), [0.6 + mean, 2.4 + mean])
    np.testing.assert_allclose(prices.signed_weights(numbers[:1], -labels[:1]), [-1.4 + mean])
    assert prices.rates() == {"a": (24, 1.0), "b": (8, 0.0)}
    assert np.isnan(prices.violation)  # both groups have fewer than 30 rows
    prices.observe(numbers, labels, numbers == 0)
    assert prices.multipliers[0, 0] == pytest.approx(0.4 + 2 / np.sqrt(2) * 0.2)
    assert prices.violation == pytest.approx(0.2)  # that of a; b has 16 rows


def test_multipliers_stop_at_their_bound_and_return_from_it():
    prices = GroupPrices("demographic_parity", 0.0, BLOCK)
    numbers, labels = prices.numbers_of(["a"] * (BLOCK - 1) + ["b"]), np.ones(BLOCK)
    prices.multipliers[1] = [0.0, LARGEST_PRICE]
    prices.observe(numbers, labels, numbers == 0)
    assert prices.prices[1] == -LARGEST_PRICE
    prices.observe(numbers, labels, numbers == 1)
    assert prices.prices[1] > -LARGEST_PRICE


def test_equal_opportunity_counts_positive_labels_only():
    prices = GroupPrices("equal_opportunity", 0.0, 100)
    numbers, labels = prices.numbers_of(["a", "b"] * BLOCK), np.repeat([1.0, -1.0], BLOCK)
    assert prices.observe(numbers, labels, numbers == 0)
    assert (prices.multipliers > 0).tolist() == [[True, False], [False, True]]
    assert (prices.signed_weights(numbers, labels)[BLOCK:] == -1).all()
    assert sum(count for count, _ in prices.rates().values()) == BLOCK


@pytest.mark.parametrize("constraint", ["demographic_parity", "equal_opportunity"])
def test_the_gap_falls_to_the_tolerance(constraint):
    X, y, group = rows(20_000)
    plain = BudgetLinearClassifier(random_state=0).fit(X, y)
    model = FairLinearClassifier(constraint, random_state=0).fit(X, y, sensitive_features=group)
    counted = y == "yes" if constraint == "equal_opportunity" else np.ones(len(y), dtype=bool)
    before, after = (gap(one, X[counted], group[counted]) for one in (plain, model))
    assert after < 0.035 < before
    assert model.score(X, y) > 0.75


@pytest.mark.parametrize("constraint", ["demographic_parity", "equal_opportunity"])
def test_splitting_a_stream_changes_nothing(constraint):
    X, y, group = rows(300)
    whole = FairLinearClassifier(constraint, random_state=0).partial_fit(X, y, sensitive_features=group)
    parts = FairLinearClassifier(constraint, random_state=0)
    for start, stop in ((0, 1), (1, 40), (40, 41), (41, 300)):
        part = slice(start, stop)
        parts.partial_fit(X[part], y[part], classes=["no", "yes"], sensitive_features=group[part])
    np.testing.assert_array_equal(whole.coef_, parts.coef_)
    assert whole.group_prices_ == parts.group_prices_
    assert whole.group_rates_ == parts.group_rates_


def test_a_new_group_gets_a_price_of_its_own():
    X, y, group = rows(2000)
    model = FairLinearClassifier(random_state=0).partial_fit(X, y, sensitive_features=group)
    known = model.group_prices_
    new = np.where(np.arange(2000) % 100 == 0, "c", group)  # one row in a hundred
    model.partial_fit(X[:1], y[:1], sensitive_features=["c"])
    assert model.group_prices_ == pytest.approx(known | {"c": 0.0})
    X[new == "c", 0] -= 10
    model.partial_fit(X, y, sensitive_features=new)
    assert -LARGEST_PRICE <= model.group_prices_["c"] < 0  # it is predicted positive too rarely
    assert model.group_rates_["c"][0] == 10
    assert np.isfinite(model.coef_).all()


def test_the_window_forgets():
    X, y, group = rows(500)
    model = FairLinearClassifier(window=100, random_state=0).partial_fit(X, y, sensitive_features=group)
    counts = [count for count, _ in model.group_rates_.values()]
    assert sum(counts) == 100
    model.partial_fit(X[:100], y[:100], sensitive_features=["other"] * 100)
    assert [model.group_rates_[name][0] for name in ("a", "b", "other")] == [0, 0, 100]
    assert np.isnan(model.group_rates_["a"][1])
    assert model.violation_ == pytest.approx(-0.02)


BAD = {
    "constraint": (lambda X, y, g: FairLinearClassifier("equality").fit(X, y, sensitive_features=g), "constraint"),
    "tolerance": (lambda X, y, g: FairLinearClassifier(tolerance=-1).fit(X, y, sensitive_features=g), "tolerance"),
    "window": (lambda X, y, g: FairLinearClassifier(window=0).fit(X, y, sensitive_features=g), "window"),
    "length": (lambda X, y, g: FairLinearClassifier().fit(X, y, sensitive_features=g[1:]), "sensitive_features"),
    "columns": (lambda X, y, g: FairLinearClassifier().fit(X, y, sensitive_features=X), "sensitive_features"),
    "missing": (lambda X, y, g: FairLinearClassifier().fit(X, y, sensitive_features=[None, *g[1:]]), "row 0"),
    "not a number": (lambda X, y, g: FairLinearClassifier().fit(X, y, sensitive_features=X[:, 0] * np.nan), "row 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    call, match = BAD[name]
    with pytest.raises(InputError, match=match):
        call(*rows(50))


def test_two_classes_are_needed():
    X, _, group = rows(60)
    with pytest.raises(ValueError, match="two classes"):
        FairLinearClassifier().fit(X, np.arange(60) % 3, sensitive_features=group)
    with pytest.raises(ValueError, match="greater than one"):
        FairLinearClassifier().partial_fit(X, ["yes"] * 60, sensitive_features=group)


@pytest.mark.parametrize("bad", [np.nan, 1e80])
def test_an_error_leaves_the_model_as_it_was(bad):
    X, y, group = rows(200)
    model = FairLinearClassifier(random_state=0).partial_fit(X, y, sensitive_features=group)
    before = pickle.dumps(model)
    broken = X.copy()
    broken[150, 2] = bad
    with pytest.raises((InputError, NonFiniteError)):
        model.partial_fit(broken, y, sensitive_features=["new"] * 200)
    again = pickle.loads(before)
    assert model.group_rates_ == again.group_rates_
    assert "new" not in model.group_prices_
    for one in (model, again):
        one.partial_fit(X, y, sensitive_features=group)
    np.testing.assert_array_equal(model.coef_, again.coef_)


def test_clone_and_parameters():
    model = FairLinearClassifier("equal_opportunity", tolerance=0.1, window=50, random_state=3)
    assert clone(model).get_params() == model.get_params()
    assert clone(model).set_params(tolerance=0.2).tolerance == 0.2


def test_saved_and_loaded(tmp_path):
    X, y, group = rows(500)
    model = FairLinearClassifier(random_state=0).partial_fit(X, y, sensitive_features=group)
    model.save(tmp_path / "model")
    again = FairLinearClassifier.load(tmp_path / "model")
    assert again.group_prices_ == model.group_prices_
    for one in (model, again):
        one.partial_fit(X, y, sensitive_features=np.where(group == "a", "a", "new"))
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model.group_rates_ == again.group_rates_
    with pytest.raises(SnapshotError):
        BudgetLinearClassifier.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clock", -1),
        ("multipliers", np.inf),
        ("multipliers", 2 * LARGEST_PRICE),
        ("recent", 7),
        ("block_positives", 40.0),
        ("totals", np.nan),
    ],
)
def test_a_forged_state_is_refused(name, value):
    prices = GroupPrices("demographic_parity", 0.05, 100)
    numbers = prices.numbers_of(["a", "b"] * 8)
    prices.observe(numbers, np.ones(16), numbers == 0)
    arrays = {key: array.copy() for key, array in prices.arrays().items()}
    fresh = GroupPrices("demographic_parity", 0.05, 100)
    assert fresh.restore(["a", "b"], arrays).rates() == prices.rates()
    arrays[name].flat[-1] = value
    with pytest.raises(ValueError, match=r"group|block"):
        GroupPrices("demographic_parity", 0.05, 100).restore(["a", "b"], arrays)
    with pytest.raises(ValueError, match="two numbers"):
        GroupPrices("demographic_parity", 0.05, 100).restore(["a", "a"], arrays)
