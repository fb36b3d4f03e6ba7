"""States as trees: a state is a named tuple whose fields are arrays or named tuples again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from longterm._base.arrays import Array, namespace


def state_leaves(state: Any, prefix: str = "") -> dict[str, Array]:
    """Return the arrays of a state by name. A named tuple inside it has names like `outer.inner`; None has no array.

    >>> from typing import NamedTuple
    >>> from longterm._base.states import state_leaves
    >>> class Inner(NamedTuple):
    ...     b: int
    >>> class Outer(NamedTuple):
    ...     a: int
    ...     inner: Inner
    >>> state_leaves(Outer(1, Inner(2)))
    {'a': 1, 'inner.b': 2}
    """
    leaves: dict[str, Array] = {}
    for name, value in state._asdict().items():
        if hasattr(value, "_asdict"):
            leaves |= state_leaves(value, f"{prefix}{name}.")
        elif value is not None:
            leaves[prefix + name] = value
    return leaves


def state_values(state: Any) -> list[Array]:
    """Return the arrays of `state_leaves` without their names."""
    values: list[Array] = []
    for value in state:
        if isinstance(value, tuple):
            values += state_values(value)
        elif value is not None:
            values.append(value)
    return values


def state_from_leaves(template: Any, leaves: Iterable[Array]) -> Any:
    """Return a state like `template` of these arrays, in the order of `state_leaves`."""
    remaining = iter(leaves)
    return map_states(lambda _: next(remaining), template)


def are_finite(values: Array) -> bool:
    """Return True unless an array of floats, or a number, holds NaN or infinity. Other dtypes are finite."""
    if isinstance(values, (float, int, np.generic)):
        return math.isfinite(values)
    if type(values) is np.ndarray:
        if values.dtype.kind != "f":
            return True
        return math.isfinite(np.vdot(values, values)) or bool(np.isfinite(values).all())  # the first is faster
    xp = namespace(values)
    return not xp.isdtype(values.dtype, "real floating") or bool(xp.all(xp.isfinite(values)))


def first_not_finite(state: Any) -> str | None:
    """Return the name of the first array of a state that holds NaN or infinity, or None."""
    return next((name for name, leaf in state_leaves(state).items() if not are_finite(leaf)), None)


def map_states(function: Callable[..., Array], *states: Any) -> Any:
    """Return the state whose arrays are `function` of the corresponding arrays of the given states."""

    def mapped(*fields: Any) -> Any:
        if fields[0] is None:
            return None
        return map_states(function, *fields) if hasattr(fields[0], "_asdict") else function(*fields)

    return type(states[0])(*map(mapped, *states))


def per_row(xp: Any, field: Array, size: int) -> Array:
    """Return a field of a state with one row for each of `size` learners. It may be a view."""
    array = xp.asarray(field)
    return array if array.shape[:1] == (size,) else xp.broadcast_to(array, (size, *array.shape))
