"""States as trees: a state is a named tuple whose fields are arrays or named tuples again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from longterm._base.arrays import Array


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


def state_from_leaves(template: Any, leaves: Iterable[Array]) -> Any:
    """Return a state like `template` of these arrays, in the order of `state_leaves`."""
    remaining = iter(leaves)
    return map_states(lambda _: next(remaining), template)


def map_states(function: Callable[..., Array], *states: Any) -> Any:
    """Return the state whose arrays are `function` of the corresponding arrays of the given states."""

    def mapped(*fields: Any) -> Any:
        if fields[0] is None:
            return None
        return map_states(function, *fields) if hasattr(fields[0], "_asdict") else function(*fields)

    return type(states[0])(*map(mapped, *states))
