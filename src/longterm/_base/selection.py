"""Minimum, maximum, clamping and choice, for single numbers and for arrays of any library.

Python compares single numbers ten times faster than an array library compares arrays of one number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longterm._base.arrays import Array, least_divisor, namespace


def minimum(a: Array, b: Array) -> Array:
    """Return the smaller of two numbers, or of two arrays element by element."""
    if isinstance(a, float) and isinstance(b, float):
        return a if a <= b else b
    return _namespace_of(a, b).minimum(a, b)


def maximum(a: Array, b: Array) -> Array:
    """Return the larger of two numbers, or of two arrays element by element."""
    if isinstance(a, float) and isinstance(b, float):
        return a if a >= b else b
    return _namespace_of(a, b).maximum(a, b)


def clamp_min(values: Array, least: Any) -> Array:
    """Return max(values, least). NaN stays NaN."""
    if isinstance(values, np.generic):
        number: Any = values
        return type(values)(least) if number < least else values
    return namespace(values).maximum(values, least)


def clamp_max(values: Array, most: Any) -> Array:
    """Return min(values, most). NaN stays NaN."""
    return -clamp_min(-values, -most)


def clamp_to_divisor(positive: Array) -> Array:
    """Clamp non-negative values from below so that they can be divided by."""
    return clamp_min(positive, least_divisor(positive))


def where(condition: Array, a: Array, b: Array) -> Array:
    """Return `a` where the condition holds and `b` elsewhere."""
    if isinstance(condition, (bool, np.bool_)):
        return a if condition else b
    return namespace(condition).where(condition, a, b)


def is_true_everywhere(condition: Array) -> bool:
    """Return True if a condition is known to hold for every learner. Only NumPy's conditions are known at once."""
    if isinstance(condition, (bool, np.bool_)):
        return bool(condition)
    return isinstance(condition, np.ndarray) and bool(condition.all())


def _namespace_of(a: Array, b: Array) -> Array:
    return namespace(b if isinstance(a, (int, float)) and not isinstance(a, np.generic) else a)
