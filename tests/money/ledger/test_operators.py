"""What a person changes in a ledger: corrections, limits, periods, resets, releases; lists and the record."""

import contextlib
import sqlite3

import pytest

from longterm import Ledger
from longterm.errors import DatabaseError, InputError, OutOfBudgetError
from longterm.money import DualMirrorDescent, LivePacer, SharedAccount
from longterm.money.ledger.accounts import Balance, LedgerCorrection
from longterm.storage.contents import rename

DAY = 86_400


@pytest.fixture
def tree(ledger, clock):
    ledger.add_account("year", 1000)
    ledger.add_account("day", 100, parent="year", period="day")
    return ledger


def spend(ledger, key, amount, account="day"):
    ledger.hold(account, amount, key, who="alice")
    ledger.settle(key, amount)


def test_a_correction_counts_in_the_account_and_its_parents(tree):
    spend(tree, "k", 90)
    assert tree.correct("k", 9, correction="c", who="bob", note="a typo") == LedgerCorrection("day", "k", 90, 9, ())
    assert tree.balance("day") == Balance(100, 9, 0)
    assert tree.balance("year") == Balance(1000, 9, 0)
    assert tree.correct("k", 20).old == 9
    assert tree.correct("k", 9, correction="c") == LedgerCorrection("day", "k", 90, 9, ())  # a repeated call
    assert tree.balance("year").spent == 20
    with pytest.raises(InputError, match="already used to correct"):
        tree.correct("k", 8, correction="c")
    tree.settle("k", 90)  # a repeated settlement, too
    assert tree.balance("year").spent == 20
    found = [(one.what, one.old, one.new, one.who, one.note) for one in tree.record()]
    assert sorted(found) == [
        ("corrected", 9, 20, "", ""),
        ("corrected", 90, 9, "bob", "a typo"),
        ("settled", 90, 90, "alice", ""),
    ]


def test_a_closed_period_is_corrected_in_the_present_one(tree, clock):
    spend(tree, "k", 50)
    clock.advance(DAY)
    spend(tree, "today", 30)
    assert tree.correct("k", 60).moved == ("day",)
    assert (tree.balance("day").spent, tree.balance("year").spent) == (40, 90)
    tree.correct("k", 0)
    assert (tree.balance("day").spent, tree.balance("year").spent) == (0, 30)
    assert "corrected in the present one" in tree.record()[0].note


def test_a_key_that_was_forgotten_has_no_corrections(tree, clock):
    spend(tree, "k", 50, "year")
    tree.correct("k", 10, correction="c")
    clock.advance(DAY)
    spend(tree, "k", 20, "year")
    assert tree.correct("k", 30, correction="c").old == 20
    assert tree.balance("year").spent == 10 + 30
    assert [entry.key for entry in tree.record()] == ["k"] * 4


@pytest.mark.parametrize("column", ["made", "key", "moved", "old"])
@pytest.mark.parametrize("value", [-1, "text", b"bytes", '{"a": 1}', "[1]"])
def test_a_forged_entry_is_refused_or_harmless(tmp_path, column, value):
    with Ledger.open(tmp_path / "s.db", durability="relaxed") as ledger:
        ledger.add_account("a", 100)
        ledger.hold("a", 5, "k")
        ledger.settle("k", 5)
        ledger.correct("k", 4, correction="c")
        with sqlite3.connect(tmp_path / "s.db") as connection:
            connection.execute(f"UPDATE longterm_entries SET {column} = ?", (value,))
        connection.close()
        for call in (ledger.record, lambda: ledger.correct("k", 4, correction="c")):
            with contextlib.suppress(DatabaseError):
                call()


@pytest.mark.parametrize("column", ["amount", "answer", "status", "lease", "expires", "closed", "who"])
@pytest.mark.parametrize("value", [-1, 2**62, 1.5, "text", b"bytes", None, 1])
def test_a_forged_hold_is_refused_or_harmless(tmp_path, column, value):
    with Ledger.open(tmp_path / "s.db", durability="relaxed") as ledger:
        ledger.add_account("a", 100)
        ledger.hold("a", 5, "k")
        connection = sqlite3.connect(tmp_path / "s.db")
        with contextlib.suppress(sqlite3.IntegrityError):
            connection.execute(f"UPDATE longterm_holds SET {column} = ?", (value,))
            connection.commit()
        connection.close()
        for call in (
            ledger.open_holds,
            ledger.record,
            lambda: ledger.hold("a", 5, "k"),
            lambda: ledger.settle("k", 4),
            lambda: ledger.correct("k", 4),
            ledger.metrics,
        ):
            with contextlib.suppress(DatabaseError, InputError):
                call()


def test_what_cannot_be_corrected(tree):
    tree.hold("day", 5, "open")
    for key, why in (("open", "is open"), ("none", "no hold")):
        with pytest.raises(InputError, match=why):
            tree.correct(key, 1)
    tree.release("open")
    tree.correct("open", 3)  # it cost something after all
    assert tree.balance("day") == Balance(100, 3, 0)


def test_an_absurd_cost_needs_force(tree):
    tree.hold("day", 5, "k")
    for call in (tree.settle, tree.report):
        with pytest.raises(InputError, match="100 times 5"):
            call("k", 501)
    assert tree.balance("day") == Balance(100, 0, 5)
    tree.settle("k", 500)
    with pytest.raises(InputError, match="with force"):
        tree.correct("k", 501)
    tree.correct("k", 501, force=True)
    assert tree.balance("year").spent == 501


def test_a_huge_cost_does_not_break_the_ledger(tree):
    for key in "abc":
        tree.hold("year", 0, key)
    tree.settle("a", 2**61 - 1, force=True)
    tree.settle("b", 2**61 - 1, force=True)
    with pytest.raises(InputError, match="out of range"):
        tree.settle("c", 2**61 - 1, force=True)
    for key in "ab":
        tree.correct(key, 1)
    spend(tree, "d", 5, "year")
    assert tree.balance("year") == Balance(1000, 7, 0)


def test_limits_and_reserves_change_at_run_time(tree):
    spend(tree, "k", 90)
    with pytest.raises(OutOfBudgetError):
        tree.hold("day", 20, "next")
    tree.set_limit("day", 120, reserve=5, who="bob", note="a busy day")
    tree.set_limit("day", 120)
    assert tree.hold("day", 20, "next") == 20
    found = [(one.what, one.old, one.new, one.who) for one in tree.record() if one.what != "settled"]
    assert found == [("reserve", None, 5, "bob"), ("limit", 100, 120, "bob")]
    with pytest.raises(InputError, match="no account"):
        tree.set_limit("nobody", 1)


def test_a_period_changes_at_run_time(tree, clock):
    spend(tree, "k", 90)
    tree.set_period("day", "month", timezone="Europe/Berlin", note="monthly from now on")
    clock.advance(DAY)
    assert tree.balance("day").spent == 90
    clock.advance(31 * DAY)
    assert tree.balance("day").spent == 0
    spend(tree, "l", 50)
    tree.set_period("day", None, rate=10)
    clock.advance(3)
    assert tree.balance("day").spent == 20
    for options in ({"period": "year"}, {"period": ["day"]}, {"period": "day", "rate": 1}, {"timezone": None}):
        with pytest.raises(InputError):
            tree.set_period("day", **{"period": None, **options})


def test_a_reset_is_for_the_present_period(tree, clock):
    spend(tree, "k", 100)
    with pytest.raises(OutOfBudgetError):
        tree.hold("day", 1, "now")
    tree.reset("day", who="bob")
    assert tree.balance("day") == Balance(100, 0, 0)
    assert tree.balance("year").spent == 100
    tree.hold("day", 100, "now")
    tree.reset("day", 40)
    clock.advance(DAY)
    assert tree.balance("day") == Balance(100, 0, 100)


def test_a_clock_that_was_ahead_fills_no_period_but_its_own(tree, clock):
    """Once one call by a clock that was 20 days ahead filled a daily account for 20 days."""
    tree.set_limit("year", 10_000)
    spend(tree, "before", 60)
    clock.step(20 * DAY)
    spend(tree, "ahead", 90)
    clock.step(-20 * DAY)
    assert tree.balance("day") == Balance(100, 60, 0)  # the clock was put right in the same day
    with pytest.raises(OutOfBudgetError):
        tree.hold("day", 41, "more")
    for day in range(1, 20):
        clock.advance(DAY)
        spend(tree, f"day {day}", 100)
        with pytest.raises(OutOfBudgetError):
            tree.hold("day", 1, f"more {day}")
    clock.advance(DAY)
    assert tree.balance("day") == Balance(100, 90, 0)  # what was spent in its name counts
    clock.advance(DAY)
    assert tree.balance("day") == Balance(100, 0, 0)


def test_a_rate_gives_nothing_back_twice_after_a_clock_was_ahead_until_it_is_reset(ledger, clock):
    ledger.add_account("a", 10, rate=1)
    clock.step(20 * DAY)
    spend(ledger, "ahead", 10, account="a")
    clock.step(-20 * DAY)
    clock.advance(DAY)
    assert ledger.balance("a") == Balance(10, 10, 0)
    ledger.reset("a", 10)
    clock.advance(4.0)
    assert ledger.balance("a") == Balance(10, 6, 0)


def test_two_clocks_that_disagree_renew_no_period_twice(tree, clock):
    """Calls of a clock that is right alternate with those of one that is 3 days ahead."""
    tree.set_limit("year", 10_000)
    paid = 0
    for number in range(30):
        clock.step(3 * DAY if number % 2 else -3 * DAY if number else 0.0)
        try:
            spend(tree, str(number), 30)
            paid += 30
        except OutOfBudgetError:
            continue
    assert paid == 2 * 90


def test_open_holds_are_listed_with_their_age(tree, clock):
    tree.hold("day", 5, "first", seconds=60, who="alice")
    clock.advance(10)
    tree.hold("year", 7, "second")
    tree.report("first", 2)
    first, second = tree.open_holds()
    assert first == ("first", "day", 3, 2, 10.0, 50.0, False, "alice")
    assert second == ("second", "year", 7, 0, 0.0, None, False, "")
    assert tree.open_holds("year") == [second]


def test_the_record_says_who_when_and_how_much(tree, clock):
    spend(tree, "one", 5)
    tree.hold("day", 7, "two", seconds=10)
    clock.advance(10)
    tree.hold("day", 8, "three")
    tree.release("three", who="bob")
    found = [(one.time, one.what, one.key, one.old, one.new, one.who) for one in tree.record()]
    start = clock.wall() - 10
    assert sorted(found[:2]) == [
        (start + 10, "expired", "two", 7, 0, ""),
        (start + 10, "released", "three", 8, 0, "bob"),
    ]
    assert found[2] == (start, "settled", "one", 5, 5, "alice")
    assert len(tree.record(since=start + 5)) == 2
    assert len(tree.record(most=1)) == 1


SURROGATE = "a\ud800"


@pytest.mark.parametrize(
    "bad", [SURROGATE, "a\0b", "", "x" * 201, b"a", 3, None, ["a"], 10**5000], ids=lambda bad: type(bad).__name__
)
def test_texts_that_no_database_can_store(tree, tmp_path, bad):
    calls = [
        lambda: tree.add_account(bad, 1),
        lambda: tree.balance(bad),
        lambda: tree.hold(bad, 1, "k"),
        lambda: tree.hold("day", 1, bad),
        lambda: tree.settle(bad, 1),
        lambda: tree.release(bad),
        lambda: tree.correct(bad, 1),
        lambda: tree.set_limit(bad, 1),
        lambda: Ledger.open(tmp_path / "t.db", unit=bad),
    ]
    if bad is not None:
        calls += [
            lambda: tree.hold("day", 1, "k", group=bad),
            lambda: tree.add_account("b", 1, parent=bad),
            lambda: tree.correct("k", 1, correction=bad),
        ]
    if bad not in ("", "x" * 201):
        calls += [
            lambda: tree.hold("day", 1, "k", who=bad),
            lambda: tree.add_account("b", 1, period=bad or ["day"]),
            lambda: tree.add_account("b", 1, period="day", timezone=bad),
        ]
    for call in calls:
        with pytest.raises(InputError):
            call()
    assert tree.accounts.keys() == {"day", "year"}


@pytest.mark.parametrize("bad", [10**400, 10**5000, -1, -1.5, True, [], "1"], ids=lambda bad: type(bad).__name__)
def test_amounts_that_are_none(tree, bad):
    for call in (tree.set_limit, tree.reset, tree.hold):
        with pytest.raises(InputError):
            call("day", bad, "k") if call == tree.hold else call("day", bad)
    with pytest.raises(InputError):
        tree.hold("day", 1, "k", seconds=bad)


def test_a_correction_is_known_for_as_long_as_its_hold(tmp_path, clock):
    """A clock that was ahead when the hold was settled made the correction old first, and it counted twice."""
    with Ledger.open(tmp_path / "s.db", durability="relaxed", clock=clock) as ledger:
        ledger.add_account("a", 1000)
        clock.step(20 * 86_400)
        ledger.hold("a", 100, "k")
        ledger.settle("k", 100)
        clock.step(-20 * 86_400)
        assert ledger.correct("k", 40, correction="c") == ("a", "k", 100, 40, ())
        clock.advance(8 * 86_400)
        for number in range(256):
            ledger.hold("a", 0, f"{number}")
        assert ledger.correct("k", 40, correction="c") == ("a", "k", 100, 40, ())
        assert ledger.correct("k", 30) == ("a", "k", 40, 30, ())
        assert ledger.balance("a").spent == 30


def test_times_are_stored_and_used_by_objects_too(tmp_path, clock):
    """A chooser or a process that did not name them deleted after 7 days what was to be kept for 60."""
    url = tmp_path / "s.db"
    options = {"durability": "relaxed", "clock": clock}
    with Ledger.open(url, keep=60 * DAY, remember=30 * DAY, **options) as ledger:
        ledger.add_account("a", 10**6)
        ledger.hold("a", 100, "k", seconds=60.0)
        ledger.hold("a", 1, "settled")
        ledger.settle("settled", 1)
    clock.advance(20 * DAY)
    pacer = DualMirrorDescent(budget=1000.0, horizon=1000, step=0.1, start=0.5, mirror="euclidean")
    with LivePacer.open(url, pacer, account=SharedAccount("a", units=1), **options) as live:
        for _ in range(300):
            live.settle(live.bid(1.0), 0.0)
    with Ledger.open(url, **options) as ledger:
        for number in range(300):
            ledger.hold("a", 0, f"{number}")
        assert ledger.hold("a", 1, "settled") == 1
        ledger.settle("k", 60)
        assert ledger.balance("a") == Balance(10**6, 61, 0)
    with Ledger.open(url, remember=DAY, **options) as ledger, pytest.raises(DatabaseError, match="unit"):
        Ledger.open(url, unit="cent", **options)
    with Ledger.open(url, **options) as ledger:
        ledger.hold("a", 1, "settled")  # it was forgotten
        assert ledger.balance("a").held == 1
    for wrong in (0, -1, float("nan"), "1", 1e10):
        with pytest.raises(InputError, match="keep"):
            Ledger.open(url, keep=wrong, **options)


def test_renaming_an_object_renames_only_its_own_holds(tmp_path, clock):
    """A person's key that began with its name was renamed as well, and the costs of corrections were lost."""
    url, options = tmp_path / "s.db", {"durability": "relaxed", "clock": clock}
    pacer = DualMirrorDescent(budget=1000.0, horizon=1000, step=0.1, start=0.5, mirror="euclidean")
    account = SharedAccount("a", units=10)
    with Ledger.open(url, **options) as ledger:
        ledger.add_account("a", 10**6)
        for key in ("request 1", "request abcdefabcdef-x", "request abcdefabcdef-", "request abcdefabcdeg-1"):
            ledger.hold("a", 10, key)
        others = {
            name: LivePacer.open(url, pacer, name=name, account=account, **options) for name in ("request", "request b")
        }
        bids = {name: live.bid(2.0) for name, live in others.items()}
        others["request"].settle(bids["request"], 2.0)
        others["request"].correct(bids["request"], 1.0, correction="c")
        for live in others.values():
            live.close()
        rename(url, "request", "new")
        for key in ("request 1", "request abcdefabcdef-x", "request abcdefabcdef-", "request abcdefabcdeg-1"):
            ledger.settle(key, 10)
        with LivePacer.open(url, pacer, name="request b", account=account, **options) as live:
            live.settle(bids["request b"], 0.0)
        assert ledger.balance("a") == Balance(10**6, 50, 0)
        with LivePacer.open(url, pacer, name="new", account=account, **options) as live:
            live.correct(bids["request"], 0.5)
        assert ledger.balance("a").spent == 45


def test_a_change_is_made_whole_or_not_at_all(tree):
    before = tree.settings
    for changes in (
        {"period": "week", "reserve": -1},
        {"period": None, "limit": "5"},
        {"rate": 3},
        {"limit": 5, "timezone": ("p", 1)},
        {"limit": 5, 3: 1},
        [("limit", 5)],
        None,
    ):
        with pytest.raises(InputError):
            tree.change("day", changes)
        assert tree.settings == before
    tree.change("day", {"period": "", "rate": 3, "limit": 7, "reserve": 2})
    assert tree.settings["day"] == (7, "year", None, "UTC", 3, 2)
    assert tree.record(since=1e300) == []
    for zone in (("p", 1), 3, b"UTC", ""):
        with pytest.raises(InputError, match="timezone"):
            tree.add_account("other", 5, timezone=zone)
