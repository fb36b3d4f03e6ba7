"""The softmax loss of several classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import array_api_compat
import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, as_column, namespace
from longterm.errors import InputError
from longterm.losses.base import Loss
from longterm.sets import Set


@dataclass(frozen=True, eq=False)
class Softmax(Loss):
    """ln Σ_k exp(s_k) − s_label with scores s = W·features, x the flattened K × features matrix W, labels 0 … K − 1.

    The gradient of a round is (p − e_label) ⊗ features, p = softmax(s). Parameters of a round: features, label.

    Parameters
    ----------
    classes : int
        K, at least 2.
    features : int
        The number of features. The dimension of x is K times that.
    feature_norm : float
        A bound on ‖features‖₂.

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
        """Return the loss, shape (...,), and its derivative p − e_label, shape (..., K), at scores (..., K).

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
        lowered = scores - xp.max(scores, axis=-1, keepdims=True)  # prevents overflow
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
        # ‖p − e‖² = (1 − p_label)² + Σ_{others} p_k² ≤ 2, attained if another class has probability 1.
        return math.sqrt(2) * self.feature_norm

    def value_range(self, over: Set) -> float:
        # The loss is ln(1 + Σ exp(s_k − s_label)), and differences of scores are at most ‖features‖ √2 ‖x‖.
        largest = math.sqrt(2) * self.feature_norm * over.largest_norm(2)
        highest, lowest = np.logaddexp(0.0, math.log(self.classes - 1) + np.array([largest, -largest]))
        return min(self.gradient_bound(over) * over.diameter, float(highest - lowest))
