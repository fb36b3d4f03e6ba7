"""Nobody gets in by accident: addresses, tokens, names of hosts, sizes and kinds of bodies."""

import base64
import json
import socket
import subprocess
import sys

import pytest

from longterm import InputError
from longterm.server import Client, ServerError
from longterm.server.gate import MAX_BODY
from longterm.server.tokens import is_loopback, require_token
from servers import fetch, in_process, in_thread

TOKEN = "a-long-random-text-for-tests"
JSON = {"Content-Type": "application/json"}
BID = json.dumps({"name": "campaign", "value": 0.1}).encode()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with in_thread(tmp_path_factory.mktemp("guarded"), token=TOKEN) as url:
        yield url


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_other_addresses_need_a_token(host):
    assert not is_loopback(host)
    with pytest.raises(InputError, match="LONGTERM_TOKEN"):
        require_token("", host)
    assert require_token(TOKEN, host) == TOKEN
    with pytest.raises(InputError, match="16 characters"):
        require_token("short", host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_this_machine_needs_none(host):
    assert is_loopback(host)
    assert require_token("", host) == ""


def test_the_command_refuses_an_open_address(tmp_path):
    (tmp_path / "service.toml").write_text("database = 'a.db'\n[ledger.money]\naccounts = {team = {limit = 1}}\n")
    command = [sys.executable, "-m", "longterm", "serve", str(tmp_path / "service.toml"), "--host", "0.0.0.0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "LONGTERM_TOKEN" in done.stderr


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": TOKEN},
        {"Authorization": "Basic !!!"},
        {"Authorization": f"Digest {TOKEN}"},
    ],
)
@pytest.mark.parametrize("path", ["", "metrics", "status", "history", "docs", "openapi.json", "nothing"])
def test_every_path_asks_for_the_token(guarded, path, headers):
    status, text = fetch(f"{guarded}/{path}", headers=headers)
    assert (status, json.loads(text)["error"]["code"]) == (401, "no token")


def test_the_token_opens_every_path(guarded):
    for scheme in (f"Bearer {TOKEN}", "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()):
        assert fetch(f"{guarded}/status", headers={"Authorization": scheme})[0] == 200
    with Client(guarded, token=TOKEN) as client:
        assert client.bid("campaign", 0.1)["amount"] > 0
    with Client(guarded, token="") as client:
        for call in (client.status, lambda: client.bid("campaign", 0.1)):
            with pytest.raises(ServerError, match="401"):
                call()
    assert fetch(f"{guarded}/health") == (200, '{"done":true}')


def test_the_client_reads_the_token_from_the_environment(guarded, monkeypatch):
    monkeypatch.setenv("LONGTERM_TOKEN", TOKEN)
    with Client(guarded) as client:
        assert client.bid("campaign", 0.1)["amount"] > 0


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "192.168.1.5", ""])
def test_a_name_that_leads_here_is_refused(url, host):
    """A web page may give its own name the address 127.0.0.1 (DNS rebinding)."""
    assert fetch(f"{url}/status", headers={"Host": host})[0] in (400, 401)
    assert fetch(f"{url}/status", headers={"Host": "localhost:1"})[0] == 200


def test_other_machines_are_refused_without_a_token(url):
    """As behind a proxy that says where a request comes from."""
    assert fetch(f"{url}/status", headers={"X-Forwarded-For": "203.0.113.9"})[0] == 401


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_form_of_another_page_is_refused(url, kind):
    status, text = fetch(f"{url}/bid", BID, {"Content-Type": kind})
    assert (status, json.loads(text)["error"]["code"]) == (415, "not JSON")
    assert fetch(f"{url}/bid", BID, JSON)[0] == 200


def test_no_other_origin_is_allowed(url):
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"} | JSON
    assert fetch(f"{url}/bid", b"", headers, method="OPTIONS")[0] == 405


def exchange(url, sent):
    """The first line of the answer to raw bytes."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(sent)
        return connection.recv(100).partition(b"\r\n")[0]


def test_large_bodies_are_refused_whatever_length_they_declare(url):
    assert fetch(f"{url}/bid", b" " * (MAX_BODY - len(BID)) + BID, JSON)[0] == 200
    head = b"POST /bid HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for length in (str(MAX_BODY + 1), "9" * 20):
        assert b" 413 " in exchange(url, head + f"Content-Length: {length}\r\n\r\n".encode())
    chunk = f"{MAX_BODY + 1:x}\r\n".encode() + b" " * (MAX_BODY + 1)  # the server need not read any further
    assert b" 413 " in exchange(url, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk)


def test_websockets_are_closed(url):
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    assert b" 101 " not in exchange(url, head)


@pytest.mark.parametrize("path", ["../service.toml", "%2e%2e/service.db", "page.py", "page/../app.py", "demo.toml"])
def test_no_path_of_a_request_is_opened(url, path):
    assert fetch(f"{url}/{path}")[0] == 404


HOSTILE = ["../../etc/passwd", "/etc/passwd", "__import__('os')", "{{7*7}}", "'; DROP TABLE longterm_objects; --", "\0"]


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_are_texts(url, tmp_path, text):
    """Names, keys, tokens, prompts and groups are compared or stored, and nothing else."""
    calls = {
        "act": {"name": "models", "prompt": text, "key": text},
        "bid": {"name": text, "value": 1.0},
        "skip": {"name": "campaign", "token": text},
        "ask": {"name": "demand", "prediction": 1.0, "groups": [text]},
        "hold": {"name": "money", "account": text, "amount": 1, "key": text},
    }
    for call, body in calls.items():
        status, answer = fetch(f"{url}/{call}", json.dumps(body).encode(), JSON)
        assert status in (200, 400, 404, 409), answer
        assert "root:" not in answer
    assert json.loads(fetch(f"{url}/status")[1])["models"]["kind"] == "router"


@pytest.mark.slow
def test_workers_of_an_open_address_ask_for_the_token(tmp_path):
    (tmp_path / "service.toml").write_text("database = 'a.db'\n[ledger.money]\naccounts = {team = {limit = 1}}\n")
    arguments = str(tmp_path / "service.toml"), "--host", "0.0.0.0", "--workers", "2"
    with in_process(*arguments, environment={"LONGTERM_TOKEN": TOKEN}) as (url, _):
        assert fetch(f"{url}/status")[0] == 401
        assert fetch(f"{url}/status", headers={"Authorization": f"Bearer {TOKEN}"})[0] == 200
