"""The losses of many rows at once, given their scores: sums, slopes, and the constant scores to begin with.

The same losses as those of the rounds (`kernels.losses`, `losses.Softmax`). No weights are weights of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import log_softmax, softmax

from longterm._arrays import FloatArray
from longterm.linear_model.kernels.losses import LOGISTIC, OF_TWO_CLASSES, WITH_KINKS
from longterm.linear_model.kernels.score import losses_kernel, slopes_kernel


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
