"""Atomic replacement of files: a crash at any moment leaves the old file or the new one, whole."""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import IO, BinaryIO

from longterm.errors import InputError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ATTEMPTS = 50
_PARTIAL = re.compile(r"\.[0-9a-f]{8}\.partial")


def write_atomically(path: Path, content: bytes | Callable[[BinaryIO], object], *, sync: bool = True) -> None:
    """Write a file beside `path`, fsync it, rename it over `path`, and fsync the folder.

    The new file keeps the mode and, where permitted, the owner of the old one. A failure removes what was written. A
    crash may leave a file that ends in ``.partial``; `remove_abandoned` recognises it by its free lock. Several
    processes may write the same path at once: the last one wins.

    Parameters
    ----------
    path : pathlib.Path
        The file, in a folder that exists.
    content : bytes, or a function of an open binary file
        The content, or a function that writes it.
    sync : bool
        False: leave the folder to a call of `sync_folder` after several files. After a power failure before it the old
        file may be there.

    Raises
    ------
    InputError
        If `path` is a folder, a device or a pipe.
    """
    path = path.resolve()  # a symbolic link stays one
    if path.exists() and not path.is_file():
        raise InputError("path", f"{path} is not a regular file", "Give the name of a file")
    while not _write_beside(path, content):
        pass  # another process removed the new file as abandoned before it was locked
    if sync:
        sync_folder(path.parent)


def _write_beside(path: Path, content: bytes | Callable[[BinaryIO], object]) -> bool:
    """Write and rename one partial file. Return False if another process removed it at once."""
    partial = partial_beside(path)
    try:
        with partial.open("xb") as file:
            if not try_lock(file):
                return False
            _copy_permissions(path, file)
            if callable(content):
                content(file)
                file.flush()
            else:
                write_all(file.fileno(), content)
            os.fsync(file.fileno())
        replace_file(partial, path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    return True


def _copy_permissions(path: Path, file: IO[bytes]) -> None:
    """Give an open file the mode and owner of the file at `path`, if there is one."""
    try:
        old = path.stat()
    except FileNotFoundError:
        return
    if hasattr(os, "fchown"):
        with suppress(OSError):
            os.fchown(file.fileno(), old.st_uid, old.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))


def replace_file(source: Path, path: Path) -> None:
    """Rename `source` over `path`. Windows refuses while `path` is open anywhere, so retry for a second."""
    for attempt in range(ATTEMPTS):
        try:
            os.replace(source, path)  # noqa: PTH105 - the tests inject faults into the os module
        except PermissionError:
            if os.name != "nt" or attempt == ATTEMPTS - 1:
                raise
            time.sleep(0.02)
        else:
            return


def try_lock(file: IO[bytes] | int) -> bool:
    """Return whether an existing file or folder could be locked. True where the system has no locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return os.fstat(file if isinstance(file, int) else file.fileno()).st_nlink > 0


def remove_abandoned(path: Path) -> None:
    """Remove partial files of writers of `path` that died. Live writers hold a lock."""
    with suppress(OSError), os.scandir(path.parent) as entries:
        for name in [entry.name for entry in entries if entry.name.startswith(f"{path.name}.")]:
            if not _PARTIAL.fullmatch(name[len(path.name) :]):
                continue
            partial = path.with_name(name)
            with suppress(OSError), partial.open("r+b") as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    partial.unlink()
            if fcntl is None:  # Windows refuses to remove an open file
                with suppress(OSError):
                    partial.unlink()


def partial_beside(path: Path) -> Path:
    """Return an unused name for a partial file of `path`."""
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte. The system may take fewer than it is given."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Force a rename to the disk where the system can open a folder."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
