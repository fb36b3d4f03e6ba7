"""Snapshot files: a kind, a version, named arrays and a little JSON, checked from the first byte to the last.

    8 bytes   magic
    4 bytes   version of this layout, little-endian
    8 bytes   length of the whole file
    body      `pack`: kind, version of the kind, the library that wrote it, metadata, arrays
    32 bytes  SHA-256 of everything before; it also serves as the snapshot's identity

Magic, version, length and the final SHA-256 stay where they are in every version to come, so that a damaged file is
never taken for a newer one. **A change of layout raises a version**: what a kind stores, and how, is fixed by its
version, and files of every version there was lie in the tests, where they must load or say who wrote them. This module
knows nothing of learners: whatever has a state stores it under a kind of its own.

What `pack` makes, which a record of a journal may have inside as well:

    4 bytes   length of the header, little-endian
    header    JSON, UTF-8: {"metadata": …, "arrays": [[name, dtype, shape], …]}
    arrays    raw little-endian bytes, one after another, in the header's order

A NumPy scalar is not a 0-dimensional array (their powers may differ in the last bit), so it has the shape
null and comes back as a scalar. Numbers only: nothing in these bytes can name code, let alone run it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import longterm
from longterm._arrays import Array
from longterm.errors import InputError, SnapshotError
from longterm.storage.files import remove_abandoned, write_atomically

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


# --- named arrays and a little JSON as bytes --------------------------------------------------------------------

DTYPES = frozenset(["<f8", "<f4", "<i8", "<i4", "<u8", "<u4", "|u1", "|i1", "|b1"])
LARGEST_COUNT = 2**53
"""Whole numbers up to here are floats, too."""
_LENGTH = struct.Struct("<I")


class MalformedError(ValueError):
    """Bytes that `pack` did not make. Readers of files turn it into words about their file."""


def pack(metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Metadata (anything that JSON can hold, finite numbers only) and arrays as bytes.

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
    """Metadata and arrays from bytes; a MalformedError if `pack` could not have made them."""
    try:
        (length,) = _LENGTH.unpack_from(data)
        start = _LENGTH.size
        if start + length > len(data):
            raise ValueError("it ends before its header does")
        header = json.loads(data[start : start + length].decode(), parse_constant=_no_number)
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
        # Places are counted as if no axis were empty: a shape is believed as far as there are bytes for it.
        places = math.prod(max(n, 1) for n in shape or ())
        stop = start + (places if 0 not in (shape or ()) else 0) * np.dtype(dtype).itemsize
        if stop > len(data) or places > len(data):
            raise MalformedError(f"the bytes of {name!r} are missing")
        if dtype == "|b1" and data[start:stop].translate(None, b"\0\1"):
            raise MalformedError(f"{name!r} holds what is neither true nor false")
        # A copy: it is aligned, it is writeable, and it does not keep the whole file in memory.
        flat = np.frombuffer(data[start:stop], dtype=dtype).astype(np.dtype(dtype).newbyteorder("="))
        arrays[name] = flat[0] if shape is None else flat.reshape(shape)
        start = stop
    if start != len(data):
        raise MalformedError(f"{len(data) - start} bytes are left over")
    return metadata, arrays


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _is_shape(shape: Any) -> bool:
    if shape is None:
        return True
    return isinstance(shape, list) and len(shape) <= 32 and all(type(n) is int and n >= 0 for n in shape)


# --- the state of a learner as named arrays -------------------------------------------------------------------


def state_arrays(state: Any) -> dict[str, Array]:
    """The arrays of a learner's state, by name; a named tuple inside it is `outer.inner`."""
    return {f"state.{name}": value for name, value in _leaves(state, "")}


def restored_state(template: Any, arrays: Mapping[str, Array]) -> Any:
    """A state like `template`, made of stored arrays; ValueError if they do not fit it.

    A field with a default came later than the others: where it is not stored, it is as in the template.
    """
    stored = {name.removeprefix("state."): value for name, value in arrays.items() if name.startswith("state.")}
    wanted = dict(_leaves(template, ""))
    later = {name for name in wanted if name not in stored} & set(_later(template, ""))
    if list(stored) != [name for name in wanted if name not in later]:
        raise ValueError(f"the state holds {list(stored)}, not {list(wanted)}")
    for name, given in stored.items():
        kinds = [(np.shape(value), np.asarray(value).dtype) for value in (given, wanted[name])]
        if kinds[0] != kinds[1]:
            raise ValueError(f"{name} has shape and dtype {kinds[0]}, not {kinds[1]}")
    return _filled(template, "", wanted | stored)


def filled_state(template: Any, leaves: Sequence[Array]) -> Any:
    """A state like `template` of these arrays, in the order of `state_arrays`."""
    return _filled(template, "", dict(zip((name for name, _ in _leaves(template, "")), leaves, strict=True)))


def require_sound(template: Any, state: Any) -> None:
    """ValueError unless all numbers of a restored state can be played on.

    Floats are finite, or what they are at the start; rounds are counted from 1, and no count is absurd.
    """
    start = dict(_leaves(template, ""))
    for name, value in _leaves(state, ""):
        array = np.asarray(value)
        if array.dtype.kind == "f":
            good = np.isfinite(array) | (array == np.asarray(start[name]))
        else:
            good = (array >= int(name.rpartition(".")[2] == "round")) & (array <= LARGEST_COUNT)
        if not good.all():
            raise ValueError(f"{name} holds a number that no round leads to")


def _later(state: Any, prefix: str) -> Iterator[str]:
    """The fields that have a default."""
    for name, value in state._asdict().items():
        if hasattr(value, "_asdict"):
            yield from _later(value, f"{prefix}{name}.")
        elif name in state._field_defaults:
            yield prefix + name


def _leaves(state: Any, prefix: str) -> Iterator[tuple[str, Array]]:
    for name, value in state._asdict().items():
        if hasattr(value, "_asdict"):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _filled(template: Any, prefix: str, stored: Mapping[str, Array]) -> Any:
    values = {
        name: _filled(value, f"{prefix}{name}.", stored) if hasattr(value, "_asdict") else stored[prefix + name]
        for name, value in template._asdict().items()
    }
    return type(template)(**values)
