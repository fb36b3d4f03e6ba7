"""Classification losses φ(z) of the margin z = label · ⟨features, x⟩, with labels ±1.

At the kink, the hinge has gradient 0 at margin 1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from longterm._base.arrays import Array, FloatArray, as_column, dot, namespace
from longterm.errors import InputError
from longterm.problems.losses.base import Pieces
from longterm.problems.losses.row_loss import RowLoss
from longterm.problems.sets import Set


class MarginLoss(RowLoss):
    """φ(label · ⟨features, x⟩) with φ convex and decreasing. φ is 1-Lipschitz unless `gradient_bound` is overridden."""

    def check_parameters(self, arrays: Sequence[Array], first: int) -> None:
        label = np.asarray(arrays[1])
        wrong = np.isfinite(label) & (np.abs(label) != 1)
        if np.any(wrong):
            t = first + int(np.argwhere(wrong)[0][0])
            remedy = "Use the labels −1 and +1; map 0 and 1 by 2 * label − 1"
            raise InputError("label", f"is {label[wrong].flat[0]:g}", remedy, round=t)

    def parameters_towards(self, direction: FloatArray, level: FloatArray, over: Set) -> tuple[FloatArray, ...]:
        return self.feature_norm * direction, np.where(level > 0.0, 1.0, -1.0)

    @abstractmethod
    def phi(self, margin: Array) -> tuple[Array, Array]:
        """Return φ and −φ′ at the margin."""

    def value_and_gradient(self, x: Array, *parameters: Array) -> tuple[Array, Array]:
        features, label = parameters
        value, pull = self.phi(label * dot(features, x))
        return value, as_column(-label * pull) * features

    def gradient_bound(self, over: Set) -> float:
        return self.feature_norm

    def value_range(self, over: Set) -> float:
        # The margins of one row form an interval of fixed length. φ is convex and decreasing, so it varies most on
        # the leftmost such interval.
        middle, reach = self.score_bounds(over)
        ends = np.asarray([-middle - reach, -middle + reach])
        worst, best = self.phi(ends)[0]
        return float(worst - best)


class Logistic(MarginLoss):
    """Learn probabilities of two classes: the loss of logistic regression.

    The loss is log(1 + exp(−label · ⟨features, x⟩)), with labels ±1.

    Parameters
    ----------
    dimension : int
        The number of features (d).
    feature_norm : float
        The largest Euclidean norm of a row of features.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.losses import Logistic
    >>> value, gradient = Logistic(2, feature_norm=5.0).value_and_gradient(np.zeros(2), np.array([3.0, 4.0]), 1.0)
    >>> round(float(value), 6), gradient
    (0.693147, array([-1.5, -2. ]))
    """

    def phi(self, margin: Array) -> tuple[Array, Array]:
        xp = namespace(margin)
        value = xp.logaddexp(xp.zeros_like(margin), -margin)
        return value, xp.exp(-margin - value)


class Hinge(MarginLoss):
    """Learn to tell two classes apart: the loss of support vector machines.

    The loss is max(0, 1 − label · ⟨features, x⟩), with labels ±1.

    Parameters
    ----------
    dimension : int
        The number of features (d).
    feature_norm : float
        The largest Euclidean norm of a row of features.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.losses import Hinge
    >>> value, gradient = Hinge(2, feature_norm=5.0).value_and_gradient(np.zeros(2), np.array([3.0, 4.0]), 1.0)
    >>> float(value), gradient
    (1.0, array([-3., -4.]))
    """

    def phi(self, margin: Array) -> tuple[Array, Array]:
        xp = namespace(margin)
        return xp.maximum(1 - margin, 0.0), xp.astype(margin < 1, margin.dtype)

    def as_pieces(self, *parameters: FloatArray) -> Pieces | None:
        features, label = parameters
        return Pieces(-label[:, None] * features, np.full(len(label), -1.0), 0.0, 1.0)


class SquaredHinge(MarginLoss):
    """Learn to tell two classes apart with a smooth loss: the squared hinge.

    The loss is max(0, 1 − label · ⟨features, x⟩)², with labels ±1.

    Parameters
    ----------
    dimension : int
        The number of features (d).
    feature_norm : float
        The largest Euclidean norm of a row of features.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.problems.losses import SquaredHinge
    >>> value, gradient = SquaredHinge(2, feature_norm=5.0).value_and_gradient(np.zeros(2), np.array([3.0, 4.0]), 1.0)
    >>> float(value), gradient
    (1.0, array([-6., -8.]))
    """

    def phi(self, margin: Array) -> tuple[Array, Array]:
        gap = namespace(margin).maximum(1 - margin, 0.0)
        return gap * gap, 2 * gap

    def gradient_bound(self, over: Set) -> float:
        # −φ′ decreases with the margin, so it is largest at the smallest margin.
        return self.feature_norm * 2 * (1 + sum(self.score_bounds(over)))
