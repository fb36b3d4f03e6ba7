"""A learner for each key: rows in, decisions out, bytes between calls; late, repeated, lost and hostile rows."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longterm import AOGD, InputError, LiveLearner, observe
from longterm.errors import LongtermError
from longterm.learners import AFTRL
from longterm.play import KeyedLearner
from longterm.problems import doubly_stochastic, two_dimensional

PROBLEM = two_dimensional()
RULE = AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5)


def feedback(x, row):
    return observe(PROBLEM, x, [np.array([row["a"], row["b"]])])


KEYED = KeyedLearner(RULE, feedback, outcome="a", remember=20)


def asks(name, order):
    return {"request": name, "order": order, "a": None, "b": None}


def tells(name, order, a=0.5, b=1.0):
    return {"request": name, "order": order, "a": a, "b": b}


def rows_of(steps):
    """Return rows from numbers: ask for a new request, or tell one of those that were asked for."""
    rows, asked = [], 0
    for order, (kind, which, number) in enumerate(steps):
        if kind or not asked:
            rows.append(asks(f"r{asked}", order))
            asked += 1
        else:
            rows.append(tells(f"r{which % asked}", order, number, 1 - number))
    return rows


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.floats(0, 1)), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.lists(st.integers(1, 59), max_size=6), st.integers(0, 5))
def test_calls_of_any_size_and_repeated_rows_change_nothing(steps, cuts, repeat):
    """It decides as a live learner does that is asked and told in the same order."""
    rows, live, tokens, wanted = rows_of(steps), LiveLearner(RULE, PROBLEM), {}, []
    keyed = KeyedLearner(RULE, feedback, outcome="a", remember=60)
    for row in rows:
        name = row["request"]
        if row["a"] is None:
            number, tokens[name] = live.state.round, live.ask()
            wanted.append((name, number, tuple(tokens[name].x.tolist())))
        elif tokens.get(name) is not None:
            live.tell(tokens[name], loss_parameters=[np.array([row["a"], row["b"]])])
            tokens[name] = None
    whole, decisions = keyed.play(None, rows)
    assert [one[:3] for one in decisions] == wanted
    state, found, edges = None, [], sorted({0, *(cut for cut in cuts if cut < len(rows)), len(rows)})
    for start, stop in pairwise(edges):
        part = rows[start:stop]
        state, made = keyed.play(state, part[::-1])  # engines shuffle the rows of a call
        found += made
    assert (state, [one[:3] for one in found]) == (whole, wanted)
    again, made = keyed.play(state, rows[: repeat + 1])  # delivered again
    assert [one[:3] for one in made] == [
        one for one in wanted if one[0] in {row["request"] for row in rows[: repeat + 1] if row["a"] is None}
    ]
    assert keyed.play(again, [asks("next", 99)])[1][0][1:3] == keyed.play(state, [asks("next", 99)])[1][0][1:3]


def test_the_bytes_of_a_key():
    """An A-OGD learner of two numbers: 32 bytes of arrays, 22 of header, counter and brackets."""
    state, _ = KEYED.play(None, [])
    assert len(state) == 12 + 32 + 8 + 2
    assert KEYED.play(state, [asks("r", 1)])[1][0].round == 1
    for number in range(200):
        state, _ = KEYED.play(
            state, [asks(f"request-{number}", 2 * number), tells(f"request-{number}", 2 * number + 1)]
        )
    assert len(state) < 12 + 32 + 8 + 2 + 20 * (16 + 30)  # bounded by `remember`


def test_rows_without_effect_are_counted_and_forgotten_requests_take_no_outcome():
    state, _ = KEYED.play(None, [asks("old", 0)])
    state, _ = KEYED.play(state, [asks(f"r{number}", number + 1) for number in range(20)])
    state, (decision,) = KEYED.play(
        state, [tells("old", 30), tells("never", 31), tells("r3", 32), tells("r3", 33), asks("new", 34)]
    )
    assert (decision.round, decision.ignored) == (2, 3)  # only r3 was learned, once
    state, (again,) = KEYED.play(state, [asks("r5", 35)])
    assert (again.round, again.ignored) == (1, 4)


@pytest.mark.parametrize("empty", [None, np.nan, np.float64("nan")])
def test_an_empty_outcome_asks(empty):
    assert len(KEYED.play(None, [asks("r", 1) | {"a": empty}])[1]) == 1


def test_a_bad_row_changes_nothing_and_names_its_request():
    state, _ = KEYED.play(None, [asks("r1", 1), asks("r2", 2)])
    for bad in (tells("r2", 4, np.inf), tells("r2", 4, 1e200), tells("r2", 4, "text")):
        with pytest.raises((LongtermError, ValueError, TypeError, np.exceptions.DTypePromotionError)) as error:
            KEYED.play(state, [tells("r1", 3), bad])
        assert "request 'r2'" in error.value.__notes__[0]
    assert KEYED.play(state, [asks("r3", 5)])[1][0].round == 1
    for row in ({"order": 1, "a": None}, {"request": "r", "a": None}, {"request": None, "order": 1}):
        with pytest.raises(InputError, match="is empty or missing in a row"):
            KEYED.play(state, [row])


def test_states_of_others_are_refused():
    state, _ = KEYED.play(None, [asks("r1", 1)])
    for place in range(len(state)):
        damaged = bytearray(state)
        damaged[place] ^= 1
        with pytest.raises(InputError, match=r"state: (is damaged|belongs to another learner)"):
            KEYED.play(bytes(damaged), [])
    for length in (0, 5, 11, 30, len(state) - 1):
        with pytest.raises(InputError, match="state: is damaged"):
            KEYED.play(state[:length], [])
    for other in (
        AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.6),
        AFTRL.for_problem(PROBLEM),
        AOGD.for_problem(doubly_stochastic(2)),
    ):
        with pytest.raises(InputError, match="belongs to another learner"):
            KeyedLearner(other, feedback, outcome="a").play(state, [])


def test_it_is_sent_to_workers():
    state, _ = KEYED.play(None, [asks("r1", 1), tells("r1", 2)])
    there = pickle.loads(pickle.dumps(KEYED))
    assert there.play(state, [asks("r2", 3)]) == KEYED.play(state, [asks("r2", 3)])


def test_bad_arguments_are_refused():
    for learner, match in (
        (AOGD, "is the class AOGD"),
        (AOGD.for_problem(PROBLEM, steps="strongly convex", beta=np.array([0.5, 0.6])), "has a grid"),
    ):
        with pytest.raises(InputError, match=match):
            KeyedLearner(learner, feedback)
    with pytest.raises(InputError, match="feedback: is not a function"):
        KeyedLearner(RULE, None)
    with pytest.raises(InputError, match="remember"):
        KeyedLearner(RULE, feedback, remember=0)
