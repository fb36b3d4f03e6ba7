"""Linear models under a budget with River's interface (extra `river`): dictionaries in, one at a time or in frames.

Features may appear and disappear: a name gets a column when it is first learned, and memory is doubled when there are
more names than columns. What is missing from a dictionary is 0. Rounds cost what the dictionary holds.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

try:
    from river import base
    from river.utils import dataframe
except ImportError as error:
    raise ImportError("longterm.compat.river needs river: pip install 'longterm[river]'") from error

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model.evolving import EvolvingLinearLearner

__all__ = ["BudgetLinearClassifier", "BudgetLinearRegressor"]

COLUMNS = 64
"""Columns at the beginning."""
WARM = 16
"""Without a budget so many rows are kept before the first is learned: their lengths and targets set the scale."""
GENEROUS = 1000.0


Row = tuple[NDArray[np.int64], FloatArray]
"""Columns, increasing, and the values there."""


def _sorted_row(columns: Iterable[int], x: Mapping[Hashable, Any]) -> Row:
    """Return the row of a dictionary. Raise InputError for a value that is no number."""
    for name, value in x.items():
        if not isinstance(value, int | float | np.number):
            raise InputError("x", f"{name!r} is {value!r:.40}", "Give numbers: encode texts first")
    places, values = np.array(tuple(columns), dtype=np.int64), np.array(tuple(x.values()), dtype=np.float64)
    order = np.argsort(places)
    return places[order], values[order]


class _Stream:
    """What both have: names and their columns, the learner, and the rows that wait for a scale."""

    loss: str

    def __init__(
        self,
        budget: float | None = None,
        l1: float = 1.0,
        l2: float = 1.0,
        half_life: float | None = None,
        seed: int = 0,
    ) -> None:
        self.budget, self.l1, self.l2, self.half_life, self.seed = budget, l1, l2, half_life, seed
        self._columns: dict[Hashable, int] = {}
        self._learner: EvolvingLinearLearner | None = None
        self._waiting: list[tuple[dict[Hashable, float], float, float]] = []
        # the last dictionary, and the row that it is
        self._last: tuple[dict[Hashable, Any], Row] = {}, _sorted_row((), {})
        self._target_name: str | None = None

    @property
    def weights(self) -> dict[Hashable, float]:
        """The weights that are not 0, by name."""
        if self._learner is None:
            return {}
        x = self._learner.weights
        return {name: float(x[column]) for name, column in self._columns.items() if x[column] != 0}

    @property
    def intercept(self) -> float:
        """The intercept in force."""
        return self._first_guess() if self._learner is None else self._learner.intercept

    @property
    def learner(self) -> EvolvingLinearLearner | None:
        """The learner behind it, with its sums of losses and violation; None before the first row was learned."""
        return self._learner

    @property
    def _raw_memory_usage(self) -> int:
        """Bytes of what is kept. River's own walk goes on into the compiled kernels, which all models share."""
        return len(pickle.dumps(self))

    def _first_guess(self) -> float:
        raise NotImplementedError

    # --- one at a time ----------------------------------------------------------------------------------------

    def _row(self, x: Mapping[Hashable, Any], add: bool) -> Row:
        """Return columns and values. New names get a column, or are left out."""
        last, row = self._last
        if x == last:  # scored, now learned
            return row
        columns = self._columns
        try:
            found = tuple(map(columns.__getitem__, x))
        except KeyError:
            _sorted_row(range(len(x)), x)  # refused before a name is added
            if not add:  # what was never learned has a weight of 0
                known = {name: value for name, value in x.items() if name in columns}
                return _sorted_row(map(columns.__getitem__, known), known)
            for name in x:
                columns.setdefault(name, len(columns))
            self._make_room()
            found = tuple(map(columns.__getitem__, x))
        row = _sorted_row(found, x)
        self._last = dict(x), row
        return row

    def _make_room(self) -> None:
        learner = self._learner
        if learner is not None and len(self._columns) > learner.settings.dimension:
            learner.grow(self._room())

    def _room(self) -> int:
        """Columns for all names: a power of 2, so that memory is doubled seldom."""
        return max(COLUMNS, 1 << (len(self._columns) - 1).bit_length())

    def _margin(self, x: Mapping[Hashable, Any]) -> float:
        if self._learner is None:
            return self._first_guess()
        return self._learner.margin(*self._row(x, False))

    def _learn(self, x: Mapping[Hashable, Any], y: float, weight: float) -> None:
        learner = self._learner
        if learner is not None:
            learner.step(*self._row(x, True), y, weight)
            return
        if self.budget is None:
            self._row(x, add=False)  # refused now rather than later
            if not math.isfinite(y):
                raise InputError("y", f"is {y!r}", "Give finite targets")
            self._waiting.append((dict(x), y, weight))
            if len(self._waiting) == WARM:
                self._start()
            return
        self._start()
        self._learn(x, y, weight)

    def _start(self) -> None:
        budget = self._generous() if self.budget is None else self.budget
        self._learner = EvolvingLinearLearner(
            self._room(),
            budget,
            l1=self.l1,
            l2=self.l2,
            loss=self.loss,
            half_life=self.half_life,
            sparse=True,
            seed=self.seed,
        )
        waiting, self._waiting = self._waiting, []
        for x, y, weight in waiting:
            self._learner.step(*self._row(x, add=True), y, weight)

    def _generous(self) -> float:
        """A budget that will not bind: as the estimators of `longterm.linear_model` have it, of the first rows."""
        rows = [np.array([float(value) for value in x.values()]) for x, _, _ in self._waiting]
        lengths = np.array([math.sqrt(float(row @ row)) for row in rows])
        lengths = lengths[(lengths > 0) & np.isfinite(lengths)]
        radius = GENEROUS * self._spread() / (float(np.median(lengths)) if lengths.size else 1.0)
        return self.l1 * radius + 0.5 * self.l2 * radius**2

    def _spread(self) -> float:
        return 1.0

    # --- in frames --------------------------------------------------------------------------------------------

    def _matrix(self, X: Any, add: bool) -> sparse.csr_array:
        """A frame with the columns of the learner. Missing entries are features that are not there."""
        values, names = dataframe.to_numpy(X), list(X.columns)
        if add:
            for name in names:
                self._columns.setdefault(name, len(self._columns))
            self._make_room()
        inside = [k for k, name in enumerate(names) if name in self._columns]
        places = np.array([self._columns[names[k]] for k in inside], dtype=np.int32)
        order = np.argsort(places)
        rows = np.nan_to_num(values[:, inside][:, order], nan=0.0, posinf=np.inf, neginf=-np.inf)
        dimension = self._learner.settings.dimension if self._learner is not None else self._room()
        each = len(places)
        indptr = np.arange(len(rows) + 1, dtype=np.int32) * each
        made = (rows.ravel(), np.tile(places[order], len(rows)), indptr)
        return sparse.csr_array(made, shape=(len(rows), dimension))

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn the rows of a data frame, one after another: as `learn_one` would, and faster.

        Parameters
        ----------
        X : data frame
            A column for each feature; entries that are missing are features that are not there.
        y : series
            Labels or targets.
        w : float or array
            By what losses are multiplied.
        """
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
            matrix = self._matrix(X, add=True)  # before it is cut: columns may be added
            self._learner.learn(matrix[start:], labels[start:], weights[start:])

    def predict_many(self, X: Any) -> Any:
        """The labels of the rows of a data frame, or the predictions for them.

        Parameters
        ----------
        X : data frame
            Rows.

        Returns
        -------
        answers : series
            Of the kind of X.
        """
        frame = dataframe.into_frame(X)
        return dataframe.to_native_series(self._answers(self._margins(frame)), name=self._target_name, like=frame)

    def _targets(self, y: Any) -> FloatArray:
        """Labels or targets as the learner wants them."""
        return np.asarray(y, dtype=np.float64)

    def _answers(self, margins: FloatArray) -> NDArray[Any]:
        """What is predicted at these margins."""
        return margins

    def _margins(self, X: Any) -> FloatArray:
        if self._learner is None:
            return np.full(len(X), self._first_guess())
        return self._learner.margins(self._matrix(X, add=False))


class BudgetLinearClassifier(_Stream, base.MiniBatchClassifier):  # type: ignore[misc]
    """Logistic regression with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run, for River.

    A-FTRL with a mixture of scales: there is no learning rate, and a generous budget does no harm. Labels are true and
    false.

    Parameters
    ----------
    budget : float, optional
        ρ of the constraint; the intercept costs nothing. None: one that will not bind, from the first 16 rows, which
        are learned together.
    l1, l2 : float
        The weights of the two norms.
    half_life : float, optional
        After so many rows a row counts half: for streams that drift.
    seed : int
        Of no consequence for what is predicted.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from longterm.compat.river import BudgetLinearClassifier
    >>> model = preprocessing.StandardScaler() | BudgetLinearClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.44%
    """

    loss = "logistic"

    def _first_guess(self) -> float:
        positive = sum(weight for _, y, weight in self._waiting if y > 0)
        negative = sum(weight for _, y, weight in self._waiting if y < 0)
        return math.log((positive + 0.5) / (negative + 0.5))

    def learn_one(self, x: Mapping[Hashable, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            Features by name.
        y : bool
            Its label.
        w : float
            By what its loss is multiplied.
        """
        self._learn(x, 1.0 if y else -1.0, w)

    def predict_proba_one(self, x: Mapping[Hashable, Any], **kwargs: Any) -> dict[bool, float]:
        """The probabilities of both labels.

        Parameters
        ----------
        x : dict
            Features by name; names that were never learned are left out.
        **kwargs
            Not used.

        Returns
        -------
        probabilities : dict
            {False: 1 − p, True: p}.
        """
        margin = self._margin(x)
        small = math.exp(-abs(margin))
        p = 1.0 / (1.0 + small) if margin >= 0 else small / (1.0 + small)
        return {False: 1.0 - p, True: p}

    def _targets(self, y: Any) -> FloatArray:
        return np.where(np.asarray(y, dtype=bool), 1.0, -1.0)

    def _answers(self, margins: FloatArray) -> NDArray[Any]:
        return margins > 0

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of both labels, a column for each.

        Parameters
        ----------
        X : data frame
            Rows.

        Returns
        -------
        probabilities : data frame
            Of the kind of X.
        """
        frame = dataframe.into_frame(X)
        p = expit(self._margins(frame))
        return dataframe.to_native_frame({False: 1.0 - p, True: p}, like=frame)


class BudgetLinearRegressor(_Stream, base.MiniBatchRegressor):  # type: ignore[misc]
    """Least squares with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run, for River.

    Parameters
    ----------
    budget : float, optional
        ρ of the constraint; the intercept costs nothing. None: one that will not bind, from the first 16 rows, which
        are learned together.
    l1, l2 : float
        The weights of the two norms.
    half_life : float, optional
        After so many rows a row counts half: for streams that drift.
    seed : int
        Of no consequence for what is predicted.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from longterm.compat.river import BudgetLinearRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), BudgetLinearRegressor(), metrics.MAE())
    MAE: 0.280837
    """

    loss = "squared"

    def _first_guess(self) -> float:
        total = sum(weight for _, _, weight in self._waiting)
        return sum(y * weight for _, y, weight in self._waiting) / total if total > 0 else 0.0

    def _spread(self) -> float:
        targets = np.array([y for _, y, _ in self._waiting])
        return float(np.std(targets)) or float(abs(targets[0])) or 1.0

    def learn_one(self, x: Mapping[Hashable, Any], y: float, w: float = 1.0) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            Features by name.
        y : float
            Its target.
        w : float
            By what its loss is multiplied.
        """
        self._learn(x, float(y), w)

    def predict_one(self, x: Mapping[Hashable, Any]) -> float:
        """The prediction for one row.

        Parameters
        ----------
        x : dict
            Features by name; names that were never learned are left out.

        Returns
        -------
        prediction : float
            ⟨u, x⟩ + b.
        """
        return self._margin(x)
