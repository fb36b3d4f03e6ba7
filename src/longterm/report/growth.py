"""How fast a curve grows: the slope of its last decade on logarithmic axes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray

FEWEST_ROUNDS = 3
"""Kept rounds in the last decade without which no line is fitted."""


def last_decade_slope(rounds: NDArray[np.int64], values: FloatArray) -> float | None:
    """The a of |values| ≈ c·t^a, fitted by least squares in logarithms over the rounds t ≥ T/10.

    None where that says nothing: a zero, a change of sign or a missing value among them, or fewer than three rounds.

    >>> import numpy as np
    >>> t = np.array([1, 10, 20, 50, 100])
    >>> round(last_decade_slope(t, -3 * t**0.75), 6), last_decade_slope(t, t - 50.0)
    (0.75, None)
    """
    last = 10 * rounds >= rounds[-1]
    t, decade = rounds[last].astype(np.float64), np.asarray(values, dtype=np.float64)[last]
    if len(t) < FEWEST_ROUNDS or not np.all(np.isfinite(decade)) or not (np.all(decade > 0) or np.all(decade < 0)):
        return None
    return float(np.polyfit(np.log(t), np.log(np.abs(decade)), 1)[0])
