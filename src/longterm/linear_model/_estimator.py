"""The base of the scikit-learn estimators: how their learners are made and trained.

`coef_` and the models behind it are computed on access, so that `partial_fit` on sparse rows never touches all columns.
An error is raised before anything is learned, and leaves the estimator unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._attributes import MODELS
from longterm.linear_model._budget import generous_budget, warn_about_budget
from longterm.linear_model._estimator_files import StoredModel
from longterm.linear_model._multiplier import budget_multiplier
from longterm.linear_model._passes import RecentAverage, TrainingRows, best_passes, learn_passes, possible_passes
from longterm.linear_model._rows import IN_ORDER
from longterm.linear_model._selection import largest_features, restricted_rows
from longterm.linear_model._summary import SummarisedModel
from longterm.linear_model.evolving import EvolvingLinearLearner
from longterm.linear_model.kernels.losses import CODES, OF_TWO_CLASSES
from longterm.linear_model.streaming import BudgetLinearLearner
from longterm.storage.one_thread import exclusive

PLAIN_TYPES = frozenset({np.ndarray, sparse.csr_array, sparse.csr_matrix})
DENSE_SHARE, NARROW = 0.25, 512
"""A sparse matrix is centred if so many of its entries are stored, or if it has at most so many columns."""


def can_be_centred(X: Any) -> bool:
    """Return whether a matrix may be centred: an array, or a sparse matrix that is narrow or has many entries."""
    is_sparse: bool = sparse.issparse(X)
    return not is_sparse or bool(X.shape[1] <= NARROW or X.nnz >= DENSE_SHARE * math.prod(X.shape))


class BudgetLinearModel(StoredModel, SummarisedModel, BaseEstimator):  # type: ignore[misc]
    """The base of `BudgetLinearClassifier` and `BudgetLinearRegressor`."""

    n_features_in_: int
    budget: float | None
    l1: float
    l2: float
    loss: str
    loss_parameter: float | None = None
    """The regressor's; losses of two classes have none."""
    rule: str
    fit_intercept: bool
    max_features: int | None
    scale_features: bool | None = None
    half_life: float | None = None
    passes: int | None
    shuffle: bool
    random_state: Any
    predict_with: str

    def _keep(self, parameters: dict[str, Any]) -> None:
        """Set the parameters of a constructor, its `locals()`, as attributes, unchanged, as scikit-learn asks."""
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)

    # --- learners ---------------------------------------------------------------------------------------------

    def _target_spread(self, targets: Sequence[FloatArray]) -> float:
        """Return the unit of the targets; 1 for classes."""
        return 1.0

    @property
    def _scales(self) -> bool:
        """True if features are scaled."""
        return self.half_life is None if self.scale_features is None else bool(self.scale_features)

    def _make_learner(
        self, X: Any, rows: TrainingRows, seed: int, *, stream: bool, budget: float | None, max_features: int | None
    ) -> BudgetLinearLearner:
        """Return a new learner for rows like these, its features scaled by them unless they are a stream."""
        rule = "penalised-ftrl" if max_features is not None and self.rule == "a-ftrl" else self.rule
        if budget is None and not self._scales:
            budget = generous_budget(rows, self._target_spread(rows.targets), self.l1, self.l2)
        kind: Any = BudgetLinearLearner
        if self.half_life is not None:
            kind = partial(EvolvingLinearLearner, half_life=self.half_life)
        learner: BudgetLinearLearner = kind(
            X.shape[1],
            budget,
            l1=self.l1,
            l2=self.l2,
            loss=self.loss,
            loss_parameter=self.loss_parameter,
            rule=rule,
            fit_intercept=self.fit_intercept,
            max_features=max_features,
            scale_features=self._scales,
            sparse=rows.block.is_sparse and rule == "a-ftrl" and not (self._scales and can_be_centred(X)),
            seed=seed,
        )
        if self._scales and not stream:
            learner.scale_by(rows.block)
        return learner

    def _require_parameters(self) -> None:
        """Raise if a parameter that no learner checks makes no sense."""
        if self.predict_with not in MODELS:
            raise InputError(
                "predict_with", f"{self.predict_with!r} is not known", f"Choose one of {', '.join(MODELS)}"
            )
        if self.max_features is not None:
            validate.count("max_features", self.max_features)

    def _start(self, X: Any, rows: TrainingRows, random: Any, *, stream: bool) -> None:
        """Make new learners, one for each kind of targets."""
        self._require_parameters()
        self._averages = []
        self._learners = [
            self._make_learner(X, rows, int(seed), stream=stream, budget=self._budget(), max_features=self.max_features)
            for seed in random.randint(2**31, size=len(rows.targets))
        ]

    def _budget(self) -> float | None:
        """Return the budget to learn with, None for none."""
        return self.budget

    # --- learning ---------------------------------------------------------------------------------------------

    @exclusive
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows in `passes` passes, and predict with the average of the decisions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.
        y : array-like of shape (n,)
            Their classes or targets.
        sample_weight : array-like of shape (n,), optional
            Factors for the losses of the rows.
        """
        with self._unchanged_on_errors():
            self._require_loss()
            X, rows = self._training_rows(X, y, sample_weight, reset=True)
            self._fit_rows(X, rows, check_random_state(self.random_state))
        return self

    def _learn_once(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """Learn the rows once, in their order, with new learners in the first call."""
        with self._unchanged_on_errors():
            first = not hasattr(self, "_learners")
            if first:
                self._require_loss()
            X, rows = self._training_rows(X, y, sample_weight, reset=first, classes=classes)
            if first:
                self._start(X, rows, check_random_state(self.random_state), stream=True)
            self._learn_stream(rows)
        return self

    def _training_rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, classes: Any = None
    ) -> tuple[Any, TrainingRows]:
        """Return X, validated, and its rows. `classes` are all classes of a stream."""
        raise NotImplementedError

    def _require_loss(self) -> None:
        classifies = is_classifier(self)
        names = [name for name, code in CODES.items() if (code in OF_TWO_CLASSES) == classifies]
        if self.loss not in names:
            what = f"{self.loss!r} is not a loss of {'classes' if classifies else 'targets'}"
            raise InputError("loss", what, f"Choose one of {', '.join(names)}")

    def _margins(self, X: Any) -> FloatArray:
        """Return ⟨u, x⟩ + b for each row and learner."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        weights, intercepts = self._chosen_models()
        return np.asarray(safe_sparse_dot(X, weights.T, dense_output=True) + intercepts)

    def _learn_stream(self, rows: TrainingRows) -> None:
        """Learn the rows once, in their order."""
        for learner, labels in zip(self._learners, rows.targets, strict=True):
            learner.require(rows.block, labels, rows.weights, IN_ORDER)
        for learner, labels in zip(self._learners, rows.targets, strict=True):
            learner.learn_checked(rows.block, labels, rows.weights)
        self._reset_models(fitted=False)

    def _reset_models(self, *, fitted: bool) -> None:
        """Forget what was computed from the learners before they learned more."""
        self._models_cache, self._multipliers, self._fitted = {}, [], fitted

    def _fit_rows(self, X: Any, rows: TrainingRows, random: Any) -> None:
        """Learn the rows in several passes, average the decisions, and find what the budget is worth."""
        if len(rows.weights) and not rows.weights.any():
            raise InputError("sample_weight", "has weights of zero only", "Give at least one positive weight")
        self._start(X, rows, random, stream=False)
        for learner, labels in zip(self._learners, rows.targets, strict=True):
            learner.require(rows.block, labels, rows.weights)
        if self.half_life is not None:  # the order of the rows is that of time
            for _ in range(self._given_passes(1)):
                self._learn_stream(rows)
            return
        count = rows.block.count
        passes = self._given_passes(0) or self._choose_passes(X, rows, random)
        orders = [random.permutation(count) if self.shuffle else np.arange(count) for _ in range(passes)]
        self._averages = [RecentAverage() for _ in self._learners]
        self._reset_models(fitted=True)
        for learner, average, labels in zip(self._learners, self._averages, rows.targets, strict=True):
            own = self._selected_rows(X, rows, labels, orders, learner)
            learn_passes(learner, average, own, labels, orders)
            self._multipliers.append(budget_multiplier(learner, X, labels, rows.weights, average.model(learner)))
        warn_about_budget(self._learners, rows, given=self.budget is not None)

    def _given_passes(self, default: int) -> int:
        return default if self.passes is None else validate.count("passes", self.passes)

    def _choose_passes(self, X: Any, rows: TrainingRows, random: Any) -> int:
        """Return the number of passes with the least loss on rows that were left out, or most where order matters."""
        if not self.shuffle:
            return possible_passes(rows.block.count)[-1]
        new = self._make_learner(X, rows, 0, stream=False, budget=self._budget(), max_features=None)
        return best_passes(new, rows, random)

    def _selected_rows(
        self,
        X: Any,
        rows: TrainingRows,
        labels: FloatArray,
        orders: list[NDArray[np.int64]],
        learner: BudgetLinearLearner,
    ) -> TrainingRows:
        """Return the rows with at most `max_features` features: those that a model of all features weighs most."""
        if self.max_features is None or self.max_features >= X.shape[1]:
            return rows
        full, average = (
            self._make_learner(X, rows, 0, stream=False, budget=self._budget(), max_features=None),
            RecentAverage(),
        )
        learn_passes(full, average, rows, labels, orders)
        chosen = largest_features(full, average.model(full)[0], self.max_features)
        return TrainingRows(restricted_rows(rows.block, chosen, learner), rows.targets, rows.weights)

    # --- input ------------------------------------------------------------------------------------------------

    def _validated(self, X: Any, y: Any, *, reset: bool, **options: Any) -> tuple[Any, Any]:
        """Return X and y as scikit-learn's checks return them; `row_block` looks for NaN and infinity."""
        if not reset and self._is_plain(X) and type(y) is np.ndarray and y.shape == (X.shape[0],):
            return X, y
        wanted = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        X, y = validate_data(self, X, y, reset=reset, ensure_all_finite=False, **wanted, **options)
        return X, y

    def _is_plain(self, X: Any) -> bool:
        """Return whether scikit-learn's checks would return X unchanged: they take longer than learning a row."""
        if hasattr(self, "feature_names_in_") or type(X) not in PLAIN_TYPES:
            return False
        fits = X.ndim == 2 and X.shape[0] > 0 and X.shape[1] == self.n_features_in_
        return bool(fits and (X.dtype == np.float64 or X.dtype == np.float32))

    @contextmanager
    def _unchanged_on_errors(self) -> Iterator[None]:
        """Take back every attribute that was set before an exception."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learners")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        """Return a copy of the state, for pickles and copies: it is read after the lock is released."""
        return deepcopy(super().__getstate__())
