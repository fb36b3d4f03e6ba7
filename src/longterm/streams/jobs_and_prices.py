"""Jobs that arrive at random, and electricity prices of zones that go up and down with the day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.streams.base import CHUNK, Block, ChunkedStream

DAY = 48
"""Rounds in a day: half hours."""


@dataclass(frozen=True, eq=False)
class JobsAndPrices(ChunkedStream):
    """Prices of n servers in `zones` zones, and g_t(x) = ω_t − ⟨h, x⟩ with ω_t binomial, B(n, ½); h are the `speeds`.

    The price of a zone is 0.5 + 0.3 sin(2π t/48 + phase of the zone) + noise, uniform in ±0.2; phases are drawn once
    for the seed. Server i is in zone i modulo `zones`.

    >>> from longterm.streams import JobsAndPrices
    >>> block = JobsAndPrices([0.5, 1.5], zones=2).draw(seed=0, start=0, stop=3)
    >>> block.constraint[0][0], block.constraint[1][:, 0]
    (array([[-0.5, -1.5]]), array([-2., -1., -1.]))
    """

    speeds: FloatArray
    zones: int = 3

    def __post_init__(self) -> None:
        speeds = validate.vector("speeds", validate.positive("speeds", self.speeds))
        validate.remember(self, speeds=speeds, zones=validate.dimension("zones", self.zones))

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        n = len(self.speeds)
        return np.column_stack([rng.binomial(n, 0.5, CHUNK), rng.uniform(-0.2, 0.2, (CHUNK, self.zones))])

    def expand(self, drawn: NDArray[Any]) -> Block:
        """With noise for prices."""
        rows = np.broadcast_to(-self.speeds, (len(drawn), 1, len(self.speeds)))
        zone = np.arange(len(self.speeds)) % self.zones
        return Block((drawn[:, 1 + zone],), (rows, -drawn[:, :1]))

    def draw(self, seed: int, start: int, stop: int) -> Block:
        block = super().draw(seed, start, stop)
        phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, self.zones)
        angle = 2 * np.pi * np.arange(start + 1, stop + 1)[:, None] / DAY
        zone = np.arange(len(self.speeds)) % self.zones
        return Block((0.5 + 0.3 * np.sin(angle + phases[zone]) + block.loss[0],), block.constraint)
