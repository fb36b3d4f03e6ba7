"""The GET paths: readiness, figures as JSON and for Prometheus, the history, and the page."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from longterm.errors import InputError, LongtermError
from longterm.money import Ledger, LivePacer
from longterm.money.ledger.accounts import AccountSettings
from longterm.server import requests as bodies
from longterm.server.gate import HEALTH, READY, Exchange
from longterm.server.history import EVENTS, WEEK, Counts, HistoryRecorder, thinned
from longterm.server.lanes import BusyError, Lane
from longterm.server.service import Service
from longterm.storage.stored_object import Metrics

T = TypeVar("T")
READ_SECONDS = 2.0
"""An object that does not answer within this time has no figures, and is not ready."""
MOST_HOLDS, MOST_ENTRIES = 1000, 10_000
"""The largest numbers of open holds and of entries of the record in an answer."""
MOST_POINTS = 240
"""The intervals that the page draws."""
_PAGE = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
_SAFE = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


class Views:
    """What can be read from a service.

    Parameters
    ----------
    service : Service
        The objects.
    lanes : mapping of str to Lane
        The thread of each.
    history_lane : Lane
        The thread of the history.
    recorder : HistoryRecorder
        The counts of this worker.
    """

    def __init__(
        self, service: Service, lanes: Mapping[str, Lane], history_lane: Lane, recorder: HistoryRecorder
    ) -> None:
        self._service, self._lanes = service, lanes
        self._history_lane, self._recorder, self._history = history_lane, recorder, recorder.history

    async def figures(self) -> dict[str, Metrics | LongtermError]:
        """Return the figures of every object, or the error of one that does not answer."""
        return await self._read({name: partial(self._service.metrics, name) for name in self._service.objects})

    async def _read(self, reads: Mapping[str, Callable[[], T]]) -> dict[str, T | LongtermError]:
        """Return what a function returns for each object, or the error. No object waits for another one."""

        async def read(name: str) -> T | LongtermError:
            try:
                return await self._lanes[name].run(reads[name], seconds=READ_SECONDS)
            except LongtermError as error:
                return error

        return dict(zip(reads, await asyncio.gather(*map(read, reads)), strict=True))

    async def flush(self, *, with_figures: bool) -> None:
        """Add the counts of this worker, and perhaps the present figures, to the history."""
        figures = None
        if with_figures:
            found = await self.figures()
            figures = {name: _finite(one) for name, one in found.items() if not isinstance(one, LongtermError)}
        await self._history_lane.run(self._recorder.flush, figures)

    async def _totals(self) -> Counts | None:
        """Return the counts of all workers, or None while the database does not answer."""

        def read() -> Counts:
            self._recorder.flush()
            return self._history.totals()

        try:
            return await self._history_lane.run(read, seconds=READ_SECONDS)
        except LongtermError:
            return None

    def add_to(self, app: FastAPI) -> None:
        """Add the GET paths."""

        @app.get(HEALTH)
        async def health() -> bodies.Done:
            """Say that the server runs. It answers whatever the database does."""
            return bodies.Done()  # the gate answers before it is called; this documents it

        @app.get(READY)
        async def ready(request: Request) -> JSONResponse:
            """Say whether the database answers for every object; by object for callers that may read. 503: not."""
            found = await self.figures()
            states = {name: _readiness(one) for name, one in found.items()}
            is_ready = all(state == "ready" for state in states.values())
            caller = _exchange(request).caller
            objects = {"objects": states} if caller is not None and caller.read else {}
            return JSONResponse({"ready": is_ready, **objects}, 200 if is_ready else 503)

        @app.get("/status")
        async def status(request: Request) -> dict[str, Any]:
            """Return the kind and the present figures of every object."""
            _require_read(request)
            found, kinds = await self.figures(), self._service.kinds
            return {
                name: {"kind": kinds[name], **({"unavailable": _readiness(one)} if _failed(one) else _finite(one))}
                for name, one in found.items()
            }

        @app.get("/accounts")
        async def accounts(request: Request) -> dict[str, Any]:
            """Return the settings, the balances and the open holds and leases of every ledger."""
            _require_read(request)
            found = await self._read({name: partial(_accounts_of, one) for name, one in self._ledgers.items()})
            return {name: {"unavailable": _readiness(one)} if _failed(one) else one for name, one in found.items()}

        @app.get("/log")
        async def log(request: Request, since: float = 0.0, most: int = 1000) -> dict[str, Any]:
            """Return who spent or changed what, the newest first, and which objects did not answer and why."""
            _require_read(request)
            entries, unavailable = await self._entries(since, most)
            return {"entries": entries, "unavailable": unavailable}

        @app.get("/history")
        async def read_history(request: Request, seconds: float = 3600) -> dict[str, Any]:
            """Return the figures and counts of the last seconds, for the page."""
            _require_read(request)
            if not 0 < seconds <= WEEK:
                raise InputError("seconds", f"is {seconds}", f"Give at most {WEEK}")
            await self.flush(with_figures=True)
            history = self._history
            if seconds > history.keep and self._recorder.week is not None:
                history = self._recorder.week
            found = await self._history_lane.run(history.since, seconds)
            intervals = [
                {"time": moment, "figures": figures, "counts": [[*labels, n] for labels, n in counts.items()]}
                for moment, counts, figures in thinned(found, MOST_POINTS)
            ]
            refusals = await self._history_lane.run(self._history.events)
            periods, (changes, unavailable) = await asyncio.gather(self._periods(), self._changes())
            facts = {**self._facts(), "periods": periods, "changes": changes, "unavailable": unavailable}
            facts["refusals"] = sorted(refusals, key=lambda event: -event["time"])
            return {**facts, "now": time.time(), "intervals": intervals}

        @app.get("/metrics", response_class=Response)
        async def metrics(request: Request) -> Response:
            """Return the figures for Prometheus: money from the objects, counts of all workers from the database."""
            from longterm.server.prometheus import CONTENT_TYPE, exposition

            _require_read(request)
            found, totals = await asyncio.gather(self.figures(), self._totals())
            figures = {name: None if isinstance(one, LongtermError) else one for name, one in found.items()}
            return Response(exposition(figures, totals, self._service.units), media_type=CONTENT_TYPE)

        def page(name: str, kind: str) -> None:
            content = (files("longterm.server") / (name or "page.html")).read_bytes()

            @app.get(f"/{name}", include_in_schema=False)
            async def read(request: Request) -> Response:
                _require_read(request)
                return Response(content, media_type=kind, headers=_SAFE)

        for name, kind in _PAGE.items():
            page(name, kind)

    @property
    def _ledgers(self) -> dict[str, Ledger]:
        return {name: one for name, one in self._service.objects.items() if isinstance(one, Ledger)}

    async def _entries(self, since: float, most: int, **options: bool) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Return entries of the records of all objects, and why some are left out.

        `options` are those of a ledger's record.
        """
        reads = {}
        for name, one in self._service.objects.items():
            given = options if isinstance(one, Ledger) else {}
            reads[name] = partial(one.record, since=since, most=min(most, MOST_ENTRIES), **given)
        entries, unavailable, units = [], {}, self._service.units
        for name, found in (await self._read(reads)).items():
            if isinstance(found, InputError):
                raise found
            if isinstance(found, LongtermError):
                unavailable[name] = _readiness(found)
            else:
                entries += [{"object": name, "unit": units[name], **entry._asdict()} for entry in found]
        return sorted(entries, key=lambda entry: -entry["time"])[:most], unavailable

    def _facts(self) -> dict[str, Any]:
        """Return what the page shows about the objects besides figures."""
        objects = self._service.objects
        actions = {name: one.names for name, one in objects.items() if hasattr(one, "names")}
        facts = {"title": self._service.title, "step": self._history.step, "kinds": self._service.kinds}
        return {**facts, "units": self._service.units, "actions": actions, "guide": self._service.guide}

    async def _periods(self) -> dict[str, dict[str, str]]:
        """Return the period of each account, and what the money of other objects is for, in words."""
        found = {}
        for name, settings in (
            await self._read({name: _settings_of(one) for name, one in self._ledgers.items()})
        ).items():
            if not isinstance(settings, LongtermError):
                found[name] = {key: _period(its.period, its.timezone, its.rate) for key, its in settings.items()}
        for name, one in self._service.objects.items():
            if isinstance(one, LivePacer):
                found[name] = {"": _period(one.period, one.timezone)}
            elif self._service.kinds[name] in ("router", "chooser"):
                found[name] = {"": _period()}
        return found

    async def _changes(self) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Return what people have changed, the newest first, in words; and why some objects are left out."""
        found = []
        entries, unavailable = await self._entries(0.0, EVENTS, holds=False)
        for one in entries:
            was, now = ("none" if one[key] is None else one[key] for key in ("old", "new"))
            detail = " ".join(filter(None, (f"{was} → {now}", one["key"], one["note"])))
            found.append({key: one[key] for key in ("time", "what", "object", "account", "who")})
            found[-1]["detail"] = detail
        return found, unavailable


def _accounts_of(ledger: Ledger) -> dict[str, Any]:
    """Return what a person decides about a ledger's accounts, their balances, and the open holds."""
    balances = ledger.accounts
    accounts = {name: {**one._asdict(), **balances[name]._asdict()} for name, one in ledger.settings.items()}
    holds = [one._asdict() for one in ledger.open_holds()[:MOST_HOLDS]]
    return {"unit": ledger.unit, "accounts": accounts, "holds": holds}


def _settings_of(ledger: Ledger) -> Callable[[], Mapping[str, AccountSettings]]:
    return lambda: ledger.settings


def _period(period: str | None = None, timezone: str = "UTC", rate: int = 0) -> str:
    """Return what a limit is for, in words."""
    if period:
        return f"this {period} ({timezone})"
    return f"{rate} a second come back" if rate else "since the start"


def _exchange(request: Request) -> Exchange:
    found: Exchange = request.scope["state"]["exchange"]
    return found


def _require_read(request: Request) -> None:
    caller = _exchange(request).caller
    assert caller is not None
    caller.require_read()


def _failed(found: Any) -> bool:
    return isinstance(found, LongtermError)


def _readiness(found: Any) -> str:
    """Return "ready", or why an object is not, without the address of the database."""
    if not isinstance(found, LongtermError):
        return "ready"
    return str(found) if isinstance(found, BusyError) else getattr(found, "reason", "error")


def _finite(figures: Any) -> Any:
    """Return figures with None for numbers that JSON cannot hold."""
    if isinstance(figures, dict):
        return {key: _finite(value) for key, value in figures.items()}
    return figures if math.isfinite(figures) else None
