"""Checks of callers before anything is parsed: the token, addresses, and the size of bodies."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import json
from typing import Any

from longterm.errors import InputError

MAX_BODY = 1_000_000
"""Bytes of a request's body."""
SHORTEST_TOKEN = 16
OPEN_PATHS = ("/health",)
"""Paths that need no token and tell nothing."""
_HEADERS = [(b"content-type", b"application/json"), (b"connection", b"close")]


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine only: localhost, 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def require_token(token: str, host: str) -> str:
    """Return the token of a server on this address. Raise an InputError if it needs one, or a longer one."""
    if not token and not is_loopback(host):
        what = f"{host} can be reached by other machines, and there is no token"
        remedy = "Set LONGTERM_TOKEN to a long random text, or use 127.0.0.1"
        raise InputError("host", what, remedy)
    if token and len(token) < SHORTEST_TOKEN:
        remedy = f"Use at least {SHORTEST_TOKEN} characters: python -c 'import secrets; print(secrets.token_hex())'"
        raise InputError("LONGTERM_TOKEN", f"has {len(token)} characters", remedy)
    return token


class Gate:
    """An ASGI application before another one.

    With a token, every request needs it: ``Authorization: Bearer <token>``, or as the password of HTTP Basic, which
    browsers ask for. Without one, only this machine may call, and only by the name of this machine, so that a web page
    that the user visits cannot reach the server through a name of its own (DNS rebinding). Bodies must be JSON, which
    no web page of another origin can send without permission.

    Parameters
    ----------
    app : ASGI application
        Called with requests that pass.
    token : str
        The token; "" for none.
    max_body : int
        The largest body in bytes.
    """

    def __init__(self, app: Any, token: str, max_body: int = MAX_BODY) -> None:
        self._app, self._token, self._max_body = app, token.encode(), max_body

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        refusal = None if scope["path"] in OPEN_PATHS else self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        body = b""
        if scope["method"] not in ("GET", "HEAD"):
            if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
                await _refuse(send, 415, "not JSON", "the body is not JSON", "Send Content-Type: application/json")
                return
            found = await self._read(headers, receive)
            if found is None:
                what, remedy = f"the body has more than {self._max_body} bytes", "Send a smaller request"
                await _refuse(send, 413, "too large", what, remedy)
                return
            body = found
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Any:
            return next(messages, None) or await receive()

        await self._app(scope, replay, send)

    def _refusal(self, scope: Any, headers: dict[bytes, bytes]) -> tuple[int, str, str, str] | None:
        if self._token:
            if hmac.compare_digest(_given_token(headers), self._token):
                return None
            return 401, "no token", "the token is missing or wrong", "Send Authorization: Bearer <LONGTERM_TOKEN>"
        host = headers.get(b"host", b"").decode("latin-1")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        client = scope.get("client")
        if client is None or not is_loopback(client[0]) or not is_loopback(name):
            return 401, "no token", "only this machine may call", "Start the server with LONGTERM_TOKEN"
        return None

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


def _given_token(headers: dict[bytes, bytes]) -> bytes:
    scheme, _, value = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        return value.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""


async def _refuse(send: Any, status: int, code: str, message: str, remedy: str) -> None:
    body = json.dumps({"error": {"code": code, "message": f"{message}. {remedy}.", "remedy": remedy}}).encode()
    headers = [*_HEADERS, (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b'Basic realm="longterm", charset="UTF-8"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
