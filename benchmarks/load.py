"""Load one object behind HTTP with 64 clients on this machine: requests a second and the 99th percentile.

    python benchmarks/load.py [SECONDS] [FOLDER]

A server of Python's standard library, one process with a thread for each client, answers POST /learner (ask + tell) and
POST /chooser (act + settle). The state is in SQLite, relaxed. With FOLDER, a checkout of an earlier longterm with a
journal in place of the database, both servers take turns:

    git worktree add ../then 9f89349
    python benchmarks/load.py 3 ../then
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

CLIENTS, TURNS = 64, 3
SERVER = """
import sys, tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import numpy as np
from longterm import AOGD, LiveLearner, Problem, observe
from longterm.money import Budget, Chooser, EntropicDual, PrimalDual, ThompsonSampling
from longterm.problems.constraints import L2Budget
from longterm.problems.losses import SquaredDistance
from longterm.problems.sets import Ball

folder = tempfile.TemporaryDirectory()
problem = Problem(Ball(10), SquaredDistance(10, targets=Ball(10)), L2Budget(10, budget=0.5))
learner, told = AOGD.for_problem(problem), observe(problem, np.zeros(10), [np.eye(10)[0]])
rule = PrimalDual(ThompsonSampling(5, 4), EntropicDual(0.2), Budget(1e9, 1.0), 10**9 + 1)
if sys.argv[1] == "journal":
    live = LiveLearner(learner, problem, journal=folder.name + "/l", fsync=False)
    chooser = Chooser(rule, journal=folder.name + "/c", fsync=False)
else:
    live = LiveLearner.open(folder.name + "/s.db", learner, problem, durability="relaxed")
    chooser = Chooser.open(folder.name + "/s.db", rule, durability="relaxed")
context, costs = np.array([1.0, 0.2, 0.3, 0.4]), np.linspace(0.1, 0.5, 5)

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        if self.path == "/learner":
            token = live.ask()
            live.tell(token, told)
            answer = str(token.number).encode()
        else:
            choice = chooser.act(context, costs)
            chooser.settle(choice, 0.5)
            answer = str(choice.number).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *_):
        pass

class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
CLIENT = """
import http.client, json, sys, threading, time
port, path, seconds, clients = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
times, lock = [], threading.Lock()
def client(end):
    connection, mine = http.client.HTTPConnection("127.0.0.1", port, timeout=60), []
    while time.perf_counter() < end:
        begin = time.perf_counter()
        connection.request("POST", path)
        response = connection.getresponse()
        response.read()
        assert response.status == 200, response.status
        mine.append(time.perf_counter() - begin)
    connection.close()
    with lock:
        times.extend(mine)
end = time.perf_counter() + seconds
threads = [threading.Thread(target=client, args=(end,)) for _ in range(clients)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(sorted(times)[:: max(len(times) // 1000, 1)] + [len(times)]))
"""


def serve(root: Path, kind: str) -> tuple[subprocess.Popen[str], int]:
    """Start a server on a free port."""
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "OPENBLAS_NUM_THREADS": "1"}
    running = subprocess.Popen([sys.executable, "-c", SERVER, kind], env=environment, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    return running, int(running.stdout.readline())


def load(port: int, path: str, seconds: float) -> tuple[float, float]:
    """Return requests a second and the 99th percentile in milliseconds."""
    call = [sys.executable, "-c", CLIENT, str(port), path, str(seconds), str(CLIENTS)]
    *times, count = json.loads(subprocess.run(call, capture_output=True, text=True, check=True, timeout=300).stdout)
    return count / seconds, 1e3 * times[int(0.99 * len(times))]


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    roots = {"now": (Path(__file__).resolve().parents[1], "database")}
    if len(sys.argv) > 2:
        roots = {"then": (Path(sys.argv[2]).resolve(), "journal")} | roots
    servers = {name: serve(*given) for name, given in roots.items()}
    print(f"{CLIENTS} clients on loopback, medians of {TURNS} turns of {seconds:g} s: requests a second, p99 in ms")
    try:
        for path in ("/learner", "/chooser"):
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
            for _ in range(TURNS):
                for name, (_, port) in servers.items():
                    found[name].append(load(port, path, seconds))
            for name, turns in found.items():
                rate, late = (statistics.median(column) for column in zip(*turns, strict=True))
                print(f"  {path:<10}{name:<6}{rate:>8,.0f}{late:>8.0f}", flush=True)
    finally:
        for running, _ in servers.values():
            running.kill()


if __name__ == "__main__":
    main()
