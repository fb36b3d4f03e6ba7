"""Start the server: workers of uvicorn on one address and one database."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from os import PathLike
from pathlib import Path

from longterm._base.extras import import_optional
from longterm._base.validate import count
from longterm.errors import InputError
from longterm.server.settings import read_service
from longterm.server.tokens import require_token

DEMO_STEP = 2
"""Seconds of an interval of the demo's history."""


def serve(
    path: str | PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    access_log: bool = True,
    step: int | None = None,
) -> None:
    """Serve the objects of a TOML file until the process is interrupted.

    Parameters
    ----------
    path : path
        The file.
    host : str
        The address. Any but 127.0.0.1 needs the environment variable LONGTERM_TOKEN, or tokens in the file.
    port : int
        The port.
    workers : int
        Processes. A worker that dies is replaced.
    access_log : bool
        Write a line of JSON to the standard output for each request.
    step : int, optional
        Seconds of an interval of the history.
    """
    token = os.environ.get("LONGTERM_TOKEN", "")
    require_token(token, host, in_file=True)
    count("workers", workers)
    if not 0 < port < 65536:
        raise InputError("port", f"{port} is not a port", "Give a number from 1 to 65535")
    uvicorn = import_optional("uvicorn", "longterm serve needs uvicorn and FastAPI", "server,metrics")
    from longterm.server.app import ACCESS_LOG, HISTORY_STEP, SETTINGS
    from longterm.server.protocol import PatientProtocol

    service = read_service(path)  # so that mistakes are reported once, before workers start
    service.close()
    require_token(token, host, in_file=bool(service.tokens))
    sys.stdout.write(f"http://{host}:{port}/ is the page, /openapi.json has the calls; Ctrl-C ends it\n")
    sys.stdout.flush()
    os.environ[SETTINGS] = os.fspath(Path(path).absolute())
    os.environ[ACCESS_LOG] = "1" if access_log else "0"
    if step is not None:
        os.environ[HISTORY_STEP] = str(step)
    uvicorn.run(
        "longterm.server.app:from_environment",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        http=PatientProtocol,
        access_log=False,
        server_header=False,
        log_level="warning",
        timeout_graceful_shutdown=10,
        timeout_worker_healthcheck=60,  # by default a worker that imports for more than 5 s is killed
    )


def serve_demo(*, host: str = "127.0.0.1", port: int = 8000, workers: int = 1) -> None:
    """Serve invented models, campaigns and accounts in a temporary folder, with invented requests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "service.toml"
        path.write_text((files("longterm.server") / "demo.toml").read_text(encoding="utf-8"), encoding="utf-8")
        with _requests(f"http://{host}:{port}"):
            serve(path, host=host, port=port, workers=workers, access_log=False, step=DEMO_STEP)


@contextmanager
def _requests(url: str) -> Iterator[None]:
    """Send invented requests from another process meanwhile."""
    process = subprocess.Popen([sys.executable, "-m", "longterm.server.demo", url])
    try:
        yield
    finally:
        process.terminate()
        process.wait()
