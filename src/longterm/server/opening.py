"""A worker that answers before its objects are open, so that a database that is down blocks no probe and no signal."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Thread
from typing import Any

from longterm.server.gate import HEALTH, answer_alive, refuse

LOG = logging.getLogger("longterm.server")
START_PAUSE = 1.0
"""Seconds between two attempts to open the objects."""
START_SECONDS = 2.0
"""A worker accepts no connection before its objects are open, but waits no longer than this."""


class OpeningApp:
    """An ASGI application that is made in a thread, as often as needed, while the worker runs.

    Until it is made, ``/health`` is answered with 200 and every other path with 503. Every failure is logged. The
    supervisor of uvicorn would notice a worker that ends while it starts only after a minute.

    Parameters
    ----------
    make : callable
        Return the application, or raise an exception. It is called again until it returns.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._is_open = make, asyncio.Event()
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on if the application is made. Otherwise answer it here."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif self._app is not None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == HEALTH:
            await answer_alive(send)
        elif scope["type"] == "http":
            what = "the server has not opened its objects yet"
            await refuse(send, 503, "starting", what, "Call again with the same key")

    async def _live(self, scope: Any, receive: Any, send: Any) -> None:
        """Make the application, and tell it that the server starts and stops."""
        made: Future[Any] = Future()
        messages: asyncio.Queue[Any] = asyncio.Queue()
        messages.put_nowait(await receive())
        Thread(target=self._open, args=(made,), daemon=True).start()  # a daemon does not delay the end of the process
        running = asyncio.create_task(self._run(made, scope, messages))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_open.wait(), START_SECONDS)
        await send({"type": "lifespan.startup.complete"})
        messages.put_nowait(await receive())
        if self._app is None:
            running.cancel()
        await asyncio.wait({running})
        if not running.cancelled() and running.exception() is not None:
            LOG.error("the application of a worker has failed: %r", running.exception())
        await send({"type": "lifespan.shutdown.complete"})

    def _open(self, made: Future[Any]) -> None:
        while not made.cancelled():
            try:
                app = self._make()
            except BaseException as error:  # whatever it is, the worker goes on
                LOG.error("a worker cannot open its objects, and tries again: %s", error)
                time.sleep(START_PAUSE)
            else:
                with suppress(InvalidStateError):  # the server has stopped
                    made.set_result(app)
                return

    async def _run(self, made: Future[Any], scope: Any, messages: asyncio.Queue[Any]) -> None:
        async def ignore(message: Any) -> None:
            """The server has started already."""

        self._app = app = await asyncio.wrap_future(made)
        self._is_open.set()
        await app(scope, messages.get, ignore)
