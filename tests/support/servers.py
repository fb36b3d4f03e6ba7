"""A server in a thread, or with several workers as a process of its own, on a free port of this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SERVICE = """
database = "service.db"
durability = "relaxed"
title = "Test"

[ledger.money]
unit = "cent"
accounts.organisation = {limit = 1000}
accounts.team = {limit = 600, parent = "organisation"}

[chooser.images]
actions = ["small", "large"]
features = 2
horizon = 100
budgets = [{limit = 3.0, largest = 1.0}]
dual = {kind = "EntropicDual", start = 0.5}

[router.models]
prices = {small = 3e-5, large = 1.5e-2}
per_request = 1e-3

[pacer.campaign]
rule = {kind = "DualMirrorDescent", budget = 10.0, horizon = 20, step = 0.1, start = 0.5}

[learner.power]
problem = "longterm.problems:two_dimensional"
learner = "aogd beta=0.5"

[intervals.demand]
confidence_level = 0.9
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def in_thread(folder: Path, text: str = SERVICE, *, token: str = "", step: int = 10, log: Any = None) -> Iterator[str]:
    """The address of a server in this process."""
    import uvicorn

    from longterm.server.app import create_app
    from longterm.server.protocol import PatientProtocol
    from longterm.server.settings import read_service

    path = folder / "service.toml"
    path.write_text(text)
    app = create_app(read_service(path), token=token, step=step, log=log)
    port = free_port()
    options = {"http": PatientProtocol, "log_level": "warning", "server_header": False}
    server = uvicorn.Server(uvicorn.Config(app, port=port, **options))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def in_process(*arguments: str, environment: Mapping[str, str] = {}, wait: bool = True) -> Iterator[tuple[str, Any]]:
    """The address and the process of `longterm serve` with these arguments."""
    port = free_port()
    command = [sys.executable, "-m", "longterm", "serve", *arguments, "--port", str(port)]
    process = subprocess.Popen(command, env={**os.environ, **environment}, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    try:
        while wait and process.poll() is None and not answers(url):
            time.sleep(0.1)
        yield url, process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def fetch(
    url: str, body: bytes | None = None, headers: Mapping[str, str] = {}, method: str | None = None
) -> tuple[int, str]:
    """The status and the text of one request."""
    request = urllib.request.Request(url, body, dict(headers), method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def children(pid: int) -> list[int]:
    """The processes that a process has started (Linux)."""
    tasks = Path(f"/proc/{pid}/task")
    return sorted(int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split())
