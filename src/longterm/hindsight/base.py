"""What every comparator returns: the best fixed decision, its loss, and how far from the best it can be at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.engines.trace import SeedsPlayed
from longterm.errors import InputError


@dataclass(frozen=True)
class Hindsight:
    """x*_t and its cumulative loss at chosen rounds; these first, then the seeds.

    `gap` is the certificate: no point of X has a cumulative loss below ``loss − gap``. So the true regret lies between
    ``trace.regret(best)`` and ``trace.regret(best) + best.gap``.
    """

    rounds: NDArray[np.int64]
    x: FloatArray
    loss: FloatArray
    gap: FloatArray
    seeds: SeedsPlayed = 0

    @property
    def relative_gap(self) -> FloatArray:
        """The gap as a share of |loss|; 0 where both are 0, infinite where only the loss is."""
        size = np.abs(self.loss)
        unknown = np.where(self.gap > 0, np.inf, 0.0)
        return np.asarray(np.divide(self.gap, size, out=unknown, where=size > 0))


def increasing_rounds(rounds: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """The rounds that a comparator is asked for, as an array; refused where they do not increase."""
    wanted = np.atleast_1d(validate.horizons("rounds", rounds))
    if np.any(np.diff(wanted) <= 0):
        raise InputError("rounds", f"{rounds!r} does not increase", "Give each round once, in order")
    return wanted
