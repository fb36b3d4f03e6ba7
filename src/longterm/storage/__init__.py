"""Stored objects: databases, replicas, rounds, tokens, the clock, packing, snapshots.

What every object in a database shares belongs here. It knows nothing of learners or of money: their stored objects
stand beside their rules and use this folder.
"""

from longterm.storage.backups import backup, restore
from longterm.storage.clock import Clock
from longterm.storage.tokens import Token

__all__ = [
    "Clock",
    "Token",
    "backup",
    "restore",
]
