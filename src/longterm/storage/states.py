"""The state of a learner, a named tuple of arrays, as named arrays and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from longterm._arrays import Array


def state_arrays(state: Any) -> dict[str, Array]:
    """The arrays of a learner's state, by name; a named tuple inside it is `outer.inner`."""
    return {f"state.{name}": value for name, value in _leaves(state, "")}


def restored_state(template: Any, arrays: Mapping[str, Array], *, same_shapes: bool = True) -> Any:
    """A state like `template`, made of stored arrays; ValueError if they do not fit it.

    Parameters
    ----------
    template : named tuple
    arrays : mapping
        What `state_arrays` made.
    same_shapes : bool
        Whether shapes and dtypes must be the template's too, not the names alone.
    """
    stored = {name.removeprefix("state."): value for name, value in arrays.items() if name.startswith("state.")}
    wanted = dict(_leaves(template, ""))
    if list(stored) != list(wanted):
        raise ValueError(f"the state holds {list(stored)}, not {list(wanted)}")
    for name, value in wanted.items() if same_shapes else ():
        kind, found = (np.shape(value), np.asarray(value).dtype), (np.shape(stored[name]), stored[name].dtype)
        if kind != found:
            raise ValueError(f"{name} has shape and dtype {found}, not {kind}")
    return _filled(template, "", stored)


def _leaves(state: Any, prefix: str) -> Iterator[tuple[str, Array]]:
    for name, value in state._asdict().items():
        if hasattr(value, "_asdict"):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _filled(template: Any, prefix: str, stored: Mapping[str, Array]) -> Any:
    values = {
        name: _filled(value, f"{prefix}{name}.", stored) if hasattr(value, "_asdict") else stored[prefix + name]
        for name, value in template._asdict().items()
    }
    return type(template)(**values)
