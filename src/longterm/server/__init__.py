"""A server for live objects: HTTP calls, metrics and a page, on one database for all workers.

`longterm serve service.toml` starts it (extra `server`). The client needs no extra.
The objects themselves belong in `money`, `play` and `calibration`: this folder only serves them.
"""

from longterm.server.client import Client, ServerError

__all__ = ["Client", "ServerError"]
