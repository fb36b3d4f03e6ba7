"""What a server does while its database does not answer, and with callers that are slow, many or never end."""

import asyncio
import http.client
import json
import os
import signal
import socket
import sqlite3
import threading
import time
import urllib.parse
from contextlib import closing
from functools import partial

import pytest

import postgres
from longterm import InputError
from longterm.server import Client, ServerError, opening
from longterm.server.gate import Gate
from longterm.server.lanes import BusyError, Lane
from longterm.server.tokens import Tokens
from servers import SERVICE, children, fetch, in_process, in_thread

JSON = {"Content-Type": "application/json"}
WAITING = 60
"""More calls than a thread pool of 40 can hold."""


def probe(url, path="/health", seconds=1.0):
    """The status of a path, or None without an answer in this time."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=seconds)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def hold(url, number, answers):
    body = {"name": "money", "account": "team", "amount": 1, "key": f"waiting {number}"}
    answers.append(fetch(f"{url}/hold", json.dumps(body).encode(), JSON)[0])


def start_holds(url):
    answers: list[int] = []
    threads = [threading.Thread(target=hold, args=(url, number, answers)) for number in range(WAITING)]
    for thread in threads:
        thread.start()
    return threads, answers


def test_health_answers_while_the_database_is_locked(tmp_path):
    with in_thread(tmp_path) as url:
        assert probe(url, "/ready") == 200
        other = sqlite3.connect(tmp_path / "service.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            threads, answers = start_holds(url)
            time.sleep(0.5)
            assert [probe(url) for _ in range(18)] == [200] * 18
            assert probe(url, "/ready", 5.0) == 503
            status, text = fetch(f"{url}/metrics")  # the alert needs an answer that says so
            assert status == 200
            assert 'longterm_up{object="money"} 0.0' in text
            assert 'longterm_up{object="campaign"} 1.0' in text
            assert 'longterm_refused_total{object="campaign"}' not in text  # 0 would look like a restart
        finally:
            other.execute("ROLLBACK")
            other.close()
        for thread in threads:
            thread.join()
        assert answers == [200] * WAITING  # they waited, and nothing was lost
        status, text = fetch(f"{url}/ready")
        assert (status, set(json.loads(text)["objects"].values())) == (200, {"ready"})


@pytest.mark.slow
def test_workers_answer_and_stop_while_they_wait_for_the_database(tmp_path):
    """A worker that is replaced while PostgreSQL is down is alive, is not ready, ends on SIGTERM, and goes on later."""
    with postgres.server() as running:
        if running is None or running.stop is None or running.restart is None:
            pytest.skip("no server can be started here")
        (tmp_path / "service.toml").write_text(SERVICE)
        environment = {"LONGTERM_DATABASE": running.url}
        service = str(tmp_path / "service.toml")
        with in_process(service, "--workers", "2", environment=environment) as (url, server):
            for goes_on in (True, False):
                running.stop()
                killed = set(children(server.pid)[-2:])
                for worker in killed:
                    os.kill(worker, signal.SIGKILL)
                while not killed.isdisjoint(children(server.pid)):
                    time.sleep(0.2)
                wait_for(partial(probe, url, "/ready"), 503)
                assert [probe(url) for _ in range(10)] == [200] * 10
                status, text = fetch(f"{url}/bid", b'{"name": "campaign", "value": 1}', JSON)
                assert (status, json.loads(text)["error"]["code"]) in ((503, "starting"), (503, "database"))
                if goes_on:
                    running.restart()
                    wait_for(partial(probe, url, "/ready", 5.0), 200)
                    with Client(url) as client:
                        client.skip("campaign", client.bid("campaign", 1.0)["token"])
            server.send_signal(signal.SIGTERM)
            assert server.wait(10) is not None


def wait_for(figure, wanted):
    deadline = time.monotonic() + 60
    while figure() != wanted:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_an_application_that_cannot_be_made_at_first_is_made_later(monkeypatch, caplog):
    """Calls meanwhile are answered with 503; the reason is logged, whatever it is."""
    monkeypatch.setattr(opening, "START_PAUSE", 0.01)
    monkeypatch.setattr(opening, "START_SECONDS", 0.1)
    may_open, failures = threading.Event(), [RuntimeError("no reason"), InputError("database", "is wrong", "Correct")]

    async def made(scope, receive, send):
        await send({"made": scope["type"]})

    def make():
        if failures:
            raise failures.pop()
        assert may_open.wait(10)
        return made

    async def use():
        app, events, sent = opening.OpeningApp(make), asyncio.Queue(), []

        async def send(message):
            sent.append(message.get("status", message.get("made", message.get("type"))))

        async def get(path):
            sent.clear()
            await app({"type": "http", "path": path}, None, send)
            return sent[0]

        life = asyncio.create_task(app({"type": "lifespan"}, events.get, send))
        await events.put({"type": "lifespan.startup"})
        while not sent:
            await asyncio.sleep(0.01)
        assert sent == ["lifespan.startup.complete"]
        assert (await get("/health"), await get("/ready")) == (200, 503)
        may_open.set()
        while await get("/ready") == 503:
            await asyncio.sleep(0.01)
        assert await get("/health") == "http"
        await events.put({"type": "lifespan.shutdown"})
        await life
        assert sent[-1] == "lifespan.shutdown.complete"

    asyncio.run(use())
    assert len([one for one in caplog.records if "cannot open its objects" in one.getMessage()]) == 2


def damage(folder, statement):
    with closing(sqlite3.connect(folder / "service.db")) as other, other:
        other.execute(statement)


def test_a_damaged_object_hides_no_other_one(tmp_path):
    """What people have changed, and the accounts, are read from every other object; the damaged ones are named."""
    spare = SERVICE.replace("[chooser.images]", "[ledger.spare]\naccounts.team = {limit = 5}\n\n[chooser.images]")
    with in_thread(tmp_path, spare) as url, Client(url) as client:
        client.set("money", "team", limit=500)
        damage(tmp_path, "UPDATE longterm_objects SET state = x'00', version = version + 1 WHERE name = 'campaign'")
        damage(tmp_path, "UPDATE longterm_accounts SET spent = -1 WHERE ledger = 'spare'")
        log = json.loads(fetch(f"{url}/log")[1])
        assert [(one["object"], one["what"], one["new"]) for one in log["entries"]] == [("money", "limit", 500)]
        assert log["unavailable"] == {"campaign": "corrupted"}
        history = json.loads(fetch(f"{url}/history")[1])
        assert [one["object"] for one in history["changes"]] == ["money"]
        assert history["unavailable"] == {"campaign": "corrupted"}
        assert set(history["periods"]) == {"money", "images", "models", "campaign"}
        accounts = client.accounts()
        assert accounts["money"]["accounts"]["team"]["limit"] == 500
        assert accounts["spare"] == {"unavailable": "corrupted"}


@pytest.mark.slow
def test_a_locked_object_delays_no_other_one(tmp_path):
    with postgres.server() as running:
        if running is None:
            pytest.skip("no server can be started here")
        import psycopg

        (tmp_path / "service.toml").write_text(SERVICE)
        environment = {"LONGTERM_DATABASE": running.url}
        with in_process(str(tmp_path / "service.toml"), environment=environment) as (url, _):
            with psycopg.connect(running.url) as connection:
                connection.execute("SELECT 1 FROM longterm_objects WHERE name = 'money' FOR UPDATE")
                threads, answers = start_holds(url)
                time.sleep(0.5)
                assert [probe(url) for _ in range(18)] == [200] * 18
                with Client(url, retries=0) as client:
                    assert client.bid("campaign", 1.0)["amount"] > 0
                _, text = fetch(f"{url}/ready")
                states = json.loads(text)["objects"]
                assert "did not answer" in states.pop("money")
                assert set(states.values()) == {"ready"}
                _, text = fetch(f"{url}/metrics")  # one object does not fail the others' figures
                assert 'longterm_up{object="money"} 0.0' in text
                assert 'longterm_limit{object="campaign",part="",unit=""' in text
            for thread in threads:
                thread.join()
            assert answers == [200] * WAITING


def wait_for_hold(url):
    with Client(url) as client:
        client.hold("money", "team", 1, "one")


@pytest.mark.slow
def test_a_locked_object_hides_no_other_one(tmp_path):
    with postgres.server() as running:
        if running is None:
            pytest.skip("no server can be started here")
        import psycopg

        (tmp_path / "service.toml").write_text(SERVICE)
        environment = {"LONGTERM_DATABASE": running.url}
        with in_process(str(tmp_path / "service.toml"), environment=environment) as (url, _), Client(url) as client:
            client.set("campaign", budget=12.0)
            waiting = threading.Thread(target=wait_for_hold, args=(url,))
            with psycopg.connect(running.url) as connection:
                connection.execute("SELECT 1 FROM longterm_objects WHERE name = 'money' FOR UPDATE")
                waiting.start()
                begin = time.monotonic()
                log, history, accounts = (
                    json.loads(fetch(f"{url}/{path}")[1]) for path in ("log", "history", "accounts")
                )
                assert time.monotonic() - begin < 15  # 2 s for each reading of an object that is locked
            waiting.join()
        assert [one["object"] for one in log["entries"]] == ["campaign"]
        assert [one["object"] for one in history["changes"]] == ["campaign"]
        for found in (log, history, accounts["money"]):
            assert "did not answer" in str(found["unavailable"])


def test_half_open_requests_are_closed(tmp_path, monkeypatch):
    monkeypatch.setattr("longterm.server.protocol.HEAD_SECONDS", 0.3)
    monkeypatch.setattr("longterm.server.gate.BODY_SECONDS", 0.3)
    head = b"POST /bid HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
    whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with in_thread(tmp_path) as url:
        address = urllib.parse.urlsplit(url)
        # An idle connection that was used before is uvicorn's: it closes it after 5 s.
        for before, sent, answered in (
            (b"", b"", b""),
            (b"", b"GET /", b""),
            (b"", head[:60], b""),
            (b"", head, b" 408 "),
            (b"", head + b"{", b" 408 "),
            (whole, b"GET /", b""),
            (whole, head + b"{", b" 408 "),
        ):
            with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
                connection.sendall(before)
                while before and b"done" not in connection.recv(1000):
                    pass
                connection.sendall(sent)
                received = b"".join(iter(lambda: connection.recv(1000), b""))
                assert answered in received
                assert bool(received) == bool(answered)


def test_calls_above_the_limit_are_told_to_come_back():
    async def busy():
        release, started, sent = asyncio.Event(), asyncio.Event(), []

        async def app(scope, receive, send):
            started.set()
            await release.wait()

        async def send(message):
            sent.append(message)

        gate = Gate(app, Tokens(), most=1)
        scope = {"type": "http", "method": "GET", "path": "/status", "client": ("127.0.0.1", 1)}
        scope["headers"] = [(b"host", b"localhost")]
        first = asyncio.create_task(gate(dict(scope), None, send))
        await started.wait()
        await gate(dict(scope), None, send)
        await gate(dict(scope) | {"path": "/health"}, None, send)
        release.set()
        await first
        return [message for message in sent if message["type"] == "http.response.start"]

    refused, alive = asyncio.run(busy())
    assert (refused["status"], alive["status"]) == (503, 200)
    assert (b"retry-after", b"1") in refused["headers"]


def test_a_lane_gives_up_what_waits_and_says_so():
    async def use():
        lane, stop, ran = Lane("money", seconds=0.1, most=2), threading.Event(), []
        running = asyncio.create_task(lane.run(stop.wait))
        waiting = asyncio.create_task(lane.run(ran.append, "never"))
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="2 waiting calls"):
            await lane.run(ran.append, "too many")
        for task in (running, waiting):
            with pytest.raises(BusyError, match="did not answer"):
                await task
        stop.set()
        await lane.run(ran.append, "later")
        lane.close()
        return ran

    assert asyncio.run(use()) == ["later"]


def test_a_busy_object_answers_503_with_retry_after(tmp_path, monkeypatch):
    monkeypatch.setattr("longterm.server.app.Lane", partial(Lane, most=0))
    with in_thread(tmp_path) as url, Client(url, retries=0) as client:
        with pytest.raises(ServerError, match="waiting calls") as caught:
            client.bid("campaign", 1.0)
        assert (caught.value.status, caught.value.code) == (503, "busy")
        assert caught.value.remedy
