"""Accounts under choosers and pacers: whole units, shared by several objects, leased by several processes."""

import math

import numpy as np
import pytest
from tests.support.clocks import ManualClock

from longterm import Ledger
from longterm.errors import BrokenBoundWarning, InputError, OutOfBudgetError
from longterm.money import (
    EXP3IX,
    Budget,
    Chooser,
    DualMirrorDescent,
    ExcessHold,
    HedgeDual,
    LeasedAccount,
    LivePacer,
    PrimalDual,
    SharedAccount,
)
from longterm.money.ledger.accounts import Balance, to_units
from longterm.storage.contents import rename


def rule(limit=1000.0):
    return PrimalDual(EXP3IX(2), HedgeDual(), Budget(limit, largest=1.0), horizon=10_000)


def pacer():
    return DualMirrorDescent(budget=1000.0, horizon=100, step=0.1, start=0.5, mirror="euclidean")


def spend(chooser, cost, requests):
    """Return the number of requests that were answered."""
    answered = 0
    for _ in range(requests):
        choice = chooser.act(costs=[cost, cost])
        if choice.action is not None:
            chooser.settle(choice, 0.5, cost)
            answered += 1
    return answered


@pytest.mark.parametrize(
    ("money", "units", "whole"),
    [
        (0.4, 1.0, 1),
        (0.0, 1.0, 0),
        (0.07, 100, 7),  # 7.000000000000001 in floats
        (0.29, 100, 29),  # 28.999999999999996
        (1.1, 10, 11),
        (1.0000001, 1.0, 2),
        (1e9, 1e8, 10**17),
        (2**53 + 2, 1, 2**53 + 2),
        (np.float64(2.5), 2, 5),
        (np.int64(3), 1.5, 5),
    ],
)
def test_money_is_rounded_up_to_whole_units(money, units, whole):
    account = SharedAccount("a", units=units)
    assert account.cost(money) == account.amount(money) == whole


@pytest.mark.parametrize(
    "money", [-1.0, math.nan, math.inf, 10**400, 1e308, "1", None, True, np.ma.masked, np.array(1.0), 1j, [1]]
)
def test_what_is_no_money(money):
    with pytest.raises(InputError, match="cost"):
        to_units("cost", money, 1.0)


def test_the_unit_has_no_default(ledger):
    ledger.add_account("a", 10)
    for make in (lambda: SharedAccount("a"), lambda: LeasedAccount(ledger, "a", slice=5)):
        with pytest.raises(TypeError, match="units"):
            make()


@pytest.mark.parametrize("kind", ["shared", "leased"])
def test_small_costs_are_not_free(ledger, tmp_path, kind):
    ledger.add_account("a", 10)
    if kind == "shared":
        chooser = Chooser.open(
            tmp_path / "service.db", rule(), account=SharedAccount("a", units=1), durability="relaxed"
        )
    else:
        chooser = Chooser(rule(), account=LeasedAccount(ledger, "a", slice=5, units=1))
    assert spend(chooser, 0.4, 30) == 10
    assert ledger.balance("a") == Balance(10, 10, 0)
    assert chooser.act(costs=[0.0, 0.4]).action == 0  # what is free is admitted


def test_an_amount_that_fits_is_not_refused_by_rounding(ledger, tmp_path):
    """0.07 · 100 is 7.000000000000001 in floats, and 7 units are enough."""
    ledger.add_account("a", 7)
    path, account = tmp_path / "service.db", SharedAccount("a", units=100)
    with Chooser.open(path, rule(), account=account, durability="relaxed") as chooser:
        assert spend(chooser, 0.07, 2) == 1
    assert ledger.balance("a").spent == 7


def test_an_account_with_a_reserve_refuses_what_may_exceed_it(tmp_path):
    with Ledger.open(tmp_path / "s.db", durability="relaxed") as ledger:
        ledger.add_account("a", 100, reserve=10)
        account, holds = SharedAccount("a", units=100), ExcessHold(0.5, 1.0, warm_up=1)
        with Chooser.open(tmp_path / "s.db", rule(), account=account, holds=holds, durability="relaxed") as chooser:
            first = chooser.act(costs=[0.9, 0.9])
            chooser.settle(first, 0.5, 0.02)  # the hold is 0.01 from now on, the largest cost stays 0.9
            assert first.action is not None
            for allowed in ([True, False], [False, True]):
                chooser.settle(chooser.act(costs=[0.9, 0.9], allowed=allowed), 0.5, 0.02)
            assert chooser.act(costs=[0.9, 0.9]).action is not None
            assert chooser.act(costs=[0.9, 0.9]).action is None  # two of them may cost 180 of 110
        assert ledger.balance("a").spent == 6


def test_a_calibrated_hold_of_0_is_refused_above_the_limit(ledger, tmp_path):
    ledger.add_account("a", 10)
    options = {
        "account": SharedAccount("a", units=1),
        "holds": ExcessHold(0.5, 1.0, warm_up=1),
        "durability": "relaxed",
    }
    with Chooser.open(tmp_path / "service.db", rule(), **options) as chooser:
        for _ in range(8):
            chooser.settle(chooser.act(costs=[1.0, 1.0]), 0.5, 0.0)
        ledger.hold("a", 10, "other")
        ledger.settle("other", 20)
        assert chooser.act(costs=[1.0, 1.0]).action is None
        assert chooser.act(costs=[0.0, 0.0]).action is not None


def test_one_account_object_serves_several_choosers(ledger, tmp_path):
    ledger.add_account("a", 5)
    path, account = tmp_path / "service.db", SharedAccount("a", units=1)
    with Ledger.open(tmp_path / "other.db", durability="relaxed") as other:
        other.add_account("a", 10**6)
        one = Chooser.open(path, rule(), name="one", account=account, durability="relaxed")
        two = Chooser.open(path, rule(), name="two", account=account, durability="relaxed")
        three = Chooser.open(tmp_path / "other.db", rule(), account=account, durability="relaxed")
        bids = LivePacer.open(path, pacer(), account=account, durability="relaxed")
        assert spend(one, 1.0, 2) + spend(two, 1.0, 2) == 4
        assert spend(three, 1.0, 10) == 10
        assert bids.bid(4.0).amount == 1.0
        assert spend(one, 1.0, 10) + spend(two, 1.0, 10) == 0
        assert ledger.balance("a") == Balance(5, 4, 1)
        assert other.balance("a") == Balance(10**6, 10, 0)
        for opened in (one, two, three, bids):
            opened.close()


def test_a_chooser_that_is_renamed_settles_its_holds(ledger, tmp_path):
    ledger.add_account("a", 5)
    path, account = tmp_path / "service.db", SharedAccount("a", units=1)
    with Chooser.open(path, rule(), name="old", account=account, durability="relaxed") as chooser:
        choice = str(chooser.act(costs=[1.0, 1.0]))
    rename(path, "old", "new")
    with Chooser.open(path, rule(), name="new", account=account, durability="relaxed") as chooser:
        chooser.settle(choice, 0.5, 1.0)
    assert ledger.balance("a") == Balance(5, 1, 0)


def leased(ledger, **options):
    return LeasedAccount(ledger, "a", **{"slice": 10, "units": 1, "seconds": 60.0, **options})


def test_idle_leases_do_not_overspend(tmp_path):
    """Three choosers that spend, wait until their slices have ended, and spend again."""
    clock = ManualClock()
    with Ledger.open(tmp_path / "s.db", durability="relaxed", clock=clock) as ledger:
        ledger.add_account("a", 10)
        choosers = [Chooser(rule(), account=leased(ledger)) for _ in range(3)]
        answered = 0
        for _ in range(3):
            for chooser in choosers:
                answered += spend(chooser, 1.0, 9)
                clock.advance(61)
        assert answered == 10
        for chooser in choosers:
            chooser.act(costs=[1.0, 1.0])
        assert ledger.balance("a") == Balance(10, 10, 0)


def test_costs_of_a_leased_account_are_reported_while_it_is_used(tmp_path):
    clock = ManualClock()
    with Ledger.open(tmp_path / "s.db", durability="relaxed", clock=clock) as ledger:
        ledger.add_account("a", 100)
        chooser = Chooser(rule(), account=leased(ledger, slice=50))
        spend(chooser, 1.0, 3)
        assert ledger.balance("a") == Balance(100, 1, 49)  # the first settlement reports, later ones after a time
        clock.advance(6.1)
        spend(chooser, 1.0, 3)
        assert ledger.balance("a") == Balance(100, 4, 46)


def test_requests_stay_open_longer_than_their_slice(tmp_path):
    clock = ManualClock()
    with Ledger.open(tmp_path / "s.db", durability="relaxed", clock=clock) as ledger:
        ledger.add_account("a", 10)
        account = leased(ledger)
        chooser = Chooser(rule(), account=account)
        choices = [chooser.act(costs=[1.0, 1.0]) for _ in range(4)]
        clock.advance(100)
        assert spend(chooser, 1.0, 20) == 6
        with pytest.warns(BrokenBoundWarning):
            chooser.settle(choices[0], 0.5, 2.0)
        for choice in choices[1:3]:
            chooser.settle(choice, 0.5, 0.0)
        account.close()
        assert ledger.balance("a") == Balance(10, 9, 0)  # 6, 2 of the first choice, and 1 held by the last


def test_an_empty_lease_admits_what_is_free(ledger):
    ledger.add_account("a", 0)
    chooser = Chooser(rule(), account=leased(ledger))
    choice = chooser.act(costs=[0.0, 1.0])
    assert choice.action == 0
    live = LivePacer(pacer(), account=leased(ledger))
    bid = live.bid(1.0)
    assert bid.amount == 0.0
    live.settle(bid, 0.0)
    with pytest.warns(BrokenBoundWarning):
        chooser.settle(choice, 0.5, 3.0)  # it was not free after all
    assert ledger.balance("a").spent == 3


def test_a_slice_that_ends_between_two_steps_of_a_request_is_replaced(tmp_path):
    clock = ManualClock()
    with Ledger.open(tmp_path / "s.db", durability="relaxed", clock=clock) as ledger:
        ledger.add_account("a", 20)
        account = leased(ledger)
        assert account.room(3.0)[0] == 10.0
        clock.advance(61)
        account.hold("key", 3.0, 3.0)
        account.settle("key", 2.0)
        account.close()
        assert ledger.balance("a") == Balance(20, 2, 0)


def test_an_interrupted_request_does_not_keep_its_money(ledger):
    ledger.add_account("a", 10)
    account = leased(ledger)
    account.room(3.0)
    for _ in range(5):  # the same request again and again, because its object did not get to open it
        account.hold("key", 3.0, 3.0)
    account.settle("key", 2.0)
    account.settle("key", 2.0)
    with pytest.raises(OutOfBudgetError):
        account.hold("other", 9.0, 9.0)
    account.close()
    assert ledger.balance("a") == Balance(10, 2, 0)


@pytest.mark.parametrize("closing", ["release", "settle", "long ago"])
@pytest.mark.parametrize("kind", ["chooser", "pacer"])
def test_a_hold_that_a_person_closes_does_not_stop_the_object(tmp_path, clock, kind, closing):
    """It stopped every later call of the object, since its expiry came first and raised."""
    url, account = tmp_path / "s.db", SharedAccount("x", units=10)
    with Ledger.open(url, durability="relaxed", clock=clock) as ledger:
        ledger.add_account("all", 1000)
        ledger.add_account("x", 1000, parent="all")
        options = {"account": account, "clock": clock, "max_age": 3e6, "durability": "relaxed"}
        if kind == "chooser":
            made = Chooser.open(url, rule(), **options)
            ask, settle = lambda: made.act(costs=[1.0, 1.0]), lambda asked, cost: made.settle(asked, 0.5, cost)
        else:
            made = LivePacer.open(url, pacer(), **options)
            ask, settle = lambda: made.bid(1.0), made.settle
        first, second = ask(), ask()
        held = ledger.open_holds()
        for hold in held:
            ledger.settle(hold.key, 3) if closing == "settle" else ledger.release(hold.key)
        if closing == "long ago":
            clock.advance(20 * 86_400)
            for number in range(256):
                ledger.hold("x", 0, f"{number}")
        settle(first, 0.7)
        assert {tuple(balance)[1:] for balance in ledger.accounts.values()} == {(10 if closing == "settle" else 7, 0)}
        clock.advance(3.1e6)
        settle(ask(), 0.1)  # the second one has expired, and counts in full
        assert {tuple(balance)[1:] for balance in ledger.accounts.values()} == {(8 + held[1].held, 0)}
        made.correct(second, 0.2)
        assert {tuple(balance)[1:] for balance in ledger.accounts.values()} == {(10, 0)}
        made.close()


def test_another_thing_is_no_account(tmp_path):
    url = tmp_path / "s.db"
    with Ledger.open(url, durability="relaxed") as ledger:
        ledger.add_account("x", 10)
        leased = LeasedAccount(ledger, "x", slice=5, units=1)
        for given in (leased, 3, "x"):
            with pytest.raises(InputError, match="SharedAccount"):
                Chooser.open(url, rule(), account=given)
            with pytest.raises(InputError, match="SharedAccount"):
                LivePacer.open(url, pacer(), account=given)
        for given in (SharedAccount("x", units=1), 3, "x"):
            with pytest.raises(InputError, match="LeasedAccount"):
                Chooser(rule(), account=given)
            with pytest.raises(InputError, match="LeasedAccount"):
                LivePacer(pacer(), account=given)
        with pytest.raises(InputError, match="160"):
            Chooser.open(url, rule(), name="n" * 161, account=SharedAccount("x", units=1))
        assert ledger.balance("x") == Balance(10, 0, 0)
