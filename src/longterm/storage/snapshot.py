"""Snapshot files: a kind, a version, named arrays and JSON metadata, protected by a checksum.

    8 bytes   magic
    4 bytes   version of this layout, little-endian
    8 bytes   length of the whole file
    body      `pack`: kind, version of the kind, version of the library, metadata, arrays
    32 bytes  SHA-256 of everything before

`pack` makes:

    4 bytes   length of the header, little-endian
    header    JSON, UTF-8: {"metadata": …, "arrays": [[name, dtype, shape], …]}
    arrays    raw little-endian bytes, one after another, in the header's order

A NumPy scalar is not a 0-dimensional array (their powers may differ in the last bit), so it has the shape null and is
restored as a scalar. The bytes hold numbers only and cannot name code.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import longterm
from longterm._arrays import Array
from longterm._states import state_from_leaves, state_leaves
from longterm.errors import InputError, SnapshotError
from longterm.storage.files import remove_abandoned, write_atomically

MAGIC = b"\x89LTSNAP\n"
VERSION = 1
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
        raise SnapshotError(path, "foreign", what, "Load it as what it is")
    if number != version:
        raise _other_version(path, f"longterm {library!r:.20} wrote a {kind} of version {number}, not {version}")
    return Snapshot(kind, number, metadata, arrays)


def _truncated(path: Path, size: int, expected: str) -> SnapshotError:
    return SnapshotError(path, "truncated", f"it has {size} bytes of {expected}", "Restore it from a copy")


def _other_version(path: Path, what: str) -> SnapshotError:
    remedy = f"This is longterm {longterm.__version__}: install the version that wrote the file"
    return SnapshotError(path, "another version", what, remedy)


# --- named arrays and JSON as bytes -----------------------------------------------------------------------------

DTYPES = frozenset(["<f8", "<f4", "<i8", "<i4", "<u8", "<u4", "|u1", "|i1", "|b1"])
LARGEST_COUNT = 2**53
"""Integers up to here are exact as floats."""
_LENGTH = struct.Struct("<I")


class MalformedError(ValueError):
    """Bytes that `pack` did not make."""


def pack(metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return metadata (JSON with finite numbers) and arrays as bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.storage.snapshot import pack, unpack
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
    try:
        (length,) = _LENGTH.unpack_from(data)
        start = _LENGTH.size
        if start + length > len(data):
            raise ValueError("it ends before its header does")
        header = json.loads(data[start : start + length].decode(), parse_constant=_refuse_constant)
        metadata, index = header["metadata"], [(str(n), str(t), s) for n, t, s in header["arrays"]]
        if not isinstance(metadata, dict):
            raise ValueError("there is no metadata")
    except (struct.error, ValueError, TypeError, KeyError, RecursionError) as error:
        raise MalformedError(f"the header cannot be read ({error})") from None
    arrays: dict[str, Array] = {}
    start += length
    for name, dtype, shape in index:
        if dtype not in DTYPES or not _is_shape(shape) or name in arrays:
            raise MalformedError(f"the entry of {name!r} makes no sense")
        # Count as if no axis were empty, so that no shape is larger than the data.
        places = math.prod(max(n, 1) for n in shape or ())
        stop = start + (places if 0 not in (shape or ()) else 0) * np.dtype(dtype).itemsize
        if stop > len(data) or places > len(data):
            raise MalformedError(f"the bytes of {name!r} are missing")
        if dtype == "|b1" and data[start:stop].translate(None, b"\0\1"):
            raise MalformedError(f"{name!r} holds what is neither true nor false")
        # A copy is aligned and writable, and does not keep the whole file in memory.
        flat = np.frombuffer(data[start:stop], dtype=dtype).astype(np.dtype(dtype).newbyteorder("="))
        arrays[name] = flat[0] if shape is None else flat.reshape(shape)
        start = stop
    if start != len(data):
        raise MalformedError(f"{len(data) - start} bytes are left over")
    return metadata, arrays


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _is_shape(shape: Any) -> bool:
    if shape is None:
        return True
    return isinstance(shape, list) and len(shape) <= 32 and all(type(n) is int and n >= 0 for n in shape)


# --- the state of a learner as named arrays -------------------------------------------------------------------


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
        found, needed = ((np.shape(value), np.asarray(value).dtype) for value in (given, expected[name]))
        if found != needed:
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
            good = np.isfinite(array) | (array == np.asarray(start[name]))
        else:
            good = (array >= int(name.rpartition(".")[2] == "round")) & (array <= LARGEST_COUNT)
        if not good.all():
            raise ValueError(f"{name} holds a number that no round leads to")
