"""Leases: at every moment Σ spent + Σ leases ≤ limit, whatever becomes of their holders."""

import copy
import math
import os
import pickle
import subprocess
import sys
import time

import pytest

from longterm import Ledger
from longterm.errors import DatabaseError, InputError, InUseError, OutOfBudgetError
from longterm.money.ledger.accounts import Balance
from longterm.storage.database import Database


@pytest.fixture
def account(ledger):
    ledger.add_account("a", 100)
    return ledger


def test_a_lease_is_spent_from_memory(account):
    with account.lease("a", 60, seconds=3600) as lease:
        assert account.balance("a") == Balance(100, 0, 60)
        assert lease.spend(40)
        assert not lease.spend(21)
        for _ in range(2):
            lease.report()
        assert account.balance("a") == Balance(100, 40, 20)
        assert lease.spend(5)
        assert lease.available == 15
    assert account.balance("a") == Balance(100, 45, 0)
    assert not lease.spend(1)
    lease.close()
    assert account.balance("a") == Balance(100, 45, 0)


def test_the_slice_of_a_dead_process_counts_until_a_person_releases_it(account, clock):
    lease = account.lease("a", 60, seconds=30, who="worker 7")
    lease.spend(40)
    lease.report()
    lease.spend(15)
    clock.advance(10**6)  # the process died without a report of the last 15
    assert account.balance("a") == Balance(100, 40, 20)
    with pytest.raises(OutOfBudgetError):
        account.hold("a", 41, "other")
    assert account.metrics()["late"] == 1
    (late,) = account.open_holds()
    assert (late.who, late.is_lease, late.ends_in) == ("worker 7", True, 30.0 - 10**6)
    account.release(late.key)
    assert account.balance("a") == Balance(100, 40, 0)
    assert account.metrics()["late"] == 0
    lease.close()  # it was alive after all: what it spent counts
    assert account.balance("a") == Balance(100, 55, 0)


def test_a_lease_is_not_released_before_its_end(account, clock):
    lease = account.lease("a", 60, seconds=30)
    clock.advance(29)
    with pytest.raises(InputError, match="has not expired"):
        account.release(lease.key)
    account.release(lease.key, force=True)
    assert account.balance("a").held == 0


@pytest.mark.parametrize("move", ["advance", "step"])
def test_a_lease_ends_for_its_holder_before_it_ends_in_the_ledger(account, clock, move):
    """A machine that was suspended, or whose clock was set, has lost its lease."""
    lease = account.lease("a", 10, seconds=60)
    assert lease.spend(1)
    getattr(clock, move)(54)
    assert lease.available == 0
    assert not lease.spend(1)
    assert account.open_holds()[0].ends_in == 6.0


def test_a_wall_clock_that_is_set_back_does_not_prolong_a_lease(account, clock):
    lease = account.lease("a", 10, seconds=60)
    clock.step(-3600)
    clock.advance(54)
    assert not lease.spend(1)


def wait_for(ledger, balance):
    for _ in range(500):
        if ledger.balance("a") == balance:
            break
        time.sleep(0.01)
    assert ledger.balance("a") == balance


def test_an_idle_holder_reports_by_itself(tmp_path):
    with Ledger.open(tmp_path / "s.db", durability="relaxed") as ledger:
        ledger.add_account("a", 100)
        lease = ledger.lease("a", 60, seconds=0.2)
        lease.spend(13)
        lease.hold(7)
        del lease
        wait_for(ledger, Balance(100, 13, 7))


def test_open_requests_of_an_ended_lease_stay_held(account, clock):
    lease = account.lease("a", 60, seconds=30)
    assert lease.hold(20)
    assert lease.hold(10)
    assert lease.spend(5)
    lease.close()
    assert account.balance("a") == Balance(100, 5, 30)
    lease.settle(20, 12)
    assert account.balance("a") == Balance(100, 17, 10)
    lease.settle(10, 25)  # more than was announced: the money is gone
    assert account.balance("a") == Balance(100, 42, 0)
    assert account.open_holds() == []


def test_reports_that_overtake_each_other_change_nothing(account):
    key = account.lease("a", 60, seconds=30).key
    for spent, held in ((10, 30), (20, 10), (10, 30), (25, 0), (20, 10)):
        account.report(key, spent, held=held)
    assert account.balance("a") == Balance(100, 25, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_lease_is_not_spent_on_both_sides_of_a_fork(account):
    lease = account.lease("a", 10, seconds=60)
    child = os.fork()
    if child == 0:
        refused = 0
        try:
            for call in (lambda: lease.spend(1), lambda: lease.hold(1), lease.report, lease.close):
                try:
                    call()
                except InUseError:
                    refused += 1
        finally:
            os._exit(0 if refused == 4 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert lease.spend(10)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InUseError):
            duplicate(lease)


@pytest.mark.slow
def test_a_process_that_ends_closes_its_leases(tmp_path):
    program = (
        "from longterm import Ledger; import sys\n"
        "ledger = Ledger.open(sys.argv[1]); ledger.add_account('a', 100)\n"
        "lease = ledger.lease('a', 60, seconds=3600); lease.spend(13); lease.hold(7)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "s.db")], check=True)
    with Ledger.open(tmp_path / "s.db") as ledger:
        assert ledger.balance("a") == Balance(100, 20, 0)


def test_a_lease_that_cannot_report_is_closed_later(account, clock, monkeypatch):
    """The end of a lease, while the database is away, and after it is back."""
    monkeypatch.setattr("longterm.money.ledger.lease.RETRY_SECONDS", 0.01)
    lease = account.lease("a", 60, seconds=30)
    lease.hold(9)
    write = Database.write_locked

    def fail(self, statements, rows=None):
        raise DatabaseError(self.path, "unavailable", "the server is away", "Wait")

    monkeypatch.setattr(Database, "write_locked", fail)
    with pytest.raises(DatabaseError):
        lease.close()
    lease.settle(9, 4)  # it does not raise: the cost is reported later
    with pytest.raises(DatabaseError):
        account.lease("a", 1, seconds=30)
    monkeypatch.setattr(Database, "write_locked", write)
    wait_for(account, Balance(100, 4, 0))


def test_a_ledger_that_is_closed_closes_its_leases(tmp_path):
    for spent in (13, 26):
        with Ledger.open(tmp_path / "s.db") as ledger, Ledger.open(tmp_path / "s.db") as other:
            ledger.add_account("a", 100)
            first, second = ledger.lease("a", 60, seconds=3600), other.lease("a", 10, seconds=3600)
            first.spend(13)
            ledger.close()
            assert not first.spend(1)
            assert second.available == 10
            assert other.balance("a").held == 10
            assert other.balance("a").spent == spent


def test_a_lease_settles_no_more_than_it_holds(ledger):
    """A larger amount gave the difference to spend again; a part of a unit broke every later report."""
    ledger.add_account("a", 100)
    with ledger.lease("a", 10, 3600.0) as lease:
        lease.hold(4)
        for held, cost in (
            (5, 0),
            (-1, 0),
            (4, -3),
            (0.5, 1),
            (4, 0.5),
            (4, math.nan),
            ("4", 4),
            (None, 4),
            (4, 10**400),
        ):
            with pytest.raises(InputError):
                lease.settle(held, cost)
        assert (lease.held, lease.spent, lease.available) == (4, 0, 6)
        lease.settle(4, 3)
    assert ledger.balance("a") == Balance(100, 3, 0)


def test_what_a_person_puts_right_counts_and_a_late_report_above_it(ledger, clock):
    ledger.add_account("a", 100)
    lease = ledger.lease("a", 10, 60.0)
    lease.spend(2)
    lease.report()
    lease.spend(3)
    ledger.release(lease.key, force=True)
    assert ledger.correct(lease.key, 7).old == 2
    lease.report()  # 5 in all, which the person took for 7
    assert ledger.balance("a") == Balance(100, 7, 0)
    lease.spend(4)
    lease.close()
    lease.close()
    assert ledger.balance("a") == Balance(100, 9, 0)
    assert ledger.correct(lease.key, 9).old == 9
    assert ledger.balance("a") == Balance(100, 9, 0)


def test_a_report_after_a_person_released_the_lease_has_an_entry(ledger, clock):
    """The search found it: the account counted what the record of the release did not show."""
    ledger.add_account("a", 100)
    lease = ledger.lease("a", 10, 60.0)
    lease.spend(3)
    ledger.release(lease.key, force=True)
    lease.close()
    lease.close()
    assert ledger.balance("a") == Balance(100, 3, 0)
    entries = [(one.what, one.old, one.new) for one in ledger.record()]
    assert sorted(entries) == [("corrected", 0, 3), ("released", 10, 0)]
