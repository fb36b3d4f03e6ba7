"""Throughput of the server's calls beside a bare FastAPI endpoint with one UPDATE, on PostgreSQL.

    python benchmarks/server_latency.py [SECONDS] [CLIENTS]

Both servers have one worker and ask for the same durability. The bare endpoint validates a body with two fields and
updates one row through psycopg. Clients are threads of this process with connections that stay open. The servers take
turns of one second each, so that both find the machine in the same state. "ledger" is /hold and /settle-hold in turn,
"act" is /act and /settle in turn. The table has calls a second, and the median of the ratio over the turns.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from postgres import server
from servers import answers, free_port, in_process

SERVICE = """
database = "set by the environment"
durability = "relaxed"
[ledger.money]
accounts.team = {limit = 1_000_000_000}
[chooser.images]
actions = ["small", "large"]
horizon = 1_000_000
budgets = [{limit = 1_000_000.0, largest = 1.0}]
dual = {kind = "EuclideanDual"}
"""
BARE = """
import os, psycopg
from fastapi import FastAPI
from pydantic import BaseModel

class Body(BaseModel):
    name: str
    amount: int

app, connection = FastAPI(), None

@app.get("/health")
async def health(): return {}

@app.post("/add")
async def add(body: Body):
    global connection
    if connection is None:
        connection = await psycopg.AsyncConnection.connect(os.environ["BARE_DATABASE"], autocommit=True)
        await connection.execute("SET synchronous_commit = off")
    await connection.execute("UPDATE bare SET amount = amount + %s WHERE name = %s", (body.amount, body.name))
    return {"done": True}
"""
JSON = {"Content-Type": "application/json"}
NUMBERS = itertools.count()


def post(connection: Any, path: str, body: dict[str, Any]) -> dict[str, Any]:
    connection.request("POST", path, json.dumps(body), JSON)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise RuntimeError(content)
    return json.loads(content)


def add(connection: Any) -> None:
    for _ in range(2):
        post(connection, "/add", {"name": "a", "amount": 1})


def ledger(connection: Any) -> None:
    key = f"key {next(NUMBERS)}"
    post(connection, "/hold", {"name": "money", "account": "team", "amount": 2, "key": key})
    post(connection, "/settle-hold", {"name": "money", "key": key, "actual": 1})


def act(connection: Any) -> None:
    choice = post(connection, "/act", {"name": "images", "context": [1.0]})
    post(connection, "/settle", {"name": "images", "token": choice["token"], "reward": 0.5, "cost": 0.5})


def rate(url: str, work: Any, seconds: float, clients: int) -> float:
    """Return the calls a second of so many clients."""
    address, done, end = urllib.parse.urlsplit(url).netloc, [0] * clients, time.perf_counter() + seconds

    def run(place: int) -> None:
        connection = http.client.HTTPConnection(address)
        while time.perf_counter() < end:
            work(connection)
            done[place] += 2
        connection.close()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(clients)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - begin)


@contextmanager
def bare(folder: Path, database: str) -> Iterator[str]:
    """Start the bare endpoint."""
    (folder / "bare.py").write_text(BARE)
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "bare:app", "--port", str(port), "--http", "h11", "--no-access-log"]
    process = subprocess.Popen(
        [*command, "--log-level", "warning"], cwd=folder, env={**os.environ, "BARE_DATABASE": database}
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while not answers(url):
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    turns, clients = int((*sys.argv[1:], 10, 8)[0]), int((*sys.argv[2:], 8)[0])
    with server() as running, tempfile.TemporaryDirectory() as name:
        if running is None:
            raise SystemExit("no PostgreSQL server can be started here")
        import psycopg

        with psycopg.connect(running.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE bare (name TEXT PRIMARY KEY, amount BIGINT)")
            connection.execute("INSERT INTO bare VALUES ('a', 0)")
        folder = Path(name)
        (folder / "service.toml").write_text(SERVICE)
        arguments = str(folder / "service.toml"), "--no-access-log"
        with (
            bare(folder, running.url) as plain,
            in_process(*arguments, environment={"LONGTERM_DATABASE": running.url}) as (url, _),
        ):
            for work in (ledger, act):
                rate(plain, add, 0.5, clients)
                rate(url, work, 0.5, clients)
                pairs = [(rate(plain, add, 1.0, clients), rate(url, work, 1.0, clients)) for _ in range(turns)]
                ours, theirs = (statistics.median(pair[place] for pair in pairs) for place in (1, 0))
                ratio = statistics.median(own / other for other, own in pairs)
                print(f"{work.__name__:<8} {ours:8,.0f} calls/s   bare {theirs:8,.0f} calls/s   ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
