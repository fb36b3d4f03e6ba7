"""A recorded series, in order, from a start that the seed chooses."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm.errors import InputError
from longterm.streams.base import Block, Stream


class Windows(Stream):
    """Round t shows row (i + t) of every array, i drawn for the seed; after the last row comes the first.

    For real series that drift, seasons and all: rows in random order (`ResampledRows`) would lose that. The arrays are
    the parameters of the loss, in its order. Seed 0 starts at the first row.

    >>> import numpy as np
    >>> from longterm.streams import Windows
    >>> series = Windows(np.array([10.0, 20.0, 30.0, 40.0]))
    >>> series.draw(seed=0, start=1, stop=5).loss, series.draw(seed=1, start=0, stop=3).loss
    ((array([20., 30., 40., 10.]),), (array([20., 30., 40.]),))
    """

    def __init__(self, *arrays: ArrayLike) -> None:
        self.arrays = tuple(np.asarray(array) for array in arrays)
        lengths = {len(array) if array.ndim else 0 for array in self.arrays}
        if len(lengths) != 1 or lengths == {0}:
            what = f"have {sorted(lengths)} rows"
            raise InputError("arrays", what, "Give arrays with one row per moment, of the same length, not empty")
        self._rows = lengths.pop()

    def draw(self, seed: int, start: int, stop: int) -> Block:
        first = 0 if seed == 0 else int(np.random.default_rng(seed).integers(self._rows))
        rows = (first + np.arange(start, stop)) % self._rows
        return Block(tuple(array[rows] for array in self.arrays))
