"""What a server with four workers does under one locked row, with half-open requests, and its connections.

    python benchmarks/server_liveness.py [CALLS] [HALF_OPEN]

A row of the ledger is locked on PostgreSQL while 220 holds wait. 18 probes of /health, each on a new connection, are
timed, and one call of another object. Then the row is released. Then 700 connections send a part of a request each, and
those that are still open after 25 seconds are counted.
"""

from __future__ import annotations

import collections
import http.client
import json
import socket
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from postgres import server
from servers import SERVICE, in_process

COUNT = "SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
JSON = {"Content-Type": "application/json"}
HEAD = b"POST /bid HTTP/1.1\r\nHost: localhost\r\n"
PARTS = (b"", b"GET / HT", HEAD, HEAD + b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{")


def call(address: str, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, float]:
    """Return the status and the milliseconds of one request; 0 without an answer."""
    begin, connection = time.perf_counter(), http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), JSON)
        status = connection.getresponse().status
    except OSError:
        status = 0
    finally:
        connection.close()
    return status, 1000 * (time.perf_counter() - begin)


def under_lock(address: str, url: str, calls: int) -> None:
    """Lock a row, and print what happens meanwhile."""
    import psycopg

    answers: list[int] = []

    def hold(number: int) -> None:
        body = {"name": "money", "account": "team", "amount": 1, "key": f"waiting {number}"}
        answers.append(call(address, "POST", "/hold", body)[0])

    with psycopg.connect(url) as locking:
        locking.execute("SELECT 1 FROM longterm_objects WHERE name = 'money' FOR UPDATE")
        threads = [threading.Thread(target=hold, args=(number,)) for number in range(calls)]
        for thread in threads:
            thread.start()
        time.sleep(4)
        probes = [call(address, "GET", "/health") for _ in range(18)]
        good = sum(status == 200 and took <= 100 for status, took in probes)
        print(f"/health within 100 ms: {good} of 18, the slowest {max(took for _, took in probes):.0f} ms")
        status, took = call(address, "POST", "/bid", {"name": "campaign", "value": 1.0})
        print(f"a call of another object: {status} after {took:.0f} ms")
    for thread in threads:
        thread.join()
    print(f"the waiting calls: {dict(collections.Counter(answers))}")


def half_open(address: str, number: int) -> int:
    """Return how many connections with a part of a request are open after 25 seconds."""
    host, _, port = address.partition(":")
    connections = [socket.create_connection((host, int(port))) for _ in range(number)]
    for place, connection in enumerate(connections):
        connection.sendall(PARTS[place % len(PARTS)])
    time.sleep(25)
    alive = 0
    for connection in connections:
        connection.setblocking(False)
        try:
            while connection.recv(4096):
                pass
        except BlockingIOError:
            alive += 1
        except OSError:
            pass
        connection.close()
    return alive


def main() -> None:
    calls, number = int((*sys.argv[1:], 220)[0]), int((*sys.argv[2:], 700)[0])
    with server() as running, tempfile.TemporaryDirectory() as folder:
        if running is None:
            raise SystemExit("no PostgreSQL server can be started here")
        import psycopg

        path = Path(folder) / "service.toml"
        path.write_text(SERVICE)
        arguments = str(path), "--workers", "4", "--no-access-log"
        with in_process(*arguments, environment={"LONGTERM_DATABASE": running.url}) as (url, _):
            time.sleep(5)  # until every worker answers
            address = urllib.parse.urlsplit(url).netloc
            under_lock(address, running.url, calls)
            with psycopg.connect(running.url) as connection:
                print(f"connections of 4 workers: {connection.execute(COUNT).fetchone()[0]}")
            print(f"half-open requests after 25 s: {half_open(address, number)} of {number}")


if __name__ == "__main__":
    main()
