"""Live pacers: bids are held until they are settled, replicas share one budget, and files are refused or harmless."""

import os
import random
import sqlite3
import struct
import warnings
import zlib

import numpy as np
import pytest

from longterm.errors import (
    AlreadyToldError,
    DatabaseError,
    InputError,
    InUseError,
    OverspentWarning,
    SkippedTokenError,
    UnknownTokenError,
)
from longterm.money import DualMirrorDescent, LivePacer, Outcome, PlannedMirrorDescent

PACERS = {
    "dual": lambda: DualMirrorDescent(budget=30.0, horizon=100, step=0.1, start=0.5),
    "planned": lambda: PlannedMirrorDescent(budget=30.0, plan=np.ones(100), step=0.1, start=0.5),
}


def opened(folder, pacer, **options):
    return LivePacer.open(folder / "service.db", pacer, durability="relaxed", **options)


def value(t):
    return 0.5 + 0.4 * np.sin(t)


def test_settled_at_once_it_is_the_pacer(tmp_path):
    pacer = PACERS["dual"]()
    state = pacer.init()
    with opened(tmp_path, pacer) as live:
        for t in range(80):
            bid, expected = live.bid(value(t)), float(pacer.act(state, value(t)))
            assert bid.amount == expected
            paid = min(bid.amount, 0.4)
            live.settle(bid, paid)
            state = pacer.settle(state, Outcome(paid, value(t), None, expected, None))
        assert live.spent == float(state.spent.value)
        assert live.held == 0.0


@pytest.mark.parametrize("stored", [True, False])
def test_open_bids_are_held(tmp_path, stored):
    pacer, dice = PACERS["dual"](), random.Random(0)
    with opened(tmp_path, pacer) if stored else LivePacer(pacer) as live:
        open_bids = []
        for _ in range(300):
            open_bids.append(live.bid(5.0))
            if dice.random() < 0.4:
                bid = open_bids.pop(dice.randrange(len(open_bids)))
                live.settle(str(bid), bid.amount * dice.choice([0.0, 0.1, 1.0]))
            assert live.spent + live.held <= 30.0 * (1 + 1e-12)
        for bid in open_bids:
            live.settle(bid, bid.amount)
        assert live.spent <= 30.0 * (1 + 1e-12)


def test_replicas_share_one_budget(tmp_path):
    pacer, dice, mirror = PACERS["dual"](), random.Random(1), LivePacer(PACERS["dual"]())
    with opened(tmp_path, pacer) as one, opened(tmp_path, pacer) as other:
        for t in range(120):
            live = dice.choice([one, other])
            bid, expected = live.bid(value(t)), mirror.bid(value(t))
            assert bid.amount == expected.amount
            if t % 5 == 0:
                dice.choice([one, other]).skip(str(bid))
                mirror.skip(expected)
            elif t % 5 < 4:
                dice.choice([one, other]).settle(str(bid), bid.amount / 2)
                mirror.settle(expected, expected.amount / 2)
        assert one.spent == other.spent == mirror.spent
        assert one.held == other.held == mirror.held
        assert len(one.in_flight) == 24
    with opened(tmp_path, pacer) as again:
        assert (again.spent, again.held) == (mirror.spent, mirror.held)


def test_keys_and_tokens(tmp_path):
    for live in (LivePacer(PACERS["dual"]()), opened(tmp_path, PACERS["dual"]())):
        first = live.bid(0.5, key="a")
        assert str(live.bid(0.5, key="a")) == str(first)
        live.settle(first, 0.1)
        assert live.bid(0.5, key="a").amount == first.amount
        with pytest.raises(AlreadyToldError):
            live.settle(first, 0.1)
        second = live.bid(0.5)
        live.skip(second.token)
        with pytest.raises(SkippedTokenError):
            live.skip(second)
        for wrong in ("0123456789ab-1", 3, None, "x"):
            with pytest.raises(UnknownTokenError):
                live.settle(wrong, 0.1)
        with pytest.raises(InputError):
            live.settle(live.bid(0.5), -1.0)
        live.close()


def test_a_payment_above_the_budget_is_recorded(tmp_path):
    with opened(tmp_path, PACERS["dual"]()) as live:
        bid = live.bid(5.0)
        with pytest.warns(OverspentWarning):
            live.settle(bid, 31.0)
        assert live.spent == 31.0
        assert live.bid(5.0).amount == 0.0


def test_warnings_as_errors_change_nothing(tmp_path):
    with opened(tmp_path, PACERS["dual"]()) as live:
        bid = live.bid(5.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(OverspentWarning):
                live.settle(bid, 31.0)
        assert live.spent == 0.0
        assert len(live.in_flight) == 1


def test_batches_and_other_rules_are_refused(tmp_path):
    with pytest.raises(InputError, match="several campaigns"):
        LivePacer(DualMirrorDescent(budget=np.array([1.0, 2.0]), horizon=10, step=0.1, start=0.5))
    opened(tmp_path, PACERS["dual"]()).close()
    with pytest.raises(DatabaseError, match=r"pacer\.budget was 30\.0, is 31\.0"):
        opened(tmp_path, DualMirrorDescent(budget=31.0, horizon=100, step=0.1, start=0.5))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_a_forked_copy_never_spends_a_second_budget():
    live = LivePacer(PACERS["dual"]())
    child = os.fork()
    if child == 0:
        status = 1
        try:
            live.bid(0.5)
        except InUseError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("seed", range(40))
def test_forged_databases_are_refused_or_harmless(tmp_path, seed):
    rng, pacer = np.random.default_rng(seed), PACERS["dual"]()
    with opened(tmp_path, pacer) as live:
        for t in range(6):
            bid = live.bid(value(t))
            if t % 2:
                live.settle(bid, bid.amount / 2)
    connection = sqlite3.connect(tmp_path / "service.db")
    ((state,),) = connection.execute("SELECT state FROM longterm_objects").fetchall()
    word = struct.pack("<d", [np.nan, np.inf, -1.0, 1e308, -1e308, 0.0][seed % 6])
    if seed % 3:
        place = len(state) - 4 - 8 * int(rng.integers(1, 6))
        body = state[:place] + word + state[place + 8 : -4]
        connection.execute("UPDATE longterm_objects SET state = ?", (body + struct.pack("<I", zlib.crc32(body)),))
    else:
        connection.execute("UPDATE longterm_rounds SET content = ? WHERE number = 1", (word + word,))
    connection.commit()
    connection.close()
    try:
        with opened(tmp_path, pacer) as live:
            for t in range(20):
                live.settle(live.bid(value(t)), 0.0)
            assert np.isfinite([live.spent, live.held]).all()
            assert live.spent >= 0
    except DatabaseError as error:
        assert error.reason == "corrupted"  # noqa: PT017


def test_a_price_that_falls_to_zero_is_stored(tmp_path):
    """The rule's zero is a Python number, which has no bytes of its own."""
    rule = DualMirrorDescent(budget=10.0, horizon=10, step=0.5, start=0.5, mirror="euclidean")
    with LivePacer.open(tmp_path / "service.db", rule) as live:
        for _ in range(3):
            live.settle(live.bid(0.1), paid=0.0)
        assert float(live.state.price) == 0.0
        live.settle(live.bid(0.1), paid=0.25)
    with LivePacer.open(tmp_path / "service.db", rule) as again:
        assert (again.spent, again.held, again.state.round) == (0.25, 0.0, 5)
