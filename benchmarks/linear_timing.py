"""Data sets, timing in turns, and lines of the table, for the parts of benchmarks/linear.py."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[2] / "shared" / "data"


class Line(NamedTuple):
    """A line of the table: a median, and a comparison with others of the same run."""

    setting: str
    contestant: str
    value: float
    unit: str = "ns/round"
    remark: str = ""


@cache
def data_set(name: str) -> Any:
    """Return a data set, from the folder beside the checkout if there is one."""
    if "LONGTERM_DATA" not in os.environ and BESIDE_THE_CHECKOUT.exists():
        os.environ["LONGTERM_DATA"] = str(BESIDE_THE_CHECKOUT)
    from longterm.data import load

    return load(name)


def nanoseconds(
    contestants: Mapping[str, tuple[Callable[[], object], int]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Return ns per round for each contestant, one number per turn; a contestant is (work, rounds).

    What the machine does besides touches all contestants alike, so compare numbers of the same turn. Work in a single
    thread may be measured by `time.thread_time`: then what others do on the same processor does not count.
    """
    for work, _ in contestants.values():
        work()  # compiles, reads pages, warms caches
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, (work, rounds) in contestants.items():
            begin = clock()
            work()
            times[name].append(1e9 * (clock() - begin) / rounds)
    return times


def ratio(times: Mapping[str, list[float]], one: str, other: str) -> float:
    """Return the median over the turns of one's time over the other's."""
    return statistics.median(a / b for a, b in zip(times[one], times[other], strict=True))
