"""Which budget? Many budgets, trained in one pass over the rows, and what each of them costs and buys."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._rows import IN_ORDER, RowBlock, labels_for, row_block, weights_for, whole_numbers
from longterm.linear_model._together import FEWEST, Stretch, groups_of, play
from longterm.linear_model.kernels.rule import NO_NUMBERS, NO_ROUNDS
from longterm.linear_model.streaming import BudgetLinearLearner
from longterm.storage.one_thread import exclusive, serialised

CHUNK = 2**14
"""Rows that all learners play before the next ones are read."""
BATCHES, SHORTEST_BATCH = 128, 8
"""Standard errors are those of the means of up to so many batches of rounds, of at least so many rounds each."""
SMALLEST_MARGIN, LARGEST_MARGIN = 0.05, 50.0
"""What the smallest and the largest budget of a grid chosen by itself allow: see `budgets_for`."""


@dataclass(frozen=True)
class PathPoint:
    """One learner of a path, after the rows so far.

    Parameters
    ----------
    budget, beta : float
        ρ and β of this learner.
    rule : str
        Its rule.
    seed, rounds : int
        The seed of its average, and how many rows it has learned.
    loss : float
        The mean of f_t(x_t), every row scored before it was learned; rows that were not scored are left out.
    standard_error : float
        Of this mean, from batches of rounds; NaN while there are fewer than two.
    signed_violation, hard_violation : float
        Σ g(x_t) and Σ [g(x_t)]₊.
    nonzeros : int
        How many weights are not 0.
    learner : BudgetLinearLearner
        The model itself.
    """

    budget: float
    beta: float
    rule: str
    seed: int
    rounds: int
    loss: float
    standard_error: float
    signed_violation: float
    hard_violation: float
    nonzeros: int
    learner: BudgetLinearLearner


class BudgetPath:
    """A grid of budgets (and of β, rules and seeds), all learned in one pass, every row read once for all.

    What each learner learns is what a `BudgetLinearLearner` of its own, with these `scales`, would have, to 1e-9.

    Parameters
    ----------
    dimension : int
        d, the number of features.
    budgets : sequence of float
        ρ of each learner's constraint l1‖x‖₁ + ½ l2‖x‖² ≤ ρ. `budgets_for` chooses them by the rows.
    betas, rules, seeds : sequence, optional
        Learners are made for every combination of these with the budgets. Unless given: 2/3, "a-ftrl", 0.
    scales : {"one", "mixed", "priced"}
        As `BudgetLinearLearner` has it, but "one" unless given: here the grid tries the radii, one for each budget.
    n_jobs : int, optional
        Threads; as many as there are cores unless given.
    **options
        What else `BudgetLinearLearner` takes, the same for all: l1, l2, loss, loss_parameter, fit_intercept,
        intercept_bound, constants, growth, max_features, sparse.

    Notes
    -----
    A-FTRL of one scale with memory for dense rows (sparse=False; CSR rows are welcome) is played sixteen learners at a
    time, in the lanes of the processor's vectors. Other rules, mixtures of scales and memory for sparse rows, one
    after another on rows that are still in the cache. Either way on all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model import BudgetPath
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 20))
    >>> y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(4000) > 0, 1.0, -1.0)
    >>> path = BudgetPath(20, np.geomspace(0.01, 100, 9)).learn(X, y)
    >>> [point.nonzeros for point in path.points]
    [2, 2, 2, 2, 2, 2, 14, 13, 17]
    >>> path.best().budget, path.smallest().nonzeros, path.at_most(2).nonzeros
    (10.0, 2, 2)
    """

    def __init__(
        self,
        dimension: int,
        budgets: ArrayLike,
        *,
        betas: Sequence[float] | None = None,
        rules: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
        scales: str = "one",
        n_jobs: int | None = None,
        **options: Any,
    ) -> None:
        wanted = np.asarray(budgets, dtype=np.float64)
        if wanted.ndim != 1 or wanted.size == 0:
            raise InputError("budgets", f"has shape {wanted.shape}", "Give a sequence of budgets")
        given = {"betas": betas, "rules": rules, "seeds": seeds}
        for name, values in given.items():
            if values is not None and len(values) == 0:
                raise InputError(name, "is empty", "Leave it out, or give at least one")
        self._grid = [
            (float(budget), beta, rule, seed)
            for rule, beta, seed, budget in itertools.product(
                rules if rules is not None else ("a-ftrl",),
                betas if betas is not None else (2 / 3,),
                seeds if seeds is not None else (0,),
                wanted,
            )
        ]
        self.learners = tuple(
            BudgetLinearLearner(dimension, budget, beta=beta, rule=rule, seed=seed, scales=scales, **options)
            for budget, beta, rule, seed in self._grid
        )
        self._dimension, self._classifies = dimension, self.learners[0].settings.classifies
        self._jobs = cores() if n_jobs is None else validate.count("n_jobs", n_jobs)
        self._groups = groups_of(self.learners)
        self._scores = Scores(len(self.learners))

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        return deepcopy(self.__dict__)  # what is handed out is read when the turn is over

    @exclusive
    def learn(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        order: ArrayLike | None = None,
        scored: bool = True,
    ) -> BudgetPath:
        """Learn a block of rows, each after it was scored. Blocks may follow one another without end.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, dimension)
            The rows.
        y : array-like of shape (n,)
            Their labels, ±1, or targets.
        sample_weight : array-like of shape (n,), optional
            By what the loss of each row is multiplied.
        order : array-like of int, optional
            Row numbers: learn these rows in this order, each as often as it is named.
        scored : bool
            Whether these rows count for `loss`: false for rows that were learned before, whose loss is too low.

        Returns
        -------
        self : BudgetPath
        """
        first = self.learners[0].rounds + 1 if order is None else None
        block = row_block(X, self._dimension, first)
        labels, weights = labels_for(y, block.count, self._classifies), weights_for(sample_weight, block.count)
        rows_in_order = IN_ORDER
        if order is not None:
            rows_in_order = whole_numbers("order", order)
            if rows_in_order.ndim != 1 or np.any((rows_in_order < 0) | (rows_in_order >= block.count)):
                raise InputError("order", "has other numbers than those of rows", f"Use 0 … {block.count - 1}")
        self.learn_checked(block, labels, weights, rows_in_order, scored=scored)
        return self

    def learn_checked(
        self,
        block: RowBlock,
        labels: FloatArray,
        weights: FloatArray = NO_NUMBERS,
        order: NDArray[np.int64] = IN_ORDER,
        *,
        scored: bool = True,
    ) -> None:
        """`learn` for what `row_block`, `labels_for` and `weights_for` made."""
        max(self.learners, key=lambda learner: learner._radius).require(block, labels, weights, order)  # the strictest
        count = len(order) if order is not IN_ORDER else block.count
        with ThreadPoolExecutor(self._jobs) as threads:
            for start in range(0, count, CHUNK):
                stop = min(start + CHUNK, count)
                self._learn_chunk(_stretch(block, labels, weights, order, start, stop), scored, threads)

    def _learn_chunk(self, stretch: Stretch, scored: bool, threads: ThreadPoolExecutor | None) -> None:
        scores, first = self._scores, self.learners[0].rounds + 1
        record = scores.rounds_after(first - 1, len(stretch)) if scored else NO_ROUNDS
        stretch = Stretch(stretch.block, stretch.order, stretch.labels, stretch.weights, record)
        before = self._sums()
        losses = self._play_groups(stretch, threads)
        if scored:
            scores.add(len(stretch), losses, self._sums())
        else:
            scores.skip(len(stretch), self._sums() - before)

    def _play_groups(self, stretch: Stretch, threads: ThreadPoolExecutor | None) -> FloatArray:
        gathered = stretch.gathered() if any(len(group) >= FEWEST for group in self._groups) else None

        def work(group: list[int]) -> FloatArray:
            return play([self.learners[k] for k in group], stretch, gathered)

        one_by_one = threads is None or self._jobs == 1
        parts = [work(group) for group in self._groups] if one_by_one else list(threads.map(work, self._groups))  # type: ignore[union-attr]
        losses = np.empty((len(stretch.record), len(self.learners)))
        for group, part in zip(self._groups, parts, strict=True):
            losses[:, group] = part
        return losses

    def _sums(self) -> FloatArray:
        return np.array([learner.cumulative_loss for learner in self.learners])

    # --- what is known ----------------------------------------------------------------------------------------

    @property
    @serialised
    def points(self) -> tuple[PathPoint, ...]:
        """Every learner with what it has cost and what it is, in the order of the grid, budgets innermost."""
        losses, errors = self._scores.means(), self._scores.standard_errors()
        return tuple(
            PathPoint(
                *place, learner.rounds, float(loss), float(error), learner.signed_violation, learner.hard_violation,
                learner.nonzeros, learner,
            )
            for place, learner, loss, error in zip(self._grid, self.learners, losses, errors, strict=True)
        )  # fmt: skip

    def stored_scores(self) -> dict[str, NDArray[Any]]:
        """What a file has of a path beside its learners: how their losses were counted."""
        return self._scores.arrays()

    @classmethod
    def of_learners(
        cls, learners: Sequence[BudgetLinearLearner], scores: dict[str, NDArray[Any]], n_jobs: int | None = None
    ) -> BudgetPath:
        """A path again, from learners and from `stored_scores`; ValueError if they do not fit together."""
        made = cls.__new__(cls)
        made.learners = tuple(learners)
        settings = [learner.settings for learner in learners]
        made._grid = [
            (s.budget, s.beta, s.rule, learner._average.seed) for s, learner in zip(settings, learners, strict=True)
        ]
        made._dimension, made._classifies = settings[0].dimension, settings[0].classifies
        made._jobs = cores() if n_jobs is None else validate.count("n_jobs", n_jobs)
        made._groups = groups_of(made.learners)
        made._scores = Scores(len(learners))
        made._scores.restore(scores, learners[0].rounds)
        return made

    def best(self) -> PathPoint:
        """The point of the lowest progressive loss; of equals, the smallest budget."""
        return best_of(self.points)

    def smallest(self, errors: float = 1.0) -> PathPoint:
        """The fewest features whose loss is within so many standard errors of the best."""
        return smallest_of(self.points, errors)

    def at_most(self, features: int) -> PathPoint:
        """The best of those with at most so many non-zeros."""
        return at_most_of(self.points, features)

    def figure(self, axis: Any = None) -> Any:
        """Loss against size, drawn with matplotlib: every point with its standard error, the chosen ones named.

        Parameters
        ----------
        axis : matplotlib.axes.Axes, optional
            Where to draw; a new figure's unless given.

        Returns
        -------
        axis : matplotlib.axes.Axes
        """
        from longterm.linear_model._shown import draw_path

        return draw_path(self.points, axis)


def best_of(points: Iterable[PathPoint]) -> PathPoint:
    """The lowest loss; of equals, the smallest budget."""
    return min(points, key=lambda point: (point.loss, point.budget))


def smallest_of(points: Sequence[PathPoint], errors: float = 1.0) -> PathPoint:
    """The fewest non-zeros, then the lowest loss, among those within so many standard errors of the best."""
    best = best_of(points)
    reach = best.loss + errors * (best.standard_error if math.isfinite(best.standard_error) else 0.0)
    return min((p for p in points if p.loss <= reach), key=lambda p: (p.nonzeros, p.loss, p.budget))


def at_most_of(points: Sequence[PathPoint], features: int) -> PathPoint:
    """The lowest loss among those with at most so many non-zeros."""
    few = [point for point in points if point.nonzeros <= validate.count("features", features)]
    if not few:
        fewest = min(point.nonzeros for point in points)
        raise InputError("features", f"no budget of the path has at most {features} non-zeros, but {fewest}",
                         "Add smaller budgets")  # fmt: skip
    return best_of(few)


def budgets_for(
    X: Any, y: ArrayLike, count: int = 32, *, l1: float = 1.0, l2: float = 1.0, classifies: bool = True
) -> FloatArray:
    """A geometric grid of budgets from visibly too small to visibly too large for these rows.

    With q the largest root mean square of a feature and m a margin (for regression: in deviations of the targets), the
    smallest allows one weight that moves a typical margin by 0.05; the largest allows every weight to move it by 50/√d,
    all of them by up to 50√d.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Some rows.
    y : array-like of shape (n,)
        Their labels or targets.
    count : int
        How many budgets.
    l1, l2 : float
        The weights of the two norms in the constraint.
    classifies : bool
        Whether labels are ±1.

    Returns
    -------
    budgets : ndarray of shape (count,)
        From small to large.
    """
    validate.count("count", count)
    d = X.shape[1]
    squares = X.multiply(X) if hasattr(X, "multiply") else np.square(np.asarray(X, dtype=np.float64))
    sizes = np.sqrt(np.asarray(squares.mean(axis=0), dtype=np.float64).ravel())
    largest = float(sizes.max(initial=0.0)) or 1.0
    spread = 1.0 if classifies else float(np.std(np.asarray(y, dtype=np.float64))) or 1.0
    one, all_of_them = SMALLEST_MARGIN * spread / largest, LARGEST_MARGIN * spread / largest
    low, high = l1 * one + 0.5 * l2 * one**2, l1 * all_of_them * math.sqrt(d) + 0.5 * l2 * all_of_them**2
    return np.geomspace(low, high, count)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _stretch(
    block: RowBlock, labels: FloatArray, weights: FloatArray, order: NDArray[np.int64], start: int, stop: int
) -> Stretch:
    if order is not IN_ORDER:
        return Stretch(block, order[start:stop], labels, weights, NO_ROUNDS)
    some = weights[start:stop] if len(weights) else NO_NUMBERS
    part = RowBlock(block.part(start, stop), stop - start, block.longest, block.first_round)
    return Stretch(part, IN_ORDER, labels[start:stop], some, NO_ROUNDS)


class Scores:
    """Mean losses with standard errors, in memory that does not grow: sums at up to BATCHES rounds, evenly spaced.

    Splitting rows into blocks changes nothing: a batch ends at multiples of its length, which is doubled when there are
    too many. Rows that are not scored are left out of the rounds that are counted here.
    """

    def __init__(self, learners: int) -> None:
        self._rounds, self._skipped, self._length = 0, 0, SHORTEST_BATCH
        self._sums = np.zeros(learners)
        self._not_counted = np.zeros(learners)
        self._ends = np.zeros((1, learners))

    def rounds_after(self, played: int, count: int) -> NDArray[np.int64]:
        """The learners' rounds, of the next `count`, at which a batch ends; batches are made long enough first."""
        while (self._rounds + count) // self._length > BATCHES:
            self._ends, self._length = self._ends[::2], 2 * self._length
        own = np.arange(self._rounds // self._length + 1, (self._rounds + count) // self._length + 1) * self._length
        return own + (played - self._rounds)

    def add(self, count: int, losses: FloatArray, sums: FloatArray) -> None:
        """Sums of the losses at these rounds, and at the end of `count` more."""
        self._rounds += count
        self._sums = sums - self._not_counted
        self._ends = np.concatenate([self._ends, losses - self._not_counted])

    def skip(self, count: int, sums: FloatArray) -> None:
        """Rows that do not count, and their losses."""
        self._skipped += count
        self._not_counted = self._not_counted + sums

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it, for a file."""
        counts = np.array([self._rounds, self._skipped, self._length], dtype=np.int64)
        return {"counts": counts, "sums": self._sums, "not_counted": self._not_counted, "ends": self._ends}

    def restore(self, arrays: dict[str, NDArray[Any]], rounds: int) -> None:
        """What `arrays` gave, of learners that have played so many rounds; ValueError if it cannot be that."""
        n, (counts, sums, not_counted, ends) = (
            len(self._sums),
            (arrays[name] for name in ("counts", "sums", "not_counted", "ends")),
        )
        if len(arrays) != 4 or counts.dtype != np.int64 or counts.shape != (3,):
            raise ValueError("the scores' counts are missing")
        scored, skipped, length = (int(count) for count in counts)
        shortest = length // SHORTEST_BATCH
        fits = min(scored, skipped) >= 0 and scored + skipped == rounds and shortest >= 1
        if not fits or length % SHORTEST_BATCH or shortest & (shortest - 1) or scored // length > BATCHES:
            raise ValueError("the scores are not those of these rounds")
        wanted = {"sums": (sums, (n,)), "not_counted": (not_counted, (n,)), "ends": (ends, (scored // length + 1, n))}
        for name, (array, shape) in wanted.items():
            if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"the scores' {name} are not those of {n} learners")
        self._rounds, self._skipped, self._length = scored, skipped, length
        self._sums, self._not_counted, self._ends = sums, not_counted, ends

    def means(self) -> FloatArray:
        """Losses per row; NaN before the first."""
        return self._sums / self._rounds if self._rounds else np.full_like(self._sums, np.nan)

    def standard_errors(self) -> FloatArray:
        """Of these means, as if batches were independent of each other; rows within one need not be."""
        means = np.diff(self._ends, axis=0) / self._length
        if len(means) < 2:
            return np.full_like(self._sums, np.nan)
        return np.asarray(means.std(axis=0, ddof=1) / math.sqrt(len(means)))
