"""Rounds that the user brings: arrays to replay, any iterable, rows drawn at random, windows of a series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm.errors import InputError
from longterm.streams.base import CHUNK, Block, ChunkedStream, Seeds, Stream

ITEMS_AT_A_TIME = 256


class Replay(Stream):
    """The rounds stand in arrays, one row a round: `loss` parameters, and `constraint` parameters if g varies.

    Every seed sees the same rounds. Where neither has parameters, `rounds` says how many there are.

    Parameters
    ----------
    loss : sequence of array_like
        The parameters of f_t, one array for each, one row a round.
    constraint : sequence of array_like
        Those of g_t, where g changes.
    rounds : int, optional
        How many rounds, where there are no arrays to tell.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.streams import Replay
    >>> Replay([np.array([[1.0, 0.0], [0.0, 1.0]])]).draw(seed=0, start=1, stop=2).loss
    (array([[0., 1.]]),)
    """

    def __init__(
        self, loss: Sequence[ArrayLike], constraint: Sequence[ArrayLike] = (), *, rounds: int | None = None
    ) -> None:
        arrays = tuple(np.asarray(a) for a in loss), tuple(np.asarray(a) for a in constraint)
        lengths = {len(a) if a.ndim else 0 for a in arrays[0] + arrays[1]}
        if rounds is not None:
            lengths.add(validate.count("rounds", rounds))
        if len(lengths) != 1 or lengths == {0}:
            raise InputError(
                "stream",
                "is empty" if lengths <= {0} else f"has arrays of {sorted(lengths)} rounds",
                "Give arrays with one row per round, all of the same length, at least one round",
            )
        self.length = lengths.pop()
        self._block = Block(*arrays, self.length)

    def draw(self, seed: int, start: int, stop: int) -> Block:
        return self._block.part(start, stop)


class FromIterable(Stream):
    """Rounds from any iterable; each item is the tuple of the loss parameters of one round.

    With `constraint_parameters=k`, the last k entries of an item are the parameters of g_t. Items are taken
    as the run needs them, once, and shown to every learner of a comparison and to every seed. A run that
    resumes continues with the next item; the latest block is kept, so that nothing a stopped run had
    taken and not played is lost. An item that does not fit is refused, and left out.

    Parameters
    ----------
    rounds : iterable of sequences of array_like
        The items.
    constraint_parameters : int
        How many entries at the end of an item belong to g_t.

    Examples
    --------
    >>> from longterm.streams import FromIterable
    >>> stream = FromIterable(([float(t), 0.0],) for t in range(3))
    >>> [block.loss[0].tolist() for block in stream.blocks(0, 0, 2)]
    [[[0.0, 0.0], [1.0, 0.0]]]
    """

    def __init__(self, rounds: Iterable[Sequence[ArrayLike]], *, constraint_parameters: int = 0) -> None:
        if isinstance(constraint_parameters, bool) or constraint_parameters not in range(100):
            what = f"{constraint_parameters!r} is not a number of parameters"
            raise InputError("constraint_parameters", what, "Give 0, or how many entries of an item belong to g_t")
        self._rounds: Iterator[Sequence[ArrayLike]] = iter(rounds)
        self._constraint_parameters = constraint_parameters
        self._shapes: list[tuple[int, ...]] | None = None
        self._taken = 0
        self._latest = Block((), (), 0)
        self._stopped_by: BaseException | None = None

    def draw(self, seed: int, start: int, stop: int) -> Block:
        raise InputError(
            "stream", "an iterable cannot be entered anywhere", "Use Replay for rounds that stand in arrays"
        )

    def blocks(self, seeds: Seeds, start: int, stop: int | None) -> Iterator[Block]:
        played_of_latest = start - (self._taken - self._latest.rounds)
        if not 0 <= played_of_latest <= self._latest.rounds:
            raise InputError(
                "stream",
                f"round {start + 1} was asked for, but the iterable stands before round {self._taken + 1}",
                "Pass resume= with the trace of the earlier run, or make the stream anew",
            )
        end = self._taken if stop is None else min(stop, self._taken)
        if start < end:
            yield self._latest.part(played_of_latest, played_of_latest + end - start)
        while stop is None or self._taken < stop:
            items = self._take(ITEMS_AT_A_TIME if stop is None else min(ITEMS_AT_A_TIME, stop - self._taken))
            if not items:
                return
            arrays = tuple(np.stack(column) for column in zip(*items, strict=True))
            split = len(arrays) - self._constraint_parameters
            self._latest = Block(arrays[:split], arrays[split:], len(items))
            self._taken += len(items)
            yield self._latest

    def _take(self, count: int) -> list[list[NDArray[Any]]]:
        """Up to `count` items. What stops the iterable is raised only after the items before it were played."""
        if self._stopped_by is not None:
            stopped_by, self._stopped_by = self._stopped_by, None
            raise stopped_by
        items: list[list[NDArray[Any]]] = []
        while len(items) < count:
            try:
                items.append(self._fitting(next(self._rounds), self._taken + len(items) + 1))
            except StopIteration:
                break
            except BaseException as error:
                if not items:
                    raise
                self._stopped_by = error
                break
        return items

    def _fitting(self, item: Sequence[ArrayLike], t: int) -> list[NDArray[Any]]:
        try:
            arrays = [np.asarray(value) for value in item]
        except (TypeError, ValueError) as error:
            raise self._misfit(f"is not a tuple of arrays ({error})", t) from None
        shapes = [array.shape for array in arrays]
        if self._shapes is None:
            self._shapes = shapes
        if shapes != self._shapes:
            raise self._misfit(f"has shapes {shapes}, those before had {self._shapes}", t)
        return arrays

    def _misfit(self, what: str, t: int) -> InputError:
        remedy = (
            "Yield for each round a tuple of the same parameters, in the same shapes; resume= goes on with the next"
        )
        return InputError("stream", f"the item {what}; it was left out", remedy, round=t)


class ResampledRows(ChunkedStream):
    """Round t shows row i_t of every array, i_t uniform. `drawn` tells the i_t: in hindsight they are weights.

    The arrays are the parameters of the loss, in its order: features and labels, or targets alone.

    Parameters
    ----------
    *arrays : array_like
        The parameters of the loss, in its order, one row per example.

    Examples
    --------
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
        self._rows = _number_of_rows(self.arrays)

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        return rng.integers(self._rows, size=CHUNK)

    def expand(self, drawn: NDArray[Any]) -> Block:
        return Block(tuple(array[drawn] for array in self.arrays))


class Windows(Stream):
    """Round t shows row (i + t) of every array, i drawn for the seed; after the last row comes the first.

    For real series that drift, seasons and all: rows in random order (`ResampledRows`) would lose that. The arrays are
    the parameters of the loss, in its order. Seed 0 starts at the first row.

    Parameters
    ----------
    *arrays : array_like
        The parameters of the loss, in its order, one row per moment.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.streams import Windows
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
