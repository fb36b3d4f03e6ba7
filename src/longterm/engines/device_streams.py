"""Rounds that are drawn on the device that plays them: compact random numbers, expanded where they are used."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from longterm._arrays import Array
from longterm.streams import Stream
from longterm.streams.base import BLOCK_BYTES, CHUNK, ChunkedStream, Seeds
from longterm.streams.generator import LARGEST_SEED, seed_words, uniforms


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
    listed = [seeds] if isinstance(seeds, int) else list(seeds)
    with jax.enable_x64(True):
        words = jnp.asarray(seed_words(listed))
        draw = _draw(stream, isinstance(seeds, int))
        one = jax.eval_shape(draw, words, jnp.zeros(1, dtype=jnp.uint32))
        per_chunk = one.size * one.dtype.itemsize
        chunks = min(max(BLOCK_BYTES // max(per_chunk, 1), 1), 4096 // CHUNK, -(-stop // CHUNK) - start // CHUNK)
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
