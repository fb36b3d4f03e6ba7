"""Linear models under a budget, and prediction intervals, with River's interface (extra `river`).

Rows are dictionaries, or data frames. Features may appear and disappear: a name gets a column when it is first learned,
and the number of columns is doubled when there are more names. A missing feature is 0. A round costs as much as the
dictionary has entries.
"""

from __future__ import annotations

import math
import pickle
from array import array
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from longterm.errors import InputError, missing_extra

try:
    from river import base
    from river.conf.interval import Interval
    from river.utils import dataframe
except ImportError as error:
    raise missing_extra("longterm.compat.river needs river", "river") from error

from longterm._arrays import FloatArray
from longterm.calibration import Intervals
from longterm.linear_model.evolving import EvolvingLinearLearner

__all__ = ["BudgetLinearClassifier", "BudgetLinearRegressor", "OnlineConformal"]

FIRST_COLUMNS = 64
"""The number of columns at the beginning."""
BUFFERED_ROWS = 16
"""Without a budget, this many rows are buffered before the first is learned: they determine the budget."""
GENEROUS_RADIUS = 1000.0
"""The radius without a budget, for rows of length 1 and targets with a standard deviation of 1."""


Row = tuple[NDArray[np.int64], FloatArray]
"""Columns, increasing, and the values there."""


def _sorted_row(columns: Collection[int], x: Mapping[Hashable, Any]) -> Row:
    """Return the row of a dictionary. Raise InputError for a value that is no number."""
    try:
        values = np.frombuffer(array("d", x.values()))
    except TypeError:
        name = next(name for name, value in x.items() if not isinstance(value, int | float | np.number))
        raise InputError("x", f"{name!r} is {x[name]!r:.40}", "Give numbers: encode texts first") from None
    places = np.fromiter(columns, np.int64, len(columns))
    order = np.argsort(places)
    return places[order], values[order]


class _RiverModel:
    """The base of both models: the columns of the names, the learner, and the buffered rows."""

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
        self._buffer: list[tuple[dict[Hashable, float], float, float]] = []
        # River scores a row and then learns it: the last dictionary is kept with its row.
        self._last: tuple[dict[Hashable, Any], Row] = {}, _sorted_row((), {})
        self._target_name: str | None = None

    @property
    def weights(self) -> dict[Hashable, float]:
        """The non-zero weights by name."""
        if self._learner is None:
            return {}
        x = self._learner.weights
        return {name: float(x[column]) for name, column in self._columns.items() if x[column] != 0}

    @property
    def intercept(self) -> float:
        """The intercept in force."""
        return self._initial_margin() if self._learner is None else self._learner.intercept

    @property
    def learner(self) -> EvolvingLinearLearner | None:
        """The learner, with its sums of losses and violations; None before the first row is learned."""
        return self._learner

    @property
    def _raw_memory_usage(self) -> int:
        """The size of the pickled model in bytes; River's default would count the compiled kernels, too."""
        return len(pickle.dumps(self))

    def _initial_margin(self) -> float:
        """Return the margin that predicts before the first row is learned."""
        raise NotImplementedError

    # --- one at a time ----------------------------------------------------------------------------------------

    def _row(self, x: Mapping[Hashable, Any], add: bool) -> Row:
        """Return the row; new names get a column if `add`, and are left out otherwise."""
        last, row = self._last
        if x == last:
            return row
        columns = self._columns
        try:
            found = tuple(map(columns.__getitem__, x))
        except KeyError:
            _sorted_row(range(len(x)), x)  # raises before a name is added
            if not add:  # a name that was never learned has weight 0
                known = {name: value for name, value in x.items() if name in columns}
                return _sorted_row([columns[name] for name in known], known)
            for name in x:
                columns.setdefault(name, len(columns))
            self._grow()
            found = tuple(map(columns.__getitem__, x))
        row = _sorted_row(found, x)
        self._last = dict(x), row
        return row

    def _grow(self) -> None:
        """Give the learner columns for all names."""
        learner = self._learner
        if learner is not None and len(self._columns) > learner.settings.dimension:
            learner.grow(self._capacity())

    def _capacity(self) -> int:
        """Return a number of columns for all names, a power of 2."""
        return max(FIRST_COLUMNS, 1 << (len(self._columns) - 1).bit_length())

    def _margin(self, x: Mapping[Hashable, Any]) -> float:
        if self._learner is None:
            return self._initial_margin()
        return self._learner.margin(*self._row(x, False))

    def _learn(self, x: Mapping[Hashable, Any], y: float, weight: float) -> None:
        learner = self._learner
        if learner is not None:
            learner.step(*self._row(x, True), y, weight)
            return
        if self.budget is None:
            self._row(x, add=False)  # raises now if a value is no number
            if not math.isfinite(y):
                raise InputError("y", f"is {y!r}", "Give finite targets")
            self._buffer.append((dict(x), y, weight))
            if len(self._buffer) == BUFFERED_ROWS:
                self._start()
            return
        self._start()
        self._learn(x, y, weight)

    def _start(self) -> None:
        budget = self._generous_budget() if self.budget is None else self.budget
        self._learner = EvolvingLinearLearner(
            self._capacity(),
            budget,
            l1=self.l1,
            l2=self.l2,
            loss=self.loss,
            half_life=self.half_life,
            sparse=True,
            seed=self.seed,
        )
        buffered, self._buffer = self._buffer, []
        for x, y, weight in buffered:
            self._learner.step(*self._row(x, add=True), y, weight)

    def _generous_budget(self) -> float:
        """Return a budget that will not bind, from the lengths and targets of the buffered rows."""
        rows = [np.array([float(value) for value in x.values()]) for x, _, _ in self._buffer]
        lengths = np.array([math.sqrt(float(row @ row)) for row in rows])
        lengths = lengths[(lengths > 0) & np.isfinite(lengths)]
        radius = GENEROUS_RADIUS * self._target_spread() / (float(np.median(lengths)) if lengths.size else 1.0)
        return self.l1 * radius + 0.5 * self.l2 * radius**2

    def _target_spread(self) -> float:
        """Return the unit of the targets; 1 for classes."""
        return 1.0

    # --- in frames --------------------------------------------------------------------------------------------

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
        """Learn the rows of a data frame one after another, as `learn_one` does, but faster.

        Parameters
        ----------
        X : data frame
            A column for each feature; missing entries are 0.
        y : series
            Labels or targets.
        w : float or array
            Factors for the losses.
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
            matrix = self._matrix(X, add=True)  # before slicing: columns may be added
            self._learner.learn(matrix[start:], labels[start:], weights[start:])

    def predict_many(self, X: Any) -> Any:
        """Return the predictions for the rows of a data frame.

        Parameters
        ----------
        X : data frame
            Rows.

        Returns
        -------
        predictions : series
            Labels or numbers, a series of the same library as X.
        """
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


class BudgetLinearClassifier(_RiverModel, base.MiniBatchClassifier):  # type: ignore[misc]
    """Logistic regression with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run, for River.

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
    >>> from longterm.compat.river import BudgetLinearClassifier
    >>> model = preprocessing.StandardScaler() | BudgetLinearClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.44%
    """

    loss = "logistic"

    def _initial_margin(self) -> float:
        positive = sum(weight for _, y, weight in self._buffer if y > 0)
        negative = sum(weight for _, y, weight in self._buffer if y < 0)
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
            A factor for its loss.
        """
        self._learn(x, 1.0 if y else -1.0, w)

    def predict_proba_one(self, x: Mapping[Hashable, Any], **kwargs: Any) -> dict[bool, float]:
        """Return the probabilities of both labels.

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

    def _predictions(self, margins: FloatArray) -> NDArray[Any]:
        return margins > 0

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probabilities of both labels, a column for each.

        Parameters
        ----------
        X : data frame
            Rows.

        Returns
        -------
        probabilities : data frame
            A data frame of the same library as X.
        """
        frame = dataframe.into_frame(X)
        p = expit(self._margins(frame))
        return dataframe.to_native_frame({False: 1.0 - p, True: p}, like=frame)


class BudgetLinearRegressor(_RiverModel, base.MiniBatchRegressor):  # type: ignore[misc]
    """Least squares with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run, for River.

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
    >>> from river import datasets, evaluate, metrics
    >>> from longterm.compat.river import BudgetLinearRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), BudgetLinearRegressor(), metrics.MAE())
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
        """Learn one row.

        Parameters
        ----------
        x : dict
            Features by name.
        y : float
            Its target.
        w : float
            A factor for its loss.
        """
        self._learn(x, float(y), w)

    def predict_one(self, x: Mapping[Hashable, Any]) -> float:
        """Return the prediction for one row.

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


class OnlineConformal(base.Wrapper, base.Regressor):  # type: ignore[misc]
    """Prediction intervals around a River regressor that keep their coverage on every sequence.

    Parameters
    ----------
    regressor : base.Regressor
        It predicts a row before it learns the row.
    confidence_level : float
        Nominal coverage, overall and in every group.
    groups : callable, optional
        A function of a row that returns the names of its groups. Names may be new.
    symmetric : bool
        One threshold for |y − prediction|, or one for each side.

    Examples
    --------
    >>> from river import datasets, linear_model, preprocessing
    >>> from longterm.compat.river import OnlineConformal
    >>> regressor = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    >>> model, inside = OnlineConformal(regressor, confidence_level=0.9), []
    >>> for x, y in datasets.TrumpApproval():
    ...     inside.append(y in model.predict_one(x, with_interval=True))
    ...     model.learn_one(x, y)
    >>> f"{sum(inside) / len(inside):.2f}"
    '0.90'
    """

    def __init__(
        self,
        regressor: Any,
        confidence_level: float = 0.9,
        groups: Callable[[Mapping[Hashable, Any]], Iterable[str]] | None = None,
        symmetric: bool = True,
    ) -> None:
        self.regressor, self.confidence_level = regressor, confidence_level
        self.groups, self.symmetric = groups, symmetric
        self.intervals = Intervals(confidence_level, symmetric=symmetric)

    @property
    def _wrapped_model(self) -> Any:
        return self.regressor

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing

        yield {"regressor": preprocessing.StandardScaler() | linear_model.LinearRegression()}

    def predict_one(self, x: Mapping[Hashable, Any], with_interval: bool = False, **kwargs: Any) -> Any:
        """Return the prediction for one row, or its interval.

        Parameters
        ----------
        x : dict
            Features by name.
        with_interval : bool
            Return a `river.conf` Interval. It is infinite for the first rows.
        **kwargs
            For the regressor.

        Returns
        -------
        prediction : float or Interval
        """
        prediction = self.regressor.predict_one(x, **kwargs)
        if not with_interval:
            return prediction
        interval = self.intervals.ask(prediction, self._names(x))
        self.intervals.skip(interval)
        return Interval(interval.lower, interval.upper)

    def learn_one(self, x: Mapping[Hashable, Any], y: float, **kwargs: Any) -> None:
        """Learn one row. It counts with the interval that `predict_one` gives it now.

        Parameters
        ----------
        x : dict
            Features by name.
        y : float
            Its target.
        **kwargs
            For the regressor.
        """
        interval = self.intervals.ask(self.regressor.predict_one(x), self._names(x))
        self.intervals.tell(interval, y)
        self.regressor.learn_one(x, y, **kwargs)

    def _names(self, x: Mapping[Hashable, Any]) -> Iterable[str]:
        return () if self.groups is None else self.groups(x)
