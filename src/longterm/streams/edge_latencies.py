"""Latencies of a network's edges: each has its own level, and jams that come and go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.streams.base import CHUNK, Block, ChunkedStream

JAMMED = 0.3
"""The share of the time that an edge is jammed."""


@dataclass(frozen=True, eq=False)
class EdgeLatencies(ChunkedStream):
    """The latency of an edge is its level, 0.4 more while it is jammed, and noise; a round's costs are those of paths.

    Levels are uniform in [0.1, 0.5], drawn once for the seed; jams last for 64 rounds; noise is uniform in [0, 0.1].
    So every latency is in [0, 1]. `incidence` (edges, paths) says which edges a path uses: latencies add up.

    >>> import numpy as np
    >>> from longterm.streams import EdgeLatencies
    >>> EdgeLatencies(np.array([[1.0, 0.0], [1.0, 1.0]])).draw(seed=0, start=0, stop=2).loss[0].round(2)
    array([[0.65, 0.22],
           [0.67, 0.27]])
    """

    incidence: FloatArray

    def __post_init__(self) -> None:
        validate.remember(self, incidence=validate.matrix("incidence", self.incidence))

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        edges = len(self.incidence)
        return 0.4 * (rng.random(edges) < JAMMED) + 0.1 * rng.random((CHUNK, edges))

    def expand(self, drawn: NDArray[Any]) -> Block:
        """Without the levels."""
        return Block((drawn @ self.incidence,))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        levels = np.random.default_rng(seed).uniform(0.1, 0.5, len(self.incidence))
        return Block((super().draw(seed, start, stop).loss[0] + levels @ self.incidence,))
