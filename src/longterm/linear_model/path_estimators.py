"""scikit-learn's interface to a path of budgets: the budget is chosen by the loss of rows not yet learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._estimator_files import require, with_prefix, without_prefix
from longterm.linear_model._rows import IN_ORDER, RowBlock
from longterm.linear_model.classifier import BudgetLinearClassifier
from longterm.linear_model.path import BudgetPath, PathPoint, at_most_of, best_of, budgets_for, smallest_of
from longterm.linear_model.regressor import BudgetLinearRegressor
from longterm.linear_model.streaming import BudgetLinearLearner

CHOICES = ("best", "smallest")
MODELS = ("last", "average", "within_budget")
"""No recent average: it would have to be kept for every budget."""
GRID_ROWS = 2**16
"""Rows of the first block that an automatic grid is made of."""
SPARSE_ENOUGH = 64
"""More columns than this for each entry of a row, and A-FTRL's memory for sparse rows is the faster one."""


class _PathModel:
    """What both estimators have beyond those with one budget: paths, and the learner chosen out of each."""

    budgets: str | int | ArrayLike
    choose: str
    max_features: int | None
    n_jobs: int | None
    paths_: list[BudgetPath]
    """One; for more than two classes one for each class against the rest."""

    def _make_learners(self: Any, count: int, X: Any, random: Any, deviation: float = 1.0) -> list[BudgetLinearLearner]:
        """None yet: the grid may depend on the labels. Seeds are drawn as those with one budget draw them."""
        if self.choose not in CHOICES:
            raise InputError("choose", f"{self.choose!r} is no choice", f"Choose one of {', '.join(CHOICES)}")
        if self.predict_with not in MODELS:
            raise InputError("predict_with", f"{self.predict_with!r} is no model", f"Choose one of {', '.join(MODELS)}")
        if self.max_features is not None:
            validate.count("max_features", self.max_features)
        self._seeds = [int(seed) for seed in random.randint(2**31, size=count)]
        self.paths_ = []
        return []

    def _fit_rows(self: Any, X: Any, targets: list[FloatArray], weights: FloatArray, random: Any, *_: Any) -> None:
        """Budgets keep weights small: no rows are held out."""
        self._learn_block(self._block(X), targets, weights, self._passes_over(X.shape[0]), random)

    def _learn_block(
        self: Any,
        block: RowBlock,
        targets: list[FloatArray],
        weights: FloatArray,
        passes: int,
        random: Any,
        samples: int = 0,
    ) -> None:
        """Learn the block with every budget; only the first pass is scored. Then choose."""
        if not self.paths_:
            self._make_paths(block, targets)
        for path, labels in zip(self.paths_, targets, strict=True):
            for learner in path.learners:
                learner.require(block, labels, weights, IN_ORDER if random is None else None)
        for number in range(passes):
            order = random.permutation(block.count) if self.shuffle and random is not None else IN_ORDER
            for path, labels in zip(self.paths_, targets, strict=True):
                path.learn_checked(block, labels, weights, order, scored=number == 0)
        self._choose()
        self._kept: dict[str, tuple[FloatArray, FloatArray]] = {}

    def _make_paths(self: Any, block: RowBlock, targets: list[FloatArray]) -> None:
        few = min(block.count, GRID_ROWS)
        X = block.part(0, few)
        if block.is_sparse:
            data, indices, indptr = X
            X = sparse.csr_array((data[: indptr[-1]], indices[: indptr[-1]], indptr), shape=(few, self.n_features_in_))
        is_count = isinstance(self.budgets, int | np.integer) and not isinstance(self.budgets, bool)
        budgets: Any = self.budgets
        if is_count or (isinstance(self.budgets, str) and self.budgets == "auto"):
            count = int(self.budgets) if is_count else 32
            classifies = isinstance(self, BudgetLinearClassifier)
            budgets = budgets_for(X, targets[0][:few], count, l1=self.l1, l2=self.l2, classifies=classifies)
        elif isinstance(self.budgets, str):
            raise InputError("budgets", f"{self.budgets!r} is no grid", 'Give "auto", a number of budgets, or budgets')
        wide = block.is_sparse and self.n_features_in_ * few > SPARSE_ENOUGH * max(X.nnz, few)
        self.budgets_ = np.array(budgets, dtype=np.float64)
        self.paths_ = [
            BudgetPath(
                self.n_features_in_,
                self.budgets_,
                betas=[self.beta],
                rules=[self.rule],
                seeds=[seed],
                scales="one",
                n_jobs=self.n_jobs,
                l1=self.l1,
                l2=self.l2,
                loss=self.loss,
                loss_parameter=self.loss_parameter,
                fit_intercept=self.fit_intercept,
                intercept_bound=self.intercept_bound,
                constants=self.constants,
                growth=self.growth,
                sparse=bool(wide and self.rule == "a-ftrl"),
            )
            for seed in self._seeds
        ]

    def _every_learner(self: Any) -> list[BudgetLinearLearner]:
        return [learner for path in self.paths_ for learner in path.learners]

    def _stored_parts(self: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        metadata, arrays = super()._stored_parts()  # type: ignore[misc]
        for number, path in enumerate(self.paths_):
            arrays |= with_prefix(f"scores.{number}", path.stored_scores())
        return metadata, arrays

    def _take_learners(self: Any, learners: list[BudgetLinearLearner], arrays: dict[str, NDArray[Any]]) -> None:
        count = self._learners_of()
        each, left = divmod(len(learners), count)
        require(each > 0 and left == 0, f"{len(learners)} learners are not {count} paths")
        require(self.predict_with in MODELS and self.choose in CHOICES, "it predicts with no model that there is")
        self.paths_ = [
            BudgetPath.of_learners(
                learners[k * each : (k + 1) * each], without_prefix(f"scores.{k}", arrays), self.n_jobs
            )
            for k in range(count)
        ]
        self.budgets_ = np.array([learner.settings.budget for learner in learners[:each]])
        for path in self.paths_:
            own = [learner.settings.budget for learner in path.learners]
            require(own == self.budgets_.tolist(), "its paths have different budgets")
        self._seeds = [path.points[0].seed for path in self.paths_]
        self._choose()

    def _choose(self: Any) -> None:
        self._points = self._summed()
        place = self._chosen_place()
        self._learners = [path.learners[place] for path in self.paths_]

    def _summed(self: Any) -> list[PathPoint]:
        """The points of all paths together: losses and features added up, errors as if they were independent."""
        return [
            replace(
                together[0],
                loss=sum(point.loss for point in together),
                standard_error=float(np.sqrt(sum(point.standard_error**2 for point in together))),
                signed_violation=sum(point.signed_violation for point in together),
                hard_violation=sum(point.hard_violation for point in together),
                nonzeros=sum(point.nonzeros for point in together),
            )
            for together in zip(*(path.points for path in self.paths_), strict=True)
        ]

    def _chosen_place(self: Any) -> int:
        points: list[PathPoint] = self._points
        if self.max_features is not None:
            return points.index(at_most_of(points, self.max_features))
        return points.index(best_of(points) if self.choose == "best" else smallest_of(points))

    @property
    def loss_path_(self: Any) -> NDArray[Any]:
        """The progressive loss per row of every budget, in the first pass of each block."""
        check_is_fitted(self)
        return np.array([point.loss for point in self._points])

    @property
    def standard_error_path_(self: Any) -> NDArray[Any]:
        """Its standard error."""
        check_is_fitted(self)
        return np.array([point.standard_error for point in self._points])

    @property
    def nonzero_path_(self: Any) -> NDArray[Any]:
        """The features of every budget's last decision that are not 0; several classes are added up."""
        check_is_fitted(self)
        return np.array([point.nonzeros for point in self._points])

    @property
    def hard_violation_path_(self: Any) -> NDArray[Any]:
        """Σ [g(x_t)]₊ of every budget."""
        check_is_fitted(self)
        return np.array([point.hard_violation for point in self._points])

    def figure(self: Any, axis: Any = None) -> Any:
        """Loss against size: `BudgetPath.figure`."""
        from longterm.linear_model._shown import draw_path

        check_is_fitted(self)
        return draw_path(self._points, axis)


class BudgetPathClassifier(_PathModel, BudgetLinearClassifier):
    """`BudgetLinearClassifier` with the budget chosen: many budgets in one pass, the best by progressive loss.

    Parameters
    ----------
    budgets : "auto", int or sequence of float
        The grid; a number is how many budgets `budgets_for` is to choose, "auto" is 32 of them.
    choose : {"best", "smallest"}
        The budget of the lowest progressive loss, or the one with the fewest features within one standard error of it.
    max_features : int, optional
        The best budget with at most so many non-zeros instead.
    n_jobs : int, optional
        Threads; as many as there are cores unless given.
    l1, l2, loss, rule, fit_intercept, intercept_bound, constants, beta, growth : optional
        As `BudgetLinearClassifier` has them.
    passes : int, optional
        How often `fit` goes through its rows; None as for one budget. Only the first pass is scored.
    shuffle, random_state, class_weight, warm_start : optional
        As `BudgetLinearClassifier` has them.
    predict_with : {"last", "average", "within_budget"}
        The decision in force, the mean of all decisions, or the nearest point to it within the budget.

    Notes
    -----
    Every budget's learner has one scale, scales="one": the grid tries the radii.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model import BudgetPathClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 30))
    >>> y = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + rng.standard_normal(3000) > 0
    >>> model = BudgetPathClassifier(choose="smallest", random_state=0).fit(X, y)
    >>> model.n_nonzero_, np.flatnonzero(model.coef_[0])[:3], bool(model.score(X, y) > 0.75)
    (6, array([0, 1, 2]), True)
    >>> BudgetPathClassifier(max_features=3, random_state=0).fit(X, y).n_nonzero_
    3
    """

    def __init__(
        self,
        budgets: str | int | ArrayLike = "auto",
        *,
        choose: str = "best",
        max_features: int | None = None,
        n_jobs: int | None = None,
        l1: float = 1.0,
        l2: float = 1.0,
        loss: str = "logistic",
        rule: str = "a-ftrl",
        fit_intercept: bool = True,
        intercept_bound: float | None = None,
        constants: str | Mapping[str, float] = "online",
        beta: float = 2 / 3,
        growth: float = 0.5,
        passes: int | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        class_weight: str | Mapping[Any, float] | None = None,
        warm_start: bool = False,
        predict_with: str = "last",
    ) -> None:
        self.budgets = budgets
        self.choose = choose
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.intercept_bound = intercept_bound
        self.constants = constants
        self.beta = beta
        self.growth = growth
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.predict_with = predict_with


class BudgetPathRegressor(_PathModel, BudgetLinearRegressor):
    """`BudgetLinearRegressor` with the budget chosen: many budgets in one pass, the best by progressive loss.

    Parameters
    ----------
    budgets : "auto", int or sequence of float
        The grid; a number is how many budgets `budgets_for` is to choose, "auto" is 32 of them.
    choose : {"best", "smallest"}
        The budget of the lowest progressive loss, or the one with the fewest features within one standard error of it.
    max_features : int, optional
        The best budget with at most so many non-zeros instead.
    n_jobs : int, optional
        Threads; as many as there are cores unless given.
    l1, l2, loss, loss_parameter, rule, fit_intercept, intercept_bound, constants, beta, growth : optional
        As `BudgetLinearRegressor` has them.
    passes : int, optional
        How often `fit` goes through its rows; None as for one budget. Only the first pass is scored.
    shuffle, random_state, warm_start : optional
        As `BudgetLinearRegressor` has them.
    predict_with : {"last", "average", "within_budget"}
        The decision in force, the mean of all decisions, or the nearest point to it within the budget.

    Notes
    -----
    Every budget's learner has one scale, scales="one": the grid tries the radii.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model import BudgetPathRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 30))
    >>> y = 1.0 + X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(3000)
    >>> model = BudgetPathRegressor(max_features=2, random_state=0).fit(X, y)
    >>> model.n_nonzero_, bool(model.score(X, y) > 0.9)
    (2, True)
    """

    def __init__(
        self,
        budgets: str | int | ArrayLike = "auto",
        *,
        choose: str = "best",
        max_features: int | None = None,
        n_jobs: int | None = None,
        l1: float = 1.0,
        l2: float = 1.0,
        loss: str = "squared",
        loss_parameter: float | None = None,
        rule: str = "a-ftrl",
        fit_intercept: bool = True,
        intercept_bound: float | None = None,
        constants: str | Mapping[str, float] = "online",
        beta: float = 2 / 3,
        growth: float = 0.5,
        passes: int | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        warm_start: bool = False,
        predict_with: str = "last",
    ) -> None:
        self.budgets = budgets
        self.choose = choose
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.loss_parameter = loss_parameter
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.intercept_bound = intercept_bound
        self.constants = constants
        self.beta = beta
        self.growth = growth
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
        self.predict_with = predict_with
