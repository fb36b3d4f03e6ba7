"""Text files, plain or compressed, in blocks of whole lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from longterm.errors import DataError

BLOCK = 4 * 2**20
"""Bytes of text in a block."""
AGAIN = "Get the file again, or convert it"


def blocks_of_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The text in blocks that end with a line, each with the number of its first line, counted from 1.

    How a file is compressed (bz2, gzip, xz) is told by its first bytes, not by its name.
    """
    line, rest = 1, b""
    try:
        with _opened(path) as stream:
            while True:
                read = stream.read(BLOCK)
                cut = read.rfind(b"\n") + 1
                block, rest = (rest + read[:cut], read[cut:]) if cut else (b"", rest + read)
                if not read and rest:
                    block, rest = rest + b"\n", b""
                if block:
                    yield line, block
                    line += block.count(b"\n")
                if not read:
                    return
    except EOFError:
        raise DataError(path, "the compressed file is cut off", "Get the file again", line=line) from None
    except (OSError, zlib.error, lzma.LZMAError) as error:
        raise DataError(path, f"cannot be read ({error})", "Get the file again, or make it readable") from error


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"BZh"):
        return cast(BinaryIO, bz2.open(path))
    if start.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.open(path))
    if start.startswith(b"\xfd7zXZ\x00"):
        return cast(BinaryIO, lzma.open(path))
    return path.open("rb")
