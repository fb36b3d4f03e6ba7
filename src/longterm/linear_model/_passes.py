"""The passes of `fit` over its rows, and the average of the decisions made on the way."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from longterm._base.arrays import FloatArray
from longterm.linear_model._rows import RowBlock
from longterm.linear_model.kernels.losses import values_and_slopes
from longterm.linear_model.streaming import BudgetLinearLearner

PASSES, ENOUGH_ROUNDS, FOLDS = (1, 2, 5), 100_000, 3
"""Numbers of passes that `fit` chooses from, at most so many rounds but at least one pass; parts of rows for that."""
SAMPLES, COLUMNS_PER_ROUND = 256, 1024
"""Decisions that are averaged; fewer where copying the weights would cost more than learning the rows."""


@dataclass(frozen=True)
class TrainingRows:
    """The validated rows of one call: a block, the labels for each learner, and weights (empty: all 1)."""

    block: RowBlock
    targets: list[FloatArray]
    weights: FloatArray


def possible_passes(rows: int) -> tuple[int, ...]:
    """Return the numbers of passes over so many rows that `fit` chooses from."""
    return tuple(count for count in PASSES if count == 1 or count * rows <= ENOUGH_ROUNDS)


def best_passes(learner: BudgetLinearLearner, rows: TrainingRows, random: Any) -> int:
    """Return the number of passes with the least loss on rows that were left out, each third of the rows once.

    `learner` is new, and stays so. More passes are not tried once the loss has risen.
    """
    counts = possible_passes(rows.block.count)
    if len(counts) == 1 or rows.block.count < FOLDS:
        return counts[-1]
    fold = random.permutation(rows.block.count) % FOLDS
    tries = [(deepcopy(learner), RecentAverage(), labels, k) for labels in rows.targets for k in range(FOLDS)]
    least, done = math.inf, 0
    for place, count in enumerate(counts):
        loss = 0.0
        for each, average, labels, number in tries:
            orders = [random.permutation(np.flatnonzero(fold != number)) for _ in range(count - done)]
            learn_passes(each, average, rows, labels, orders)
            loss += _loss_of(average.model(each), each, rows, labels, np.flatnonzero(fold == number))
        if loss >= least:
            return counts[place - 1]
        least, done = loss, count
    return counts[-1]


def _loss_of(
    model: tuple[FloatArray, float],
    learner: BudgetLinearLearner,
    rows: TrainingRows,
    labels: FloatArray,
    chosen: NDArray[np.int64],
) -> float:
    """Return the weighted sum of a model's losses on these rows."""
    given, settings = rows.block.take(chosen), learner.settings
    if rows.block.is_sparse:
        given = sparse.csr_array(given, shape=(len(chosen), settings.dimension))
    margins = np.ascontiguousarray(given @ model[0] + model[1], dtype=np.float64)
    values, _ = values_and_slopes(settings.code, settings.loss_parameter or 0.0, margins, labels[chosen])
    return float(values @ rows.weights[chosen] if len(rows.weights) else values.sum())


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
    step = max(PASSES[-1] * rows.block.count // SAMPLES, learner.settings.dimension // COLUMNS_PER_ROUND, 1)
    for order in orders:
        for start in range(0, len(order), step):
            learner.learn_checked(rows.block, labels, rows.weights, order[start : start + step])
            average.add(learner.weights, learner.intercept)
