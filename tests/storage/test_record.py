"""The record of what people have changed: choosers, routers, pacers, names."""

import math
import sqlite3
import time
from contextlib import closing, suppress

import pytest

from longterm import InputError
from longterm.cli import parse
from longterm.errors import DatabaseError
from longterm.money import (
    Budget,
    Chooser,
    DualMirrorDescent,
    EuclideanDual,
    Ledger,
    LivePacer,
    PrimalDual,
    Router,
    SharedAccount,
    ThompsonSampling,
)
from longterm.storage.contents import read_record, rename

PACER = DualMirrorDescent(budget=100.0, horizon=10, step=0.1, start=0.5)
DONE = {"who": "ann", "note": "ticket 12"}


def told(entries):
    """Return entries without their times, the oldest first."""
    assert [one.time for one in entries] == sorted((one.time for one in entries), reverse=True)
    assert all(abs(one.time - time.time()) < 600 for one in entries)
    return [(one.what, one.account, one.old, one.new, one.who, one.note) for one in reversed(entries)]


def test_a_router_records_limits_corrections_and_releases(tmp_path):
    prices = {"small": 1e-4, "large": 1e-2}
    with closing(Router.for_models(prices, per_request=2e-3, bank=100.0, url=tmp_path / "a.db")) as router:
        assert router.record() == []
        router.change(per_request=1e-3, bank=math.inf, **DONE)
        first, second = router.route("one"), router.route("two")
        router.settle(first, reward=0.5, cost=1e-4)
        router.chooser.correct(first.choice, 3e-4, correction="c", who="bob")
        router.chooser.correct(first.choice, 3e-4, correction="c", who="bob")  # it counts once
        router.skip(second)  # an ordinary call
        third = router.route("three")
        router.chooser.skip(str(third), **DONE)
        bound = third.choice and router.chooser.rule.budget_set.largest[0]
        entries = router.record()
        assert told(entries)[:3] == [
            ("per_request", "money", 2e-3, 1e-3, "ann", "ticket 12"),
            ("bank", "money", 100.0, None, "ann", "ticket 12"),
            ("corrected", "money", 1e-4, 3e-4, "bob", ""),
        ]
        assert len(entries) == 4
        assert (entries[0].what, entries[0].key, entries[0].old) == ("released", str(third), entries[0].new)
        assert 0 < entries[0].old <= bound
        assert router.record(since=time.time() + 60) == []
        assert len(router.record(most=2)) == 2
        with pytest.raises(InputError, match="since"):
            router.record(since=-1.0)


def test_a_pacer_records_what_changes_its_money(tmp_path):
    database = tmp_path / "a.db"
    with LivePacer.open(database, PACER, name="campaign") as pacer:
        bid = pacer.bid(4.0)
        pacer.settle(bid, 1.0)
        pacer.correct(bid, 3.0, **DONE)
        pacer.reset(2.0, **DONE)
        pacer.change(budget=200.0, period="day", timezone="Europe/Berlin", **DONE)
        pacer.change(budget=200.0)  # nothing has changed
        pacer.skip(pacer.bid(1.0), who="ann")
        with pytest.raises(InputError):
            pacer.change(budget=-1.0, **DONE)
        found = told(pacer.record())
        assert found[:5] == [
            ("corrected", "", 1.0, 3.0, "ann", "ticket 12"),
            ("reset", "", 3.0, 2.0, "ann", "ticket 12"),
            ("budget", "", 100.0, 200.0, "ann", "ticket 12"),
            ("period", "", None, "day", "ann", "ticket 12"),
            ("timezone", "", "UTC", "Europe/Berlin", "ann", "ticket 12"),
        ]
        assert [one[0] for one in found[5:]] == ["released"]
    rename(database, "campaign", "spring", **DONE)
    assert told(read_record(database, "spring", 0.0, 10))[-1] == (
        "renamed",
        "",
        "campaign",
        "spring",
        "ann",
        "ticket 12",
    )


def test_a_correction_has_its_author_in_the_account_as_well(tmp_path):
    file = tmp_path / "a.db"
    with Ledger.open(file) as ledger:
        ledger.add_account("team", 1000)
        with LivePacer.open(file, PACER, account=SharedAccount("team", units=1.0)) as pacer:
            bid = pacer.bid(4.0)
            pacer.settle(bid, 1.0)
            pacer.correct(bid, 3.0, **DONE)
        assert told(ledger.record())[-1] == ("corrected", "team", 1, 3, "ann", "ticket 12")


def test_each_budget_has_its_entries(tmp_path):
    budgets = [Budget(5.0, largest=1.0, name="cost"), Budget(3.0, largest=1.0, name="time")]
    rule = PrimalDual(ThompsonSampling(2, 1), EuclideanDual(), budgets, horizon=10)
    with Chooser.open(tmp_path / "a.db", rule) as chooser:
        choice = chooser.act([1.0], costs=[[0.1, 0.2], [0.3, 0.4]])
        chooser.settle(choice, reward=1.0, cost=[0.1, 0.2])
        chooser.correct(choice, [0.5, 0.2], **DONE)
        chooser.change({"time": {"limit": 4.0}}, horizon=20, **DONE)
        assert told(chooser.record()) == [
            ("corrected", "cost", 0.1, 0.5, "ann", "ticket 12"),
            ("corrected", "time", 0.2, 0.2, "ann", "ticket 12"),
            ("limit", "time", 3.0, 4.0, "ann", "ticket 12"),
            ("horizon", "", 10, 20, "ann", "ticket 12"),
        ]


def test_the_log_of_the_command_line_has_every_object(tmp_path, capsys):
    file = str(tmp_path / "a.db")
    Router.for_models({"small": 1e-4, "large": 1e-2}, per_request=2e-3, bank=100.0, url=file, name="models").close()
    parse(["state", "set", file, "models", "per_request=3e-3", "bank=none", "--note", "ticket 12"]).run()
    capsys.readouterr()
    parse(["state", "log", file]).run()
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "time,object,unit,what,account,key,old,new,who,note"
    assert [line.split(",")[1:8] for line in lines] == [
        ["models", "", "per_request", "money", "", "0.002", "0.003"],
        ["models", "", "bank", "money", "", "100.0", ""],
    ]
    assert all(line.endswith("ticket 12") for line in lines)


def test_entries_are_deleted_after_ninety_days(tmp_path):
    file = tmp_path / "a.db"
    with LivePacer.open(file, PACER) as pacer:
        pacer.reset(1.0)
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE longterm_entries SET made = made - 91 * 86400 * 1000000")
        connection.close()
        assert len(pacer.record()) == 1
        pacer.reset(2.0)
        assert [one.new for one in pacer.record()] == [2.0]


@pytest.mark.parametrize("column", ["made", "what", "old", "who"])
@pytest.mark.parametrize("value", [b"bytes", "[1]", "text"])
def test_a_forged_entry_is_refused_or_harmless(tmp_path, column, value):
    with LivePacer.open(tmp_path / "a.db", PACER) as pacer:
        pacer.reset(1.0)
        with sqlite3.connect(tmp_path / "a.db") as connection:
            connection.execute(f"UPDATE longterm_entries SET {column} = ?", (value,))
        connection.close()
        with suppress(DatabaseError):
            assert pacer.record()[0].who in ("", value)


def test_an_object_without_a_database_has_no_record():
    with pytest.raises(InputError, match="open"):
        LivePacer(PACER).record()
