"""Replicas across a fork of their process.

A connection must not be used on both sides of a fork, since SQLite's locks belong to a process. So it is closed before
the fork, while no thread is inside a call, and opened again by the next call of either process.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longterm.storage.replica import Replica

_REPLICAS: weakref.WeakSet[Replica[Any]] = weakref.WeakSet()
_HELD: list[Replica[Any]] = []


def register(replica: Replica[Any]) -> None:
    """Hold a replica while its process forks."""
    _REPLICAS.add(replica)


def _before() -> None:
    _HELD.extend(replica for replica in list(_REPLICAS) if replica.hold_for_fork())


def _after() -> None:
    while _HELD:
        _HELD.pop().guard.lock.release()


def _after_in_child() -> None:
    _HELD.clear()
    for replica in list(_REPLICAS):
        replica.renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
