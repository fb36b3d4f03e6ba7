"""Estimators that choose their budget: many budgets in one scored pass, then a model with the best of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from longterm._base import validate
from longterm.errors import InputError
from longterm.linear_model._passes import RecentAverage, TrainingRows
from longterm.linear_model._path_scores import PathScores
from longterm.linear_model._rows import IN_ORDER
from longterm.linear_model._stored import require
from longterm.linear_model.classifier import BudgetLinearClassifier
from longterm.linear_model.path import (
    BudgetPath,
    PathPoint,
    best_point,
    budget_grid,
    budgets_for,
    draw_path,
    smallest_point,
)
from longterm.linear_model.regressor import BudgetLinearRegressor
from longterm.linear_model.streaming import BudgetLinearLearner

CHOICES = ("best", "smallest")
GRID_ROWS = 2**16
"""Rows of the first block that determine an automatic grid."""
ADDED = ("loss", "signed_violation", "hard_violation", "nonzeros")
"""Numbers of a point that are added up over the classes."""


class _PathModel:
    """Mixin: the choice of a budget by the progressive losses of its learners."""

    budgets: int | ArrayLike
    choose: str
    n_jobs: int | None
    budget: float | None = None
    """None: `budget_` is chosen."""
    paths_: list[BudgetPath]
    """One path; for more than two classes one for each class against the rest."""
    _is_settled: bool
    """True if `fit` chose the budget. Then `partial_fit` continues with this budget alone."""

    def _budget(self: Any) -> float | None:
        """Return the chosen budget."""
        return float(self.budgets_[self._place])

    def _start(self: Any, X: Any, rows: TrainingRows, random: Any, *, stream: bool) -> None:
        if not stream:
            super()._start(X, rows, random, stream=False)  # type: ignore[misc]
            return
        self._require_parameters()
        self._make_paths(X, rows, stream=True)
        self._averages: list[RecentAverage] = []
        self._is_settled = False

    def _learn_stream(self: Any, rows: TrainingRows) -> None:
        """Learn the rows with every budget and predict with the best, or with the budget that `fit` chose."""
        if self._is_settled:
            super()._learn_stream(rows)  # type: ignore[misc]
            return
        self._score(rows, IN_ORDER)
        self._learners = [path.learners[self._place] for path in self.paths_]
        self._reset_models(fitted=False)

    def _fit_rows(self: Any, X: Any, rows: TrainingRows, random: Any) -> None:
        """Choose the budget in one scored pass, and fit a model with it."""
        self._make_paths(X, rows, stream=False)
        # The draws of `random` are left to the fit: it is that of an estimator with the chosen budget.
        count = rows.block.count
        self._score(rows, check_random_state(self.random_state).permutation(count) if self.shuffle else IN_ORDER)
        self._is_settled = True
        super()._fit_rows(X, rows, random)  # type: ignore[misc]

    def _score(self: Any, rows: TrainingRows, order: NDArray[np.int64]) -> None:
        """Learn the rows with every budget, and choose one."""
        for path, labels in zip(self.paths_, rows.targets, strict=True):
            for learner in path.learners:
                learner.require(rows.block, labels, rows.weights, order)
        for path, labels in zip(self.paths_, rows.targets, strict=True):
            path.learn_checked(rows.block, labels, rows.weights, order)
        self._set_points()

    def _make_paths(self: Any, X: Any, rows: TrainingRows, *, stream: bool) -> None:
        if self.choose not in CHOICES:
            raise InputError("choose", f"{self.choose!r} is not known", f"Choose one of {', '.join(CHOICES)}")
        self.budgets_ = self._grid(X, rows, stream)
        limit = self.max_features if stream else None  # `fit` applies it to the chosen model
        self.paths_ = [
            BudgetPath.from_learners(
                [
                    self._make_learner(X, rows, 0, stream=stream, budget=float(budget), max_features=limit)
                    for budget in self.budgets_
                ],
                n_jobs=self.n_jobs,
            )
            for _ in rows.targets
        ]

    def _grid(self: Any, X: Any, rows: TrainingRows, stream: bool) -> NDArray[Any]:
        if isinstance(self.budgets, str) or np.ndim(self.budgets) > 0:
            return validate.vector("budgets", self.budgets)
        count = validate.count("budgets", self.budgets)
        if self._scales:  # every feature has the size 1
            return budget_grid(X.shape[1], self._target_spread(rows.targets), count, self.l1, self.l2)
        few, classifies = X[:GRID_ROWS], isinstance(self, BudgetLinearClassifier)
        return budgets_for(few, rows.targets[0][:GRID_ROWS], count, l1=self.l1, l2=self.l2, classifies=classifies)

    def _set_points(self: Any) -> None:
        """Add up the points of all paths, errors as if they were independent, and choose one of them."""
        self._points = []
        for points in zip(*(path.points for path in self.paths_), strict=True):
            totals = {name: sum(getattr(point, name) for point in points) for name in ADDED}
            error = float(np.sqrt(sum(point.standard_error**2 for point in points)))
            self._points.append(replace(points[0], standard_error=error, **totals))
        best: PathPoint = best_point(self._points) if self.choose == "best" else smallest_point(self._points)
        self._place = self._points.index(best)

    # --- files ------------------------------------------------------------------------------------------------

    def _stored_learners(self: Any) -> list[BudgetLinearLearner]:
        """Return the learners of all paths and, after `fit`, those of the model."""
        learners = [learner for path in self.paths_ for learner in path.learners]
        return learners + self._learners if self._is_settled else learners

    def _stored_parts(self: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        metadata, arrays = super()._stored_parts()  # type: ignore[misc]
        for number, path in enumerate(self.paths_):
            arrays |= {f"scores.{number}.{name}": array for name, array in path.scores.arrays().items()}
        return {"settled": self._is_settled, **metadata}, arrays

    def _take_parts(self: Any, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._is_settled = metadata.pop("settled", None)
        require(type(self._is_settled) is bool, "settled is neither true nor false")
        super()._take_parts(metadata, arrays)  # type: ignore[misc]

    def _take_learners(self: Any, learners: list[BudgetLinearLearner], arrays: dict[str, NDArray[Any]]) -> None:
        count = self._count_models()
        split = len(learners) - (count if self._is_settled else 0)
        each, rest = divmod(split, count)
        require(each > 0 and rest == 0, f"{len(learners)} learners are not {count} paths")
        require(self.choose in CHOICES, f"{self.choose!r:.40} is not known")
        self.paths_ = []
        for number in range(count):
            own = learners[number * each : (number + 1) * each]
            prefix = f"scores.{number}."
            scores = {name.removeprefix(prefix): arrays.pop(name) for name in list(arrays) if name.startswith(prefix)}
            self.paths_.append(BudgetPath.from_learners(own, PathScores.from_arrays(each, scores), self.n_jobs))
            require(len({learner.rounds for learner in own}) == 1, "its learners have different numbers of rounds")
        self.budgets_ = np.array([learner.settings.budget for learner in learners[:each]])
        for path in self.paths_:
            budgets = [learner.settings.budget for learner in path.learners]
            require(budgets == self.budgets_.tolist(), "its paths have different budgets")
        self._set_points()
        self._learners = learners[split:] if self._is_settled else [path.learners[self._place] for path in self.paths_]

    # --- attributes -------------------------------------------------------------------------------------------

    def _path_of(self: Any, name: str) -> NDArray[Any]:
        check_is_fitted(self)
        return np.array([getattr(point, name) for point in self._points])

    @property
    def loss_path_(self) -> NDArray[Any]:
        """The progressive loss per row of every budget."""
        return self._path_of("loss")

    @property
    def standard_error_path_(self) -> NDArray[Any]:
        """The standard errors of `loss_path_`."""
        return self._path_of("standard_error")

    @property
    def nonzero_path_(self) -> NDArray[Any]:
        """The number of non-zero weights of every budget, added up over the classes."""
        return self._path_of("nonzeros")

    @property
    def hard_violation_path_(self) -> NDArray[Any]:
        """Σ [g(x_t)]₊ of every budget."""
        return self._path_of("hard_violation")

    def figure(self: Any, axis: Any = None) -> Any:
        """Draw loss against non-zero weights: `BudgetPath.figure`."""
        check_is_fitted(self)
        return draw_path(self._points, axis)


class BudgetPathClassifier(_PathModel, BudgetLinearClassifier):
    """A `BudgetLinearClassifier` that chooses its budget by progressive loss.

    `fit` scores every budget in one pass, and then fits a model with the chosen budget, with which later calls of
    `partial_fit` continue. Without a `fit`, `partial_fit` learns with every budget and predicts with the best so far.

    Parameters
    ----------
    budgets : int or sequence of float
        The budgets, or the number of budgets in a grid that is made for the rows.
    choose : {"best", "smallest"}
        The budget of the lowest progressive loss, or the one with the fewest features within one standard error of it.
    n_jobs : int, optional
        The number of threads; as many as there are cores unless given.
    l1, l2, loss, rule, fit_intercept, max_features, scale_features : optional
        As in `BudgetLinearClassifier`.
    passes, shuffle, random_state, class_weight, predict_with : optional
        As in `BudgetLinearClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model.path_estimators import BudgetPathClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 30))
    >>> y = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + rng.standard_normal(3000) > 0
    >>> model = BudgetPathClassifier(choose="smallest", random_state=0).fit(X, y)
    >>> bool(model.budget_ < model.budgets_[-1]), bool(model.score(X, y) > 0.75)
    (True, True)
    >>> BudgetPathClassifier(max_features=3, random_state=0).fit(X, y).n_nonzero_
    3
    """

    def __init__(
        self,
        budgets: int | ArrayLike = 32,
        *,
        choose: str = "best",
        n_jobs: int | None = None,
        l1: float = 1.0,
        l2: float = 1.0,
        loss: str = "logistic",
        rule: str = "a-ftrl",
        fit_intercept: bool = True,
        max_features: int | None = None,
        scale_features: bool | None = None,
        passes: int | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        class_weight: str | Mapping[Any, float] | None = None,
        predict_with: str = "auto",
    ) -> None:
        self._keep(locals())


class BudgetPathRegressor(_PathModel, BudgetLinearRegressor):
    """A `BudgetLinearRegressor` that chooses its budget by progressive loss, as `BudgetPathClassifier` does.

    Parameters
    ----------
    budgets, choose, n_jobs : optional
        As in `BudgetPathClassifier`.
    l1, l2, loss, loss_parameter, rule, fit_intercept, max_features, scale_features : optional
        As in `BudgetLinearRegressor`.
    passes, shuffle, random_state, predict_with : optional
        As in `BudgetLinearRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model.path_estimators import BudgetPathRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 30))
    >>> y = 1.0 + X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(3000)
    >>> model = BudgetPathRegressor(max_features=2, random_state=0).fit(X, y)
    >>> model.n_nonzero_, bool(model.score(X, y) > 0.9)
    (2, True)
    """

    def __init__(
        self,
        budgets: int | ArrayLike = 32,
        *,
        choose: str = "best",
        n_jobs: int | None = None,
        l1: float = 1.0,
        l2: float = 1.0,
        loss: str = "squared",
        loss_parameter: float | None = None,
        rule: str = "a-ftrl",
        fit_intercept: bool = True,
        max_features: int | None = None,
        scale_features: bool | None = None,
        passes: int | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        predict_with: str = "auto",
    ) -> None:
        self._keep(locals())
