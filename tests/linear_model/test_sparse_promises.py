"""What A-FTRL on sparse rows promises about its heap, bits, memory and bad input."""

import math
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from linear_learners import as_if_drawn, learner_with, put, require_sound, same, sparse_rows, trace_of
from longterm import InputError
from longterm.linear_model.kernels import heap
from longterm.linear_model.kernels.heap import PERIOD, SLACK
from longterm.linear_model.kernels.layout import Parameters


def sparse_learner(d, budget=1.0, theta_0=1.0, loss=0, **others):
    p = Parameters(budget, 1.0, 1.0, math.sqrt(1 + 2 * budget) - 1, loss=loss, theta_0=theta_0, **others)
    return learner_with("a-ftrl", p, d, sparse=True)


def labels_of(rng, n):
    return rng.choice([-1.0, 1.0], n)


def number(learner, name):
    return learner._state.number(name)


# --- the heap and the sums ------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), loss=st.sampled_from([0, 1, 3]))
def test_heap_and_sums_are_sound_after_any_rows(seed, loss):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 80)), int(rng.integers(1, 200))
    rows = sparse_rows(rng, n, d, rng.uniform(0, 0.5))
    budget, theta_0 = 10.0 ** rng.uniform(-2, 1), 10.0 ** rng.uniform(-4, 1)
    learner = sparse_learner(d, budget, theta_0, loss, intercept_bound=1.0)
    for _ in range(4):
        learner.learn(rows, labels_of(rng, n))
        require_sound(learner)


@pytest.mark.parametrize("d", [50, 5000])
def test_coordinates_that_fall_and_rise_forever_do_not_fill_the_heap(d):
    """|z| falls by a tenth in nearly every round, so that each round pushes an entry for each coordinate."""
    n, largest, z = 50, 0, 0.0
    learner = sparse_learner(d, 1e-3, 1e12, loss=3)
    for t in range(2000):
        change = 50 * (-0.9) ** (t % 40) - z
        learner.step(np.arange(n), np.full(n, 1e-3), -math.copysign(1e3, change), abs(change))
        z = float(learner._state.z[0])
        entries, live = number(learner, "entries"), number(learner, "live")
        largest = max(largest, entries)
        assert entries <= min(2 * live + SLACK + n, len(learner._state.heap))
    require_sound(learner, drift=1e-9)
    assert 2 * n < largest <= 3 * n + SLACK


@pytest.mark.slow
@pytest.mark.parametrize("low", [0.5, 1.0 - 2.0**-53])
def test_coordinates_just_above_the_threshold(low):
    """Keys are cut to the leading bits of their words; of these coordinates none can be told from the new τ."""
    d, ulp = 1000, 2.0**-52
    z = 1.0 + np.arange(d) * ulp
    w = z - low
    learner = sparse_learner(d, 1e-6, 1.0)
    put(learner, z, multiplier_sum=low, norm_1=math.fsum(w), norm_2=math.fsum(w * w))
    require_sound(learner)
    rule = learner._state
    state = rule.scalars[0], rule.vector, rule.heap, np.uint64(10)
    heap.rebuild(*state, low)
    require_sound(learner)
    for high in (1.0 + 500 * ulp, 1.0 + 700 * ulp, 1.0 + 2000 * ulp):
        heap.raise_threshold(*state, low, high)
        low = rule.scalars["multiplier_sum"] = high
        require_sound(learner, drift=1e-12)  # Σw was up to 500
    assert [number(learner, name) for name in ("active", "live", "entries")] == [0, 0, 0]


def test_sums_do_not_drift():
    rng = np.random.default_rng(0)
    d, n = 300, PERIOD - 2
    rows, learner = sparse_rows(rng, n, d, 0.02), sparse_learner(d, 0.5, 10.0)
    learner.learn(rows, np.sign(rows[:, [0]].toarray()[:, 0] + 0.1))
    assert learner.rounds == PERIOD - 2
    w = np.maximum(np.abs(learner._state.z) - number(learner, "multiplier_sum"), 0)
    assert 0 < np.count_nonzero(w) < d
    assert number(learner, "norm_1") + number(learner, "norm_1_low") == pytest.approx(math.fsum(w), rel=1e-12)
    assert number(learner, "norm_2") + number(learner, "norm_2_low") == pytest.approx(math.fsum(w * w), rel=1e-12)


def test_sums_are_computed_again_in_fixed_rounds():
    for t, anew in ((PERIOD - 1, False), (PERIOD, True), (2 * PERIOD, True), (2 * PERIOD + 1, False)):
        learner = sparse_learner(3, 0.5, 10.0)
        learner.step([0], [1.0], 1.0)
        scalars, learner._until_drawn = learner._state.scalars, 10**9
        scalars["round"] = t
        scalars["norm_1"] += 1e-3
        learner.step([0], [1.0], 1.0)
        if anew:
            require_sound(learner)
        else:
            assert number(learner, "norm_1") > 5e-4 + np.abs(learner._state.z).sum()


def test_low_parts_are_kept():
    """Fast mathematics would make them 0: then sums would drift."""
    rng = np.random.default_rng(1)
    learner = sparse_learner(100)
    learner.learn(sparse_rows(rng, 2000, 100), labels_of(rng, 2000))
    assert number(learner, "norm_1_low") != 0
    assert number(learner, "norm_2_low") != 0


def test_a_feature_a_million_times_larger():
    rng = np.random.default_rng(6)
    d, n = 100, 5000
    rows = sparse_rows(rng, n, d, 0.1)
    rows.data[rows.indices == 3] *= 1e6
    learner = sparse_learner(d)
    trace = trace_of(learner, rows, labels_of(rng, n))
    assert all(np.all(np.isfinite(column)) for column in trace.values())
    require_sound(learner)


# --- bits -----------------------------------------------------------------------------------------------------


def test_split_rows_are_whole_rows_bit_for_bit():
    rng = np.random.default_rng(2)
    d, n = 200, 3000
    rows, labels, weights = sparse_rows(rng, n, d), labels_of(rng, n), rng.uniform(0, 2, n)
    whole, split, single = (
        put(
            sparse_learner(d, 0.5, 0.01, intercept_bound=1.0),
            np.zeros(d),
            round=PERIOD - 1000,  # the sums are made anew on the way
        )
        for _ in range(3)
    )
    margins = whole.learn(rows, labels, weights)
    parts = []
    for i, j in pairwise([0, 1, 2, 700, 999, 1000, 1001, 2500, n]):
        parts.append(split.learn(rows[i:j], labels[i:j], weights[i:j]))
        constants = split._state.parameters.copy()
        split = pickle.loads(pickle.dumps(as_if_drawn(split)))
        split._state.parameters[...], split._until_drawn = constants, 10**9
    as_if_drawn(whole)
    same(whole, split)
    assert np.concatenate(parts).tobytes() == margins.tobytes()
    for k in range(n):
        i, j = rows.indptr[k : k + 2]
        assert single.step(rows.indices[i:j], rows.data[i:j], labels[k], weights[k]) == margins[k]
    same(whole, as_if_drawn(single))


@pytest.mark.slow
def test_order_weights_and_dtypes():
    rng = np.random.default_rng(3)
    d, n = 50, 400
    rows, labels = sparse_rows(rng, n, d, dtype=np.float32), labels_of(rng, n)
    order = rng.integers(0, n, 900)
    plain, ordered, wide, weighted = (sparse_learner(d, 0.3, 0.1) for _ in range(4))
    plain.learn(rows[order], labels[order])
    ordered.learn(rows, labels, order=order)
    doubles = csr_array(rows.astype(np.float64))
    doubles.indices, doubles.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    for part in (doubles.data, doubles.indices, doubles.indptr):
        part.flags.writeable = False
    wide.learn(doubles, labels, np.ones(n), order=order)
    same(plain, ordered)
    same(plain, wide)
    weighted.learn(rows, labels, np.zeros(n), order=order)
    assert not np.any(weighted._state.z)


def test_empty_rows_are_rounds():
    learner = sparse_learner(3, intercept_bound=2.0)
    margins = learner.learn(csr_array((4, 3)), np.ones(4))
    assert learner.rounds == 4
    assert margins[0] == 0.0 < margins[1]  # the intercept learns
    assert learner.step(np.empty(0, dtype=np.int64), np.empty(0), 1.0) >= margins[-1]


# --- input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_unsorted_and_duplicate_indices_are_summed_in_blocks_and_refused_in_single_rows(order):
    one, two = sparse_learner(4), sparse_learner(4)
    values, columns = np.array([2.0, 1.0, 3.0])[order], np.array([0, 2, 2], dtype=np.int32)[order]
    messy = csr_array((np.append(values, 1.0), np.append(columns, np.int32(1)), np.array([0, 3, 4])), shape=(2, 4))
    before = [part.copy() for part in (messy.data, messy.indices, messy.indptr)]
    one.learn(messy, np.ones(2))
    two.learn(
        csr_array((np.array([2.0, 4.0, 1.0]), np.array([0, 2, 1]), np.array([0, 2, 3])), shape=(2, 4)), np.ones(2)
    )
    same(one, two)
    assert all(np.array_equal(a, b) for a, b in zip((messy.data, messy.indices, messy.indptr), before, strict=True))
    with pytest.raises(InputError, match="Sort them, and give each once"):
        one.step(columns, values, 1.0)
    same(one, two)


def bad_rows(what, rows, labels, weights):
    """The same rows with something wrong in row 7."""
    place = rows.indptr[7]
    if what == "index too large":
        rows.indices[rows.indptr[8] - 1] = 30
    elif what == "index negative":
        rows.indices[place] = -1
    elif what in ("nan", "inf"):
        rows.data[place + 1] = float(what)
    elif what == "indptr":
        rows.indptr[7] = rows.indptr[9]
    elif what == "indptr too long":
        rows.indptr[-1] += 1
    elif what == "data too short":
        rows.data = rows.data[:-1]
    elif what == "label":
        labels[7] = 0.0
    elif what == "weight":
        weights[7] = -1.0
    elif what == "gradient":
        rows.data[place] = 1e120
    else:
        rows.data = rows.data.astype(complex)
    return rows, labels, weights


@pytest.mark.parametrize(
    ("what", "words", "alone"),
    [
        ("index too large", "row 7 has column indices outside 0 … 29", "not increasing within 0 … 29"),
        ("index negative", "row 7 has column indices outside 0 … 29", "not increasing within 0 … 29"),
        ("nan", "row 7 holds NaN or infinity", "holds NaN or infinity"),
        ("inf", "row 7 holds NaN or infinity", "holds NaN or infinity"),
        ("gradient", "squares overflow .* row 7", "squares of its gradient overflow"),
        ("indptr", "row pointers", None),
        ("indptr too long", "row pointers", None),
        ("data too short", "row pointers", None),
        ("label", "0 is the label of row 7", None),
        ("weight", "-1 is the weight of row 7", None),
        ("dtype", "complex", None),
    ],
)
def test_bad_input_is_refused_before_anything_is_changed(what, words, alone):
    rng = np.random.default_rng(4)
    d, n = 30, 20
    rows, labels = sparse_rows(rng, n, d, 0.3), labels_of(rng, n)
    learner, other = sparse_learner(d, loss=0), sparse_learner(d, loss=0)
    learner.learn(rows, labels)
    other.learn(rows, labels)
    spoilt, labels, weights = bad_rows(what, rows, labels, np.ones(n))
    with pytest.raises(InputError, match=words) as refused:
        learner.learn(spoilt, labels, weights)
    same(learner, other)
    if alone:
        assert refused.value.round == n + 1 + 7
        row = slice(spoilt.indptr[7], spoilt.indptr[8])
        with pytest.raises(InputError, match=alone) as refused:
            learner.step(spoilt.indices[row], spoilt.data[row], 1.0)
        assert refused.value.round == n + 1
        same(learner, other)


# --- memory ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_new_learner_does_not_touch_its_memory():
    """Ten million coordinates are 320 MB of address space; what is used of it is what rows touch."""
    code = (
        "import resource\n"
        "from longterm.linear_model import BudgetLinearLearner\n"
        "BudgetLinearLearner(10, 1.0, sparse=True)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "learner = BudgetLinearLearner(10**7, 1.0, sparse=True)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) * (1 if sys.platform == "darwin" else 1024) < 20e6
