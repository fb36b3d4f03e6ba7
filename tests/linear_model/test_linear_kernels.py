"""Compiled kernels: from the same state one round is the reference learner's; split, refused and sparse games."""

import numpy as np
import pytest
import scipy.sparse

from linear_games import KINDS, LOSSES, draw_row, draw_states, make_game
from longterm import InputError
from longterm.linear_model import _layout as at
from longterm.linear_model._layout import Parameters, State
from longterm.linear_model._losses import CODES, value_and_slope
from longterm.linear_model.play import decision, play

RULES = ("aogd", "aftrl", "penalised_ftrl")
each_rule = pytest.mark.parametrize("rule", RULES)


def assert_same_round(game, state, numbers, rng, dtype):
    """One round of both, to 1e-10."""
    row, label, weight = draw_row(game, rng, dtype)
    p = game.parameters.as_array()
    following, seen = game.reference_round(state, row, label, weight)
    close = {"rtol": 1e-10, "atol": 1e-10}
    x, intercept = decision(game.rule, p, numbers)
    played = np.append(x, intercept) if game.intercept else x
    np.testing.assert_allclose(played, game.learner.ask(state), **close)
    margin = game.features(row) @ game.learner.ask(state)
    record, before = np.array([int(state.round)]), numbers.numbers[:4].copy()
    shown = play(
        game.rule, p, numbers, row[None], np.array([label]), weights=np.array([weight]), record=record, margins=True
    )
    x, intercept = decision(game.rule, p, numbers)
    played = np.append(x, intercept) if game.intercept else x
    np.testing.assert_allclose(played, following.x, **close)
    np.testing.assert_allclose(numbers.numbers[at.MULTIPLIER], np.squeeze(following.multiplier), **close)
    hard = max(seen.constraint, 0)
    np.testing.assert_allclose(shown.trace[0, :4] - before, [seen.loss, seen.constraint, hard, hard**2], **close)
    np.testing.assert_allclose(shown.margins, [margin], **close)
    assert numbers.round[0] == following.round
    return following


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_round_is_the_reference_learners(kind, loss, intercept, dtype):
    rng = np.random.default_rng([KINDS.index(kind), LOSSES.index(loss), intercept, dtype == np.float32])
    for _ in range(40):
        game = make_game(kind, loss, rng, intercept=intercept)
        assert_same_round(game, *draw_states(game, rng), rng, dtype)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_game_from_the_first_round_is_the_reference_learners(kind, intercept):
    rng = np.random.default_rng(KINDS.index(kind))
    game = make_game(kind, "squared", rng, intercept=intercept)
    state, numbers = game.learner.init(), State.start(game.budget.dimension)
    for _ in range(50):
        state = assert_same_round(game, state, numbers, rng, np.float64)


def game_of(rule, rows, *, loss="logistic", online=False, **changes):
    """Parameters and a fresh state for these rows."""
    steps = {"theta_0": 2.0, "weight_0": 3.0} if online else {"step": 0.3, "theta_0": 2.0, "weight_0": 3.0}
    p = Parameters(1.5, 1.0, 1.0, 1.0, loss=CODES[loss], loss_parameter=0.4, **{**steps, **changes})
    return p.as_array(), State.start(rows.shape[1])


def some_rows(n=200, d=13, dtype=np.float64):
    rng = np.random.default_rng(n * d)
    rows = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    return rows.astype(dtype), np.sign(rows[:, 0] - rows[:, 1] + 0.1), rng.uniform(0, 2, n)


def triple(rows):
    csr = scipy.sparse.csr_matrix(rows)
    return csr.data, csr.indices, csr.indptr


def bits(state):
    return [part.tobytes() for part in state]


@each_rule
@pytest.mark.parametrize("online", [False, True])
def test_split_is_whole_bit_for_bit(rule, online):
    rows, labels, weights = some_rows()
    order, record = np.random.default_rng(0).integers(len(rows), size=500), np.array([1, 77, 78, 300, 500])
    p, whole = game_of(rule, rows, online=online, intercept_bound=0.5)
    shown = play(rule, p, whole, rows, labels, order=order, weights=weights, record=record, margins=True)
    _, parts = game_of(rule, rows, online=online)
    pieces = [
        play(rule, p, parts, rows, labels, order=order[a:b], weights=weights, record=record, margins=True)
        for a, b in ((0, 1), (1, 77), (77, 78), (78, 450), (450, 500))
    ]
    assert bits(parts) == bits(whole)
    for name in ("rounds", "trace", "margins"):
        np.testing.assert_array_equal(np.concatenate([getattr(piece, name) for piece in pieces]), getattr(shown, name))
    assert whole.numbers[at.HARD] > 0


@each_rule
@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize(("dtype", "integers"), [(np.float64, np.int32), (np.float32, np.int64)])
def test_sparse_rows_are_dense_rows(rule, online, dtype, integers):
    rows, labels, weights = some_rows(dtype=dtype)
    data, *whole = triple(rows)
    csr = (data, *(numbers.astype(integers) for numbers in whole))
    order = np.random.default_rng(1).permutation(len(rows))
    p, dense = game_of(rule, rows, online=online, intercept_bound=0.5)
    _, sparse = game_of(rule, rows)
    one = play(rule, p, dense, rows, labels, order=order, weights=weights, margins=True)
    other = play(rule, p, sparse, csr, labels, order=order, weights=weights, margins=True)
    np.testing.assert_allclose(one.margins, other.margins, atol=1e-12)
    for mine, theirs in zip(dense, sparse, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)


@each_rule
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("form", ["dense", "float32", "sparse", "one row"])
def test_bad_rows_are_refused_by_number_with_the_state_as_before(rule, bad, form):
    rows, labels, _ = some_rows()
    p, state = game_of(rule, rows, loss="hinge")
    play(rule, p, state, rows, labels)
    before = bits(state)
    rows[123] = 0.0
    rows[123, 5], labels[123] = bad, -1.0 if bad == -np.inf else 1.0
    given = rows
    if form == "float32":
        with np.errstate(over="ignore"):
            given = rows.astype(np.float32)
    if form == "sparse":
        given = triple(rows)
    row = 123
    if form == "one row":
        row, given, labels = 0, rows[123:124], labels[123:124]
    with pytest.raises(InputError, match=f"row {row} ") as error:
        play(rule, p, state, given, labels)
    assert error.value.round == 201 + row
    assert bits(state) == before


@each_rule
def test_longer_gradients_than_declared_are_refused(rule):
    rows, labels, _ = some_rows()
    p, state = game_of(rule, rows, loss="hinge", gradient_bound=3.0)
    where = int(np.argmax(np.linalg.norm(rows, axis=1) > 3))
    with pytest.raises(InputError, match=r"longer than 3\. Scale"):
        play(rule, p, state, rows, labels)
    assert where > 0
    play(rule, p, state, rows[:where], labels[:where])


@each_rule
def test_labels_weights_orders_and_shapes_are_checked(rule):
    rows, labels, weights = some_rows()
    p, state = game_of(rule, rows)
    cases = {
        "−1 and": {"labels": np.where(np.arange(200) == 7, 0.0, labels)},
        "at least 0": {"weights": np.where(np.arange(200) == 7, -1.0, weights)},
        "rows 0 to 199": {"order": np.array([0, 200])},
        "one of each": {"labels": labels[:-1]},
        "C-ordered": {"rows": np.asfortranarray(rows)},
        "float32 or float64": {"rows": rows.astype(np.int64)},
        "of the length": {"rows": np.ascontiguousarray(rows[:, :-1])},
        "columns 0 to 13": {"rows": triple(np.append(rows, np.ones((200, 1)), axis=1))},
        "count up": {"rows": (*triple(rows)[:2], triple(rows)[2][::-1].copy())},
        "both as int32": {"rows": (*triple(rows)[:2], triple(rows)[2].astype(np.int64))},
        "in order": {"record": np.array([3, 3])},
    }
    for words, change in cases.items():
        with pytest.raises(InputError, match=words):
            play(rule, p, state, **{"rows": rows, "labels": labels, **change})
    p, _ = game_of(rule, rows, loss="squared")
    with pytest.raises(InputError, match="finite"):
        play(rule, p, state, rows, np.where(np.arange(200) == 7, np.inf, labels))
    assert bits(state) == bits(State.start(13))


@pytest.mark.parametrize("margin", [1e300, -1e300, 750.0, -750.0, 0.0])
def test_losses_do_not_overflow(margin):
    for y in (-1.0, 1.0):
        value, slope = value_and_slope(CODES["logistic"], 0.0, margin, y)
        assert value == pytest.approx(np.logaddexp(0, -y * margin))
        assert slope == pytest.approx(-y * np.exp(-np.logaddexp(0, y * margin)))
        for name in ("hinge", "huber", "quantile"):
            assert all(np.isfinite(value_and_slope(CODES[name], 0.4, margin, y)))


@each_rule
def test_very_large_features_do_not_overflow_where_constants_are_found_online(rule):
    rows, labels, _ = some_rows()
    rows[:, 3] *= 1e30
    p, state = game_of(rule, rows, online=True)
    play(rule, p, state, rows, labels)
    assert all(np.all(np.isfinite(part)) for part in state)
    x, _ = decision(rule, p, state)
    assert np.linalg.norm(x) <= 1 + 1e-12
