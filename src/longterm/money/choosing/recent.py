"""A window of recent settled requests, stored so that adding one is cheap.

The last requests wait in a small block. A full block is appended to the window, so the window is copied rarely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.money.budgets import LARGEST_STORED

BLOCK = 16
UNKNOWN = -1.0
"""The announced cost of an action in a request that came before the action was added; the action of a labelled one."""


class RecentRequests(NamedTuple):
    """Recent requests, the newest last: action, context, and announced costs (of one budget, in units of the rules)."""

    window: FloatArray
    """Shape (window, 1 + d + K)."""
    block: FloatArray
    """Shape (BLOCK, 1 + d + K)."""
    counts: FloatArray
    """The numbers of requests in the window and in the block, shape (2,)."""

    @classmethod
    def empty(cls, window: int, width: int) -> RecentRequests:
        """Return a window without requests, for `width` numbers of a context and of costs."""
        return cls(np.zeros((window, 1 + width)), np.zeros((BLOCK, 1 + width)), np.zeros(2))

    def added(self, action: float, context: FloatArray, costs: FloatArray) -> RecentRequests:
        """Return the window with one more request."""
        block, (old, new) = self.block.copy(), self.counts
        row = block[int(new)]
        row[0], row[1 : 1 + len(context)], row[1 + len(context) :] = action, context, costs
        if new + 1 < BLOCK:
            return self._replace(block=block, counts=np.array([old, new + 1]))
        size = len(self.window)
        window = np.concatenate([self.window, block])[-size:]
        return RecentRequests(window, block, np.array([min(old + BLOCK, size), 0.0]))

    def rows(self, context: FloatArray, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return contexts (n, d) and costs (n, K) of the requests, with the present one last.

        An announced cost that changes at most once in `BLOCK` requests is a list price, and the present one holds for
        all rows. So a plan does not count with prices of the past. Other costs belong to their requests.
        """
        now = np.concatenate([context, costs])[None]
        rows = np.concatenate([self._known()[:, 1:], now])
        unknown = rows == UNKNOWN
        unknown[:, : len(context)] = False
        changes = (rows[1:] != rows[:-1]).sum(axis=0)
        changes[: len(context)] = len(rows)
        rows = np.where(unknown | (changes * BLOCK <= len(rows)), now, rows)
        return rows[:, : len(context)], rows[:, len(context) :]

    def shares(self, actions: int) -> FloatArray:
        """Return the share of the requests that each action answered, shape (K,); 0 without requests."""
        answered = self._known()[:, 0]
        answered = answered[answered != UNKNOWN].astype(np.int64)
        return np.bincount(answered, minlength=actions) / max(len(answered), 1)

    def _known(self) -> FloatArray:
        old, new = self.counts.astype(np.int64).tolist()
        return np.concatenate([self.window[len(self.window) - old :], self.block[:new]])

    def extended(self) -> RecentRequests:
        """Return the window with one more action, whose cost in past requests is unknown."""
        return self._replace(window=_with_unknown(self.window), block=_with_unknown(self.block))

    def require_sound(self) -> None:
        """Raise a ValueError unless a window from storage can be used."""
        old, new = self.counts.tolist()
        if not (0 <= old <= len(self.window) and 0 <= new < BLOCK and old % 1 == new % 1 == 0):
            raise ValueError("a window has a number of requests that cannot be")
        if max(np.abs(part).max(initial=0.0) for part in (self.window, self.block)) > LARGEST_STORED:
            raise ValueError("a window holds a number that no request can produce")


def _with_unknown(rows: FloatArray) -> FloatArray:
    return np.concatenate([rows, np.full((len(rows), 1), UNKNOWN)], axis=1)
