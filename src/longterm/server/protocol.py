"""uvicorn's protocol, with answers that are sent at once."""

from __future__ import annotations

import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class PromptProtocol(H11Protocol):
    """A protocol without Nagle's delay.

    uvicorn sends the head and the body of an answer in two pieces, and with several workers it leaves Nagle's algorithm
    on. Then every answer waits 40 ms for the client's delayed acknowledgement of the head.
    """

    def connection_made(self, transport: Any) -> None:
        """Turn the delay off for a new connection."""
        found = transport.get_extra_info("socket")
        if found is not None and found.family in (socket.AF_INET, socket.AF_INET6):
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
