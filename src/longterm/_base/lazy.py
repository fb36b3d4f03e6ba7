"""Packages that import their public names on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str], submodules: Collection[str] = ()) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package that imports a public name when it is first used.

    Parameters
    ----------
    package : str
        The package, ``__name__``.
    modules : mapping
        The module below the package that defines each public name.
    submodules : collection of str
        Modules that are public themselves.
    """

    def get(name: str) -> Any:
        if name in modules:
            found = getattr(import_module(f"{package}.{modules[name]}"), name)
            setattr(sys.modules[package], name, found)
            return found
        if name in submodules:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get
