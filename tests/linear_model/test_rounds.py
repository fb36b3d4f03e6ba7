"""Split, sparse, refused and badly scaled rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from linear_learners import learner_for, learner_with, rows_and_labels, same
from longterm import InputError
from longterm.linear_model.kernels.layout import Parameters
from longterm.linear_model.kernels.losses import CODES, value_and_slope

RULES = ("a-ftrl", "penalised-ftrl")
each_rule = pytest.mark.parametrize("rule", RULES)


def plain_learner(rule, *, loss="logistic", d=13, intercept_bound=0.0):
    p = Parameters(1.5, 1.0, 1.0, 1.0, intercept_bound, CODES[loss], 0.4, theta_0=2.0, weight_0=3.0)
    return learner_with(rule, p, d)


def some_rows(n=200, d=13, dtype=np.float64):
    rng = np.random.default_rng(n * d)
    rows = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    return rows.astype(dtype), np.sign(rows[:, 0] - rows[:, 1] + 0.1), rng.uniform(0, 2, n)


@each_rule
def test_split_is_whole_bit_for_bit_in_any_order(rule):
    rows, labels, weights = some_rows()
    order = np.random.default_rng(0).integers(len(rows), size=500)
    whole, parts = (plain_learner(rule, intercept_bound=0.5) for _ in range(2))
    margins = whole.learn(rows, labels, weights, order=order)
    cuts = ((0, 1), (1, 77), (77, 78), (78, 450), (450, 500))
    pieces = [parts.learn(rows, labels, weights, order=order[a:b]) for a, b in cuts]
    same(parts, whole)
    np.testing.assert_array_equal(np.concatenate(pieces), margins)
    assert whole.hard_violation > 0


@pytest.mark.slow
@each_rule
@pytest.mark.parametrize(("dtype", "integers"), [(np.float64, np.int32), (np.float32, np.int64)])
def test_sparse_rows_are_dense_rows(rule, dtype, integers):
    rows, labels, weights = some_rows(dtype=dtype)
    csr = csr_array(rows)
    csr.indices, csr.indptr = csr.indices.astype(integers), csr.indptr.astype(integers)
    order = np.random.default_rng(1).permutation(len(rows))
    dense, sparse = (plain_learner(rule, intercept_bound=0.5) for _ in range(2))
    margins = dense.learn(rows, labels, weights, order=order)
    np.testing.assert_allclose(margins, sparse.learn(csr, labels, weights, order=order), atol=1e-12)
    for name, array in dense._arrays().items():
        np.testing.assert_allclose(array, sparse._arrays()[name], rtol=1e-11, atol=1e-12, err_msg=name)


@each_rule
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("form", ["dense", "float32", "sparse", "one row"])
def test_bad_rows_are_refused_by_number_with_the_state_as_before(rule, bad, form):
    rows, labels, _ = some_rows()
    learner = plain_learner(rule, loss="hinge")
    learner.learn(rows, labels)
    before = {name: array.copy() for name, array in learner._arrays().items()}
    rows[123] = 0.0
    rows[123, 5], labels[123] = bad, -1.0 if bad == -np.inf else 1.0
    if form == "one row":
        call, given = learner.step_dense, (rows[123], labels[123])
    else:
        with np.errstate(over="ignore"):
            form_of = {"float32": np.float32, "sparse": csr_array, "dense": np.asarray}[form]
            call, given = learner.learn, (form_of(rows), labels)
    with pytest.raises(InputError) as refused:
        call(*given)
    assert refused.value.round == (201 if form == "one row" else 201 + 123)
    assert form == "one row" or "row 123" in str(refused.value)
    for name, array in learner._arrays().items():
        assert array.tobytes() == before[name].tobytes(), name


@each_rule
def test_labels_weights_orders_and_shapes_are_checked(rule):
    rows, labels, weights = some_rows()
    learner, csr = plain_learner(rule), csr_array(rows)
    backwards = csr.copy()
    backwards.indptr = backwards.indptr[::-1].copy()
    cases = {
        "label of row 7. Use −1 and": {"y": np.where(np.arange(200) == 7, 0.0, labels)},
        "weight of row 7. .* at least 0": {"sample_weight": np.where(np.arange(200) == 7, -1.0, weights)},
        "0 … 199": {"order": np.array([0, 200])},
        "a label for each": {"y": labels[:-1]},
        "a weight for each": {"sample_weight": weights[:-1]},
        "Give numbers": {"X": rows.astype(str)},
        "rows of 13 features": {"X": rows[:, :-1]},
        "of 13 features": {"X": csr_array(np.append(rows, np.ones((200, 1)), axis=1))},
        "row pointers": {"X": backwards},
    }
    for words, change in cases.items():
        with pytest.raises(InputError, match=words):
            learner.learn(**{"X": rows, "y": labels, **change})
    regression = plain_learner(rule, loss="squared")
    with pytest.raises(InputError, match="target of row 7"):
        regression.learn(rows, np.where(np.arange(200) == 7, np.inf, labels))
    same(learner, plain_learner(rule))
    np.testing.assert_array_equal(
        learner.learn(np.asfortranarray(rows), labels), plain_learner(rule).learn(rows, labels)
    )


@pytest.mark.slow
@pytest.mark.parametrize("margin", [1e300, -1e300, 750.0, -750.0, 0.0])
def test_losses_do_not_overflow(margin):
    for y in (-1.0, 1.0):
        value, slope = value_and_slope(CODES["logistic"], 0.0, margin, y)
        assert value == pytest.approx(np.logaddexp(0, -y * margin))
        assert slope == pytest.approx(-y * np.exp(-np.logaddexp(0, y * margin)))
        for name in ("hinge", "huber", "quantile"):
            assert all(np.isfinite(value_and_slope(CODES[name], 0.4, margin, y)))


@each_rule
def test_very_large_features_do_not_overflow(rule):
    rows, labels, _ = some_rows()
    rows[:, 3] *= 1e30
    learner = plain_learner(rule)
    learner.learn(rows, labels)
    assert all(np.all(np.isfinite(array)) for array in learner._arrays().values())
    assert np.linalg.norm(learner.weights) <= 1 + 1e-12


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("factor", [2.0**-450, 2.0**-60, 2.0**60])
def test_scaling_all_losses_changes_no_decision(rule, factor):
    X, y = rows_and_labels(n=200)
    learner, scaled = (learner_for(rule, fit_intercept=False) for _ in range(2))
    learner.learn(X, y)
    scaled.learn(X, y, np.full(200, factor))
    np.testing.assert_allclose(scaled.weights, learner.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scaled.multiplier, factor * learner.multiplier, rtol=1e-9)


@pytest.mark.parametrize("of", [False, True])
@pytest.mark.parametrize("target", [1e29, 1e31, 1e60, 1e88, 1e91])
def test_a_single_row_and_a_block_take_the_same_targets(target, of):
    taken = []
    for one in (False, True):
        learner = learner_for("a-ftrl", loss="squared", sparse=of)
        try:
            learner.step_dense(np.ones(7), target) if one else learner.learn(np.ones((1, 7)), [target])
            taken.append(True)
        except InputError:
            taken.append(False)
    assert taken == [target < 1e89] * 2


def test_the_same_rows_give_the_same_bytes_to_every_learner():
    """Wherever their memory lies: sums are made in one order, which is that of SIMD lanes (`rule.APART`)."""
    rows, labels, _ = some_rows()
    learners = [plain_learner("penalised-ftrl", loss="hinge") for _ in range(200)]
    for learner in learners:
        learner.learn(rows, labels)
    assert len({learner._arrays()["state.scalars"].tobytes() for learner in learners}) == 1
