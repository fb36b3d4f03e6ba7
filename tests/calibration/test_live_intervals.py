"""Live intervals: late, lost and repeated outcomes, restarts, two processes' copies, forged states."""

import sqlite3

import numpy as np
import pytest

from longterm.calibration import Intervals, LiveIntervals
from longterm.errors import AlreadyToldError, DatabaseError, InputError, SkippedTokenError, UnknownTokenError


def play(live, rounds=120, seed=0):
    """Ask with up to six open rounds; tell most of them, skip some."""
    rng, waiting = np.random.default_rng(seed), []
    for t in range(rounds):
        waiting.append(str(live.ask(10.0, ["even"] if t % 2 == 0 else [])))
        if len(waiting) > 6:
            token = waiting.pop(int(rng.integers(len(waiting))))
            live.skip(token) if t % 11 == 0 else live.tell(token, 10.0 + rng.normal())
    return waiting


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_database_changes_nothing_and_survives_restarts(tmp_path, symmetric):
    """Intervals in memory and in a database that is opened again twice are the same."""
    memory = LiveIntervals(0.8, symmetric=symmetric)
    assert len(play(memory)) == 6
    play(memory, seed=1)
    for seed in (0, 1):
        with LiveIntervals.open(tmp_path / "service.db", 0.8, symmetric=symmetric) as live:
            play(live, seed=seed)
    again = LiveIntervals.open(tmp_path / "service.db", 0.8, symmetric=symmetric)
    assert len(again.in_flight) == len(memory.in_flight) == 12
    assert again.error == pytest.approx(memory.error)
    ours, theirs = again.ask(3.0, ["even", "new"]), memory.ask(3.0, ["even", "new"])
    np.testing.assert_allclose([ours.lower, ours.upper], [theirs.lower, theirs.upper], rtol=1e-12)


def test_memory_is_the_plain_object():
    live, plain = LiveIntervals(0.9), Intervals(0.9)
    for y in np.random.default_rng(2).normal(size=60):
        ours, theirs = live.ask(0.0), plain.ask(0.0)
        assert (ours.lower, ours.upper) == (theirs.lower, theirs.upper)
        live.tell(ours, y)
        plain.tell(theirs, y)
    assert live.coverage == plain.coverage
    np.testing.assert_array_equal(live.bound().upper, plain.bound().upper)


def test_two_copies_take_turns(tmp_path):
    one, two = (LiveIntervals.open(tmp_path / "service.db", name="demand") for _ in range(2))
    tokens = [live.ask(1.0, [group]).token for live, group in ((one, "a"), (two, "b"), (one, "b"))]
    for live, token in zip((two, one, two), tokens, strict=True):
        live.tell(token, 2.0)
    assert one.coverage == two.coverage == {"": 1.0, "a": 1.0, "b": 1.0}
    assert one.in_flight == ()


@pytest.mark.parametrize("stored", [True, False])
def test_tokens_count_once(tmp_path, stored):
    live = LiveIntervals.open(tmp_path / "service.db") if stored else LiveIntervals()
    told, skipped, open_ = (live.ask(0.0) for _ in range(3))
    live.tell(told, 1.0)
    live.skip(str(skipped))
    with pytest.raises(AlreadyToldError):
        live.tell(str(told), 1.0)
    with pytest.raises(SkippedTokenError):
        live.tell(skipped.token, 1.0)
    for unknown in ("0123456789ab-1", str(told).replace("-1", "-9"), "nonsense", 3):
        with pytest.raises(UnknownTokenError):
            live.tell(unknown, 1.0)
    for outcome in (float("nan"), "text"):
        with pytest.raises(InputError):
            live.tell(open_, outcome)
    with pytest.raises(InputError, match="list of names"):
        live.ask(0.0, "weekend")
    assert live.in_flight == (open_.token,)


@pytest.mark.parametrize("state", [b"", b"[]", b'[["a", "a"], []]', b"[[], [[0.1], [], [], []]]", b"\xff"])
def test_a_forged_state_is_refused(tmp_path, state):
    LiveIntervals.open(tmp_path / "service.db").close()
    with sqlite3.connect(tmp_path / "service.db") as connection:
        connection.execute("UPDATE longterm_objects SET state = ?", (state,))
    connection.close()
    with pytest.raises(DatabaseError, match="is inconsistent"):
        LiveIntervals.open(tmp_path / "service.db")


def test_another_level_is_refused(tmp_path):
    LiveIntervals.open(tmp_path / "service.db", 0.9).close()
    with pytest.raises(DatabaseError):
        LiveIntervals.open(tmp_path / "service.db", 0.8)
