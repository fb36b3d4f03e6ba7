"""The passes of `fit` over its rows, and the average of the decisions made on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.linear_model._rows import RowBlock
from longterm.linear_model.streaming import BudgetLinearLearner

PASSES, PASSES_WITH_BUDGET, ENOUGH_ROUNDS = 5, 10, 100_000
"""Passes of `fit` without and with a budget, at most so many rounds, but at least one pass."""
SAMPLES, COLUMNS_PER_ROUND = 256, 1024
"""Decisions that are averaged; fewer where copying the weights would cost more than learning the rows."""


@dataclass(frozen=True)
class TrainingRows:
    """The validated rows of one call: a block, the labels for each learner, and weights (empty: all 1)."""

    block: RowBlock
    targets: list[FloatArray]
    weights: FloatArray


def default_passes(rows: int, has_budget: bool) -> int:
    """Return the number of passes of `fit` over so many rows."""
    return min(PASSES_WITH_BUDGET if has_budget else PASSES, max(ENOUGH_ROUNDS // max(rows, 1), 1))


class RecentAverage:
    """An average of decisions in which the n-th decision has a weight proportional to n (polynomial decay)."""

    def __init__(self, count: int = 0, mean: FloatArray | None = None, nonzero: FloatArray | None = None) -> None:
        self.count = count
        """The number of decisions."""
        self.mean = np.empty(0) if mean is None else mean
        """Their weighted mean: weights, then the intercept."""
        self.nonzero = np.empty(0) if nonzero is None else nonzero
        """The share of the decisions, by weight, in which each weight is not 0."""

    def add(self, weights: FloatArray, intercept: float) -> None:
        """Add a decision."""
        self.count += 1
        if self.count == 1:
            self.mean, self.nonzero = np.zeros(len(weights) + 1), np.zeros(len(weights))
        share = 2 / (self.count + 1)
        self.mean += share * (np.append(weights, intercept) - self.mean)
        self.nonzero += share * ((weights != 0) - self.nonzero)

    def model(self, learner: BudgetLinearLearner) -> tuple[FloatArray, float]:
        """Return weights and intercept within the learner's budget, 0 where most of the decisions are 0."""
        weights = np.where(self.nonzero > 0.5, self.mean[:-1], 0.0)
        return learner.nearest_within_budget(weights, float(self.mean[-1]))


def learn_passes(
    learner: BudgetLinearLearner,
    average: RecentAverage,
    rows: TrainingRows,
    labels: FloatArray,
    orders: Iterable[NDArray[np.int64]],
) -> None:
    """Learn the rows once in each of these orders, and add evenly spaced decisions to the average."""
    orders = list(orders)
    step = max(len(orders) * rows.block.count // SAMPLES, learner.settings.dimension // COLUMNS_PER_ROUND, 1)
    for order in orders:
        for start in range(0, len(order), step):
            learner.learn_checked(rows.block, labels, rows.weights, order[start : start + step])
            average.add(learner.weights, learner.intercept)
