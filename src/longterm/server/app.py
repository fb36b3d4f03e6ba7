"""The HTTP application of a service: the table of calls, the views, errors as statuses, and what is counted."""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import perf_counter, time
from typing import Any

from longterm import __version__
from longterm._base.extras import missing_extra
from longterm._base.messages import did_you_mean
from longterm.errors import (
    BrokenBoundWarning,
    HorizonWarning,
    InputError,
    LongtermError,
    OverspentWarning,
)
from longterm.server.access_log import AccessLog
from longterm.server.gate import Exchange, Gate
from longterm.server.history import STEP, WEEK, WEEK_OBJECT, WEEK_STEP, History, HistoryRecorder
from longterm.server.lanes import Lane
from longterm.server.opening import OpeningApp
from longterm.server.service import Service
from longterm.server.settings import read_service
from longterm.server.tokens import Caller, Tokens

try:
    from fastapi import FastAPI, Request, Response

    from longterm.server import requests as bodies
    from longterm.server.calls import CALLS, Call
    from longterm.server.failures import UnknownObjectError, add_errors
    from longterm.server.views import Views
except ImportError as error:
    raise missing_extra("the server needs FastAPI and uvicorn", "server,metrics") from error

SETTINGS = "LONGTERM_SERVICE"
"""The environment variable with the path of the service's file, for workers."""
HISTORY_STEP = "LONGTERM_HISTORY_STEP"
"""The environment variable with the seconds of an interval of the history."""
ACCESS_LOG = "LONGTERM_ACCESS_LOG"
"""The environment variable that is "1" if workers write an access log."""
LOG = logging.getLogger("longterm.server")
FLUSH_SECONDS = 1.0
"""Counts are added to the history this often."""
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": bodies.Failure} for status in (400, 401, 402, 403, 404, 408, 409, 413, 429, 503)
}


def from_environment() -> OpeningApp:
    """Return the application of the service whose file the environment names. `uvicorn --factory` calls it."""
    path = os.environ.get(SETTINGS)
    if not path:
        raise InputError(SETTINGS, "is not set", "Set it to the path of the service's file")
    # A cost above its bound is in the metrics. Where warnings are errors the money would not be recorded.
    for category in (BrokenBoundWarning, HorizonWarning, OverspentWarning):
        warnings.filterwarnings("ignore", category=category)
    step, token = int(os.environ.get(HISTORY_STEP, STEP)), os.environ.get("LONGTERM_TOKEN", "")
    log = AccessLog() if os.environ.get(ACCESS_LOG) == "1" else None

    def make() -> Gate:
        service = read_service(path, apply=False)
        try:
            return create_app(service, token=token, step=step, log=log)
        except BaseException:
            service.close()
            raise

    return OpeningApp(make)


def create_app(service: Service, *, token: str = "", step: int = STEP, log: AccessLog | None = None) -> Gate:
    """Return the ASGI application of a service.

    Parameters
    ----------
    service : Service
        Its objects. They are closed when the application ends.
    token : str
        What callers may show besides the tokens of the service; without any token only this machine may call.
    step : int
        Seconds of an interval of the history.
    log : AccessLog, optional
        Where requests are written.

    Returns
    -------
    Gate
        The application.
    """
    served = _Served(service, step)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        flushing = asyncio.create_task(served.flush_for_ever())
        yield
        flushing.cancel()
        await served.close()

    app = FastAPI(title=service.title, version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    add_errors(app)
    for call in CALLS:
        app.post(
            f"/{call.path}",
            responses=_REFUSALS,
            response_model=call.answer,
            name=call.path,
            description=call.work.__doc__,
        )(served.endpoint(call))
    served.views.add_to(app)

    def observe(exchange: Exchange) -> None:
        served.count(exchange)
        if log is not None:
            log.write(exchange)

    return Gate(app, Tokens(token, service.tokens), observe)


class _Served:
    """The objects of a service, each in its lane, and the counts of this worker.

    Parameters
    ----------
    service : Service
        The objects.
    step : int
        Seconds of an interval of the history.
    """

    def __init__(self, service: Service, step: int) -> None:
        self.service = service
        self.history = History(service.database, step, service.durability)
        self.week = History(service.database, WEEK_STEP, service.durability, name=WEEK_OBJECT, keep=WEEK)
        self.recorder = HistoryRecorder(self.history, self.week)
        self.lanes = {name: Lane(name, service.group_maker(name)) for name in service.objects}
        self.history_lane = Lane("the history")
        self.views = Views(service, self.lanes, self.history_lane, self.recorder)
        self._paths = {f"/{call.path}" for call in CALLS}

    def endpoint(self, call: Call) -> Callable[..., Awaitable[Any]]:
        """Return the function that FastAPI calls for a path."""

        async def answer(request: Request, body: Any) -> Any:
            exchange: Exchange = request.scope["state"]["exchange"]
            caller = exchange.caller
            assert caller is not None
            if body.name in self.service.objects:  # an unknown name is no label of a metric
                exchange.name, exchange.account = body.name, getattr(body, "account", "")
            if call.is_admin:
                caller.require_admin()
            else:
                caller.require_some(body.name)
            found = self._find(call, body.name)
            lane = self.lanes[body.name]
            if call.is_admin:
                done = await lane.run(_perform, call, found, body, caller)
            else:
                key = getattr(body, "key", None)
                done = await lane.join(_perform, call, found, body, caller, key=key)
            if isinstance(done, bodies.Acted):
                self.recorder.count("actions", body.name, done.action)
            elif isinstance(done, bodies.Offered):
                exchange.refused = done.refused
            # FastAPI would validate the answer again, which takes longer than to write it.
            return Response(done.model_dump_json(exclude_none=True), media_type="application/json")

        answer.__annotations__ = {"request": Request, "body": call.body, "return": Response}
        return answer

    def _find(self, call: Call, name: str) -> Any:
        found = self.service.objects.get(name)
        if found is None:
            known = list(self.service.objects)
            raise UnknownObjectError(f"there is no object {name!r}{did_you_mean(name, known)}. Choose from {known}.")
        if not isinstance(found, call.kinds):
            paths = ", ".join(f"/{one.path}" for one in CALLS if isinstance(found, one.kinds))
            what = f"{name!r} is a {self.service.kinds[name]}, and /{call.path} is a call of other kinds of objects"
            raise InputError("name", what, f"Call one of {paths}")
        return found

    def count(self, exchange: Exchange) -> None:
        """Count a request by path, object and status, and its time."""
        path = exchange.path.strip("/") if exchange.path in self._paths else "view"
        self.recorder.count("calls", path, exchange.name, str(exchange.status))
        if exchange.name:
            self.recorder.time(path, exchange.name, perf_counter() - exchange.begin)
            if exchange.status == 402 or exchange.refused:
                self.recorder.count("refused", exchange.name)
                who = "" if exchange.caller is None else exchange.caller.name
                place = {"object": exchange.name, "account": exchange.account}
                self.recorder.note(time=time(), what="refused", detail=path, who=who, **place)

    async def flush_for_ever(self) -> None:
        """Add counts and figures to the history until it is cancelled. A failure is logged, and tried again."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            if self.recorder.is_due or self.recorder.has_counts:
                try:
                    await self.views.flush(with_figures=self.recorder.is_due)
                except Exception as error:  # whatever it is, the server goes on
                    LOG.warning("the history was not written: %s", error)

    async def close(self) -> None:
        """Write the last counts, and close every object after its last call."""
        with suppress(LongtermError):
            await self.views.flush(with_figures=False)
        for lane in (*self.lanes.values(), self.history_lane):
            await asyncio.to_thread(lane.close)
        self.history.close()
        self.week.close()
        self.service.close()


def _perform(call: Call, found: Any, body: bodies.Named, caller: Caller) -> Any:
    """Make a call in the thread of its object, if the caller may."""
    if not call.is_admin and caller.spend is not None:
        account = None if call.account is None else call.account(found, body)
        caller.require_spend(body.name, account, is_named=hasattr(body, "account"))
    return call.work(found, body, caller.name)
