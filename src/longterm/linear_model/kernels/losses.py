"""Losses of a linear model on one row, selected by an integer code: value and slope at a margin m = ⟨u, x⟩ + b.

| code | loss | labels | f(m) | slope at a kink |
|---|---|---|---|---|
| `LOGISTIC` 0 | logistic | ±1 | log(1 + exp(−y m)) | – |
| `HINGE` 1 | hinge | ±1 | [1 − y m]₊ | 0 at y m = 1 |
| `SQUARED_HINGE` 2 | squared hinge | ±1 | [1 − y m]₊² | – |
| `SQUARED` 3 | least squares | any | ½ (m − y)² | – |
| `HUBER` 4 | Huber, parameter h > 0 | any | ½ (m − y)², and h (abs(m − y) − h/2) beyond abs(m − y) = h | – |
| `QUANTILE` 5 | quantile, parameter q in (0, 1) | any | q [y − m]₊ + (1 − q) [m − y]₊ | 0 at m = y |

They are the losses of `longterm.problems.losses` with the same slopes at kinks. The gradient of a row is weight · slope
· (u, 1).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import float64, int64

from longterm._base.arrays import FloatArray
from longterm._base.compiling import readonly
from longterm.linear_model.kernels.compile import compiled, helper, source_digest, use

LOGISTIC, HINGE, SQUARED_HINGE, SQUARED, HUBER, QUANTILE = range(6)

CODES = {
    "logistic": LOGISTIC,
    "hinge": HINGE,
    "squared_hinge": SQUARED_HINGE,
    "squared": SQUARED,
    "huber": HUBER,
    "quantile": QUANTILE,
}
"""The codes by the names that estimators use."""

OF_TWO_CLASSES = frozenset({LOGISTIC, HINGE, SQUARED_HINGE})
"""The losses with labels ±1."""


@helper
def value_and_slope(code, parameter, margin, y):
    """Return f(margin) and f′(margin). The logistic loss overflows for no finite margin."""
    if code == LOGISTIC:
        z = y * margin
        small = math.exp(-abs(z))
        pull = (small if z >= 0.0 else 1.0) / (1.0 + small)
        return max(-z, 0.0) + math.log1p(small), -y * pull
    if code <= SQUARED_HINGE:
        gap = 1.0 - y * margin
        if gap <= 0.0:
            return 0.0, 0.0
        if code == HINGE:
            return gap, -y
        return gap * gap, -2.0 * y * gap
    residual = margin - y
    if code == SQUARED:
        return 0.5 * residual * residual, residual
    size = abs(residual)
    if code == HUBER:
        if size <= parameter:
            return 0.5 * residual * residual, residual
        return parameter * (size - 0.5 * parameter), math.copysign(parameter, residual)
    if residual == 0.0:
        return 0.0, 0.0
    slope = 1.0 - parameter if residual > 0.0 else -parameter
    return slope * residual, slope


@cache
def evaluation_kernel() -> Any:
    """Return the kernel (code, parameter, margins, labels, values, slopes) that writes losses and their slopes."""
    digest = source_digest()

    def evaluate(code, parameter, margins, labels, values, slopes):
        use(digest)
        for i in range(len(margins)):
            values[i], slopes[i] = value_and_slope(code, parameter, margins[i], labels[i])

    numbers = readonly(float64)
    return compiled(evaluate, (int64, float64, numbers, numbers, float64[::1], float64[::1]))


def values_and_slopes(
    code: int, parameter: float, margins: FloatArray, labels: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the losses of many rows and their slopes, both of shape (n,)."""
    values, slopes = np.empty(len(margins)), np.empty(len(margins))
    evaluation_kernel()(code, parameter, np.ascontiguousarray(margins), np.ascontiguousarray(labels), values, slopes)
    return values, slopes
