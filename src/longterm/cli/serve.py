"""The command `longterm serve`: live objects behind HTTP, with metrics and a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from longterm.errors import InputError
from longterm.server.launch import serve, serve_demo


@dataclass(frozen=True)
class ServeCommand:
    """Serve learners, choosers, routers, pacers, ledgers and intervals from one database: HTTP calls and a page.

    Any address but 127.0.0.1 needs the environment variable LONGTERM_TOKEN, and so does every request then.

    for example:
      longterm serve --demo
      longterm serve service.toml --workers 4
    """

    service: tyro.conf.Positional[Path | None] = None
    """A TOML file that names the objects; docs/guides/service.md shows one."""
    host: str = "127.0.0.1"
    """The address."""
    port: int = 8000
    """The port."""
    workers: int = 1
    """Processes, all on one database."""
    access_log: bool = True
    """Write a line of JSON to the standard output for each request."""
    demo: bool = False
    """Serve invented objects, with invented requests."""

    def run(self) -> None:
        """Serve until interrupted."""
        if self.demo == (self.service is not None):
            raise InputError("service", "must be given, or --demo in its place", "Write longterm serve service.toml")
        if self.service is None:
            serve_demo(host=self.host, port=self.port, workers=self.workers)
        else:
            serve(self.service, host=self.host, port=self.port, workers=self.workers, access_log=self.access_log)
