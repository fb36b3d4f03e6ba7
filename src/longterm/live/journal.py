"""Journal files: what happened since a snapshot, record after record, each one checked.

    8 bytes   magic
    4 bytes   version of this layout, little-endian
    8 bytes   sequence number that the journal starts from
    32 bytes  identity of the snapshot that it belongs to
    16 bytes  checksum of all that came before the journal's first record
    8 bytes   length of the base
    n bytes   the base: the whole state at the journal's start; nothing, if that is the snapshot's
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
died before it could start a new one, or meant it as a backup. In the second case the snapshot names the journal and
the checksum of the record it was taken after, so that a journal with another past cannot be taken for its own.

A journal that has become long is replaced by a shorter one, which begins with the state as its base: one rename, and no
other file changes. That is written beside it while the old one goes on growing; only the last few records are copied
while nothing else may be written (`Compaction`).

Version 1 had neither the checksum of the past, which was the one of its header, nor a base. Versions to come keep the
header where it is, so that a damaged journal is never taken for a newer one.
Like the snapshot's, this module knows nothing of learners.
"""

from __future__ import annotations

import hashlib
import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from longterm.errors import JournalError
from longterm.storage.files import (
    partial_beside,
    remove_abandoned,
    replace_file,
    sync_folder,
    write_all,
    write_atomically,
)
from longterm.storage.lock import FileLock

MAGIC = b"\x89LTJRNL\n"
VERSION = 2
_PRELUDE = struct.Struct("<8sIQ32s16sQ")
_OLDER = struct.Struct("<8sIQ32s")
_RECORD = struct.Struct("<IQ")
_CRC = struct.Struct("<I")
_CHECKSUM = 16
LOOK_EVERY = 0.001
"""Seconds for which a file that had a name is taken to have one."""
_HEAD = _RECORD.size + _CRC.size
_EMPTY = hashlib.blake2b(digest_size=_CHECKSUM)


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
        if not path.is_file():  # reading a pipe would wait for ever
            what = "it is a folder or a device"
            raise JournalError(path, "foreign", what, "Give a file, or a name that is not taken")
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            head = file.read(_PRELUDE.size)
            if head[: len(MAGIC)] != MAGIC[: len(head)]:
                raise JournalError(path, "foreign", "this is not a journal of longterm", "Give the journal's own file")
            if len(head) < _OLDER.size:
                raise self._cut()
            _, version, sequence, self.identity = _OLDER.unpack_from(head)
            if version == 1:
                length, past, prelude = 0, b"", _OLDER
            elif len(head) < _PRELUDE.size:
                raise self._cut()
            else:
                *_, past, length = _PRELUDE.unpack(head)
                prelude = _PRELUDE
            if size < prelude.size + length + _CHECKSUM:  # it was put in place whole: no torn write explains this
                raise self._cut()
            file.seek(0)
            head = file.read(prelude.size + length + _CHECKSUM)
        checksum = head[-_CHECKSUM:]
        if _checksum(head[:-_CHECKSUM]) != checksum:
            raise JournalError(path, "corrupted", "its first bytes are damaged", "Restore it from a copy")
        if version > VERSION:
            what = f"its layout is version {version}, this library reads up to {VERSION}"
            raise JournalError(path, "newer", what, "Install the version of longterm that made it, or a later one")
        self.base = head[prelude.size : -_CHECKSUM]
        self.start = Position(sequence, past or checksum, len(head))

    def _cut(self) -> JournalError:
        return JournalError(self.path, "truncated", "its first bytes are missing", "Restore it from a copy")

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
    """The file that a journal is in, and where its records start."""

    file: BinaryIO
    start: Position


class _Rotation(NamedTuple):
    """A file that is about to be put in the place of the journal's: how it begins, and what the journal is then."""

    head: bytes
    identity: bytes
    start: Position
    at: Position


class Journal:
    """A journal, open at its end, written by the one process that has its lock, by one thread at a time.

    What raises, an interrupt at any instruction included, may leave a torn record behind the end, or a new file that is
    not yet written to. `settle` removes the one and turns to the other; everything else expects to find it settled.
    """

    def __init__(
        self, path: Path, identity: bytes, start: Position, at: Position, lock: FileLock, *, fsync: bool
    ) -> None:
        """Open the file, cutting off what an interrupted write left behind `at`."""
        self.path = path
        self.identity = identity
        """Of the snapshot that it belongs to."""
        self.fsync = fsync
        self._lock = lock
        self._closed = False
        self._look_again = 0.0
        lock.claim()
        self._now = _File(path.open("r+b", buffering=0), start)
        self.at = at
        """Its end."""
        self._rotation: _Rotation | None = None
        remove_abandoned(path)  # a process that died left them
        self.settle()

    @classmethod
    def create(cls, path: Path, identity: bytes, sequence: int, lock: FileLock, *, fsync: bool) -> Journal:
        """An empty journal that starts from a snapshot, put in the place of what `path` held."""
        head, start = _beginning(identity, sequence)
        write_atomically(path, head)
        return cls(path, identity, start, start, lock, fsync=fsync)

    @property
    def start(self) -> Position:
        """Where its records begin."""
        return self._now.start

    def append(self, payload: bytes, sequence: int) -> Position:
        """Write a record. When this returns it is in the file, and with fsync on the disk; if it raises, it is not."""
        if self._closed or not self._lock.held:
            self.require_open()
        at, descriptor = self.at, self._now.file.fileno()
        if os.lseek(descriptor, 0, os.SEEK_END) != at.offset or sequence != at.sequence + 1 or self._is_gone():
            raise JournalError(
                self.path,
                "out of step",
                "the file is not as this learner left it: something else wrote it, or a write could not be undone",
                "See that nothing else writes it, and load the learner again",
            )
        numbers = _RECORD.pack(len(payload), sequence)
        record = b"".join((numbers, _CRC.pack(zlib.crc32(numbers)), payload))
        checksum = _checksum(at.checksum + record)
        record += checksum
        after = Position(sequence, checksum, at.offset + len(record))
        try:
            written = os.write(descriptor, record)
            if written < len(record):
                write_all(descriptor, record[written:])
            if self.fsync:
                os.fsync(descriptor)
            self.at = after
        except BaseException as error:
            if isinstance(error, OSError):
                error.add_note(
                    f"{self.path} could not be written, so this call has not happened and the learner is as it was. "
                    "What was acknowledged before is safe. Make room on the disk and call again."
                )
            # The record must not be found later: its caller is about to hear that it was not taken.
            self.settle()
            raise
        return after

    def _is_gone(self) -> bool:
        """Whether the file was deleted; looked up again after a millisecond: it takes longer than to write a record."""
        now = time.monotonic()
        if now < self._look_again:
            return False
        self._look_again = now + LOOK_EVERY
        return os.fstat(self._now.file.fileno()).st_nlink == 0

    def sync(self) -> None:
        """Force everything written so far to the disk."""
        self.require_open()
        os.fsync(self._now.file.fileno())

    def rotate(self, identity: bytes) -> None:
        """Begin afresh, from a snapshot that holds all that this journal does."""
        self.require_open()
        head, start = _beginning(identity, self.at.sequence)
        self._rotation = _Rotation(head, identity, start, start)
        self._release_for_renaming()
        write_atomically(self.path, head)
        self.settle()

    def replace(self, source: Path, head: bytes, start: Position, at: Position) -> None:
        """Let a file that holds the same end, from another start, take the place of this one."""
        self.require_open()
        self._rotation = _Rotation(head, self.identity, start, at)
        self._release_for_renaming()
        replace_file(source, self.path)
        self.settle()
        if self.fsync:
            sync_folder(self.path.parent)

    def _release_for_renaming(self) -> None:
        if os.name == "nt":  # Windows renames nothing over a file that is open
            self._now.file.close()

    def settle(self) -> None:
        """Make the file what this journal says it is, whatever was interrupted. Done twice it is done once."""
        if self._closed or not self._lock.held:
            return
        rotation = self._rotation
        if rotation is not None:
            with self.path.open("rb") as file:
                begun = file.read(len(rotation.head)) == rotation.head
            if begun or self._now.file.closed:
                old = self._now
                self._now = _File(self.path.open("r+b", buffering=0), rotation.start if begun else old.start)
                if begun:
                    self.at, self.identity = rotation.at, rotation.identity
                old.file.close()
                self._lock.claim_renewed()
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

    def require_open(self) -> None:
        """Raise a JournalError if nothing can be written to it any more."""
        if self._closed:
            raise JournalError(self.path, "closed", "this learner was closed", "Load it again")
        if not self._lock.held:
            what = "this process was forked from the one that writes it"
            raise JournalError(self.path, "in use", what, "Ask and tell there; or close it there, and load it here")


class Compaction:
    """A shorter journal with the same end, written beside the one in use while that goes on growing.

    Made, and finished, where nothing else is written to the journal; `write` is for a thread of its own.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._old, self._begun_at = journal._now, journal.at
        self._partial = partial_beside(journal.path)

    def write(self, base: bytes) -> None:
        """Write the base, the state where this was made, and most of what was recorded since."""
        journal, at = self._journal, self._begun_at
        prelude = _PRELUDE.pack(MAGIC, VERSION, at.sequence, journal.identity, at.checksum, len(base))
        self._prelude = prelude
        head = prelude + base
        self._start = Position(at.sequence, at.checksum, len(head) + _CHECKSUM)
        self._copied = at.offset
        self._file = self._partial.open("xb", buffering=0)
        # Its own name for the old file: the other may be closed meanwhile.
        self._source = journal.path.open("rb")
        for part in (head, _checksum(head)):
            write_all(self._file.fileno(), part)
        while self._behind() > _SHORT:
            self._copy()
        if journal.fsync:
            os.fsync(self._file.fileno())
            while self._behind() > _SHORT:  # what came while the disk was busy
                self._copy()

    def finish(self) -> bool:
        """Copy the rest, and put it in place, unless the journal has become another meanwhile."""
        journal = self._journal
        journal.require_open()
        if journal._now.file is not self._old.file:
            return False
        while self._behind():
            self._copy()
        if journal.fsync:
            os.fsync(self._file.fileno())
        self.close_files()
        at = journal.at
        end = Position(at.sequence, at.checksum, at.offset - self._begun_at.offset + self._start.offset)
        journal.replace(self._partial, self._prelude, self._start, end)
        return True

    def _behind(self) -> int:
        return self._journal.at.offset - self._copied

    def _copy(self) -> None:
        self._source.seek(self._copied)
        data = self._source.read(min(self._behind(), _CHUNK))
        write_all(self._file.fileno(), data)
        self._copied += len(data)

    def close_files(self) -> None:
        for name in ("_file", "_source"):
            file = getattr(self, name, None)
            if file is not None:
                file.close()

    def abandon(self) -> None:
        """Leave nothing behind. Harmless after the end."""
        self.close_files()
        with suppress(OSError):
            self._partial.unlink(missing_ok=True)


_SHORT, _CHUNK = 2**16, 2**20
"""How many bytes may be left to copy while the learner waits; how many are copied at a time."""


def _beginning(identity: bytes, sequence: int) -> tuple[bytes, Position]:
    """The first bytes of a journal without a base."""
    past = _checksum(struct.pack("<Q", sequence) + identity)
    prelude = _PRELUDE.pack(MAGIC, VERSION, sequence, identity, past, 0)
    head = prelude + _checksum(prelude)
    return head, Position(sequence, past, len(head))


Follows = list[str] | None
"""Identity of the journal that a snapshot was taken in, and the checksum at that place, in hexadecimal."""


class Replay(Protocol):
    """Whoever a journal is about."""

    def restore(self, base: bytes) -> Sequence[str]:
        """Become the state of a base. Returns the checksums of the places that snapshots were taken at."""

    def replay(self, record: bytes) -> None:
        """Let what was recorded happen again."""


def recover(
    lock: FileLock, identity: bytes, sequence: int, follows: Follows, required: bool, who: Replay, *, fsync: bool
) -> Journal:
    """Replay a journal from the snapshot with this identity and sequence number; the journal, open.

    `required`: the snapshot follows a journal, which must not be missing. The lock must have been held since before the
    snapshot was read: else another process may have saved in between.
    """
    path = lock.path
    if not path.exists():
        if required:
            remedy = "Find it; or load without a journal, if what came after the save may be lost"
            raise JournalError(path, "missing", "the snapshot was saved with a journal", remedy)
        return Journal.create(path, identity, sequence, lock, fsync=fsync)
    reader = JournalReader(path)
    at = reader.start
    started_from_it = reader.identity == identity and (bool(reader.base) or at.sequence == sequence)
    if not started_from_it and (follows is None or reader.identity.hex() != follows[0]):
        raise _another(path, "it does not continue this snapshot")
    reached = started_from_it
    if reader.base and (started_from_it or at.sequence >= sequence):
        try:
            known = who.restore(reader.base)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise JournalError(path, "corrupted", f"its base makes no sense ({error})", "Restore a copy") from None
        if not started_from_it and follows is not None and follows[1] not in (*known, at.checksum.hex()):
            raise _another(path, "its past is not that of the snapshot")
        reached = True
    elif not reached and at.sequence == sequence:
        if follows is not None and at.checksum.hex() != follows[1]:
            raise _another(path, "its past is not that of the snapshot")
        reached = True
    for record in reader:
        at = record.after
        if reached:
            try:
                who.replay(record.payload)
            except (KeyError, ValueError, TypeError) as error:
                what = f"record {at.sequence} makes no sense ({error})"
                raise JournalError(path, "corrupted", what, "Restore it from a copy") from None
        elif at.sequence == sequence:
            if follows is not None and at.checksum.hex() != follows[1]:
                raise _another(path, "its past is not that of the snapshot")
            reached = True
    if not reached:
        what = f"it ends with record {at.sequence}, the snapshot was taken after record {sequence}"
        raise JournalError(path, "truncated", what, "Restore it from a copy, or load without a journal and save")
    return Journal(path, reader.identity, reader.start, at, lock, fsync=fsync)


def _another(path: Path, what: str) -> JournalError:
    remedy = "Give the snapshot that was saved last, with the journal that lay beside it"
    return JournalError(path, "another snapshot", what, remedy)


def _checksum(data: bytes) -> bytes:
    checksum = _EMPTY.copy()  # sooner than to say again what is wanted
    checksum.update(data)
    return checksum.digest()
