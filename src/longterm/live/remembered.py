"""What a journal can be kept of: a memory, and changes to it. Learners have one, and so have choosers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from longterm.live.journal import Follows
from longterm.storage.snapshot import Snapshot


class Change(Protocol):
    """Something that is about to happen to a memory, worked out to the end."""

    def record(self, memory: Any) -> bytes:
        """What the journal is given."""

    def apply(self, memory: Any) -> None:
        """Let it happen: put values in place and check nothing. Done twice it is done once."""


class Restored(NamedTuple):
    """What a snapshot says of itself and of the journal that it was taken in."""

    identity: bytes
    follows: Follows
    required: bool
    """Without its journal it is not the whole."""

    @classmethod
    def of(cls, identity: bytes, metadata: Mapping[str, Any]) -> Restored:
        """What the metadata of a snapshot says; ValueError, KeyError or TypeError if it makes no sense."""
        follows = metadata["follows"]
        required = bool(metadata.get("required", follows is not None))
        if follows is not None:
            follows = [str(part) for part in follows]
            if len(follows) != 2:
                raise ValueError("the place in its journal makes no sense")
        return cls(identity, follows, required)


class Remembered(Protocol):
    """Everything that is kept, in the hands of one thread at a time."""

    kind: str
    """What its snapshots are called."""
    version: int
    """Of its snapshots."""

    @property
    def sequence(self) -> int:
        """How many things have happened."""

    def copied(self) -> Self:
        """A memory that stays as this one is now. What it shares with it is never written to."""

    def change_recorded(self, record: bytes) -> Change:
        """The change that this record of a journal is of; ValueError, KeyError or TypeError if it makes no sense."""

    def fresh_snapshot(self) -> Snapshot:
        """What a journal that no snapshot belongs to starts from: the same in every life, and in every version."""

    def snapshot(self, follows: Follows, *, required: bool) -> Snapshot:
        """All there is to save."""

    def load(self, path: Path) -> Restored:
        """Become what a snapshot says; a SnapshotError unless it can be played on."""

    def base(self, places: Sequence[str]) -> bytes:
        """What a shortened journal begins with: everything, and the places in it that snapshots were taken at."""

    def become(self, base: bytes) -> tuple[str, ...]:
        """Become what a shortened journal begins with. The places in it."""
