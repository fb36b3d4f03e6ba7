"""Time calls of stored objects beside those of another checkout, in one run.

    git worktree add ../before 58542ae1
    python benchmarks/beside.py ../before [SQLite|PostgreSQL] [KIND]

A pair is ask and tell of a learner, bid and settle of a pacer, hold and settle of a ledger, act and settle of a
chooser, route and settle of a router. Both checkouts take turns of 100 pairs, with durability "relaxed". "ratio" is the
median over the turns of this version's time beside the other's. A ratio of 1 or less is as fast. Then 4 processes share
one chooser, in turns of 2 seconds.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from postgres import server

KINDS = ("learner", "pacer", "ledger", "chooser", "router")
PAIRS, TURNS = 100, 30
PROCESSES, SECONDS, SHARED_TURNS = 4, 2.0, 5
WORKER = """
import json, sys, time, numpy as np
from longterm import AOGD, Ledger, LiveLearner, observe
try:
    from longterm.money import Budget, Chooser, DualMirrorDescent, EntropicDual, LivePacer, PrimalDual, Router
    from longterm.money import ThompsonSampling
except ImportError:
    from longterm.decisions import Budget, Chooser, EntropicDual, PrimalDual, Router, ThompsonSampling
    from longterm.pacing import DualMirrorDescent, LivePacer
from longterm import problems

url, prefix = sys.argv[1:]

def learner():
    problem = problems.two_dimensional()
    rule, told = AOGD.for_problem(problem), observe(problem, np.zeros(2), [np.array([0.3, 0.2])])
    live = LiveLearner.open(url, rule, problem, name=prefix + " learner", durability="relaxed")
    return lambda number: live.tell(live.ask(), told)

def pacer():
    rule = DualMirrorDescent(budget=1e9, horizon=10**9, step=0.1, start=0.5, mirror="euclidean")
    live = LivePacer.open(url, rule, name=prefix + " pacer", durability="relaxed")
    return lambda number: live.settle(live.bid(0.5), 0.1)

def ledger():
    made, base = Ledger.open(url, name=prefix + " ledger", durability="relaxed"), time.time_ns()
    made.add_account("organisation", 10**18)
    made.add_account("team", 10**18, parent="organisation")
    def request(number):
        made.hold("team", 100, f"{base} {number}")
        made.settle(f"{base} {number}", 50)
    return request

def chooser():
    rule = PrimalDual(ThompsonSampling(5, 4), EntropicDual(0.2), Budget(1e9, 1.0), 10**9 + 1)
    made = Chooser.open(url, rule, name=prefix + " chooser", durability="relaxed")
    context, costs = np.array([1.0, 0.2, 0.3, 0.4]), np.linspace(0.1, 0.5, 5)
    return lambda number: made.settle(made.act(context, costs), 0.5)

def router():
    models = {"small": 1e-4, "middle": 1e-3, "large": 1e-2}
    options = {"features": 10, "name": prefix + " router", "durability": "relaxed"}
    made, x = Router.for_models(models, per_request=1e-3, url=url, **options), np.linspace(-1, 1, 10)
    return lambda number: made.settle(made.route(x), 0.5, 1e-4)

made, number = {}, 0
for line in sys.stdin:
    kind, what, size = line.split()
    if kind not in made:
        made[kind] = globals()[kind]()
    times, end = [], time.perf_counter() + (float(size) if what == "seconds" else 1e9)
    while time.perf_counter() < end and (what == "seconds" or len(times) < int(size)):
        begin, number = time.perf_counter(), number + 1
        made[kind](number)
        times.append(time.perf_counter() - begin)
    print(json.dumps([len(times), 1e6 * sorted(times)[len(times) // 2]]), flush=True)
"""


class Worker:
    """A process of one of the checkouts."""

    def __init__(self, root: Path, url: str, prefix: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, url, prefix],
            env=os.environ | {"PYTHONPATH": str(root / "src"), "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, kind: str, what: str, size: float) -> None:
        """Begin to make pairs of calls: so many, or for so many seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{kind} {what} {size}\n")
        self._process.stdin.flush()

    def answer(self) -> tuple[int, float]:
        """Return the number of pairs and the median of their microseconds."""
        assert self._process.stdout is not None
        count, median = json.loads(self._process.stdout.readline())
        return count, median

    def close(self) -> None:
        self._process.communicate()


def pairs(roots: dict[str, Path], urls: dict[str, str], kinds: tuple[str, ...]) -> None:
    """Print the time of a pair of calls of one process."""
    run = uuid.uuid4().hex[:8]
    workers = {name: Worker(root, urls[name], f"{name} {run}") for name, root in roots.items()}
    for kind in kinds:
        taken: dict[str, list[float]] = {name: [] for name in workers}
        for turn in range(TURNS + 1):
            for name, worker in list(workers.items())[:: 1 if turn % 2 else -1]:
                worker.ask(kind, "pairs", PAIRS)
                _, median = worker.answer()
                if turn:
                    taken[name].append(median)
        ratio = statistics.median(now / then for now, then in zip(taken["now"], taken["then"], strict=True))
        then, now = statistics.median(taken["then"]), statistics.median(taken["now"])
        print(f"    {kind:<10}then {then:>8.0f} µs   now {now:>8.0f} µs   ratio {ratio:.2f}", flush=True)
    for worker in workers.values():
        worker.close()


def shared(roots: dict[str, Path], urls: dict[str, str]) -> None:
    """Print the calls a second of several processes on one chooser."""
    run, rates = uuid.uuid4().hex[:8], {name: [] for name in roots}  # type: str, dict[str, list[float]]
    crowds = {
        name: [Worker(root, urls[name], f"{name} shared {run}") for _ in range(PROCESSES)]
        for name, root in roots.items()
    }
    for turn in range(SHARED_TURNS + 1):
        for name, crowd in crowds.items():
            for worker in crowd:
                worker.ask("chooser", "seconds", SECONDS if turn else 0.2)
            done = sum(worker.answer()[0] for worker in crowd)
            if turn:
                rates[name].append(2 * done / SECONDS)
    then, now = statistics.median(rates["then"]), statistics.median(rates["now"])
    ratio = statistics.median(b / a for a, b in zip(rates["then"], rates["now"], strict=True))
    print(
        f"    {PROCESSES} processes on one chooser, calls a second: then {then:,.0f}, now {now:,.0f}, ratio {ratio:.2f}"
    )
    for crowd in crowds.values():
        for worker in crowd:
            worker.close()


def own_database(url: str, name: str) -> str:
    """Return the URL of a new database of a server: the tables of two versions may differ."""
    import psycopg
    from psycopg import conninfo

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name}")
    parts = conninfo.conninfo_to_dict(url) | {"dbname": name}
    return f"postgresql:///{name}?" + urlencode({key: value for key, value in parts.items() if key != "dbname"})


def main(arguments: list[str]) -> None:
    roots = {"then": Path(arguments[0]).resolve(), "now": Path(__file__).resolve().parents[1]}
    bases = arguments[1:2] or ["SQLite", "PostgreSQL"]
    kinds = tuple(arguments[2:]) or KINDS
    for base in bases:
        with tempfile.TemporaryDirectory() as folder, server() as running:
            urls = {name: f"{folder}/{name}.db" for name in roots}
            if base == "PostgreSQL":
                if running is None:
                    print("    no PostgreSQL server can be started here")
                    continue
                urls = {name: own_database(running.url, f"beside_{name}") for name in roots}
            print(f"{base}, relaxed", flush=True)
            pairs(roots, urls, kinds)
            if kinds == KINDS or "chooser" in kinds:
                shared(roots, urls)


if __name__ == "__main__":
    main(sys.argv[1:])
