"""Compiled kernels: made here, kept on disk, found again by the next process, made anew where they are damaged, done
without where there is no folder for them.

Numba's own cache believes what it reads, so a damaged file is an error or worse; it fails where a disk is full; and it
takes no notice of a folder that cannot be written to, such as one that was baked into an image. What is kept here
starts with its SHA-256, and is stamped with a digest of the sources rather than with the time of a file, which does not
survive the making of an image.
"""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic

from longterm.errors import CompileCacheWarning

_DIGEST = 32


@cache
def sources(folder: Path) -> str:
    """A digest of a folder's files, and of this one."""
    digest = hashlib.sha256()
    for path in (*sorted(folder.glob("*.py")), Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def compiled(function: Callable[..., Any], signature: Any = None, **options: Any) -> Any:
    """`function`, from the disk where it is there; for arguments of these types only, if they are given. It releases
    the GIL. With NUMBA_DISABLE_JIT it is what it was.
    """
    made: Any = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if made is not function:
        where = kept(function)
        if where is not None:
            made._cache = where
        if signature is not None:
            made.compile(signature)
            made.disable_compile()
    return made


def readonly(dtype: Any, dimensions: int = 1) -> types.Array:
    """The type of a C-ordered array that a kernel only reads: memory-mapped files are such, others serve as such."""
    return types.Array(dtype, dimensions, "C", readonly=True)


def _prefetch(context, address):
    """Begin to load the cache line at this address."""

    def generate(context, builder, signature, arguments):
        pointer, integer = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, integer, integer, integer])
        function = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
        place = builder.inttoptr(arguments[0], pointer)
        builder.call(function, [place, integer(0), integer(3), integer(1)])  # to read, to keep, data
        return arguments[0]

    return types.int64(types.int64), generate


prefetch: Any = intrinsic(_prefetch)


def kept(function: Callable[..., Any]) -> KernelCache | None:
    """Where the compiled function is kept; None, with one warning in this process, where there is no folder for it."""
    for kind in (KernelCache, ReadOnlyKernelCache):
        try:
            return kind(function)
        except RuntimeError as error:  # Numba found no folder
            if "cannot cache" not in str(error):
                raise
    _warn("there is no folder to keep them in")
    return None


class KernelFile(IndexDataCacheFile):
    """An index and the compiled code that it names, each behind its SHA-256."""

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return hashlib.sha256(data).digest() + data

    def _save_index(self, overloads: Any) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump((self._version, self._source_stamp, overloads)))

    def _load_index(self) -> Any:
        try:
            version, stamp, overloads = self._read(self._index_path)
        except OSError:
            return {}
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _read(self, path: str) -> Any:
        """What the file holds; OSError, which means that there is none, where it is damaged. Then it is deleted."""
        data = Path(path).read_bytes()
        if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
            with suppress(Exception):  # whatever a pickle of another Python may raise
                return pickle.loads(data[_DIGEST:])
        with suppress(OSError):
            Path(path).unlink()
        raise OSError(f"{path} is damaged")


class KernelCache(FunctionCache):
    """Numba's cache of one function, over files that are checked; a disk that cannot be written to is no error."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = sources(Path(function.__code__.co_filename).parent)
        self._cache_file = KernelFile(self._cache_path, self._impl.filename_base, stamp)

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(f"{self._cache_path} cannot be written to ({error.strerror or error})")


def _there(locator: Any) -> None:
    """Instead of making a folder and trying to write there: there must be one."""
    if not Path(locator.get_cache_path()).is_dir():
        raise OSError("no folder")


class _ReadOnlyImpl(CompileResultCacheImpl):
    _locator_classes: Any = tuple(
        type(f"ReadOnly{kind.__name__}", (kind,), {"ensure_cache_path": _there})
        for kind in CompileResultCacheImpl._locator_classes
    )


class ReadOnlyKernelCache(KernelCache):
    """The same from a folder that can only be read: one that came with an image."""

    _impl_class: Any = _ReadOnlyImpl

    def save_overload(self, sig: Any, data: Any) -> None:
        _warn(f"{self._cache_path} can only be read, and not every kernel is there")


_warned = False


def _warn(what: str) -> None:
    """Once in a process, not once for each kernel."""
    global _warned
    if not _warned:
        _warned = True
        message = (
            f"Compiled kernels are not kept: {what}. They are compiled anew in every process, which "
            "takes seconds. Let NUMBA_CACHE_DIR name a folder that can be written to, or bake them into the image: "
            "longterm.linear_model.compile_all(), and a Fleet as large as yours."
        )
        warnings.warn(message, CompileCacheWarning, stacklevel=2)
