"""Online conformal prediction around fitted estimators, in the words of MAPIE and scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from longterm._arrays import FloatArray
from longterm._display import ReprMixin
from longterm.calibration.certificates import Bound
from longterm.calibration.intervals import Interval, Intervals
from longterm.calibration.rule import Asked
from longterm.errors import InputError

Groups = Sequence[Iterable[str]] | None


class _Online(ReprMixin):
    """State shared by the two estimators: intervals over the scores of a fitted estimator."""

    def __init__(self, estimator: Any, confidence_level: float, symmetric: bool) -> None:
        self.estimator = estimator
        self._intervals = Intervals(confidence_level, symmetric=symmetric)

    @property
    def confidence_level(self) -> float:
        """Nominal coverage."""
        return self._intervals.confidence_level

    @property
    def coverage_(self) -> dict[str, float]:
        """Share of outcomes covered so far, overall (key "") and by group."""
        return self._intervals.coverage

    @property
    def error_(self) -> dict[str, float]:
        """Misses minus their nominal number, overall (key "") and by group."""
        return self._intervals.error

    @property
    def certificate_(self) -> Bound:
        """Limits of `error_` that hold on every sequence."""
        return self._intervals.bound()

    @staticmethod
    def _groups(groups: Groups, rows: int) -> Sequence[Iterable[str]]:
        if groups is None:
            return [()] * rows
        if len(groups) != rows:
            raise InputError("groups", f"has {len(groups)} entries for {rows} rows", "Give a list of names per row")
        return groups


class OnlineConformalRegressor(_Online):
    """Prediction intervals around a fitted regressor that keep their coverage on every sequence.

    Parameters
    ----------
    estimator : object
        Anything with `predict(X)`. It is not fitted here; refit it whenever you like.
    confidence_level : float
        Nominal coverage.
    symmetric : bool
        One threshold for |y − prediction|, or one for each side.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.calibration import OnlineConformalRegressor
    >>> class Mean:
    ...     def predict(self, X):
    ...         return np.zeros(len(X))
    >>> rng = np.random.default_rng(0)
    >>> model = OnlineConformalRegressor(Mean(), confidence_level=0.9)
    >>> for _ in range(200):
    ...     X, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    ...     prediction, interval = model.predict_interval(X)
    ...     _ = model.update(X, y)
    >>> interval.shape, bool(abs(model.coverage_[""] - 0.9) < 0.02)
    ((5, 2, 1), True)
    """

    def __init__(self, estimator: Any, confidence_level: float = 0.9, *, symmetric: bool = True) -> None:
        super().__init__(estimator, confidence_level, symmetric)

    def predict(self, X: Any) -> FloatArray:
        """Return the estimator's predictions."""
        return np.asarray(self.estimator.predict(X), dtype=np.float64)

    def predict_interval(self, X: Any, *, groups: Groups = None) -> tuple[FloatArray, FloatArray]:
        """Return predictions (n,) and intervals (n, 2, 1) for rows whose outcomes are not known yet.

        Parameters
        ----------
        X : array (n, d)
        groups : sequence of n lists of names, optional
            Groups that each row belongs to. Names may be new.
        """
        predictions = self.predict(X)
        asked = self._ask(predictions, groups)
        for one in asked:
            self._intervals.skip(one)
        return predictions, np.array([[[one.lower], [one.upper]] for one in asked]).reshape(len(predictions), 2, 1)

    def update(self, X: Any, y: Any, *, groups: Groups = None) -> Self:
        """Take the outcomes of a batch; its rows count with the intervals that `predict_interval` gives them now."""
        predictions, outcomes = self.predict(X), np.asarray(y, dtype=np.float64)
        if outcomes.shape != predictions.shape:
            raise InputError("y", f"has shape {outcomes.shape}", f"Give one outcome per row, {predictions.shape}")
        if not np.all(np.isfinite(outcomes)):
            raise InputError("y", "holds NaN or infinity", "Leave out the rows without an outcome")
        for interval, outcome in zip(self._ask(predictions, groups), outcomes, strict=True):
            self._intervals.tell(interval, float(outcome))
        return self

    def _ask(self, predictions: FloatArray, groups: Groups) -> list[Interval]:
        rows = self._groups(groups, len(predictions))
        return [self._intervals.ask(float(p), names) for p, names in zip(predictions, rows, strict=True)]


class OnlineConformalClassifier(_Online):
    """Prediction sets around a fitted classifier that keep their coverage on every sequence.

    The score of a label is 1 − its predicted probability, and the set holds the labels with at most the threshold.

    Parameters
    ----------
    estimator : object
        Anything with `predict_proba(X)` and `classes_`.
    confidence_level : float
        Nominal coverage.
    """

    def __init__(self, estimator: Any, confidence_level: float = 0.9) -> None:
        super().__init__(estimator, confidence_level, symmetric=True)

    def predict_set(self, X: Any, *, groups: Groups = None) -> tuple[Any, Any]:
        """Return the most likely labels (n,) and the sets (n, classes, 1) as booleans."""
        scores = self._scores(X)
        thresholds = np.array([float(one.threshold) for one in self._ask(len(scores), groups)])
        labels = np.asarray(self.estimator.classes_)[np.argmin(scores, axis=1)]
        return labels, (scores <= thresholds[:, None])[:, :, None]

    def update(self, X: Any, y: Any, *, groups: Groups = None) -> Self:
        """Take the labels of a batch."""
        scores, classes, labels = self._scores(X), list(self.estimator.classes_), np.asarray(y)
        unknown = [label for label in labels.tolist() if label not in classes]
        if unknown or len(labels) != len(scores):
            raise InputError("y", f"{unknown[:1] or labels.shape} does not fit", "Give one known label per row")
        rule = self._intervals.rule
        for one, row, label in zip(self._ask(len(scores), groups), scores, labels.tolist(), strict=True):
            rule = self._intervals.rule
            self._intervals.state = rule.tell(
                self._intervals.state, rule.with_all_groups(one), row[classes.index(label)]
            )
        return self

    def _scores(self, X: Any) -> FloatArray:
        return 1.0 - np.asarray(self.estimator.predict_proba(X), dtype=np.float64)

    def _ask(self, rows: int, groups: Groups) -> list[Asked]:
        asked = [self._intervals.ask(0.0, names) for names in self._groups(groups, rows)]
        for one in asked:
            self._intervals.skip(one)
        return [one.asked for one in asked]
