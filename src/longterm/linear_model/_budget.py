"""The budget that an estimator uses where none is given, and its warnings about one that is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longterm._base.arrays import FloatArray
from longterm._base.messages import warn_caller
from longterm.errors import BudgetWarning
from longterm.linear_model._passes import TrainingRows
from longterm.linear_model._settings import GENEROUS_RADIUS
from longterm.linear_model.streaming import BudgetLinearLearner

LARGEST_SIZE_RATIO = 100.0
"""Features that are not scaled are reported if their sizes differ by more than this factor."""


def generous_budget(rows: TrainingRows, spread: float, l1: float, l2: float) -> float:
    """Return a budget that will not bind: a radius of 250, times the targets' spread, over the median row length."""
    part = rows.block.part(0, min(rows.block.count, 1000))
    if rows.block.is_sparse:
        data, _, indptr = part
        squares = np.diff(np.append(0.0, np.cumsum(np.square(data[: indptr[-1]], dtype=np.float64)))[indptr])
    else:
        squares = np.square(part, dtype=np.float64).sum(axis=1)
    lengths = np.sqrt(squares[(squares > 0) & np.isfinite(squares)])
    radius = GENEROUS_RADIUS * spread / (float(np.median(lengths)) if lengths.size else 1.0)
    return l1 * radius + 0.5 * l2 * radius**2


def warn_about_budget(learners: Sequence[BudgetLinearLearner], rows: TrainingRows, *, given: bool = False) -> None:
    """Warn if no weight is left, or if a `given` budget has no effect."""
    budget = learners[0].settings.budget
    if not any(learner.nonzeros for learner in learners) and any(np.ptp(y) > 0 for y in rows.targets):
        what = f"the budget of {budget:g} left all weights at 0" if given else "all weights are 0"
        what += ", so the model is a constant"
        remedy = "Give a larger budget, or none (budget=None)" if given else "Check that the features vary"
    elif given and not any(learner.binds for learner in learners):
        what = f"the budget of {budget:g} was never reached and has no effect"
        remedy = "Give a smaller budget, or none (budget=None)"
    else:
        return
    if learners[0].scale is None and not rows.block.is_sparse:
        sizes = _feature_sizes(rows.block.rows)
        if sizes.max() > LARGEST_SIZE_RATIO * sizes.min():
            ratio = f"{sizes.max() / sizes.min():.0f}"
            remedy = f"The features differ in size by a factor of {ratio}: scale them, with StandardScaler for example"
    warn_caller(f"{what}. {remedy}", BudgetWarning)


def _feature_sizes(rows: FloatArray) -> FloatArray:
    """Return the root mean squares of the features that are not always 0; 1 if there are none."""
    squares = np.square(rows, dtype=np.float64).mean(axis=0)
    return np.sqrt(squares[squares > 0]) if squares.any() else np.ones(1)
