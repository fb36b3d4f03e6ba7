"""Replace a file so that a crash at any moment leaves the old one or the new one, whole."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside it, force that to the disk, rename it over `path`, force the rename to the disk.

    A crash on the way may leave `path`.partial behind; it is never read, and overwritten the next time.
    """
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb", buffering=0) as file:
        write_all(file.fileno(), data)
        os.fsync(file.fileno())
    os.replace(partial, path)  # noqa: PTH105 - the tests crash at every call of the os module
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
