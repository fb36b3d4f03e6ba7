"""Rounds that the user brings: arrays to replay, or any iterable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from longterm.errors import InputError
from longterm.streams.base import Block, Seeds, Stream

ITEMS_AT_A_TIME = 256


class Replay(Stream):
    """The rounds stand in arrays, one row a round: `loss` parameters, and `constraint` parameters if g varies.

    Every seed sees the same rounds.

    >>> import numpy as np
    >>> from longterm.streams import Replay
    >>> Replay([np.array([[1.0, 0.0], [0.0, 1.0]])]).draw(seed=0, start=1, stop=2).loss
    (array([[0., 1.]]),)
    """

    def __init__(self, loss: Sequence[ArrayLike], constraint: Sequence[ArrayLike] = ()) -> None:
        self.block = Block(tuple(np.asarray(a) for a in loss), tuple(np.asarray(a) for a in constraint))
        lengths = {len(a) if a.ndim else 0 for a in self.block.loss + self.block.constraint}
        if len(lengths) != 1 or lengths == {0}:
            raise InputError(
                "stream",
                "is empty" if lengths <= {0} else f"has arrays of {sorted(lengths)} rounds",
                "Give arrays with one row per round, all of the same length, at least one round",
            )
        self.length = lengths.pop()

    def draw(self, seed: int, start: int, stop: int) -> Block:
        return self.block.part(start, stop)


class FromIterable(Stream):
    """Rounds from any iterable; each item is the tuple of the loss parameters of one round.

    With `constraint_parameters=k`, the last k entries of an item are the parameters of g_t. Items are taken
    as the run needs them, once, and shown to every learner of a comparison and to every seed. A run that
    resumes continues with the next item; the latest block is kept, so that nothing a stopped run had
    taken and not played is lost.

    >>> from longterm.streams import FromIterable
    >>> stream = FromIterable(([float(t), 0.0],) for t in range(3))
    >>> [block.loss[0].tolist() for block in stream.blocks(0, 0, 2)]
    [[[0.0, 0.0], [1.0, 0.0]]]
    """

    def __init__(self, rounds: Iterable[Sequence[ArrayLike]], *, constraint_parameters: int = 0) -> None:
        self._rounds: Iterator[Sequence[ArrayLike]] = iter(rounds)
        self._constraint_parameters = constraint_parameters
        self._taken = 0
        self._latest = Block(())

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
        if played_of_latest < self._latest.rounds:
            yield self._latest.part(
                played_of_latest, self._latest.rounds if stop is None else stop - start + played_of_latest
            )
        while stop is None or self._taken < stop:
            items = list(
                islice(self._rounds, ITEMS_AT_A_TIME if stop is None else min(ITEMS_AT_A_TIME, stop - self._taken))
            )
            if not items:
                return
            self._latest = self._block(items)
            self._taken += len(items)
            yield self._latest

    def _block(self, items: list[Sequence[ArrayLike]]) -> Block:
        try:
            arrays = tuple(np.stack([np.asarray(value) for value in values]) for values in zip(*items, strict=True))
        except (TypeError, ValueError) as error:
            raise InputError(
                "stream",
                f"the items of rounds {self._taken + 1} to {self._taken + len(items)} do not fit together ({error})",
                "Yield for each round a tuple of the same parameters, in the same shapes",
            ) from None
        split = len(arrays) - self._constraint_parameters
        return Block(arrays[:split], arrays[split:])
