"""How kernels are compiled: once, kept on disk, and never stale.

Numba keeps a compiled kernel as long as the kernel's own file is unchanged. It does not notice that a helper in another
file was edited. But what a kernel closes over is part of the key under which it is kept. So every kernel closes over
`sources()` and hands it to `keep_under`: whatever is edited in this folder, every kernel is compiled anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from longterm.learners import multi_scale_hedge
from longterm.storage import compiled as storage

FASTMATH = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be reordered for SIMD. Never the whole set: it assumes that there are no NaNs, and they must be refused."""
_INLINE: Any = {"forceinline": True} if numba.version_info[:2] < (0, 70) else {}
"""Calls that LLVM leaves standing cost a round half as much again. Numba does not document this option: versions that
were not tried go without, and are slower."""
OPTIONS: Any = {"fastmath": FASTMATH, "error_model": "numpy"} | _INLINE

helper = numba.njit(**OPTIONS)
"""For the functions that kernels call: compiled into them, not kept by themselves."""
exact = numba.njit(fastmath=False, error_model="numpy")
"""For compensated sums, which must not be reordered. Left out, `fastmath` means: as the function that calls."""
in_order = numba.njit(fastmath=False, error_model="numpy", **_INLINE)
"""For sums that must come out the same, to the last bit, in every kernel that they are compiled into."""
precise = numba.njit(fastmath={"contract"}, error_model="numpy", **_INLINE)
"""For functions of a number whose roundings are part of their design."""


def sources() -> str:
    """A digest of this folder's files, and the constants that are not in them."""
    constants = {name: value for name, value in vars(multi_scale_hedge).items() if name.isupper()}
    return f"{storage.sources(Path(__file__).parent)} {constants}"


@helper
def keep_under(digest):
    """Nothing: see above."""


def compiled(function: Callable[..., Any], signature: Any) -> Any:
    """`function` for arguments of these types and no others, with the kernels' arithmetic."""
    return storage.compiled(function, signature, fastmath=FASTMATH)


def _pointer(context, address):
    """An address as a pointer, for `numba.carray`."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


pointer: Any = intrinsic(_pointer)
