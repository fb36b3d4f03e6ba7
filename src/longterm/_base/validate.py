"""Argument validation. Each function returns the converted value or raises `InputError`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm.errors import InputError

LARGEST_COUNT = 2**53
"""Whole numbers up to here are exact as floats."""
# A hyper-parameter: one number, or an array of them over the leading axes (one per learner).
Hyper = float | NDArray[Any]


def number(argument: str, value: Any) -> Hyper:
    """Return a finite number as a float, or an array of finite numbers as a float64 array."""
    if isinstance(value, float) and math.isfinite(value):
        return float(value)  # the usual case, 20 times faster
    try:
        given = np.asarray(None if np.ma.is_masked(value) else value)
    except ValueError:  # a ragged list
        given = np.asarray(None)
    if given.size == 0:
        raise InputError(argument, "is empty", "Give at least one number")
    if given.dtype.kind not in "fiu":
        raise InputError(argument, f"{value!r} is not a number", "Give a real number or an array of them")
    array = given.astype(np.float64)
    if not np.all(np.isfinite(array)):
        raise InputError(argument, f"{value!r} is not finite", "Give finite numbers")
    return float(array) if array.ndim == 0 else frozen(array)


def _any(condition: Any) -> bool:
    """Return True if a condition holds for a number or for any entry of an array."""
    return condition if type(condition) is bool else bool(np.any(condition))


def positive(argument: str, value: Any) -> Hyper:
    """Return a number, or an array of numbers, above 0."""
    checked = number(argument, value)
    if _any(checked <= 0):
        raise InputError(argument, f"{value!r} is not positive", f"Give a {argument} above 0")
    return checked


def non_negative(argument: str, value: Any) -> Hyper:
    """Return a number, or an array of numbers, of at least 0."""
    checked = number(argument, value)
    if _any(checked < 0):
        raise InputError(argument, f"{value!r} is negative", f"Give a {argument} of at least 0")
    return checked


def open_unit_interval(argument: str, value: Any) -> Hyper:
    """Return a number, or an array of numbers, in (0, 1)."""
    checked = number(argument, value)
    if _any(checked <= 0) or _any(checked >= 1):
        raise InputError(argument, f"{value!r} is outside (0, 1)", f"Give a {argument} above 0 and below 1")
    return checked


def trade_off(argument: str, value: Any) -> Hyper:
    """Return an exponent β in (0, 1), or an array of them, of the schedules of Table 1."""
    try:
        return open_unit_interval(argument, value)
    except InputError as error:
        remedy = "Table 1 of the paper needs 0 < β < 1; 2/3 balances regret and violation, 1/2 favours regret"
        raise InputError(argument, error.what, remedy) from None


def scalar(argument: str, value: Hyper) -> float:
    """Return a single number, where one value per learner makes no sense (a set's radius, a budget)."""
    if isinstance(value, np.ndarray):
        raise InputError(argument, f"has shape {value.shape}", "Give one number, not an array")
    return float(value)


def positive_scalar(argument: str, value: Any) -> float:
    """Return a single number above 0."""
    return scalar(argument, positive(argument, value))


def non_negative_scalar(argument: str, value: Any) -> float:
    """Return a single number of at least 0."""
    return scalar(argument, non_negative(argument, value))


def require_at_most(argument: str, value: float, limit: float, why: str) -> float:
    """Return a number that must not exceed a limit, for the reason `why`."""
    if value > limit * (1 + 1e-12):
        raise InputError(argument, f"{value:g} is above {limit:g}, and {why}", "Check where it comes from")
    return value


def dimension(argument: str, value: Any) -> int:
    """Return a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= LARGEST_COUNT:
        what = f"{value!r:.60} is not a dimension"
        raise InputError(argument, what, "Give a whole number of at least 1, and at most 2**53")
    return int(value)


def count(argument: str, value: Any) -> int:
    """Return a whole number of at least 1, for example a number of rounds."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= LARGEST_COUNT:
        what = f"{value!r:.60} is not a whole number of at least 1, and at most 2**53"
        raise InputError(argument, what, f"Give {argument}=1 or more")
    return int(value)


def parameter_shapes(argument: str, value: Any) -> dict[str, tuple[int, ...]]:
    """Return the trailing shapes of a round's parameters by name; none if the value is None."""
    value = {} if value is None else value
    if not isinstance(value, Mapping) or not all(
        isinstance(name, str) and isinstance(shape, tuple) for name, shape in value.items()
    ):
        what = f"{value!r:.60} is not the shape of each parameter by name"
        raise InputError(argument, what, 'Give {"demand": ()} for a number, {"cost": (3,)} for a vector')
    return dict(value)


def choice(argument: str, value: Any, known: Iterable[str]) -> str:
    """Return one of the known words."""
    *first, last = (repr(word) for word in known)
    if not isinstance(value, str) or repr(value) not in (*first, last):
        raise InputError(argument, f"{value!r} is not known", f"Choose {', '.join(first)} or {last}")
    return value


def seed(argument: str, value: Any) -> int:
    """Return a whole number of at least 0, the seed of a random instance."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(argument, f"{value!r} is not a seed", "Give a whole number of at least 0")
    return int(value)


def horizons(argument: str, value: Any) -> NDArray[np.int64]:
    """Return one round number or a list of them, each at least 1, in the given shape. 1e6 is accepted."""
    given = np.asarray(value)
    if (
        given.dtype.kind not in "fiu"
        or given.ndim > 1
        or given.size == 0
        or np.any(given < 1)
        or np.any(given % 1 != 0)
    ):
        raise InputError(argument, f"{value!r} is not a round or a list of rounds", "Give whole numbers of at least 1")
    return given.astype(np.int64)


def matrix(argument: str, value: Any) -> NDArray[np.float64]:
    """Return a finite, read-only, two-dimensional float64 copy."""
    array = number(argument, value)
    if not isinstance(array, np.ndarray) or array.ndim != 2 or 0 in array.shape:
        shape = np.shape(value)
        raise InputError(argument, f"has shape {shape}", "Give a two-dimensional array with at least one row")
    return array


def vector(argument: str, value: Any, length: int | None = None) -> NDArray[np.float64]:
    """Return a finite, read-only, one-dimensional float64 copy."""
    array = number(argument, value)
    if not isinstance(array, np.ndarray) or array.ndim != 1 or (length is not None and len(array) != length):
        wanted = "one-dimensional array" if length is None else f"one-dimensional array of length {length}"
        raise InputError(argument, f"has shape {np.shape(value)}", f"Give a {wanted}")
    return array


def frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a read-only copy."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def set_frozen(frozen_object: object, **attributes: object) -> None:
    """Set attributes of a frozen dataclass in its `__post_init__`."""
    for name, value in attributes.items():
        object.__setattr__(frozen_object, name, value)


def validate_fields(
    frozen_object: object, check: Callable[[str, Any], object], *names: str, optional: bool = False
) -> None:
    """Validate fields of a frozen dataclass in its `__post_init__` and set them to the converted values.

    With `optional`, None is accepted and kept.
    """
    for name in names:
        value = getattr(frozen_object, name)
        if value is not None or not optional:
            set_frozen(frozen_object, **{name: check(name, value)})
