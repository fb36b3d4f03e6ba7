"""A learner for each key of a stream of rows, without an engine: rows in, decisions out, the state as bytes.

A stream engine keeps the bytes of each key and calls `KeyedLearner.play`. `longterm.compat.spark` does so on Spark.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array
from longterm._base.states import state_from_leaves, state_leaves
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner, require_learner
from longterm.storage.packing import raw_bytes
from longterm.storage.specification import specification

_CHECKSUM = struct.Struct("<I")
_HEADER = struct.Struct("<IIQ")
"""The fingerprint of the learner, the number of remembered requests, and that of ignored rows."""


class Decision(NamedTuple):
    """The answer to a request: its name, the learner's round, the decision, and rows that changed nothing so far."""

    request: str
    round: int
    x: tuple[float, ...]
    ignored: int


class _Request(NamedTuple):
    round: int
    is_open: bool
    x: Array


class _Key(NamedTuple):
    """The state of one key. The requests come in the order in which they were asked for."""

    state: Any
    ignored: int
    requests: dict[str, _Request]


@dataclass(frozen=True)
class KeyedLearner:
    """Learn a separate rule for each key of a stream, such as a customer, inside Spark or another engine.

    A row whose `outcome` is empty asks for a decision. Any other row tells what came of a request. Feedback may be late
    and in any order. A repeated row changes nothing: a request is answered with the same decision, an outcome counts
    once. The same is true of an outcome whose request is not remembered.

    Parameters
    ----------
    learner : Learner
        The rule that every key starts with.
    feedback : callable
        Returns the `Feedback` of a decision and a row, for example by `observe`.
    request, outcome, order : str
        The columns of a request's name, of its outcome, and of the position by which the rows of a call are sorted.
    remember : int
        The number of the latest requests of a key that are remembered. Each takes the bytes of its decision and name.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import AOGD, observe
    >>> from longterm.play import KeyedLearner
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> rule = AOGD.for_problem(problem, steps="strongly convex", beta=0.5)
    >>> def feedback(x, row):
    ...     return observe(problem, x, [np.array(row["outcome"])])
    >>> keyed = KeyedLearner(rule, feedback)
    >>> state, decisions = keyed.play(None, [{"request": "r1", "order": 1, "outcome": None}])
    >>> state, _ = keyed.play(state, [{"request": "r1", "order": 2, "outcome": [0.0, 1.0]}])
    >>> state, again = keyed.play(state, [{"request": "r2", "order": 3, "outcome": None}])
    >>> decisions[0].x, again[0].round, len(state)
    ((0.0, 0.0), 2, 107)
    """

    learner: Learner[Any]
    feedback: Callable[[Array, Mapping[str, Any]], Feedback]
    request: str = "request"
    outcome: str = "outcome"
    order: str = "order"
    remember: int = 100

    def __post_init__(self) -> None:
        require_learner(self.learner)
        validate.count("remember", self.remember)
        if not callable(self.feedback):
            raise InputError("feedback", "is not a function", "Give a function of a decision and a row")
        if self._x.ndim != 1:
            what = f"has a grid of hyper-parameters: its decisions have shape {self._x.shape}"
            raise InputError("learner", what, "Give one with a single value of each hyper-parameter")

    @cached_property
    def _start(self) -> Any:
        return self.learner.init()

    @cached_property
    def _x(self) -> Array:
        return np.asarray(self.learner.ask(self._start))

    @cached_property
    def _fingerprint(self) -> int:
        """A checksum of the hyper-parameters and of the layout of the state."""
        layout = [
            (name, str(np.asarray(leaf).dtype), np.shape(leaf)) for name, leaf in state_leaves(self._start).items()
        ]
        return zlib.crc32(json.dumps([specification(self.learner), layout]).encode())

    def play(self, state: bytes | None, rows: Iterable[Mapping[str, Any]]) -> tuple[bytes, list[Decision]]:
        """Play rows of one key, sorted by `order`. Return its new state, and a decision for each row that asks.

        Parameters
        ----------
        state : bytes or None
            The state of the key from the last call. None for a new key.
        rows : iterable of mapping
            The rows by column. After an error nothing of the call counts.
        """
        key = _Key(self._start, 0, {}) if state is None else self._decode(state)
        decisions: list[Decision] = []
        for row in sorted(rows, key=lambda row: self._cell(row, self.order)):
            name = str(self._cell(row, self.request))
            try:
                key = (
                    self._ask(key, name, decisions) if _is_empty(row.get(self.outcome)) else self._tell(key, name, row)
                )
            except Exception as error:
                error.add_note(f"This is about the row of request {name!r}.")
                raise
        return self._encode(key), decisions

    def _cell(self, row: Mapping[str, Any], column: str) -> Any:
        value = row.get(column)
        if _is_empty(value):
            raise InputError(column, "is empty or missing in a row", "Give every row a request's name and a position")
        return value

    def _ask(self, key: _Key, name: str, decisions: list[Decision]) -> _Key:
        """Answer a request: with a new decision, or with that of the same request before."""
        found = key.requests.get(name)
        if found is None:
            found = key.requests[name] = _Request(int(key.state.round), True, np.array(self.learner.ask(key.state)))
            if len(key.requests) > self.remember:
                del key.requests[next(iter(key.requests))]
        else:
            key = key._replace(ignored=key.ignored + 1)
        decisions.append(Decision(name, found.round, tuple(found.x.tolist()), key.ignored))
        return key

    def _tell(self, key: _Key, name: str, row: Mapping[str, Any]) -> _Key:
        """Learn the outcome of an open request."""
        found = key.requests.get(name)
        if found is None or not found.is_open:
            return key._replace(ignored=key.ignored + 1)
        with np.errstate(all="ignore"):  # the learner refuses numbers that are not finite
            feedback = self.feedback(found.x, row)
        after = self.learner.tell(key.state, feedback)
        key.requests[name] = found._replace(is_open=False)
        return key._replace(state=after)

    # --- bytes ------------------------------------------------------------------------------------------------

    def _encode(self, key: _Key) -> bytes:
        """Return checksum, header, arrays of the state, remembered decisions, and their names as JSON."""
        names = [[name, found.round, int(found.is_open)] for name, found in key.requests.items()]
        parts = [_HEADER.pack(self._fingerprint, len(names), key.ignored)]
        parts += [raw_bytes(np.asarray(leaf)) for leaf in state_leaves(key.state).values()]
        parts += [raw_bytes(found.x) for found in key.requests.values()]
        data = b"".join([*parts, json.dumps(names, separators=(",", ":")).encode()])
        return _CHECKSUM.pack(zlib.crc32(data)) + data

    def _decode(self, data: bytes) -> _Key:
        rest = memoryview(data)[_CHECKSUM.size :]
        if len(rest) < _HEADER.size or _CHECKSUM.pack(zlib.crc32(rest)) != data[: _CHECKSUM.size]:
            raise InputError("state", "is damaged", "Give what play() returned, or None for a new key")
        fingerprint, count, ignored = _HEADER.unpack_from(rest)
        if fingerprint != self._fingerprint:
            what = "belongs to another learner, or to other hyper-parameters"
            raise InputError("state", what, "Give the learner that made it, or begin with new states")
        rest = rest[_HEADER.size :]
        leaves = []
        for like in state_leaves(self._start).values():
            leaf, rest = _split(rest, np.asarray(like), np.shape(like))
            leaves.append(leaf[()] if isinstance(like, np.generic) else leaf)
        decisions, rest = _split(rest, self._x, (count, len(self._x)))
        names = json.loads(bytes(rest))
        requests = {
            name: _Request(number, bool(is_open), x)
            for (name, number, is_open), x in zip(names, decisions, strict=True)
        }
        return _Key(state_from_leaves(self._start, leaves), ignored, requests)


def _split(data: memoryview, like: Array, shape: tuple[int, ...]) -> tuple[Array, memoryview]:
    """Return an array of this shape from the beginning of the bytes, and the bytes after it."""
    size = math.prod(shape) * like.dtype.itemsize
    flat = np.frombuffer(data[:size], like.dtype.newbyteorder("<")).astype(like.dtype)
    return flat.reshape(shape), data[size:]


def _is_empty(value: Any) -> bool:
    """Return True for None and for NaN, which pandas writes in its place."""
    return value is None or (isinstance(value, (float, np.floating)) and math.isnan(value))
