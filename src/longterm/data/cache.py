"""Parsed arrays, kept in a binary file, so that a text is parsed once.

The name of a cached file holds a hash of the text file's bytes and the version of this format: a text that changed, or
a newer parser, never meets an old cache. It is a zip with checksums, so that a damaged one is found out and made anew.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from longterm.data.files import cache_folder
from longterm.data.registry import Arrays
from longterm.errors import DataError
from longterm.storage.files import write_atomically

VERSION = 1
"""To be raised when the arrays that a parser returns change."""


def cached(
    name: str, source: Path, parse: Callable[[Path], dict[str, NDArray[Any]]], check: Callable[[Path, Arrays], None]
) -> dict[str, NDArray[Any]]:
    """What `parse` makes of the source, from the cache where it is there; `check` raises where it is not right."""
    folder = cache_folder() / "parsed"
    target = folder / f"{name}.{file_hash(source)[:32]}.v{VERSION}.npz"
    kept = _read(target)
    if kept is not None:
        try:
            check(target, kept)
        except (DataError, KeyError):
            kept = None
    if kept is None:
        kept = parse(source)
        check(source, kept)
        named: dict[str, Any] = kept
        write_cached(target, lambda file: np.savez(file, **named))
        for old in folder.iterdir():
            if old != target and re.fullmatch(rf"{re.escape(name)}\.[0-9a-f]+\.v\d+\.npz", old.name):
                old.unlink(missing_ok=True)
    return kept


def file_hash(source: Path) -> str:
    """SHA-256 of a file's bytes."""
    try:
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(source, f"cannot be read ({error})", "Make it readable, or get it again") from error


def _read(target: Path) -> dict[str, NDArray[Any]] | None:
    try:
        with target.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, EOFError, TypeError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
        return None


def write_cached(target: Path, write: Callable[[BinaryIO], object]) -> None:
    """A file of the cache, there whole or not at all."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, write)
    except OSError as error:
        remedy = "Set the environment variable LONGTERM_CACHE to a folder that can be written"
        raise DataError(target, f"the cache cannot be written ({error})", remedy) from error
