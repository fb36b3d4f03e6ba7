"""Compilation of kernels with Numba (extra `linear`).

Compiled kernels are cached on disk: in `__pycache__` beside the source, in a folder of the user where that cannot be
written, or in the folder named by the environment variable NUMBA_CACHE_DIR.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types

from longterm.errors import CompileCacheWarning


def compiled(function: Callable[..., Any], signature: Any = None, **options: Any) -> Any:
    """Return `function` compiled by Numba, releasing the GIL and cached on disk.

    Parameters
    ----------
    function : callable
        A function in Numba's subset of Python.
    signature : tuple of Numba types, optional
        Compile now, for arguments of these types only. Otherwise a call compiles for the types of its arguments.
    **options
        Passed to `numba.njit`.

    Returns
    -------
    callable
        With NUMBA_DISABLE_JIT set, `function` itself.

    Warns
    -----
    CompileCacheWarning
        Once per process, if no folder for the cache can be written.
    """
    choices: Any = {"nogil": True, "error_model": "numpy"} | options
    try:
        return numba.njit(signature, cache=True, **choices)(function)
    except (RuntimeError, OSError) as error:  # Numba finds no folder, or cannot write into the one it found
        if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
            raise
        _warn_once(str(error))
    return numba.njit(signature, **choices)(function)


def readonly(dtype: Any, dimensions: int = 1) -> types.Array:
    """Return the Numba type of a C-ordered array that a kernel only reads. Writable arrays are accepted too."""
    return types.Array(dtype, dimensions, "C", readonly=True)


@cache
def source_digest(folder: Path) -> str:
    """Return a digest of the Python files in a folder.

    Numba compiles a kernel again when the kernel's own file changes, but not when a helper in another file does. The
    values in a kernel's closure are part of the cache key, so a kernel that closes over this digest is never stale.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_warned = False


def _warn_once(reason: str) -> None:
    """Warn about the missing cache in the first call only, since every kernel would repeat it."""
    global _warned
    if _warned:
        return
    _warned = True
    message = (
        f"Compiled kernels cannot be cached ({reason}). They are compiled again in every process, which takes seconds. "
        "Set NUMBA_CACHE_DIR to a writable folder, or compile the kernels when you build an image: "
        "longterm.linear_model.compile_all()"
    )
    warnings.warn(message, CompileCacheWarning, stacklevel=3)
