"""Running totals of losses and violations over the rounds of a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from longterm._base.arrays import Array, FloatArray, namespace
from longterm._base.selection import maximum
from longterm.learners.interface.feedback import Feedback

ROUNDING_SHARE = 1e-9
"""A value smaller than this share of the scale of its summands is shown as 0."""


class Sums(NamedTuple):
    """Running totals over rounds 1 … t, in float64 for every dtype of the learner."""

    loss: Array
    """Σ f_s(x_s), shape (...,)."""
    signed: Array
    """Σ max_j g_j(x_s)."""
    hard: Array
    """Σ [max_j g_j(x_s)]₊."""
    squared: Array
    """Σ [max_j g_j(x_s)]₊²."""
    largest: Array
    """max_s max_j g_j(x_s)."""
    per_constraint: Array
    """Σ g_j(x_s), shape (..., m)."""

    @classmethod
    def zero(cls, batch_shape: tuple[int, ...], constraints: int, xp: Any = np) -> Sums:
        """Return the totals before round 1."""
        zero = xp.zeros(batch_shape, dtype=xp.float64)
        return cls(zero, zero, zero, zero, zero - xp.inf, xp.zeros((*batch_shape, constraints), dtype=xp.float64))

    def add(self, feedback: Feedback) -> Sums:
        """Return the totals with one more round."""
        xp = namespace(self.loss)
        loss, worst, values = feedback.loss, feedback.constraint, feedback.constraint_values
        return self.with_round(*(xp.astype(one, xp.float64, copy=False) for one in (loss, worst, values)))

    def with_round(self, loss: Array, worst: Array, values: Array | None = None) -> Sums:
        """Return the totals with one more round, from numbers in float64. Those of one learner may be floats.

        Without the values of single constraints, their sums stay as they are.
        """
        positive = maximum(worst, 0.0)
        return Sums(
            self.loss + loss,
            self.signed + worst,
            self.hard + positive,
            self.squared + positive * positive,
            maximum(self.largest, worst),
            self.per_constraint if values is None else self.per_constraint + values,
        )


def zero_rounding(values: FloatArray, scale: FloatArray | float) -> FloatArray:
    """Replace values by 0 where they are rounding error of sums of the given scale.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.play.engines.sums import zero_rounding
    >>> zero_rounding(np.array([9.9e-14, 0.5]), 1.0)
    array([0. , 0.5])
    """
    return np.where(np.abs(values) < ROUNDING_SHARE * np.asarray(scale), 0.0, values)
