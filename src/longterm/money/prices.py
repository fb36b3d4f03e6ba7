"""Steps of dual variables (prices), shared by choosers and pacers.

A price λ rises when more was spent than planned and falls when less was. With a move a = step · (spent − planned):

    Euclidean   λ + a                    projected onto {λ ≥ 0, ‖λ‖₁ ≤ M}
    entropic    λ e^a                    scaled to ‖λ‖₁ ≤ M
    Hedge       M e^s / (1 + Σ e^s)      s the sum of all moves; the 1 stands for a constraint that never binds

The functions are pure and take arrays of any library.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from longterm._base.arrays import Array, FloatArray, namespace
from longterm._base.selection import maximum, minimum

Mirror = Literal["euclidean", "entropic"]
MAX_LOG_STEP = 30.0
"""An entropic price moves by at most a factor e^±30 in one step."""
MAX_PRICE_RATIO = 1e20
"""An entropic price stays within this factor of its start, so that it is finite in float32 and can return."""


def entropic_step(price: Array, move: Array, start: Array) -> Array:
    """Return price · e^move, within a factor `MAX_PRICE_RATIO` of `start`."""
    move = minimum(maximum(move, -MAX_LOG_STEP), MAX_LOG_STEP)
    factor = math.exp(move) if isinstance(move, float) else namespace(move).exp(move)
    return minimum(maximum(price * factor, start / MAX_PRICE_RATIO), start * MAX_PRICE_RATIO)


def mirror_step(mirror: Mirror, price: Array, move: Array, start: Array) -> Array:
    """Return the unprojected next price under the Euclidean or the entropic mirror."""
    return price + move if mirror == "euclidean" else entropic_step(price, move, start)


def project_corner(point: FloatArray, radius: float) -> FloatArray:
    """Project onto {λ ≥ 0, ‖λ‖₁ ≤ radius} in the Euclidean norm."""
    positive = np.maximum(point, 0.0)
    if positive.sum() <= radius:
        return positive
    # The projection of a point whose coordinates are all larger by the same number is the same. So the radius is not
    # lost in the rounding of far larger prices.
    shifted = (positive - positive.max()) + radius
    ordered = np.sort(shifted)[::-1]
    excess = (np.cumsum(ordered) - radius) / np.arange(1, len(ordered) + 1)
    return np.asarray(np.clip(shifted - excess[np.flatnonzero(ordered > excess)[-1]], 0.0, radius))


def scale_to_radius(prices: FloatArray, radius: float) -> FloatArray:
    """Project positive prices onto ‖λ‖₁ ≤ radius in relative entropy: all are scaled by the same factor."""
    return np.asarray(prices * min(1.0, radius / float(prices.sum())))


def hedge_prices(scores: FloatArray, radius: float) -> FloatArray:
    """Return radius · e^s / (1 + Σ e^s)."""
    top = max(float(scores.max()), 0.0)
    weights = np.exp(scores - top)
    return np.asarray(radius * weights / (weights.sum() + math.exp(-top)))
