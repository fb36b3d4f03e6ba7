"""Progress of a long run or an experiment: a callback, a bar on a terminal or in a notebook, or lines of text."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Literal, TextIO

Callback = Callable[[int, int | None], None]
"""Called with the number of finished rounds or jobs and their total, or None if the total is unknown."""

Progress = Callback | Literal["auto"] | None

SECONDS_BETWEEN_LINES = 5.0


def _ignore(done: int, total: int | None) -> None:
    """Ignore a progress report."""


@contextmanager
def reporter(
    progress: Progress, title: str, *, unit: str = "rounds", lines: TextIO | None = None, before: int = 0
) -> Iterator[Callback]:
    """Yield the callback for progress reports.

    Parameters
    ----------
    progress : callable, "auto" or None
        The user's callback, or None. With "auto", a bar on a terminal or in a notebook, if `rich` is installed.
    title : str
    unit : str
        The unit that is counted.
    lines : text stream, optional
        With "auto" and without a terminal, lines of progress are written to this stream.
    before : int
        The number that was finished earlier. It does not count for the rate.

    Yields
    ------
    callable
        A function of the finished number and the total.
    """
    if progress is not None and progress != "auto":
        yield progress
        return
    shows_bar = (sys.stderr if lines is None else lines).isatty() or (lines is None and in_notebook())
    if progress == "auto" and shows_bar and find_spec("rich") is not None:
        with _bar(title, unit, before) as bar:
            yield bar
    else:
        yield Lines(title, unit, lines, before=before) if progress == "auto" and lines is not None else _ignore


class Lines:
    """Progress as lines of text: the first, the last, and one every few seconds."""

    def __init__(
        self, title: str, unit: str, out: TextIO, clock: Callable[[], float] = time.monotonic, *, before: int = 0
    ) -> None:
        self._title, self._unit, self._out, self._clock, self._before = title, unit, out, clock, before
        self._begin, self._written = clock(), float("-inf")

    def __call__(self, done: int, total: int | None) -> None:
        now = self._clock()
        if done != total and now - self._written < SECONDS_BETWEEN_LINES:
            return
        self._written = now
        new = done - self._before
        rate = max(new, 1) / max(now - self._begin, 1e-9)
        of, left = ("", "") if total is None else (f" of {total}", f", {(total - done) / rate:.0f} s left")
        more = f", {rate:.2g} a second{left}" if new > 1 else ""  # one job is no basis for a rate
        self._out.write(f"{self._title}: {done}{of} {self._unit}{more}\n")
        self._out.flush()


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def _bar(title: str, unit: str, before: int) -> Iterator[Callback]:
    """Yield the callback of a bar."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    begin = time.monotonic()
    with Bar(*columns, console=None if in_notebook() else Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, completed=before, rate="")

        def show(done: int, total: int | None) -> None:
            rate = (done - before) / max(time.monotonic() - begin, 1e-9)
            bar.update(task, completed=done, total=total, rate=f"{rate:.3g} {unit}/s")

        yield show
