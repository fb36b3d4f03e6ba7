"""The average of all decisions, without a pass over the coordinates in every round.

Rounds are divided into stretches of L = max(1024, d). In each stretch one round, drawn from a seed and the stretch's
number, stands for all of it: its decision is added L times. The expected value of that sum over the draw is the sum
over all rounds, so by Jensen's inequality the average x̄ has, in expectation over the draw, F(x̄) ≤ (1/T) Σ F(x_t) for
every convex F, just as the average of all rounds would. A pass over d coordinates every L ≥ d rounds is less than one
coordinate a round.

The rounds since the last whole stretch, fewer than L, are represented by the decision in force now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray

SHORTEST = 1024
_MASK = 2**64 - 1


class Sampled(NamedTuple):
    """What was drawn so far."""

    stretches: NDArray[np.int64]
    """[n], how many stretches have had their round."""
    total: FloatArray
    """The sum of the n decisions, with the intercept last; empty while n = 0, so that it takes no memory."""


class Average:
    """One learner's average."""

    def __init__(self, dimension: int, seed: int) -> None:
        self.length = max(SHORTEST, dimension)
        self.seed = seed
        self.sampled = Sampled(np.zeros(1, dtype=np.int64), np.empty(0))
        self._before: tuple[int, Sampled] | None = None

    def next_round(self) -> int:
        """The round, counted from 1, whose decision is wanted next."""
        stretch = int(self.sampled.stretches[0])
        return stretch * self.length + 1 + _mixed(self.seed * 0x9E3779B97F4A7C15 + stretch) % self.length

    def add(self, x: FloatArray, intercept: float) -> None:
        """The decision of that round."""
        drawn = np.append(x, intercept)
        self._before = self.next_round(), self.sampled
        total = drawn if self.sampled.total.size == 0 else self.sampled.total + drawn
        self.sampled = Sampled(self.sampled.stretches + 1, total)

    def take_back(self, round: int) -> None:
        """Forget the decision of this round if it was added: the round was refused, and may not come again."""
        if self._before is not None and self._before[0] == round:
            self.sampled = self._before[1]

    def value(self, rounds: int, x: FloatArray, intercept: float) -> tuple[FloatArray, float]:
        """x̄ after so many rounds, where the decision is now x."""
        stretches, total = int(self.sampled.stretches[0]), self.sampled.total
        rest = max(rounds - stretches * self.length, 0)
        if stretches == 0:
            return x, intercept
        mean = (self.length * total + rest * np.append(x, intercept)) / (stretches * self.length + rest)
        return mean[:-1], float(mean[-1])


def _mixed(number: int) -> int:
    """A number of 64 bits that looks random: splitmix64."""
    z = (number + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
