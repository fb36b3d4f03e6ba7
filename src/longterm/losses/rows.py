"""Losses of a linear model on one row: f(x) = φ(⟨features, x⟩, label).

Classification losses see the margin z = label · ⟨features, x⟩ with labels ±1; regression losses
see the residual ⟨features, x⟩ − label. Kinks: the hinge has gradient 0 at margin exactly 1, the
absolute value has gradient 0 at residual exactly 0.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, column, dot, namespace
from longterm.errors import InputError
from longterm.losses.base import Loss
from longterm.sets import Set


@dataclass(frozen=True, eq=False)
class RowLoss(Loss):
    """Shared by the four: rows with ‖features‖₂ ≤ feature_norm. Parameters of a round: features, label."""

    dimension: int
    feature_norm: float

    def __post_init__(self) -> None:
        dimension = validate.dimension("dimension", self.dimension)
        validate.remember(
            self,
            dimension=dimension,
            parameters={"features": (dimension,), "label": ()},
            feature_norm=validate.positive_scalar("feature_norm", self.feature_norm),
        )

    def _scores(self, over: Set) -> tuple[float, float]:
        """The largest |⟨features, centre⟩|, and how far a score can be from it on the set."""
        return self.feature_norm * float(np.linalg.norm(over.centre)), self.feature_norm * over.radius


class MarginLoss(RowLoss):
    """φ(label · ⟨features, x⟩) with φ convex, decreasing and 1-Lipschitz."""

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
        return value, column(-label * pull) * features

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
    """max(0, 1 − label · ⟨features, x⟩), labels ±1."""

    def phi(self, margin: Array) -> tuple[Array, Array]:
        xp = namespace(margin)
        return xp.maximum(1 - margin, 0.0), xp.astype(margin < 1, margin.dtype)


@dataclass(frozen=True, eq=False)
class ResidualLoss(RowLoss):
    """φ(⟨features, x⟩ − label) with |label| ≤ label_bound."""

    label_bound: float

    def __post_init__(self) -> None:
        super().__post_init__()
        bound = validate.non_negative_scalar("label_bound", self.label_bound)
        validate.remember(self, label_bound=bound)

    def _largest_residual(self, over: Set) -> float:
        return sum(self._scores(over)) + self.label_bound


class Absolute(ResidualLoss):
    """|⟨features, x⟩ − label|."""

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        features, label = parameters
        residual = dot(features, x) - label
        xp = namespace(residual)
        return xp.abs(residual), column(xp.sign(residual)) * features

    def gradient_bound(self, over: Set) -> float:
        return self.feature_norm

    def value_range(self, over: Set) -> float:
        _, reach = self._scores(over)
        return min(2 * reach, self._largest_residual(over))


class LeastSquares(ResidualLoss):
    """½ (⟨features, x⟩ − label)²."""

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        features, label = parameters
        residual = dot(features, x) - label
        return 0.5 * residual * residual, column(residual) * features

    def gradient_bound(self, over: Set) -> float:
        return self.feature_norm * self._largest_residual(over)

    def value_range(self, over: Set) -> float:
        return 0.5 * self._largest_residual(over) ** 2
