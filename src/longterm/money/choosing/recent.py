"""A window of recent requests, stored so that adding one is cheap.

The last requests wait in a small block. A full block is appended to the window, so the window is copied rarely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.money.budgets import LARGEST_STORED

BLOCK = 16
UNKNOWN = -1.0
"""The announced cost of an action in a request that came before the action was added."""


class RecentRequests(NamedTuple):
    """Contexts and announced costs (for one budget, in units of the rules) of recent requests, the newest last."""

    window: FloatArray
    """Shape (window, d + K)."""
    block: FloatArray
    """Shape (BLOCK, d + K)."""
    counts: FloatArray
    """The numbers of requests in the window and in the block, shape (2,)."""

    @classmethod
    def empty(cls, window: int, width: int) -> RecentRequests:
        """Return a window without requests."""
        return cls(np.zeros((window, width)), np.zeros((BLOCK, width)), np.zeros(2))

    def added(self, context: FloatArray, costs: FloatArray) -> RecentRequests:
        """Return the window with one more request."""
        block, (old, new) = self.block.copy(), self.counts
        block[int(new)] = np.concatenate([context, costs])
        if new + 1 < BLOCK:
            return self._replace(block=block, counts=np.array([old, new + 1]))
        size = len(self.window)
        window = np.concatenate([self.window, block])[-size:]
        return RecentRequests(window, block, np.array([min(old + BLOCK, size), 0.0]))

    def rows(self, context: FloatArray, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return contexts (n, d) and costs (n, K) of the requests, with the present one last."""
        old, new = self.counts.astype(np.int64).tolist()
        now = np.concatenate([context, costs])[None]
        rows = np.concatenate([self.window[len(self.window) - old :], self.block[:new], now])
        unknown = rows == UNKNOWN
        unknown[:, : len(context)] = False
        rows = np.where(unknown, now, rows)
        return rows[:, : len(context)], rows[:, len(context) :]

    def extended(self) -> RecentRequests:
        """Return the window with one more action, whose cost in past requests is unknown."""
        return self._replace(window=_with_unknown(self.window), block=_with_unknown(self.block))

    def require_sound(self) -> None:
        """Raise a ValueError unless a window from storage can be used."""
        old, new = self.counts.tolist()
        if not (0 <= old <= len(self.window) and 0 <= new < BLOCK and old % 1 == new % 1 == 0):
            raise ValueError("a window has a number of requests that cannot be")
        if max(np.abs(part).max(initial=0.0) for part in (self.window, self.block)) > LARGEST_STORED:
            raise ValueError("a window holds a number that no request leads to")


def _with_unknown(rows: FloatArray) -> FloatArray:
    return np.concatenate([rows, np.full((len(rows), 1), UNKNOWN)], axis=1)
