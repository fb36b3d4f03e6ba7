"""Several replicas of one learner: calls happen in one order, and every replica sees them."""

import json
import multiprocessing
import os
import shutil
import threading
import time

import numpy as np
import pytest

from clocks import ManualClock
from live_plan import PROBLEM, fresh, image, learner, position, start, step, undisturbed
from longterm import LiveLearner, Token
from longterm.errors import (
    AlreadyToldError,
    DatabaseError,
    ExpiredTokenError,
    InputError,
    SkippedTokenError,
    UnknownTokenError,
    WindowFullError,
)
from longterm.storage import rounds

TARGET = [np.array([0.3, -0.2])]


def test_replicas_that_take_turns_are_one_learner(tmp_path):
    expected = undisturbed(200)
    with start(tmp_path) as one, start(tmp_path) as other, start(tmp_path) as third:
        for done in range(200):
            live = (one, other, third)[np.random.default_rng(done).integers(3)]
            step(live)
            assert image(live) == expected[done + 1]
        assert image(one) == image(other) == image(third)


@pytest.mark.parametrize("behind", [1, 300, rounds.SPARED])
def test_a_replica_that_is_behind_catches_up(tmp_path, behind):
    with start(tmp_path) as one, start(tmp_path) as other:
        kept = one.ask()
        assert other.in_flight == (kept,)
        for _ in range(behind):
            one.tell(one.ask(), loss_parameters=TARGET)
            one.ask()
            one.skip(one.in_flight[-1])
        assert image(other) == image(one)
        other.ask()
        assert image(one) == image(other)


def test_a_token_of_one_replica_is_told_to_another(tmp_path):
    with start(tmp_path) as one, start(tmp_path) as other:
        token = one.ask()
        other.tell(str(token), loss_parameters=TARGET)
        with pytest.raises(AlreadyToldError):
            one.tell(token, loss_parameters=TARGET)
        one.skip(one.ask())
        with pytest.raises(SkippedTokenError):
            other.skip(Token(2, None, one._replica.epoch))
        assert one.state.told == other.state.told == 1


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_key_opens_one_round(tmp_path, replicas):
    with start(tmp_path) as one, start(tmp_path) as other:
        first = one.ask(key="request 1")
        second = (one if replicas == 1 else other).ask(key="request 1")
        assert first == second
        np.testing.assert_array_equal(first.x, second.x)
        one.tell(first, loss_parameters=TARGET)
        again = other.ask(key="request 1")
        assert again == first
        np.testing.assert_array_equal(again.x, first.x)
        assert other.ask(key="request 2") != first
        assert one.state.asked == 2


@pytest.mark.parametrize("stored", [False, True])
def test_a_key_is_remembered_for_a_time_and_while_its_round_is_open(tmp_path, stored):
    clock = ManualClock()
    options = {"max_in_flight": 100, "expire_after": 10**6, "remember": 3600.0, "clock": clock}
    live = start(tmp_path, **options) if stored else fresh(**options)
    first, open_one = live.ask(key="a"), live.ask(key="b")
    live.skip(first)
    for _ in range(1400):  # no number of requests makes it forget
        live.skip(live.ask())
    assert live.ask(key="a") == first
    clock.advance(3599.0)
    assert live.ask(key="a") == first
    clock.advance(2.0)
    again = live.ask(key="a")
    assert again.number == live.state.asked
    assert live.ask(key="a") == again
    assert live.ask(key="b") == open_one
    live.close()


def test_forgotten_keys_are_deleted(tmp_path):
    clock = ManualClock()
    with start(tmp_path, remember=60.0, clock=clock) as live:
        for number in range(200):
            live.skip(live.ask(key=str(number)))
            clock.advance(60.0)
        ((rows,),) = live._replica.database.read("SELECT COUNT(*) FROM longterm_keys")
    assert rows <= 1 + rounds.SET_BACK / 60.0 + rounds.PRUNE_EVERY


@pytest.mark.parametrize("key", ["", "x" * 201, 3, "a\0b"])
def test_bad_keys(key):
    with pytest.raises(InputError, match="key"):
        fresh().ask(key=key)


def test_rounds_expire_by_age_in_rounds_in_all_replicas(tmp_path):
    with start(tmp_path) as one, start(tmp_path) as other:
        token = one.ask()
        for _ in range(9):
            other.skip(other.ask())
        one.tell(token, loss_parameters=TARGET)
        token = one.ask()
        for _ in range(10):
            other.skip(other.ask())
        with pytest.raises(ExpiredTokenError):
            one.tell(token, loss_parameters=TARGET)
        assert one.state.expired == other.state.expired == 1


def test_rounds_expire_by_age_in_seconds(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    with start(tmp_path, max_age=60.0) as one, start(tmp_path, max_age=60.0) as other:
        old = one.ask()
        now[0] += 59
        other.skip(other.ask())
        assert one.state.expired == 0
        now[0] -= 500  # a clock that is set back expires nothing
        other.skip(other.ask())
        assert one.state.expired == 0
        now[0] += 502
        other.ask()
        assert one.state.expired == 1
        with pytest.raises(ExpiredTokenError, match="max_age"):
            other.tell(str(old), loss_parameters=TARGET)


def test_a_full_window_is_full_for_all_replicas(tmp_path):
    with start(tmp_path) as one, start(tmp_path) as other:
        tokens = [(one, other)[k % 2].ask() for k in range(6)]
        for live in (one, other):
            with pytest.raises(WindowFullError):
                live.ask()
        one.skip(tokens[3])
        other.ask()


def test_the_database_stays_small(tmp_path):
    with start(tmp_path) as live:
        live.ask()
        for _ in range(2000):
            live.skip(live.ask())
        (rows,) = live._replica.database.read("SELECT COUNT(*) FROM longterm_rounds")[0]
    assert rows <= rounds.SPARED + rounds.PRUNE_EVERY + 2


def test_one_file_holds_many_objects(tmp_path):
    with start(tmp_path, name="first") as one, start(tmp_path, name="second") as other:
        one.ask()
        assert (one.state.asked, other.state.asked) == (1, 0)
    with pytest.raises(InputError, match="name"):
        start(tmp_path, name="")


def test_another_learner_is_refused_in_words(tmp_path):
    start(tmp_path).close()
    other = type(learner()).for_problem(PROBLEM, steps="strongly convex", beta=0.6)
    with pytest.raises(DatabaseError, match=r"schedule\.beta was 0\.5, is 0\.6") as refused:
        LiveLearner.open(tmp_path / "service.db", other, PROBLEM)
    assert refused.value.reason == "another definition"


# --- epochs ---------------------------------------------------------------------------------------------------


def test_rounds_lost_with_a_restored_backup_stay_unknown(tmp_path):
    with start(tmp_path) as live:
        known = live.ask()
        live.backup(tmp_path / "copy.db")
        lost = live.ask()
    for name in ("service.db-wal", "service.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "copy.db", tmp_path / "service.db")
    with start(tmp_path) as live:
        again = live.ask()
        assert again.number == lost.number
        for token in (lost, str(lost)):
            with pytest.raises(UnknownTokenError, match="another epoch"):
                live.tell(token, loss_parameters=TARGET)
        live.tell(str(known), loss_parameters=TARGET)
        live.tell(again, loss_parameters=TARGET)
        with pytest.raises(UnknownTokenError, match="another epoch"):
            live.tell(lost, loss_parameters=TARGET)


def test_a_round_stays_known_over_any_number_of_processes(tmp_path):
    first = None
    for _ in range(70):
        with LiveLearner.open(tmp_path / "service.db", learner(), PROBLEM, durability="relaxed") as live:
            first = first or str(live.ask())
            live.skip(live.ask())
    with LiveLearner.open(tmp_path / "service.db", learner(), PROBLEM) as live:
        live.tell(first, loss_parameters=TARGET)


def test_a_token_travels_as_text():
    live = fresh()
    token = live.ask()
    text = json.loads(json.dumps({"token": str(token)}))["token"]
    assert len(text) <= 20
    assert Token.parse(text) == token
    live.tell(text, loss_parameters=TARGET)
    with pytest.raises(AlreadyToldError):
        live.skip(token)


@pytest.mark.parametrize(
    "text",
    ["", "1", "0123456789ab", "0123456789ab-", "0123456789ab-0", "0123456789AB-1", "0123456789ab-1 ", "x" * 10**6],
)
def test_what_is_not_the_text_of_a_token(text):
    with pytest.raises(UnknownTokenError, match="not the text of a token") as refused:
        Token.parse(text)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("part", [np.zeros(3), None, 1.0, True, "1", [1]])
def test_a_token_of_other_things_is_none(part):
    live = fresh()
    token = live.ask()
    for made in (Token(token.number, None, part), Token(part, None, token.epoch)):
        with pytest.raises(UnknownTokenError):
            live.tell(made, loss_parameters=TARGET)
    live.tell(token, loss_parameters=TARGET)


def test_a_new_learner_does_not_know_the_old_ones_tokens():
    one, other = fresh(), fresh()
    token = one.ask()
    other.ask()
    with pytest.raises(UnknownTokenError, match="another epoch"):
        other.tell(token, loss_parameters=TARGET)


# --- threads and processes ------------------------------------------------------------------------------------


def work(folder, count, answers):
    told = []
    with start(folder, max_in_flight=100, expire_after=10**6) as live:
        for _ in range(count):
            token = live.ask()
            live.tell(token, loss_parameters=TARGET)
            told.append(token.number)
    answers.put(told)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX, if another test has imported it
@pytest.mark.parametrize("kind", ["threads", "spawn", pytest.param("fork", marks=pytest.mark.cross)])
def test_many_replicas_at_once_lose_nothing(tmp_path, kind):
    count, workers = 60, 4
    start(tmp_path).close()
    if kind == "fork" and not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    context = multiprocessing.get_context("spawn" if kind == "threads" else kind)
    answers = context.Queue()
    make = threading.Thread if kind == "threads" else context.Process
    running = [make(target=work, args=(tmp_path, count, answers)) for _ in range(workers)]
    for one in running:
        one.start()
    told = sorted(number for _ in running for number in answers.get(timeout=120))
    for one in running:
        one.join()
    assert told == list(range(1, workers * count + 1))
    with start(tmp_path) as live:
        assert (live.state.asked, live.state.told, live.state.in_flight) == (workers * count, workers * count, 0)
        assert live.state.round == workers * count + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX, if another test has imported it
def test_parent_and_child_are_replicas(tmp_path):
    with start(tmp_path) as live:
        token = live.ask()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                live.tell(token, loss_parameters=TARGET)
                other = live.ask()
                status = 0 if other.epoch != token.epoch and other.number == 2 else 1
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert (live.state.asked, live.state.told) == (2, 1)
        live.ask()
    with start(tmp_path) as live:
        assert position(live) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX, if another test has imported it
def test_a_fork_waits_for_calls_of_other_threads(tmp_path):
    with start(tmp_path) as live:
        lock = live._replica.guard.lock
        lock.acquire()
        timer = threading.Timer(0.1, lock.release)
        timer.start()
        begin = time.monotonic()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                live.ask()
                status = 0
            finally:
                os._exit(status)
        assert time.monotonic() - begin >= 0.05
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert live.state.asked == 1
        timer.join()
