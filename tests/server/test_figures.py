"""Metrics and the history: the same from every worker, and right after one is killed."""

import json
import os
import signal
import time
from collections import Counter

import pytest

from longterm.errors import DatabaseError
from longterm.server import Client
from longterm.server.history import History, HistoryRecorder, thinned
from longterm.storage.contents import describe
from longterm.storage.database import Database
from servers import SERVICE, children, fetch, in_process, in_thread

prometheus = pytest.importorskip("prometheus_client.parser", reason="needs the extra `metrics`")


def metrics(url):
    status, text = fetch(f"{url}/metrics")
    assert status == 200
    families = prometheus.text_string_to_metric_families(text)
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


def test_prometheus_reads_money_counts_and_latencies(tmp_path):
    with in_thread(tmp_path) as url, Client(url) as client:
        client.hold("money", "team", 400, "one")
        for _ in range(2):
            assert (
                fetch(
                    f"{url}/hold",
                    b'{"name": "money", "account": "team", "amount": 400, "key": "two"}',
                    {"Content-Type": "application/json"},
                )[0]
                == 402
            )
        client.settle_hold("money", "one", 700)
        found = metrics(url)
        assert found["longterm_spent", "cent", "money", "team"] == 700
        assert found["longterm_limit", "cent", "money", "team"] == 600
        assert found["longterm_overshoot", "cent", "money", "team"] == 100
        assert found["longterm_spent_total", "cent", "money", "team"] == 700
        assert found["longterm_requests_total", "money"] == 1
        assert sum(value for key, value in found.items() if key[0] == "longterm_build_info") == 1
        assert found["longterm_refused_total", "money"] == 2
        assert found["longterm_calls_total", "402", "hold", "money"] == 2
        assert found["longterm_call_seconds_count", "hold", "money"] == 3
        assert found["longterm_call_seconds_bucket", "+Inf", "hold", "money"] == 3
        assert 0 < found["longterm_call_seconds_sum", "hold", "money"] < 30
        client.tell("demand", client.ask("demand", prediction=1.0, groups=["a"])["token"], outcome=1.0)
        client.act("images", context=[1.0, 0.0], costs=[0.5, 0.5], allowed=["large"])
        found = metrics(url)
        assert found["longterm_coverage", "a", "demand"] == 1.0
        assert found["longterm_actions_total", "images", "large"] == 1
        assert found["longterm_held", "", "images", "money"] == 0.5
        assert found["longterm_open", "", "images"] == 1
    with in_thread(tmp_path) as url:  # another process later: nothing is lost
        assert metrics(url)["longterm_refused_total", "money"] == 2


def test_prometheus_reads_the_alerts_of_a_router(tmp_path):
    with in_thread(tmp_path) as url, Client(url) as client:
        for _ in range(120):
            route = client.act("models", prompt="What is 2 + 2?", allowed=["small"])
            client.settle("models", route["token"], reward=0.5, cost=1e-4)
        found = metrics(url)
    assert found["longterm_share", "models", "small"] == 1.0
    assert found["longterm_untried", "large", "models"] == 120
    assert found["longterm_alert", "models", "unspent"] == 1
    assert found["longterm_alert", "bounds", "models"] == 0


def test_limits_that_are_meant_to_be_reached_are_marked(tmp_path):
    """The alerts on money leave them out: they would fire while all is well."""
    mixed = """
[chooser.mixed]
actions = ["small", "large"]
horizon = 100
budgets = [{limit = 3.0, largest = 1.0, name = "cap"}, {limit = 2.0, largest = 1.0, kind = "at least", name = "floor"}]
[chooser.ceiling]
dual = {kind = "EntropicDual", start = 0.5, step = 0.1}
actions = ["small", "large"]
budgets = [{per_request = 0.5, largest = 1.0}]
"""
    with in_thread(tmp_path, SERVICE + mixed) as url:
        found = metrics(url)
    goals = {key[1:] for key, value in found.items() if key[0] == "longterm_goal" and value}
    assert goals == {("floor", "mixed"), ("ceiling", "money"), ("models", "money")}


def test_bids_without_money_are_refusals(tmp_path):
    """A bid of 0 is a refusal if no money is left, and none if the request is worth nothing."""
    with in_thread(tmp_path) as url, Client(url) as client:
        assert not client.bid("campaign", 0.0)["refused"]
        held = client.bid("campaign", 1000.0, key="all")
        assert (held["amount"], held["refused"]) == (10.0, False)
        assert client.bid("campaign", 1.0)["refused"]
        assert metrics(url)["longterm_refused_total", "campaign"] == 1
        _, text = fetch(f"{url}/history")
        assert [(one["object"], one["detail"]) for one in json.loads(text)["refusals"]] == [("campaign", "bid")]
        client.skip("campaign", held["token"])
        assert not client.bid("campaign", 1.0)["refused"]
        assert metrics(url)["longterm_refused_total", "campaign"] == 1


def test_the_counter_of_money_never_falls(tmp_path):
    """Not after a new period, a reset, a correction or a restart: a rate can be taken of it."""
    with in_thread(tmp_path) as url, Client(url) as client:
        seen = []
        for number, change in enumerate(
            (lambda: None, lambda: client.reset("money", "team"), lambda: client.correct("money", "0", 1))
        ):
            client.hold("money", "team", 100, str(number))
            client.settle_hold("money", str(number), 100)
            change()
            seen.append(metrics(url)["longterm_spent_total", "cent", "money", "team"])
        assert seen == [100, 200, 300]
    with in_thread(tmp_path) as url:
        assert metrics(url)["longterm_spent_total", "cent", "money", "team"] == 300


def test_the_counter_of_a_pacers_and_a_choosers_money_never_falls(tmp_path):
    """A correction counts if it raises a payment. A reset says what counts towards the budget, not what was spent."""
    pacer, chooser = ("longterm_spent_total", "", "", "campaign"), ("longterm_spent_total", "", "images", "money")
    with in_thread(tmp_path) as url, Client(url) as client:
        bids = [client.bid("campaign", 1.0)["token"] for _ in range(2)]
        choices = [client.act("images", context=[1.0, 0.0], costs=[1.0, 1.0])["token"] for _ in range(2)]
        seen = []
        for change in (
            lambda: client.settle("campaign", bids[0], paid=1.5),
            lambda: client.reset("campaign", spent=500.0),
            lambda: client.reset("campaign"),
            lambda: client.settle("campaign", bids[1], paid=0.25),
            lambda: client.correct_round("campaign", bids[0], 2.0),
            lambda: client.correct_round("campaign", bids[0], 0.0),
        ):
            change()
            seen.append(metrics(url)[pacer])
        assert seen == [1.5, 1.5, 1.5, 1.75, 2.25, 2.25]
        seen = []
        for change in (
            lambda: client.settle("images", choices[0], reward=1.0, cost=1.0),
            lambda: client.correct_round("images", choices[0], 0.25),
            lambda: client.correct_round("images", choices[0], 0.5),
            lambda: client.skip("images", choices[1]),
        ):
            change()
            seen.append(metrics(url)[chooser])
        assert seen == [1.0, 1.0, 1.25, 2.25]
        assert metrics(url)["longterm_spent", "", "images", "money"] == 1.5
    with in_thread(tmp_path) as url:
        assert (metrics(url)[pacer], metrics(url)[chooser]) == (2.25, 2.25)


def test_every_status_is_counted(tmp_path):
    form = {"Content-Type": "application/json"}
    with in_thread(tmp_path, token="a-long-random-text") as url:
        allowed = {"Authorization": "Bearer a-long-random-text"}
        fetch(f"{url}/bid", b"{}", form)
        fetch(f"{url}/bid", b"{}", form | allowed)
        fetch(f"{url}/bid", b"{}", {"Content-Type": "text/plain"} | allowed)
        fetch(f"{url}/bid", b"{}", form | allowed | {"Content-Length": "1000001"})
        fetch(f"{url}/bid", b'{"name": "nothing", "value": 1}', form | allowed)
        fetch(f"{url}/none", headers=allowed)
        _, text = fetch(f"{url}/metrics", headers=allowed)
    for call, status in (("bid", 401), ("bid", 400), ("bid", 415), ("bid", 413), ("bid", 404), ("view", 404)):
        assert f'longterm_calls_total{{call="{call}",object="",status="{status}"}} 1.0' in text


@pytest.mark.slow
def test_every_worker_answers_for_all_of_them(tmp_path):
    """Clients with new connections meet all workers. One is killed and replaced; the figures never go back."""
    (tmp_path / "service.toml").write_text(SERVICE)
    with in_process(str(tmp_path / "service.toml"), "--workers", "3") as (url, server):
        for number in range(60):
            with Client(url) as client:
                client.settle("campaign", client.bid("campaign", 0.01)["token"], paid=0.0)
                client.hold("money", "team", 1, str(number))
        time.sleep(2.5)  # every worker has added its counts
        worker = children(server.pid)[-1]
        os.kill(worker, signal.SIGKILL)
        for _ in range(10):
            with Client(url) as client:
                assert client.status()["campaign"]["requests"] == 60
            found = metrics(url)
            assert found["longterm_requests_total", "campaign"] == 60
            assert found["longterm_held", "cent", "money", "team"] == 60
            assert found["longterm_calls_total", "200", "hold", "money"] == 60
            assert found["longterm_call_seconds_count", "bid", "campaign"] == 60
        deadline = time.monotonic() + 60
        while worker in children(server.pid) or len(children(server.pid)) < 4:  # 3 workers and a resource tracker
            assert time.monotonic() < deadline, children(server.pid)
            time.sleep(0.2)
        with Client(url) as client:
            client.release("money", "0")


def test_counts_of_two_workers_are_added(tmp_path):
    url = str(tmp_path / "a.db")
    first, second = History(url, 10), History(url, 10)
    first.add(Counter({("refused", "a"): 2}), {"a": {"open": 1}})
    second.add(Counter({("refused", "a"): 3, ("seconds", "act", "a", "0"): 1}), {"a": {"open": 2}})
    assert first.totals() == second.totals() == {("refused", "a"): 5, ("seconds", "act", "a", "0"): 1}
    intervals = first.since(3600)
    assert sum((counts for _, counts, _ in intervals), Counter()) == {("refused", "a"): 5}
    assert intervals[-1][2] == {"a": {"open": 2}}
    assert [one.kind for one in describe(url)] == ["server history"]


def test_old_intervals_go_and_totals_stay(tmp_path, monkeypatch):
    history, clock = History(str(tmp_path / "a.db"), 10), [1_800_000_000]
    monkeypatch.setattr(Database, "now", lambda self: clock[0] * 1_000_000)
    for _ in range(3):
        history.add(Counter({("refused", "a"): 1}), {})
        clock[0] += 4 * 3600
    clock[0] -= 4 * 3600
    assert [moment for moment, _, _ in history.since(7 * 3600)] == [1_800_000_000 + 4 * 3600, 1_800_000_000 + 8 * 3600]
    assert history.totals() == {("refused", "a"): 3}


def test_neighbours_are_merged():
    intervals = [(10 * k, Counter({("refused", "a"): k}), {"a": k}) for k in range(1, 8)]
    assert thinned(intervals, 10) == intervals
    merged = thinned(intervals, 3)
    assert [(moment, counts["refused", "a"], figures["a"]) for moment, counts, figures in merged] == [
        (30, 6, 3),
        (60, 15, 6),
        (70, 7, 7),
    ]


def test_counts_wait_while_the_database_does_not_answer(tmp_path):
    history = History(str(tmp_path / "a.db"), 10)
    recorder = HistoryRecorder(history)
    recorder.count("refused", "a")
    history.close()
    with pytest.raises(DatabaseError):
        recorder.flush()
    recorder.history = again = History(str(tmp_path / "a.db"), 10)
    recorder.time("act", "a", 0.004)
    recorder.flush()
    assert again.totals()["refused", "a"] == 1
    assert again.totals()["seconds", "act", "a", "2"] == 1


@pytest.mark.parametrize("content", [b"[", b"[[[[1], -1]], {}]", b"[[], 3]", b'[[[["a"], "x"]], {}]', b"\xff"])
def test_a_forged_history_is_refused(tmp_path, content):
    history = History(str(tmp_path / "a.db"), 10)
    history.add(Counter({("refused", "a"): 1}), {})
    database = Database(tmp_path / "a.db")
    database.write([("UPDATE longterm_parts SET content = ?", (content,)), ("DELETE FROM longterm_rounds", ())])
    with pytest.raises(DatabaseError, match="history"):
        history.totals()


def test_a_history_that_fails_once_is_logged_and_goes_on(tmp_path, monkeypatch, caplog):
    add, failures = History.add, [RuntimeError("no reason"), DatabaseError("a.db", "busy", "locked", "Wait")]

    def failing(self, *arguments):
        if failures:
            raise failures.pop()
        add(self, *arguments)

    monkeypatch.setattr(History, "add", failing)
    monkeypatch.setattr("longterm.server.app.FLUSH_SECONDS", 0.05)
    with in_thread(tmp_path) as url, Client(url) as client:
        client.hold("money", "team", 1, "one")
        deadline = time.monotonic() + 10
        while failures or metrics(url)["longterm_calls_total", "200", "hold", "money"] != 1:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert sum("the history was not written" in record.getMessage() for record in caplog.records) == 2
