"""Snapshots of what is live: who may write one that a journal belongs to, and whether what one says could be true.

A checksum only says that a file is as somebody wrote it: what it says is looked at before it is taken on.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from longterm._arrays import Array, safe_norm
from longterm.errors import InputError, SnapshotError
from longterm.learners.base import Learner
from longterm.storage.lock import FileLock, writing
from longterm.storage.snapshot import LARGEST_COUNT, read_snapshot

COUNTERS = ("told", "skipped", "expired", "losses_told", "largest_delay")
FAR = 10.0
"""Diameters. Decisions are in the set but for rounding."""


@contextmanager
def locked_while_written(path: Path) -> Iterator[None]:
    """The right to write a snapshot, for as long as that takes; refused while a learner with a journal has it."""
    with writing(path) as lock:
        yield
    if lock is not None:
        lock.release()


@contextmanager
def locked_for_journal(path: Path) -> Iterator[FileLock | None]:
    """The right to write the snapshot of a journal. None where no one can write it: on a disk that is read-only."""
    try:
        lock = FileLock(path).acquire()
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT):
            raise
        yield None
        return
    try:
        yield lock
    except BaseException:
        lock.release()
        raise


def require_without_journal(path: Path, kind: str, version: int) -> None:
    """Refuse to replace a snapshot that a journal belongs to, by one that does not have that journal."""
    try:
        metadata = read_snapshot(path, kind, version).metadata
    except SnapshotError:  # missing, or not one of ours
        return
    if metadata.get("required", metadata.get("follows") is not None):
        what = f"{path} was saved by a {kind} with a journal, and what is in that would be lost"
        raise InputError("path", what, "Load it with journal=; or save under another name, or remove the file first")


def same_place(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    return one.resolve() == other.resolve()


def check_counters(
    counters: Mapping[str, Any], arrays: Mapping[str, Array], x: Array, sums: Mapping[str, Array]
) -> None:
    """ValueError, in words, unless counters, sums and tokens fit together.

    Parameters
    ----------
    counters : mapping
        The counters of a snapshot.
    arrays : mapping of str to array
        Its arrays.
    x : array
        A decision, for its shape and dtype.
    sums : mapping of str to array
        Sums over no rounds, for their shapes and dtypes.
    """
    _require(isinstance(counters, Mapping), "there are no counters")
    for name in (*COUNTERS, "max_in_flight", "expire_after", "asked"):
        count = counters.get(name)
        _require(type(count) is int and 0 <= count <= LARGEST_COUNT, f"{name} is {count!r:.40}")
    asked, told, expire_after = counters["asked"], counters["told"], counters["expire_after"]
    _require(counters["max_in_flight"] >= 1, "max_in_flight is 0")
    _require(counters["losses_told"] <= told, "there are losses of more rounds than were told")
    _require(counters["largest_delay"] <= min(asked, expire_after), "a delay is longer than could be")
    for name, like in sums.items():
        value: Any = arrays.get(f"sums.{name}")
        _require(value is not None and _kind(value) == _kind(like), f"the sum {name} has the wrong shape or dtype")
        _require(not np.isnan(value).any(), f"the sum {name} is not a number")
    number, closed = _numbers(arrays, "open.number"), _numbers(arrays, "closed.number")
    decisions: Any = arrays.get("open.x")
    how: Any = arrays.get("closed.how")
    _require(counters["skipped"] + told + counters["expired"] + len(number) == asked, "the rounds do not add up")
    _require(len(number) <= counters["max_in_flight"], "more rounds are open than are allowed")
    _require(bool((number[1:] > number[:-1]).all()), "open rounds are not in order")
    for some in (number, closed):
        young = (some >= 1) & (some <= asked) & (asked - some <= expire_after)
        _require(bool(young.all()), "a round is too old, or was never asked for")
    wanted = (len(number), *(np.shape(x) if len(number) else (0,)))
    fits = isinstance(decisions, np.ndarray) and decisions.shape == wanted
    _require(
        fits and (len(number) == 0 or decisions.dtype == x.dtype), "the open decisions have another shape or dtype"
    )
    _require(bool(np.isfinite(decisions).all()), "an open decision is not finite")
    fits = isinstance(how, np.ndarray) and how.dtype == np.uint8 and how.shape == closed.shape
    _require(fits and bool((how <= 1).all()), "it is not said how rounds were closed")
    both = np.concatenate([number, closed])
    _require(len(np.unique(both)) == len(both), "a round is there twice")
    _require(len(closed) <= told + counters["skipped"], "more rounds are closed than were told or skipped")


def require_near(learner: Learner[Any], *decisions: Array) -> None:
    """ValueError if a decision is nowhere near the learner's set: what is played there would overflow."""
    B = learner.enclosing_set
    for x in decisions:
        with np.errstate(all="ignore"):
            near = safe_norm(np.asarray(x) - B.centre) <= FAR * B.diameter
        _require(bool(np.all(near)), "a decision is far outside of the learner's set")


def _numbers(arrays: Mapping[str, Array], name: str) -> Array:
    numbers = arrays.get(name)
    _require(isinstance(numbers, np.ndarray) and numbers.ndim == 1 and numbers.dtype == np.int64, f"{name} is missing")
    return numbers


def _kind(value: Array) -> tuple[Any, Any]:
    return np.shape(value), np.asarray(value).dtype


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
