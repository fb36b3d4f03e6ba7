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

from longterm import InputError
from longterm.linear_model import _dying, sparse
from longterm.linear_model import _layout as at
from longterm.linear_model._dying import LIVE, LOW_2, PERIOD, SIZE, SLACK
from longterm.linear_model._layout import Parameters
from longterm.linear_model.sparse import SparseState
from sparse_learners import matrix, require_sound, same_bits


def parameters(budget=1.0, theta_0=1.0, loss=0, **others):
    return Parameters(budget, 1.0, 1.0, math.sqrt(1 + 2 * budget) - 1, loss=loss, theta_0=theta_0, **others).as_array()


def labels_of(rng, n):
    return rng.choice([-1.0, 1.0], n)


@given(seed=st.integers(0, 10**6), online=st.booleans(), loss=st.sampled_from([0, 1, 3]))
def test_heap_and_sums_are_sound_after_any_game(seed, online, loss):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 80)), int(rng.integers(1, 200))
    rows = matrix(rng, n, d, rng.uniform(0, 0.5))
    p = parameters(
        10.0 ** rng.uniform(-2, 1), 10.0 ** rng.uniform(-4, 1), loss, step=0.0 if online else 0.1, intercept_bound=1.0
    )
    state = SparseState.start(d)
    for _ in range(4):
        sparse.play(p, state, rows, labels_of(rng, n))
        require_sound(p, state)


@pytest.mark.parametrize("d", [50, 5000])
def test_coordinates_that_fall_and_rise_for_ever_do_not_fill_the_heap(d):
    """On the way down every key falls in every round, so that each round pushes an entry for each coordinate."""
    n = 50
    p = parameters(1e-3, 1e3, loss=3, step=1e-3)
    state, largest = SparseState.start(d), 0
    row = np.full(n, 1e-3), np.arange(n, dtype=np.int32), np.array([0, n], dtype=np.int32)
    for t in range(4000):
        sparse.play(p, state, row, np.array([1e3 if t // 20 % 2 else -1e3]))
        largest = max(largest, int(state.round[SIZE]))
        assert state.round[SIZE] <= min(2 * state.round[LIVE] + SLACK + n, len(state.heap))
    require_sound(p, state)
    assert 2 * n < largest <= 3 * n + SLACK


@pytest.mark.parametrize("low", [0.5, 1.0 - 2.0**-53])
def test_coordinates_a_hair_above_the_threshold_wait_for_it(low):
    """Keys are cut to the leading bits of their words; of these coordinates none can be told from the new τ."""
    d, ulp = 1000, 2.0**-52
    p, state = parameters(1e-6, 1.0, step=1.0), SparseState.start(d).dense()
    state.vector[:] = 1.0 + np.arange(d) * ulp
    state.numbers[at.MULTIPLIER_SUM] = low
    ours = SparseState.of(p, state)
    require_sound(p, ours)
    for high in (1.0 + 500 * ulp, 1.0 + 700 * ulp, 1.0 + 2000 * ulp):
        words = ours.memory.view(np.uint64)
        _dying.raise_threshold(low, high, ours.memory, words, ours.heap, np.uint64(10), ours.round, ours.numbers)
        low = ours.numbers[at.MULTIPLIER_SUM] = high
        require_sound(p, ours, drift=1e-12)  # Σw was up to 500
    assert ours.round[1:].tolist() == [0, 0, 0]


def test_sums_do_not_drift():
    rng = np.random.default_rng(0)
    d, n = 300, PERIOD - 2
    rows, p = matrix(rng, n, d, 0.02), parameters(0.5, 10.0)
    state = SparseState.start(d)
    sparse.play(p, state, rows, np.sign(csr_array(rows, shape=(n, d))[:, [0]].toarray()[:, 0] + 0.1))
    assert state.round[0] == PERIOD - 1
    threshold = state.numbers[at.MULTIPLIER_SUM]
    w = np.maximum(np.abs(state.vector) - threshold, 0)
    assert 0 < np.count_nonzero(w) < d
    assert state.numbers[at.NORM_1] + state.numbers[_dying.LOW_1] == pytest.approx(math.fsum(w), rel=1e-12)
    assert state.numbers[at.NORM_2] + state.numbers[LOW_2] == pytest.approx(math.fsum(w * w), rel=1e-12)


def test_sums_are_made_anew_in_rounds_fixed_by_t():
    p, row = parameters(0.5, 10.0), (np.ones(1), np.zeros(1, dtype=np.int32), np.array([0, 1], dtype=np.int32))
    for t, mended in ((PERIOD - 1, False), (PERIOD, True), (2 * PERIOD, True), (2 * PERIOD + 1, False)):
        state = SparseState.start(3)
        sparse.play(p, state, row, np.ones(1))
        state.round[0] = t
        wrong = state.numbers[at.NORM_1] = 7.0
        sparse.play(p, state, row, np.ones(1))
        if mended:
            require_sound(p, state)
        else:
            assert state.numbers[at.NORM_1] > wrong


def test_low_parts_are_kept():
    """Fast mathematics would make them 0: then sums would drift."""
    rng = np.random.default_rng(1)
    state = SparseState.start(100)
    sparse.play(parameters(), state, matrix(rng, 2000, 100), labels_of(rng, 2000))
    assert state.numbers[_dying.LOW_1] != 0
    assert state.numbers[LOW_2] != 0


@pytest.mark.parametrize("online", [False, True])
def test_split_games_are_whole_games_bit_for_bit(online):
    rng = np.random.default_rng(2)
    d, n = 200, 3000
    rows, labels, weights = matrix(rng, n, d), labels_of(rng, n), rng.uniform(0, 2, n)
    p = parameters(0.5, 0.01, step=0.0 if online else 0.3, intercept_bound=1.0)
    begin = SparseState.start(d)
    begin.round[0] = PERIOD - 1000  # the sums are made anew on the way
    whole, split, single = begin.copy(), begin.copy(), begin.copy()
    played = sparse.play(p, whole, rows, labels, weights=weights, record=np.arange(PERIOD), margins=True)
    assert np.array_equal(played.rounds, np.arange(PERIOD - 1000, PERIOD))
    margins, cuts = [], [0, 1, 2, 700, 999, 1000, 1001, 2500, n]
    for i, j in pairwise(cuts):
        part = rows[0], rows[1], rows[2][i : j + 1]
        margins.append(sparse.play(p, split, part, labels[i:j], weights=weights[i:j], margins=True).margins)
        split = pickle.loads(pickle.dumps(split))
    assert same_bits(whole, split)
    assert np.concatenate(margins).tobytes() == played.margins.tobytes()
    step = sparse.step("float64", "int32")
    for k in range(n):
        i, j = rows[2][k : k + 2]
        margin = step(rows[1][i:j], rows[0][i:j], labels[k], weights[k], p, *single)
        assert margin == played.margins[k]
    assert same_bits(whole, single)
    assert same_bits(whole, whole.copy())


def test_order_weights_and_dtypes():
    rng = np.random.default_rng(3)
    d, n = 50, 400
    rows, labels, p = matrix(rng, n, d, dtype=np.float32), labels_of(rng, n), parameters(0.3, 0.1)
    order = rng.integers(0, n, 900)
    taken = csr_array(rows, shape=(n, d))[order]
    plain, ordered, wide, weighted = (SparseState.start(d) for _ in range(4))
    listed = taken.data, taken.indices.astype(np.int32), taken.indptr.astype(np.int32)
    sparse.play(p, plain, listed, labels[order])
    sparse.play(p, ordered, rows, labels, order=order)
    doubles = rows[0].astype(np.float64), rows[1].astype(np.int64), rows[2].astype(np.int64)
    for part in doubles:
        part.flags.writeable = False
    sparse.play(p, wide, doubles, labels, order=order, weights=np.ones(n))
    assert same_bits(plain, ordered)
    assert same_bits(plain, wide)
    sparse.play(p, weighted, rows, labels, order=order, weights=np.zeros(n))
    assert not np.any(weighted.vector)


def test_empty_rows_are_rounds():
    p, state = parameters(intercept_bound=2.0, step=0.1), SparseState.start(3)
    rows = np.empty(0), np.empty(0, dtype=np.int32), np.zeros(5, dtype=np.int32)
    played = sparse.play(p, state, rows, np.ones(4), margins=True)
    assert state.round[0] == 5
    assert np.all(np.diff(played.margins) > 0)  # the intercept learns
    assert sparse.step("float64", "int32")(rows[1], rows[0], 1.0, 1.0, p, *state) > played.margins[-1]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_unsorted_and_duplicate_indices_are_summed(order):
    p, one, two = parameters(), SparseState.start(4), SparseState.start(4)
    values, columns = np.array([2.0, 1.0, 3.0])[order], np.array([0, 2, 2], dtype=np.int32)[order]
    messy = np.append(values, 1.0), np.append(columns, np.int32(1)), np.array([0, 3, 4], dtype=np.int32)
    tidy = np.array([2.0, 4.0, 1.0]), np.array([0, 2, 1], dtype=np.int32), np.array([0, 2, 3], dtype=np.int32)
    before = [part.copy() for part in messy]
    sparse.play(p, one, messy, np.ones(2))
    sparse.play(p, two, tidy, np.ones(2))
    assert same_bits(one, two)
    assert all(np.array_equal(a, b) for a, b in zip(messy, before, strict=True))
    untouched = one.copy()
    assert math.isnan(sparse.step("float64", "int32")(columns, values, 1.0, 1.0, p, *one))
    assert [part.tolist() for part in sparse.mend(p, one, columns, values)] == [[0, 2], [2.0, 4.0]]
    assert same_bits(one, untouched)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("index too large", "row 7 has the index 30"),
        ("index negative", "row 7 has the index -1"),
        ("nan", "row 7 holds NaN or infinity"),
        ("inf", "row 7 holds NaN or infinity"),
        ("indptr", "indptr"),
        ("indptr too long", "indptr"),
        ("data too short", "indptr"),
        ("label", "row 7"),
        ("weight", "row 7"),
        ("dtype", "float16"),
    ],
)
def test_bad_input_is_refused_before_anything_is_changed(what, words):
    rng = np.random.default_rng(4)
    d, n = 30, 20
    data, indices, indptr = matrix(rng, n, d, 0.3)
    labels, weights, p = labels_of(rng, n), np.ones(n), parameters()
    state = SparseState.start(d)
    sparse.play(p, state, (data, indices, indptr), labels)
    before, place = state.copy(), indptr[7] + 1
    if what == "index too large":
        indices[indptr[8] - 1] = 30
    elif what == "index negative":
        indices[indptr[7]] = -1
    elif what in ("nan", "inf"):
        data[place] = float(what)
    elif what == "indptr":
        indptr[7] = indptr[9]
    elif what == "indptr too long":
        indptr[-1] += 1
    elif what == "data too short":
        data = data[:-1]
    elif what == "label":
        labels[7] = 0.0
    elif what == "weight":
        weights[7] = -1.0
    else:
        data = data.astype(np.float16)
    with pytest.raises(InputError, match=words):
        sparse.play(p, state, (data, indices, indptr), labels, weights=weights)
    assert same_bits(state, before)
    if what in ("index too large", "index negative", "nan", "inf"):
        row = slice(indptr[7], indptr[8])
        assert math.isnan(sparse.step("float64", "int32")(indices[row], data[row], 1.0, 1.0, p, *state))
        with pytest.raises(InputError, match=words[5:].replace("7", "0")):
            sparse.mend(p, state, indices[row], data[row])
        assert same_bits(state, before)


def test_a_gradient_too_long_stops_before_its_row():
    rng = np.random.default_rng(5)
    d, n = 30, 20
    data, indices, indptr = matrix(rng, n, d, 0.3)
    data[indptr[7]] = 1e120
    labels, p = labels_of(rng, n), parameters(loss=3)
    state, wanted = SparseState.start(d), SparseState.start(d)
    sparse.play(p, wanted, (data, indices, indptr[:8]), labels[:7])
    with pytest.raises(InputError, match="row 7") as error:
        sparse.play(p, state, (data, indices, indptr), labels)
    assert error.value.round == 8
    assert same_bits(state, wanted)
    row = slice(indptr[7], indptr[8])
    assert math.isnan(sparse.step("float64", "int32")(indices[row], data[row], 1.0, 1.0, p, *state))
    with pytest.raises(InputError, match="longer than"):
        sparse.mend(p, state, indices[row], data[row])


def test_a_feature_a_million_times_larger_is_carried():
    rng = np.random.default_rng(6)
    d, n = 100, 5000
    data, indices, indptr = matrix(rng, n, d, 0.1)
    data[indices == 3] *= 1e6
    p = parameters(1.0, 1.0)
    state = SparseState.start(d)
    played = sparse.play(p, state, (data, indices, indptr), labels_of(rng, n), record=np.arange(1, n + 1))
    assert np.all(np.isfinite(played.trace))
    require_sound(p, state)


def test_dense_state_and_back():
    rng = np.random.default_rng(7)
    rows, p, state = matrix(rng, 500, 40), parameters(0.2, 0.1), SparseState.start(40)
    sparse.play(p, state, rows, labels_of(rng, 500))
    again = SparseState.of(p, state.dense())
    require_sound(p, again)
    assert sparse.decision(p, again)[0].tobytes() == sparse.decision(p, state)[0].tobytes()
    assert again.round[:2].tolist() == state.round[:2].tolist()


def test_a_start_does_not_touch_its_memory():
    """Ten million coordinates are 320 MB of address space; what is used of it is what rows touch."""
    code = (
        "import resource\n"
        "from longterm.linear_model.sparse import SparseState\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "state = SparseState.start(10**7)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) * (1 if sys.platform == "darwin" else 1024) < 20e6
