"""The command `longterm serve`: live objects behind HTTP, with metrics and a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from longterm.errors import InputError
from longterm.server.launch import serve, serve_demo


@dataclass(frozen=True)
class ServeCommand:
    """Serve learners, choosers, routers, pacers, ledgers and intervals of one database over HTTP, with a page.

    To listen on another address than 127.0.0.1, the server needs tokens: those of the TOML file, or the one in the
    environment variable LONGTERM_TOKEN. Every request except /health and /ready must then send a token.

    for example:
      longterm serve --demo
      longterm serve service.toml --workers 4
    """

    service: tyro.conf.Positional[Path | None] = None
    """A TOML file that describes the objects. docs/guides/service.md shows an example."""
    host: str = "127.0.0.1"
    """The network address to listen on."""
    port: int = 8000
    """The port to listen on."""
    workers: int = 1
    """The number of processes. They share one database."""
    access_log: bool = True
    """Write one line of JSON to the standard output for each request."""
    demo: bool = False
    """Serve invented objects and send them invented requests."""

    def run(self) -> None:
        """Serve until interrupted."""
        if self.demo == (self.service is not None):
            what = "is given together with --demo" if self.demo else "is missing"
            raise InputError("service", what, "Write longterm serve service.toml, or longterm serve --demo")
        if self.service is None:
            serve_demo(host=self.host, port=self.port, workers=self.workers)
        else:
            serve(self.service, host=self.host, port=self.port, workers=self.workers, access_log=self.access_log)
