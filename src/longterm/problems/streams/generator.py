"""NumPy's default random generator as array operations in any library, so that a device can draw the same numbers.

It computes `numpy.random.default_rng(SeedSequence(seed, spawn_key=(chunk,))).random(count)` for many seeds and chunks
at once. A SeedSequence hashes words of 32 bits. PCG64 (M. E. O'Neill) is the recurrence s ← A s + c modulo 2¹²⁸. Its
k-th state is A^k s + (1 + A + … + A^(k−1)) c, so all draws are computed in parallel. NumPy guarantees the numbers of a
named bit generator across versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import Array

POOL = 4
"""The number of words in a SeedSequence's pool."""
LARGEST_SEED = 2 ** (32 * POOL) - 1
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
Wide = tuple[Array, Array]
"""Numbers of 128 bits as high and low halves."""


def seed_words(seeds: Sequence[int]) -> NDArray[np.uint32]:
    """Return seeds up to `LARGEST_SEED` as words of 32 bits, low words first, shape (seeds, 4)."""
    if max(seeds, default=0) >> 64:
        return np.array([[seed >> 32 * k & 0xFFFFFFFF for k in range(POOL)] for seed in seeds], dtype=np.uint32)
    words, short = np.zeros((len(seeds), POOL), dtype=np.uint32), np.array(seeds, dtype=np.uint64)
    words[:, 0], words[:, 1] = short & np.uint64(0xFFFFFFFF), short >> np.uint64(32)
    return words


def uniforms(words: Array, chunks: Array, count: int, xp: Any) -> Array:
    """Return the first `count` numbers in [0, 1) of each chunk of each seed, float64.

    Parameters
    ----------
    words : array of uint32, shape (seeds, 4)
        The seeds (`seed_words`).
    chunks : array of uint32, shape (chunks,)
        The spawn keys.
    count : int
        The number of draws.
    xp : namespace
        The library of the arrays, with integers of 64 bits.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.streams.generator import seed_words, uniforms
    >>> here = uniforms(seed_words([7]), np.array([3], dtype=np.uint32), 2, np)
    >>> there = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(3,))).random(2)
    >>> bool((here[0, 0] == there).all())
    True
    """
    state, increment = _seeded(_pool(words, chunks, xp), xp)
    powers, sums = (tuple(xp.asarray(half) for half in table) for table in _jumps(count))
    high, low = _plus(_times(_column(powers, state), xp), _times(_column(sums, increment), xp), xp)
    rotation = high >> _long(58, xp)
    bits = high ^ low
    bits = (bits >> rotation) | (bits << ((_long(64, xp) - rotation) & _long(63, xp)))
    return xp.astype(bits >> _long(11, xp), xp.float64) * 2.0**-53


# --- SeedSequence: hashes of words of 32 bits -----------------------------------------------------------------


class _Hash:
    """SeedSequence's hash function. Its constant changes with every call."""

    def __init__(self, start: int, multiplier: int, xp: Any) -> None:
        self._constant, self._multiplier, self._xp = start, multiplier, xp

    def __call__(self, value: Array) -> Array:
        value = value ^ _word(self._constant, self._xp)
        self._constant = self._constant * self._multiplier & 0xFFFFFFFF
        value = value * _word(self._constant, self._xp)
        return value ^ (value >> _word(16, self._xp))


def _pool(words: Array, chunks: Array, xp: Any) -> list[Array]:
    """Return the pool of SeedSequence(seed, spawn_key=(chunk,)): four words of shape (chunks, seeds)."""
    hashed = _Hash(0x43B0D7E5, 0x931E8875, xp)
    shape = (chunks.shape[0], words.shape[0])
    entropy = [xp.broadcast_to(words[:, k][None, :], shape) for k in range(POOL)]
    entropy.append(xp.broadcast_to(chunks[:, None], shape))
    pool = [hashed(word) for word in entropy[:POOL]]
    for source in range(POOL):
        for target in range(POOL):
            if source != target:
                pool[target] = _mixed(pool[target], hashed(pool[source]), xp)
    return [_mixed(word, hashed(entropy[POOL]), xp) for word in pool]


def _mixed(x: Array, y: Array, xp: Any) -> Array:
    mixed = _word(0xCA01F9DD, xp) * x - _word(0x4973F715, xp) * y
    return mixed ^ (mixed >> _word(16, xp))


# --- PCG64: a recurrence of 128 bits --------------------------------------------------------------------------


def _seeded(pool: list[Array], xp: Any) -> tuple[Wide, Wide]:
    """Return the state before the first draw, and the increment c."""
    hashed = _Hash(0x8B51F9DD, 0x58F38DED, xp)
    words = [xp.astype(hashed(pool[k % POOL]), xp.uint64) for k in range(2 * POOL)]
    start_high, start_low, high, low = (words[k] | (words[k + 1] << _long(32, xp)) for k in range(0, 2 * POOL, 2))
    one, last = _long(1, xp), _long(63, xp)
    increment = (high << one) | (low >> last), (low << one) | one
    # Seeding steps from 0 to c, adds the start, and steps once more.
    state = _plus((start_high, start_low), increment, xp)
    multiplier = _long(_MULTIPLIER >> 64, xp), _long(_MULTIPLIER & 0xFFFFFFFFFFFFFFFF, xp)
    return _plus(_times((*multiplier, *state), xp), increment, xp), increment


@lru_cache(maxsize=16)
def _jumps(count: int) -> tuple[tuple[NDArray[np.uint64], NDArray[np.uint64]], ...]:
    """Return A^k and 1 + A + … + A^(k−1) for k = 1 … count, as halves."""
    powers, sums, power, total = [], [], 1, 0
    for _ in range(count):
        total = (total + power) % 2**128
        power = power * _MULTIPLIER % 2**128
        powers.append(power)
        sums.append(total)
    return tuple(
        (np.array([n >> 64 for n in numbers], dtype=np.uint64), np.array([n % 2**64 for n in numbers], dtype=np.uint64))
        for numbers in (powers, sums)
    )


def _column(constants: Wide, wide: Wide) -> tuple[Array, Array, Array, Array]:
    """Return the halves of constants and of a wide number with a new last axis."""
    return *constants, wide[0][..., None], wide[1][..., None]


def _plus(a: Wide, b: Wide, xp: Any) -> Wide:
    low = a[1] + b[1]
    return a[0] + b[0] + xp.astype(low < b[1], xp.uint64), low


def _times(factors: tuple[Array, Array, Array, Array], xp: Any) -> Wide:
    """Return the product of (high, low) and (high, low) modulo 2¹²⁸."""
    a_high, a, b_high, b = factors
    half, mask = _long(32, xp), _long(0xFFFFFFFF, xp)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    middle = a1 * b0 + (a0 * b0 >> half)
    cross = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (cross >> half) + a_high * b + a * b_high, a * b


def _word(value: int, xp: Any) -> Array:
    return xp.asarray(value, dtype=xp.uint32)


def _long(value: int, xp: Any) -> Array:
    return xp.asarray(value, dtype=xp.uint64)
