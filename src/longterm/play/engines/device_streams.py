"""Random streams drawn on the device that runs the rounds.

Only the compact random numbers of a stream are drawn. The compiled loop expands them in the round that uses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from longterm._base.arrays import Array
from longterm.problems.streams import Stream
from longterm.problems.streams.base import BLOCK_BYTES, CHUNK, ChunkedStream, Seeds
from longterm.problems.streams.generator import LARGEST_SEED, POOL, seed_words, uniforms

MAX_BLOCK_ROUNDS = 4096


class DrawnBlock(NamedTuple):
    """The random numbers of whole chunks of rounds, on the device; only the first `rounds` rounds are used."""

    drawn: Array
    stream: ChunkedStream
    rounds: int


def can_draw(stream: Stream, seeds: Seeds) -> bool:
    """Return whether JAX uses an accelerator that can draw this stream."""
    largest = seeds if isinstance(seeds, int) else max(seeds)
    made_of_uniforms = isinstance(stream, ChunkedStream) and stream.uniforms_per_round is not None
    return made_of_uniforms and largest <= LARGEST_SEED and jax.default_backend() != "cpu"


def drawn_blocks(stream: ChunkedStream, seeds: Seeds, start: int, stop: int) -> Iterator[tuple[int, DrawnBlock]]:
    """Yield the rounds start + 1 … stop in blocks of whole chunks, each with the number of its first round."""
    single = isinstance(seeds, int)
    listed = [seeds] if isinstance(seeds, int) else list(seeds)
    with jax.enable_x64(True):
        words, draw = jnp.asarray(seed_words(listed)), _compile_draw(stream, single)
        at_once = BLOCK_BYTES // max(_bytes_per_chunk(stream, single, len(listed)), 1)
    chunks = min(max(at_once, 1), MAX_BLOCK_ROUNDS // CHUNK, -(-stop // CHUNK) - start // CHUNK)
    for first in range(start // CHUNK, -(-stop // CHUNK), chunks):
        with jax.enable_x64(True):
            drawn = draw(words, np.arange(first, first + chunks, dtype=np.uint32))
        yield first * CHUNK + 1, DrawnBlock(drawn, stream, min(chunks * CHUNK, stop - first * CHUNK))


@lru_cache(maxsize=16)
def _compile_draw(stream: ChunkedStream, single: bool) -> Any:
    """Return a compiled function from (seed words, chunks) to compact random numbers, rounds first, then seeds."""
    count: int = stream.uniforms_per_round  # type: ignore[assignment]

    def draw(words: Array, chunks: Array) -> Array:
        numbers = uniforms(words, chunks, CHUNK * count, jnp)
        by_round = jnp.reshape(numbers, (len(chunks), len(words), CHUNK, count)).swapaxes(1, 2)
        compact = stream.compact(jnp.reshape(by_round, (len(chunks) * CHUNK, len(words), count)))
        compact = compact[:, 0] if single else compact
        return compact.astype(jnp.int32) if jnp.issubdtype(compact.dtype, jnp.integer) else compact

    return jax.jit(draw)


@lru_cache(maxsize=16)
def _bytes_per_chunk(stream: ChunkedStream, single: bool, seeds: int) -> int:
    draw = _compile_draw(stream, single)
    one = jax.eval_shape(draw, jnp.zeros((seeds, POOL), jnp.uint32), jnp.zeros(1, jnp.uint32))
    return int(one.size * one.dtype.itemsize)
