"""Snapshot files: a kind, a version, named arrays and JSON metadata, protected by a checksum.

8 bytes   magic
4 bytes   version of this layout, little-endian
8 bytes   length of the whole file
body      `packing.pack`: kind, version of the kind, version of the library, metadata, arrays
32 bytes  SHA-256 of everything before
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import longterm
from longterm._base.arrays import Array
from longterm._base.files import remove_abandoned, write_atomically
from longterm.errors import SnapshotError
from longterm.storage.packing import pack, unpack

MAGIC = b"\x89LTSNAP\n"
VERSION = 1
IN_MEMORY = Path("bytes")
"""Stands for the path in messages about bytes that were never in a file."""
_PRELUDE = struct.Struct("<8sIQ")
_CHECKSUM = 32


@dataclass(frozen=True)
class Snapshot:
    """The contents of a snapshot file."""

    kind: str
    """The kind of object, for example "fleet"."""
    version: int
    """The version of that kind's metadata and arrays, from 1."""
    metadata: Mapping[str, Any] = field(repr=False)
    arrays: Mapping[str, Array] = field(repr=False)

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        description = {"kind": self.kind, "version": self.version, "longterm": longterm.__version__}
        body = pack({**description, "metadata": self.metadata}, self.arrays)
        data = _PRELUDE.pack(MAGIC, VERSION, _PRELUDE.size + len(body) + _CHECKSUM) + body
        return data + hashlib.sha256(data).digest()


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot atomically, after removing the partial files of writers that died."""
    data = snapshot.encode()
    remove_abandoned(path)
    write_atomically(path, data)


def read_snapshot(path: Path, kind: str, version: int) -> Snapshot:
    """Return the snapshot in a file. Raise a SnapshotError unless it is whole and of this kind and version."""
    if path.exists() and not path.is_file():  # reading a pipe or a device may never end
        raise SnapshotError(path, "foreign", "it is a folder or a device", "Give a file that save() made")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise SnapshotError(path, "missing", "there is no such file", "Give a file that save() made") from None
    return decode(data, path, kind, version)


def decode(data: bytes, path: Path, kind: str, version: int) -> Snapshot:
    """Return the snapshot in the bytes of a file. `path` is for error messages."""
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise SnapshotError(path, "foreign", "this is not a snapshot of longterm", "Give a file that save() made")
    if len(data) < _PRELUDE.size + _CHECKSUM:
        raise _truncated(path, len(data), "at least " + str(_PRELUDE.size + _CHECKSUM))
    _, layout, length = _PRELUDE.unpack_from(data)
    if len(data) < length:
        raise _truncated(path, len(data), str(length))
    if hashlib.sha256(data[:-_CHECKSUM]).digest() != data[-_CHECKSUM:]:
        raise SnapshotError(path, "corrupted", "the checksum does not match the contents", "Restore it from a copy")
    if len(data) != length:
        raise SnapshotError(path, "corrupted", f"it has {len(data)} bytes, not {length}", "Restore it from a copy")
    if layout != VERSION:
        raise _other_version(path, f"its layout is version {layout}, this library reads {VERSION}")
    try:
        body, arrays = unpack(data[_PRELUDE.size : -_CHECKSUM])
        found, number, metadata = str(body["kind"]), int(body["version"]), dict(body["metadata"])
        library = str(body["longterm"])
    except (KeyError, ValueError, TypeError) as error:
        raise SnapshotError(path, "corrupted", str(error), "Restore it from a copy") from None
    if found != kind:
        what = f"it holds the state of {f'a {found}' if found.isprintable() else repr(found):.60}, not of a {kind}"
        raise SnapshotError(path, "foreign", what, "Load it with the class that wrote it")
    if number != version:
        raise _other_version(path, f"longterm {library!r:.20} wrote a {kind} of version {number}, not {version}")
    return Snapshot(kind, number, metadata, arrays)


def _truncated(path: Path, size: int, expected: str) -> SnapshotError:
    return SnapshotError(path, "truncated", f"it has {size} bytes of {expected}", "Restore it from a copy")


def _other_version(path: Path, what: str) -> SnapshotError:
    remedy = f"This is longterm {longterm.__version__}: install the version that wrote the file"
    return SnapshotError(path, "another version", what, remedy)
