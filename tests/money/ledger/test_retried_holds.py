"""A repeated hold returns the first answer or an error that says why, and what it does depends on the clock alone."""

import pytest

from longterm import Ledger
from longterm.errors import InputError, OutOfBudgetError
from longterm.money import ExcessHold
from longterm.money.ledger.accounts import Balance


def test_a_retried_hold_is_not_admitted_without_money(ledger, clock):
    ledger.add_account("a", 10)
    ledger.hold("a", 10, "first", seconds=60)
    clock.advance(60)
    ledger.hold("a", 10, "other")
    with pytest.raises(OutOfBudgetError):
        ledger.hold("a", 10, "first", seconds=60)
    ledger.settle("other", 4)
    with pytest.raises(OutOfBudgetError):
        ledger.hold("a", 10, "first", seconds=60)
    ledger.reset("a")
    assert ledger.hold("a", 10, "first", seconds=60) == 10
    assert ledger.balance("a") == Balance(10, 0, 10)


def test_an_expired_hold_is_admitted_again_before_anybody_closes_it(ledger, clock):
    ledger.add_account("a", 10)
    ledger.hold("a", 10, "k", seconds=60)
    clock.advance(61)
    assert ledger.hold("a", 10, "k", seconds=60) == 10
    assert ledger.balance("a").held == 10
    clock.advance(59)
    assert ledger.balance("a").held == 10  # the time of the second admission counts
    ledger.settle("k", 10)
    assert ledger.balance("a") == Balance(10, 10, 0)


def test_open_and_settled_holds_answer_with_their_first_amount(tmp_path):
    rule = ExcessHold(share=0.5, step=1.0, warm_up=1)
    with Ledger.open(tmp_path / "s.db", holds=rule, durability="relaxed") as ledger:
        ledger.add_account("a", 1000)
        ledger.hold("a", 100, "1", group="m")
        ledger.settle("1", 40)
        assert ledger.hold("a", 100, "2", group="m") == 20
        for spent in (4, 12, 30):
            ledger.report("2", spent)
            assert ledger.hold("a", 100, "2", group="m") == 20
        ledger.settle("2", 50)
        assert ledger.hold("a", 100, "2", group="m") == 20
        for key in ("1", "2"):
            with pytest.raises(InputError, match="another amount"):
                ledger.hold("a", 99, key, group="m")
        assert ledger.balance("a") == Balance(1000, 90, 0)


def test_a_released_key_is_refused(ledger):
    ledger.add_account("a", 10)
    ledger.hold("a", 10, "k")
    ledger.release("k")
    for amount, why in ((10, "released"), (99, "another amount")):
        with pytest.raises(InputError, match=why):
            ledger.hold("a", amount, "k")
    assert ledger.balance("a").held == 0


@pytest.mark.parametrize("is_swept", [False, True])
def test_expiry_depends_on_the_clock_alone(ledger, clock, is_swept):
    """Whether other calls came in between changes no answer."""
    ledger.add_account("a", 10)
    for key in ("released", "settled", "reported"):
        ledger.hold("a", 3, key, seconds=10)
    clock.advance(10)
    if is_swept:
        ledger.hold("a", 1, "other")
        ledger.release("other")
    ledger.report("reported", 2)
    ledger.release("released")
    ledger.settle("settled", 3)
    with pytest.raises(InputError, match="released"):
        ledger.settle("released", 3)
    assert ledger.balance("a") == Balance(10, 5, 0)
    assert ledger.open_holds() == []


def test_reads_close_expired_holds(ledger, clock):
    ledger.add_account("a", 10)
    for number, read in enumerate(
        (lambda: ledger.metrics()["open"], lambda: len(ledger.open_holds()), lambda: ledger.accounts["a"].held)
    ):
        ledger.hold("a", 10, str(number), seconds=10)
        clock.advance(10)
        assert read() == 0


def test_a_hold_that_expired_long_after_it_was_opened_can_be_settled(ledger, clock, monkeypatch):
    monkeypatch.setattr("longterm.money.ledger.ledger_rows.PRUNE_EVERY", 10)
    ledger.add_account("a", 1000)
    ledger.hold("a", 10, "long", seconds=8 * 86_400)
    clock.advance(8 * 86_400 + 900)
    for number in range(20):
        ledger.hold("a", 1, str(number))
        ledger.release(str(number))
    ledger.settle("long", 10)
    assert ledger.balance("a").spent == 10


def test_keys_are_remembered_for_a_day(ledger, clock):
    ledger.add_account("a", 1000)
    ledger.hold("a", 10, "k")
    ledger.settle("k", 7)
    clock.advance(86_399)
    assert ledger.hold("a", 10, "k") == 10
    ledger.settle("k", 7)
    assert ledger.balance("a") == Balance(1000, 7, 0)
    clock.advance(1)
    ledger.hold("a", 20, "k")  # another request
    assert ledger.balance("a") == Balance(1000, 7, 20)
    ledger.settle("k", 15)
    assert [(entry.key, entry.old, entry.new) for entry in ledger.record()] == [("k", 20, 15), ("k", 10, 7)]


def test_the_time_to_remember_keys_is_an_argument(tmp_path, clock):
    with Ledger.open(tmp_path / "s.db", remember=10.0, keep=10.0, clock=clock) as ledger:
        ledger.add_account("a", 100)
        for wait, held in ((0, 0), (9, 0), (1, 10)):
            clock.advance(wait)
            ledger.hold("a", 10, "k")
            assert ledger.balance("a").held == (held if wait else 10)
            if not wait:
                ledger.settle("k", 1)
    for options in ({"remember": 0}, {"keep": "long"}):
        with pytest.raises(InputError, match=next(iter(options))):
            Ledger.open(tmp_path / "t.db", **options)


def test_the_record_is_kept_for_its_time(tmp_path, clock, monkeypatch):
    monkeypatch.setattr("longterm.money.ledger.ledger_rows.PRUNE_EVERY", 1)
    with Ledger.open(tmp_path / "s.db", remember=10.0, keep=1000.0, clock=clock) as ledger:
        ledger.add_account("a", 100)
        ledger.hold("a", 10, "old")
        ledger.settle("old", 10)
        ledger.set_limit("a", 200)
        clock.advance(1000)
        ledger.hold("a", 1, "1")
        assert [entry.what for entry in ledger.record()] == ["limit", "settled"]
        clock.advance(1)
        ledger.hold("a", 1, "2")
        assert ledger.record() == []


def test_only_what_is_free_is_admitted_above_the_limit(tmp_path):
    """A calibrated hold of 0 is not free: its request may cost something."""
    with Ledger.open(tmp_path / "s.db", holds=ExcessHold(0.5, warm_up=1), durability="relaxed") as ledger:
        ledger.add_account("a", 10)
        for number in range(5):
            ledger.hold("a", 5, str(number), group="free")
            ledger.settle(str(number), 0)
        ledger.hold("a", 10, "x")
        ledger.settle("x", 25)
        with pytest.raises(OutOfBudgetError):
            ledger.hold("a", 5, "y", group="free")
        assert ledger.hold("a", 0, "z") == 0
