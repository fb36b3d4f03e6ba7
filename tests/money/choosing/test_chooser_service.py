"""Choosers in a service: databases, replicas, epochs, interrupts."""

import os
import random
import signal
import sqlite3
import threading
from typing import Any

import numpy as np
import pytest

from chooser_plan import image, next_call, position
from longterm.errors import AlreadyToldError, DatabaseError, InputError, InUseError, UnknownTokenError, WindowFullError
from longterm.money import (
    EXP3IX,
    Budget,
    Chooser,
    EntropicDual,
    HedgeDual,
    InverseGapWeighting,
    LinearUCB,
    PrimalDual,
    RidgeRegressor,
    TableRegressor,
    ThompsonSampling,
)
from longterm.money.choosing import chooser_copy
from longterm.storage import rounds
from longterm.storage.database import Database
from longterm.storage.packing import pack, unpack
from longterm.storage.sqlite import SQLiteEngine
from timer_signals import Alarm


def rules():
    budget, horizon = Budget(30.0, 1.0), 200
    return {
        "thompson": PrimalDual(
            ThompsonSampling(3, 2, exploration=1.0), EntropicDual(0.2, step=0.05), budget, horizon, replan=True
        ),
        "ucb": PrimalDual(LinearUCB(3, 2), HedgeDual(), budget, horizon),
        "exp3": PrimalDual(EXP3IX(3), HedgeDual(), budget, horizon),
        "ridge": PrimalDual(InverseGapWeighting(3, RidgeRegressor(2)), HedgeDual(), budget, horizon),
        "cells": PrimalDual(InverseGapWeighting(3, TableRegressor(2)), HedgeDual(), budget, horizon),
    }


def context(name, t):
    return {"exp3": [], "cells": [t % 2]}.get(name, [1.0, np.sin(t)])


def step(chooser, name, t):
    """One request with its outcome in one of five ways, the outcomes of others later: everything a service does."""
    choice = chooser.act(context(name, t), costs=[0.0, 0.2, 0.5], bounds=[0.1, 0.3, 0.6])
    if choice.action is not None:
        reward, cost = [0.2, 0.5, 0.8][choice.action], [0.05, 0.2, 0.5][choice.action]
        if t % 5 == 0:
            chooser.settle(choice, reward, cost)
        elif t % 5 == 1:
            chooser.settle(choice, cost=cost)
        elif t % 5 == 2:
            chooser.settle(choice, rewards=[0.2, 0.5, 0.8], costs=[0.05, 0.2, 0.5])
        elif t % 5 == 3:
            chooser.skip(choice)
    if t % 7 == 6:
        for open_choice in list(chooser.pending.values())[:2]:
            chooser.settle(open_choice, reward=0.5)
    if t == 20:
        chooser.teach(context(name, t), [0.1, 0.2, 0.3], [0.0, 0.2, 0.5])
    return choice.action


def flat(value):
    if hasattr(value, "_asdict"):
        return [x for part in value for x in flat(part)]
    return [np.asarray(value)]


def same(one, other):
    for x, y in zip(flat(one.state), flat(other.state), strict=True):
        np.testing.assert_array_equal(x, y)
    assert list(one.pending) == list(other.pending)


def opened(folder, rule, **options):
    return Chooser.open(folder / "service.db", rule, durability="relaxed", **options)


@pytest.mark.parametrize("name", list(rules()))
def test_a_chooser_goes_on_bit_for_bit_after_its_process_died(name, tmp_path):
    whole = Chooser(rules()[name], seed=3)
    straight = [step(whole, name, t) for t in range(90)]
    actions = []
    chooser = opened(tmp_path, rules()[name], seed=3)
    for t in range(90):
        if t in (1, 15, 31, 60, 75):
            chooser.close()
            chooser = opened(tmp_path, rules()[name])
        actions.append(step(chooser, name, t))
    assert actions == straight
    same(whole, chooser)
    chooser.close()
    with opened(tmp_path, rules()[name]) as again:
        same(whole, again)


@pytest.mark.parametrize("name", list(rules()))
def test_replicas_share_one_budget(name, tmp_path):
    whole, dice = Chooser(rules()[name], seed=3), random.Random(1)
    with opened(tmp_path, rules()[name], seed=3) as one, opened(tmp_path, rules()[name]) as other:
        for t in range(150):
            assert step(dice.choice([one, other]), name, t) == step(whole, name, t)
        same(whole, one)
        same(whole, other)
        assert one.committed[0] <= 30.0


def test_a_replica_that_is_far_behind_catches_up(tmp_path):
    rule = rules()["thompson"]
    with opened(tmp_path, rule, seed=3) as one, opened(tmp_path, rule) as other:
        for t in range(100):
            step(one, "thompson", t)
        same(one, other)
        step(one, "thompson", 100)
        same(one, other)


def test_a_key_is_answered_once(tmp_path):
    rule = rules()["thompson"]
    for one, other in (
        (Chooser(rule),) * 2,
        (opened(tmp_path, rule), opened(tmp_path, rule)),
    ):
        first = one.act([1.0, 0.0], costs=[0.0, 0.2, 0.5], key="a")
        one.settle(first, reward=0.5)
        again = other.act([1.0, 0.0], costs=[0.0, 0.2, 0.5], key="a")
        assert (again.number, again.action, str(again)) == (first.number, first.action, str(first))
        np.testing.assert_array_equal(again.probabilities, first.probabilities)
        assert other.act([1.0, 0.0], costs=[0.0, 0.2, 0.5], key="b").number == 2
        one.close()
        other.close()


def test_a_damaged_choice_with_a_key_is_refused(tmp_path):
    with opened(tmp_path, rules()["thompson"]) as chooser:
        chooser.settle(chooser.act([1.0, 0.0], costs=[0.0, 0.2, 0.5], key="a"), reward=0.5)
        chooser._replica.database.write([("UPDATE longterm_keys SET content = ?", (b"",))])
        with pytest.raises(DatabaseError, match="corrupted"):
            chooser.act([1.0, 0.0], costs=[0.0, 0.2, 0.5], key="a")
        assert chooser.act([1.0, 0.0], costs=[0.0, 0.2, 0.5]).number == 2


def test_a_refused_request_is_answered_once(tmp_path):
    rule = PrimalDual(EXP3IX(2), HedgeDual(), Budget(1.0, 1.0), 10)
    with opened(tmp_path, rule) as chooser:
        chooser.settle(chooser.act(costs=[1.0, 1.0]), reward=1.0)
        first = chooser.act(costs=[1.0, 1.0], key="a")
        assert first.action is None
        assert chooser.act(costs=[1.0, 1.0], key="a").number == first.number
        with pytest.raises(AlreadyToldError):
            chooser.settle(first, reward=1.0)


def test_choices_lost_with_a_restored_backup_stay_unknown(tmp_path):
    rule = rules()["thompson"]
    with opened(tmp_path, rule, seed=1) as chooser:
        known = chooser.act([1.0, 0.0], costs=[0.0, 0.2, 0.5])
        chooser.backup(tmp_path / "copy.db")
        lost = chooser.act([1.0, 0.0], costs=[0.0, 0.2, 0.5])
    with Chooser.open(tmp_path / "copy.db", rule) as other:
        fresh = other.act([1.0, 0.0], costs=[0.0, 0.2, 0.5])
        assert (fresh.number, lost.number) == (2, 2)
        with pytest.raises(UnknownTokenError, match="another epoch"):
            other.settle(lost, reward=1.0)
        other.settle(str(known), reward=1.0)
        other.settle(fresh, reward=1.0)


def test_a_choice_stays_known_over_any_number_of_processes(tmp_path):
    rule, first = rules()["thompson"], None
    for _ in range(70):
        with opened(tmp_path, rule) as chooser:
            choice = chooser.act([1.0, 0.0], costs=[0.0, 0.2, 0.5])
            first = first or str(choice)
    with opened(tmp_path, rule) as chooser:
        assert chooser.pending
        chooser.settle(first, reward=1.0, cost=0.1)


def test_another_rule_is_refused_in_words(tmp_path):
    rule = rules()["exp3"]
    opened(tmp_path, rule).close()
    other = PrimalDual(EXP3IX(3), HedgeDual(), Budget(30.0, 1.0), 300)
    with pytest.raises(DatabaseError, match=r"rule\.horizon was 200, is 300"):
        opened(tmp_path, other)


@pytest.mark.parametrize("call", ["act", "settle", "skip"])
def test_a_write_that_fails_changes_nothing(call, tmp_path, monkeypatch):
    rule = rules()["thompson"]
    chooser, twin = opened(tmp_path, rule, seed=5), Chooser(rule, seed=5)
    for made in (chooser, twin):
        for t in range(12):
            step(made, "thompson", t)
    one = next(iter(chooser.pending.values()))
    calls = {
        "act": lambda: chooser.act([1.0, 0.0], costs=[0.0, 0.2, 0.5]),
        "settle": lambda: chooser.settle(one, reward=0.5),
        "skip": lambda: chooser.skip(one),
    }

    def fail(self, statements):
        for sql, arguments in statements[:-1]:
            self.engine.execute(sql, arguments)
        raise sqlite3.OperationalError("database or disk is full")

    execute = SQLiteEngine.execute

    def fail_alone(self, sql, arguments=()):
        if self.connection.in_transaction or sql.startswith(("SELECT", "BEGIN")):
            return execute(self, sql, arguments)
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write_locked", fail)
        patch.setattr(SQLiteEngine, "execute", fail_alone)  # for a call of one statement
        with pytest.raises(DatabaseError, match="full"):
            calls[call]()
    same(chooser, twin)
    assert [step(chooser, "thompson", t) for t in range(12, 40)] == [step(twin, "thompson", t) for t in range(12, 40)]
    same(chooser, twin)
    chooser.close()
    with opened(tmp_path, rule) as again:
        same(again, twin)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timer signals are POSIX")
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
@pytest.mark.filterwarnings("ignore::longterm.errors.HorizonWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
def test_interrupted_hundreds_of_times_it_has_done_nothing_or_everything(tmp_path):
    """Compare with a chooser that is not interrupted."""
    rule, dice, alarm = rules()["thompson"], random.Random(0), Alarm()
    mirror = Chooser(rule, seed=5, expire_after=6)
    options: Any = {"seed": 5, "expire_after": 6}
    chooser, hits = opened(tmp_path, rule, **options), 0
    patience = 3e-4
    with alarm.installed():
        for turn in range(1200):
            hit = alarm.interrupted(next_call(chooser), dice.uniform(1e-6, patience))
            hits += hit
            patience *= 1.03 if hit else 0.97
            if position(chooser) > position(mirror):
                next_call(mirror)()
            assert image(chooser) == image(mirror)
            if turn % 100 == 99:
                before = image(chooser)
                chooser.close()
                chooser = opened(tmp_path, rule, **options)
                assert image(chooser) == before
    chooser.close()
    assert hits > 300


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX, if another test has imported it
@pytest.mark.parametrize("stored", [True, False])
def test_a_forked_copy_never_spends_a_second_budget(tmp_path, stored):
    rule = rules()["exp3"]
    chooser = opened(tmp_path, rule) if stored else Chooser(rule)
    chooser.act(costs=[0.1, 0.2, 0.5])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            chooser.act(costs=[0.1, 0.2, 0.5])
            status = 2
        except InUseError:
            status = 3
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == (2 if stored else 3)
    chooser.act(costs=[0.1, 0.2, 0.5])
    assert chooser.round == (4 if stored else 3)
    chooser.close()


def test_old_closed_choices_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(chooser_copy.ChooserCopy, "closed_kept", 20)
    monkeypatch.setattr(rounds, "SPARED", 64)
    rule = rules()["exp3"]
    with opened(tmp_path, rule) as chooser:
        for _ in range(120):
            chooser.settle(chooser.act(costs=[0.1, 0.1, 0.1]), reward=0.5)
        (rows,) = chooser._replica.database.read("SELECT COUNT(*) FROM longterm_rounds")[0]
        (parts,) = chooser._replica.database.read("SELECT COUNT(*) FROM longterm_parts")[0]
    assert rows <= 64 + rounds.PRUNE_EVERY
    assert parts <= chooser_copy.LESSONS_KEPT + 1


@pytest.mark.parametrize("change", [lambda P: -P, lambda P: P + np.triu(P, 1) + 1e-3 * np.tri(len(P), k=-1)])
def test_a_covariance_that_is_none_is_refused(tmp_path, change):
    rule = rules()["thompson"]
    with opened(tmp_path, rule) as chooser:
        for _ in range(40):
            chooser.teach([1.0, 0.5], [0.1, 0.2, 0.3])
        ((content,),) = chooser._replica.database.read("SELECT content FROM longterm_parts WHERE number = 0")
        metadata, arrays = unpack(content)
        (name,) = [name for name in arrays if name.endswith("common")]
        covariance = arrays[name][:, :2].copy()
        arrays[name] = np.hstack([change(covariance), arrays[name][:, 2:]])
        chooser._replica.database.engine.connection.execute(
            "UPDATE longterm_parts SET content = ? WHERE number = 0", (pack(metadata, arrays),)
        )
    with pytest.raises(DatabaseError, match="covariance"):
        opened(tmp_path, rule)


def test_the_text_of_a_choice_is_as_good_as_the_choice(tmp_path):
    chooser = Chooser(rules()["thompson"], seed=5)
    choice = chooser.act([1.0, 0.0], costs=[0.0, 0.2, 0.5])
    chooser.settle(str(choice), reward=0.5)
    with pytest.raises(AlreadyToldError):
        chooser.settle(choice, reward=0.5)
    with pytest.raises(UnknownTokenError, match="another epoch"):
        chooser.settle(str(Chooser(rules()["thompson"]).act([1.0, 0.0], costs=[0.0, 0.2, 0.5])), reward=0.5)
    with pytest.raises(UnknownTokenError, match="not the text"):
        chooser.settle("seven", reward=0.5)


def test_a_signal_handler_that_calls_the_chooser_is_refused():
    chooser = Chooser(rules()["exp3"])
    guard = chooser._replica.guard
    with guard.wait():
        guard.owner = threading.get_ident()
        with pytest.raises(InUseError, match="chooser"):
            chooser.act()


def test_money_held_for_choices_that_do_not_exist_is_refused(tmp_path):
    with Chooser.open(tmp_path / "service.db", rules()["exp3"]) as chooser:
        for _ in range(3):
            chooser.act(costs=[0.2, 0.3, 0.4])
    connection = sqlite3.connect(tmp_path / "service.db")
    connection.execute("DELETE FROM longterm_rounds WHERE number = 2")
    connection.commit()
    connection.close()
    with pytest.raises(DatabaseError, match="do not add up"):
        Chooser.open(tmp_path / "service.db", rules()["exp3"])


def test_open_choices_are_bounded_and_old_ones_expire():
    rule = rules()["thompson"]
    full = Chooser(rule, max_in_flight=3)
    for _ in range(3):
        full.act([1.0, 0.0], costs=[0.0, 0.2, 0.5])
    with pytest.raises(WindowFullError, match="3 rounds are open, the oldest is 1"):
        full.act([1.0, 0.0], costs=[0.0, 0.2, 0.5])
    ageing = Chooser(rule, expire_after=2, max_in_flight=3)
    for _ in range(10):
        ageing.act([1.0, 0.0], costs=[0.3, 0.3, 0.3])
    assert list(ageing.pending) == [8, 9, 10]
    assert ageing.spent == pytest.approx([0.3 * 7])  # counted as what was held back
    with pytest.raises(InputError, match="bounds"):
        ageing.act([1.0, 0.0], costs=[0.3, 0.3, 0.3], bounds=[0.1, 0.1, 0.1])
    assert list(ageing.pending) == [8, 9, 10]  # what is refused makes nothing expire


def test_what_cannot_be_stored_says_so(tmp_path):
    class Objects(RidgeRegressor):
        def init(self, actions, outputs):
            return [object()]

    rule = PrimalDual(InverseGapWeighting(3, Objects(2), sharpness=5.0), HedgeDual(), Budget(30.0, 1.0), 200)
    with pytest.raises(InputError, match="primal"):
        opened(tmp_path, rule)


@pytest.mark.parametrize("name", ["thompson", "ucb", "ridge"])
def test_whatever_is_accepted_can_be_saved_and_loaded(name, tmp_path):
    rng = np.random.default_rng(0)
    rule = rules()[name]
    chooser = opened(tmp_path, rule, seed=5)
    for t in range(150):
        context = [1.0, 10 ** rng.uniform(6, 9)] if t else [1e50, -1e50]
        choice = chooser.act(context, costs=[0.0, 0.2, 1e50], bounds=[1e50, 0.3, 1e50])
        if choice.action is not None and t % 10:
            chooser.settle(choice, reward=0.5)
    again = opened(tmp_path, rule)
    assert image(again) == image(chooser)


def test_many_open_choices_are_loaded_one_by_one_in_their_order(tmp_path):
    rule = PrimalDual(ThompsonSampling(3, 2), EntropicDual(0.2), Budget(3000.0, 1.0), 5000)
    chooser = opened(tmp_path, rule, seed=5)
    for t in range(2000):
        choice = chooser.act([1.0, t % 7], costs=[0.1, 0.2, 0.5] if t % 3 else None)
        if t % 5 == 0:
            chooser.settle(choice, cost=0.05)
        elif t % 5 == 1 and t % 3 == 0:
            chooser.settle(choice, reward=0.25)
    again = opened(tmp_path, rule)
    assert image(again) == image(chooser)
    assert list(again.pending) == list(chooser.pending)
    for one, other in zip(again.pending.values(), chooser.pending.values(), strict=True):
        assert str(one) == str(other)


def test_a_replica_reads_only_the_choices_that_others_touched(tmp_path, monkeypatch):
    decoded = []
    decode = chooser_copy.decode_choice
    monkeypatch.setattr(chooser_copy, "decode_choice", lambda *a, **k: decoded.append(1) or decode(*a, **k))
    rule = PrimalDual(ThompsonSampling(3, 2), EntropicDual(0.2), Budget(1000.0, 1.0), 2000)
    with Chooser.open(tmp_path / "s.db", rule) as one, Chooser.open(tmp_path / "s.db", rule) as other:
        for t in range(150):
            choice = (one, other)[t % 2].act([1.0, 0.5], costs=[0.0, 0.2, 0.5])
            if t % 5 == 2:
                (one, other)[t % 3 == 0].settle(choice, cost=0.0)  # open, in its old place
            if t % 7 == 3:
                (one, other)[t % 3 == 1].skip(choice)
        decoded.clear()
        one.act([1.0, 0.5], costs=[0.0, 0.2, 0.5])
        assert len(decoded) <= 4
        expected = list(one.pending)
        assert expected == sorted(expected)
        assert list(other.pending) == expected
        with Chooser.open(tmp_path / "s.db", rule) as fresh:
            assert list(fresh.pending) == expected
            assert image(fresh) == image(other) == image(one)
