"""From a snapshot and the journal beside it to the learner as it was.

A journal either starts from the snapshot; or the snapshot was taken in the middle of it, and the process died
before it could start a new one. In the second case the snapshot names the journal and the checksum of the
record it was taken after, so that a journal with another past cannot be taken for its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from longterm.errors import JournalError
from longterm.learners.base import Learner
from longterm.live.book import Book
from longterm.live.journal import Journal, JournalReader
from longterm.storage.packing import MalformedError, unpack
from longterm.storage.states import restored_state

Follows = list[str] | None
"""Identity of the journal that a snapshot was taken in, and the checksum at that place, in hexadecimal."""


def recover(
    path: Path, learner: Learner[Any], book: Book, identity: bytes, follows: Follows, *, fsync: bool
) -> Journal:
    """Replay the journal at `path` on a book restored from the snapshot with this identity; the journal, open."""
    if not path.exists():
        if follows is not None:
            remedy = "Find it; or load without a journal, if what came after the save may be lost"
            raise JournalError(path, "missing", "the snapshot was saved with a journal", remedy)
        return Journal.create(path, identity, book.sequence, fsync=fsync)
    reader = JournalReader(path)
    at, here = reader.start, book.sequence
    if reader.identity == identity and at.sequence == here:
        checksum = at.checksum
    elif follows is not None and reader.identity.hex() == follows[0]:
        checksum = bytes.fromhex(follows[1])
    else:
        raise _another(path, "it does not continue this snapshot")
    met = at.sequence == here
    if met and at.checksum != checksum:
        raise _another(path, "its past is not that of the snapshot")
    for record in reader:
        at = record.after
        if met:
            _replay(record.payload, learner, book, path)
        elif at.sequence == here:
            if at.checksum != checksum:
                raise _another(path, "its past is not that of the snapshot")
            met = True
    if not met:
        what = f"it ends with record {at.sequence}, the snapshot was taken after record {here}"
        raise JournalError(path, "truncated", what, "Restore it from a copy, or load without a journal and save")
    return Journal(path, reader.identity, at, fsync=fsync)


def _replay(payload: bytes, learner: Learner[Any], book: Book, path: Path) -> None:
    """Let one record happen again."""
    try:
        metadata, arrays = unpack(payload)
        if metadata["op"] == "ask":
            book.ask(learner.ask(book.state))
        elif metadata["op"] == "skip":
            book.skip(int(metadata["token"]))
        else:
            state = restored_state(book.state, arrays)
            book.tell(int(metadata["token"]), state, arrays["constraint"], arrays.get("loss"))
    except (MalformedError, KeyError, ValueError, TypeError) as error:
        what = f"record {book.sequence + 1} makes no sense ({error})"
        raise JournalError(path, "corrupted", what, "Restore it from a copy") from None


def _another(path: Path, what: str) -> JournalError:
    remedy = "Give the snapshot that was saved last, with the journal that lay beside it"
    return JournalError(path, "another snapshot", what, remedy)
