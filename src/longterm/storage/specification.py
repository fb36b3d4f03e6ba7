"""What a learner is, in words and numbers that can be stored and compared: its class and its hyper-parameters.

A snapshot carries this, so that a state is never continued with other steps, or on another set, than it was
made with. Long arrays are represented by a hash. Of a function only the name is known, not what it computes.

Files outlive versions of the library. A field that a class got after a file was written is not in the file: it is
taken to be at its default there. What else has changed since the first files is in the tables below.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

LONG = 16
"""Arrays of more numbers than this are hashed."""

RENAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "PenaltyAOGD": ("AOGD", {}),
    "StronglyConvexAFTRL": ("AFTRL", {}),
    "HardYuLeeLee": ("YuLeeLee", {"hard": True}),
}
"""Classes that files know by an older name: the present one, and the fields that say what the old name said."""

ADDED: dict[str, frozenset[str]] = {"AOGD": frozenset(["penalty"])}
"""Fields that classes got after files were written. At their default they are left out, so that a fresh learner is
still the one that an older journal started from."""

UNSAID: dict[str, frozenset[str]] = {"NoViolationAOGD": frozenset(["horizon", "coefficient"])}
"""Fields that classes got later and that older files need not say: what was made of them, a margin, is in the files."""

REMARKS = frozenset(["checked"])
"""Fields, of any class, that play no part in a round: what was checked when the learner was made, in words."""

REPLACED: dict[tuple[str, str], tuple[Any, Any]] = {("YuLeeLee", "strong_convexity"): (None, 0.0)}
"""Values of a class's field that older files hold, and what they are now."""


class Fields(dict[str, Any]):
    """The specification of a dataclass: its class and fields. It knows the defaults, too, which are not stored."""

    defaults: Mapping[str, Any]


def specification(value: Any) -> Any:
    """`value` as JSON: numbers and texts as they are, objects as their class and fields.

    Parameters
    ----------
    value : object
        A learner, or whatever it is made of.

    Returns
    -------
    dict, list, str, float, bool or None
        What `difference` compares and a file can hold.

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
    if is_dataclass(value):
        return _of_dataclass(value)
    return {"class": type(value).__name__} | {
        name: specification(getattr(value, name)) for name in sorted(getattr(value, "__dict__", ()))
    }


def _of_dataclass(value: Any) -> Fields:
    name = type(value).__name__
    made = Fields({"class": name})
    made.defaults = {
        field.name: specification(field.default if field.default_factory is MISSING else field.default_factory())
        for field in fields(value)
        if (field.default, field.default_factory) != (MISSING, MISSING)
    }
    for field in fields(value):
        given = specification(getattr(value, field.name))
        at_default = field.name in made.defaults and difference(made.defaults[field.name], given) is None
        if not (at_default and field.name in ADDED.get(name, ())):
            made[field.name] = given
    return made


def difference(stored: Any, given: Any, place: str = "learner") -> str | None:
    """The first thing in which two specifications differ, in words; None where there is none.

    Parameters
    ----------
    stored : JSON
        What a file holds, perhaps one that an older version wrote.
    given : JSON
        The specification of what the file is to be used with.
    place : str
        What they specify, for the words.

    Returns
    -------
    str or None
        "learner.schedule.beta is 0.5 in the file and 0.6 here", for example.
    """
    if isinstance(stored, dict) and isinstance(given, dict):
        stored = _as_of_now(stored)
        name = str(given.get("class"))
        defaults = given.defaults if isinstance(given, Fields) else {}
        for key in dict.fromkeys([*stored, *given]):
            if key in REMARKS or (key not in stored and key in UNSAID.get(name, ())):
                continue
            old, new = stored.get(key, defaults.get(key)), given.get(key, defaults.get(key))
            other = difference(old, new, f"{place}.{key}")
            if other is not None:
                return other
        return None
    if isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        places = (difference(s, g, f"{place}[{i}]") for i, (s, g) in enumerate(zip(stored, given, strict=True)))
        return next((other for other in places if other is not None), None)
    return None if stored == given else f"{place} is {stored!r} in the file and {given!r} here"


def _as_of_now(stored: dict[str, Any]) -> dict[str, Any]:
    """The specification of an object in the words of today."""
    name, said = RENAMED.get(str(stored.get("class")), (stored.get("class"), {}))
    now = stored | ({"class": name} if "class" in stored else {}) | said
    for key, value in now.items():
        old, new = REPLACED.get((str(name), key), (..., ...))
        if value == old:
            now[key] = new
    return now


def _numbers(array: np.ndarray[Any, Any]) -> Any:
    if array.ndim == 0 and np.isfinite(array):
        return array.item()
    if array.size <= LONG and np.all(np.isfinite(array)):
        return array.tolist()
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return {"array": array.dtype.str, "shape": list(array.shape), "sha256": digest}
