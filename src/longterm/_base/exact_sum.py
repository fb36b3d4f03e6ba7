"""Compensated sums, for money that must stay within a limit.

An `ExactSum` adds in float64, whatever the dtype of the terms. Its error is two units in the last place, independent of
the number of terms. `remaining` stays four units below a limit unless every addition was exact, so "never over" holds
for the exact sum. Whole cents and tokens add up exactly and can reach the limit itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from longterm._base.arrays import Array
from longterm._base.selection import where

GUARD = 4 * float(np.finfo(np.float64).eps)
"""The relative margin below a limit that an inexact sum must keep."""


class ExactSum(NamedTuple):
    """A compensated sum: one number, or one for each budget or pacer."""

    total: Array
    correction: Array

    @classmethod
    def zeros(cls, shape: tuple[int, ...] = (), *, xp: Any = np) -> ExactSum:
        """Return a sum of no term of this shape in float64."""
        zero = xp.zeros(shape, dtype=xp.float64)
        return cls(zero[()], zero[()]) if xp is np else cls(zero, zero)

    def add(self, amount: Array) -> ExactSum:
        """Return the sum with one more amount. The rounding error of the addition is kept exactly (Knuth)."""
        total = self.total + amount
        added = total - self.total
        return ExactSum(total, self.correction + ((self.total - (total - added)) + (amount - added)))

    def replaced(self, before: Array, after: Array) -> ExactSum:
        """Return the sum after one of its amounts was replaced by another one; at least 0."""
        new = self.add(after).add(-before)
        is_sound = new.value >= 0
        return ExactSum(where(is_sound, new.total, 0.0 * new.total), where(is_sound, new.correction, 0.0))

    @property
    def value(self) -> Array:
        """The sum."""
        return self.total + self.correction

    def remaining(self, limit: Array) -> Array:
        """Return an amount that can be added without exceeding `limit`; negative if it is exceeded already."""
        rest = limit - self.total
        taken = rest - limit
        lost = (limit - (rest - taken)) - (self.total + taken)  # the rounding error of the subtraction
        is_exact = (self.correction == 0.0) & (lost == 0.0)
        return where(is_exact, rest, limit * (1 - GUARD) - self.value)
