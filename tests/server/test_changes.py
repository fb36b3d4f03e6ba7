"""Limits, periods and names change while a service runs, over a restart and in a rolling upgrade."""

import json
import logging
from contextlib import closing
from dataclasses import replace

import pytest

from longterm import InputError
from longterm.cli import parse
from longterm.errors import DatabaseError
from longterm.money import DualMirrorDescent, Ledger, LivePacer
from longterm.money.limit_changes import change_limits, limits_of
from longterm.server import Client, ServerError
from longterm.server.calls import act
from longterm.server.history import History
from longterm.server.requests import Act
from longterm.server.settings import open_service
from longterm.server.tokens import hash_of, new_token
from longterm.storage.contents import rename
from servers import SERVICE, fetch, in_thread


def table(ledger="money", **team):
    accounts = {"organisation": {"limit": 1000}, "team": {"limit": 600, "parent": "organisation"} | team}
    return {"database": "a.db", "ledger": {ledger: {"unit": "cent", "accounts": accounts}}}


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, "longterm")
    return lambda: [record.getMessage() for record in caplog.records]


def start(folder, said, *, apply=True, **changes):
    """Start a service, and return the settings of its account and what was logged."""
    before = len(said())
    service = open_service(table(**changes), folder, apply=apply)
    found = service.objects[next(iter(service.objects))].settings["team"]
    service.close()
    return found, said()[before:]


def test_a_changed_limit_and_period_are_applied_and_logged(tmp_path, said):
    assert start(tmp_path, said)[1] == []
    with Ledger.existing(tmp_path / "a.db", "money") as ledger:
        ledger.hold("team", 400, "one")
        ledger.settle("one", 400)
    found, logged = start(tmp_path, said, limit=300, period="day", timezone="Europe/Berlin")
    assert (found.limit, found.period, found.timezone) == (300, "day", "Europe/Berlin")
    place = "ledger.money.accounts.team"
    assert logged == [
        f"{place}.limit: 600 before, 300 now",
        f"{place}.period: None before, 'day' now",
        f"{place}.timezone: 'UTC' before, 'Europe/Berlin' now",
    ]
    with Ledger.existing(tmp_path / "a.db", "money") as ledger:
        assert ledger.balance("team") == (300, 400, 0)  # what was spent still counts
        entries = {(one.what, one.old, one.new, one.who) for one in ledger.record()}
    assert ("limit", 600, 300, "the settings file") in entries


def test_a_limit_that_was_set_later_stays_until_the_file_changes(tmp_path, said):
    start(tmp_path, said)
    with Ledger.existing(tmp_path / "a.db", "money") as ledger:
        ledger.set_limit("team", 50)
    found, logged = start(tmp_path, said)
    assert found.limit == 50
    assert logged == ["ledger.money.accounts.team.limit: 50 in the database was set after 600 in the file, and stays"]
    assert start(tmp_path, said, limit=700)[0].limit == 700


def test_an_upgrade_of_one_replica_after_another(tmp_path, said):
    """A worker of the old replica that is replaced, with its old file, changes nothing back."""
    old = open_service(table(), tmp_path)
    new = open_service(table(limit=100), tmp_path)
    worker = open_service(table(), tmp_path, apply=False)
    for service in (old, new, worker):
        assert service.objects["money"].settings["team"].limit == 100
    with pytest.raises(Exception, match="100 are available"):
        old.objects["money"].hold("team", 101, "one")
    for service in (old, new, worker):
        service.close()


def test_a_change_that_cannot_be_made_says_what_can(tmp_path, said):
    start(tmp_path, said)
    with pytest.raises(InputError, match="add an account with another name") as caught:
        start(tmp_path, said, parent=None)
    assert caught.value.argument == "ledger.money.accounts.team.parent"
    assert start(tmp_path, said)[0].limit == 600


def test_a_file_with_a_mistake_changes_nothing(tmp_path, said):
    start(tmp_path, said)
    wrong = [table(limit=700) for _ in range(4)]
    wrong[0]["ledger"]["money"]["accounts"]["team"]["timezone"] = "Europe/Berln"
    wrong[1]["tokens"] = {"gateway": {"hashes": [hash_of(TEAM)], "spend": ["mony"]}}
    wrong[2]["tokens"] = {"gateway": {"hashes": [hash_of(TEAM)], "spend": ["money/tem"]}}
    wrong[3]["pacer"] = {"campaign": {"rule": RULE | {"horizon": 0}}}
    for one in wrong:
        one["ledger"]["money"]["accounts"]["organisation"]["limit"] = 10**9
        with pytest.raises(InputError, match=r"timezone|tokens\.gateway\.spend|horizon"):
            open_service(one, tmp_path)
    with Ledger.existing(tmp_path / "a.db", "money") as ledger:
        assert [one.limit for one in ledger.settings.values()] == [1000, 600]
    assert said() == []


def test_an_old_file_undoes_what_a_refused_start_has_changed(tmp_path, said):
    """Whether a budget covers the open bids is known only when it is changed, after the limits of ledgers."""
    old = table() | {"pacer": {"campaign": {"rule": RULE}}}
    with closing(open_service(old, tmp_path)) as service:
        service.objects["campaign"].bid(30.0)
    new = table(limit=700) | {"pacer": {"campaign": {"rule": RULE | {"budget": 1e-3}}}}
    with pytest.raises(InputError, match="lower than what open bids hold") as caught:
        open_service(new, tmp_path)
    assert caught.value.argument == "pacer.campaign.budget"
    with closing(open_service(old, tmp_path)) as service:
        assert service.objects["money"].settings["team"].limit == 600
        assert service.metrics("campaign")["limit"] == 20.0
    assert said() == [
        "ledger.money.accounts.team.limit: 600 before, 700 now",
        "ledger.money.accounts.team.limit: 700 before, 600 now",
    ]


def test_limits_that_a_command_has_set_stay_when_objects_are_renamed(tmp_path, said, capsys):
    """The file renames its tables and changes nothing else."""

    def file(ledger, router, pacer):
        prices, rule = {"small": 1e-4, "large": 1e-2}, {"rule": RULE}
        routers = {router: {"prices": prices, "per_request": 1e-3}}
        return table(ledger=ledger) | {"router": routers, "pacer": {pacer: rule}}

    def state(action, *words):
        parse(["state", action, str(tmp_path / "a.db"), *words]).run()

    open_service(file("money", "models", "campaign"), tmp_path).close()
    state("set", "money/team", "limit=50")
    state("set", "models", "per_request=2e-3")
    state("set", "campaign", "budget=9.0")
    with pytest.raises(InputError, match="another object"):
        state("rename", "money", "models")
    for old, new in (("money", "cash"), ("models", "llm"), ("campaign", "ads")):
        state("rename", old, new)
    before = len(said())
    with closing(open_service(file("cash", "llm", "ads"), tmp_path)) as service:
        assert service.objects["cash"].settings["team"].limit == 50
        assert limits_of(service.objects["llm"].chooser)["money.per_request"] == 2e-3
        assert service.metrics("ads")["limit"] == 9.0
    assert len(said()[before:]) == 3
    assert all(line.endswith("and stays") for line in said()[before:])


def test_the_counters_of_a_service_keep_their_names(tmp_path):
    open_service(table(), tmp_path).close()
    History(str(tmp_path / "a.db")).close()
    for name in ("longterm server", "longterm server settings"):
        with pytest.raises(InputError, match=r"keeps 'longterm server.*Choose from \['money'\]"):
            rename(tmp_path / "a.db", name, "x")


def test_a_renamed_object_is_named_in_a_warning(tmp_path, said):
    start(tmp_path, said)
    logged = start(tmp_path, said, ledger="cash")[1]
    assert any("has the ledger 'money', which is not in the file" in line and "rename" in line for line in logged)
    other = tmp_path / "other"
    other.mkdir()
    start(other, said, limit=500)
    with Ledger.existing(other / "a.db", "money") as ledger:
        ledger.hold("team", 70, "one")
    rename(other / "a.db", "money", "cash")
    found, logged = start(other, said, ledger="cash", limit=500)
    assert (found.limit, logged) == (500, [])
    with Ledger.existing(other / "a.db", "cash") as ledger:
        ledger.settle("one", 60)
        assert ledger.balance("organisation").spent == 60
    for old, new in (("nothing", "x"), ("cash", "cash"), ("cash", "")):
        with pytest.raises(InputError):
            rename(other / "a.db", old, new)


EUCLIDEAN = {"kind": "EuclideanDual", "step": 0.1}
PLANNING = {"kind": "ThompsonSampling", "window": 32, "learn_costs": True}
RULE = {"kind": "DualMirrorDescent", "budget": 20.0, "horizon": 100, "step": 0.1, "start": 0.5}


def pacer(**changes):
    return {"database": "a.db", "pacer": {"campaign": {"rule": RULE | changes}}}


def test_the_budget_of_a_pacer_changes_in_all_workers(tmp_path, said):
    old = open_service(pacer(), tmp_path)
    before = old.objects["campaign"]
    before.settle(str(before.bid(30.0)), 12.0)
    new = open_service(pacer(budget=50.0, horizon=200), tmp_path)
    worker = open_service(pacer(), tmp_path, apply=False)
    for service in (new, old, worker):
        assert service.metrics("campaign")["limit"] == 50.0
        assert service.metrics("campaign")["spent"] == 12.0
        live = service.objects["campaign"]
        live.settle(str(live.bid(1.0)), 0.0)
    assert said() == [
        "pacer.campaign.budget: 20.0 before, 50.0 now",
        "pacer.campaign.horizon: 100 before, 200 now",
    ]
    open_bid = before.bid(30.0)
    assert open_bid.amount > 8.0  # more than was left of 20
    with pytest.raises(InputError, match="lower than what open bids hold"):
        before.change(budget=1.0)
    with pytest.raises(InputError, match="horizon"):
        before.change(horizon=0)
    new.objects["campaign"].change(budget=45.0)
    assert before.metrics()["limit"] == 45.0
    for service in (old, new, worker):
        service.close()
    again = open_service(pacer(budget=50.0, horizon=200), tmp_path)
    assert again.metrics("campaign")["limit"] == 45.0  # set after the file
    again.close()
    rule = DualMirrorDescent(**{k: v for k, v in RULE.items() if k != "kind"})
    with LivePacer.open(tmp_path / "a.db", rule, name="campaign") as followed:  # its budget was changed since
        assert followed.pacer.budget == 45.0
    assert "budget was 45.0, is 20.0" in said()[-1]
    with pytest.raises(DatabaseError, match=r"pacer.budget was 45.0, is 21.0"):  # a new value is no earlier one
        LivePacer.open(tmp_path / "a.db", replace(rule, budget=21.0), name="campaign")


def test_a_pacer_in_memory_changes_its_budget():
    live = LivePacer(DualMirrorDescent(**{k: v for k, v in RULE.items() if k != "kind"}))
    live.settle(str(live.bid(100.0)), 20.0)
    assert live.bid(1.0).amount == 0.0
    live.change(budget=40.0)
    assert live.bid(100.0).amount > 0.0


def mixed(limit=3.0, horizon=100, per_request=1e-3, quality=0.5, period=None, **others):
    budget = {"limit": limit, "largest": 1.0}
    return {
        "database": "a.db",
        "chooser": {"images": {"actions": ["a", "b"], "budgets": [budget], "horizon": horizon} | others},
        "router": {
            "models": {"prices": {"small": 1e-4, "large": 1e-2}, "per_request": per_request},
            "good": {"prices": {"small": 1e-4, "large": 1e-2}, "least_quality": quality},
        },
        "pacer": {"campaign": {"rule": RULE} | ({} if period is None else {"period": period})},
    }


def limits(service):
    chooser, router, good, live = (service.objects[name] for name in ("images", "models", "good", "campaign"))
    service.metrics("images"), service.metrics("models"), service.metrics("good"), service.metrics("campaign")
    budget, ceiling = chooser.chooser.rule.budgets[0], router.chooser.rule.budgets[0]
    quality = good.chooser.rule.dual.least_reward
    return budget.limit, chooser.chooser.rule.horizon, ceiling.per_request, quality, live.period


def test_limits_of_choosers_and_routers_change_in_a_rolling_upgrade_and_over_a_restart(tmp_path, said):
    """Two versions of the file run at once, and workers of the old one are replaced meanwhile."""
    old = open_service(mixed(), tmp_path)
    choice = old.objects["images"].chooser.act([1.0], costs=[2.5, 2.5])
    new = open_service(mixed(6.0, 200, 5e-3, 0.75, "day"), tmp_path)
    worker = open_service(mixed(), tmp_path, apply=False)
    for service in (old, new, worker):
        assert limits(service) == (6.0, 200, 5e-3, 0.75, "day")
        assert service.objects["images"].chooser.act([1.0], costs=[1.0, 1.0]).action is not None
    assert said() == [
        "chooser.images.money.limit: 3.0 before, 6.0 now",
        "chooser.images.horizon: 100 before, 200 now",
        "router.models.money.per_request: 0.001 before, 0.005 now",
        "router.good.least_reward: 0.5 before, 0.75 now",
        "pacer.campaign.period: '' before, 'day' now",
    ]
    old.objects["images"].chooser.settle(str(choice), 1.0, 2.5)
    assert new.metrics("images")["spent"] == {"money": 2.5}
    change_limits(worker.objects["images"].chooser, {"limit": 7.0})
    for service in (old, new, worker):
        service.close()
    again = open_service(mixed(6.0, 200, 5e-3, 0.75, "day"), tmp_path)
    assert limits(again) == (7.0, 200, 5e-3, 0.75, "day")
    assert said()[5:] == ["chooser.images.money.limit: 7.0 in the database was set after 6.0 in the file, and stays"]
    again.close()
    again = open_service(mixed(8.0, 200, 5e-3, 0.75, "day"), tmp_path)  # the file has changed since
    assert limits(again)[0] == 8.0
    again.close()
    for table, message in (
        (mixed(1e6), r"chooser\.images\.budgets: no sequence of 100 requests"),
        (mixed(horizon=0), "horizon"),
        (mixed(replan=True), r"rule\.replan was False, is True"),
    ):
        with pytest.raises((InputError, DatabaseError), match=message):
            open_service(table, tmp_path)
    again = open_service(mixed(8.0, 200, 5e-3, 0.75, "day"), tmp_path)
    assert limits(again) == (8.0, 200, 5e-3, 0.75, "day")
    again.close()


def test_limits_that_are_removed_from_the_file_get_their_defaults(tmp_path, said):
    def file(**given):
        ceiling = {"per_request": 1e-3, "largest": 1.0}
        return {
            "database": "a.db",
            "chooser": {"images": {"actions": ["a", "b"], "budgets": [ceiling | given], "dual": EUCLIDEAN}},
            "router": {"models": {"prices": {"small": 1e-4, "large": 1e-2}, "per_request": 1e-3} | given},
            "pacer": {"campaign": {"rule": RULE} | ({"period": "day"} if given else {})},
        }

    open_service(file(credit=5.0, bank=900.0), tmp_path).close()
    with closing(open_service(file(), tmp_path)) as service:
        for name in ("images", "models"):
            found = limits_of(service.objects[name].chooser)
            assert found == {"money.per_request": 1e-3, "money.credit": 0.0, "money.bank": None}
        assert service.objects["campaign"].period is None
    assert "chooser.images.money.credit: 5.0 before, 0.0 now" in said()


def test_the_least_reward_of_a_chooser_changes(tmp_path, said):
    def file(least_reward):
        dual, primal = {"kind": "PlannedPrice", "least_reward": least_reward}, PLANNING
        images = {"actions": ["a", "b"], "budgets": [{"per_request": 1e-3, "largest": 1.0}], "dual": dual}
        return {"database": "a.db", "chooser": {"images": images | {"primal": primal}}}

    open_service(file(0.5), tmp_path).close()
    with closing(open_service(file(0.75), tmp_path)) as service:
        assert limits_of(service.objects["images"].chooser) == {"least_reward": 0.75}
    assert said() == ["chooser.images.least_reward: 0.5 before, 0.75 now"]


def replica(folder, *actions):
    images = {"actions": list(actions), "budgets": [{"limit": 300.0, "largest": 1.0}], "horizon": 1000}
    return closing(open_service({"database": "a.db", "chooser": {"images": images}}, folder))


def answers(service, **given):
    body = Act(name="images", context=[1.0], **given)
    return {act(service.objects["images"], body, "").action for _ in range(30)}


def test_a_replica_chooses_among_the_actions_of_its_file(tmp_path, said):
    """Another replica has a file with one more, and answers requests with it meanwhile."""
    with replica(tmp_path, "a", "b") as old, replica(tmp_path, "a", "b", "c") as new:
        assert answers(old) == {"a", "b"}
        assert answers(new) == {"a", "b", "c"}
        assert answers(new, allowed=["c"], key="one") == {"c"} == answers(old, key="one")
        with pytest.raises(InputError, match=r"'c' is not known.*\['a', 'b'\]"):
            answers(old, allowed=["c"])
    assert said() == []


def test_an_action_that_is_removed_from_the_file_is_not_chosen(tmp_path, said):
    with replica(tmp_path, "bot", "form", "human"):
        pass
    assert said() == []
    with replica(tmp_path, "bot", "form") as service:
        assert answers(service) == {"bot", "form"}
        assert answers(service, costs=[0.1, 0.1, 0.1]) == {"bot", "form"}
    assert said() == ["chooser.images: the database has ['human'], which the file has not. They are not used"]
    with replica(tmp_path, "bot", "form", "human") as service:
        assert answers(service) == {"bot", "form", "human"}


OPERATOR, TEAM = new_token(), new_token()
TOKENS = f"""
[tokens.operator]
hashes = ["{hash_of(OPERATOR)}"]
admin = true
[tokens.team]
hashes = ["{hash_of(TEAM)}"]
read = true
spend = ["money"]
"""


def test_a_change_is_logged_and_a_repeated_one_is_not(tmp_path, said):
    with in_thread(tmp_path) as url, Client(url) as client:
        for _ in range(2):
            client.set("models", per_request=2e-3, note="ticket 4")
    assert said() == ["models: {'money.per_request': (0.001, 0.002)} were changed (old, new) by this machine. ticket 4"]


def test_an_operator_changes_limits_over_http(tmp_path):
    with in_thread(tmp_path, SERVICE + TOKENS) as url:
        with Client(url, token=OPERATOR) as operator, Client(url, token=TEAM) as team:
            team.hold("money", "team", 300, "one")
            team.settle_hold("money", "one", 200)
            team.hold("money", "team", 10, "two")
            assert operator.set("money", "team", limit=250, period="day", note="ticket 1")["spent"] == 200
            with pytest.raises(ServerError, match="40 are available"):
                team.hold("money", "team", 41, "three")
            assert operator.correct("money", "one", 150)["new"] == 150
            assert operator.reset("money", "team", 5)["spent"] == 5
            operator.force_release("money", "two")
            assert operator.set("money", "team", period="").get("period") is None
            for change in (
                lambda: team.set("money", "team", limit=1),
                lambda: team.reset("money", "team"),
                lambda: team.correct("money", "one", 0),
                lambda: team.force_release("money", "one"),
            ):
                with pytest.raises(ServerError, match="may not administer") as caught:
                    change()
                assert caught.value.status == 403
            found = team.accounts()["money"]
            assert (found["accounts"]["team"]["limit"], found["accounts"]["team"]["spent"], found["holds"]) == (
                250,
                5,
                [],
            )
            with pytest.raises(ServerError, match="did you mean 'team'"):
                operator.set("money", "tem", limit=1)
            bid = operator.bid("campaign", 1.0)["token"]
            operator.settle("campaign", bid, paid=0.5)
            operator.correct_round("campaign", bid, 0.25)
            choice = operator.act("images", context=[1.0, 0.0], costs=[0.5, 0.5])["token"]
            operator.settle("images", choice, reward=1.0, cost=0.5)
            operator.correct_round("images", choice, 0.125)
            assert team.status()["campaign"]["spent"] == 0.25
            assert team.status()["images"]["spent"] == {"money": 0.125}
            with pytest.raises(ServerError, match="token"):
                operator.correct("campaign", "one", 1)
            assert operator.set("campaign", budget=30.0)["limits"]["budget"] == 30.0
            assert operator.set("campaign", period="day")["limits"]["period"] == "day"
            assert operator.set("images", limit=2.0)["limits"]["money.limit"] == 2.0
            assert operator.set("images", "money", limit=2.5, note="ticket 2")["limits"]["money.limit"] == 2.5
            assert operator.set("models", per_request=2e-3)["limits"]["money.per_request"] == 2e-3
            assert operator.reset("campaign", spent=0.125)["spent"] == 0.125
            for change in (
                lambda: operator.set("images", limit=-2.0),
                lambda: operator.set("models", limit=2.0),
                lambda: operator.set("models", least_quality=0.5),
                lambda: operator.set("money", "team", limit=1.5),
                lambda: operator.reset("images"),
                lambda: operator.set("power", horizon=3),
            ):
                with pytest.raises(ServerError) as caught:
                    change()
                assert caught.value.status == 400
            assert team.status()["images"]["limit"] == {"money": 2.5}
            assert team.status()["campaign"]["limit"] == 30.0
            with pytest.raises(ServerError, match="cannot be changed"):
                operator.set("campaign", limit=1)
            operator.set("models", bank=50.0, note="ticket 3")
            assert operator.set("models", bank="none")["limits"]["money.bank"] is None
            assert operator.set("campaign", period="none")["limits"]["period"] == ""
            assert operator.set("money", "team", reserve=3, period="day")["reserve"] == 3
            assert not {"reserve", "period"} & set(operator.set("money", "team", reserve="none", period="none"))
            team.hold("money", "team", 1, "four")
            operator.force_release("money", "four", note="ticket 4")
            lost = operator.act("images", context=[1.0, 0.0], costs=[0.5, 0.5])["token"]
            with pytest.raises(ServerError, match="may not administer"):
                team.force_release("images", token=lost)
            operator.force_release("images", token=lost)
            text = fetch(f"{url}/log?most=10000", headers={"Authorization": f"Bearer {TEAM}"})[1]
            found = json.loads(text)
            entries = [tuple(one[key] for key in ("object", "what", "old", "new", "who")) for one in found["entries"]]
            assert found["unavailable"] == {}
            for entry in (
                ("models", "bank", None, 50.0, "operator"),
                ("models", "bank", 50.0, None, "operator"),
                ("campaign", "reset", 0.25, 0.125, "operator"),
                ("campaign", "corrected", 0.5, 0.25, "operator"),
                ("images", "limit", 3.0, 2.0, "operator"),
                ("images", "released", 0.5, 0.5, "operator"),
                ("money", "released", 1, 0, "operator"),
            ):
                assert entries.count(entry) == 1
        status, text = fetch(f"{url}/log", headers={"Authorization": f"Bearer {TEAM}"})
        assert status == 200
        assert '"who":"operator"' in text
        assert '"note":"ticket 1"' in text
        assert '"who":"team"' in text
