"""Minimum, maximum and choice, for single numbers and for arrays of any library.

Python compares single numbers ten times faster than an array library compares arrays of one number.
"""

from __future__ import annotations

import numpy as np

from longterm._base.arrays import Array, namespace


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
