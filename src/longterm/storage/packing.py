"""Named arrays and JSON metadata as bytes, and learners' states as named arrays.

    4 bytes   length of the header, little-endian
    header    JSON, UTF-8: {"metadata": …, "arrays": [[name, dtype, shape], …]}
    arrays    raw little-endian bytes, one after another, in the header's order

A NumPy scalar is not a 0-dimensional array (their powers may differ in the last bit), so it has the shape null and is
restored as a scalar. The bytes hold numbers only and cannot name code.
"""

from __future__ import annotations

import json
import math
import struct
import sys
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np

from longterm._base.arrays import Array
from longterm._base.states import are_finite, state_from_leaves, state_leaves, state_values
from longterm.errors import InputError

DTYPES = frozenset(["<f8", "<f4", "<i8", "<i4", "<u8", "<u4", "|u1", "|i1", "|b1"])
LARGEST_COUNT = 2**53
"""Integers up to here are exact as floats."""
_LENGTH = struct.Struct("<I")
_CHECKSUM = struct.Struct("<I")
_NATIVE = {dtype: np.dtype(np.dtype(dtype).type) for dtype in DTYPES}


class MalformedError(ValueError):
    """Stored contents that this library did not write."""


def require(holds: bool, otherwise: str) -> None:
    """Raise a MalformedError with these words unless the condition on stored contents holds."""
    if not holds:
        raise MalformedError(otherwise)


def pack(metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return metadata (JSON with finite numbers) and arrays as bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.storage.packing import pack, unpack
    >>> unpack(pack({"kind": "pair"}, {"x": np.array([1.0, 2.0]), "round": np.int64(3)}))
    ({'kind': 'pair'}, {'x': array([1., 2.]), 'round': np.int64(3)})
    """
    index: list[tuple[str, str, tuple[int, ...] | None]] = []
    parts: list[bytes] = []
    for name, value in arrays.items():
        array = np.asarray(value)
        little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        if little.dtype.str not in DTYPES:
            raise InputError(name, f"has dtype {array.dtype}", f"Only these can be stored: {sorted(DTYPES)}")
        index.append((name, little.dtype.str, None if isinstance(value, np.generic) else array.shape))
        parts.append(little.tobytes())
    header = json.dumps({"metadata": metadata, "arrays": index}, separators=(",", ":"), allow_nan=False).encode()
    return b"".join([_LENGTH.pack(len(header)), header, *parts])


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return metadata and arrays from bytes. Raise a MalformedError if `pack` cannot have made them."""
    return _unpack(data, _header)


def _unpack(data: bytes, read_header: Callable[[bytes], _Header]) -> tuple[dict[str, Any], dict[str, Array]]:
    try:
        (length,) = _LENGTH.unpack_from(data)
    except struct.error as error:
        raise MalformedError(f"the header cannot be read ({error})") from None
    start = _LENGTH.size + length
    if start > len(data):
        raise MalformedError("the header cannot be read (the data end within it)")
    metadata, index = read_header(bytes(data[_LENGTH.size : start]))
    arrays: dict[str, Array] = {}
    for name, dtype, shape, places, size in index:
        stop = start + size
        if stop > len(data) or places > len(data):
            raise MalformedError(f"the bytes of {name!r} are missing")
        if dtype == "|b1" and data[start:stop].translate(None, b"\0\1"):
            raise MalformedError(f"{name!r} holds what is neither true nor false")
        # A copy is aligned and writable, and does not keep the whole file in memory.
        flat = np.frombuffer(data[start:stop], dtype=dtype).astype(_NATIVE[dtype])
        arrays[name] = flat[0] if shape is None else flat.reshape(shape)
        start = stop
    if start != len(data):
        raise MalformedError(f"{len(data) - start} bytes are left over")
    return metadata, arrays


class _Entry(NamedTuple):
    """An array in the header: its places if no axis were empty, so that no shape is larger than the data, and bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    places: int
    size: int


_Header = tuple[dict[str, Any], tuple[_Entry, ...]]


def _header(header: bytes) -> _Header:
    """Return the metadata and the entries of a header."""
    try:
        found = json.loads(header.decode(), parse_constant=_refuse_constant)
        metadata, given = found["metadata"], [(str(n), str(t), s) for n, t, s in found["arrays"]]
        if not isinstance(metadata, dict):
            raise ValueError("there is no metadata")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise MalformedError(f"the header cannot be read ({error})") from None
    index: dict[str, _Entry] = {}
    for name, dtype, shape in given:
        if dtype not in DTYPES or not _is_shape(shape) or name in index:
            raise MalformedError(f"the entry of {name!r} is inconsistent")
        axes = () if shape is None else tuple(shape)
        places = math.prod(max(n, 1) for n in axes)
        size = 0 if 0 in axes else places * np.dtype(dtype).itemsize
        index[name] = _Entry(name, dtype, None if shape is None else axes, places, size)
    return metadata, tuple(index.values())


_known_header = lru_cache(maxsize=64)(_header)
"""The same for the states of live objects, which have few headers."""


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _is_shape(shape: Any) -> bool:
    if shape is None:
        return True
    return isinstance(shape, list) and len(shape) <= 32 and all(type(n) is int and n >= 0 for n in shape)


def state_arrays(state: Any) -> dict[str, Array]:
    """Return the arrays of a learner's state by name. Fields of a nested named tuple are called `outer.inner`."""
    return {f"state.{name}": value for name, value in state_leaves(state).items()}


def restored_state(template: Any, arrays: Mapping[str, Array]) -> Any:
    """Return a state like `template` made of stored arrays. Raise a ValueError if they do not fit."""
    stored = {name.removeprefix("state."): value for name, value in arrays.items() if name.startswith("state.")}
    expected = state_leaves(template)
    if list(stored) != list(expected):
        raise ValueError(f"the state holds {list(stored)}, not {list(expected)}")
    for name, given in stored.items():
        wanted = expected[name]
        if not isinstance(wanted, (np.ndarray, np.generic)):
            wanted = np.asarray(wanted)
        if given.shape != wanted.shape or given.dtype != wanted.dtype:
            found, needed = (given.shape, given.dtype), (wanted.shape, wanted.dtype)
            raise ValueError(f"{name} has shape and dtype {found}, not {needed}")
    return state_from_leaves(template, stored.values())


def require_sound(template: Any, state: Any) -> None:
    """Raise a ValueError unless a restored state is plausible.

    Floats are finite, or what they are at the start. Rounds are counted from 1, and no count exceeds LARGEST_COUNT.
    """
    start = state_leaves(template)
    for name, value in state_leaves(state).items():
        array = np.asarray(value)
        if array.dtype.kind == "f":
            good = are_finite(array) or (np.isfinite(array) | (array == np.asarray(start[name]))).all()
        else:
            least = int(name.rpartition(".")[2] == "round")
            good = array.size == 0 or (array.min() >= least and array.max() <= LARGEST_COUNT)
        if not good:
            raise ValueError(f"{name} holds a number that no round can produce")


def _swapped_bytes(value: Array) -> bytes:
    raw: bytes = value.astype(value.dtype.newbyteorder("<")).tobytes()
    return raw


raw_bytes: Callable[[Array], bytes] = methodcaller("tobytes") if sys.byteorder == "little" else _swapped_bytes
"""Return the little-endian bytes of an array."""


class StatePacker:
    """An encoder of states whose layout stays the same: the header is made once.

    The bytes are those of `pack`, followed by their CRC-32. After the state come arrays of a fixed layout, whose bytes
    the caller makes.

    Parameters
    ----------
    template : NamedTuple of array
        A state.
    metadata : mapping
        JSON.
    others : mapping of str to array
        Examples of the other arrays, for their dtypes and shapes.
    """

    def __init__(self, template: Any, metadata: Mapping[str, Any], others: Mapping[str, Array]) -> None:
        self._metadata, self._others = metadata, others
        self.names = list(state_leaves(template))
        self._types: tuple[type, ...] = ()
        self._arrays: list[tuple[int, np.dtype[Any], tuple[int, ...]]] = []
        self._header = b""
        self._template = template

    def encode(self, state: Any, others: bytes) -> bytes:
        """Return a state and the bytes of the other arrays."""
        leaves = state_values(state)
        is_known = tuple(map(type, leaves)) == self._types
        for place, dtype, shape in self._arrays:
            is_known = is_known and leaves[place].dtype is dtype and leaves[place].shape == shape
        if not is_known:
            leaves = [leaf if isinstance(leaf, np.generic) else np.asarray(leaf) for leaf in leaves]
            self._learn_layout(state, leaves)
        data = b"".join([self._header, *map(raw_bytes, leaves), others])
        return data + _CHECKSUM.pack(zlib.crc32(data))

    def _learn_layout(self, state: Any, leaves: list[Array]) -> None:
        """Make the header for states like this one."""
        packed = pack(self._metadata, {**state_arrays(state), **self._others})
        size = sum(np.asarray(value).nbytes for value in (*leaves, *self._others.values()))
        self._header = packed[: len(packed) - size]
        self._types = tuple(map(type, leaves))
        self._arrays = [(i, leaf.dtype, leaf.shape) for i, leaf in enumerate(leaves) if type(leaf) is np.ndarray]


def unpack_checked(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return metadata and arrays of `StatePacker`. Raise a MalformedError if the checksum or the layout is wrong.

    The metadata must not be changed.
    """
    body = data[: -_CHECKSUM.size]
    if len(data) <= _CHECKSUM.size or _CHECKSUM.pack(zlib.crc32(body)) != data[-_CHECKSUM.size :]:
        raise MalformedError("its checksum is wrong")
    return _unpack(body, _known_header)
