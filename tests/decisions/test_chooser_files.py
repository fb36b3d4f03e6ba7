"""Choosers in a service: journals, snapshots, epochs, interrupts."""

import os
import random
import signal
from functools import partial
from typing import Any

import numpy as np
import pytest

from chooser_plan import image, image_of, next_call, position
from longterm.decisions import (
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
from longterm.decisions.memory import KIND, VERSION
from longterm.errors import (
    AlreadyToldError,
    InputError,
    InUseError,
    JournalError,
    SharedBudgetWarning,
    SnapshotError,
    UnknownTokenError,
    WindowFullError,
)
from longterm.storage.snapshot import Snapshot, read_snapshot, write_snapshot
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


@pytest.mark.parametrize("name", list(rules()))
def test_a_chooser_goes_on_bit_for_bit_after_its_process_died(name, tmp_path):
    whole = Chooser(rules()[name], seed=3)
    straight = [step(whole, name, t) for t in range(90)]
    actions = []
    chooser = Chooser(rules()[name], seed=3, journal=tmp_path / "j", fsync=False)
    for t in range(90):
        if t == 30:
            chooser.save(tmp_path / "s")
        if t == 15:  # dies before the first save
            chooser._recorded.close()  # nothing is written
            chooser = Chooser(rules()[name], seed=3, journal=tmp_path / "j", fsync=False)
        if t in (31, 60, 75):
            chooser._recorded.close()  # nothing is written
            chooser = Chooser.load(tmp_path / "s", rules()[name], journal=tmp_path / "j", fsync=False)
        actions.append(step(chooser, name, t))
    assert actions == straight
    same(whole, chooser)
    chooser.save(tmp_path / "s")
    chooser.close()
    same(whole, Chooser.load(tmp_path / "s", rules()[name]))


def test_a_replay_keeps_the_recorded_action_whatever_a_sum_says(tmp_path):
    """Another machine may round differently: the journal's action and probabilities count."""
    rule = rules()["thompson"]
    chooser = Chooser(rule, seed=3, journal=tmp_path / "j", fsync=False)
    actions = [step(chooser, "thompson", t) for t in range(30)]
    chooser.close()
    tilted = rules()["thompson"]
    original = type(tilted.primal).weigh
    weigh = lambda self, state, request, rng: original(self, state, request, rng)[::-1]  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(tilted.primal), "weigh", weigh)
        again = Chooser(tilted, seed=3, journal=tmp_path / "j", fsync=False)
    same(chooser, again)
    assert len(actions) == again.round - 1
    again.close()


def test_a_chooser_without_its_journal_refuses_choices_of_unknown_epochs(tmp_path):
    rule = rules()["thompson"]
    chooser = Chooser(rule, seed=1, journal=tmp_path / "j")
    known = chooser.act([1.0, 0.0], costs=[0.0, 0.2, 0.5])
    chooser.save(tmp_path / "s")
    lost = chooser.act([1.0, 0.0], costs=[0.0, 0.2, 0.5])
    chooser.close()
    other = Chooser.load(tmp_path / "s", rule)
    fresh = other.act([1.0, 0.0], costs=[0.0, 0.2, 0.5])
    assert (fresh.number, lost.number) == (2, 2)
    assert fresh.epoch != lost.epoch
    with pytest.raises(UnknownTokenError, match="another epoch"):
        other.settle(lost, reward=1.0)
    other.settle(known, reward=1.0)
    other.settle(fresh, reward=1.0)
    other.save(tmp_path / "t")
    third = Chooser.load(tmp_path / "t", rule)
    with pytest.raises(UnknownTokenError, match="another epoch"):
        third.settle(lost, reward=1.0)
    kept = Chooser.load(tmp_path / "s", rule, journal=tmp_path / "j")
    kept.settle(lost, reward=1.0)  # its journal knows the epoch
    kept.close()


def test_one_process_writes_a_journal_and_damage_is_named(tmp_path):
    rule = rules()["exp3"]
    chooser = Chooser(rule, journal=tmp_path / "j")
    with pytest.raises(JournalError, match="in use"):
        Chooser(rule, journal=tmp_path / "j")
    step(chooser, "exp3", 0)
    chooser.save(tmp_path / "s")
    step(chooser, "exp3", 1)
    chooser.close()
    with pytest.raises(SnapshotError, match=r"rule\.horizon is 200 in the file and 300 here"):
        Chooser.load(
            tmp_path / "s",
            PrimalDual(EXP3IX(3, step=rule.primal.step), HedgeDual(step=rule.dual.step), Budget(30.0, 1.0), 300),
        )
    damaged = bytearray((tmp_path / "s").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "d").write_bytes(damaged)
    with pytest.raises(SnapshotError, match="corrupted"):
        Chooser.load(tmp_path / "d", rule)
    torn = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(torn[:-3])  # a write cut short was never acknowledged
    again = Chooser.load(tmp_path / "s", rule, journal=tmp_path / "j")
    assert again.round in (2, 3)
    again.close()


@pytest.mark.parametrize("call", ["act", "settle", "skip"])
def test_a_write_that_fails_changes_nothing(call, tmp_path, monkeypatch):
    rule = rules()["thompson"]
    chooser, twin = Chooser(rule, seed=5, journal=tmp_path / "j", fsync=False), Chooser(rule, seed=5)
    for made in (chooser, twin):
        for t in range(12):
            step(made, "thompson", t)
    one = next(iter(chooser.pending.values()))
    real = os.write

    def full(descriptor, data):
        real(descriptor, bytes(data)[:5])
        raise OSError(28, "No space left on device")

    calls = {
        "act": lambda: chooser.act([1.0, 0.0], costs=[0.0, 0.2, 0.5]),
        "settle": lambda: chooser.settle(one, reward=0.5),
        "skip": lambda: chooser.skip(one),
    }
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            calls[call]()
    same(chooser, twin)
    assert [step(chooser, "thompson", t) for t in range(12, 40)] == [step(twin, "thompson", t) for t in range(12, 40)]
    same(chooser, twin)
    chooser.close()
    with Chooser(rule, seed=5, journal=tmp_path / "j", fsync=False) as again:
        same(again, twin)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timer signals are POSIX")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore::longterm.errors.HorizonWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
def test_interrupted_hundreds_of_times_it_has_done_nothing_or_everything(tmp_path, monkeypatch):
    """Real timers, in calls and in saves; the mirror is a chooser that nothing happens to."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    rule, dice, alarm = rules()["thompson"], random.Random(0), Alarm()
    mirror = Chooser(rule, seed=5)
    options: Any = {"journal": tmp_path / "j", "fsync": False, "checkpoint_after": 25}
    chooser, hits = Chooser.open(tmp_path / "s", rule, seed=5, **options), 0
    patience = {True: 1e-3, False: 3e-4}
    with alarm.installed():
        for turn in range(1500):
            saving = dice.random() < 0.2
            writes = [
                chooser.checkpoint,
                partial(chooser.backup, tmp_path / "b"),
                partial(chooser.save, tmp_path / "s"),
            ]
            hit = alarm.interrupted(
                dice.choice(writes) if saving else next_call(chooser), dice.uniform(1e-6, patience[saving])
            )
            hits += hit
            patience[saving] *= 1.03 if hit else 0.97
            if position(chooser) > position(mirror):
                next_call(mirror)()
            assert image(chooser) == image(mirror)
            if turn % 100 == 99:
                before = image(chooser)
                chooser.close()
                chooser = Chooser.open(tmp_path / "s", rule, seed=5, **options)
                assert image(chooser) == before
    chooser.close()
    assert hits > 400


def test_a_journal_shortens_itself_and_a_backup_leaves_the_original_alone(tmp_path):
    rule = rules()["thompson"]
    mirror = Chooser(rule, seed=5)
    chooser = Chooser(rule, seed=5, journal=tmp_path / "j", fsync=False, checkpoint_after=20)
    chooser.save(tmp_path / "s")
    for _ in range(200):
        next_call(chooser)()
        next_call(mirror)()
    chooser._recorded.checkpoints.wait()
    assert chooser._recorded.journal.start.sequence >= 20
    chooser.save(tmp_path / "copy")  # another path: a backup
    for _ in range(10):
        next_call(chooser)()
        next_call(mirror)()
    chooser.close()
    with Chooser.load(tmp_path / "s", rule, journal=tmp_path / "j", fsync=False) as again:
        assert image(again) == image(mirror)
    copy = Chooser.load(tmp_path / "copy", rule)
    assert copy.round < mirror.round
    with Chooser.load(tmp_path / "copy", rule, journal=tmp_path / "j", fsync=False) as again:
        assert image(again) == image(mirror)


def test_what_a_checkpoint_writes_in_the_background_stays_as_it_was():
    chooser = Chooser(rules()["thompson"], seed=5)
    for _ in range(8):
        next_call(chooser)()
    copied, before = chooser._recorded.memory.copied(), image(chooser)
    for _ in range(8):
        next_call(chooser)()
    assert image_of(copied) == before
    assert image(chooser) != before


@pytest.mark.parametrize("change", [lambda P: -P, lambda P: P + np.triu(P, 1) + 1e-3 * np.tri(len(P), k=-1)])
def test_a_covariance_that_is_none_is_refused(tmp_path, change):
    """The file's checksum is right: whoever forged it made it anew."""
    chooser = Chooser(rules()["thompson"], seed=5)
    chooser.save(tmp_path / "s")
    stored = read_snapshot(tmp_path / "s", KIND, VERSION)
    (name,) = [name for name in stored.arrays if name.endswith("covariance")]
    arrays = {**stored.arrays, name: change(stored.arrays[name])}
    write_snapshot(tmp_path / "s", Snapshot(KIND, VERSION, stored.metadata, arrays))
    with pytest.raises(SnapshotError, match="covariance"):
        Chooser.load(tmp_path / "s", rules()["thompson"])


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
    with chooser._turn(), pytest.raises(InUseError, match="chooser"):
        chooser.act()


def test_open_choices_are_bounded_and_old_ones_expire():
    rule = rules()["thompson"]
    full = Chooser(rule, max_in_flight=3)
    for _ in range(3):
        full.act([1.0, 0.0], costs=[0.0, 0.2, 0.5])
    with pytest.raises(WindowFullError, match="3 choices are open, the oldest is 1"):
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
    linear = pytest.importorskip("sklearn.linear_model")
    from longterm.decisions import PartialFit

    rule = PrimalDual(
        InverseGapWeighting(3, PartialFit(linear.SGDRegressor), sharpness=5.0), HedgeDual(), Budget(30.0, 1.0), 200
    )
    with pytest.raises(InputError, match="primal"):
        Chooser(rule).save(tmp_path / "s")


@pytest.mark.parametrize("name", ["thompson", "ucb", "ridge"])
def test_whatever_is_accepted_can_be_saved_and_loaded(name, tmp_path):
    rng = np.random.default_rng(0)
    rule = rules()[name]
    chooser = Chooser(rule, seed=5)
    for t in range(150):
        context = [1.0, 10 ** rng.uniform(6, 9)] if t else [1e50, -1e50]
        choice = chooser.act(context, costs=[0.0, 0.2, 1e50], bounds=[1e50, 0.3, 1e50])
        if choice.action is not None and t % 10:
            chooser.settle(choice, reward=0.5)
    chooser.save(tmp_path / "s")
    again = Chooser.load(tmp_path / "s", rule)
    assert image(again) == image(chooser)


def test_many_open_choices_are_loaded_one_by_one_in_their_order(tmp_path):
    rule = PrimalDual(ThompsonSampling(3, 2), EntropicDual(0.2), Budget(3000.0, 1.0), 5000)
    chooser = Chooser(rule, seed=5)
    for t in range(2000):
        choice = chooser.act([1.0, t % 7], costs=[0.1, 0.2, 0.5] if t % 3 else None)
        if t % 5 == 0:
            chooser.settle(choice, cost=0.05)
        elif t % 5 == 1 and t % 3 == 0:
            chooser.settle(choice, reward=0.25)
    chooser.save(tmp_path / "s")
    again = Chooser.load(tmp_path / "s", rule)
    assert image(again) == image(chooser)
    assert list(again.pending) == list(chooser.pending)
    for one, other in zip(again.pending.values(), chooser.pending.values(), strict=True):
        assert str(one) == str(other)


def test_a_choice_is_settled_by_its_text_after_many_restarts(tmp_path):
    """Its money is held back as long as it is open, so its text stays valid."""
    rule = rules()["exp3"]
    options = {"journal": tmp_path / "j", "fsync": False}
    with Chooser.open(tmp_path / "s", rule, **options) as chooser:
        text = str(chooser.act())
    for _ in range(70):
        with Chooser.open(tmp_path / "s", rule, **options) as chooser:
            chooser.settle(chooser.act(), reward=0.5, cost=0.1)
    with Chooser.open(tmp_path / "s", rule, **options) as chooser:
        assert len(chooser.pending) == 1
        chooser.settle(text, reward=0.5, cost=0.1)
        assert not chooser.pending


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on POSIX only")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_chooser_without_a_journal_warns():
    chooser = Chooser(rules()["exp3"])
    chooser.act()
    child = os.fork()
    if child == 0:
        try:
            with pytest.warns(SharedBudgetWarning, match="each of them spends the whole budget"):
                chooser.act()
            chooser.act()  # once
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    chooser.act()


def test_a_snapshot_loaded_twice_without_a_journal_warns_when_both_answer(tmp_path):
    rule = rules()["exp3"]
    Chooser(rule).save(tmp_path / "s")
    first, second = Chooser.load(tmp_path / "s", rule), Chooser.load(tmp_path / "s", rule)
    first.act()
    with pytest.warns(SharedBudgetWarning, match="Give it a journal"):
        second.act()
    first.act()
    second.act()
