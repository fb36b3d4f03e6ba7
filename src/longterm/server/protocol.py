"""uvicorn's protocol, with a time limit for the head of a request, and answers that are sent at once."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""The time in which a connection must send the head of its next request, from its first byte on."""


class PatientProtocol(H11Protocol):
    """A protocol that closes connections whose request never arrives, and that does not delay answers.

    uvicorn waits without limit for the rest of a head. It sends the head and the body of an answer in two pieces, and
    with several workers it leaves Nagle's algorithm on: then every answer waits 40 ms for the client's acknowledgement
    of the head.
    """

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Turn Nagle's delay off and start the clock of the first head."""
        found = transport.get_extra_info("socket")
        if found is not None and found.family in (socket.AF_INET, socket.AF_INET6):
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self._limit = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Stop the clock when a head is complete, and start it when the next one begins."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_clock()
        elif self._limit is None and not self.transport.is_closing():
            self._limit = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def _stop_clock(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
