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
def slope_and_parts(code, parameter, margin, y):
    """f′(margin), and what f(margin) is made of, for `value_of`. One exponential at most."""
    if code == LOGISTIC:
        z = y * margin
        small = exponential(-abs(z))  # never above 1
        pull = (small if z >= 0.0 else 1.0) / (1.0 + small)  # no branch: whether a row is right cannot be guessed
        return -y * pull, max(-z, 0.0), small
    if code <= SQUARED_HINGE:
        gap = 1.0 - y * margin
        if gap <= 0.0:
            return 0.0, 0.0, 0.0
        if code == HINGE:
            return -y, gap, 0.0
        return -2.0 * y * gap, gap * gap, 0.0
    residual = margin - y
    if code == SQUARED:
        return residual, 0.5 * residual * residual, 0.0
    size = abs(residual)
    if code == HUBER:
        if size <= parameter:
            return residual, 0.5 * residual * residual, 0.0
        return math.copysign(parameter, residual), parameter * (size - 0.5 * parameter), 0.0
    if residual == 0.0:
        return 0.0, 0.0, 0.0
    slope = 1.0 - parameter if residual > 0.0 else -parameter
    return slope, slope * residual, 0.0


@numba.njit(inline="always")
def value_of(code, part, share):
    """f(margin), which is finite where `part` is. A round has time for the logarithm once the slope is on its way."""
    return part + log1p_of_share(share) if code == LOGISTIC else part


@numba.njit(inline="always")
def value_and_slope(code, parameter, margin, y):
    """f(margin) and f′(margin)."""
    slope, part, share = slope_and_parts(code, parameter, margin, y)
    return value_of(code, part, share), slope
