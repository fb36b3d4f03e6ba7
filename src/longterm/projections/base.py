"""What a projection is, and how one that needs NumPy serves every array library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import ROUNDING, Array, FloatArray, through_numpy
from longterm.errors import InputError
from longterm.sets import Ball, Box, Set

Projection = Callable[[Array], Array]
"""x ↦ the nearest point of a closed convex set, shape (..., d) to (..., d), each row by itself."""

FARTHEST = 1e12
"""Searches end at 1e-16 of the numbers that they are given: of larger ones too few digits of the answer are left."""


def on_cpu(project: Callable[[FloatArray], FloatArray], x: Array) -> Array:
    """A projection written for rows (n, d) of NumPy float64, applied to x of any shape, library and dtype."""

    def nearest(points: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        largest = float(np.abs(points).max(initial=0.0))
        if FARTHEST < largest < np.inf:
            what = f"has a number of {largest:.3g}, and nearest points of this set are searched for up to {FARTHEST:g}"
            raise InputError("x", what, "Make the step smaller, or measure in larger units")
        return (project(points.astype(np.float64).reshape(-1, x.shape[-1])).reshape(x.shape),)

    return through_numpy(nearest, x, [x.shape])[0]


def holds_ball_about_zero(over: Set, radius: float) -> bool:
    """Whether `over` is known to hold {‖x‖₂ ≤ radius}: then a set inside that ball needs no second projection."""
    reach = radius * (1 - ROUNDING)
    if isinstance(over, Ball):
        return float(np.linalg.norm(over.centre)) + reach <= over.radius
    if isinstance(over, Box):
        return bool(np.all(over.lower <= -reach) and np.all(over.upper >= reach))
    return False
