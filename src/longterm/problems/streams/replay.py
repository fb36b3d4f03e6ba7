"""Streams of rounds that are given as arrays: in order, resampled, or in windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base import validate
from longterm.errors import InputError
from longterm.problems.streams.base import CHUNK, Block, ChunkedStream, Stream


class Replay(Stream):
    """Play rounds that are given as arrays, with one row for each round.

    Every seed sees the same rounds.

    Parameters
    ----------
    loss : sequence of array_like
        The parameters of the losses, one array for each.
    constraint : sequence of array_like
        The parameters of the constraints, if they change.
    rounds : int, optional
        The number of rounds, needed only if there are no arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.streams import Replay
    >>> Replay([np.array([[1.0, 0.0], [0.0, 1.0]])]).draw(seed=0, start=1, stop=2).loss
    (array([[0., 1.]]),)
    """

    depends_on_seed = False

    def __init__(
        self, loss: Sequence[ArrayLike], constraint: Sequence[ArrayLike] = (), *, rounds: int | None = None
    ) -> None:
        arrays = tuple(np.asarray(a) for a in loss), tuple(np.asarray(a) for a in constraint)
        if any(a.ndim == 0 for a in arrays[0] + arrays[1]):
            what = "has a number in place of an array"
            raise InputError("stream", what, "Give lists of arrays with one row per round: Replay([losses], [limits])")
        lengths = {len(a) for a in arrays[0] + arrays[1]}
        if rounds is not None:
            lengths.add(validate.count("rounds", rounds))
        if len(lengths) != 1 or lengths == {0}:
            what = "is empty" if lengths <= {0} else f"has arrays of {sorted(lengths)} rounds"
            remedy = "Give arrays with one row per round, all of the same length, at least one round"
            raise InputError("stream", what, remedy)
        self.length = lengths.pop()
        self._block = Block(*arrays, self.length)

    def draw(self, seed: int, start: int, stop: int) -> Block:
        return self._block.part(start, stop)


class ResampledRows(ChunkedStream):
    """Draw the rows of a data set at random, with replacement.

    Round t has row i_t of every array, with i_t uniform. `drawn` returns the i_t.

    Parameters
    ----------
    *arrays : array_like
        The parameters of the loss, in its order, with one row per example.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.streams import ResampledRows
    >>> rows = ResampledRows(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]))
    >>> rows.drawn(seed=0, start=0, stop=4)
    array([1, 1, 0, 0])
    >>> rows.draw(seed=0, start=1, stop=3).loss
    (array([[0., 1.],
           [1., 0.]]), array([-1.,  1.]))
    """

    def __init__(self, *arrays: ArrayLike) -> None:
        self.arrays = tuple(np.asarray(array) for array in arrays)
        self._rows = _number_of_rows(self.arrays)

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return rng.integers(self._rows, size=CHUNK)

    def expand(self, drawn: NDArray[Any]) -> Block:
        return Block(tuple(array[drawn] for array in self.arrays))


class Windows(Stream):
    """Replay a real series in its order, from a start that the seed chooses.

    Round t has row i + t of every array, cyclically, with i drawn from the seed. Seed 0 starts at the first row.

    Parameters
    ----------
    *arrays : array_like
        The parameters of the loss, in its order, with one row per time step.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.streams import Windows
    >>> series = Windows(np.array([10.0, 20.0, 30.0, 40.0]))
    >>> series.draw(seed=0, start=1, stop=5).loss, series.draw(seed=1, start=0, stop=3).loss
    ((array([20., 30., 40., 10.]),), (array([20., 30., 40.]),))
    """

    def __init__(self, *arrays: ArrayLike) -> None:
        self.arrays = tuple(np.asarray(array) for array in arrays)
        self._rows = _number_of_rows(self.arrays)

    def draw(self, seed: int, start: int, stop: int) -> Block:
        first = 0 if seed == 0 else int(np.random.default_rng(seed).integers(self._rows))
        rows = (first + np.arange(start, stop)) % self._rows
        return Block(tuple(array[rows] for array in self.arrays))


def _number_of_rows(arrays: Sequence[NDArray[Any]]) -> int:
    lengths = {len(array) if array.ndim else 0 for array in arrays}
    if len(lengths) != 1 or lengths == {0}:
        what = f"have {sorted(lengths)} rows"
        raise InputError("arrays", what, "Give arrays with one row per round, of the same length, not empty")
    return lengths.pop()
