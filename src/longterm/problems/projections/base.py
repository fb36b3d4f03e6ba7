"""The type of projections, and a wrapper for those written in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import ROUNDING, Array, FloatArray, through_numpy
from longterm.errors import InputError
from longterm.problems.sets import Ball, Box, Set

Projection = Callable[[Array], Array]
"""x ↦ the nearest point of a closed convex set, from shape (..., d) to (..., d), row by row."""

MAX_ENTRY = 1e12
"""The largest entry of x. Searches are accurate to 1e-16 of their input, which is too coarse beyond it."""


def project_with_numpy(project: Callable[[FloatArray], FloatArray], x: Array) -> Array:
    """Apply a projection of NumPy float64 rows (n, d) to x of any shape, library and dtype."""

    def nearest(points: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        largest = float(np.abs(points).max(initial=0.0))
        if MAX_ENTRY < largest < np.inf:
            what = f"has an entry of {largest:.3g}, and projections onto this set are computed up to {MAX_ENTRY:g}"
            raise InputError("x", what, "Make the step smaller, or measure in larger units")
        return (project(points.astype(np.float64).reshape(-1, x.shape[-1])).reshape(x.shape),)

    return through_numpy(nearest, x, [x.shape])[0]


def holds_ball_about_zero(over: Set, radius: float) -> bool:
    """Return True if `over` is known to contain {‖x‖₂ ≤ radius}."""
    reach = radius * (1 - ROUNDING)
    if isinstance(over, Ball):
        return float(np.linalg.norm(over.centre)) + reach <= over.radius
    if isinstance(over, Box):
        return bool(np.all(over.lower <= -reach) and np.all(over.upper >= reach))
    return False
