"""How `fit` goes through its rows: passes, and the average of their decisions.

Without a budget nothing keeps weights small but the number of passes: where features are as many as rows, ten of them
have half as much loss again on new rows as one has (invented text, 7 % positive; on sector a third more than two).
So that number is chosen (`_held_out`). Then the rows are learned anew in other orders, and the answer is the mean of
all runs, so that less depends on the order of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.linear_model._rows import RowBlock

SAMPLES, COLUMNS_A_ROUND, DECAY = 256, 1024, 2
"""`fit` averages so many decisions, or fewer where a pass over the columns would cost more than learning does; the n-th
counts ∝ n², so that half of the weight is on the last fifth of the rounds. With several passes it counts ∝ n: the first
of them is a small part of it anyway, and less depends on the order."""
ENOUGH_ROUNDS, MOST_PASSES = 20_000, 10
"""How far `fit` goes by itself: small data sets are gone through often, large ones once."""
RUN_ROUNDS, MOST_RUNS = 80_000, 16
"""Runs go on until as many rounds were played as the choice took for 2,000 rows."""


class Recent:
    """An average of decisions that forgets the first ones: the n-th of them counts ∝ n^decay (polynomial decay)."""

    def __init__(self, decay: int = 1) -> None:
        self.count, self.mean, self.decay = 0, np.empty(0), decay

    def add(self, decision: FloatArray) -> None:
        """One decision more, its intercept behind the weights."""
        self.count += 1
        share = (self.decay + 1) / (self.count + self.decay)
        self.mean = decision if self.count == 1 else self.mean + share * (decision - self.mean)

    def model(self, learner: Any) -> tuple[FloatArray, Any]:
        """Weights and intercepts of the average: 0 where the learner's last decision is, and within the budget."""
        d = learner.settings.dimension
        return learner.nearest_within_budget(np.where(learner.weights != 0, self.mean[:d], 0.0), self.mean[d:])  # type: ignore[no-any-return]


class Rows:
    """What is learned: rows, the labels that each learner sees, weights."""

    def __init__(self, block: RowBlock, targets: list[FloatArray], weights: FloatArray) -> None:
        self.block, self.targets, self.weights = block, targets, weights

    def play(
        self, learners: Sequence[Any], averages: list[list[Recent]], order: NDArray[np.int64], passes: int, samples: int
    ) -> None:
        """One pass in this order, of so many, in which so many decisions go into each learner's averages."""
        stretch = max(passes * len(order) // samples, learners[0].settings.dimension // COLUMNS_A_ROUND, 1)
        for learner, labels, own in zip(learners, self.targets, averages, strict=True):
            for start in range(0, len(order), stretch):
                learner.learn_checked(self.block, labels, self.weights, order[start : start + stretch])
                decision = np.append(learner.weights, learner.intercept)
                for average in own:
                    average.add(decision)

    def runs(self, passes: int, share: float) -> int:
        """How often so many passes can be made anew; less often where the answer is only in part their average."""
        return min(max(round(share * RUN_ROUNDS / (passes * self.block.count)), 1), MOST_RUNS)
