"""The regularised leader of rows that are all known: what `fit` mixes with the average of its rounds.

FTRL's decision minimises the sum of *linearised* losses and ½c‖x‖², with a curvature c that the mixture of scales finds
on the way. Where all rows are known, losses need not be linearised: for a strength λ

    x_λ = argmin over x, b of  Σ ω_i f_i(⟨ũ_i, x⟩ + b) + ½ λ ω̄ ‖x‖²,      ω̄ the mean weight,

ũ the rows as the learner sees them, centred and scaled, so that λ has no unit but that of the loss; the intercept costs
nothing, as everywhere. It is found by L-BFGS. Few passes over the rows are another kind of regularisation: better where
classes are many small groups (sector), worse where many weak features add up (a sparse web set, 7 to 15 % behind).
`_fit` finds how strong, in which units, and how much of each.

Losses of many rows at once, given their scores, are those of the rounds (`kernels.losses`, `losses.Softmax`): sums,
slopes, and constant scores to begin with. No weights are weights of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from longterm._arrays import FloatArray
from longterm.linear_model._feature_scale import KNOWN_POWER, FeatureScale
from longterm.linear_model._rows import RowBlock
from longterm.linear_model.kernels.losses import LOGISTIC, OF_TWO_CLASSES, WITH_KINKS
from longterm.linear_model.kernels.score import losses_kernel, slopes_kernel

PRECISION, MOST_STEPS, MEMORY = 1e-5, 100, 10
"""L-BFGS ends where a step gains less than this share of the loss at the start, or after so many steps; for the answer
a tenth of it."""

MOST_ENTRIES = 2**24
"""Of rows that hold more numbers, one pass is enough, and a leader would take a minute."""


class RowLosses(Protocol):
    """What `Leader` and the choice among models ask of a loss."""

    @property
    def is_smooth(self) -> bool:
        """Whether it has a gradient everywhere."""

    @property
    def is_logarithm(self) -> bool:
        """Whether it is minus the logarithm of a probability."""

    @property
    def is_of_targets(self) -> bool:
        """Whether it is one of numbers, and not of classes."""

    def total(self, scores: FloatArray, labels: FloatArray, weights: FloatArray) -> float:
        """The sum of the weighted losses."""

    def slopes(self, scores: FloatArray, labels: FloatArray, weights: FloatArray) -> FloatArray:
        """Their derivatives by the scores, in the scores' shape."""

    def constant(self, labels: FloatArray, weights: FloatArray) -> FloatArray:
        """Scores, one for each column, that suit these labels if all rows have the same."""


@dataclass(frozen=True)
class MarginLosses:
    """Losses of one score a row, by their number."""

    code: int
    parameter: float

    @property
    def is_smooth(self) -> bool:
        """Hinge and quantile have kinks."""
        return self.code not in WITH_KINKS

    @property
    def is_logarithm(self) -> bool:
        """The logistic loss is."""
        return self.code == LOGISTIC

    @property
    def is_of_targets(self) -> bool:
        """Those of two classes are not."""
        return self.code not in OF_TWO_CLASSES

    def total(self, scores: FloatArray, labels: FloatArray, weights: FloatArray) -> float:
        """The sum of the weighted losses."""
        return float(losses_kernel()(self.code, self.parameter, scores, labels, weights, 0.0))

    def slopes(self, scores: FloatArray, labels: FloatArray, weights: FloatArray) -> FloatArray:
        """Their derivatives by the scores."""
        made = np.empty(len(scores))
        slopes_kernel()(self.code, self.parameter, scores, labels, weights, made, 0.0)
        return made

    def constant(self, labels: FloatArray, weights: FloatArray) -> FloatArray:
        """The log-odds of the classes, for other losses of two classes 0; the mean of the targets."""
        mean = float(np.average(labels, weights=weights if len(weights) and weights.any() else None))
        if self.code not in OF_TWO_CLASSES:
            return np.array([mean])
        mean = min(max(mean, -1 + 1 / len(labels)), 1 - 1 / len(labels))
        return np.array([2 * np.arctanh(mean) if self.code == LOGISTIC else 0.0])


@dataclass(frozen=True)
class SoftmaxLosses:
    """Losses of a score for each of K classes; labels are the numbers of classes."""

    classes: int
    is_smooth = True
    is_logarithm = True
    is_of_targets = False

    def total(self, scores: FloatArray, labels: FloatArray, weights: FloatArray) -> float:
        """The sum of the weighted losses."""
        losses = -log_softmax(scores, axis=1)[np.arange(len(labels)), labels.astype(np.intp)]
        return float(losses @ weights if len(weights) else losses.sum())

    def slopes(self, scores: FloatArray, labels: FloatArray, weights: FloatArray) -> FloatArray:
        """Their derivatives by the scores, shape (n, K)."""
        made: FloatArray = softmax(scores, axis=1)
        made[np.arange(len(labels)), labels.astype(np.intp)] -= 1.0
        return made * weights[:, None] if len(weights) else made

    def constant(self, labels: FloatArray, weights: FloatArray) -> FloatArray:
        """The logarithms of the classes' shares, as if each had half a row more."""
        given = weights if len(weights) else None
        counts = np.bincount(labels.astype(np.intp), weights=given, minlength=self.classes) + 0.5
        made: FloatArray = np.log(counts / counts.sum())
        return made


class Scaling(NamedTuple):
    """How a leader sees features: exponents in their factors."""

    power: float = KNOWN_POWER
    """Of the share of rows in which a feature is not 0."""
    units: float = 1.0
    """Of its size: with 0 features keep their own units, with ½ they are half-way to one unit for all."""


class Leader:
    """Rows, labels and weights, of which x_λ is asked for; `points` are x and b of scaled rows, one after the other."""

    def __init__(
        self,
        losses: RowLosses,
        X: Any,
        labels: FloatArray,
        weights: FloatArray,
        scale: FeatureScale | None,
        with_b: bool,
    ) -> None:
        self._losses, self._labels, self._weights, self._with_b = losses, labels, weights, with_b
        rows, d = X, X.shape[1]
        factors = np.ones(d) if scale is None else scale.factors
        means = np.zeros(d) if scale is None else scale.means
        self._used: Any = slice(None)
        if sparse.issparse(X):  # a mean is taken off the scores, not off each row
            columns = np.unique(rows.indices)
            if len(columns) < d:  # the others' weights are 0
                self._used, rows = columns, rows[:, columns]
            self._rows, self._off = rows.astype(np.float64), means[self._used]
        else:
            self._rows, self._off = rows - means, np.zeros(d)
        self._factors, self._means, self._features = factors[self._used], means[self._used], d
        self._mean_weight = float(weights.mean()) if len(weights) else 1.0
        self._constant = losses.constant(labels, weights) if with_b else np.zeros_like(losses.constant(labels, weights))
        self._outputs = len(self._constant)

    def start(self) -> FloatArray:
        """No weights, and the best constant."""
        return np.append(np.zeros(self._outputs * len(self._factors)), self._constant)

    def found(self, strengths: Sequence[float]) -> list[FloatArray]:
        """Models of falling strengths, the intercepts behind the weights; by way of stronger ones, found sooner."""
        point = self.start()
        for times in (256.0, 16.0):
            point = self.at(times * strengths[0], point)
        made = []
        for strength in strengths:
            point = self.at(strength, point, PRECISION / 10)
            made.append(np.append(*self.model(point)))
        return made

    def at(self, strength: float, start: FloatArray, precision: float = PRECISION) -> FloatArray:
        """The point of this strength, from one nearby; `start` itself where numbers overflow on the way."""
        K, ridge, unit = self._outputs, strength * self._mean_weight, 1.0

        def value_and_gradient(point: Any) -> tuple[float, FloatArray]:
            scores, x = self._scores(point), point[:-K]
            slopes = self._losses.slopes(scores, self._labels, self._weights)
            value = self._losses.total(scores, self._labels, self._weights) + 0.5 * ridge * float(x @ x)
            totals = np.atleast_1d(slopes.sum(axis=0))
            pulled = (self._rows.T @ slopes).reshape(len(self._factors), K) - self._off[:, None] * totals
            gradient = np.append((self._factors[:, None] * pulled).T.ravel() + ridge * x, totals * self._with_b)
            return value / unit, gradient / unit

        options: Any = {"maxiter": MOST_STEPS, "maxcor": MEMORY, "ftol": precision, "gtol": 0.0}
        with np.errstate(all="ignore"):
            unit = value_and_gradient(self.start())[0] or 1.0
            found = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
        made: FloatArray = found.x if np.isfinite(found.fun) and np.isfinite(found.x).all() else start
        return made

    def model(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights, one class after another, and intercepts for rows as they come."""
        own, b = self._opened(point)
        x = np.zeros((self._outputs, self._features))
        x[:, self._used] = own.T
        return x.ravel(), b - self._means @ own

    def point(self, x: FloatArray, intercept: FloatArray) -> FloatArray:
        """Where `model` is this one."""
        own = x.reshape(self._outputs, -1)[:, self._used]
        return np.append(own / self._factors, intercept + own @ self._means)

    def _opened(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of centred rows in their own units, shape (d, K), and intercepts."""
        K = self._outputs
        return self._factors[:, None] * point[:-K].reshape(K, -1).T, point[-K:]

    def _scores(self, point: FloatArray) -> FloatArray:
        own, b = self._opened(point)
        if self._outputs == 1:  # products with vectors are faster
            own, b = own[:, 0], b[0]
        return np.asarray(self._rows @ own + (b - self._off @ own))


class Leaders:
    """Leaders of some of these rows, whose features are scaled as all of them ask for; not at all without `centred`."""

    def __init__(self, losses: RowLosses, X: Any, block: RowBlock, centred: bool | None, with_b: bool) -> None:
        self._losses, self._X, self._block, self._centred, self._with_b = losses, X, block, centred, with_b
        self._scales: dict[Scaling, FeatureScale | None] = {}

    @property
    def is_centred(self) -> bool:
        """Whether features are centred: rows are full or narrow, and leaders soon found."""
        return bool(self._centred)

    def of(self, labels: FloatArray, weights: FloatArray, scaling: Scaling, some: Any = slice(None)) -> Leader:
        """That of these rows; labels and weights are of all."""
        own = weights[some] if len(weights) else weights
        return Leader(self._losses, self._X[some], labels[some], own, self._scale(scaling), self._with_b)

    def differing(self, tried: Sequence[Scaling]) -> list[Scaling]:
        """Those of them that are not the same as the usual one, nor as one before them."""
        seen, made = [self._scale(Scaling())], list[Scaling]()
        for scaling in tried if self._centred is not None else ():
            scale = self._scale(scaling)
            if not any(np.allclose(scale.factors, one.factors) for one in seen):  # type: ignore[union-attr]
                made.append(scaling)
                seen.append(scale)
        return made

    def _scale(self, scaling: Scaling) -> FeatureScale | None:
        if scaling not in self._scales:
            made = None
            if self._centred is not None:
                made = FeatureScale.of_block(self._block, self._X.shape[1], self._centred, *scaling)
            self._scales[scaling] = made
        return self._scales[scaling]
