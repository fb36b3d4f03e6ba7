"""A PostgreSQL server for tests and benchmarks: LONGTERM_TEST_POSTGRES names one by URL, or `pgserver` starts one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple


class Server(NamedTuple):
    """A running server."""

    url: str
    restart: Callable[[], object] | None
    """Stop it at once, as a crash does, and start it again; None if it is not ours."""
    stop: Callable[[], object] | None = None
    """Stop it at once; `restart` starts it again."""


@contextmanager
def server(folder: Path | None = None) -> Iterator[Server | None]:
    """Start a server, or yield None if none can be started here."""
    url = os.environ.get("LONGTERM_TEST_POSTGRES")
    if url:
        yield Server(url, None)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import pgserver
            import psycopg  # noqa: F401

            place = Path(tempfile.mkdtemp(prefix="postgres-")) if folder is None else folder
            running = pgserver.get_server(place)
        except Exception:  # not installed, or whatever initdb says
            yield None
            return

    def control(*arguments: str) -> object:
        return pgserver.pg_ctl(["-w", "-m", "immediate", *arguments], pgdata=running.pgdata, user=running.system_user)

    try:
        restart = partial(control, "-l", str(running.log), "restart")
        yield Server(running.get_uri(), restart, partial(control, "stop"))
    finally:
        running.cleanup()
        if (running.pgdata / "postmaster.pid").exists():  # a server that was restarted is not stopped by it
            with suppress(subprocess.CalledProcessError):
                control("stop")
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
