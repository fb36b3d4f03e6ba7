"""How kernels are compiled: once, kept on disk, and never stale.

Numba keeps a compiled kernel as long as the kernel's own file is unchanged. It does not notice that a helper in another
file was edited. So the sources of this whole folder are part of the key under which a kernel is kept: whatever is
edited here, every kernel is compiled anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.caching import FunctionCache
from numba.core.extending import intrinsic

FASTMATH = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be reordered for SIMD. Never the whole set: it assumes that there are no NaNs, and they must be refused."""


helper = numba.njit(fastmath=FASTMATH, error_model="numpy")
"""For the functions that kernels call: compiled into them, not kept by themselves."""


@cache
def _sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _FolderCache(FunctionCache):
    """Numba's cache on disk, with the sources of this folder in the key."""

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        return (*super()._index_key(signature, codegen), _sources())


def compiled(function: Callable[..., Any], signature: Any) -> Any:
    """`function` for arguments of these types and no others, from the disk where it is there. It releases the GIL."""
    dispatcher: Any = numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")(function)
    dispatcher._cache = _FolderCache(function)
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


def readonly(dtype: Any, dimensions: int = 1) -> types.Array:
    """The type of a C-ordered array that a kernel only reads: memory-mapped files are such, others serve as such."""
    return types.Array(dtype, dimensions, "C", readonly=True)


def _prefetch(context, array, byte):
    """Begin to load the cache line at this byte of an array's data."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = ir.IntType(8).as_pointer()
        address = builder.gep(builder.bitcast(data, pointer), [arguments[1]])
        integer = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, integer, integer, integer])
        function = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
        builder.call(function, [address, integer(0), integer(3), integer(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.none(array, types.intp), generate


prefetch: Any = intrinsic(_prefetch)


def _pointer(context, address):
    """An address as a pointer, for `numba.carray`."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


pointer: Any = intrinsic(_pointer)
