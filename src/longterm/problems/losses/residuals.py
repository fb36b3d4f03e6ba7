"""Regression losses of the residual ⟨features, x⟩ − label.

At the kink, the absolute and the quantile loss have gradient 0 at residual 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, dot, namespace
from longterm.problems.losses.base import Pieces
from longterm.problems.losses.row_loss import RowLoss
from longterm.problems.sets import Set


@dataclass(frozen=True, eq=False)
class ResidualLoss(RowLoss):
    """φ(⟨features, x⟩ − label).

    Parameters
    ----------
    dimension : int
        d.
    feature_norm, label_bound : float
        Bounds on ‖features‖₂ and |label|.
    """

    label_bound: float

    def __post_init__(self) -> None:
        super().__post_init__()
        bound = validate.non_negative_scalar("label_bound", self.label_bound)
        validate.set_frozen(self, label_bound=bound)

    def parameters_towards(self, direction: FloatArray, level: FloatArray, over: Set) -> tuple[FloatArray, ...]:
        return self.feature_norm * direction, self.label_bound * level

    def _largest_residual(self, over: Set) -> float:
        return sum(self.score_bounds(over)) + self.label_bound

    def _extreme_residuals(self, over: Set) -> tuple[float, float]:
        """Return the largest residual, and the residual nearest to 0 of the same row."""
        largest = self._largest_residual(over)
        return largest, max(largest - 2 * self.score_bounds(over)[1], 0.0)


class Absolute(ResidualLoss):
    """Measure a prediction of a number by its absolute error.

    The loss is |⟨features, x⟩ − label|. At error 0 the gradient is 0.

    Parameters
    ----------
    dimension : int
        The number of features (d).
    feature_norm, label_bound : float
        The largest Euclidean norm of a row of features, and the largest |label|.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.losses import Absolute
    >>> value, gradient = Absolute(2, feature_norm=5.0, label_bound=1.0).value_and_gradient(
    ...     np.array([1.0, 0.0]), np.array([3.0, 4.0]), np.float64(1.0)
    ... )
    >>> float(value), gradient
    (2.0, array([3., 4.]))
    """

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        features, label = parameters
        residual = dot(features, x) - label
        xp = namespace(residual)
        return xp.abs(residual), as_column(xp.sign(residual)) * features

    def gradient_bound(self, over: Set) -> float:
        return self.feature_norm

    def value_range(self, over: Set) -> float:
        _, reach = self.score_bounds(over)
        return min(2 * reach, self._largest_residual(over))

    def as_pieces(self, *parameters: FloatArray) -> Pieces | None:
        features, label = parameters
        return Pieces(features, label, -1.0, 1.0)


class LeastSquares(ResidualLoss):
    """Measure a prediction of a number by its squared error.

    The loss is ½ (⟨features, x⟩ − label)².

    Parameters
    ----------
    dimension : int
        The number of features (d).
    feature_norm, label_bound : float
        The largest Euclidean norm of a row of features, and the largest |label|.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.losses import LeastSquares
    >>> value, gradient = LeastSquares(2, feature_norm=5.0, label_bound=1.0).value_and_gradient(
    ...     np.array([1.0, 0.0]), np.array([3.0, 4.0]), np.float64(1.0)
    ... )
    >>> float(value), gradient
    (2.0, array([6., 8.]))
    """

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        features, label = parameters
        residual = dot(features, x) - label
        return 0.5 * residual * residual, as_column(residual) * features

    def gradient_bound(self, over: Set) -> float:
        return self.feature_norm * self._largest_residual(over)

    def value_range(self, over: Set) -> float:
        return 0.5 * self._largest_residual(over) ** 2


@dataclass(frozen=True, eq=False)
class Huber(ResidualLoss):
    """Measure a prediction of a number by its squared error, but count large errors linearly.

    With the error r = ⟨features, x⟩ − label the loss is ½ r² for |r| ≤ threshold, and threshold (|r| − ½ threshold)
    beyond it.

    Parameters
    ----------
    dimension : int
        The number of features (d).
    feature_norm, label_bound : float
        The largest Euclidean norm of a row of features, and the largest |label|.
    threshold : float
        The error from which on the loss is linear.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.losses import Huber
    >>> loss = Huber(1, feature_norm=1.0, label_bound=5.0, threshold=2.0)
    >>> [float(loss.value(np.zeros(1), np.ones(1), np.float64(label))) for label in (1.0, 2.0, 5.0)]
    [0.5, 2.0, 8.0]
    """

    threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.set_frozen(self, threshold=validate.positive_scalar("threshold", self.threshold))

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        features, label = parameters
        residual = dot(features, x) - label
        xp = namespace(residual)
        inside = xp.minimum(xp.abs(residual), self.threshold)
        slope = xp.minimum(xp.maximum(residual, -self.threshold), self.threshold)
        return inside * (xp.abs(residual) - 0.5 * inside), as_column(slope) * features

    def gradient_bound(self, over: Set) -> float:
        return self.feature_norm * min(self.threshold, self._largest_residual(over))

    def value_range(self, over: Set) -> float:
        # The loss is even and convex, so it varies most on the residuals farthest from 0.
        farthest, nearest = self._extreme_residuals(over)
        worst, best = (min(r, self.threshold) * (r - 0.5 * min(r, self.threshold)) for r in (farthest, nearest))
        return worst - best


@dataclass(frozen=True, eq=False)
class Quantile(ResidualLoss):
    """Learn a quantile of a number instead of its mean: the pinball loss.

    The loss is level · [label − ⟨features, x⟩]₊ + (1 − level) · [⟨features, x⟩ − label]₊.

    Parameters
    ----------
    dimension : int
        The number of features (d).
    feature_norm, label_bound : float
        The largest Euclidean norm of a row of features, and the largest |label|.
    level : float
        The quantile, in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.losses import Quantile
    >>> loss = Quantile(1, feature_norm=1.0, label_bound=1.0, level=0.9)
    >>> [round(float(loss.value(np.zeros(1), np.ones(1), np.float64(label))), 3) for label in (-1.0, 1.0)]
    [0.1, 0.9]
    """

    level: float

    def __post_init__(self) -> None:
        super().__post_init__()
        level = validate.open_unit_interval("level", self.level)
        validate.set_frozen(self, level=validate.scalar("level", level))

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        features, label = parameters
        residual = dot(features, x) - label
        xp = namespace(residual)
        below, above = xp.astype(residual < 0, residual.dtype), xp.astype(residual > 0, residual.dtype)
        slope = (1 - self.level) * above - self.level * below
        return slope * residual, as_column(slope) * features

    def gradient_bound(self, over: Set) -> float:
        return self.feature_norm * max(self.level, 1 - self.level)

    def value_range(self, over: Set) -> float:
        farthest, nearest = self._extreme_residuals(over)
        return max(self.level, 1 - self.level) * (farthest - nearest)

    def as_pieces(self, *parameters: FloatArray) -> Pieces | None:
        features, label = parameters
        return Pieces(features, label, -self.level, 1.0 - self.level)
