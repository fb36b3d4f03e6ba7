"""Rows drawn at random, with replacement, from given arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm.errors import InputError
from longterm.streams.base import CHUNK, Block, ChunkedStream


@dataclass(frozen=True, eq=False)
class ResampledRows(ChunkedStream):
    """Round t shows row i_t of every array, i_t uniform. `drawn` tells the i_t: in hindsight they are weights.

    >>> import numpy as np
    >>> from longterm.streams import ResampledRows
    >>> rows = ResampledRows(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]))
    >>> rows.drawn(seed=0, start=0, stop=4)
    array([1, 1, 0, 0])
    >>> rows.draw(seed=0, start=1, stop=3).loss
    (array([[0., 1.],
           [1., 0.]]), array([-1.,  1.]))
    """

    features: NDArray[Any]
    labels: NDArray[Any]

    def __post_init__(self) -> None:
        if len(self.features) == 0 or len(self.features) != len(self.labels):
            raise InputError(
                "features",
                f"has {len(self.features)} rows and labels has {len(self.labels)}",
                "Give one label for each row, and at least one row",
            )

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return rng.integers(len(self.features), size=CHUNK)

    def expand(self, drawn: NDArray[Any]) -> Block:
        return Block((self.features[drawn], self.labels[drawn]))
