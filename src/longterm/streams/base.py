"""What a stream is, the parameters of f_1, f_2, … (and of g_1, g_2, …) in blocks; and given rounds as streams.

A block holds the parameters of consecutive rounds, the rounds on the leading axis. A stream can be
entered at any round and gives the same numbers there as in passing: draws are made in chunks of fixed
length, each chunk from its own child of the seed. So a split run sees what the whole run sees, ten
seeds run as a batch see what ten single runs see, and nothing is kept in memory.

The rounds that a user brings are arrays to replay, any iterable, rows drawn at random, windows of a series.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm._arrays import Array
from longterm._display import ReprMixin
from longterm.errors import InputError

Seeds = int | Sequence[int]
"""One seed for a single run, or a sequence of them for a batch of runs."""

BLOCK_BYTES = 16 * 2**20
"""About how much memory a block of parameters may take."""


class Block(NamedTuple):
    """Parameters of consecutive rounds: each array has shape (rounds, [seeds,] *shape of the parameter).

    Parameters
    ----------
    loss, constraint : tuple of array
        The parameters of f_t, and those of g_t where g changes.
    length : int, optional
        How many rounds, where there are no arrays to tell it.
    """

    loss: tuple[NDArray[Any], ...]
    constraint: tuple[NDArray[Any], ...] = ()
    length: int | None = None

    @property
    def rounds(self) -> int:
        """How many rounds the block holds."""
        arrays = self.loss + self.constraint
        return len(arrays[0]) if arrays else self.length or 0

    def part(self, start: int, stop: int) -> Block:
        """Rounds start (counted from 0) up to stop of this block."""
        loss, constraint = (tuple(a[start:stop] for a in arrays) for arrays in (self.loss, self.constraint))
        return Block(loss, constraint, min(stop, self.rounds) - start)


class Stream(ReprMixin, ABC):
    """A sequence of rounds, entered anywhere."""

    length: int | None = None
    """How many rounds there are; None: no end."""
    depends_on_seed: bool = True
    """Whether two seeds give different rounds."""

    @abstractmethod
    def draw(self, seed: int, start: int, stop: int) -> Block:
        """The rounds start + 1 … stop (counted from 1), for one seed."""

    def blocks(self, seeds: Seeds, start: int, stop: int | None) -> Iterator[Block]:
        """The rounds start + 1 … stop in blocks that fit in memory; `stop` None: to the end of the stream."""
        seeds = checked_seeds(seeds)
        if stop is None and self.length is None:
            raise InputError("rounds", "this stream has no end", "Say how many rounds to play")
        last = min(end for end in (stop, self.length) if end is not None)
        if start >= last:
            return
        one_round = _batch([self.draw(seed, start, start + 1) for seed in _as_list(seeds)], seeds)
        size = sum(a.nbytes for a in one_round.loss + one_round.constraint)
        step = max(1, min(BLOCK_BYTES // max(size, 1), 4096))
        for first in range(start, last, step):
            end = min(first + step, last)
            yield _batch([self.draw(seed, first, end) for seed in _as_list(seeds)], seeds)


CHUNK = 64
"""Rounds drawn from one child of the seed. Changing it changes every random stream."""


class ChunkedStream(Stream):
    """A random stream, drawn chunk by chunk.

    One that is made of uniform numbers alone says so (`uniforms_per_round`), and is written for arrays of any library:
    then a compiled engine draws the same numbers itself, on its device (`streams.generator`).
    """

    uniforms_per_round: int | None = None
    """How many numbers, uniform in [0, 1), a round is made of; None: it is made of something else."""

    def draw_chunk(self, rng: np.random.Generator) -> NDArray[Any]:
        """The random numbers of CHUNK rounds, rounds on the leading axis, as compact as can be."""
        return np.asarray(self.compact(rng.random((CHUNK, self.uniforms_per_round or 0))))

    def compact(self, uniforms: Array) -> Array:
        """What is kept of uniform numbers, shape (..., uniforms_per_round)."""
        return uniforms

    @abstractmethod
    def expand(self, drawn: Array) -> Block:
        """The parameters that these random numbers stand for."""

    def drawn(self, seed: int, start: int, stop: int) -> NDArray[Any]:
        """The random numbers of the rounds start + 1 … stop."""
        first, last = start // CHUNK, -(-stop // CHUNK)
        children = (np.random.SeedSequence(seed, spawn_key=(chunk,)) for chunk in range(first, last))
        drawn = np.concatenate([self.draw_chunk(np.random.default_rng(child)) for child in children])
        return drawn[start - first * CHUNK : stop - first * CHUNK]

    def draw(self, seed: int, start: int, stop: int) -> Block:
        return self.expand(self.drawn(seed, start, stop))


def checked_seeds(seeds: Seeds) -> int | tuple[int, ...]:
    """The seeds as whole numbers: one, or a tuple of them."""
    given = np.asarray(seeds)
    if given.dtype.kind not in "iu" or given.ndim > 1 or given.size == 0 or given.min() < 0:
        raise InputError("seeds", f"{seeds!r} is not a seed or a list of seeds", "Give 0, or range(10), for example")
    return int(given) if given.ndim == 0 else tuple(int(seed) for seed in given)


def _as_list(seeds: Seeds) -> Sequence[int]:
    return [seeds] if isinstance(seeds, int) else seeds


def _batch(blocks: list[Block], seeds: Seeds) -> Block:
    """One block per seed → one block with a seed axis behind the rounds (none for a single seed)."""
    if isinstance(seeds, int):
        return blocks[0]
    loss = tuple(np.stack(arrays, axis=1) for arrays in zip(*(b.loss for b in blocks), strict=True))
    constraint = tuple(np.stack(arrays, axis=1) for arrays in zip(*(b.constraint for b in blocks), strict=True))
    return Block(loss, constraint, blocks[0].rounds)


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

    depends_on_seed = False

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

    depends_on_seed = False

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
