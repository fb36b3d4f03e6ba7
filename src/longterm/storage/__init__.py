"""Stored objects: databases, replicas, rounds, tokens, packing, snapshots. What live objects share."""

from longterm.storage.backups import backup, restore
from longterm.storage.clock import Clock
from longterm.storage.tokens import Token

__all__ = [
    "Clock",
    "Token",
    "backup",
    "restore",
]
