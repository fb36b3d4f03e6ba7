"""What the journal holds of each ask, tell and skip: few bytes, written in few microseconds.

    ask    "A", mark; and 8 bytes of the life, if this is its first token
    skip   "S", mark, 8 bytes of the token's number
    tell   "T", mark, 8 bytes of the number, 8 bytes that say which fields are scalars, 1 byte: is there a loss;
           the fields of the state that it led to, the constraint, the loss: raw little-endian numbers

Of a tell that is the state it led to, not the feedback: no replay depends on a function of a user, or on how a
library adds up. Names, dtypes and shapes are not repeated; a learner keeps them all its life.

The mark, three bytes of 255, tells these records from older ones, which begin with the length of a header
(`longterm.storage.snapshot`), and could not have one of four gigabytes. Those are read, too, and still written where a
state is not what its learner began with.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from longterm._arrays import Array
from longterm._states import state_from_leaves
from longterm.storage.snapshot import MalformedError, pack, restored_state, state_arrays, unpack

_MARK = b"\xff\xff\xff"
_ASK, _SKIP, _TELL = (letter + _MARK for letter in (b"A", b"S", b"T"))
_NUMBER = struct.Struct("<4sQ")
_HEAD = struct.Struct("<4sQQB")
_BITS = 64
_CODES = {"float64": "d", "float32": "f", "int64": "q", "int32": "i", "uint64": "Q", "uint32": "I", "bool": "?"}
"""How `struct` calls single numbers."""
_SWAPPED = sys.byteorder == "big"


class AskRecord(NamedTuple):
    """A round began; `life` is that of its token where it differs from the life of the token before."""

    life: int | None = None


class SkipRecord(NamedTuple):
    """A round was given up."""

    number: int


class TellRecord(NamedTuple):
    """The feedback of a round led to this state."""

    number: int
    state: Any
    constraint: Array
    loss: Array | None


def encode_ask(life: int | None) -> bytes:
    """The record of an ask; `life`, if it is the first of its life."""
    return _ASK if life is None else _NUMBER.pack(_ASK, life)


def encode_skip(number: int) -> bytes:
    """The record of a skip."""
    return _NUMBER.pack(_SKIP, number)


class StateLayout:
    """The names, dtypes and shapes of a learner's state, and of one number for each of its decisions."""

    def __init__(self, template: Any, x: Array) -> None:
        self._template = template
        leaves = state_arrays(template)
        self._names = [name.removeprefix("state.") for name in leaves]
        self._kinds = [(np.asarray(leaf).dtype, np.shape(leaf)) for leaf in leaves.values()]
        self._is_flat = not any(hasattr(field, "_asdict") for field in template)
        self._value = (x.dtype, x.shape[:-1])
        self._is_single = x.ndim == 1
        self._number = x.dtype.type if self._is_single else None
        self._seen: tuple[type, ...] = ()

    def leaves(self, state: Any) -> tuple[Array, ...]:
        """The arrays of a state, one after another."""
        leaves: tuple[Array, ...] = state if self._is_flat else tuple(state_arrays(state).values())
        return leaves

    def name(self, place: int) -> str:
        """What the state calls one of them."""
        return self._names[place]

    def encode_tell(self, number: int, state: Any, constraint: Array, loss: Array | None) -> bytes:
        """The record of a tell."""
        leaves = self.leaves(state)
        kinds = tuple(map(type, leaves))
        if kinds != self._seen:
            self._look_at(kinds)
        fits, parts = self._fits, list(leaves)
        for place, dtype, shape in self._arrays:
            leaf = leaves[place]
            fits = fits and leaf.dtype is dtype and leaf.shape == shape
            parts[place] = _raw(leaf) if _SWAPPED else leaf.tobytes()
        dtype, shape = self._value
        for value in (constraint, loss):
            if type(value) is not self._number and value is not None:
                fits = fits and value.dtype is dtype and value.shape == shape
        if not fits:
            arrays = state_arrays(state) | {"constraint": constraint} | ({} if loss is None else {"loss": loss})
            return pack({"op": "tell", "token": number}, arrays)
        if not self._is_single:
            constraint, loss = _raw(constraint), None if loss is None else _raw(loss)
        if loss is None:
            return self._without_loss.pack(_TELL, number, self._scalars, 0, *parts, constraint)
        return self._with_loss.pack(_TELL, number, self._scalars, 1, *parts, constraint, loss)

    def _look_at(self, kinds: tuple[type, ...]) -> None:
        """Which fields are NumPy scalars, as bits, which are arrays, and how all of them are packed in one go.

        It does not fit if one is neither an array nor the scalar that belongs there.
        """
        self._scalars, self._fits, self._arrays, codes = 0, len(kinds) < _BITS, [], ""
        for place, (kind, (dtype, shape)) in enumerate(zip(kinds, self._kinds, strict=True)):
            if issubclass(kind, np.generic):
                self._scalars |= 1 << place
                self._fits = self._fits and kind is dtype.type and shape == () and dtype.name in _CODES
                codes += _CODES.get(dtype.name, "x")
            else:
                self._fits = self._fits and kind is np.ndarray
                self._arrays.append((place, dtype, shape))
                codes += _bytes_of(dtype, shape)
        dtype, shape = self._value
        value = _CODES[dtype.name] if self._is_single else _bytes_of(dtype, shape)
        self._without_loss = struct.Struct(_HEAD.format + codes + value)
        self._with_loss = struct.Struct(_HEAD.format + codes + value + value)
        self._seen = kinds

    def decode(self, record: bytes, present: Any) -> AskRecord | SkipRecord | TellRecord:
        """What a record says; ValueError, KeyError or TypeError if it makes no sense.

        `present` is the state before it, which a state of an older record is compared with.
        """
        if record[1:4] != _MARK:
            return _older(record, present)
        kind = record[:4]
        try:
            if kind == _ASK:
                return AskRecord() if len(record) == len(_ASK) else AskRecord(_whole(_NUMBER, record)[1])
            if kind == _SKIP:
                return SkipRecord(_whole(_NUMBER, record)[1])
            if kind == _TELL:
                return self._decode_tell(record)
        except struct.error as error:
            raise MalformedError(str(error)) from None
        raise MalformedError(f"{kind[:1]!r} is none of ask, tell and skip")

    def _decode_tell(self, record: bytes) -> TellRecord:
        _, number, scalars, has_loss = _HEAD.unpack_from(record)
        kinds = [*self._kinds, self._value] + ([self._value] if has_loss else [])
        place, arrays = _HEAD.size, []
        if has_loss > 1 or scalars >> len(self._kinds):
            raise MalformedError("its flags make no sense")
        for dtype, shape in kinds:
            stop = place + math.prod(shape) * dtype.itemsize
            if stop > len(record):
                raise MalformedError("it is too short")
            # From bytes of its own: aligned, and the record is not kept.
            flat = np.frombuffer(bytearray(record[place:stop]), dtype.newbyteorder("<") if _SWAPPED else dtype)
            arrays.append(flat.astype(dtype, copy=False).reshape(shape))
            place = stop
        if place != len(record):
            raise MalformedError("it is too long")
        leaves = [array[()] if scalars >> k & 1 else array for k, array in enumerate(arrays[: len(self._kinds)])]
        state = type(self._template)(*leaves) if self._is_flat else state_from_leaves(self._template, leaves)
        return TellRecord(number, state, arrays[len(self._kinds)], arrays[-1] if has_loss else None)


def _raw(value: Array) -> bytes:
    raw: bytes = (value.astype(value.dtype.newbyteorder("<")) if _SWAPPED else value).tobytes()
    return raw


def _bytes_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    return f"{math.prod(shape) * dtype.itemsize}s"


def _whole(layout: struct.Struct, record: bytes) -> tuple[Any, ...]:
    if len(record) != layout.size:
        raise MalformedError(f"it has {len(record)} bytes, not {layout.size}")
    return layout.unpack(record)


def _older(record: bytes, present: Any) -> AskRecord | SkipRecord | TellRecord:
    metadata: Mapping[str, Any]
    metadata, arrays = unpack(record)
    if metadata["op"] == "ask":
        return AskRecord()
    if metadata["op"] == "skip":
        return SkipRecord(int(metadata["token"]))
    if metadata["op"] != "tell":
        raise MalformedError(f"{metadata['op']!r} is none of ask, tell and skip")
    return TellRecord(int(metadata["token"]), restored_state(present, arrays), arrays["constraint"], arrays.get("loss"))
