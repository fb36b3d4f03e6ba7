"""The average of a learner's decisions, from one drawn round per stretch of rounds."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray

SHORTEST_STRETCH = 1024
_MASK = 2**64 - 1


class DrawnRounds(NamedTuple):
    """The decisions that were drawn so far."""

    stretches: NDArray[np.int64]
    """[n], the number of stretches whose round was drawn."""
    total: FloatArray
    """The sum of the n decisions with the intercept last; empty while n = 0."""


class Average:
    """The average of all decisions, without a pass over the coordinates in every round.

    Rounds are divided into stretches of L = max(1024, d). In each stretch one round, drawn from a seed and the
    stretch's number, stands for all of it: its decision is added L times. In expectation over the draw that sum is the
    sum over all rounds. By Jensen's inequality the average x̄ has E F(x̄) ≤ (1/T) Σ F(x_t) for every convex F, just as
    the average of all rounds. The rounds since the last whole stretch are represented by the decision in force.
    """

    def __init__(self, dimension: int, seed: int) -> None:
        self.length = stretch_length(dimension)
        self.seed = seed
        self.drawn = DrawnRounds(np.zeros(1, dtype=np.int64), np.empty(0))

    def next_round(self) -> int:
        """Return the round, counted from 1, whose decision is to be added next."""
        stretch = int(self.drawn.stretches[0])
        return stretch * self.length + 1 + _draw(self.seed, stretch, self.length)

    def add(self, x: FloatArray, intercept: float) -> None:
        """Add the decision of the next round."""
        stretches, total = self.drawn
        added = np.append(x, intercept)
        self.drawn = DrawnRounds(stretches + 1, added + total if total.size else added)

    def value(self, rounds: int, x: FloatArray, intercept: float) -> tuple[FloatArray, float]:
        """Return x̄ and its intercept after so many rounds, with the decision in force."""
        stretches, total = int(self.drawn.stretches[0]), self.drawn.total
        rest = max(rounds - stretches * self.length, 0)
        if stretches == 0:
            return x, intercept
        mean = (self.length * total + rest * np.append(x, intercept)) / (stretches * self.length + rest)
        return mean[:-1], float(mean[-1])


def stretch_length(dimension: int) -> int:
    """Return L, the number of rounds that one drawn round stands for."""
    return max(SHORTEST_STRETCH, dimension)


@lru_cache(maxsize=1024)
def _draw(seed: int, stretch: int, length: int) -> int:
    """Return a pseudo-random number below `length`, by splitmix64."""
    z = (seed * 0x9E3779B97F4A7C15 + stretch + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (z ^ (z >> 31)) % length
