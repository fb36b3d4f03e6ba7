"""Uniformly random permutation matrices: the targets of the paper's first experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm.streams.base import CHUNK, Block, ChunkedStream


@dataclass(frozen=True)
class RandomPermutations(ChunkedStream):
    """size × size permutation matrices, flattened.

    >>> from longterm.streams import RandomPermutations
    >>> RandomPermutations(2).draw(seed=0, start=0, stop=3).loss[0]
    array([[0., 1., 1., 0.],
           [0., 1., 1., 0.],
           [1., 0., 0., 1.]])
    """

    size: int

    def __post_init__(self) -> None:
        validate.remember(self, size=validate.dimension("size", self.size))

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return np.argsort(rng.random((CHUNK, self.size)), axis=1)

    def expand(self, drawn: NDArray[Any]) -> Block:
        matrices = (drawn[:, :, None] == np.arange(self.size)).astype(np.float64)
        return Block((matrices.reshape(len(drawn), -1),))
