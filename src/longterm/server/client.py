"""A thin client of the server: keys that make retries safe, and errors in the server's words."""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
import urllib.parse
import uuid
from typing import Any, Self

from longterm.errors import InputError, LongtermError

RETRIED = frozenset({408, 502, 503, 504})
"""Answers after which a call is made again."""
LONGEST_PAUSE = 2.0
"""Seconds between two attempts."""
ALREADY = ("already settled", "already applied", "skipped")
"""Codes of 409 that show, after an attempt without an answer, that the attempt had succeeded."""


class ServerError(LongtermError):
    """An answer other than success.

    Parameters
    ----------
    status : int
        The status of HTTP; 0 if there was no answer.
    body : dict
        The error in the answer: code, message, argument, remedy.

    Attributes
    ----------
    status : the status of HTTP: 400, 401, 402 (out of budget), 404, 409 (unknown or expired token), 413, 429, 503.
    code : a short text for programs.
    argument, remedy : as in `InputError`, where the server names them.
    """

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status = status
        self.code = str(body.get("code", ""))
        self.argument = str(body.get("argument", ""))
        self.remedy = str(body.get("remedy", ""))
        super().__init__(f"{status}: {body.get('message', '')}")


class Client:
    """A client of `longterm serve`. Threads may share it; each has a connection of its own.

    Every method takes the name of an object and the arguments of the object's own method, and returns the server's
    answer as a dictionary. A call that gets no answer, or 503, is made again with the same key. It takes effect once.

    Parameters
    ----------
    url : str
        The address of the server.
    token : str, optional
        By default the environment's LONGTERM_TOKEN.
    retries : int
        Further attempts of a call.
    timeout : float
        Seconds to wait for an answer.

    Examples
    --------
    >>> from longterm.server.client import Client
    >>> client = Client("http://127.0.0.1:8000")
    >>> route = client.act("models", prompt="What is 2 + 2?")  # doctest: +SKIP
    >>> client.settle("models", route["token"], reward=1.0, cost=2e-5)  # doctest: +SKIP
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        retries: int = 8,
        timeout: float = 30.0,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("url", f"{url!r} is not an address", "Give http://host:port")
        self._parts, self._retries, self._timeout = parts, retries, timeout
        self._token = os.environ.get("LONGTERM_TOKEN", "") if token is None else token
        self._local = threading.local()

    # --- choosers and routers ---------------------------------------------------------------------------------

    def act(self, name: str, *, key: str | None = None, **request: Any) -> dict[str, Any]:
        """Answer a request: `context` for a chooser, `prompt` for a router; perhaps `costs`, `bounds`, `allowed`.

        Raise a ServerError with status 402 if nothing is affordable.
        """
        return self._call("act", name=name, key=key or _key(), **request)

    def settle(self, name: str, token: str, **outcome: Any) -> dict[str, Any]:
        """Report `reward` and `cost` of a choice, or `paid`, `price` and `won` of a bid.

        `position={"partition": …, "number": …}` is that of a message in a queue, which then counts once.
        """
        return self._call("settle", name=name, token=token, **outcome)

    def skip(self, name: str, token: str) -> dict[str, Any]:
        """Give up a round of any kind."""
        return self._call("skip", name=name, token=token)

    # --- learners and intervals -------------------------------------------------------------------------------

    def ask(self, name: str, *, key: str | None = None, **request: Any) -> dict[str, Any]:
        """Open a round; intervals need `prediction`, and perhaps `groups`."""
        return self._call("ask", name=name, key=key or _key(), **request)

    def tell(self, name: str, token: str, **feedback: Any) -> dict[str, Any]:
        """Give the feedback of a learner's round, or the `outcome` of an interval."""
        return self._call("tell", name=name, token=token, **feedback)

    # --- pacers -----------------------------------------------------------------------------------------------

    def bid(self, name: str, value: float, *, key: str | None = None) -> dict[str, Any]:
        """Bid for a request of this value."""
        return self._call("bid", name=name, value=value, key=key or _key())

    # --- ledgers ----------------------------------------------------------------------------------------------

    def hold(self, name: str, account: str, amount: int, key: str, **options: Any) -> dict[str, Any]:
        """Hold an amount under a key; perhaps with a `group` and `seconds`. Raise with status 402 if it is too much."""
        return self._call("hold", name=name, account=account, amount=amount, key=key, **options)

    def settle_hold(self, name: str, key: str, actual: int, **options: Any) -> dict[str, Any]:
        """Replace a hold by the actual cost; perhaps with the `position` of a message in a queue."""
        return self._call("settle-hold", name=name, key=key, actual=actual, **options)

    def release(self, name: str, key: str) -> dict[str, Any]:
        """Give back a hold."""
        return self._call("release", name=name, key=key)

    # --- with a token that may administer ---------------------------------------------------------------------

    def set(self, name: str, account: str | None = None, *, note: str = "", **changes: Any) -> dict[str, Any]:
        """Change and return the settings of an account, or the `limits` of a pacer, a chooser or a router.

        `limit`, `reserve`, `period`, `timezone`, `rate` of an account; `budget`, `horizon`, `period`, `timezone` of a
        pacer; `limit`, `horizon`, `per_request`, `credit`, `bank` of a chooser, whose budget `account` names if there
        are several; `per_request`, `credit`, `bank` or `least_quality` of a router. "none" removes a period, a
        reserve or a bank.
        """
        return self._call("set", name=name, account=account, note=note, **changes)

    def reset(self, name: str, account: str | None = None, spent: float = 0, *, note: str = "") -> dict[str, Any]:
        """Set the money that counts as spent in an account, or a pacer, in its present period."""
        return self._call("reset", name=name, account=account, spent=spent, note=note)

    def correct(
        self, name: str, key: str, actual: int, *, correction: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """Replace the cost of a settled hold; perhaps with `force` and a `note`."""
        return self._call("correct", name=name, key=key, actual=actual, correction=correction or _key(), **options)

    def correct_round(self, name: str, token: str, actual: float, **options: Any) -> dict[str, Any]:
        """Replace the cost of a choice or the payment of a bid; perhaps with `correction` and `force`."""
        return self._call("correct", name=name, token=token, actual=actual, **({"correction": _key()} | options))

    def force_release(
        self, name: str, key: str | None = None, *, token: str | None = None, note: str = ""
    ) -> dict[str, Any]:
        """Give back a hold, or a lease whose holder died; or give up the choice or the bid with this token."""
        return self._call("force-release", name=name, key=key, token=token, note=note)

    # --- figures ----------------------------------------------------------------------------------------------

    def accounts(self) -> dict[str, Any]:
        """Return settings, balances and open holds of all ledgers."""
        return self._send("GET", "accounts", None)

    def status(self) -> dict[str, Any]:
        """Return the figures of all objects."""
        return self._send("GET", "status", None)

    # --- requests ---------------------------------------------------------------------------------------------

    def _call(self, call: str, **body: Any) -> dict[str, Any]:
        return self._send("POST", call, json.dumps(body).encode())

    def _send(self, method: str, call: str, content: bytes | None) -> dict[str, Any]:
        """Make a call, again if there is no answer, and return its answer or raise a ServerError."""
        unanswered = False
        for attempt in range(self._retries + 1):
            if attempt:
                time.sleep(random.uniform(0, min(0.05 * 2**attempt, LONGEST_PAUSE)))
            try:
                status, answer = self._request(method, call, content)
            except (OSError, http.client.HTTPException) as error:
                remedy = "Start longterm serve there, or correct the address"
                message = f"no answer from {self._parts.netloc} ({error!r}). {remedy}."
                unanswered = True
                failure = ServerError(0, {"code": "no answer", "message": message, "remedy": remedy})
                continue
            if status == 200:
                return answer
            failure = ServerError(status, answer.get("error", answer))
            if unanswered and status == 409 and failure.code in ALREADY:
                return {}
            if status not in RETRIED:
                raise failure
        raise failure

    def _request(self, method: str, call: str, content: bytes | None) -> tuple[int, dict[str, Any]]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            make = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            assert self._parts.hostname is not None
            connection = make(self._parts.hostname, self._parts.port, timeout=self._timeout)
            self._local.connection = connection
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request(method, f"{self._parts.path.rstrip('/')}/{call}", content, headers)
            response = connection.getresponse()
            data = response.read()
            if response.will_close:
                self.close()
        except BaseException:
            self.close()
            raise
        try:
            answer = json.loads(data)
        except ValueError:
            answer = {"message": data[:200].decode(errors="replace")}
        return response.status, answer if isinstance(answer, dict) else {"answer": answer}

    def close(self) -> None:
        """Close this thread's connection. The next call opens another."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _key() -> str:
    return uuid.uuid4().hex
