"""Names under which files mention functions, so that a function can be renamed or moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def registered(name: str) -> Callable[[F], F]:
    """Return a decorator that gives a function its name in files. The name never changes.

    >>> from longterm._base.registered import registered, registered_name
    >>> @registered("half")
    ... def divide_by_two(x):
    ...     return x / 2
    >>> registered_name(divide_by_two)
    'half'
    """

    def mark(function: F) -> F:
        function.registered_name = name  # type: ignore[attr-defined]
        return function

    return mark


def registered_name(function: Any) -> str:
    """Return the registered name of a function or, for a user's function, its own name without its module."""
    name: str = getattr(function, "registered_name", function.__name__)
    return name
