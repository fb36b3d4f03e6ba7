"""The four methods of an object that is saved in one file without pickle."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import ClassVar, Self

from longterm.storage.one_thread import exclusive
from longterm.storage.snapshot import IN_MEMORY, Snapshot, decode, read_snapshot, write_snapshot


class Saved:
    """Mixin: `save`, `load`, `to_bytes` and `from_bytes` of an object that has a snapshot."""

    file_kind: ClassVar[str]
    """The kind of its files."""
    file_version: ClassVar[int] = 1
    """The version of their layout."""

    @exclusive
    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file without pickle, atomically: a crash leaves the old file or the new one."""
        write_snapshot(Path(path), self._snapshot())

    @exclusive
    def to_bytes(self) -> bytes:
        """Return the bytes that `save` writes, for a queue, a database or another process."""
        return self._snapshot().encode()

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return what was saved: it predicts the same and continues to learn bit for bit.

        Any other file raises a SnapshotError. Nothing in a file is executed.
        """
        return cls._from_snapshot(read_snapshot(Path(path), cls.file_kind, cls.file_version), Path(path))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return what `to_bytes` stored, as `load` does. Raise SnapshotError for any other bytes."""
        return cls._from_snapshot(decode(data, IN_MEMORY, cls.file_kind, cls.file_version), IN_MEMORY)

    def _snapshot(self) -> Snapshot:
        """Return the state."""
        raise NotImplementedError

    @classmethod
    def _from_snapshot(cls, stored: Snapshot, path: Path) -> Self:
        """Return the object with this state, after checks. Errors name the path."""
        raise NotImplementedError
