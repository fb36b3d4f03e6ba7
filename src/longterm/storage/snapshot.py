"""Snapshot files: a kind, a version, named arrays and a little JSON, checked from the first byte to the last.

    8 bytes   magic
    4 bytes   version of this layout, little-endian
    8 bytes   length of the whole file
    body      `longterm.storage.packing`: kind, version of the kind, the library that wrote it, metadata, arrays
    32 bytes  SHA-256 of everything before; it also serves as the snapshot's identity

Magic, version, length and the final SHA-256 stay where they are in every version to come, so that a damaged file is
never taken for a newer one. **A change of layout raises a version**: what a kind stores, and how, is fixed by its
version, and files of every version there was lie in the tests, where they must load or say who wrote them. This module
knows nothing of learners: whatever has a state stores it under a kind of its own.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import longterm
from longterm._arrays import Array
from longterm.errors import SnapshotError
from longterm.storage.files import remove_abandoned, write_atomically
from longterm.storage.packing import MalformedError, pack, unpack

MAGIC = b"\x89LTSNAP\n"
VERSION = 1
_PRELUDE = struct.Struct("<8sIQ")
_CHECKSUM = 32


@dataclass(frozen=True)
class Snapshot:
    """What a snapshot file holds."""

    kind: str
    """Whose state this is: "live learner", for example."""
    version: int
    """The version of that kind's metadata and arrays, from 1."""
    metadata: Mapping[str, Any] = field(repr=False)
    arrays: Mapping[str, Array] = field(repr=False)
    library: str | None = None
    """The version of longterm that wrote the file; files before 0.1.0 do not say."""

    def encode(self) -> bytes:
        """The bytes of the file. Without `library` they depend on the state alone."""
        said = {} if self.library is None else {"longterm": self.library}
        body = pack({"kind": self.kind, "version": self.version, **said, "metadata": self.metadata}, self.arrays)
        data = _PRELUDE.pack(MAGIC, VERSION, _PRELUDE.size + len(body) + _CHECKSUM) + body
        return data + hashlib.sha256(data).digest()


def identity_of(data: bytes) -> bytes:
    """The identity of a snapshot, from its bytes."""
    return data[-_CHECKSUM:]


def write_snapshot(path: Path, snapshot: Snapshot) -> bytes:
    """Write it atomically: a crash leaves the old file or the new one. Returns its identity.

    What earlier writers of the file left behind when they died is removed first: it may be the room that is needed.
    """
    data = replace(snapshot, library=longterm.__version__).encode()
    remove_abandoned(path)
    write_atomically(path, data)
    return identity_of(data)


def read_snapshot(path: Path, kind: str, version: int) -> tuple[Snapshot, bytes]:
    """The snapshot in a file, and its identity; a SnapshotError unless it is whole, of this kind, and not newer."""
    if path.exists() and not path.is_file():  # reading a pipe would wait for ever, reading a device never end
        raise SnapshotError(path, "foreign", "it is a folder or a device", "Give a file that save() made")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise SnapshotError(path, "missing", "there is no such file", "Give a file that save() made") from None
    return decode(data, path, kind, version)


def decode(data: bytes, path: Path, kind: str, version: int) -> tuple[Snapshot, bytes]:
    """The snapshot in the bytes of a file; `path` is for the words of an error."""
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
    try:
        body, arrays = unpack(data[_PRELUDE.size : -_CHECKSUM])
    except MalformedError as error:
        if layout > VERSION:
            raise _newer(path, f"its layout is version {layout}, this library reads up to {VERSION}", None) from None
        raise SnapshotError(path, "corrupted", str(error), "Restore it from a copy") from None
    library = body.get("longterm")
    if not (isinstance(library, str) and re.fullmatch(r"[0-9A-Za-z.+!-]{1,40}", library)):
        library = None
    if layout > VERSION:
        raise _newer(path, f"its layout is version {layout}, this library reads up to {VERSION}", library)
    found, number, metadata = body.get("kind"), body.get("version"), body.get("metadata")
    if layout < 1 or not (
        isinstance(found, str) and type(number) is int and number >= 1 and isinstance(metadata, dict)
    ):
        raise SnapshotError(path, "corrupted", "its header makes no sense", "Restore it from a copy")
    if found != kind:
        what = f"it holds the state of {f'a {found}' if found.isprintable() else repr(found):.60}, not of a {kind}"
        raise SnapshotError(path, "foreign", what, "Load it as what it is")
    if number > version:
        raise _newer(path, f"its {kind} is version {number}, this library reads up to {version}", library)
    return Snapshot(kind, number, metadata, arrays, library), identity_of(data)


def _truncated(path: Path, size: int, wanted: str) -> SnapshotError:
    return SnapshotError(path, "truncated", f"it has {size} bytes of {wanted}", "Restore it from a copy")


def _newer(path: Path, what: str, library: str | None) -> SnapshotError:
    wrote = "it does not say which version of longterm wrote it" if library is None else f"longterm {library} wrote it"
    what = f"{what}; {wrote}, and this is longterm {longterm.__version__}"
    return SnapshotError(path, "newer", what, "Install the version of longterm that made it, or a later one")
