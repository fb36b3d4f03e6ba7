"""Losses of a linear model on one row, by number, for compiled kernels: value and slope at a margin m = ⟨u, x⟩ + b.

| number | loss | labels | f(m) | slope at a kink |
|---|---|---|---|---|
| `LOGISTIC` 0 | logistic | ±1 | log(1 + exp(−y m)) | – |
| `HINGE` 1 | hinge | ±1 | [1 − y m]₊ | 0 at y m = 1 |
| `SQUARED_HINGE` 2 | squared hinge | ±1 | [1 − y m]₊² | – |
| `SQUARED` 3 | least squares | any | ½ (m − y)² | – |
| `HUBER` 4 | Huber, parameter h > 0 | any | ½ (m − y)², and h (abs(m − y) − h/2) beyond abs(m − y) = h | – |
| `QUANTILE` 5 | quantile, parameter q in (0, 1) | any | q [y − m]₊ + (1 − q) [m − y]₊ | 0 at m = y |

A row's gradient is weight · slope · (u, 1). These are the losses of `longterm.losses`, kinks and all: `Logistic`,
`Hinge`, `SquaredHinge`, `LeastSquares`, `Huber`, `Quantile`. A loss would be passed as a function, were it not that
kernels which take functions are compiled anew in every process.

Nothing overflows in the logistic loss, for margins of ±1e300 too, and a NaN comes out as a NaN value.
"""

from __future__ import annotations

import math

import numba

from longterm.linear_model.kernels.functions import exponential, log1p_of_share

LOGISTIC, HINGE, SQUARED_HINGE, SQUARED, HUBER, QUANTILE = range(6)

CODES = {
    "logistic": LOGISTIC,
    "hinge": HINGE,
    "squared_hinge": SQUARED_HINGE,
    "squared": SQUARED,
    "huber": HUBER,
    "quantile": QUANTILE,
}
"""By the names that estimators use."""

OF_TWO_CLASSES = frozenset({LOGISTIC, HINGE, SQUARED_HINGE})
"""Those whose labels are ±1."""

WITH_KINKS = frozenset({HINGE, QUANTILE})
"""Those without a slope somewhere."""


@numba.njit(inline="always")
def value_and_slope(code, parameter, margin, y):
    """f(margin) and f′(margin). One exponential at most."""
    if code == LOGISTIC:
        z = y * margin
        small = exponential(-abs(z))  # never above 1
        pull = (small if z >= 0.0 else 1.0) / (1.0 + small)  # no branch: whether a row is right cannot be guessed
        return max(-z, 0.0) + log1p_of_share(small), -y * pull
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
