"""Targets that scatter about fixed means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.streams.base import CHUNK, Block, ChunkedStream


@dataclass(frozen=True, eq=False)
class NoisyTargets(ChunkedStream):
    """Every coordinate of a target is its mean plus noise, uniform in [−spread, spread].

    >>> import numpy as np
    >>> from longterm.streams import NoisyTargets
    >>> NoisyTargets(np.array([0.5, -0.5]), spread=0.1).draw(seed=0, start=0, stop=2).loss[0].round(3)
    array([[ 0.589, -0.537],
           [ 0.544, -0.575]])
    """

    means: FloatArray
    spread: float

    def __post_init__(self) -> None:
        validate.remember(
            self,
            means=validate.vector("means", self.means),
            spread=validate.non_negative_scalar("spread", self.spread),
        )

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return rng.uniform(-1.0, 1.0, (CHUNK, len(self.means)))

    def expand(self, drawn: NDArray[Any]) -> Block:
        return Block((self.means + self.spread * drawn,))
