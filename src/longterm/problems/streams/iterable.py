"""Streams of rounds from an iterable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm.errors import InputError
from longterm.problems.streams.base import Block, Seeds, Stream

ITEMS_PER_BLOCK = 256


class FromIterable(Stream):
    """Play rounds as they arrive from an iterable, a generator or a queue for example.

    Each item is a tuple of loss parameters. Items are consumed once, as the run needs them. All learners of a
    comparison and all seeds see the same items. The latest block is kept, so that a resumed run continues with the next
    unused item. An item with other shapes raises InputError and is skipped.

    Parameters
    ----------
    rounds : iterable of sequences of array_like
        The items, one tuple of parameters for each round.
    constraint_parameters : int
        The number of entries at the end of an item that are parameters of the constraint.

    Examples
    --------
    >>> from longterm.problems.streams import FromIterable
    >>> stream = FromIterable(([float(t), 0.0],) for t in range(3))
    >>> [block.loss[0].tolist() for block in stream.blocks(0, 0, 2)]
    [[[0.0, 0.0], [1.0, 0.0]]]
    """

    depends_on_seed = False

    def __init__(self, rounds: Iterable[Sequence[ArrayLike]], *, constraint_parameters: int = 0) -> None:
        if isinstance(constraint_parameters, bool) or constraint_parameters not in range(100):
            what = f"{constraint_parameters!r} is not a number of parameters"
            raise InputError("constraint_parameters", what, "Give the number of an item's entries that belong to g_t")
        self._rounds: Iterator[Sequence[ArrayLike]] = iter(rounds)
        self._constraint_parameters = constraint_parameters
        self._shapes: list[tuple[int, ...]] | None = None
        self._taken = 0
        self._latest = Block((), (), 0)
        self._stopped_by: BaseException | None = None

    def draw(self, seed: int, start: int, stop: int) -> Block:
        what = "an iterable cannot start at an arbitrary round"
        raise InputError("stream", what, "Use Replay for rounds given as arrays")

    def blocks(self, seeds: Seeds, start: int, stop: int | None) -> Iterator[Block]:
        played_of_latest = start - (self._taken - self._latest.rounds)
        if not 0 <= played_of_latest <= self._latest.rounds:
            what = f"round {start + 1} was requested, but the iterable is at round {self._taken + 1}"
            raise InputError("stream", what, "Pass resume= with the trace of the earlier run, or create a new stream")
        end = self._taken if stop is None else min(stop, self._taken)
        if start < end:
            yield self._latest.part(played_of_latest, played_of_latest + end - start)
        while stop is None or self._taken < stop:
            items = self._take(ITEMS_PER_BLOCK if stop is None else min(ITEMS_PER_BLOCK, stop - self._taken))
            if not items:
                return
            arrays = tuple(np.stack(column) for column in zip(*items, strict=True))
            split = len(arrays) - self._constraint_parameters
            self._latest = Block(arrays[:split], arrays[split:], len(items))
            self._taken += len(items)
            yield self._latest

    def _take(self, count: int) -> list[list[NDArray[Any]]]:
        """Return up to `count` items. An exception of the iterable is raised after the items before it were used."""
        if self._stopped_by is not None:
            stopped_by, self._stopped_by = self._stopped_by, None
            raise stopped_by
        items: list[list[NDArray[Any]]] = []
        while len(items) < count:
            try:
                items.append(self._to_arrays(next(self._rounds), self._taken + len(items) + 1))
            except StopIteration:
                break
            except BaseException as error:
                if not items:
                    raise
                self._stopped_by = error
                break
        return items

    def _to_arrays(self, item: Sequence[ArrayLike], t: int) -> list[NDArray[Any]]:
        try:
            arrays = [np.asarray(value) for value in item]
        except (TypeError, ValueError) as error:
            raise _invalid_item(f"is not a tuple of arrays ({error})", t) from None
        shapes = [array.shape for array in arrays]
        if self._shapes is None:
            self._shapes = shapes
        if shapes != self._shapes:
            raise _invalid_item(f"has shapes {shapes}, those before had {self._shapes}", t)
        return arrays


def _invalid_item(what: str, t: int) -> InputError:
    remedy = (
        "Yield for each round a tuple of the same parameters, in the same shapes. A run with resume= starts at the next"
    )
    return InputError("stream", f"the item {what}, so it was left out", remedy, round=t)
