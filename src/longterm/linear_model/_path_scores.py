"""Mean progressive losses of several learners, with standard errors, in constant memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray

BATCH = 32
"""Rounds in a batch. Standard errors treat batches as independent; rows within a batch need not be."""
ARRAYS = ("total", "batch_start", "mean", "squares")


class PathScores:
    """The mean loss of each learner, and the variance of the means of its batches (Welford's algorithm).

    Batches end after every 32 rounds, so that splitting rows into blocks changes nothing.
    """

    def __init__(self, learners: int) -> None:
        self.rounds = 0
        """The number of rounds."""
        self.total = np.zeros(learners)
        """The total loss."""
        self.batch_start = np.zeros(learners)
        """The total loss at the end of the last whole batch."""
        self.mean = np.zeros(learners)
        """The mean of the batches' means."""
        self.squares = np.zeros(learners)
        """The sum of their squared deviations."""

    def batch_ends(self, count: int) -> NDArray[np.int64]:
        """Return the rounds among the next `count` after which a batch ends, the next round being 1."""
        return np.arange(BATCH - self.rounds % BATCH, count + 1, BATCH)

    def add(self, count: int, losses: FloatArray, cumulative_loss: FloatArray) -> None:
        """Add `count` rounds: cumulative losses of the learners at `batch_ends` (a row each) and at the end."""
        for number, at_end in enumerate(losses, start=self.rounds // BATCH + 1):
            batch_mean = (at_end - self.batch_start) / BATCH
            deviation = batch_mean - self.mean
            self.mean = self.mean + deviation / number
            self.squares = self.squares + deviation * (batch_mean - self.mean)
            self.batch_start = at_end
        self.rounds, self.total = self.rounds + count, cumulative_loss

    def means(self) -> FloatArray:
        """Return the losses per row; NaN before the first."""
        return self.total / self.rounds if self.rounds else np.full_like(self.total, np.nan)

    def standard_errors(self) -> FloatArray:
        """Return the standard errors of the means; NaN while there are fewer than two batches."""
        batches = self.rounds // BATCH
        if batches < 2:
            return np.full_like(self.total, np.nan)
        return np.sqrt(self.squares / (batches * (batches - 1)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, for a file."""
        return {"rounds": np.array([self.rounds]), **{name: getattr(self, name) for name in ARRAYS}}

    @classmethod
    def from_arrays(cls, learners: int, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the scores of a file; raise ValueError if they are not those of so many learners."""
        scores = cls(learners)
        rounds = arrays["rounds"]
        if set(arrays) != {"rounds", *ARRAYS} or rounds.dtype != np.int64 or rounds.shape != (1,) or rounds[0] < 0:
            raise ValueError("the scores' rounds are missing")
        scores.rounds = int(rounds[0])
        for name in ARRAYS:
            array = arrays[name]
            if array.dtype != np.float64 or array.shape != (learners,) or not np.isfinite(array).all():
                raise ValueError(f"the scores' {name} is not that of {learners} learners")
            setattr(scores, name, array)
        if (scores.squares < 0).any():
            raise ValueError("the scores' squares are negative")
        return scores
