"""Errors as answers of HTTP: a status, a short code for programs, a message and a remedy for people."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from longterm.errors import (
    AlreadyToldError,
    ClosedHoldError,
    DatabaseError,
    ExpiredTokenError,
    InputError,
    LongtermError,
    OutOfBudgetError,
    RepeatedPositionError,
    SkippedTokenError,
    TokenError,
    UnaffordableError,
    WindowFullError,
)
from longterm.server.lanes import BusyError
from longterm.server.tokens import ForbiddenError

FAULT = "Read the server's log, which has the whole message"
"""The remedy for a fault of the server."""


class UnknownObjectError(LongtermError):
    """The service has no object with this name."""


_STATUSES: tuple[tuple[type[LongtermError], int, str, str], ...] = (
    (UnknownObjectError, 404, "unknown object", "Correct the name"),
    (ForbiddenError, 403, "forbidden", "Use another token, or let the operator allow it in the service file"),
    (UnaffordableError, 402, "out of budget", ""),
    (OutOfBudgetError, 402, "out of budget", "Settle open holds, wait for the end of the period, or raise the limit"),
    (RepeatedPositionError, 409, "already applied", ""),
    (ClosedHoldError, 409, "hold is closed", ""),
    (AlreadyToldError, 409, "already settled", ""),
    (SkippedTokenError, 409, "skipped", ""),
    (ExpiredTokenError, 409, "expired", ""),
    (TokenError, 409, "unknown token", ""),
    (WindowFullError, 429, "too many open rounds", "Settle or skip some of the open rounds"),
    (InputError, 400, "bad argument", ""),
    (BusyError, 503, "busy", "Call again with the same key"),
    (DatabaseError, 503, "database", ""),
    (LongtermError, 500, "error", FAULT),
)
"""The status and the code of each error, and the remedy of those that have none of their own."""


def add_errors(app: FastAPI) -> None:
    """Answer every exception with JSON."""

    @app.exception_handler(LongtermError)
    async def _answer(request: Request, error: LongtermError) -> JSONResponse:
        _, status, code, remedy = next(row for row in _STATUSES if isinstance(error, row[0]))
        body: dict[str, Any] = {"code": code, "message": str(error)}
        if isinstance(error, DatabaseError):  # its message names the host, the user or the path
            logging.getLogger("longterm.server").error("%s", error)
            remedy = "Call again with the same key; the server's log has the whole message"
            body |= {"message": f"the database cannot be used ({error.reason}). {remedy}.", "remedy": remedy}
        else:
            body |= {"argument": error.argument} if isinstance(error, InputError) else {}
            body["remedy"] = getattr(error, "remedy", remedy)
        headers = {"Retry-After": "1"} if status in (429, 503) else None
        return JSONResponse({"error": body}, status, headers)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        argument = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
        if first["type"] == "json_invalid":  # its place is a number of characters
            argument = "body"
        remedy = "Correct it; /openapi.json has the fields of every call"
        body = {"code": "bad argument", "argument": argument, "remedy": remedy}
        return JSONResponse({"error": body | {"message": f"{argument}: {first['msg']}. {remedy}."}}, 400)

    @app.exception_handler(HTTPException)
    async def _refused(request: Request, error: HTTPException) -> JSONResponse:
        code, remedy = "bad argument" if error.status_code == 400 else "no such call", "/openapi.json lists the calls"
        body = {"code": code, "message": f"{error.detail}. {remedy}.", "remedy": remedy}
        return JSONResponse({"error": body}, error.status_code)

    @app.exception_handler(Exception)
    async def _failed(request: Request, error: Exception) -> JSONResponse:  # uvicorn logs the traceback
        body = {"code": "error", "message": f"this is a fault of the server. {FAULT}.", "remedy": FAULT}
        return JSONResponse({"error": body}, 500)
