"""Linear models under a budget, with River's interface."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base
from river.utils import dataframe
from scipy import sparse
from scipy.special import expit

from longterm._base.arrays import FloatArray
from longterm.compat.river.dictionaries import DictionaryModel


class FrameModel(DictionaryModel):
    """A linear model that also takes data frames."""

    _target_name: str | None = None

    def _matrix(self, X: Any, add: bool) -> sparse.csr_array:
        """Return a frame as a matrix with the columns of the learner; missing entries are 0."""
        values, names = dataframe.to_numpy(X), list(X.columns)
        if add:
            for name in names:
                self._columns.setdefault(name, len(self._columns))
            self._grow()
        inside = [k for k, name in enumerate(names) if name in self._columns]
        places = np.array([self._columns[names[k]] for k in inside], dtype=np.int32)
        order = np.argsort(places)
        rows = np.nan_to_num(values[:, inside][:, order], nan=0.0, posinf=np.inf, neginf=-np.inf)
        dimension = self._learner.settings.dimension if self._learner is not None else self._capacity()
        each = len(places)
        indptr = np.arange(len(rows) + 1, dtype=np.int32) * each
        entries = (rows.ravel(), np.tile(places[order], len(rows)), indptr)
        return sparse.csr_array(entries, shape=(len(rows), dimension))

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn the rows of a data frame one after another, as `learn_one` does, but faster; missing entries are 0."""
        given = dataframe.into_series(y)
        self._target_name = given.name
        X, labels = dataframe.into_frame(X), self._targets(given.to_numpy())
        weights = np.broadcast_to(np.asarray(w, dtype=np.float64), labels.shape)
        start = 0
        if self._learner is None:
            rows, names = dataframe.to_numpy(X), list(X.columns)
            while start < len(labels) and self._learner is None:
                here = {name: value for name, value in zip(names, rows[start].tolist(), strict=True) if value == value}
                self._learn(here, float(labels[start]), float(weights[start]))
                start += 1
        if start < len(labels) and self._learner is not None:
            matrix = self._matrix(X, add=True)  # before slicing: columns may be added
            self._learner.learn(matrix[start:], labels[start:], weights[start:])

    def predict_many(self, X: Any) -> Any:
        """Return the predictions for the rows of a data frame."""
        frame = dataframe.into_frame(X)
        return dataframe.to_native_series(self._predictions(self._margins(frame)), name=self._target_name, like=frame)

    def _targets(self, y: Any) -> FloatArray:
        """Return labels ±1 or targets."""
        return np.asarray(y, dtype=np.float64)

    def _predictions(self, margins: FloatArray) -> NDArray[Any]:
        """Return the predictions for these margins."""
        return margins

    def _margins(self, X: Any) -> FloatArray:
        if self._learner is None:
            return np.full(len(X), self._initial_margin())
        return self._learner.margins(self._matrix(X, add=False))


class LinearClassifierStream(FrameModel, base.MiniBatchClassifier):  # type: ignore[misc]
    """Classify River's rows with a logistic regression that keeps a budget on its size.

    The budget is l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    The rule is A-FTRL with a mixture of scales. There is no learning rate, and a generous budget does no harm. Labels
    are True and False.

    Parameters
    ----------
    budget : float, optional
        ρ of the constraint; the intercept is free. None: a budget that will not bind, computed from the first 16 rows,
        which are learned together.
    l1, l2 : float
        The weights of the two norms.
    half_life : float, optional
        After this many rows the weight of a row is halved: for streams that drift.
    seed : int
        The seed of the learner's average, which does not change predictions.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from longterm.compat.river import LinearClassifierStream
    >>> model = preprocessing.StandardScaler() | LinearClassifierStream()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.44%
    """

    loss = "logistic"

    def learn_one(self, x: Mapping[Hashable, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row."""
        self._learn(x, 1.0 if y else -1.0, w)

    def predict_proba_one(self, x: Mapping[Hashable, Any], **kwargs: Any) -> dict[bool, float]:
        """Return the probabilities of both labels."""
        p = float(expit(self._margin(x)))
        return {False: 1.0 - p, True: p}

    def _targets(self, y: Any) -> FloatArray:
        return np.where(np.asarray(y, dtype=bool), 1.0, -1.0)

    def _predictions(self, margins: FloatArray) -> NDArray[Any]:
        return margins > 0

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probabilities of both labels, a column for each."""
        frame = dataframe.into_frame(X)
        p = expit(self._margins(frame))
        return dataframe.to_native_frame({False: 1.0 - p, True: p}, like=frame)


class LinearRegressorStream(FrameModel, base.MiniBatchRegressor):  # type: ignore[misc]
    """Predict numbers from River's rows with a linear model that keeps a budget on its size.

    The budget of the least-squares model is l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    Parameters
    ----------
    budget, l1, l2, half_life, seed : optional
        As in `LinearClassifierStream`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from longterm.compat.river import LinearRegressorStream
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), LinearRegressorStream(), metrics.MAE())
    MAE: 0.280837
    """

    loss = "squared"

    def _initial_margin(self) -> float:
        total = sum(weight for _, _, weight in self._buffer)
        return sum(y * weight for _, y, weight in self._buffer) / total if total > 0 else 0.0

    def _target_spread(self) -> float:
        targets = np.array([y for _, y, _ in self._buffer])
        return float(np.std(targets)) or float(abs(targets[0])) or 1.0

    def learn_one(self, x: Mapping[Hashable, Any], y: float, w: float = 1.0) -> None:
        """Learn one row."""
        self._learn(x, float(y), w)

    def predict_one(self, x: Mapping[Hashable, Any]) -> float:
        """Return the prediction for one row."""
        return self._margin(x)
