"""The command `longterm state`: what it shows, what it changes, and what it refuses."""

import csv
import io
import json
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from longterm import InputError
from longterm.cli import main, parse
from longterm.cli.state import moment
from longterm.money import (
    Budget,
    Chooser,
    DualMirrorDescent,
    EuclideanDual,
    ExcessHold,
    Ledger,
    LivePacer,
    PrimalDual,
    Router,
    SharedAccount,
    ThompsonSampling,
)
from longterm.money.limit_changes import limits_of


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


def test_it_lists_limits_as_set_takes_them(state, database):
    class Own(DualMirrorDescent):
        """It cannot be made from what the database has."""

    Chooser.open(database, RULE, name="helpdesk").close()
    LivePacer.open(database, DualMirrorDescent(20.0, 100, step=0.1, start=0.5), name="campaign").close()
    LivePacer.open(database, Own(20.0, 100, step=0.1, start=0.5), name="own").close()
    rows = [" ".join(line.split()) for line in state("show").splitlines()]
    assert "campaign budget=20.0, horizon=100, period=none, timezone=UTC" in rows
    assert "helpdesk money.limit=5.0, horizon=100" in rows
    assert not [row for row in rows if row.startswith("own budget")]


def test_none_removes_what_may_be_missing(state, database):
    with (
        closing(Router.for_models(PRICES, per_request=1e-3, bank=900.0, url=Path(database), name="models")) as router,
        LivePacer.open(database, DualMirrorDescent(20.0, 100, step=0.1, start=0.5), name="campaign") as live,
        Ledger.existing(database, "money") as ledger,
    ):
        assert "bank 900.0 → none" in state("set", "models", "bank=none")
        state("set", "campaign", "period=day")
        assert "period day → none" in state("set", "campaign", "period=none")
        state("set", "money/organisation", "reserve=5")
        state("set", "money/organisation", "reserve=none", "period=none")
        assert ledger.settings["organisation"] == (1000, None, None, "Europe/Berlin", 0, None)
        assert [(one.what, one.old, one.new) for one in ledger.record()[:3]] == [
            ("reserve", 5, None),
            ("period", "month", None),
            ("reserve", None, 5),
        ]
        for words in (
            ("models", "per_request=none"),
            ("campaign", "budget=none"),
            ("campaign", "timezone=none"),
            ("money/search", "limit=none"),
        ):
            with pytest.raises(InputError):
                state("set", *words)
        assert (limits_of(router.chooser)["money.bank"], live.period, live.pacer.budget) == (None, None, 20.0)


def test_a_release_has_its_reason_in_the_log(state, database):
    state("release", "two", "--note", "ticket 7")
    with Ledger.existing(database, "money") as ledger:
        ledger.hold("search", 5, "three")
        ledger.release("three")
        people, every = ledger.record(holds=False), ledger.record()
        assert [(one.what, one.key, one.old, one.new, one.note) for one in people] == [
            ("released", "two", 50, 0, "ticket 7")
        ]
        assert [(one.what, one.key) for one in every] == [
            ("released", "three"),
            ("released", "two"),
            ("settled", "one"),
        ]


def test_it_lists_what_is_open_at_this_moment(state, database):
    with Ledger.existing(database, "money") as ledger:
        ledger.hold("search", 33, "short", seconds=0.001)
        time.sleep(0.002)
        rows = [line.split() for line in state("show").splitlines()]
        assert ["search", "500", "60", "50", "organisation"] in rows
        assert [row[:4] for row in rows if row[:1] == ["money"]] == [["money", "ledger", "0", "1"]]


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
        state("set", "campaign", "period=month", "timezone=Europe/Berlin")
        assert (live.metrics()["limit"], live.period, live.timezone) == (900.0, "month", "Europe/Berlin")
        state("set", "campaign", "period=''")
        state("reset", "campaign", "0.25")
        assert (live.spent, live.period) == (0.25, None)
    for words in (
        ("campaign", "limit=3"),
        ("campaign", "budget=-1"),
        ("campaign", "budget=abc"),
        ("money", "budget=3"),
        ("nothing", "budget=3"),
    ):
        with pytest.raises(InputError):
            state("set", *words)


PRICES = {"small": 1e-4, "large": 1e-2}
RULE = PrimalDual(ThompsonSampling(2, 1), EuclideanDual(), Budget(5.0, largest=1.0), horizon=100)


def test_it_changes_the_limits_of_choosers_and_routers(state, database):
    file = Path(database)
    with (
        Chooser.open(file, RULE, name="helpdesk", names=["bot", "human"]) as chooser,
        closing(Router.for_models(PRICES, per_request=1e-3, url=file, name="models")) as router,
        closing(Router.for_models(PRICES, least_quality=0.5, url=file, name="good")) as good,
    ):
        assert "money.limit 5.0 → 6.0" in state("set", "helpdesk", "limit=6.0")
        state("set", "helpdesk/money", "limit=7.0")
        state("set", "helpdesk", "horizon=300")
        state("set", "models", "per_request=2e-3", "credit=0.5")
        state("set", "good", "least_quality=0.75")
        assert chooser.metrics()["limit"] == {"money": 7.0}
        assert chooser.rule.horizon == 300
        assert router.metrics()["limit"] == {"money": pytest.approx(0.502)}
        assert router.chooser.rule.budgets[0].per_request == 2e-3
        assert good.metrics()["requests"] == 0
        assert good.chooser.rule.dual.least_reward == 0.75
        assert chooser.names == ("bot", "human")
        before = chooser.metrics()["limit"], router.metrics()["limit"]
        for words in (
            ("helpdesk", "per_request=1"),
            ("helpdesk/cash", "limit=3.0"),
            ("helpdesk", "limit=-3.0"),
            ("helpdesk", "limit=1e9"),  # no sequence of requests could spend it
            ("models", "limit=3.0"),
            ("good", "per_request=1.0"),
        ):
            with pytest.raises(InputError):
                state("set", *words)
        for words, message in (
            (("models", "limit=3.0"), r"^limit: cannot be changed.*\['per_request', 'credit', 'bank'\]"),
            (("good", "per_request=1.0"), r"^per_request: cannot be changed.*'least_quality'"),
        ):
            with pytest.raises(InputError, match=message):
                state("set", *words)
        with pytest.raises(InputError, match="state set DB helpdesk limit="):
            state("reset", "helpdesk")
        assert (chooser.metrics()["limit"], router.metrics()["limit"]) == before


def test_it_gives_up_and_corrects_rounds(state, database):
    shared = SharedAccount("search", units=1.0, ledger="money")
    pacer = DualMirrorDescent(20.0, 100, step=0.1, start=0.5)
    with (
        Chooser.open(database, RULE, name="helpdesk") as chooser,
        LivePacer.open(database, pacer, name="campaign") as live,
        LivePacer.open(database, pacer, name="paid", account=shared) as paid,
    ):
        first, second = (str(chooser.act([1.0], costs=[0.5, 0.5])) for _ in range(2))
        lines = state("show").splitlines()
        place = lines.index("helpdesk: 2 open rounds, the oldest first")
        assert [line.split()[0] for line in lines[place + 2 : place + 4]] == [first, second]
        state("release", "helpdesk", first)
        chooser.settle(second, 1.0, 0.5)
        state("correct", "helpdesk", second, "0.125")
        assert chooser.spent.tolist() == [0.625]
        bid = str(live.bid(1.0))
        live.settle(bid, 0.5)
        state("correct", "campaign", bid, "0.75")
        assert live.spent == 0.75
        bid = str(paid.bid(1.0))
        for words in (("release", "paid", bid), ("correct", "paid", bid, "1")):
            with pytest.raises(InputError, match="money/search, which must change in the same transaction"):
                state(*words)


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


def test_what_cannot_be_read_hides_no_other_object(database, capsys):
    """A damaged pacer and a damaged ledger are named after the others, and the command fails."""
    LivePacer.open(database, DualMirrorDescent(10.0, 20, 0.1, 0.5), name="campaign").close()
    with Ledger.open(database, unit="cent", name="spare") as ledger:
        ledger.add_account("team", 5)
    with closing(sqlite3.connect(database)) as other, other:
        other.execute("UPDATE longterm_objects SET state = x'00' WHERE name = 'campaign'")
        other.execute("UPDATE longterm_accounts SET spent = -1 WHERE ledger = 'spare'")
        other.execute("UPDATE longterm_objects SET specification = '{' WHERE name = 'spare'")
    for action, shown in (("show", "67 min"), ("log", "gateway")):
        assert main(["state", action, database]) != 0
        out, err = capsys.readouterr()
        assert shown in out
        assert "'spare' is left out, since it cannot be read" in err
        assert ("'campaign'" in err) == (action == "show")  # its log is intact


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
