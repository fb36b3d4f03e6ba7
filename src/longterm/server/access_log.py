"""The access log: one line of JSON for each request, with the name of the caller's token."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from time import perf_counter
from typing import TextIO

from longterm.server.gate import Exchange


class AccessLog:
    """Lines of JSON: time, caller, method, path, object, account, status, milliseconds, address.

    The account is the one that the request names. A request that names a hold by its key has none.

    Parameters
    ----------
    out : text file, optional
        Where they are written; by default the standard output. Bodies, keys and tokens are never written.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out

    def write(self, exchange: Exchange) -> None:
        """Write a request that has ended."""
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "caller": None if exchange.caller is None else exchange.caller.name,
            "method": exchange.method,
            "path": exchange.path[:200],
            "object": exchange.name or None,
            "account": exchange.account or None,
            "status": exchange.status,
            "milliseconds": round(1000 * (perf_counter() - exchange.begin), 2),
            "address": exchange.client,
        }
        out = self._out or sys.stdout
        out.write(json.dumps(line) + "\n")
        out.flush()
