"""Random directions as a pure function of a seed and a round: a counter-based generator.

The words are SplitMix64's finaliser of (seed, round, place); Box and Muller's method makes normals of them. The same
round has the same direction in a split run and, to rounding, in every engine.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import Array, as_column, namespace, norm

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def unit_direction(seed: int | NDArray[Any], t: Array, x: Array) -> Array:
    """Return u_t, uniform on the unit sphere, in x's library, dtype and dimension, for each seed and round.

    >>> import numpy as np
    >>> from longterm.learners.saddle_point.random_directions import unit_direction
    >>> unit_direction(7, np.asarray(1), np.zeros(3)).round(3)
    array([ 0.516, -0.857,  0.001])
    """
    xp, d = namespace(x), x.shape[-1]
    start = _mix(as_column(xp.asarray(seed, dtype=xp.uint64)) + xp.asarray([GOLDEN], dtype=xp.uint64), xp)
    start = _mix(start + as_column(xp.astype(t, xp.uint64)) * xp.asarray([GOLDEN], dtype=xp.uint64), xp)
    counter = xp.asarray(np.arange(1, 2 * d + 1, dtype=np.uint64) * np.uint64(GOLDEN))
    words = xp.bitwise_right_shift(_mix(start + counter, xp), xp.asarray([11], dtype=xp.uint64))
    uniform = (xp.astype(words, xp.float64) + 0.5) * 2.0**-53
    normal = xp.sqrt(-2 * xp.log(uniform[..., :d])) * xp.cos(2 * pi * uniform[..., d:])
    return xp.astype(normal / as_column(norm(normal)), x.dtype)


def _mix(words: Array, xp: Any) -> Array:
    """Return SplitMix64's finaliser of the words: every bit of the result depends on every bit of the word."""

    def xor_shift(z: Array, by: int) -> Array:
        """Return z xor (z >> by)."""
        return xp.bitwise_xor(z, xp.bitwise_right_shift(z, xp.asarray([by], dtype=xp.uint64)))

    words = xor_shift(words, 30) * xp.asarray([FIRST], dtype=xp.uint64)
    words = xor_shift(words, 27) * xp.asarray([SECOND], dtype=xp.uint64)
    return xor_shift(words, 31)
