"""Specifications: an object's class and constructor arguments as JSON, which can be stored and compared.

A file carries the specification of its learner or rule, so that a state is never continued with other
hyper-parameters. It names public things only: constructor arguments, classes, and the registered names of functions. So
private fields can be renamed and modules moved without locking anybody out of a stored state. Long arrays are
represented by a hash. A user's function is represented by its name, not by what it computes.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from longterm._base.registered import registered_name
from longterm.errors import InputError

LONG = 16
"""Arrays of more numbers than this are hashed."""
COMMENTS = frozenset(["checked"])
"""Arguments of any class that play no part in a round: notes on what was checked when the learner was made."""
LONGEST_VALUE = 300
"""The largest number of characters of a value in an error message."""
MOST_DIFFERENCES = 3
"""The largest number of arguments that an error message names."""


def specification(value: Any) -> Any:
    """Return `value` as JSON: numbers and texts as they are, objects as their class and constructor arguments.

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
        positional = {"arguments": specification(value.args)} if value.args else {}
        return specification(value.func) | positional | specification(value.keywords)
    if isinstance(value, MethodType):
        return {"method": value.__name__, "of": specification(value.__self__)}
    if hasattr(value, "__qualname__"):
        return {"function": registered_name(value)}
    return {"class": type(value).__name__} | _arguments(value)


def _arguments(value: Any) -> dict[str, Any]:
    """Return the specifications of an object's constructor arguments, which it keeps under their names.

    An object that is no dataclass may also keep an argument under its name with an underscore.
    """
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    else:
        held = getattr(value, "__dict__", {})
        given = {name: held.get(name, held.get(f"_{name}")) for name in _parameters(type(value))}
    return {name: specification(item) for name, item in given.items() if name not in COMMENTS}


def _parameters(kind: type) -> list[str]:
    try:
        return list(inspect.signature(kind).parameters)
    except ValueError:  # a class that is written in C
        return []


def difference(stored: Any, given: Any, place: str = "learner") -> str | None:
    """Return the differences between two specifications in words, or None.

    Parameters
    ----------
    stored : JSON
        The specification in a file.
    given : JSON
        The specification of the object that the file is used with.
    place : str
        The argument that both are specifications of. Empty for a dictionary of arguments.

    Returns
    -------
    str or None
        The arguments that differ, each with both values: at most three, the outermost first, since others may have been
        computed from them.

    Examples
    --------
    >>> from longterm.storage.specification import difference
    >>> difference({"holds": "worst"}, {"holds": {"class": "ExcessHold", "share": 0.02}}, "")
    "holds was 'worst', is ExcessHold(share=0.02)"
    """
    found = sorted(_differences(stored, given, place), key=lambda one: one[0].count("."))
    words = [f"{name} was {_in_words(old)}, is {_in_words(new)}" for name, old, new in found[:MOST_DIFFERENCES]]
    return "; ".join(words) or None


def changed_values(stored: Any, given: Any, changeable: Collection[str]) -> dict[str, Any] | None:
    """Return the stored values of the arguments that differ, or None if one of them may not be changed.

    Parameters
    ----------
    stored, given : JSON
        Specifications of one object.
    changeable : collection of str
        The places of arguments that may be changed, such as "pacer.budget".
    """
    found = {}
    for place, value, _ in _differences(stored, given, ""):
        if place not in changeable:
            return None
        found[place] = value
    return found


def rebuilt(stored: Any, classes: Callable[[str], type | None]) -> Any:
    """Return the object that a specification describes.

    Parameters
    ----------
    stored : JSON
        A specification. A part that is an array of more than 16 numbers, or a function, cannot be made again.
    classes : callable
        From the name of a class to the class; None if it is not known.

    Raises
    ------
    InputError
        If a part cannot be made again.
    """
    if isinstance(stored, list):
        return [rebuilt(item, classes) for item in stored]
    if not isinstance(stored, dict):
        return stored
    arguments = dict(stored)
    kind = classes(str(arguments.pop("class", "")))
    if kind is None:
        what = f"{_in_words(stored):.80} is not stored whole"
        raise InputError("name", what, "Open the object in Python with its arguments, and change it there")
    return kind(**{key: rebuilt(item, classes) for key, item in arguments.items()})


def _differences(stored: Any, given: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name of each argument that differs, and both values."""
    if isinstance(stored, dict) and isinstance(given, dict) and _kind(stored) == _kind(given):
        inside = f"{place}." if place else ""
        for key in dict.fromkeys([*stored, *given]):
            yield from _differences(stored.get(key), given.get(key), f"{inside}{key}")
    elif isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        for i, (old, new) in enumerate(zip(stored, given, strict=True)):
            yield from _differences(old, new, f"{place}[{i}]")
    elif stored != given:
        yield place, stored, given


def _kind(stored: dict[str, Any]) -> tuple[Any, ...]:
    """Return what an object must share with another one for its arguments to be compared one by one."""
    return tuple(stored.get(key) for key in ("class", "function", "method", "array"))


def _in_words(value: Any) -> str:
    """Return a specification as the constructor call that it stands for."""

    def call(item: Any) -> str:
        if isinstance(item, list):
            return f"[{', '.join(map(call, item))}]"
        if not isinstance(item, dict):
            return repr(item)
        name = item.get("class") or item.get("function")
        if name is None:
            return f"{{{', '.join(f'{key}: {call(inner)}' for key, inner in item.items())}}}"
        return f"{name}({', '.join(f'{k}={call(v)}' for k, v in item.items() if k not in ('class', 'function'))})"

    text = call(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _numbers(array: np.ndarray[Any, Any]) -> Any:
    if array.ndim == 0:
        number = array.item()
        return number if not isinstance(number, float) or math.isfinite(number) else str(number)
    if array.size <= LONG and np.all(np.isfinite(array)):
        return array.tolist()
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return {"array": array.dtype.str, "shape": list(array.shape), "sha256": digest}
