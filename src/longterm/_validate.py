"""Checks of arguments at the door, shared so that the same mistake gets the same words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm.errors import InputError

# A hyper-parameter: one number, or an array of them over the leading axes (one per learner).
Hyper = float | NDArray[Any]


def number(argument: str, value: Any) -> Hyper:
    """One finite number, or an array of finite numbers, as a float or a float64 array."""
    if isinstance(value, float) and math.isfinite(value):
        return float(value)  # what it nearly always is, in a twentieth of the time
    try:
        given = np.asarray(value)
    except ValueError:  # a ragged list
        given = np.asarray(None)
    if given.dtype.kind not in "fiu" or given.size == 0:
        raise InputError(argument, f"{value!r} is not a number", "Give a real number or an array of them")
    array = given.astype(np.float64)
    if not np.all(np.isfinite(array)):
        raise InputError(argument, f"{value!r} is not finite", "Give finite numbers")
    return float(array) if array.ndim == 0 else frozen(array)


def _any(condition: Any) -> bool:
    """Whether it holds of a number, or of one of an array."""
    return condition if type(condition) is bool else bool(np.any(condition))


def positive(argument: str, value: Any) -> Hyper:
    """A number (or an array of them) above zero."""
    checked = number(argument, value)
    if _any(checked <= 0):
        raise InputError(argument, f"{value!r} is not positive", f"Give a {argument} above 0")
    return checked


def non_negative(argument: str, value: Any) -> Hyper:
    """A number (or an array of them) of at least zero."""
    checked = number(argument, value)
    if _any(checked < 0):
        raise InputError(argument, f"{value!r} is negative", f"Give a {argument} of at least 0")
    return checked


def open_unit_interval(argument: str, value: Any) -> Hyper:
    """A number (or an array of them) in (0, 1)."""
    checked = number(argument, value)
    if _any(checked <= 0) or _any(checked >= 1):
        raise InputError(
            argument,
            f"{value!r} is outside (0, 1)",
            "Table 1 of the paper needs 0 < β < 1; 2/3 balances regret and violation, 1/2 favours regret",
        )
    return checked


def scalar(argument: str, value: Hyper) -> float:
    """A single number where arrays over learners make no sense (a set's radius, a budget)."""
    if isinstance(value, np.ndarray):
        raise InputError(argument, f"has shape {value.shape}", "Give one number, not an array")
    return float(value)


def positive_scalar(argument: str, value: Any) -> float:
    """One number above zero."""
    return scalar(argument, positive(argument, value))


def non_negative_scalar(argument: str, value: Any) -> float:
    """One number of at least zero."""
    return scalar(argument, non_negative(argument, value))


def require_at_most(argument: str, value: float, limit: float, why: str) -> float:
    """One number that a fact keeps below a limit."""
    if value > limit * (1 + 1e-12):
        raise InputError(argument, f"{value:g} is above {limit:g}, and {why}", "Check where it comes from")
    return value


def dimension(argument: str, value: Any) -> int:
    """A whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(argument, f"{value!r} is not a dimension", "Give a whole number of at least 1")
    return int(value)


def count(argument: str, value: Any) -> int:
    """A whole number of at least one, of rounds for example."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(argument, f"{value!r} is not a whole number of at least 1", "Give one, 1000 for example")
    return int(value)


def seed(argument: str, value: Any) -> int:
    """A whole number of at least zero, to draw an instance from."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(argument, f"{value!r} is not a seed", "Give a whole number of at least 0")
    return int(value)


def horizons(argument: str, value: Any) -> NDArray[np.int64]:
    """One round number or a list of them, each at least 1, in the shape given. 1e6 will do for 1000000."""
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
    """A finite two-dimensional float64 array, copied so that nobody changes it later."""
    array = number(argument, value)
    if not isinstance(array, np.ndarray) or array.ndim != 2 or 0 in array.shape:
        shape = np.shape(value)
        raise InputError(argument, f"has shape {shape}", "Give a two-dimensional array with at least one row")
    return array


def vector(argument: str, value: Any, length: int | None = None) -> NDArray[np.float64]:
    """A finite one-dimensional float64 array, copied so that nobody changes it later."""
    array = number(argument, value)
    if not isinstance(array, np.ndarray) or array.ndim != 1 or (length is not None and len(array) != length):
        wanted = "one-dimensional array" if length is None else f"one-dimensional array of length {length}"
        raise InputError(argument, f"has shape {np.shape(value)}", f"Give a {wanted}")
    return array


def frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """A read-only copy."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def set_frozen(frozen_object: object, **attributes: object) -> None:
    """Set attributes of a frozen dataclass while it is being made."""
    for name, value in attributes.items():
        object.__setattr__(frozen_object, name, value)


def validate_fields(
    frozen_object: object, check: Callable[[str, Any], object], *names: str, optional: bool = False
) -> None:
    """Hold fields of a frozen dataclass against a check while it is being made, and keep what the check makes of them.

    Where they are `optional`, None stays None.
    """
    for name in names:
        value = getattr(frozen_object, name)
        if value is not None or not optional:
            set_frozen(frozen_object, **{name: check(name, value)})
