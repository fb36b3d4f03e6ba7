"""The budget path: learners with many budgets on the same rows, to choose the budget by progressive loss."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.extras import import_optional
from longterm.errors import InputError
from longterm.linear_model._path_scores import PathScores
from longterm.linear_model._rows import IN_ORDER, NO_NUMBERS, RowBlock, labels_for, order_for, row_block, weights_for
from longterm.linear_model.streaming import BudgetLinearLearner
from longterm.storage.one_thread import exclusive, serialised

SMALLEST_MARGIN, LARGEST_MARGIN = 0.05, 50.0
"""The margins that the smallest and the largest budget of `budgets_for` allow."""


@dataclass(frozen=True)
class PathPoint:
    """A learner of a path with its results so far.

    Parameters
    ----------
    budget : float
        The budget of this learner.
    rounds : int
        The number of rows that it has learned.
    loss : float
        The mean of f_t(x_t), each row scored before it was learned.
    standard_error : float
        The standard error of the loss, from batches of rounds; NaN while there are fewer than two batches.
    signed_violation, hard_violation : float
        Σ g(x_t) and Σ [g(x_t)]₊.
    nonzeros : int
        The number of non-zero weights.
    learner : BudgetLinearLearner
        The learner.
    """

    budget: float
    rounds: int
    loss: float
    standard_error: float
    signed_violation: float
    hard_violation: float
    nonzeros: int
    learner: BudgetLinearLearner


class BudgetPath:
    """Learners that differ in their budgets alone and learn the same rows.

    Parameters
    ----------
    dimension : int
        d, the number of features.
    budgets : sequence of float
        The budgets. `budgets_for` returns a grid for given rows.
    n_jobs : int, optional
        The number of threads; as many as there are cores unless given.
    **options
        Other arguments of `BudgetLinearLearner`, the same for all learners.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model.path import BudgetPath
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 20))
    >>> y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(4000) > 0, 1.0, -1.0)
    >>> path = BudgetPath(20, [0.1, 1.0, 10.0]).learn(X, y)
    >>> path
    BudgetPath(dimension=20, budgets=3 from 0.1 to 10, loss='logistic', rounds=4000)
    >>> path.best().budget, path.points[0].nonzeros, path.at_most(2).nonzeros
    (10.0, 2, 2)
    """

    def __init__(self, dimension: int, budgets: ArrayLike, *, n_jobs: int | None = None, **options: Any) -> None:
        given = validate.vector("budgets", budgets)
        learners = [BudgetLinearLearner(dimension, float(budget), **options) for budget in given]
        self._hold(learners, None, n_jobs)

    def _hold(self, learners: Sequence[BudgetLinearLearner], scores: PathScores | None, n_jobs: int | None) -> Self:
        self.learners, self.scores = tuple(learners), scores or PathScores(len(learners))
        self._jobs = count_cores() if n_jobs is None else validate.count("n_jobs", n_jobs)
        return self

    @classmethod
    def from_learners(
        cls, learners: Sequence[BudgetLinearLearner], scores: PathScores | None = None, n_jobs: int | None = None
    ) -> Self:
        """Return a path of these learners, with the scores of the rows that they have learned."""
        return cls._hold(cls.__new__(cls), learners, scores, n_jobs)

    def __repr__(self) -> str:
        settings, budgets = self.learners[0].settings, [learner.settings.budget for learner in self.learners]
        grid = f"{len(budgets)} from {min(budgets):g} to {max(budgets):g}"
        what = f"dimension={settings.dimension}, budgets={grid}, loss={settings.loss!r}"
        return f"{type(self).__name__}({what}, rounds={self.learners[0].rounds})"

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        """Return a copy of the state: it is read after the lock is released."""
        return deepcopy(self.__dict__)

    @exclusive
    def learn(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        order: ArrayLike | None = None,
    ) -> Self:
        """Learn a block of rows, each after it was scored. The arguments are those of `BudgetLinearLearner.learn`."""
        settings, first = self.learners[0].settings, self.learners[0].rounds + 1
        block = row_block(X, settings.dimension, first if order is None else None)
        labels, weights = labels_for(y, block.count, settings.classifies), weights_for(sample_weight, block.count)
        self.learn_checked(block, labels, weights, order_for(order, block.count))
        return self

    def learn_checked(
        self,
        block: RowBlock,
        labels: FloatArray,
        weights: FloatArray = NO_NUMBERS,
        order: NDArray[np.int64] = IN_ORDER,
    ) -> None:
        """Learn rows that `row_block`, `labels_for` and `weights_for` have validated."""
        for learner in self.learners:
            learner.require(block, labels, weights, order)
        rows = np.arange(block.count) if order is IN_ORDER else order
        ends = self.scores.batch_ends(len(rows))

        def learn(learner: BudgetLinearLearner) -> list[float]:
            """Return the cumulative losses after each batch, and after all rows."""
            losses = []
            with learner.rollback_on_error(block, labels, weights):
                for start, stop in pairwise([0, *ends, len(rows)]):
                    learner.learn_checked(block, labels, weights, rows[start:stop])
                    losses.append(learner.cumulative_loss)
            return losses

        with ThreadPoolExecutor(self._jobs) as threads:
            losses = np.stack(list(threads.map(learn, self.learners)), axis=1)
        self.scores.add(len(rows), losses[:-1], losses[-1])

    # --- results ----------------------------------------------------------------------------------------------

    @property
    @serialised
    def points(self) -> tuple[PathPoint, ...]:
        """The learners with their losses, in the order of the budgets."""
        losses, errors = self.scores.means(), self.scores.standard_errors()
        return tuple(
            PathPoint(a.settings.budget, a.rounds, loss, error, a.signed_violation, a.hard_violation, a.nonzeros, a)
            for a, loss, error in zip(self.learners, losses.tolist(), errors.tolist(), strict=True)
        )

    def best(self) -> PathPoint:
        """Return the point of the lowest progressive loss, with the smallest budget among equals."""
        return best_point(self.points)

    def smallest(self, errors: float = 1.0) -> PathPoint:
        """Return the point with the fewest features whose loss is within so many standard errors of the best."""
        return smallest_point(self.points, errors)

    def at_most(self, features: int) -> PathPoint:
        """Return the best point with at most this many non-zero weights."""
        validate.count("features", features)
        few = [point for point in self.points if point.nonzeros <= features]
        if not few:
            fewest = min(point.nonzeros for point in self.points)
            what = f"no budget of the path has at most {features} non-zeros; the fewest are {fewest}"
            raise InputError("features", what, "Add smaller budgets")
        return best_point(few)

    def figure(self, axis: Any = None) -> Any:
        """Draw loss against non-zero weights, with standard errors, on a matplotlib axis, and return the axis."""
        return draw_path(self.points, axis)


def draw_path(points: Sequence[PathPoint], axis: Any = None) -> Any:
    """Draw progressive loss against non-zero weights, with standard errors, and return the axis."""
    plt: Any = import_optional("matplotlib.pyplot", "the figure of a path needs Matplotlib", "experiments")
    if axis is None:
        axis = plt.figure(figsize=(5.0, 3.4), layout="constrained").subplots()
    points = sorted(points, key=lambda point: point.budget)
    columns = zip(*((point.nonzeros, point.loss, point.standard_error) for point in points), strict=True)
    axis.errorbar(*columns, marker="o", markersize=3, linewidth=0.8, elinewidth=0.6)
    chosen = (("best", best_point(points), "*"), ("within one standard error", smallest_point(points), "s"))
    for name, point, marker in chosen:
        label = f"{name}: budget {point.budget:.3g}, {point.nonzeros} features"
        style = {"color": plt.rcParams["text.color"], "markersize": 9, "markerfacecolor": "none", "linestyle": "none"}
        axis.plot(point.nonzeros, point.loss, marker, label=label, **style)
    axis.set(xlabel="non-zero weights", ylabel="progressive loss per row")
    axis.grid(visible=True, alpha=0.3)
    axis.legend(fontsize="small", frameon=False)
    return axis


def best_point(points: Iterable[PathPoint]) -> PathPoint:
    """Return the point of the lowest loss, with the smallest budget among equals."""
    return min(points, key=lambda point: (point.loss, point.budget))


def smallest_point(points: Sequence[PathPoint], errors: float = 1.0) -> PathPoint:
    """Return the point with the fewest non-zeros among those within so many standard errors of the best."""
    best = best_point(points)
    limit = best.loss + errors * (best.standard_error if math.isfinite(best.standard_error) else 0.0)
    return min((p for p in points if p.loss <= limit), key=lambda p: (p.nonzeros, p.loss, p.budget))


def budgets_for(
    X: Any, y: ArrayLike, count: int = 32, *, l1: float = 1.0, l2: float = 1.0, classifies: bool = True
) -> FloatArray:
    """Return a geometric grid of budgets, from visibly too small to visibly too large for these rows.

    The unit of a margin is 1 for classes and the standard deviation of the targets for regression. The smallest budget
    allows one weight that changes the margin of a typical row by 0.05. The largest allows all weights to change it by
    50/√d each.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Some rows.
    y : array-like of shape (n,)
        Their labels or targets.
    count : int
        The number of budgets.
    l1, l2 : float
        The weights of the two norms in the constraint.
    classifies : bool
        Whether labels are ±1.
    """
    squares = X.multiply(X) if hasattr(X, "multiply") else np.square(np.asarray(X, dtype=np.float64))
    sizes = np.sqrt(np.asarray(squares.mean(axis=0), dtype=np.float64).ravel())
    spread = 1.0 if classifies else float(np.std(np.asarray(y, dtype=np.float64))) or 1.0
    return budget_grid(len(sizes), spread / (float(sizes.max(initial=0.0)) or 1.0), count, l1, l2)


def budget_grid(dimension: int, unit: float, count: int, l1: float, l2: float) -> FloatArray:
    """Return the grid of `budgets_for`, where a weight of `unit` changes the margin of a typical row by 1."""
    validate.count("count", count)
    low, high = SMALLEST_MARGIN * unit, LARGEST_MARGIN * unit
    smallest = l1 * low + 0.5 * l2 * low**2
    return np.geomspace(smallest, l1 * high * math.sqrt(dimension) + 0.5 * l2 * high**2, count)


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
