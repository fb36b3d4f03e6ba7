"""Progress of a long run: a callback (done, total), a bar where there is somebody to look at it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

Report = Callable[[int, int | None], None]
"""Called between blocks with the rounds done and the rounds in all (None where that is not known)."""

Progress = Report | Literal["auto"] | None


def _nobody(done: int, total: int | None) -> None:
    """Report to no one."""


@contextmanager
def reporter(progress: Progress, title: str) -> Iterator[Report]:
    """The callback to use: the user's, none, or ("auto") a bar if `rich` is installed and stderr is a terminal."""
    if progress is None or (progress == "auto" and not sys.stderr.isatty()):
        yield _nobody
    elif progress == "auto":
        with _bar(title) as report:
            yield report
    else:
        yield progress


@contextmanager
def _bar(title: str) -> Iterator[Report]:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
    except ImportError:
        yield _nobody
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
