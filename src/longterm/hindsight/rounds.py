"""What every comparator does besides solving: read the rounds of a seed, and put solutions of all of them in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.errors import StreamEndedError
from longterm.hindsight.base import Hindsight, increasing_rounds
from longterm.streams import Block, Seeds, Stream
from longterm.streams.base import checked_seeds


class Solution(NamedTuple):
    """The best decision of one seed after some rounds, its loss and the certified gap."""

    x: FloatArray
    loss: float
    gap: float


def best_of_each(
    solve: Callable[[Block], Solution], stream: Stream, rounds: Sequence[int] | NDArray[np.int64], seeds: Seeds
) -> Hindsight:
    """`solve` for the first t rounds of the stream, for each t in `rounds` (increasing) and each seed."""
    wanted, played = increasing_rounds(rounds), checked_seeds(seeds)
    found = []
    for seed in [played] if isinstance(played, int) else played:
        every = rounds_of(stream, seed, int(wanted[-1]))
        found.append([solve(every.part(0, int(t))) for t in wanted])

    def collect(part: int) -> FloatArray:
        table = np.array([[one[part] for one in column] for column in found])
        return np.asarray(table[0] if isinstance(played, int) else np.moveaxis(table, 0, 1))

    return Hindsight(wanted, collect(0), collect(1), collect(2), played)


def rounds_of(stream: Stream, seed: int, stop: int) -> Block:
    """The rounds 1 … stop of one seed as a single block of float64 arrays."""
    blocks = list(stream.blocks(seed, 0, stop))
    done = sum(block.rounds for block in blocks)
    if done < stop:
        what = f"ended after round {done}, the best decision of round {stop} was asked for"
        raise StreamEndedError("stream", what, "Give a longer stream or fewer rounds", round=done + 1)
    loss, constraint = (_joined([getattr(b, role) for b in blocks]) for role in ("loss", "constraint"))
    return Block(loss, constraint, done)


def _joined(arrays: list[tuple[NDArray[Any], ...]]) -> tuple[FloatArray, ...]:
    return tuple(np.concatenate(parts).astype(np.float64) for parts in zip(*arrays, strict=True))
