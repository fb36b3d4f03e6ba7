"""Replace a file so that a crash at any moment leaves the old one or the new one, whole."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, content: bytes | Callable[[BinaryIO], object]) -> None:
    """Write beside it, force that to the disk, rename it over `path`, force the rename to the disk.

    A failure takes what was written away again. A crash may leave a file that ends in ``.partial``; it is never read.
    Several processes may write the same path at once: the last one stands, whole.

    Parameters
    ----------
    path : pathlib.Path
        In a folder that exists.
    content : bytes, or a function of an open binary file
        What to write, or what writes it.
    """
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("xb") as file:
            if callable(content):
                content(file)
                file.flush()
            else:
                write_all(file.fileno(), content)
            os.fsync(file.fileno())
        os.replace(partial, path)  # noqa: PTH105 - the tests crash at every call of the os module
    except (Exception, KeyboardInterrupt):
        with suppress(OSError):
            partial.unlink()
        raise
    sync_folder(path.parent)


def write_all(descriptor: int, data: bytes) -> None:
    """Every byte: the system may take fewer than it is given."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def sync_folder(folder: Path) -> None:
    """Force a rename to the disk, where the system lets one open a folder."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
