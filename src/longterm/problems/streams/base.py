"""The base classes of streams, which yield the parameters of f_1, f_2, … and g_1, g_2, … in blocks.

A block has the parameters of consecutive rounds, with rounds on the leading axis. A stream can start at any round.
Random streams draw chunks of fixed length, each from its own child of the seed. Split runs, batches and single runs
therefore see the same numbers, and nothing is stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import Array
from longterm._base.display import ReprMixin
from longterm.errors import InputError

Seeds = int | Sequence[int]
"""One seed for a single run, or a sequence of them for a batch of runs."""

BLOCK_BYTES = 16 * 2**20
"""The approximate memory limit of a block of parameters."""


class Block(NamedTuple):
    """Parameters of consecutive rounds. Each array has shape (rounds, [seeds,] *shape of the parameter).

    Parameters
    ----------
    loss, constraint : tuple of array
        The parameters of f_t, and those of g_t if g changes.
    length : int, optional
        The number of rounds, needed only if there are no arrays.
    """

    loss: tuple[NDArray[Any], ...]
    constraint: tuple[NDArray[Any], ...] = ()
    length: int | None = None

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        arrays = self.loss + self.constraint
        return len(arrays[0]) if arrays else self.length or 0

    def part(self, start: int, stop: int) -> Block:
        """Return rounds start (counted from 0) to stop of this block."""
        loss, constraint = (tuple(a[start:stop] for a in arrays) for arrays in (self.loss, self.constraint))
        return Block(loss, constraint, min(stop, self.rounds) - start)


class Stream(ReprMixin, ABC):
    """Supply the rounds of a run, from any round on: the base class of all streams."""

    length: int | None = None
    """The number of rounds. None means infinite."""
    depends_on_seed: bool = True
    """True if two seeds give different rounds."""

    @abstractmethod
    def draw(self, seed: int, start: int, stop: int) -> Block:
        """Return the rounds start + 1 … stop (counted from 1) for one seed."""

    def blocks(self, seeds: Seeds, start: int, stop: int | None) -> Iterator[Block]:
        """Yield the rounds start + 1 … stop, or to the end of the stream, in blocks that fit in memory."""
        seeds = validate_seeds(seeds)
        if stop is None and self.length is None:
            raise InputError("rounds", "this stream has no end", "Give the number of rounds")
        last = min(end for end in (stop, self.length) if end is not None)
        if start >= last:
            return
        one_round = _batch([self.draw(seed, start, start + 1) for seed in _as_list(seeds)], seeds)
        size = sum(a.nbytes for a in one_round.loss + one_round.constraint)
        step = max(1, min(BLOCK_BYTES // max(size, 1), 4096))
        for first in range(start, last, step):
            end = min(first + step, last)
            yield _batch([self.draw(seed, first, end) for seed in _as_list(seeds)], seeds)


CHUNK = 64
"""The number of rounds drawn from one child of the seed. Changing it changes every random stream."""


class ChunkedStream(Stream):
    """A random stream, drawn chunk by chunk.

    A stream made of uniform numbers alone sets `uniforms_per_round` and is written for arrays of any library. Compiled
    engines then draw the same numbers on their device (`problems.streams.generator`).
    """

    uniforms_per_round: int | None = None
    """The number of uniform numbers per round, or None if the stream needs others."""

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        """Return the random numbers of CHUNK rounds in compact form, with rounds on the leading axis."""
        return np.asarray(self.compact(rng.random((CHUNK, self.uniforms_per_round or 0))))

    def compact(self, uniforms: Array) -> Array:
        """Return the compact form of uniform numbers of shape (..., uniforms_per_round)."""
        return uniforms

    @abstractmethod
    def expand(self, drawn: Array) -> Block:
        """Return the parameters for the given random numbers."""

    def drawn(self, seed: int, start: int, stop: int) -> NDArray[Any]:
        """Return the random numbers of the rounds start + 1 … stop."""
        first, last = start // CHUNK, -(-stop // CHUNK)
        children = (np.random.SeedSequence(seed, spawn_key=(chunk,)) for chunk in range(first, last))
        drawn = np.concatenate([self.draw_chunk(np.random.default_rng(child)) for child in children])
        return drawn[start - first * CHUNK : stop - first * CHUNK]

    def draw(self, seed: int, start: int, stop: int) -> Block:
        return self.expand(self.drawn(seed, start, stop))


def validate_seeds(seeds: Seeds) -> int | tuple[int, ...]:
    """Return one seed as an int, or several as a tuple."""
    given = np.asarray(seeds)
    if given.dtype.kind not in "iu" or given.ndim > 1 or given.size == 0 or given.min() < 0:
        raise InputError("seeds", f"{seeds!r} is not a seed or a list of seeds", "Give 0, or range(10), for example")
    return int(given) if given.ndim == 0 else tuple(int(seed) for seed in given)


def _as_list(seeds: Seeds) -> Sequence[int]:
    return [seeds] if isinstance(seeds, int) else seeds


def _batch(blocks: list[Block], seeds: Seeds) -> Block:
    """Join the blocks of several seeds into one with a seed axis after the rounds. A single seed has no such axis."""
    if isinstance(seeds, int):
        return blocks[0]
    loss = tuple(np.stack(arrays, axis=1) for arrays in zip(*(b.loss for b in blocks), strict=True))
    constraint = tuple(np.stack(arrays, axis=1) for arrays in zip(*(b.constraint for b in blocks), strict=True))
    return Block(loss, constraint, blocks[0].rounds)
