"""Rounds on the device that plays them: drawn there, and recorded there.

Drawn are compact random numbers, expanded where they are used. Of the rounds that a compiled loop recorded the latest
are on the device, the others on the host or on their way there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp
from numpy.typing import NDArray

from longterm._arrays import Array
from longterm.engines.reference import Kept
from longterm.engines.trace import Sums
from longterm.streams import Stream
from longterm.streams.base import BLOCK_BYTES, CHUNK, ChunkedStream, Seeds
from longterm.streams.generator import LARGEST_SEED, POOL, seed_words, uniforms


class DrawnBlock(NamedTuple):
    """The random numbers of consecutive rounds on the device, whole chunks of them; the first `rounds` count."""

    drawn: Array
    stream: ChunkedStream
    rounds: int


def can_draw(stream: Stream, seeds: Seeds) -> bool:
    """Whether the device is another than the host, and can draw this stream by itself."""
    largest = seeds if isinstance(seeds, int) else max(seeds)
    made_of_uniforms = isinstance(stream, ChunkedStream) and stream.uniforms_per_round is not None
    return made_of_uniforms and largest <= LARGEST_SEED and jax.default_backend() != "cpu"


def drawn_blocks(stream: ChunkedStream, seeds: Seeds, start: int, stop: int) -> Iterator[tuple[int, DrawnBlock]]:
    """The rounds start + 1 … stop in blocks of whole chunks, each with the number of its first round."""
    single = isinstance(seeds, int)
    listed = [seeds] if isinstance(seeds, int) else list(seeds)
    with jax.enable_x64(True):
        words, draw = jnp.asarray(seed_words(listed)), _draw(stream, single)
        at_once = BLOCK_BYTES // max(_bytes_of_a_chunk(stream, single, len(listed)), 1)
    chunks = min(max(at_once, 1), 4096 // CHUNK, -(-stop // CHUNK) - start // CHUNK)
    for first in range(start // CHUNK, -(-stop // CHUNK), chunks):
        with jax.enable_x64(True):
            drawn = draw(words, np.arange(first, first + chunks, dtype=np.uint32))
        yield first * CHUNK + 1, DrawnBlock(drawn, stream, min(chunks * CHUNK, stop - first * CHUNK))


@lru_cache(maxsize=16)
def _draw(stream: ChunkedStream, single: bool) -> Any:
    """(seeds, chunks) ↦ what is kept of their random numbers, rounds first, then seeds."""
    count: int = stream.uniforms_per_round  # type: ignore[assignment]

    def draw(words: Array, chunks: Array) -> Array:
        numbers = uniforms(words, chunks, CHUNK * count, jnp)
        by_round = jnp.reshape(numbers, (len(chunks), len(words), CHUNK, count)).swapaxes(1, 2)
        kept = stream.compact(jnp.reshape(by_round, (len(chunks) * CHUNK, len(words), count)))
        kept = kept[:, 0] if single else kept
        return kept.astype(jnp.int32) if jnp.issubdtype(kept.dtype, jnp.integer) else kept

    return jax.jit(draw)


@lru_cache(maxsize=16)
def _bytes_of_a_chunk(stream: ChunkedStream, single: bool, seeds: int) -> int:
    one = jax.eval_shape(_draw(stream, single), jnp.zeros((seeds, POOL), jnp.uint32), jnp.zeros(1, jnp.uint32))
    return int(one.size * one.dtype.itemsize)


MOST_KEPT, KEPT_BYTES, FEW = 16, 2**25, 4
"""Recorded rounds that stay on the device: each array that comes from there takes as long as twenty rounds. So it has
several of them, a multiple of a FEW: each other number is compiled anew."""
THREADS = 4
"""To copy by: most of a copy's time goes into memory of the host's that nobody has touched before."""


@cache
def _copiers() -> ThreadPoolExecutor:
    """Threads that are there for the next run, too: to start one takes as long as a hundred rounds."""
    return ThreadPoolExecutor(THREADS, thread_name_prefix="longterm-copier")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_copiers.cache_clear)  # threads stay with the parent


_first = jax.jit(lambda rows, count: rows[:count], static_argnums=1)
_empty = jax.jit(jnp.zeros, static_argnums=0)


class DeviceRecords:
    """A row of numbers for each recorded round: its sums, then what the learner reported.

    A device that is not the host plays on while rows are copied, by threads of their own.
    """

    def __init__(self, sums: Sums, report: dict[str, Any], expected: int) -> None:
        """Rows for sums and reports of these shapes; so many are `expected` in all."""
        size = sum(np.size(value) for value in (*sums, *report.values()))
        self.most = min(max(KEPT_BYTES // max(8 * size, 1), 1), MOST_KEPT)
        self.rows = _empty((self.most + 1, size))
        """On the device; a compiled loop writes them."""
        self.rounds: list[int] = []
        """What they are about, as far as they are used."""
        self._there: NDArray[np.float64] = np.empty((expected, size))
        self._rounds_there: list[int] = []
        self._copier = None if jax.default_backend() == "cpu" else _copiers()
        self._on_their_way: list[Future[None]] = []

    def hand_over(self, least: int = 1) -> None:
        """Let the rows go to the host, if there are so many."""
        if len(self.rounds) < least:
            return
        first, count = len(self._rounds_there), len(self.rounds)
        if first + count > len(self._there):
            self._wait()
            self._there = np.concatenate([self._there, np.empty((first + count, self._there.shape[1]))])
        rows = _first(self.rows, min(-(-count // FEW) * FEW, self.most))
        self._rounds_there += self.rounds
        self.rounds = []
        if self._copier is None:
            self._copy(rows, first, count)
        else:
            self._on_their_way.append(self._copier.submit(self._copy, rows, first, count))

    def _copy(self, rows: Array, first: int, count: int) -> None:
        self._there[first : first + count] = np.asarray(rows)[:count]

    def _wait(self) -> None:
        for copied in self._on_their_way:
            copied.result()
        self._on_their_way.clear()

    def kept(self, sums: Sums, report: dict[str, Any]) -> Kept:
        """All of them, on the host, as arrays with the shapes and dtypes of these."""
        self.hand_over()
        self._wait()
        rows = self._there[: len(self._rounds_there)]
        values, structure = jax.tree.flatten((sums, report))
        ends = np.cumsum([0, *(np.size(value) for value in values)])
        columns = [
            rows[:, begin:end].reshape(len(rows), *np.shape(value)).astype(value.dtype, copy=False)
            for (begin, end), value in zip(pairwise(ends), values, strict=True)
        ]
        return Kept(self._rounds_there, *jax.tree.unflatten(structure, columns))


def in_a_row(sums: Sums, report: dict[str, Array]) -> Array:
    """What is recorded of a round, one number after another; to be compiled."""
    return jnp.concatenate([jnp.ravel(value).astype(jnp.float64) for value in jax.tree.leaves((sums, report))])
