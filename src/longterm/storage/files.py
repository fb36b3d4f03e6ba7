"""Replace a file so that a crash at any moment leaves the old one or the new one, whole."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from glob import escape
from pathlib import Path
from types import ModuleType
from typing import IO, BinaryIO

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ATTEMPTS = 50
_PARTIAL = re.compile(r"\.[0-9a-f]{8}\.partial")


def write_atomically(path: Path, content: bytes | Callable[[BinaryIO], object]) -> None:
    """Write beside it, force that to the disk, rename it over `path`, force the rename to the disk.

    A failure takes what was written away again. A crash may leave a file that ends in ``.partial``; it is never read,
    and `remove_abandoned` knows it by its lock, which nobody holds any more.
    Several processes may write the same path at once: the last one stands, whole.

    Parameters
    ----------
    path : pathlib.Path
        In a folder that exists.
    content : bytes, or a function of an open binary file
        What to write, or what writes it.
    """
    path = path.resolve()  # a link stays one
    while not _written_beside(path, content):
        pass  # someone took what had just been begun for a dead writer's: once more, under another name
    sync_folder(path.parent)


def _written_beside(path: Path, content: bytes | Callable[[BinaryIO], object]) -> bool:
    partial = partial_beside(path)
    try:
        with partial.open("xb") as file:
            if not claimed(file):
                return False
            if callable(content):
                content(file)
                file.flush()
            else:
                write_all(file.fileno(), content)
            os.fsync(file.fileno())
        put_in_place(partial, path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    return True


def put_in_place(source: Path, path: Path) -> None:
    """Rename `source` over `path`. Windows refuses while anybody has that open: it is tried for a second."""
    for again in range(ATTEMPTS):
        try:
            os.replace(source, path)  # noqa: PTH105 - the tests crash at every call of the os module
        except PermissionError:
            if os.name != "nt" or again == ATTEMPTS - 1:
                raise
            time.sleep(0.02)
        else:
            return


def claimed(file: IO[bytes]) -> bool:
    """Whether the lock of a file could be had, and the file is still there. True where there are no locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return os.fstat(file.fileno()).st_nlink > 0


def remove_abandoned(path: Path) -> None:
    """Remove what writers of `path` that died left behind; those that are still writing hold a lock."""
    with suppress(OSError), os.scandir(path.parent) as entries:
        for name in [entry.name for entry in entries if entry.name.startswith(f"{path.name}.")]:
            if not _PARTIAL.fullmatch(name[len(path.name) :]):
                continue
            left = path.with_name(name)
            with suppress(OSError), left.open("r+b") as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    left.unlink()
            if fcntl is None:  # Windows removes nothing that is open
                with suppress(OSError):
                    left.unlink()


def partial_beside(path: Path) -> Path:
    """A name for what is to become `path`."""
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")


def remove_partials(path: Path) -> None:
    """Remove what a writer of `path` that died left behind. Only for who has the one right to write it."""
    for left in path.parent.glob(f"{escape(path.name)}.*.partial"):
        if _PARTIAL.fullmatch(left.name[len(path.name) :]):
            with suppress(OSError):
                left.unlink()


def write_all(descriptor: int, data: bytes) -> None:
    """Every byte: the system may take fewer than it is given."""
    written = os.write(descriptor, data)
    if written < len(data):
        left = memoryview(data)[written:]
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
