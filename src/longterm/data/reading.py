"""Text files, plain or compressed, with limits on their decompressed size.

A small compressed file can expand to more than the memory, so readers count the decompressed bytes.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from longterm.errors import DataError

MAX_EXPANSION = 20
"""By default a file may expand to this many times its size, or to `MIN_LIMIT`, whichever is larger."""
MIN_LIMIT = 2**28
MAX_LINE = 2**24
"""The limit on the bytes of a line: about a million entries."""
BUFFER = 2**20


def default_limit(path: Path) -> int:
    """Return the default limit on the decompressed bytes of a file."""
    return max(MIN_LIMIT, MAX_EXPANSION * path.stat().st_size)


def too_large(path: Path, limit: int) -> DataError:
    """Return the error for a file that exceeds its limit."""
    return DataError(path, f"holds more than {limit} bytes", "Check the file, or raise max_bytes")


class BoundedText(io.RawIOBase):
    """A binary stream that raises DataError if a line or the whole text exceeds its limit."""

    def __init__(self, path: Path, stream: BinaryIO, limit: int) -> None:
        self._path, self._stream, self._limit = path, stream, limit
        self._bytes = self._line_bytes = 0
        self._line = 1

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer and return the number of bytes."""
        read = self._stream.read(len(buffer))
        buffer[: len(read)] = read
        ended = max(read.rfind(b"\n"), read.rfind(b"\r")) + 1
        self._line_bytes = len(read) - ended if ended else self._line_bytes + len(read)
        self._line += read.count(b"\n")
        self._bytes += len(read)
        if self._line_bytes > MAX_LINE:
            what = f"the line is longer than {MAX_LINE} bytes"
            raise DataError(self._path, what, "Check the file, or split the line", line=self._line)
        if self._bytes > self._limit:
            raise too_large(self._path, self._limit)
        return len(read)


@contextmanager
def open_text(path: Path, limit: int | None = None) -> Iterator[io.BufferedReader]:
    """Open a text file, plain or compressed (bz2, gzip, xz), with a limit on its decompressed bytes.

    The compression is detected from the first bytes. Errors of the file are raised as DataError.
    """
    try:
        with _decompress(path) as stream:
            text = BoundedText(path, stream, default_limit(path) if limit is None else limit)
            yield io.BufferedReader(text, BUFFER)
    except EOFError:
        raise DataError(path, "the compressed file is cut off", "Download the file again") from None
    except (OSError, zlib.error, lzma.LZMAError) as error:
        raise DataError(path, f"cannot be read ({error})", "Download the file again, or make it readable") from error


def _decompress(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"BZh"):
        return cast(BinaryIO, bz2.open(path))
    if start.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.open(path))
    if start.startswith(b"\xfd7zXZ\x00"):
        return cast(BinaryIO, lzma.open(path))
    return path.open("rb")
