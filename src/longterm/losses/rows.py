"""Losses of a linear model on one row: f(x) = φ(⟨features, x⟩, label), and the softmax of one score for each class.

Classification losses see the margin z = label · ⟨features, x⟩ with labels ±1; regression losses
see the residual ⟨features, x⟩ − label. Kinks: the hinge has gradient 0 at margin exactly 1, the
absolute value and the quantile loss have gradient 0 at residual exactly 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import array_api_compat
import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, as_column, dot, namespace
from longterm.errors import InputError
from longterm.losses.base import Loss
from longterm.sets import Set


@dataclass(frozen=True, eq=False)
class RowLoss(Loss):
    """Shared by all: rows with ‖features‖₂ ≤ feature_norm. Parameters of a round: features, label."""

    dimension: int
    feature_norm: float

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        validate.validate_fields(self, validate.positive_scalar, "feature_norm")
        validate.set_frozen(self, dimension=dimension, parameters={"features": (dimension,), "label": ()})

    def _scores(self, over: Set) -> tuple[float, float]:
        """The largest |⟨features, centre⟩|, and how far a score can be from it on the set."""
        return self.feature_norm * float(np.linalg.norm(over.centre)), self.feature_norm * over.radius


class MarginLoss(RowLoss):
    """φ(label · ⟨features, x⟩) with φ convex and decreasing, and 1-Lipschitz unless `gradient_bound` says otherwise."""

    def check_parameters(self, arrays: Sequence[Array], first: int) -> None:
        label = np.asarray(arrays[1])
        wrong = np.isfinite(label) & (np.abs(label) != 1)
        if np.any(wrong):
            t = first + int(np.argwhere(wrong)[0][0])
            remedy = "Use the labels −1 and +1; map 0 and 1 by 2 * label − 1"
            raise InputError("label", f"is {label[wrong].flat[0]:g}", remedy, round=t)

    @abstractmethod
    def phi(self, margin: Array) -> tuple[Array, Array]:
        """φ and −φ′ at the margin."""

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        features, label = parameters
        value, pull = self.phi(label * dot(features, x))
        return value, as_column(-label * pull) * features

    def gradient_bound(self, over: Set) -> float:
        return self.feature_norm

    def value_range(self, over: Set) -> float:
        # φ is convex and decreasing: among margins of one row, an interval of fixed length,
        # it varies most when the interval lies as far left as it can.
        middle, reach = self._scores(over)
        ends = np.asarray([-middle - reach, -middle + reach])
        worst, best = self.phi(ends)[0]
        return float(worst - best)


class Logistic(MarginLoss):
    """log(1 + exp(−label · ⟨features, x⟩)), labels ±1.

    Parameters
    ----------
    dimension : int
        d.
    feature_norm : float
        Bounds ‖features‖₂.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.losses import Logistic
    >>> value, gradient = Logistic(2, feature_norm=5.0).value_and_gradient(np.zeros(2), np.array([3.0, 4.0]), 1.0)
    >>> round(float(value), 6), gradient
    (0.693147, array([-1.5, -2. ]))
    """

    def phi(self, margin: Array) -> tuple[Array, Array]:
        xp = namespace(margin)
        value = xp.logaddexp(xp.zeros_like(margin), -margin)
        return value, xp.exp(-margin - value)


class Hinge(MarginLoss):
    """max(0, 1 − label · ⟨features, x⟩), labels ±1.

    Parameters
    ----------
    dimension : int
        d.
    feature_norm : float
        Bounds ‖features‖₂.
    """

    def phi(self, margin: Array) -> tuple[Array, Array]:
        xp = namespace(margin)
        return xp.maximum(1 - margin, 0.0), xp.astype(margin < 1, margin.dtype)


class SquaredHinge(MarginLoss):
    """max(0, 1 − label · ⟨features, x⟩)², labels ±1.

    Parameters
    ----------
    dimension : int
        d.
    feature_norm : float
        Bounds ‖features‖₂.
    """

    def phi(self, margin: Array) -> tuple[Array, Array]:
        gap = namespace(margin).maximum(1 - margin, 0.0)
        return gap * gap, 2 * gap

    def gradient_bound(self, over: Set) -> float:
        # −φ′ falls with the margin: it is largest at the smallest margin that a row can have.
        return self.feature_norm * 2 * (1 + sum(self._scores(over)))


@dataclass(frozen=True, eq=False)
class ResidualLoss(RowLoss):
    """φ(⟨features, x⟩ − label) with |label| ≤ label_bound."""

    label_bound: float

    def __post_init__(self) -> None:
        super().__post_init__()
        bound = validate.non_negative_scalar("label_bound", self.label_bound)
        validate.set_frozen(self, label_bound=bound)

    def _largest_residual(self, over: Set) -> float:
        return sum(self._scores(over)) + self.label_bound

    def _residual_from_largest(self, over: Set) -> tuple[float, float]:
        """The largest residual L, and the one nearest 0 of a row that attains it: residuals of a row span 2 · reach."""
        largest = self._largest_residual(over)
        return largest, max(largest - 2 * self._scores(over)[1], 0.0)


class Absolute(ResidualLoss):
    """|⟨features, x⟩ − label|.

    Parameters
    ----------
    dimension : int
        d.
    feature_norm, label_bound : float
        Bound ‖features‖₂ and |label|.
    """

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        features, label = parameters
        residual = dot(features, x) - label
        xp = namespace(residual)
        return xp.abs(residual), as_column(xp.sign(residual)) * features

    def gradient_bound(self, over: Set) -> float:
        return self.feature_norm

    def value_range(self, over: Set) -> float:
        _, reach = self._scores(over)
        return min(2 * reach, self._largest_residual(over))


class LeastSquares(ResidualLoss):
    """½ (⟨features, x⟩ − label)².

    Parameters
    ----------
    dimension : int
        d.
    feature_norm, label_bound : float
        Bound ‖features‖₂ and |label|.
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
    """½ r² of the residual r = ⟨features, x⟩ − label, and threshold (|r| − ½ threshold) beyond |r| = threshold.

    Parameters
    ----------
    dimension : int
        d.
    feature_norm, label_bound : float
        Bound ‖features‖₂ and |label|.
    threshold : float
        The residual from which on the loss grows linearly.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.losses import Huber
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
        inside = xp.minimum(xp.abs(residual), self.threshold)  # |r| itself, or the threshold: one formula for both
        slope = xp.minimum(xp.maximum(residual, -self.threshold), self.threshold)
        return inside * (xp.abs(residual) - 0.5 * inside), as_column(slope) * features

    def gradient_bound(self, over: Set) -> float:
        return self.feature_norm * min(self.threshold, self._largest_residual(over))

    def value_range(self, over: Set) -> float:
        # Even and convex: among residuals of one row it varies most where they are farthest from 0.
        farthest, nearest = self._residual_from_largest(over)
        worst, best = (min(r, self.threshold) * (r - 0.5 * min(r, self.threshold)) for r in (farthest, nearest))
        return worst - best


@dataclass(frozen=True, eq=False)
class Quantile(ResidualLoss):
    """level · [label − ⟨features, x⟩]₊ + (1 − level) · [⟨features, x⟩ − label]₊: its minimiser is a quantile.

    Parameters
    ----------
    dimension : int
        d.
    feature_norm, label_bound : float
        Bound ‖features‖₂ and |label|.
    level : float
        Which quantile, in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.losses import Quantile
    >>> loss = Quantile(1, feature_norm=1.0, label_bound=1.0, level=0.9)
    >>> [round(float(loss.value(np.zeros(1), np.ones(1), np.float64(label))), 3) for label in (-1.0, 1.0)]
    [0.1, 0.9]
    """

    level: float

    def __post_init__(self) -> None:
        super().__post_init__()
        level = validate.scalar("level", validate.number("level", self.level))
        if not 0 < level < 1:
            raise InputError(
                "level", f"{self.level!r} is outside (0, 1)", "Use 0.5 for the median, 0.9 for the ninth decile"
            )
        validate.set_frozen(self, level=level)

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
        farthest, nearest = self._residual_from_largest(over)
        return max(self.level, 1 - self.level) * (farthest - nearest)


@dataclass(frozen=True, eq=False)
class Softmax(Loss):
    """ln Σ_k exp(s_k) − s_label with s = W·features, x the K rows of W one after another, labels 0 … K − 1.

    The gradient of a round is (p − e_label) ⊗ features, p = softmax(s). Parameters of a round: features, label.

    Parameters
    ----------
    classes : int
        K, at least 2.
    features : int
        How many numbers a row has; the dimension of x is K times that.
    feature_norm : float
        Bounds ‖features‖₂.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.losses import Softmax
    >>> loss = Softmax(classes=4, features=2, feature_norm=5.0)
    >>> value, gradient = loss.value_and_gradient(np.zeros(8), np.array([3.0, 4.0]), np.float64(1))
    >>> round(float(value), 6), gradient.reshape(4, 2)[:2]
    (1.386294, array([[ 0.75,  1.  ],
           [-2.25, -3.  ]]))
    """

    classes: int
    features: int
    feature_norm: float
    dimension: int = field(init=False)

    def __post_init__(self) -> None:
        classes, features = validate.count("classes", self.classes), validate.dimension("features", self.features)
        if classes < 2:
            raise InputError("classes", f"{classes} is too few to choose from", "Give at least 2")
        validate.validate_fields(self, validate.positive_scalar, "feature_norm")
        validate.set_frozen(
            self,
            classes=classes,
            features=features,
            dimension=classes * features,
            parameters={"features": (features,), "label": ()},
        )

    def check_parameters(self, arrays: Sequence[Array], first: int) -> None:
        label = np.asarray(arrays[1])
        wrong = np.isfinite(label) & ~((label >= 0) & (label < self.classes) & (label == np.floor(label)))
        if np.any(wrong):
            t = first + int(np.argwhere(wrong)[0][0])
            remedy = f"Use the whole numbers 0 … {self.classes - 1}"
            raise InputError("label", f"is {label[wrong].flat[0]:g}", remedy, round=t)

    def of_scores(self, scores: Array, label: Array) -> tuple[Array, Array]:
        """The loss, shape (...,), and its derivative p − e_label, shape (..., K), of scores (..., K).

        Parameters
        ----------
        scores : array
            s, shape (..., K).
        label : array
            The class, shape (...,).

        Returns
        -------
        tuple of array
            ln Σ_k exp(s_k) − s_label, and softmax(s) − e_label.
        """
        xp, device = namespace(scores), array_api_compat.device(scores)
        label = xp.asarray(label, dtype=scores.dtype, device=device)
        own = xp.astype(xp.arange(self.classes, dtype=scores.dtype, device=device) == as_column(label), scores.dtype)
        lowered = scores - xp.max(scores, axis=-1, keepdims=True)  # no exponential overflows
        powers = xp.exp(lowered)
        total = xp.sum(powers, axis=-1, keepdims=True)
        return xp.log(total)[..., 0] - xp.sum(own * lowered, axis=-1), powers / total - own

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        features, label = parameters
        xp = namespace(x)
        rows = xp.reshape(x, (*x.shape[:-1], self.classes, self.features))
        value, pull = self.of_scores(xp.sum(rows * features[..., None, :], axis=-1), label)
        gradient = pull[..., :, None] * features[..., None, :]
        return value, xp.reshape(gradient, (*gradient.shape[:-2], self.dimension))

    def gradient_bound(self, over: Set) -> float:
        # ‖p − e‖² = (1 − p_label)² + Σ_{others} p_k² is at most 2, where one other class has all.
        return math.sqrt(2) * self.feature_norm

    def value_range(self, over: Set) -> float:
        # A loss is ln(1 + Σ exp(s_k − s_label)), and no difference of scores is beyond ±‖features‖ √2 ‖x‖.
        largest = math.sqrt(2) * self.feature_norm * over.largest_norm(2)
        highest, lowest = np.logaddexp(0.0, math.log(self.classes - 1) + np.array([largest, -largest]))
        return min(self.gradient_bound(over) * over.diameter, float(highest - lowest))
