"""Measure calls a second of 4 processes that share one object, and of choosers that lease their money.

    python benchmarks/processes.py [SECONDS]

"learner" is ask and tell of one learner, "ledger" hold and settle in one account, "chooser" act and settle of one
chooser. Then 4 choosers in memory, each with a budget of its own, and 4 that lease slices of one account, take turns.
PostgreSQL is measured where LONGTERM_TEST_POSTGRES names a server or `pgserver` starts one.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from longterm import AOGD, Ledger, LiveLearner, Problem, observe
from longterm.money import Budget, Chooser, EntropicDual, LeasedAccount, PrimalDual, ThompsonSampling
from longterm.problems.constraints import L2Budget
from longterm.problems.losses import SquaredDistance
from longterm.problems.sets import Ball
from postgres import server

PROCESSES, TURNS = 4, 3
PROBLEM = Problem(Ball(10), SquaredDistance(10, targets=Ball(10)), L2Budget(10, budget=0.5))


def rule() -> PrimalDual:
    return PrimalDual(ThompsonSampling(5, 4), EntropicDual(0.2), Budget(1e9, 1.0), 10**9 + 1)


def learner(url: str, durability: Any) -> Callable[[], None]:
    live = LiveLearner.open(url, AOGD.for_problem(PROBLEM), PROBLEM, durability=durability, expire_after=10**6)
    told = observe(PROBLEM, np.zeros(10), [np.eye(10)[0]])
    return lambda: live.tell(live.ask(), told)


def ledger(url: str, durability: Any) -> Callable[[], None]:
    made, count, base = Ledger.open(url, durability=durability), 0, time.time_ns()
    made.add_account("all", 10**18)

    def request() -> None:
        nonlocal count
        count += 1
        made.hold("all", 100, f"{base} {count}")
        made.settle(f"{base} {count}", 50)

    return request


def answering(chooser: Chooser) -> Callable[[], None]:
    context, costs = np.array([1.0, 0.2, 0.3, 0.4]), np.linspace(0.1, 0.5, 5)
    return lambda: chooser.settle(chooser.act(context, costs), 0.5)


def shared(url: str, durability: Any) -> Callable[[], None]:
    return answering(Chooser.open(url, rule(), durability=durability))


def independent(url: str, durability: Any) -> Callable[[], None]:
    return answering(Chooser(rule()))


def leased(url: str, durability: Any) -> Callable[[], None]:
    money = Ledger.open(url, durability=durability)
    money.add_account("all", 10**18)
    return answering(Chooser(rule(), account=LeasedAccount(money, "all", slice=10**6, units=1000)))


Make = Callable[[str, Any], Callable[[], None]]


def work(make: Make, url: str, durability: str, seconds: float, gate: Any, out: Any) -> None:
    call, done = make(url, durability), 0
    call()
    gate.wait()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()
        done += 1
    out.put(done)


def rate(make: Make, url: str, durability: str, seconds: float) -> float:
    """Return the pairs of calls a second of all processes together."""
    make(url, durability)()
    context = multiprocessing.get_context("spawn")
    out, gate = context.Queue(), context.Barrier(PROCESSES)
    workers = [context.Process(target=work, args=(make, url, durability, seconds, gate, out)) for _ in range(PROCESSES)]
    for worker in workers:
        worker.start()
    done = sum(out.get() for _ in workers)
    for worker in workers:
        worker.join()
    return done / seconds


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    print(f"{PROCESSES} processes on one object, calls a second (a pair is two calls)")
    with tempfile.TemporaryDirectory() as folder, server() as running:
        bases = [("SQLite", f"{folder}/{{}}.db")] + ([] if running is None else [("PostgreSQL", running.url)])
        for base, url in bases:
            for durability in ("relaxed", "commit"):
                rates = []
                for name, make in (("learner", learner), ("ledger", ledger), ("chooser", shared)):
                    place = url.format(f"{name}-{durability}")
                    rates.append(f"{name} {2 * rate(make, place, durability, seconds):>7,.0f}")
                print(f"  {base:<11}{durability:<9}{'   '.join(rates)}", flush=True)
        alone, together = [], []
        for turn in range(TURNS):
            alone.append(rate(independent, "", "relaxed", seconds))
            together.append(rate(leased, f"{folder}/leased-{turn}.db", "relaxed", seconds))
        ratio = statistics.median(b / a for a, b in zip(alone, together, strict=True))
        first, second = statistics.median(alone), statistics.median(together)
        print(f"{PROCESSES} choosers in memory: {first:,.0f} requests a second; leased {second:,.0f}: {ratio:.2f}")


if __name__ == "__main__":
    main()
