"""Journal files: what happened since a snapshot, record after record, each one checked.

    8 bytes   magic
    4 bytes   version of this layout, little-endian
    8 bytes   sequence number of the snapshot that the journal starts from
    32 bytes  identity of that snapshot
    16 bytes  checksum of the above

and then, for each record,

    4 bytes   length n of the payload
    8 bytes   sequence number, one more than that of the record before
    4 bytes   CRC-32 of these twelve bytes
    n bytes   payload
    16 bytes  checksum (BLAKE2b) of the checksum before it and of all the above

A write that was cut short leaves less than a record at the end: that record was never acknowledged, and is
dropped. Anything else that does not fit is damage, and an error: the CRC is there so that a damaged length
cannot pass for a short write, the chain of checksums so that no record can be lost, doubled or moved.

A journal either starts from the snapshot beside it; or the snapshot was taken in the middle of it, and the process
died before it could start a new one. In the second case the snapshot names the journal and the checksum of the
record it was taken after, so that a journal with another past cannot be taken for its own.
Like the snapshot's, this module knows nothing of learners.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from longterm.errors import JournalError
from longterm.storage.files import write_all, write_atomically
from longterm.storage.lock import FileLock

MAGIC = b"\x89LTJRNL\n"
VERSION = 1
_PRELUDE = struct.Struct("<8sIQ32s")
_RECORD = struct.Struct("<IQ")
_CRC = struct.Struct("<I")
_CHECKSUM = 16
_HEAD = _RECORD.size + _CRC.size


class Position(NamedTuple):
    """A place between two records: how many things had happened, and the checksum of all of them."""

    sequence: int
    checksum: bytes
    offset: int


class Record(NamedTuple):
    """One record, and the position after it."""

    payload: bytes
    after: Position


class JournalReader:
    """A journal, read from its beginning."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            head = file.read(_PRELUDE.size + _CHECKSUM)
        if head[: len(MAGIC)] != MAGIC[: len(head)]:
            raise JournalError(path, "foreign", "this is not a journal of longterm", "Give the journal's own file")
        if len(head) < _PRELUDE.size + _CHECKSUM:
            # It was put in place whole, so no interrupted write explains this.
            raise JournalError(path, "truncated", "its first bytes are missing", "Restore it from a copy")
        checksum = head[_PRELUDE.size :]
        if _checksum(head[: _PRELUDE.size]) != checksum:
            raise JournalError(path, "corrupted", "its first bytes are damaged", "Restore it from a copy")
        _, version, sequence, self.identity = _PRELUDE.unpack_from(head)
        if version > VERSION:
            what = f"its layout is version {version}, this library reads up to {VERSION}"
            raise JournalError(path, "newer", what, "Install the version of longterm that made it, or a later one")
        self.start = Position(sequence, checksum, len(head))

    def __iter__(self) -> Iterator[Record]:
        """Every record that was written whole, in order."""
        at = self.start
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(at.offset)
            while size - at.offset >= _HEAD:
                head = file.read(_HEAD)
                length, sequence = _RECORD.unpack_from(head)
                if zlib.crc32(head[: _RECORD.size]) != _CRC.unpack_from(head, _RECORD.size)[0]:
                    raise self._damaged(at)
                if size - at.offset < _HEAD + length + _CHECKSUM:
                    return
                payload, checksum = file.read(length), file.read(_CHECKSUM)
                if sequence != at.sequence + 1 or _checksum(at.checksum + head + payload) != checksum:
                    raise self._damaged(at)
                at = Position(sequence, checksum, at.offset + _HEAD + length + _CHECKSUM)
                yield Record(payload, at)

    def _damaged(self, at: Position) -> JournalError:
        return JournalError(
            self.path,
            "corrupted",
            f"record {at.sequence + 1}, at byte {at.offset}, is damaged",
            f"Restore it from a copy; or cut the file off at {at.offset} bytes, which loses this record and all after",
        )


class _File(NamedTuple):
    """The file that a journal is in, and how far it is written."""

    file: BinaryIO
    identity: bytes
    at: Position


class Journal:
    """A journal, open at its end, written by the one process that has its lock, by one thread at a time.

    What raises, an interrupt at any instruction included, may leave a torn record behind the end, or a new file that is
    not yet written to. `settle` removes the one and turns to the other; everything else expects to find it settled.
    """

    def __init__(self, path: Path, identity: bytes, at: Position, lock: FileLock, *, fsync: bool) -> None:
        """Open the file, cutting off what an interrupted write left behind `at`."""
        self.path = path
        self._lock = lock
        self._fsync = fsync
        self._closed = False
        self._now = _File(path.open("r+b", buffering=0), identity, at)
        self._rotation: tuple[bytes, bytes, int] | None = None
        self.settle()

    @classmethod
    def create(cls, path: Path, identity: bytes, sequence: int, lock: FileLock, *, fsync: bool) -> Journal:
        """An empty journal that starts from a snapshot, put in the place of what `path` held."""
        head = _head(identity, sequence)
        write_atomically(path, head)
        return cls(path, identity, _start(head, sequence), lock, fsync=fsync)

    @property
    def identity(self) -> bytes:
        """The identity of the snapshot that it starts from."""
        return self._now.identity

    @property
    def at(self) -> Position:
        """Its end."""
        return self._now.at

    def append(self, payload: bytes, sequence: int) -> None:
        """Write a record. When this returns it is in the file, and with fsync on the disk; if it raises, it is not."""
        self._require_open()
        now = self._now
        descriptor, at = now.file.fileno(), now.at
        file = os.fstat(descriptor)
        if file.st_size != at.offset or file.st_nlink == 0 or sequence != at.sequence + 1:
            raise JournalError(
                self.path,
                "out of step",
                "the file is not as this learner left it: something else wrote it, or a write could not be undone",
                "See that nothing else writes it, and load the learner again",
            )
        numbers = _RECORD.pack(len(payload), sequence)
        head = numbers + _CRC.pack(zlib.crc32(numbers))
        checksum = _checksum(at.checksum + head + payload)
        record = head + payload + checksum
        after = _File(now.file, now.identity, Position(sequence, checksum, at.offset + len(record)))
        try:
            write_all(descriptor, record)
            if self._fsync:
                os.fsync(descriptor)
            self._now = after
        except BaseException:
            # The record must not be found later: its caller is about to hear that it was not taken.
            self.settle()
            raise

    def sync(self) -> None:
        """Force everything written so far to the disk."""
        self._require_open()
        os.fsync(self._now.file.fileno())

    def rotate(self, identity: bytes) -> None:
        """Begin afresh, from a snapshot that holds all that this journal does."""
        self._require_open()
        sequence = self.at.sequence
        head = _head(identity, sequence)
        self._rotation = identity, head, sequence
        if os.name == "nt":  # Windows renames nothing over a file that is open
            self._now.file.close()
        write_atomically(self.path, head)
        self.settle()

    def settle(self) -> None:
        """Make the file what this journal says it is, whatever was interrupted. Done twice it is done once."""
        if self._closed or not self._lock.held:
            return
        if self._rotation is not None:
            identity, head, sequence = self._rotation
            with self.path.open("rb") as file:
                begun = file.read(len(head)) == head
            if begun or self._now.file.closed:
                old, at = self._now, _start(head, sequence) if begun else self.at
                self._now = _File(self.path.open("r+b", buffering=0), identity if begun else old.identity, at)
                old.file.close()
            self._rotation = None
        descriptor, end = self._now.file.fileno(), self.at.offset
        if os.fstat(descriptor).st_size > end:
            os.ftruncate(descriptor, end)
        self._now.file.seek(end)

    def close(self) -> None:
        """Close the file and let others write it."""
        self._closed = True
        self._now.file.close()
        self._lock.release()

    def _require_open(self) -> None:
        if self._closed:
            raise JournalError(self.path, "closed", "this learner was closed", "Load it again")
        if not self._lock.held:
            what = "this process was forked from the one that writes it"
            raise JournalError(self.path, "in use", what, "Ask and tell there; or close it there, and load it here")


def _head(identity: bytes, sequence: int) -> bytes:
    """The first bytes of a journal."""
    prelude = _PRELUDE.pack(MAGIC, VERSION, sequence, identity)
    return prelude + _checksum(prelude)


def _start(head: bytes, sequence: int) -> Position:
    return Position(sequence, head[_PRELUDE.size :], len(head))


Follows = list[str] | None
"""Identity of the journal that a snapshot was taken in, and the checksum at that place, in hexadecimal."""


def recover(
    lock: FileLock, identity: bytes, sequence: int, follows: Follows, replay: Callable[[bytes], None], *, fsync: bool
) -> Journal:
    """Replay a journal from the snapshot with this identity and sequence number; the journal, open.

    The lock must have been held since before the snapshot was read: else another process may have saved in between.
    """
    path = lock.path
    if not path.exists():
        if follows is not None:
            remedy = "Find it; or load without a journal, if what came after the save may be lost"
            raise JournalError(path, "missing", "the snapshot was saved with a journal", remedy)
        return Journal.create(path, identity, sequence, lock, fsync=fsync)
    reader = JournalReader(path)
    at = reader.start
    if reader.identity == identity and at.sequence == sequence:
        checksum = at.checksum
    elif follows is not None and reader.identity.hex() == follows[0]:
        checksum = bytes.fromhex(follows[1])
    else:
        raise _another(path, "it does not continue this snapshot")
    reached = at.sequence == sequence
    if reached and at.checksum != checksum:
        raise _another(path, "its past is not that of the snapshot")
    for record in reader:
        at = record.after
        if reached:
            try:
                replay(record.payload)
            except (KeyError, ValueError, TypeError) as error:
                what = f"record {at.sequence} makes no sense ({error})"
                raise JournalError(path, "corrupted", what, "Restore it from a copy") from None
        elif at.sequence == sequence:
            if at.checksum != checksum:
                raise _another(path, "its past is not that of the snapshot")
            reached = True
    if not reached:
        what = f"it ends with record {at.sequence}, the snapshot was taken after record {sequence}"
        raise JournalError(path, "truncated", what, "Restore it from a copy, or load without a journal and save")
    return Journal(path, reader.identity, at, lock, fsync=fsync)


def _another(path: Path, what: str) -> JournalError:
    remedy = "Give the snapshot that was saved last, with the journal that lay beside it"
    return JournalError(path, "another snapshot", what, remedy)


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECKSUM).digest()
