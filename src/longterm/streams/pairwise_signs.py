"""Correlations reported pair by pair: the targets of the covariance problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm.errors import InputError
from longterm.streams.base import CHUNK, Block, ChunkedStream


@dataclass(frozen=True)
class PairwiseSigns(ChunkedStream):
    """Symmetric size × size matrices of ±1 with ones on the diagonal, flattened; their mean is decay^|i−j|.

    In each round every pair reports whether the two moved together (+1) or apart (−1), each pair at a moment of its
    own. So the reports of a round do not fit together: unlike y yᵀ, their matrix has negative eigenvalues, down to
    about −2√n where the pairs are hardly correlated, and the mean of t of them still has some, down to about −2√(n/t).

    >>> from longterm.streams import PairwiseSigns
    >>> PairwiseSigns(3, decay=0.5).draw(seed=0, start=0, stop=1).loss[0].reshape(3, 3)
    array([[ 1., -1.,  1.],
           [-1.,  1.,  1.],
           [ 1.,  1.,  1.]])
    """

    size: int
    decay: float = 0.9

    def __post_init__(self) -> None:
        decay = validate.non_negative_scalar("decay", self.decay)
        if decay > 1:
            raise InputError("decay", f"{self.decay!r} is above 1", "Give the correlation of neighbours, in [0, 1]")
        validate.remember(self, size=validate.dimension("size", self.size), decay=decay)

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        first, second = np.triu_indices(self.size, k=1)
        together = 0.5 * (1 + self.decay ** (second - first))
        return rng.random((CHUNK, len(first))) < together

    def expand(self, drawn: NDArray[Any]) -> Block:
        first, second = np.triu_indices(self.size, k=1)
        matrices = np.ones((len(drawn), self.size, self.size))
        matrices[:, first, second] = matrices[:, second, first] = np.where(drawn, 1.0, -1.0)
        return Block((matrices.reshape(len(drawn), -1),))
