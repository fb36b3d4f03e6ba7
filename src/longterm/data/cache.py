"""Parsed arrays in the cache folder, so that a text is parsed once.

The name of a cached file contains a hash of the source's bytes and the version of this format, so a changed source or
a new parser never uses an old file. A cached file is a zip with checksums, so damage is detected.
"""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from longterm._base.files import write_atomically
from longterm.data.locations import cache_folder
from longterm.data.registry import Arrays
from longterm.errors import DataError

VERSION = 1
"""The version of the arrays that parsers return."""


def load_cached(
    name: str, source: Path, parse: Callable[[Path], dict[str, NDArray[Any]]], check: Callable[[Path, Arrays], None]
) -> dict[str, NDArray[Any]]:
    """Return the parsed arrays of a source, from the cache if possible. `check` raises DataError if they are wrong."""
    folder = cache_folder() / "parsed"
    target = folder / f"{name}.{file_hash(source)[:32]}.v{VERSION}.npz"
    arrays = _read(target)
    if arrays is not None:
        try:
            check(target, arrays)
        except (DataError, KeyError):
            arrays = None
    if arrays is None:
        arrays = parse(source)
        check(source, arrays)
        named: dict[str, Any] = arrays
        write_cached(target, lambda file: np.savez(file, **named), source)
        for old in folder.iterdir():
            if old != target and re.fullmatch(rf"{re.escape(name)}\.[0-9a-f]+\.v\d+\.npz", old.name):
                old.unlink(missing_ok=True)
    return arrays


def file_hash(source: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    try:
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(source, f"cannot be read ({error})", "Make it readable, or download it again") from error


def _read(target: Path) -> dict[str, NDArray[Any]] | None:
    try:
        with target.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, EOFError, TypeError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
        return None


def write_cached(target: Path, write: Callable[[BinaryIO], object], source: Path) -> None:
    """Write a file of the cache atomically, with the permissions of its source, so that private data stay private."""
    permissions = source.stat().st_mode & 0o777 | 0o600

    def write_with_permissions(file: BinaryIO) -> None:
        if hasattr(os, "fchmod"):  # not on Windows
            os.fchmod(file.fileno(), permissions)
        write(file)

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, write_with_permissions)
    except OSError as error:
        remedy = "Set the environment variable LONGTERM_CACHE to a writable folder"
        raise DataError(target, f"the cache cannot be written ({error})", remedy) from error
