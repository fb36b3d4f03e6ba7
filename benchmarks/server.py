"""Kill workers of the server while clients use it: count what was lost, and what went over the limit.

    python benchmarks/server.py --requests 100000 --kills 200 --workers 4 --clients 8

Each client process holds money in a ledger and settles it, acts and settles with a chooser, and bids with a pacer.
It writes down what the server acknowledged. At the end these sums are compared with the database. The server and the
clients are on this machine; nothing else is called.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from longterm.server import Client, ServerError
from longterm.server.settings import read_service

LIMIT = 60_000
"""Units of the account: refused calls begin when it is spent."""
SERVICE = """
database = "service.db"
durability = "{durability}"
[ledger.money]
accounts.team = {{limit = {limit}}}
[chooser.images]
actions = ["small", "large"]
horizon = 1_000_000
budgets = [{{limit = 100_000.0, largest = 1.0}}]
dual = {{kind = "EuclideanDual"}}
[pacer.campaign]
rule = {{kind = "DualMirrorDescent", budget = 100_000.0, horizon = 1_000_000, step = 0.01, start = 0.5}}
"""


def client(url: str, number: int, rounds: int, out: Path) -> None:
    """Make calls, and write what was acknowledged and what was not."""
    draw, seen = random.Random(number), {"calls": 0, "settled": 0, "doubtful": 0, "acts": 0, "cost": 0.0, "bids": 0}
    seen |= {"refused": 0, "paid": 0.0, "failed": 0}
    times = []

    def timed(call, *arguments, **options):
        begin = time.perf_counter()
        answer = call(*arguments, **options)
        times.append(time.perf_counter() - begin)
        seen["calls"] += 1
        return answer

    with Client(url, retries=200) as server, out.with_suffix(".progress").open("wb", buffering=0) as progress:
        for k in range(rounds):
            progress.write(b".")
            key, cost = f"{number} {k}", draw.randint(1, 10)
            amount = 0
            try:
                timed(server.hold, "money", "team", 10, key)
                amount = cost
                timed(server.settle_hold, "money", key, cost)
                seen["settled"] += cost
            except ServerError as error:
                if error.status == 402:
                    seen["refused"] += 1
                else:
                    seen["failed"], seen["doubtful"] = seen["failed"] + 1, seen["doubtful"] + amount
            try:
                choice = timed(server.act, "images", context=[1.0], costs=[0.125, 0.25])
                timed(server.settle, "images", choice["token"], reward=0.5)
                seen["acts"] += 1
                seen["cost"] += {"small": 0.125, "large": 0.25}[choice["action"]]
                bid = timed(server.bid, "campaign", 1.0)
                paid = 0.125 if bid["amount"] >= 0.125 else 0.0
                timed(server.settle, "campaign", bid["token"], paid=paid)
                seen["bids"] += 1
                seen["paid"] += paid
            except ServerError as error:
                seen["failed"] += error.status != 402
    out.write_text(json.dumps({"seen": seen, "times": times}))


def workers_of(pid: int) -> list[int]:
    """The worker processes of a server."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:
                continue
            found += [int(child)] if b"spawn_main" in command else []
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--database", default="", help="postgresql://…, in place of a file of SQLite")
    parser.add_argument("--durability", default="relaxed")
    given = parser.parse_args()
    rounds = -(-given.requests // (6 * given.clients))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "service.toml"
        path.write_text(SERVICE.format(durability=given.durability, limit=LIMIT))
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        environment = dict(os.environ) | ({"LONGTERM_DATABASE": given.database} if given.database else {})
        command = [sys.executable, "-m", "longterm", "serve", str(path), "--port", str(port)]
        server = subprocess.Popen([*command, "--workers", str(given.workers)], env=environment)
        try:
            run(server, f"http://127.0.0.1:{port}", folder, rounds, given)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(300)  # workers that were just killed start again first
        os.environ.update(environment)
        report(folder, path, given)


def run(server, url: str, folder: Path, rounds: int, given) -> None:
    """Run the clients, and kill workers meanwhile."""
    with Client(url, retries=40) as ready:
        wait_for(ready)
    begin, killed, draw = time.perf_counter(), 0, random.Random(0)
    arguments = [sys.executable, __file__, "client", url]
    clients = [
        subprocess.Popen([*arguments, str(k), str(rounds), str(folder / f"{k}.json")]) for k in range(given.clients)
    ]
    while any(one.poll() is None for one in clients):
        # Kills are spread over the rounds, not over time, so that workers are killed while they serve.
        done = sum(file.stat().st_size for file in folder.glob("*.progress")) / (rounds * given.clients)
        found = workers_of(server.pid)
        if killed < given.kills * done and found:
            os.kill(draw.choice(found), signal.SIGKILL)
            killed += 1
        time.sleep(draw.uniform(0.0, 0.1))
    seconds = time.perf_counter() - begin
    assert all(one.returncode == 0 for one in clients)
    (folder / "run.json").write_text(json.dumps({"seconds": seconds, "killed": killed}))


def wait_for(ready: Client) -> None:
    while True:
        try:
            ready.status()
        except ServerError:
            time.sleep(0.2)
        else:
            return


def report(folder: Path, path: Path, given) -> None:
    """Compare what was acknowledged with the database."""
    parts = [json.loads((folder / f"{k}.json").read_text()) for k in range(given.clients)]
    total = {key: sum(part["seen"][key] for part in parts) for key in parts[0]["seen"]}
    times = sorted(one for part in parts for one in part["times"])
    facts = json.loads((folder / "run.json").read_text())
    service = read_service(path)
    money, images, campaign = (service.metrics(name) for name in ("money", "images", "campaign"))
    service.close()
    spent = money["spent"]["team"]
    lost = {
        "money": max(total["settled"] - spent, 0),
        "money counted twice": max(spent - total["settled"] - total["doubtful"], 0),
        "money over the limit": max(spent - LIMIT, 0),
        "holds left": 0 if total["failed"] else money["held"]["team"],
        "chooser": abs(images["spent"]["money"] - total["cost"]) if not total["failed"] else 0,
        "pacer": abs(campaign["spent"] - total["paid"]) if not total["failed"] else 0,
        "requests of the chooser": max(total["acts"] - images["requests"], 0),
        "requests of the pacer": max(total["bids"] - campaign["requests"], 0),
    }
    quantile = {share: times[int(share * (len(times) - 1))] for share in (0.5, 0.99)}
    print(f"{given.workers} workers, {given.clients} clients, {facts['killed']} kills, {facts['seconds']:.0f} s")
    print(f"{total['calls']} calls done, {total['refused']} refused (402), {total['failed']} without an answer")
    print(
        f"{total['calls'] / facts['seconds']:.0f} calls/s; median {1e3 * statistics.median(times):.1f} ms, "
        f"99 % {1e3 * quantile[0.99]:.0f} ms, longest {times[-1]:.1f} s"
    )
    print(f"spent {spent} of {LIMIT}; acknowledged {total['settled']}")
    for key, value in lost.items():
        print(f"  {key:<28}{value:g}")
    sys.exit(any(lost.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        client(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
    else:
        main()
