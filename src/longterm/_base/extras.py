"""Optional dependencies: import them, or say which extra to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def missing_extra(what: str, extra: str) -> ImportError:
    """Return the error for an optional dependency that is not installed, with both ways to install it."""
    return ImportError(f"{what}: pip install 'longterm[{extra}]', or in a clone pip install '.[{extra}]'")


def import_optional(module: str, what: str, extra: str) -> Any:
    """Import a module of an optional dependency; if it is missing, raise ImportError with the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise missing_extra(what, extra) from error
