"""What a learner is, in words and numbers that can be stored and compared: its class and its hyper-parameters.

A snapshot carries this, so that a state is never continued with other steps, or on another set, than it was
made with. Long arrays are represented by a hash. Of a function only the name is known, not what it computes.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

LONG = 16
"""Arrays of more numbers than this are hashed."""


def specification(value: Any) -> Any:
    """`value` as JSON: numbers and texts as they are, objects as their class and fields.

    >>> from longterm.storage.specification import specification
    >>> from longterm.theory.schedules import ConvexSchedule
    >>> specification(ConvexSchedule(diameter=2.0, gradient_bound=1.0, beta=0.5))
    {'class': 'ConvexSchedule', 'diameter': 2.0, 'gradient_bound': 1.0, 'beta': 0.5}
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (int, float, np.generic, np.ndarray)):
        return _numbers(np.asarray(value))
    if isinstance(value, (list, tuple)):
        return [specification(item) for item in value]
    if isinstance(value, dict):
        return {str(key): specification(item) for key, item in value.items()}
    if isinstance(value, partial):
        given = {"arguments": specification(value.args), "keywords": specification(value.keywords)}
        return {"partial": specification(value.func), **given}
    if isinstance(value, MethodType):
        return {"method": value.__func__.__qualname__, "of": specification(value.__self__)}
    if hasattr(value, "__qualname__"):
        return {"function": f"{value.__module__}.{value.__qualname__}"}
    made = {"class": type(value).__name__}
    names = [field.name for field in fields(value)] if is_dataclass(value) else sorted(getattr(value, "__dict__", ()))
    return made | {name: specification(getattr(value, name)) for name in names}


def difference(stored: Any, given: Any, where: str = "learner") -> str | None:
    """The first thing in which two specifications differ, in words; None where there is none."""
    if isinstance(stored, dict) and isinstance(given, dict):
        for key in [*stored, *(key for key in given if key not in stored)]:
            found = difference(stored.get(key), given.get(key), f"{where}.{key}")
            if found is not None:
                return found
        return None
    if isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        places = (difference(s, g, f"{where}[{i}]") for i, (s, g) in enumerate(zip(stored, given, strict=True)))
        return next((found for found in places if found is not None), None)
    return None if stored == given else f"{where} is {stored!r} in the file and {given!r} here"


def _numbers(array: np.ndarray[Any, Any]) -> Any:
    if array.ndim == 0 and np.isfinite(array):
        return array.item()
    if array.size <= LONG and np.all(np.isfinite(array)):
        return array.tolist()
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return {"array": array.dtype.str, "shape": list(array.shape), "sha256": digest}
