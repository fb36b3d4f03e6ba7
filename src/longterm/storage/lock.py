"""One writer of a file: a lock of the operating system, held from opening to closing.

The lock is on a file of its own, `NAME.lock`, because the file it stands for is replaced by renaming. The system frees
it when the process dies, however it dies. A clean release removes the file, but on Windows, where that cannot be done
before others may have it; one that was left behind locks nobody out.
"""

from __future__ import annotations

import errno
import os
import platform
import sys
import time
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from longterm.errors import JournalError
from longterm.storage.files import try_lock

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FAR = 2**30
"""Windows locks bytes, and nobody may read those: one far behind the holder's number is taken."""
_LENGTH = 100
"""How much the holder writes of itself, blanks included: a file that is cut short first is forced to the disk by some
systems."""
_TAKEN = {errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK, 0}
"""What a system says of a lock that another has: Windows EACCES, Wine's msvcrt no number at all."""
_HELD: weakref.WeakSet[FileLock] = weakref.WeakSet()


class NoLockWarning(UserWarning):
    """The file system has no locks: nothing keeps a second process from writing the same file."""


class FileLock:
    """The right to write one file. `held` says whether this process has it: a forked child never does."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        """The file itself: a link to it, or a name from another folder, would mean another one later."""
        self.held = False
        self._lock_path = Path(f"{self.path}.lock")
        self._file: FileIO | None = None
        self._itself: FileIO | None = None

    def acquire(self) -> FileLock:
        """Take it at once; a JournalError that names the process that has it, if there is one."""
        try:
            while not self.held:
                self._file = os.fdopen(os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
                if not self._lock():
                    raise self._refusal()
                # Whoever had it before may have removed the file after it was opened here: then it locks nobody out.
                if _same(self._file, self._lock_path):
                    with suppress(OSError):  # a full disk: the lock is had, if without a name
                        self._file.seek(0)
                        self._file.write(f"{os.getpid()} {platform.node()}".encode()[:_LENGTH].ljust(_LENGTH))
                    _HELD.add(self)
                    self.held = True
                else:
                    self._file.close()
        except BaseException:
            self.release()
            raise
        return self

    def claim(self) -> None:
        """Lock the file itself, too, which is there: it may have other names, or the file of its lock been removed."""
        if sys.platform == "win32":  # which renames nothing over an open file
            return
        itself = None
        try:
            itself = self.path.open("rb", buffering=0)
            free = try_lock(itself)
            if free:
                itself, self._itself = self._itself, itself
        finally:
            if itself is not None:
                itself.close()
        if not free:
            what, remedy = "another learner has the same file open", "Close it there; or give this one its own"
            raise JournalError(self.path, "in use", what, remedy)

    def claim_renewed(self) -> None:
        """The same of the file that has taken its place. It is the holder's, whoever else has it open."""
        with suppress(JournalError, OSError):
            self.claim()

    def release(self) -> None:
        """Give it back, if it is held."""
        held, self.held = self.held, False
        if self._itself is not None:
            self._itself.close()
        if self._file is None:
            return
        if held and sys.platform != "win32":
            self._lock_path.unlink(missing_ok=True)  # before it is freed, so that no one else's is removed
        self._file.close()

    def lost_by_fork(self) -> None:
        """In a forked child: the lock is the parent's, and the child must not keep it when the parent dies."""
        self.held = False
        for file in (self._file, self._itself):
            if file is not None:
                file.close()

    def _lock(self) -> bool:
        """Whether it could be had. Where there are no locks it is had, with a warning."""
        assert self._file is not None
        descriptor = self._file.fileno()
        try:
            if sys.platform == "win32":
                os.lseek(descriptor, _FAR, os.SEEK_SET)
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                return False
            what = f"the file system of {self._lock_path} has no locks ({error.strerror})"
            warnings.warn(f"{what}: see that one process at a time writes {self.path}", NoLockWarning, stacklevel=6)
        return True

    def _refusal(self) -> JournalError:
        holder, _, machine = self._holder().partition(" ")
        if not holder:
            who = "another process"
        elif machine != platform.node():
            who = f"process {holder} on {machine}"
        else:
            who = "this very process" if holder == str(os.getpid()) else f"process {holder}"
        remedy = "Close it there first; or give this learner a journal and a snapshot of its own"
        return JournalError(self.path, "in use", f"{who} is writing it", remedy)

    def _holder(self) -> str:
        """What the holder wrote; it does so right after it got the lock."""
        for _ in range(20):
            try:
                text = self._lock_path.read_bytes()[:_LENGTH].decode(errors="replace").strip()
            except OSError:
                text = ""
            if text:
                return text
            time.sleep(0.005)
        return ""


@contextmanager
def writing(path: Path | None) -> Iterator[FileLock | None]:
    """The lock on a file that is about to be opened; given back if that fails, else kept. None for no file."""
    if path is None:
        yield None
        return
    lock = FileLock(path)
    try:
        yield lock.acquire()
    except BaseException:
        lock.release()
        raise


def _same(file: FileIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _in_a_forked_child() -> None:
    for lock in list(_HELD):
        lock.lost_by_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_forked_child)
