"""The command `longterm state`: what it shows, what it changes, and what it refuses."""

import csv
import io
import json
import re
import time

import pytest

from longterm import InputError
from longterm.cli import parse
from longterm.cli.state import moment
from longterm.money import DualMirrorDescent, ExcessHold, Ledger, LivePacer


@pytest.fixture
def database(tmp_path):
    file = str(tmp_path / "service.db")
    with Ledger.open(file, unit="cent", name="money", holds=ExcessHold(share=0.05)) as ledger:
        ledger.add_account("organisation", 1000, period="month", timezone="Europe/Berlin")
        ledger.add_account("search", 500, parent="organisation")
        ledger.hold("search", 100, "one", who="gateway")
        ledger.settle("one", 60, who="gateway")
        ledger.hold("search", 50, "two", seconds=4000, who="gateway")
    return file


@pytest.fixture
def state(database, capsys):
    def run(action, *words):
        parse(["state", action, database, *words]).run()
        return capsys.readouterr().out

    return run


def test_it_lists_objects_accounts_and_holds(state):
    text = state("show")
    for word in ("money", "ledger", "1000 a month (Europe/Berlin)", "search", "two", "67 min", "gateway"):
        assert word in text


def test_it_lists_what_is_open_at_this_moment(state, database):
    with Ledger.existing(database, "money") as ledger:
        ledger.hold("search", 33, "short", seconds=0.001)
        time.sleep(0.002)
        assert "organisation 50, search 50" in " ".join(state("show").split())


def test_it_changes_what_a_person_decides(state, database):
    state("set", "money/search", "limit=50", "reserve=3", "--note", "ticket 1")
    state("set", "money/organisation", "period=day", "timezone=UTC")
    state("correct", "one", "70")
    state("correct", "money", "one", "75")
    state("release", "two")
    state("reset", "money/search", "7")
    with Ledger.existing(database, "money") as ledger:
        assert ledger.holds == ExcessHold(share=0.05)
        assert ledger.settings["search"][:1] + ledger.settings["search"][-1:] == (50, 3)
        assert ledger.settings["organisation"].period == "day"
        assert ledger.balance("search") == (50, 7, 0)
        assert ledger.balance("organisation") == (1000, 75, 0)


def test_it_changes_the_budget_of_a_pacer(state, database):
    with LivePacer.open(database, DualMirrorDescent(20.0, 100, step=0.1, start=0.5), name="campaign") as live:
        live.settle(str(live.bid(1.0)), 0.5)
        state("set", "campaign", "budget=900", "horizon=500")
        assert (live.metrics()["limit"], live.pacer.horizon, live.spent) == (900.0, 500, 0.5)
    for words in (("campaign", "limit=3"), ("campaign", "budget=-1"), ("money", "budget=3"), ("nothing", "budget=3")):
        with pytest.raises(InputError):
            state("set", *words)


def test_the_log_says_who_and_how_much(state):
    state("set", "money/search", "limit=50", "--note", "ticket 1")
    rows = list(csv.DictReader(io.StringIO(state("log"))))
    assert [(row["what"], row["account"], row["old"], row["new"], row["unit"]) for row in rows] == [
        ("settled", "search", "100", "60", "cent"),
        ("limit", "search", "500", "50", "cent"),
    ]
    assert (rows[0]["who"], rows[1]["note"]) == ("gateway", "ticket 1")
    lines = [json.loads(line) for line in state("log", "--format", "json", "--since", "1h").splitlines()]
    assert [line["what"] for line in lines] == ["settled", "limit"]
    assert state("log", "--since", "2100-01-01", "--format", "json") == ""


def test_it_renames_an_object(state):
    state("rename", "money", "cash")
    assert "cash" in state("show")


@pytest.mark.parametrize(
    "words",
    [
        ("set", "money/search"),
        ("set", "money", "limit=5"),
        ("set", "money/serch", "limit=5"),
        ("set", "money/search", "limit=many"),
        ("set", "money/search", "parent=organisation"),
        ("set", "cash/search", "limit=5"),
        ("reset", "money/search", "x"),
        ("release",),
        ("release", "nothing"),
        ("correct", "one"),
        ("correct", "two", "5"),
        ("rename", "money"),
        ("show", "money"),
        ("log", "--since", "yesterday"),
    ],
)
def test_it_refuses_what_it_cannot_do(state, words):
    before = state("show")
    with pytest.raises(InputError):
        state(*words)
    after, before = (re.sub(r"-?\d+ (s|min) +", "", text) for text in (state("show"), before))  # without ages
    assert after.splitlines()[1:] == before.splitlines()[1:]


def test_times_are_dates_or_times_back():
    assert moment("90m") == pytest.approx(time.time() - 5400, abs=5)
    assert moment("2026-01-31T00:00:00+00:00") == 1769817600.0
