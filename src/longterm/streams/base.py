"""What a stream is: the parameters of f_1, f_2, … (and of g_1, g_2, …) in blocks of arrays.

A block holds the parameters of consecutive rounds, the rounds on the leading axis. A stream can be
entered at any round and gives the same numbers there as in passing: draws are made in chunks of fixed
length, each chunk from its own child of the seed. So a split run sees what the whole run sees, ten
seeds run as a batch see what ten single runs see, and nothing is kept in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import Array
from longterm._display import Shown
from longterm.errors import InputError

Seeds = int | Sequence[int]
"""One seed for a single run, or a sequence of them for a batch of runs."""

BLOCK_BYTES = 16 * 2**20
"""About how much memory a block of parameters may take."""


class Block(NamedTuple):
    """Parameters of consecutive rounds: each array has shape (rounds, [seeds,] *shape of the parameter).

    Parameters
    ----------
    loss, constraint : tuple of array
        The parameters of f_t, and those of g_t where g changes.
    length : int, optional
        How many rounds, where there are no arrays to tell it.
    """

    loss: tuple[NDArray[Any], ...]
    constraint: tuple[NDArray[Any], ...] = ()
    length: int | None = None

    @property
    def rounds(self) -> int:
        """How many rounds the block holds."""
        arrays = self.loss + self.constraint
        return len(arrays[0]) if arrays else self.length or 0

    def part(self, start: int, stop: int) -> Block:
        """Rounds start (counted from 0) up to stop of this block."""
        loss, constraint = (tuple(a[start:stop] for a in arrays) for arrays in (self.loss, self.constraint))
        return Block(loss, constraint, min(stop, self.rounds) - start)


class Stream(Shown, ABC):
    """A sequence of rounds, entered anywhere."""

    length: int | None = None
    """How many rounds there are; None: no end."""

    @abstractmethod
    def draw(self, seed: int, start: int, stop: int) -> Block:
        """The rounds start + 1 … stop (counted from 1), for one seed."""

    def blocks(self, seeds: Seeds, start: int, stop: int | None) -> Iterator[Block]:
        """The rounds start + 1 … stop in blocks that fit in memory; `stop` None: to the end of the stream."""
        seeds = checked_seeds(seeds)
        if stop is None and self.length is None:
            raise InputError("rounds", "this stream has no end", "Say how many rounds to play")
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
"""Rounds drawn from one child of the seed. Changing it changes every random stream."""


class ChunkedStream(Stream):
    """A random stream, drawn chunk by chunk.

    One that is made of uniform numbers alone says so (`uniforms_per_round`), and is written for arrays of any library:
    then a compiled engine draws the same numbers itself, on its device (`streams.generator`).
    """

    uniforms_per_round: int | None = None
    """How many numbers, uniform in [0, 1), a round is made of; None: it is made of something else."""

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        """The random numbers of CHUNK rounds, rounds on the leading axis, as compact as can be."""
        return np.asarray(self.compact(rng.random((CHUNK, self.uniforms_per_round or 0))))

    def compact(self, uniforms: Array) -> Array:
        """What is kept of uniform numbers, shape (..., uniforms_per_round)."""
        return uniforms

    @abstractmethod
    def expand(self, drawn: Array) -> Block:
        """The parameters that these random numbers stand for."""

    def drawn(self, seed: int, start: int, stop: int) -> NDArray[Any]:
        """The random numbers of the rounds start + 1 … stop."""
        first, last = start // CHUNK, -(-stop // CHUNK)
        children = (np.random.SeedSequence(seed, spawn_key=(chunk,)) for chunk in range(first, last))
        drawn = np.concatenate([self.draw_chunk(np.random.default_rng(child)) for child in children])
        return drawn[start - first * CHUNK : stop - first * CHUNK]

    def draw(self, seed: int, start: int, stop: int) -> Block:
        return self.expand(self.drawn(seed, start, stop))


def checked_seeds(seeds: Seeds) -> int | tuple[int, ...]:
    """The seeds as whole numbers: one, or a tuple of them."""
    given = np.asarray(seeds)
    if given.dtype.kind not in "iu" or given.ndim > 1 or given.size == 0 or given.min() < 0:
        raise InputError("seeds", f"{seeds!r} is not a seed or a list of seeds", "Give 0, or range(10), for example")
    return int(given) if given.ndim == 0 else tuple(int(seed) for seed in given)


def _as_list(seeds: Seeds) -> Sequence[int]:
    return [seeds] if isinstance(seeds, int) else seeds


def _batch(blocks: list[Block], seeds: Seeds) -> Block:
    """One block per seed → one block with a seed axis behind the rounds (none for a single seed)."""
    if isinstance(seeds, int):
        return blocks[0]
    loss = tuple(np.stack(arrays, axis=1) for arrays in zip(*(b.loss for b in blocks), strict=True))
    constraint = tuple(np.stack(arrays, axis=1) for arrays in zip(*(b.constraint for b in blocks), strict=True))
    return Block(loss, constraint, blocks[0].rounds)
