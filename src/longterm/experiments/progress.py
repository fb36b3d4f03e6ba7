"""How far an experiment is: jobs done, rate, time left. A bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TextIO

SECONDS_BETWEEN_LINES = 5.0

Step = Callable[[], None]
"""Called after each job."""


@contextmanager
def job_progress(title: str, total: int, out: TextIO | None = None) -> Iterator[Step]:
    """Show `total` jobs being done."""
    stream = sys.stderr if out is None else out
    made = _bar(title, total) if stream.isatty() else None
    if made is None:
        yield Lines(title, total, stream)
        return
    with made as step:
        yield step


class Lines:
    """A line at the first job, at the last, and every few seconds between them."""

    def __init__(self, title: str, total: int, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._total, self._out, self._clock = title, total, out, clock
        self._done, self._begin, self._said = 0, clock(), float("-inf")

    def __call__(self) -> None:
        self._done += 1
        now = self._clock()
        if self._done < self._total and now - self._said < SECONDS_BETWEEN_LINES:
            return
        self._said = now
        passed = max(now - self._begin, 1e-9)
        left = passed / self._done * (self._total - self._done)
        rate = self._done / passed
        more = (
            f", {rate:.2g} a second, {left:.0f} s left" if self._done > 1 else ""
        )  # one job says little of the others
        self._out.write(f"{self._title}: {self._done} of {self._total} jobs{more}\n")
        self._out.flush()


def _bar(title: str, total: int) -> AbstractContextManager[Step] | None:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None

    @contextmanager
    def shown() -> Iterator[Step]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        begin, done = time.monotonic(), 0
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=total, rate="")

            def step() -> None:
                nonlocal done
                done += 1
                rate = done / max(time.monotonic() - begin, 1e-9)
                bar.update(task, completed=done, rate=f"{rate:.2g} jobs/s")

            yield step

    return shown()
