"""Live pacers: bids are held until they are settled, replicas share one budget, and files are refused or harmless."""

import os
import random
import sqlite3
import struct
import warnings
import zlib
from dataclasses import replace

import numpy as np
import pytest

from clocks import ManualClock
from longterm.errors import (
    AlreadyToldError,
    DatabaseError,
    InputError,
    InUseError,
    OverspentWarning,
    SkippedTokenError,
    UnknownTokenError,
)
from longterm.money import (
    DualMirrorDescent,
    FirstPricePacer,
    Ledger,
    LivePacer,
    Outcome,
    PlannedMirrorDescent,
    PriceHistory,
    ReturnOnSpend,
    SharedAccount,
)
from longterm.money.pacing.landscapes import SeenPrices
from longterm.money.prices import MAX_LOG_STEP, MAX_PRICE_RATIO, entropic_step

PACERS = {
    "dual": lambda: DualMirrorDescent(budget=30.0, horizon=100, step=0.1, start=0.5),
    "planned": lambda: PlannedMirrorDescent(30.0, 100, 0.02, 0.5, PriceHistory([0.2, 0.5, 1.0], [5, 3, 2], 0.5)),
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


def test_only_a_bid_without_money_is_refused(tmp_path):
    """A rule that does not want to pay refuses nothing. A shared account without money does."""
    with LivePacer(PACERS["dual"]()) as live:
        assert not live.bid(0.0).refused
        assert not live.bid(100.0).refused
        bid = live.bid(1.0)
        assert (bid.amount, bid.refused) == (0.0, True)
    thrifty = FirstPricePacer(10.0, 100, SeenPrices(np.linspace(0.0, 5.0, 11)), start=100.0, step=0.1)
    with LivePacer(thrifty) as live:  # money is worth 100 times its amount
        bid = live.bid(1.0)
        assert (bid.amount, bid.refused) == (0.0, False)
    with Ledger.open(tmp_path / "service.db") as ledger:
        ledger.add_account("empty", limit=0)
        with opened(tmp_path, PACERS["dual"](), account=SharedAccount("empty", units=1.0)) as live:
            bid = live.bid(1.0)
            assert (bid.amount, bid.refused) == (0.0, True)


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


def test_open_bids_above_the_budget_are_refused(tmp_path):
    with opened(tmp_path, PACERS["dual"]()) as live:
        bid = live.bid(5.0)
        with pytest.raises(InputError, match="lower than what open bids hold"):
            live.change(budget=0.9 * bid.amount)
        live.change(budget=bid.amount)
        live.change(budget=30.0)
    connection = sqlite3.connect(tmp_path / "service.db")
    for amount, is_possible in ((30.0, True), (30.1, False), (-0.1, False)):
        connection.execute("UPDATE longterm_rounds SET content = ?", (struct.pack("<2d", amount, 1.0),))
        connection.commit()
        if is_possible:
            with opened(tmp_path, PACERS["dual"]()) as live:
                assert live.held == amount
        else:
            with pytest.raises(DatabaseError, match=r"above the budget|at least 0"):
                opened(tmp_path, PACERS["dual"]())
    connection.close()


@pytest.mark.parametrize("move", [1e9, -1e9, 300.0, -300.0])
def test_an_entropic_price_moves_by_bounded_factors_and_returns(move):
    """Without both limits one mistaken payment would send the price to infinity, or to a 0 that never rises again."""
    start, price = 0.5, 0.5
    for _ in range(5):
        after = entropic_step(price, move, start)
        assert abs(np.log(after / price)) <= MAX_LOG_STEP * (1 + 1e-12)
        price = after
    assert start / MAX_PRICE_RATIO <= price <= start * MAX_PRICE_RATIO
    arrays = entropic_step(np.array([start, price]), np.array([move, move]), np.array([start, start]))
    np.testing.assert_allclose(arrays, [entropic_step(start, move, start), price])
    back = 0
    while abs(np.log(price / start)) > 1e-9:
        step = -np.log(price / start)
        price, back = entropic_step(price, float(step), start), back + 1
    assert back <= 2


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


# --- periods -----------------------------------------------------------------------------------------------------

DAY = 86_400.0


@pytest.mark.parametrize("kind", PACERS)
@pytest.mark.parametrize("stored", [True, False])
def test_a_budget_for_each_day(tmp_path, stored, kind):
    clock, pacer = ManualClock(), PACERS[kind]()
    options = {"period": "day", "timezone": "Europe/Berlin", "clock": clock}
    with opened(tmp_path, pacer, **options) if stored else LivePacer(pacer, **options) as live:
        for _ in range(3):
            for _ in range(70):
                bid = live.bid(50.0)
                live.settle(bid, bid.amount, price=bid.amount)
            assert live.spent == pytest.approx(30.0)
            price = live.metrics()["price"]
            late = live.bid(1.0)
            clock.advance(DAY)
            assert (live.spent, live.state.round) == (0.0, 1)
            assert live.metrics()["price"] == price  # what was learned stays
            live.settle(late, late.amount)
        assert live.metrics()["plan"] == pytest.approx(30.0 * 9 / 24)  # at 09:00


def test_open_bids_of_yesterday_are_held_and_count_when_they_are_settled(tmp_path):
    clock, pacer = ManualClock(), PACERS["dual"]()
    with opened(tmp_path, pacer, period="day", clock=clock) as live:
        late = live.bid(10.0)
        clock.advance(DAY)
        assert (live.spent, live.held) == (0.0, late.amount)
        assert live.bid(1e9).amount == pytest.approx(30.0 - late.amount)
        live.settle(late, 5.0)
        assert live.spent == 5.0
        clock.advance(DAY)
        live.correct(late, 2.0)  # in the present period, not below 0
        assert live.spent == 0.0
        live.correct(late, 4.0)
        assert live.spent == 2.0


def test_a_clock_that_was_ahead_uses_the_budget_of_its_own_day(tmp_path):
    clock, pacer = ManualClock(), PACERS["dual"]()
    with opened(tmp_path, pacer, period="day", clock=clock) as live:
        live.settle(live.bid(9.0), 10.0)
        clock.step(20 * DAY)
        live.settle(live.bid(9.0), 8.0)
        clock.step(-20 * DAY)
        assert live.spent == 10.0
        with opened(tmp_path, pacer, period="day", clock=clock) as other:
            assert other.spent == 10.0
            clock.advance(DAY)
            assert (live.spent, other.spent) == (0.0, 0.0)
            live.settle(other.bid(9.0), 3.0)
            clock.step(-30 * DAY)  # begins no period
            assert other.spent == live.spent == 10.0
            clock.step(30 * DAY)
            assert other.spent == 3.0
        clock.advance(19 * DAY)
        assert live.spent == 8.0


def test_a_period_is_changed_while_the_pacer_is_used(tmp_path):
    clock, pacer = ManualClock(), PACERS["dual"]()
    with opened(tmp_path, pacer, clock=clock) as live, opened(tmp_path, pacer, clock=clock) as other:
        live.settle(live.bid(9.0), 10.0)
        live.change(period="day", timezone="Asia/Tokyo", budget=40.0)
        assert (other.spent, other.period, other.timezone) == (10.0, "day", "Asia/Tokyo")
        clock.advance(DAY)
        assert other.spent == 0.0
        other.settle(other.bid(9.0), 4.0)
        other.change(period="week")
        assert live.spent == 4.0
        clock.advance(8 * DAY)
        live.change(period="")
        assert (other.spent, other.period) == (0.0, None)
        clock.advance(20 * DAY)
        other.settle(other.bid(9.0), 7.0)
        clock.advance(20 * DAY)
        assert live.spent == 7.0
        for wrong in ({"period": "year"}, {"timezone": "Nowhere"}, {"timezone": 3}, {"period": ["day"]}):
            with pytest.raises(InputError, match=next(iter(wrong))):
                live.change(**wrong)
    with pytest.raises(DatabaseError, match=r"timezone was 'Asia/Tokyo', is 'UTC'; pacer.budget was 40.0, is 35.0"):
        opened(tmp_path, replace(pacer, budget=35.0), clock=clock)
    with opened(tmp_path, pacer, clock=clock) as again:  # these are values that it had before they were changed
        assert (again.pacer.budget, again.timezone) == (40.0, "Asia/Tokyo")
    with opened(tmp_path, pacer, clock=clock, follow=True) as again:
        assert (again.pacer.budget, again.timezone, again.spent) == (40.0, "Asia/Tokyo", 7.0)


def test_stored_periods_that_make_no_sense_are_refused(tmp_path):
    clock, pacer = ManualClock(), PACERS["dual"]()
    with opened(tmp_path, pacer, period="month", clock=clock) as live:
        for _ in range(3):
            live.settle(live.bid(9.0), 1.0)
            clock.advance(31 * DAY)
        copy = live._replica.copy
        state = copy.state
        assert copy.decode_state(copy.encode_state(state), copy.asked) == state
        for others in ({202601: (-1.0, 0.0)}, {-4: (1.0, 0.0)}, {202601: (float("nan"), 0.0)}):
            with pytest.raises(ValueError, match="payments"):
                copy.decode_state(copy.encode_state(state._replace(others=others)), copy.asked)


def test_a_price_below_zero_is_stored(tmp_path):
    """A Euclidean price falls below 0 while a floor is missed: every request is wanted."""
    pacer = DualMirrorDescent(20.0, 10, step=0.1, start=0.5, mirror="euclidean", floor=20.0)
    with opened(tmp_path, pacer) as live:
        for _ in range(4):
            live.settle(live.bid(1.0), 0.0)
        figures = live.metrics()
    assert figures["price"] < 0
    with opened(tmp_path, pacer) as live:
        assert live.metrics() == figures


@pytest.mark.parametrize("url", [True, False])
def test_no_budget(tmp_path, url):
    pacer = ReturnOnSpend(target=2.0, horizon=100, largest_value=10.0, largest_bid=20.0)
    live = opened(tmp_path, pacer) if url else LivePacer(pacer)
    first = live.bid(4.0)
    live.bid(8.0)
    live.settle(first, 1.5, won=True)
    figures = live.metrics()
    assert (figures["spent"], figures["overshoot"]) == (1.5, 0.0)
    assert figures["held"] > 0
    assert not {"limit", "plan"} & set(figures)
    if url:
        live.close()
        with opened(tmp_path, pacer) as live:
            assert live.metrics() == figures


def test_steps_follow_a_changed_budget(tmp_path):
    """The next start may give the pacer as before the change or as after it."""
    given = {"target": 2.0, "horizon": 100, "largest_value": 10.0, "largest_bid": 20.0}
    with opened(tmp_path, ReturnOnSpend(**given)) as live:
        live.change(budget=40.0, horizon=90)
        bid = live.bid(4.0)
        live.settle(bid, 4.0, won=True)
        price = live.metrics()["price"]
    assert price > 0
    for again in (given, given | {"budget": 40.0, "horizon": 90}):
        with opened(tmp_path, ReturnOnSpend(**again)) as live:
            assert (live.metrics()["price"], live.metrics()["limit"]) == (price, 40.0)


@pytest.mark.parametrize("url", [True, False])
def test_amounts_out_of_range_are_refused(tmp_path, url):
    pacer = DualMirrorDescent(1e50, 10, step=0.1, start=0.5)
    live = opened(tmp_path, pacer) if url else LivePacer(pacer)
    first, second = live.bid(1.0), live.bid(1.0)
    live.settle(first, first.amount)
    for call in (
        lambda: live.bid(1.01e50),
        lambda: live.settle(second, 1.7e308, force=True),
        lambda: live.settle(second, 1.0, price=1e51),
        lambda: live.correct(first, 1.7e308, force=True),
        lambda: live.reset(1e51),
        lambda: live.change(budget=1e51),
        lambda: live.change(budget=1e-51),
    ):
        with pytest.raises(InputError, match=r"out of range\. Give a number between 1e-50 and 1e[+]50"):
            call()
    live.correct(first, 1e50, force=True)
    live.settle(second, 1.0)
    assert live.spent == 1e50
    live.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda huge: DualMirrorDescent(huge, 10, 0.1, 0.5),
        lambda huge: DualMirrorDescent(1.0, 10, huge, 0.5),
        lambda huge: DualMirrorDescent(1.0, 10, 0.1, 1 / huge),
        lambda huge: DualMirrorDescent(np.array([1.0, huge]), 10, 0.1, 0.5),
        lambda huge: DualMirrorDescent.calibrated(huge, 10, PriceHistory([1.0], [1], 0.5)),
        lambda huge: PlannedMirrorDescent(1.0, 10, 0.1, huge, PriceHistory([1.0], [1], 0.5)),
        lambda huge: PriceHistory([1.0, huge], [1, 1], 0.5),
        lambda huge: FirstPricePacer(1.0, 10, SeenPrices([0.0, 1.0]), 0.5, huge),
        lambda huge: SeenPrices([0.0, huge]),
        lambda huge: ReturnOnSpend(huge, 10, 1.0, 1.0),
        lambda huge: ReturnOnSpend(1.0, 10, 1.0, 1.0, budget=huge),
        lambda huge: ReturnOnSpend(1e-40, 10, 1e40, 1.0),  # so are the default steps
    ],
)
def test_hyperparameters_out_of_range_are_refused(make):
    with pytest.raises(InputError, match="out of range"):
        make(1e51)


@pytest.mark.parametrize("url", [True, False])
@pytest.mark.filterwarnings("ignore::longterm.errors.OverspentWarning")
def test_the_total_is_all_that_was_ever_spent(tmp_path, url):
    """Over periods, resets, corrections in both directions, expiries, and a clock that is set back."""
    clock, dice, expected, before = ManualClock(), random.Random(3), 0.0, 0.0
    options = {"period": "day", "expire_after": 6, "clock": clock}
    make = (lambda: opened(tmp_path, pacer, **options)) if url else lambda: LivePacer(pacer, **options)
    pacer = DualMirrorDescent(budget=64.0, horizon=50, step=0.1, start=0.5, mirror="euclidean")
    live, paid, open_bids = make(), {}, {}
    for t in range(150):
        bid = live.bid(0.5)
        open_bids[str(bid)] = bid.amount
        for old in open_bids.keys() - set(map(str, live.in_flight)):  # they expired, and count in full
            paid[old] = open_bids.pop(old)
            expected += paid[old]
        if t % 3:
            known = dice.choice(list(open_bids))
            paid[known] = 0.25 * dice.randrange(8)
            expected += paid[known]
            live.settle(known, paid[known], force=True)
            del open_bids[known]
        if t % 4 == 0 and paid:
            known = dice.choice(list(paid))
            new = 0.25 * dice.randrange(12)
            live.correct(known, new, force=True)
            expected += max(new - paid[known], 0.0)
            paid[known] = new
        if t % 11 == 0:
            live.reset(dice.choice([0.0, 500.0]))
        if t % 17 == 0:
            clock.step(dice.choice([86_400.0, 9 * 86_400.0, -3 * 86_400.0]))
        if t % 23 == 0 and url:
            live.close()
            live = make()
        total = live.metrics()["total"]
        assert total >= before
        assert total == pytest.approx(expected, rel=1e-13)
        before = total
    live.close()
