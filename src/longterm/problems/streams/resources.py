"""Costs of resources: a linear program, the edges of a network, servers with jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.problems.streams.base import CHUNK, Block, ChunkedStream


@dataclass(frozen=True)
class DriftingCosts(ChunkedStream):
    """The costs c_t = c¹_t + c²_t + c³_t of Yu and Neely in each coordinate, for T = `rounds` rounds.

    - c¹_t is uniform in ±t^0.1.
    - c²_t is uniform in [−1, 0] for t ≤ 0.3T, 0.4T ≤ t ≤ 0.7T and t ≥ 0.8T, and in [0, 1] otherwise.
    - c³_t = (−1)^π(t) for a random permutation π of 1 … T, the same in every coordinate.

    Coordinates are at most T^0.1 + 2 in absolute value. H. Yu, M. J. Neely, *A low complexity algorithm with O(√T)
    regret and O(1) constraint violations for online convex optimization with long term constraints*, JMLR 21 (2020).

    Parameters
    ----------
    dimension, rounds : int
        d and T.

    Examples
    --------
    >>> from longterm.problems.streams.resources import DriftingCosts
    >>> DriftingCosts(2, rounds=10).draw(seed=0, start=0, stop=2).loss[0].round(2)
    array([[-0.39, -2.24],
           [-2.11, -0.86]])
    """

    dimension: int
    rounds: int

    def __post_init__(self) -> None:
        rounds = validate.count("rounds", self.rounds)
        validate.set_frozen(
            self, dimension=validate.dimension("dimension", self.dimension), rounds=rounds, length=rounds
        )

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return rng.random((CHUNK, 2, self.dimension))

    def expand(self, drawn: NDArray[Any]) -> Block:
        """Return the first two parts at t = 1, in [−1, 1] and in [−1, 0]."""
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


JAM_PROBABILITY = 0.3
"""The probability that an edge is congested in a chunk."""


@dataclass(frozen=True, eq=False, init=False)
class EdgeLatencies(ChunkedStream):
    """Latencies of the paths of a network. The latency of an edge is a level, plus 0.4 while congested, plus noise.

    Levels are uniform in [0.1, 0.5] and drawn once per seed. Congestion lasts for 64 rounds. Noise is uniform in
    [0, 0.1]. Latencies are therefore in [0, 1], and add up along a path.

    Parameters
    ----------
    incidence : array_like
        A matrix that is 1 where a path (column) uses an edge (row).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.streams.resources import EdgeLatencies
    >>> EdgeLatencies(np.array([[1.0, 0.0], [1.0, 1.0]])).draw(seed=0, start=0, stop=2).loss[0].round(2)
    array([[0.65, 0.22],
           [0.67, 0.27]])
    """

    incidence: FloatArray

    def __init__(self, incidence: ArrayLike) -> None:
        validate.set_frozen(self, incidence=validate.matrix("incidence", incidence))

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        edges = len(self.incidence)
        return 0.4 * (rng.random(edges) < JAM_PROBABILITY) + 0.1 * rng.random((CHUNK, edges))

    def expand(self, drawn: NDArray[Any]) -> Block:
        """Return the costs without the levels."""
        # Not a matrix product, whose rounding may depend on the neighbouring rounds.
        return Block(((drawn[..., None] * self.incidence).sum(axis=-2),))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        levels = np.random.default_rng(seed).uniform(0.1, 0.5, len(self.incidence))
        return Block((super().draw(seed, start, stop).loss[0] + levels @ self.incidence,))


DAY = 48
"""The number of rounds in a day, of half an hour each."""


@dataclass(frozen=True, eq=False, init=False)
class JobsAndPrices(ChunkedStream):
    """Prices of n servers in `zones` zones, and g_t(x) = ω_t − ⟨h, x⟩ with ω_t binomial, B(n, ½).

    The price of a zone is 0.5 + 0.3 sin(2π t/48 + phase) + noise, uniform in ±0.2. The phases are drawn once per seed.
    Server i is in zone i modulo `zones`.

    Parameters
    ----------
    speeds : array_like
        h, the jobs that a server completes per round.
    zones : int
        The number of zones.

    Examples
    --------
    >>> from longterm.problems.streams.resources import JobsAndPrices
    >>> block = JobsAndPrices([0.5, 1.5], zones=2).draw(seed=0, start=0, stop=3)
    >>> block.constraint[0][0], block.constraint[1][:, 0]
    (array([[-0.5, -1.5]]), array([-2., -1., -1.]))
    """

    speeds: FloatArray
    zones: int = 3

    def __init__(self, speeds: ArrayLike, zones: int = 3) -> None:
        h = validate.vector("speeds", validate.positive("speeds", speeds))
        validate.set_frozen(self, speeds=h, zones=validate.dimension("zones", zones))

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        n = len(self.speeds)
        return np.column_stack([rng.binomial(n, 0.5, CHUNK), rng.uniform(-0.2, 0.2, (CHUNK, self.zones))])

    def expand(self, drawn: NDArray[Any]) -> Block:
        """Return the arrivals, and the noise of the prices."""
        rows = np.broadcast_to(-self.speeds, (len(drawn), 1, len(self.speeds)))
        zone = np.arange(len(self.speeds)) % self.zones
        return Block((drawn[:, 1 + zone],), (rows, -drawn[:, :1]))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        block = super().draw(seed, start, stop)
        phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, self.zones)
        angle = 2 * np.pi * np.arange(start + 1, stop + 1)[:, None] / DAY
        zone = np.arange(len(self.speeds)) % self.zones
        return Block((0.5 + 0.3 * np.sin(angle + phases[zone]) + block.loss[0],), block.constraint)
