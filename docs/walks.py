"""Print the files of the package that a call crosses: python docs/walks.py [NAME …].

The walks are those of the page "How the library is built". A file counts if one of its functions runs; importing it
does not count.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import longterm

PACKAGE = Path(longterm.__path__[0])
IS_FUNCTION = 1
"""The flag of code that is a function's, not that of a module or a class."""
Walk = Callable[[Path], Callable[[], object]]
"""Prepare a call in an empty folder; what is prepared does not count."""


def crossed(walk: Walk, folder: Path) -> list[str]:
    """Return the files that a prepared call crosses, in order."""
    found: dict[str, None] = {}
    is_recording = False

    def note(frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        is_function = event == "call" and frame.f_code.co_flags & IS_FUNCTION
        if is_recording and is_function and file.startswith(str(PACKAGE)) and file.endswith(".py"):
            found.setdefault(Path(file).relative_to(PACKAGE).as_posix())

    threading.setprofile(note)  # for the threads that the walk starts
    call = None
    try:
        call = walk(folder)
        call()  # the first call also imports
        is_recording = True
        sys.setprofile(note)
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        getattr(call, "close", lambda: None)()
    return list(found)


def run(folder: Path) -> Callable[[], object]:
    """A round of `run`: two rounds of A-OGD."""
    from longterm import AOGD
    from longterm.problems import doubly_stochastic
    from longterm.problems.streams import RandomPermutations

    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    learner = AOGD.for_problem(problem)
    return lambda: longterm.run(problem, learner, stream, 2)


def reproduce(folder: Path) -> Callable[[], object]:
    """`longterm reproduce dsm`: the paper's first experiment with its report."""
    from longterm.cli import main

    runs = iter(range(2))
    words = ["reproduce", "dsm", "--rounds", "50", "--sequences", "2", "--workers", "1", "--out"]

    def call() -> None:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            assert main([*words, str(folder / str(next(runs)))]) == 0

    return call


def ask_and_tell(folder: Path) -> Callable[[], object]:
    """`ask` and `tell` of a learner in a SQLite file."""
    from longterm import AOGD, LiveLearner, observe
    from longterm.problems import doubly_stochastic

    problem = doubly_stochastic(3)
    live = LiveLearner.open(folder / "service.db", AOGD.for_problem(problem), problem, name="x")
    feedback = observe(problem, live.ask().x, [live.ask().x])
    return lambda: live.tell(live.ask(), feedback)


def step_dense(folder: Path) -> Callable[[], object]:
    """`BudgetLinearLearner.step_dense`: one row of a linear model."""
    import numpy as np

    from longterm.linear_model import BudgetLinearLearner

    learner, row = BudgetLinearLearner(3, budget=1.0), np.array([0.0, 1.0, 1.0])
    return lambda: learner.step_dense(row, 1.0)


def route_and_settle(folder: Path) -> Callable[[], object]:
    """`route` and `settle` of a router in a SQLite file."""
    from longterm.money import Router

    prices = {"small": 1e-4, "large": 1e-2}
    router = Router.for_models(prices, per_request=2e-3, url=folder / "service.db")

    def call() -> None:
        route = router.route("Prove the theorem of Sylow.")
        router.settle(route, reward=0.9, cost=prices[route.model])

    return call


SERVICE = """
database = "{folder}/service.db"
[router.prompts]
prices = {{ small = 1e-4, large = 1e-2 }}
per_request = 2e-3
"""


def act(folder: Path) -> Callable[[], object]:
    """`POST /act` on a server whose router is in a SQLite file."""
    from longterm.server.app import create_app
    from longterm.server.settings import read_service

    path = folder / "service.toml"
    path.write_text(SERVICE.format(folder=folder), encoding="utf-8")
    service = read_service(path)
    app, loop = create_app(service), asyncio.new_event_loop()
    body = json.dumps({"name": "prompts", "prompt": "Prove the theorem of Sylow."}).encode()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/act", "raw_path": b"/act", "query_string": b"", "root_path": "", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80), "headers": [(b"content-type", b"application/json"), (b"host", b"localhost")],
    }  # fmt: skip

    async def post() -> int:
        sent = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await app({**scope, "state": {}}, receive, send)
        return int(sent[0]["status"])

    def call() -> None:
        assert loop.run_until_complete(post()) == 200

    def close() -> None:
        loop.close()
        service.close()

    call.close = close
    return call


WALKS: dict[str, Walk] = {
    "run": run,
    "reproduce": reproduce,
    "ask_and_tell": ask_and_tell,
    "step_dense": step_dense,
    "route_and_settle": route_and_settle,
    "act": act,
}


if __name__ == "__main__":
    for name in sys.argv[1:] or WALKS:
        with tempfile.TemporaryDirectory() as made:
            files = crossed(WALKS[name], Path(made))
        sys.stdout.write("\n    ".join([f"{WALKS[name].__doc__}  {len(files)} files", *files]) + "\n")
