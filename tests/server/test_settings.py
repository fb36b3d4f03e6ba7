"""The service's file: what it may say, and the errors that name the place."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from longterm import InputError
from longterm.errors import DatabaseError
from longterm.server.settings import open_service, read_service
from servers import SERVICE

EXAMPLES = Path(__file__).parents[2] / "examples" / "service"
LEDGER = {"accounts": {"team": {"limit": 10}}}
CHOOSER = {"actions": ["a", "b"], "budgets": [{"limit": 3.0, "largest": 1.0}], "horizon": 10}


def test_every_kind_is_opened_and_opened_again(tmp_path):
    for _ in range(2):
        service = open_service(tomllib.loads(SERVICE), tmp_path)
        assert set(service.kinds.values()) == {"ledger", "chooser", "router", "pacer", "learner", "intervals"}
        assert service.metrics("images")["limit"] == {"money": 3.0}
        service.close()


def one(kind, name, given):
    return {"database": "a.db", kind: {name: given}}


def chooser(**changes):
    return one("chooser", "images", CHOOSER | changes)


@pytest.mark.parametrize(
    ("table", "argument", "says"),
    [
        ({}, "service.database", "is missing"),
        ({"database": "a.db"}, "service", "has no object"),
        ({"database": 3}, "service.database", "valid string"),
        ({"database": "a.db", "ledgr": {}}, "service.ledgr", "did you mean 'ledger'"),
        (
            {"database": "a.db", "durability": "none", "ledger": {"m": LEDGER}},
            "service.durability",
            "'commit' or 'relaxed'",
        ),
        (one("ledger", "m", 3), "ledger.m", "is not a table"),
        (one("ledger", "m", {}), "ledger.m.accounts", "is missing"),
        ({"database": "a.db", "ledger": {"m": LEDGER}, "pacer": {"m": {"rule": {}}}}, "pacer.m", "name of a ledger"),
        (
            {"database": "a.db", "ledger": {"m": {"accounts": {"t": {"limit": 1.5}}}}},
            "ledger.m.accounts.t.limit",
            "valid integer",
        ),
        (
            {"database": "a.db", "ledger": {"m": {"accounts": {"t": {"limit": -1}}}}},
            "ledger.m.accounts.t.limit",
            "amount",
        ),
        (one("ledger", "m", LEDGER | {"holds": {"share": 2.0}}), "ledger.m.holds.share", "below 1"),
        (chooser(actions=["a", "a"]), "chooser.images.actions", "different names"),
        (chooser(actions="ab"), "chooser.images.actions", "valid list"),
        (chooser(features="2"), "chooser.images.features", "Correct it, or leave it out"),
        (chooser(budgets=[{"limit": 3.0}]), "chooser.images.budgets[0].largest", "is missing"),
        (chooser(budgets=[{"limit": -3.0, "largest": 1.0}]), "chooser.images.budgets[0].limit", "positive"),
        (chooser(horizon=None), "chooser.images.horizon", "is missing, but a Budget"),
        (chooser(dual={"kind": "EntropicDal"}), "chooser.images.dual.kind", "did you mean 'EntropicDual'"),
        (chooser(dual={"kind": "EntropicDual", "begin": 1.0}), "chooser.images.dual.begin", "not a parameter"),
        (chooser(primal={}), "chooser.images.primal.kind", "is missing"),
        (chooser(place=1), "chooser.images.place", "not a key"),
        (one("router", "r", {"prices": {"a": 1.0}}), "router.r.per_request", "is missing"),
        (
            {"database": "a.db", "pacer": {"p": {"rule": {"kind": "DualMirrorDescent"}}}},
            "pacer.p.rule.budget",
            "missing",
        ),
        (
            {"database": "a.db", "learner": {"l": {"problem": "routng", "learner": "aogd"}}},
            "learner.l.problem.name",
            "not known",
        ),
        (one("intervals", "i", {"confidence_level": 2.0}), "intervals.i.confidence_level", "2.0"),
    ],
)
def test_errors_name_the_table_and_the_key(tmp_path, table, argument, says):
    with pytest.raises(InputError) as caught:
        open_service(table, tmp_path)
    assert caught.value.argument == argument
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["database = ", "database = 'a.db'\ndatabase = 'b.db'", "\x00"])
def test_errors_of_toml_name_the_file(tmp_path, text):
    path = tmp_path / "service.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"service\.toml: is not TOML"):
        read_service(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_service(tmp_path / "none.toml")


def test_a_stored_object_with_other_settings_is_refused(tmp_path):
    open_service(chooser(), tmp_path).close()
    with pytest.raises(DatabaseError, match=r"rule\.replan was False, is True"):
        open_service(chooser(replan=True), tmp_path)


def test_the_environment_may_name_the_database(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGTERM_DATABASE", str(tmp_path / "other.db"))
    open_service(chooser(), tmp_path).close()
    assert [file.name for file in tmp_path.iterdir()] == ["other.db"]


def test_the_example_is_valid(tmp_path):
    table = tomllib.loads((EXAMPLES / "service.toml").read_text())
    service = open_service(table, tmp_path)
    assert set(service.objects) == {"models", "money", "campaign", "demand"}
    service.close()


def test_the_containers_fit_together():
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())
    assert set(compose["services"]) == {"server", "postgres", "prometheus", "grafana"}
    mounted = [
        volume.partition(":")[0]
        for one in compose["services"].values()
        for volume in one.get("volumes", ())
        if volume.startswith("./")
    ]
    assert all((EXAMPLES / path).is_file() for path in mounted)
    assert len(mounted) == 6
    assert all(port.startswith("127.0.0.1:") for one in compose["services"].values() for port in one.get("ports", ()))
    for name in ("prometheus.yml", "alerts.yml", "grafana/provisioning.yaml", "grafana/datasource.yaml"):
        assert yaml.safe_load((EXAMPLES / name).read_text())


def names_of_metrics():
    from longterm.server.prometheus import exposition

    known = exposition({}, __import__("collections").Counter()).decode()
    return {word for line in known.splitlines() for word in line.split() if word.startswith("longterm_")}


def used_in(expression):
    return {one.removesuffix("_bucket") for one in re.findall(r"longterm_\w+", expression)}


def test_the_board_shows_metrics_that_exist():
    board = json.loads((EXAMPLES / "grafana" / "board.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            assert used_in(target["expr"])
            assert used_in(target["expr"]) <= names_of_metrics()


def test_the_alerts_use_metrics_that_exist():
    expressions = re.findall(r"expr: (.*)", (EXAMPLES / "alerts.yml").read_text())
    assert len(expressions) >= 6
    assert all(used_in(one) <= names_of_metrics() for one in expressions)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)")
def test_promtool_accepts_the_rules_and_the_metrics(tmp_path):
    from longterm.server.prometheus import exposition

    subprocess.run(["promtool", "check", "rules", str(EXAMPLES / "alerts.yml")], check=True)
    figures = {"money": {"spent": {"team": 1}, "total": {"team": 2}, "limit": {"team": 3}}}
    text = exposition(figures, __import__("collections").Counter(), {"money": "cent"})
    subprocess.run(["promtool", "check", "metrics"], input=text, check=True)


RULES = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'longterm_build_info', values: '1+0x20'}}
      - {{series: 'longterm_limit{{object="money", part="team"}}', values: '100+0x20'}}
      - {{series: 'longterm_spent{{object="money", part="team"}}', values: '79 80 99 100 0+0x16'}}
      - {{series: 'longterm_limit{{object="models", part="money"}}', values: '1+1x20'}}
      - {{series: 'longterm_spent{{object="models", part="money"}}', values: '1+1x20'}}
      - {{series: 'longterm_goal{{object="models", part="money"}}', values: '1+0x20'}}
      - {{series: 'longterm_limit{{object="mixed", part="floor"}}', values: '1+0x20'}}
      - {{series: 'longterm_spent{{object="mixed", part="floor"}}', values: '2+0x20'}}
      - {{series: 'longterm_goal{{object="mixed", part="floor"}}', values: '1+0x20'}}
      - {{series: 'longterm_limit{{object="mixed", part="cap"}}', values: '100+0x20'}}
      - {{series: 'longterm_goal{{object="mixed", part="cap"}}', values: '0+0x20'}}
      - {{series: 'longterm_spent{{object="mixed", part="cap"}}', values: '0x10 90+0x10'}}
      - {{series: 'longterm_up{{object="money"}}', values: '1 1 1 1 1 1 0+0x14'}}
      - {{series: 'longterm_up{{object="models"}}', values: '1+0x20'}}
      - {{series: 'longterm_refused_total{{object="money"}}', values: '0+0x5 1+0x14'}}
    alert_rule_test:
{cases}
"""
CASES = [
    ("0m", "LongtermMoney80", []),
    ("1m", "LongtermMoney80", [{"object": "money", "part": "team"}]),
    ("2m", "LongtermMoney100", []),
    ("3m", "LongtermMoney100", [{"object": "money", "part": "team"}]),
    ("4m", "LongtermMoney80", []),
    ("5m", "LongtermDatabaseDown", []),
    ("8m", "LongtermDatabaseDown", [{"object": "money"}]),
    ("8m", "LongtermServerDown", []),
    ("5m", "LongtermRefusals", []),
    ("8m", "LongtermRefusals", [{"object": "money"}]),
    ("12m", "LongtermMoney80", [{"object": "mixed", "part": "cap"}]),
    ("12m", "LongtermMoney100", []),
]
"""The time, the alert, and the labels of those that fire."""


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)")
def test_the_alerts_fire_when_they_should(tmp_path):
    rules = re.sub(r"annotations: .*", "", (EXAMPLES / "alerts.yml").read_text())
    rules = re.sub(r"labels: \{severity.*", "", rules)
    (tmp_path / "alerts.yml").write_text(rules)
    cases = [
        {"eval_time": time, "alertname": name, "exp_alerts": [{"exp_labels": one} for one in labels]}
        for time, name, labels in CASES
    ]
    (tmp_path / "test.yml").write_text(RULES.format(rules="alerts.yml", cases=f"      {json.dumps(cases)}"))
    done = subprocess.run(["promtool", "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_objects_share_an_account(tmp_path):
    account = {"ledger": "money", "account": "team", "units": 100.0}
    pacer = {"rule": {"kind": "DualMirrorDescent", "budget": 10.0, "horizon": 9, "step": 0.1, "start": 0.5}}
    table = chooser(account=account) | {
        "ledger": {"money": LEDGER},
        "pacer": {"campaign": pacer | {"account": account}},
    }
    service = open_service(table, tmp_path)
    service.objects["campaign"].bid(0.03)
    held = service.metrics("money")["held"]["team"]
    assert 0 < held <= 10
    assert service.objects["images"].chooser.act([1.0], costs=[0.11, 0.11]).action is None
    service.close()
    table["chooser"]["images"]["account"] = {"ledger": "money"}
    with pytest.raises(InputError, match=r"chooser\.images\.account\.account: is missing"):
        open_service(table, tmp_path)
