"""What happens to a request before anything is parsed: liveness, the limit on calls, the caller, the body's size."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from longterm.server.tokens import Caller, Tokens

MAX_BODY = 1_000_000
"""Bytes of a request's body."""
BODY_SECONDS = 10.0
"""The time in which a body must arrive."""
MOST_CALLS = 512
"""Requests that one worker answers at a time. Further ones are answered with 503."""
HEALTH, READY = "/health", "/ready"
"""Paths that need no token. Health tells nothing but that the event loop runs; it touches no thread and no database."""
ALIVE = json.dumps({"done": True}, separators=(",", ":")).encode()
_HEADERS = [(b"content-type", b"application/json")]


@dataclass
class Exchange:
    """A request, and what the application found out about it, for the access log and the counts.

    Parameters
    ----------
    method, path : str
        Of the request.
    client : str
        The address that it came from.
    begin : float
        The time of the performance counter.
    caller : Caller, optional
        Who made it; None if nobody known.
    status : int
        Of the answer.
    name, account : str
        The object and the account that it was about.
    refused : bool
        True if no money was left, and the answer says so without an error.
    """

    method: str
    path: str
    client: str
    begin: float
    caller: Caller | None = None
    status: int = 500
    name: str = ""
    account: str = ""
    refused: bool = False


class Gate:
    """An ASGI application before another one.

    With tokens, every request needs one: ``Authorization: Bearer <token>``, or as the password of HTTP Basic, which
    browsers ask for. Without any, only this machine may call, and only by the name of this machine, so that a web page
    that the user visits cannot reach the server through a name of its own (DNS rebinding). Bodies must be JSON, which
    no web page of another origin can send without permission.

    Parameters
    ----------
    app : ASGI application
        Called with requests that pass. The exchange is in the state of its scope.
    tokens : Tokens
        Who may call.
    observe : callable, optional
        Called with every exchange that has ended.
    max_body : int
        The largest body in bytes.
    most : int
        The largest number of requests at a time.
    """

    def __init__(
        self,
        app: Any,
        tokens: Tokens,
        observe: Callable[[Exchange], None] = lambda exchange: None,
        *,
        max_body: int = MAX_BODY,
        most: int = MOST_CALLS,
    ) -> None:
        self._app, self._tokens, self._observe = app, tokens, observe
        self._max_body, self._most, self._running = max_body, most, 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        path = scope["path"]
        if path == HEALTH:
            await answer_alive(send)
            return
        client = scope.get("client") or ("",)
        exchange = Exchange(scope["method"], path, client[0], time.perf_counter())

        async def observed(message: Any) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
            await send(message)

        self._running += 1
        try:
            await self._pass(exchange, scope, receive, observed)
        finally:
            self._running -= 1
            self._observe(exchange)

    async def _pass(self, exchange: Exchange, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        found = self._tokens.caller(scope, headers)
        if isinstance(found, Caller):
            exchange.caller = found
        elif exchange.path != READY:
            await refuse(send, 401, "no token", *found)
            return
        if self._running > self._most:
            await refuse(send, 503, "busy", f"{self._most} requests are being answered", "Call again in a second")
            return
        body = b""
        if exchange.method not in ("GET", "HEAD"):
            if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
                await refuse(send, 415, "not JSON", "the body is not JSON", "Send Content-Type: application/json")
                return
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    whole = await self._read(headers, receive)
            except TimeoutError:
                what = f"the body did not arrive within {BODY_SECONDS:g} s"
                await refuse(send, 408, "too slow", what, "Send it at once")
                return
            if whole is None:
                what, remedy = f"the body has more than {self._max_body} bytes", "Send a smaller request"
                await refuse(send, 413, "too large", what, remedy)
                return
            body = whole
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Any:
            return next(messages, None) or await receive()

        scope.setdefault("state", {})["exchange"] = exchange
        await self._app(scope, replay, send)

    async def _read(self, headers: dict[bytes, bytes], receive: Any) -> bytes | None:
        """Return the whole body, or None if it is too large. A length that lies is not believed."""
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > 18 or int(declared) > self._max_body:
            return None
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
            if size > self._max_body:
                return None
        return b"".join(parts)


async def answer_alive(send: Any) -> None:
    """Answer that the process runs."""
    await _answer(send, 200, ALIVE)


async def refuse(send: Any, status: int, code: str, message: str, remedy: str) -> None:
    """Answer with an error, and close the connection."""
    body = json.dumps({"error": {"code": code, "message": f"{message}. {remedy}.", "remedy": remedy}}).encode()
    extra = [(b"connection", b"close")]
    if status == 401:
        extra.append((b"www-authenticate", b'Basic realm="longterm", charset="UTF-8"'))
    if status == 503:
        extra.append((b"retry-after", b"1"))
    await _answer(send, status, body, extra)


async def _answer(send: Any, status: int, body: bytes, extra: list[tuple[bytes, bytes]] = []) -> None:  # noqa: B006
    headers = [*_HEADERS, (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
