"""Random directions as a pure function of a seed and a round: nothing to carry, nothing to draw in order.

A counter-based generator: the words are SplitMix64's finaliser of (seed, round, place), the normals Box and Muller's.
The same round has the same direction in a split run, in every engine (to rounding) and in every row of a batch; rows
get directions of their own by seeds of their own.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, column, namespace, norm
from longterm.errors import InputError

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def unit_direction(seed: int | NDArray[Any], t: Array, x: Array) -> Array:
    """u_t, uniform on the unit sphere, in x's library, dtype and dimension: one for each seed and round.

    >>> import numpy as np
    >>> from longterm.learners._directions import unit_direction
    >>> unit_direction(7, np.asarray(1), np.zeros(3)).round(3)
    array([ 0.516, -0.857,  0.001])
    """
    xp, d = namespace(x), x.shape[-1]
    start = _mixed(column(xp.asarray(seed, dtype=xp.uint64)) + xp.asarray([GOLDEN], dtype=xp.uint64), xp)
    start = _mixed(start + column(xp.astype(t, xp.uint64)) * xp.asarray([GOLDEN], dtype=xp.uint64), xp)
    counter = xp.asarray(np.arange(1, 2 * d + 1, dtype=np.uint64) * np.uint64(GOLDEN))
    words = xp.bitwise_right_shift(_mixed(start + counter, xp), xp.asarray([11], dtype=xp.uint64))
    uniform = (xp.astype(words, xp.float64) + 0.5) * 2.0**-53
    normal = xp.sqrt(-2 * xp.log(uniform[..., :d])) * xp.cos(2 * pi * uniform[..., d:])
    return xp.astype(normal / column(norm(normal)), x.dtype)


def _mixed(words: Array, xp: Any) -> Array:
    """SplitMix64's finaliser: every bit of the result depends on every bit of the word."""

    def shifted(z: Array, by: int) -> Array:
        return xp.bitwise_xor(z, xp.bitwise_right_shift(z, xp.asarray([by], dtype=xp.uint64)))

    words = shifted(words, 30) * xp.asarray([FIRST], dtype=xp.uint64)
    words = shifted(words, 27) * xp.asarray([SECOND], dtype=xp.uint64)
    return shifted(words, 31)


def checked_seed(value: Any) -> int | NDArray[Any]:
    """One seed, or an array of them over the leading axes."""
    given = np.asarray(value)
    if given.dtype.kind not in "iu" or given.size == 0 or given.min() < 0:
        raise InputError(
            "seed", f"{value!r} is not a seed or an array of seeds", "Give 0, or np.arange(10), for example"
        )
    return int(given) if given.ndim == 0 else validate.frozen(given)
