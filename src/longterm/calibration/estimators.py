"""Online conformal prediction around fitted estimators, with the method names of MAPIE and scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.display import ReprMixin
from longterm.calibration.certificates import Bound
from longterm.calibration.intervals import Intervals, require_names
from longterm.calibration.rule import LARGEST_SCORE
from longterm.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Groups = Sequence[Iterable[str]] | None
_Row = tuple[float, tuple[str, ...]]


class _Online(ReprMixin):
    """The part that both estimators share: intervals of batches of rows."""

    def __init__(self, estimator: Any, confidence_level: float = 0.9, *, symmetric: bool = True) -> None:
        self.estimator = estimator
        self.confidence_level = confidence_level
        self._intervals = Intervals(confidence_level, symmetric=symmetric)

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

    def plot(self, *, window: int = 200, axes: Sequence[Axes] | None = None) -> Figure:
        """Draw coverage, width and the certificate; see `Intervals.plot`."""
        return self._intervals.plot(window=window, axes=axes)

    def _rows(self, predictions: FloatArray, groups: Groups) -> list[_Row]:
        remedy = "Give one list of names for each row, such as [['north'], ['south', 'new']]"
        names = [()] * len(predictions) if groups is None else [require_names(row, remedy) for row in groups]
        if len(names) != len(predictions):
            raise InputError("groups", f"has {len(names)} entries for {len(predictions)} rows", remedy)
        return list(zip(predictions.tolist(), names, strict=True))

    def _limits(self, rows: list[_Row]) -> FloatArray:
        """Return the limits (n, 2) of a batch. No round is opened and no group added."""
        intervals = self._intervals.copy()
        return np.array([(one.lower, one.upper) for one in (intervals.ask(*row) for row in rows)])

    def _tell(self, rows: list[_Row], outcomes: FloatArray) -> Self:
        centers = np.array([center for center, _ in rows])
        if outcomes.shape != centers.shape or np.any(np.abs(outcomes - centers) > LARGEST_SCORE):
            raise InputError(
                "y",
                f"has shape {outcomes.shape} or contains numbers that are too large",
                f"Give {len(rows)} finite numbers",
            )
        for interval, outcome in zip([self._intervals.ask(*row) for row in rows], outcomes.tolist(), strict=True):
            self._intervals.tell(interval, outcome)
        return self


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
    >>> from longterm.calibration.estimators import OnlineConformalRegressor
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

    def predict(self, X: Any) -> FloatArray:
        """Return the estimator's predictions, which must be finite."""
        return validate.vector("prediction", self.estimator.predict(X))

    def predict_interval(self, X: Any, *, groups: Groups = None) -> tuple[FloatArray, FloatArray]:
        """Return predictions (n,) and intervals (n, 2, 1) for rows whose outcomes are not known yet.

        `groups` has a list of names per row. Names may be new.
        """
        predictions = self.predict(X)
        return predictions, self._limits(self._rows(predictions, groups))[:, :, None]

    def update(self, X: Any, y: Any, *, groups: Groups = None) -> Self:
        """Take the outcomes of a batch; its rows count with the intervals that `predict_interval` gives them now."""
        return self._tell(self._rows(self.predict(X), groups), validate.vector("y", y))


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
        super().__init__(estimator, confidence_level)

    def predict_set(self, X: Any, *, groups: Groups = None) -> tuple[Any, Any]:
        """Return the most likely labels (n,) and the sets (n, classes, 1) as booleans."""
        scores = self._scores(X)
        thresholds = self._limits(self._rows(np.zeros(len(scores)), groups))[:, 1:]
        labels = np.asarray(self.estimator.classes_)[np.argmin(scores, axis=1)]
        return labels, (scores <= thresholds)[:, :, None]

    def update(self, X: Any, y: Any, *, groups: Groups = None) -> Self:
        """Take the labels of a batch."""
        scores, classes, labels = self._scores(X), list(self.estimator.classes_), np.asarray(y).ravel().tolist()
        unknown = [label for label in labels if label not in classes]
        if unknown or len(labels) != len(scores):
            raise InputError(
                "y",
                f"contains {(unknown or labels)[:1]}, or does not have one label for each row",
                "Give one label that the model knows for each row",
            )
        told = np.array([row[classes.index(label)] for row, label in zip(scores, labels, strict=True)])
        return self._tell(self._rows(np.zeros(len(scores)), groups), told)

    def _scores(self, X: Any) -> FloatArray:
        return 1.0 - validate.matrix("probabilities", self.estimator.predict_proba(X))
