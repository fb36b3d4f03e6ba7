"""How far a long run or an experiment is: a callback, a bar on a terminal or in a notebook, a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, TextIO

Callback = Callable[[int, int | None], None]
"""Called now and then with what is done and how much there is in all (None where that is not known)."""

Progress = Callback | Literal["auto"] | None

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_DRAWINGS = 0.2


def _nobody(done: int, total: int | None) -> None:
    """Report to no one."""


@contextmanager
def reporter(
    progress: Progress, title: str, *, unit: str = "rounds", lines: TextIO | None = None
) -> Iterator[Callback]:
    """The callback to use.

    Parameters
    ----------
    progress : callable, "auto" or None
        The user's own, none; or ("auto") a bar, in a notebook, or if `rich` is installed and there is a terminal.
    title : str
    unit : str
        What is counted.
    lines : text stream, optional
        With "auto", and where it is no terminal, a line goes there now and then. Left out: a bar on stderr, or nothing.

    Yields
    ------
    callable
        Of what is done, and how much there is in all.
    """
    if progress is not None and progress != "auto":
        yield progress
        return
    terminal = (sys.stderr if lines is None else lines).isatty() and find_spec("rich") is not None
    if progress == "auto" and terminal:
        with _bar(title, unit) as bar:
            yield bar
    elif progress == "auto" and lines is None and in_notebook():
        yield Notebook(title, unit)
    else:
        yield Lines(title, unit, lines) if progress == "auto" and lines is not None else _nobody


class Lines:
    """A line at the first, at the last, and every few seconds between them."""

    def __init__(self, title: str, unit: str, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._unit, self._out, self._clock = title, unit, out, clock
        self._begin, self._written = clock(), float("-inf")

    def __call__(self, done: int, total: int | None) -> None:
        now = self._clock()
        if done != total and now - self._written < SECONDS_BETWEEN_LINES:
            return
        self._written = now
        rate = done / max(now - self._begin, 1e-9)
        of, left = ("", "") if total is None else (f" of {total}", f", {(total - done) / rate:.0f} s left")
        more = f", {rate:.2g} a second{left}" if done > 1 else ""  # one says little of the others
        self._out.write(f"{self._title}: {done}{of} {self._unit}{more}\n")
        self._out.flush()


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


class Notebook:
    """A bar below the cell, drawn anew a few times a second."""

    def __init__(self, title: str, unit: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._unit, self._clock = title, unit, clock
        self._drawn = float("-inf")
        self._handle: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        now = self._clock()
        if done != total and now - self._drawn < SECONDS_BETWEEN_DRAWINGS:
            return
        self._drawn = now
        show: Any = import_module("IPython.display")
        share = "" if total is None else f' value="{done}" max="{total}"'
        of = "" if total is None else f" of {total:,}"
        page = show.HTML(f"{escape(self._title)} <progress{share}></progress> {done:,}{of} {escape(self._unit)}")
        if self._handle is None:
            self._handle = show.display(page, display_id=True)
        else:
            self._handle.update(page)


@contextmanager
def _bar(title: str, unit: str) -> Iterator[Callback]:
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
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, rate="")

        def show(done: int, total: int | None) -> None:
            rate = done / max(time.monotonic() - begin, 1e-9)
            bar.update(task, completed=done, total=total, rate=f"{rate:.3g} {unit}/s")

        yield show
