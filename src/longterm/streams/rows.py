"""Rows drawn at random, with replacement, from given arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm.errors import InputError
from longterm.streams.base import CHUNK, Block, ChunkedStream


class ResampledRows(ChunkedStream):
    """Round t shows row i_t of every array, i_t uniform. `drawn` tells the i_t: in hindsight they are weights.

    The arrays are the parameters of the loss, in its order: features and labels, or targets alone.

    >>> import numpy as np
    >>> from longterm.streams import ResampledRows
    >>> rows = ResampledRows(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]))
    >>> rows.drawn(seed=0, start=0, stop=4)
    array([1, 1, 0, 0])
    >>> rows.draw(seed=0, start=1, stop=3).loss
    (array([[0., 1.],
           [1., 0.]]), array([-1.,  1.]))
    """

    def __init__(self, *arrays: ArrayLike) -> None:
        self.arrays = tuple(np.asarray(array) for array in arrays)
        lengths = {len(array) if array.ndim else 0 for array in self.arrays}
        if len(lengths) != 1 or lengths == {0}:
            what = f"have {sorted(lengths)} rows"
            raise InputError("arrays", what, "Give arrays with one row per example, of the same length, not empty")
        self._rows = lengths.pop()

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return rng.integers(self._rows, size=CHUNK)

    def expand(self, drawn: NDArray[Any]) -> Block:
        return Block(tuple(array[drawn] for array in self.arrays))
