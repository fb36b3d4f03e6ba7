"""The costs of Yu and Neely's online linear program: noise that grows, a level that changes sign, shuffled signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm.streams.base import CHUNK, Block, ChunkedStream


@dataclass(frozen=True)
class DriftingCosts(ChunkedStream):
    """c_t = c¹_t + c²_t + c³_t in each coordinate, for T = `rounds` rounds.

    - c¹_t uniform in ±t^0.1.
    - c²_t uniform in [−1, 0] for t ≤ 0.3T, 0.4T ≤ t ≤ 0.7T and t ≥ 0.8T, in [0, 1] in between (at T = 5000 these are
      the paper's 1–1500, 2000–3500 and 4000–5000).
    - c³_t = (−1)^π(t) for a random permutation π of 1 … T: as many of either sign. Here it is the same in every
      coordinate.

    No coordinate is above T^0.1 + 2 in size. H. Yu, M. J. Neely, *A low complexity algorithm with O(√T) regret and
    O(1) constraint violations for online convex optimization with long term constraints*, JMLR 21 (2020).

    >>> from longterm.streams import DriftingCosts
    >>> DriftingCosts(2, rounds=10).draw(seed=0, start=0, stop=2).loss[0].round(2)
    array([[-0.39, -2.24],
           [-2.11, -0.86]])
    """

    dimension: int
    rounds: int

    def __post_init__(self) -> None:
        rounds = validate.count("rounds", self.rounds)
        validate.remember(self, dimension=validate.dimension("dimension", self.dimension), rounds=rounds, length=rounds)

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return rng.random((CHUNK, 2, self.dimension))

    def expand(self, drawn: NDArray[Any]) -> Block:
        """The first two parts at t = 1: each draw with its sign, in [−1, 1] and in [−1, 0]."""
        return Block((2 * drawn[:, 0] - 1, drawn[:, 1] - 1))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        stop = min(stop, self.rounds)
        t = np.arange(start + 1, stop + 1)[:, None]
        noise, level = super().draw(seed, start, stop).loss
        share = t / self.rounds
        below = (share <= 0.3) | ((share >= 0.4) & (share <= 0.7)) | (share >= 0.8)
        order = np.random.default_rng(seed).permutation(self.rounds)
        signs = np.where(order % 2 == 0, -1.0, 1.0)[start:stop, None]
        return Block((t**0.1 * noise + np.where(below, level, 1 + level) + signs,))
