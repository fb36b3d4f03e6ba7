"""Compiler options of the kernels and of the helpers that they call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from longterm._base import compiling
from longterm.theory import scales

FASTMATH = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be reordered for SIMD. The whole set would assume that there are no NaNs."""

helper: Any = numba.njit(fastmath=FASTMATH, error_model="numpy", forceinline=True)
"""Decorator of the functions that kernels call. They are compiled into the kernels and not cached by themselves.
Without `forceinline` a round takes 1.3 times as long."""
ordered: Any = numba.njit(fastmath={"contract"}, error_model="numpy", forceinline=True)
"""The same for products that would underflow if they were reordered."""
exact: Any = numba.njit(fastmath=False, error_model="numpy")
"""The same for compensated sums and heaps."""


def source_digest() -> str:
    """Return a digest of this folder and of the constants that it imports; kernels close over it."""
    constants = {name: value for name, value in vars(scales).items() if name.isupper()}
    return f"{compiling.source_digest(Path(__file__).parent)} {constants}"


@helper
def use(digest):
    """Do nothing: a kernel calls it so that the digest is part of its closure and of Numba's cache key."""


def compiled(function: Callable[..., Any], signature: Any, *, reorder: bool = True) -> Any:
    """Return the kernel `function`, compiled for arguments of these types. Without `reorder` sums keep their order."""
    return compiling.compiled(function, signature, fastmath=FASTMATH if reorder else False)
