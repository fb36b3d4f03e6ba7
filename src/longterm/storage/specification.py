"""Specifications of learners: class and hyper-parameters as JSON, which can be stored and compared.

A file carries the specification of its learner, so that a state is never continued with other hyper-parameters. Long
arrays are represented by a hash. A function is represented by its name, not by what it computes.
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
COMMENTS = frozenset(["checked"])
"""Fields of any class that play no part in a round: notes on what was checked when the learner was made."""


def specification(value: Any) -> Any:
    """Return `value` as JSON: numbers and texts as they are, objects as their class and fields.

    Parameters
    ----------
    value : object
        A learner, or a part of one.

    Examples
    --------
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
    is_data = is_dataclass(value)
    names = [field.name for field in fields(value)] if is_data else sorted(getattr(value, "__dict__", ()))
    values = {name: specification(getattr(value, name)) for name in names if name not in COMMENTS}
    return {"class": type(value).__name__} | values


def difference(stored: Any, given: Any, place: str = "learner") -> str | None:
    """Return the first difference between two specifications in words, or None.

    Parameters
    ----------
    stored : JSON
        The specification in a file.
    given : JSON
        The specification of the object that the file is used with.
    place : str
        The name of that object, for the message.

    Returns
    -------
    str or None
        "learner.schedule.beta is 0.5 in the file and 0.6 here", for example.
    """
    if isinstance(stored, dict) and isinstance(given, dict):
        pairs = [(f"{place}.{key}", stored.get(key), given.get(key)) for key in dict.fromkeys([*stored, *given])]
    elif isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        pairs = [(f"{place}[{i}]", old, new) for i, (old, new) in enumerate(zip(stored, given, strict=True))]
    else:
        return None if stored == given else f"{place} is {stored!r} in the file and {given!r} here"
    return next((found for name, old, new in pairs if (found := difference(old, new, name)) is not None), None)


def _numbers(array: np.ndarray[Any, Any]) -> Any:
    if array.ndim == 0 and np.isfinite(array):
        return array.item()
    if array.size <= LONG and np.all(np.isfinite(array)):
        return array.tolist()
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return {"array": array.dtype.str, "shape": list(array.shape), "sha256": digest}
