"""The HTTP application: one POST path for each call, metrics, figures and the page."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import files
from typing import Any

import numpy as np

from longterm import __version__
from longterm.calibration import LiveIntervals
from longterm.errors import (
    AlreadyToldError,
    BrokenBoundWarning,
    DatabaseError,
    ExpiredTokenError,
    HorizonWarning,
    InputError,
    LongtermError,
    OutOfBudgetError,
    OverspentWarning,
    SkippedTokenError,
    TokenError,
    WindowFullError,
    did_you_mean,
    missing_extra,
)
from longterm.learners import Feedback
from longterm.money import Ledger, LivePacer
from longterm.play import LiveLearner
from longterm.server.gate import Gate
from longterm.server.history import KEEP, STEP, History, HistoryRecorder, thinned
from longterm.server.settings import ServedChooser, ServedRouter, Service, read_service

try:
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse, Response
    from starlette.exceptions import HTTPException

    from longterm.server import requests as bodies
except ImportError as error:
    raise missing_extra("the server needs FastAPI and uvicorn", "server,metrics") from error

SETTINGS = "LONGTERM_SERVICE"
"""The environment variable with the path of the service's file, for workers."""
HISTORY_STEP = "LONGTERM_HISTORY_STEP"
"""The environment variable with the seconds of an interval of the history."""


class UnknownObjectError(LongtermError):
    """The service has no object with this name."""


class RefusedError(LongtermError):
    """A chooser can afford no action."""


_ERRORS: tuple[tuple[type[LongtermError], int, str], ...] = (
    (UnknownObjectError, 404, "unknown object"),
    (RefusedError, 402, "out of budget"),
    (OutOfBudgetError, 402, "out of budget"),
    (AlreadyToldError, 409, "already settled"),
    (SkippedTokenError, 409, "skipped"),
    (ExpiredTokenError, 409, "expired"),
    (TokenError, 409, "unknown token"),
    (WindowFullError, 429, "too many open rounds"),
    (InputError, 400, "bad argument"),
    (DatabaseError, 503, "database"),
)
MOST_POINTS = 240
"""The intervals that the page draws."""
_LATER = "Wait for open choices to be settled, or raise the limit"
_PAGE = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
_SAFE = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


def from_environment() -> Gate:
    """Return the application of the service whose file the environment names. `uvicorn --factory` calls it."""
    path = os.environ.get(SETTINGS)
    if not path:
        raise InputError(SETTINGS, "is not set", "Set it to the path of the service's file")
    # A cost above its bound is in the metrics. Where warnings are errors the money would not be recorded.
    for category in (BrokenBoundWarning, HorizonWarning, OverspentWarning):
        warnings.filterwarnings("ignore", category=category)
    step = int(os.environ.get(HISTORY_STEP, STEP))
    return create_app(read_service(path), token=os.environ.get("LONGTERM_TOKEN", ""), step=step)


def create_app(service: Service, *, token: str = "", step: int = STEP) -> Gate:
    """Return the ASGI application of a service.

    Parameters
    ----------
    service : Service
        Its objects. They are closed when the application ends.
    token : str
        What callers must show; "": only this machine may call.
    step : int
        Seconds of an interval of the history.

    Returns
    -------
    Gate
        The application.
    """
    history = History(service.database, step)
    recorder = HistoryRecorder(history, lambda: {name: _finite(service.metrics(name)) for name in service.objects})

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        recorder.start()
        yield
        recorder.stop()
        history.close()
        service.close()

    app = FastAPI(title=service.title, version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    _add_errors(app)
    _add_calls(app, service, recorder)
    _add_views(app, service, recorder, history)
    return Gate(app, token)


def _add_errors(app: FastAPI) -> None:
    """Answer with the status of each exception."""

    @app.exception_handler(LongtermError)
    async def _answer(request: Request, error: LongtermError) -> JSONResponse:
        status, code = _status(error)
        body = {"code": code, "message": str(error)}
        body |= {key: str(getattr(error, key)) for key in ("argument", "remedy") if hasattr(error, key)}
        headers = {"Retry-After": "1"} if status in (429, 503) else None
        return JSONResponse({"error": body}, status, headers)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        argument = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
        remedy = "Correct it; /openapi.json has the fields of every call"
        body = {"code": "bad argument", "argument": argument, "remedy": remedy}
        return JSONResponse({"error": body | {"message": f"{argument}: {first['msg']}. {remedy}."}}, 400)

    @app.exception_handler(HTTPException)
    async def _refused(request: Request, error: HTTPException) -> JSONResponse:
        body = {"code": "bad argument" if error.status_code == 400 else "no such call", "message": str(error.detail)}
        return JSONResponse({"error": body}, error.status_code)


def _status(error: LongtermError) -> tuple[int, str]:
    return next(((status, code) for kind, status, code in _ERRORS if isinstance(error, kind)), (500, "error"))


def _add_calls(app: FastAPI, service: Service, recorder: HistoryRecorder) -> None:
    """Add the POST paths."""
    responses: dict[int | str, dict[str, Any]] = {
        status: {"model": bodies.Failure} for status in (400, 401, 402, 404, 409, 413, 429, 503)
    }

    @contextmanager
    def recorded(call: str, name: str) -> Iterator[None]:
        """Count a call, its status and its time."""
        start, status = time.perf_counter(), 200
        try:
            yield
        except LongtermError as error:
            status = _status(error)[0]
            raise
        finally:
            if name in service.objects:
                recorder.count("calls", call, name, str(status))
                recorder.time(call, name, time.perf_counter() - start)
                if status == 402:
                    recorder.count("refused", name)

    def find(call: str, name: str, *kinds: type) -> Any:
        found = service.objects.get(name)
        if found is None:
            known = list(service.objects)
            raise UnknownObjectError(f"there is no object {name!r}{did_you_mean(name, known)}. Choose from {known}.")
        if not isinstance(found, kinds):
            what, remedy = f"{name!r} is a {service.kinds[name]}", f"/{call} is for other objects; see /openapi.json"
            raise InputError("name", what, remedy)
        return found

    def post(path: str) -> Callable[[Any], Any]:
        return app.post(f"/{path}", responses=responses, response_model_exclude_none=True, name=path)

    @post("act")
    def act(body: bodies.Act) -> bodies.Acted:
        """Answer a request: the action of a chooser, or the model of a router. 402: nothing is affordable."""
        with recorded("act", body.name):
            found = find("act", body.name, ServedChooser, ServedRouter)
            choice = _route(found, body) if isinstance(found, ServedRouter) else _choose(found, body)
            if choice.action is None:
                raise RefusedError(f"no allowed action of {body.name!r} is affordable. {_LATER}.")
            action = found.actions[choice.action]
            recorder.count("actions", body.name, action)
            prices = choice.prices.tolist()
            return bodies.Acted(token=str(choice), action=action, probability=choice.probability, prices=prices)

    @post("settle")
    def settle(body: bodies.Settle) -> bodies.Done:
        """Report the outcome of a choice or a bid. Each part counts once."""
        with recorded("settle", body.name):
            found = find("settle", body.name, ServedChooser, ServedRouter, LivePacer)
            if isinstance(found, LivePacer):
                if body.paid is None:
                    raise InputError("paid", "is missing", "Give the payment: 0 if the auction was lost")
                found.settle(body.token, body.paid, price=body.price, won=body.won)
            else:
                follows = body.cost_follows or (isinstance(found, ServedRouter) and body.cost is None)
                costs = {"rewards": body.rewards, "costs": body.costs, "cost_follows": follows}
                found.chooser.settle(body.token, body.reward, body.cost, **costs)
        return bodies.Done()

    @post("skip")
    def skip(body: bodies.Round) -> bodies.Done:
        """Give up a round. The money held for a choice counts as spent; that of a bid is free again."""
        with recorded("skip", body.name):
            found = find("skip", body.name, ServedChooser, ServedRouter, LivePacer, LiveLearner, LiveIntervals)
            getattr(found, "chooser", found).skip(body.token)
        return bodies.Done()

    @post("ask")
    def ask(body: bodies.Ask) -> bodies.AskReply:
        """Open a round of a learner or of intervals."""
        with recorded("ask", body.name):
            found = find("ask", body.name, LiveLearner, LiveIntervals)
            if isinstance(found, LiveLearner):
                token = found.ask(body.key)
                return bodies.AskReply(token=str(token), x=np.asarray(token.x).tolist())
            if body.prediction is None:
                raise InputError("prediction", "is missing", "Give the forecast that the interval surrounds")
            interval = found.ask(body.prediction, body.groups, body.key)
            lower, upper = (value if math.isfinite(value) else None for value in (interval.lower, interval.upper))
            return bodies.AskReply(token=str(interval), lower=lower, upper=upper)

    @post("tell")
    def tell(body: bodies.Tell) -> bodies.Done:
        """Give the feedback of a learner's round, or the outcome of an interval."""
        with recorded("tell", body.name):
            found = find("tell", body.name, LiveLearner, LiveIntervals)
            if isinstance(found, LiveIntervals):
                if body.outcome is None:
                    raise InputError("outcome", "is missing", "Give the observed value, or skip the round")
                found.tell(body.token, body.outcome)
            else:
                found.tell(body.token, **_feedback(body))
        return bodies.Done()

    @post("bid")
    def bid(body: bodies.Bid) -> bodies.Offered:
        """Bid for a request. The amount is 0 if no money is left."""
        with recorded("bid", body.name):
            found = find("bid", body.name, LivePacer).bid(body.value, body.key)
            return bodies.Offered(token=str(found), amount=found.amount)

    @post("hold")
    def hold(body: bodies.HoldRequest) -> bodies.Held:
        """Hold an amount in an account. 402: it is not available."""
        with recorded("hold", body.name):
            ledger = find("hold", body.name, Ledger)
            held = ledger.hold(body.account, body.amount, body.key, group=body.group, seconds=body.seconds)
            return bodies.Held(held=held)

    @post("settle-hold")
    def settle_hold(body: bodies.SettleHold) -> bodies.Done:
        """Replace a hold by the actual cost."""
        with recorded("settle-hold", body.name):
            find("settle-hold", body.name, Ledger).settle(body.key, body.actual)
        return bodies.Done()

    @post("release")
    def release(body: bodies.Release) -> bodies.Done:
        """Give back a hold."""
        with recorded("release", body.name):
            find("release", body.name, Ledger).release(body.key)
        return bodies.Done()


def _choose(found: ServedChooser, body: bodies.Act) -> Any:
    if body.prompt is not None:
        raise InputError("prompt", "is for a router", "Give context= to a chooser")
    for name in ("costs", "bounds"):
        if isinstance(getattr(body, name), dict):
            raise InputError(name, "are by name", f"Give a list in the order of {list(found.actions)}")
    allowed = None
    if body.allowed is not None:
        _require_actions(found.actions, body.allowed)
        allowed = [action in body.allowed for action in found.actions]
    return found.chooser.act(body.context, body.costs, body.bounds, allowed=allowed, key=body.key)  # type: ignore[arg-type]


def _route(found: ServedRouter, body: bodies.Act) -> Any:
    if body.prompt is None:
        raise InputError("prompt", "is missing", "Give the text that is routed")
    costs: dict[str, dict[str, float] | None] = {}
    for name in ("costs", "bounds"):
        given = getattr(body, name)
        if given is not None and not isinstance(given, dict):
            raise InputError(name, "are a list", f"Give numbers by name, of {list(found.actions)}")
        _require_actions(found.actions, given or ())
        costs[name] = given
    return found.router.route(body.prompt, models=body.allowed, key=body.key, **costs).choice


def _require_actions(known: tuple[str, ...], given: Any) -> None:
    for name in given:
        if name not in known:
            raise InputError(
                "action", f"{name!r} is not known{did_you_mean(name, known)}", f"Choose from {list(known)}"
            )


def _feedback(body: bodies.Tell) -> dict[str, Any]:
    """Return the arguments of a learner's tell."""
    if body.loss_gradient is None:
        parameters = None if body.loss_parameters is None else [np.asarray(one) for one in body.loss_parameters]
        others = [np.asarray(one) for one in body.constraint_parameters]
        return {"loss_parameters": parameters, "constraint_parameters": others}
    for name in ("constraint", "constraint_gradient"):
        if getattr(body, name) is None:
            raise InputError(name, "is missing", "Give it with loss_gradient, evaluated at the round's x")
    names = ("loss_gradient", "constraint", "constraint_gradient", "loss")
    given: dict[str, Any] = {name: np.asarray(getattr(body, name)) for name in names if getattr(body, name) is not None}
    return {"feedback": Feedback(**given)}


def _add_views(app: FastAPI, service: Service, recorder: HistoryRecorder, history: History) -> None:
    """Add the GET paths."""

    @app.get("/health")
    def health() -> bodies.Done:
        """Say that the server runs."""
        return bodies.Done()

    @app.get("/status")
    def status() -> dict[str, Any]:
        """Return the kind and the present figures of every object."""
        return {name: {"kind": service.kinds[name], **_finite(service.metrics(name))} for name in service.objects}

    @app.get("/history")
    def read_history(seconds: float = KEEP) -> dict[str, Any]:
        """Return the figures and counts of the last seconds, for the page."""
        if not 0 < seconds <= KEEP:
            raise InputError("seconds", f"is {seconds}", f"Give at most {KEEP}")
        recorder.flush()
        intervals = [
            {"time": moment, "figures": figures, "counts": [[*labels, n] for labels, n in counts.items()]}
            for moment, counts, figures in thinned(history.since(seconds), MOST_POINTS)
        ]
        units = {name: one.unit for name, one in service.objects.items() if isinstance(one, Ledger)}
        actions = {name: one.actions for name, one in service.objects.items() if hasattr(one, "actions")}
        facts = {"title": service.title, "step": history.step, "kinds": service.kinds, "units": units}
        facts["actions"] = actions
        return {**facts, "now": time.time(), "intervals": intervals}

    @app.get("/metrics", response_class=Response)
    def metrics() -> Response:
        """Return the figures for Prometheus: money from the objects, counts of all workers from the database."""
        from longterm.server.prometheus import CONTENT_TYPE, exposition

        recorder.flush()
        figures = {name: service.metrics(name) for name in service.objects}
        return Response(exposition(figures, history.totals()), media_type=CONTENT_TYPE)

    def page(name: str, kind: str) -> None:
        content = (files("longterm.server") / (name or "page.html")).read_bytes()

        @app.get(f"/{name}", include_in_schema=False)
        def read() -> Response:
            return Response(content, media_type=kind, headers=_SAFE)

    for name, kind in _PAGE.items():
        page(name, kind)


def _finite(figures: Any) -> Any:
    """Return figures with None for numbers that JSON cannot hold."""
    if isinstance(figures, dict):
        return {key: _finite(value) for key, value in figures.items()}
    return figures if math.isfinite(figures) else None
