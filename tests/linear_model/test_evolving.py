"""Learners whose past fades and whose features grow in number: the weighted game itself, bits, files, bounds."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from longterm.errors import InputError, SnapshotError
from longterm.linear_model import (
    BudgetLinearClassifier,
    BudgetLinearLearner,
    BudgetLinearRegressor,
    EvolvingLinearLearner,
)
from longterm.linear_model.evolving import SPAN
from longterm.storage.snapshot import read_snapshot

KINDS = [("a-ftrl", False), ("a-ftrl", True), ("penalised-ftrl", False)]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((1500, 4)) * (RNG.random((1500, 4)) < 0.8)
Y = np.sign(X[:, 0] - 0.5 * X[:, 1] + 0.5 * RNG.standard_normal(1500))


@pytest.mark.parametrize(("rule", "is_sparse"), KINDS)
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_forgetting_equals_growing_weights(rule, is_sparse, loss):
    """The state is divided ten times on the way; weights up to 2^150 are learned as they are."""
    options = {"rule": rule, "sparse": is_sparse, "loss": loss}
    y = Y if loss == "logistic" else 1e3 + Y
    learner = EvolvingLinearLearner(4, 2.0, half_life=10.0, **options)
    plain = BudgetLinearLearner(4, 2.0, scale_features=False, **options)
    margins = learner.learn(X, y, np.full(1500, 3.0))
    np.testing.assert_allclose(margins, plain.learn(X, y, 3.0 * 2.0 ** (np.arange(1500) / 10)), rtol=1e-9, atol=1e-9)
    assert learner._shift == 2 * SPAN
    assert learner.signed_violation == pytest.approx(plain.signed_violation, rel=1e-9)
    losses = np.logaddexp(0, -Y * margins) if loss == "logistic" else 0.5 * (margins - y) ** 2
    assert learner.cumulative_loss == pytest.approx(3 * losses.sum(), rel=1e-9)


@pytest.mark.parametrize(("rule", "is_sparse"), KINDS)
def test_blocks_rows_orders_and_files_are_the_same_to_the_last_bit(rule, is_sparse, tmp_path):
    def fresh():
        return EvolvingLinearLearner(4, 2.0, half_life=3.0, rule=rule, sparse=is_sparse)

    whole, rows, parts = fresh(), fresh(), fresh()
    margins = whole.learn(X[:600], Y[:600])
    np.testing.assert_array_equal(
        [rows.step_dense(u, label) for u, label in zip(X[:600], Y[:600], strict=True)], margins
    )
    parts.learn(X[:250], Y[:250])
    parts.save(tmp_path / "file")
    parts = pickle.loads(pickle.dumps(EvolvingLinearLearner.load(tmp_path / "file")))
    shuffled = RNG.permutation(350)
    turned = np.empty_like(X[:350]), np.empty(350)
    turned[0][shuffled], turned[1][shuffled] = X[250:600], Y[250:600]
    np.testing.assert_array_equal(parts.learn(*turned, order=shuffled), margins[250:])
    assert parts.cumulative_loss == rows.cumulative_loss == whole.cumulative_loss


def test_on_every_interval_the_regret_is_within_the_bound():
    """Penalised FTRL against the best of two models in hindsight, on intervals of many lengths, labels that turn."""
    h, n = 40.0, 1200
    y = Y[:n] * np.where(np.arange(n) // 300 % 2, -1, 1)
    learner = EvolvingLinearLearner(4, 2.0, half_life=h, rule="penalised-ftrl", fit_intercept=False)
    own = np.logaddexp(0, -y * learner.learn(X[:n], y))
    R, M = learner.settings.constraint.enclosing_ball().radius, np.linalg.norm(X, axis=1).max()
    bound_h = 2.5 * R * M * np.sqrt(h / (2 * np.log(2)) + 1)
    x = np.array([0.8, -0.4, 0.0, 0.0])
    assert learner.settings.constraint.values(x)[0] <= 0
    F = np.logaddexp(0, R * np.linalg.norm(X, axis=1).max())
    for other in (x, -x):
        regret = np.concatenate([[0.0], np.cumsum(own - np.logaddexp(0, -y * (X[:n] @ other)))])
        for length in (1, 30, 300, n):
            worst = (regret[length:] - regret[:-length]).max()
            assert worst <= bound_h * (1 + length * np.log(2) / h) + F * (h / np.log(2) + 1)
    assert learner.hard_violation <= 1e-9


def test_a_reversal_is_followed_within_the_budget():
    y = Y * np.where(np.arange(1500) // 500 % 2, -1, 1)
    losses = []
    for half_life in (None, 50.0):
        model = BudgetLinearClassifier(3.0, rule="penalised-ftrl", half_life=half_life, random_state=0)
        model.partial_fit(X, y, classes=[-1, 1])
        losses.append(model.cumulative_loss_)
        assert model.hard_violation_ <= 1e-6
    assert losses[1] < 0.9 * losses[0]


def test_states_without_gradients_stay_finite():
    learner = EvolvingLinearLearner(4, 2.0, half_life=1.0, loss="hinge")
    learner.learn(X[:50], Y[:50])
    before = learner.weights
    learner.learn(np.zeros((5000, 4)), np.ones(5000), np.zeros(5000))
    np.testing.assert_allclose(learner.weights, before, rtol=1e-12)
    assert np.isfinite(learner.learn(X[:50], Y[:50])).all()


@pytest.mark.slow
def test_added_features_equal_features_from_the_start():
    rng = np.random.default_rng(1)
    rows = sparse.csr_array(sparse.random_array((400, 60), density=0.1, rng=rng))
    y = np.sign(rng.standard_normal(400))
    for half_life in (None, 20.0):
        wide = EvolvingLinearLearner(2, 1.0, sparse=True, half_life=half_life)
        wide.grow(60)
        growing = EvolvingLinearLearner(2, 1.0, sparse=True, half_life=half_life)
        seen = []
        for i, label in enumerate(y):
            row = rows[[i]]
            columns, values = row.indices.astype(np.int64), row.data
            growing.grow(max(growing.settings.dimension, int(columns.max(initial=0)) + 1))
            order = np.argsort(columns)
            seen.append(growing.margin(columns, values))
            assert growing.step(columns[order], values[order], label) == pytest.approx(seen[-1], abs=1e-12)
        np.testing.assert_allclose(seen, wide.learn(rows, y), rtol=1e-9, atol=1e-12)
        again = pickle.loads(pickle.dumps(growing))
        np.testing.assert_array_equal(again.learn(rows, y), growing.learn(rows, y))
    with pytest.raises(InputError, match="not removed"):
        wide.grow(3)
    with pytest.raises(InputError, match="not a column"):
        wide.margin(np.array([60]), np.ones(1))


@pytest.mark.parametrize(
    "options",
    [{"half_life": 0.5}, {"half_life": -1.0}, {"half_life": np.inf}],
)
def test_a_half_life_is_refused_for_other_rules(options):
    with pytest.raises(InputError, match="half_life"):
        EvolvingLinearLearner(4, 1.0, **options)


@pytest.mark.parametrize("change", [{"first": 9}, {"half_life": 0.1}, {"shift": -64}, {"shift": 6400}, {"losses": "0"}])
def test_a_forged_file_is_refused(tmp_path, change):
    learner = EvolvingLinearLearner(4, 1.0, half_life=9.0)
    learner.learn(X[:100], Y[:100])
    learner.save(tmp_path / "file")
    stored = read_snapshot(tmp_path / "file", EvolvingLinearLearner.file_kind, 1)
    stored.metadata.update(change)
    (tmp_path / "file").write_bytes(stored.encode())
    with pytest.raises(SnapshotError, match="does not describe a learner"):
        EvolvingLinearLearner.load(tmp_path / "file")
    with pytest.raises(SnapshotError, match="evolving linear learner"):
        BudgetLinearLearner.load(tmp_path / "file")


def test_estimators_take_rows_in_the_order_of_time_and_are_stored(tmp_path):
    model = BudgetLinearRegressor(half_life=30.0, random_state=0).fit(X, Y)
    learner = EvolvingLinearLearner(4, model.budget_, loss="squared", half_life=30.0)
    learner.learn(X, Y)
    np.testing.assert_array_equal(model.coef_, learner.weights)
    assert model.n_rounds_ == 1500
    model.save(tmp_path / "model")
    again = BudgetLinearRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(again.partial_fit(X, Y).predict(X), model.partial_fit(X, Y).predict(X))
