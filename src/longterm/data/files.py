"""Where the files are, their text in blocks of whole lines, plain or compressed, and what was parsed of them.

- ``LONGTERM_DATA`` names a folder that already has files; it is only read.
- ``LONGTERM_CACHE`` names the folder for downloads from the publishers' addresses and for parsed arrays; left out, it
  is ``longterm`` in the user's cache folder (``XDG_CACHE_HOME``, or ``.cache`` at home).

Parsed arrays are kept in a binary file, so that a text is parsed once. Its name holds a hash of the text file's bytes
and the version of this format: a text that changed, or a newer parser, never meets an old cache. It is a zip with
checksums, so that a damaged one is found out and made anew.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from longterm.data.registry import Arrays, DataSet, data_set
from longterm.errors import DataError
from longterm.storage.files import write_atomically

ENDINGS = ("", ".bz2", ".gz", ".xz")
BLOCK = 4 * 2**20
"""Bytes of text in a block."""
LONGEST_LINE = 2**24
"""Bytes of a line, unless another limit is given: about a million entries."""
AGAIN = "Get the file again, or convert it"


def cache_folder() -> Path:
    """The folder for downloads and parsed arrays.

    Returns
    -------
    pathlib.Path
        It may not exist yet.
    """
    chosen = os.environ.get("LONGTERM_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "longterm"


def find(name: str) -> Path | None:
    """The file of this data set where it is already here, under its publisher's name, however it is compressed.

    Parameters
    ----------
    name : str
        Of a data set.

    Returns
    -------
    pathlib.Path or None
        None where it is not here.
    """
    file = data_set(name).file
    stem = next((file.removesuffix(ending) for ending in ENDINGS[1:] if file.endswith(ending)), file)
    candidates = [file, *(stem + ending for ending in ENDINGS)]
    paths = (folder / candidate for folder in _folders() for candidate in candidates)
    return next((path for path in paths if path.is_file()), None)


def path(name: str) -> Path:
    """The file of this data set; an error that says what to download and where to put it, where it is not here.

    Parameters
    ----------
    name : str
        Of a data set.

    Returns
    -------
    pathlib.Path
        Of the file.
    """
    file = find(name)
    if file is None:
        raise _missing(data_set(name), "is not here")
    return file


def fetch(name: str, *, progress: bool = False) -> Path:
    """The file of this data set, downloaded from its publisher (through ``pooch``) where it is not here yet.

    A download that breaks off leaves nothing behind.

    Parameters
    ----------
    name : str
        Of a data set.
    progress : bool
        Whether to show a bar, where ``tqdm`` is installed.

    Returns
    -------
    pathlib.Path
        Of the file.
    """
    file = find(name)
    return _download(data_set(name), progress) if file is None else file


def _folders() -> list[Path]:
    downloads = cache_folder() / "downloads"
    given = os.environ.get("LONGTERM_DATA")
    if not given:
        return [downloads]
    folder = Path(given)
    if not folder.is_dir():
        raise DataError(folder, "LONGTERM_DATA names it, but it is not a folder", "Correct or unset LONGTERM_DATA")
    return [folder, downloads]


def _download(data: DataSet, progress: bool) -> Path:
    try:
        pooch: Any = import_module("pooch")
    except ImportError as error:
        raise _missing(data, "is not here, and downloading needs pooch: pip install 'longterm[experiments]'") from error
    pooch.get_logger().setLevel("WARNING")
    try:
        folder = cache_folder() / "downloads"
        # No hash of the bytes: what is in the file is checked when it is parsed.
        return Path(pooch.retrieve(data.address, None, fname=data.file, path=folder, progressbar=progress))
    except (OSError, ValueError) as error:  # requests' errors are OSErrors
        raise _missing(data, f"could not be downloaded ({type(error).__name__}: {error})") from error


def _missing(data: DataSet, reason: str) -> DataError:
    folder = cache_folder() / "downloads"
    remedy = (
        f"Download {data.address} and put it into {folder}, or into a folder of your own that the environment variable "
        "LONGTERM_DATA names"
    )
    return DataError(data.file, reason, remedy)


def blocks_of_lines(path: Path, longest: int = LONGEST_LINE) -> Iterator[tuple[int, bytes]]:
    """The text in blocks that end with a line, each with the number of its first line, counted from 1.

    How a file is compressed (bz2, gzip, xz) is told by its first bytes, not by its name. A line of more than `longest`
    bytes is refused before more of it is read: a small file can be packed from a line that fills the memory.
    """
    line, rest, waiting = 1, list[bytes](), 0
    with opened_text(path) as stream:
        while True:
            read = stream.read(BLOCK)
            cut = read.rfind(b"\n") + 1
            if cut or (not read and waiting):
                block = b"".join([*rest, read[:cut] if read else b"\n"])
                rest, waiting = [], 0
                _require_short(block, longest, path, line)
                yield line, block
                line += block.count(b"\n")
            rest.append(read[cut:])
            waiting += len(read) - cut
            if waiting > longest:
                raise _too_long(path, longest, line)
            if not read:
                return


def _require_short(block: bytes, longest: int, path: Path, first_line: int) -> None:
    """No line of a block may be longer than this, its end not counted."""
    if len(block) > longest:
        for number, line in enumerate(block.split(b"\n"), start=first_line):
            if len(line) > longest:
                raise _too_long(path, longest, number)


def _too_long(path: Path, longest: int, line: int) -> DataError:
    return DataError(
        path, f"the line is longer than {longest} bytes", "Check the file, or raise longest_line", line=line
    )


class BoundedText(io.RawIOBase):
    """A text for readers that hold all of it: refused where a line, or all of it, grows beyond its limit."""

    def __init__(self, path: Path, stream: BinaryIO, largest: int, longest: int = LONGEST_LINE) -> None:
        self._path, self._stream, self._largest, self._longest = path, stream, largest, longest
        self._read = self._of_line = 0
        self._line = 1

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes."""
        read = self._stream.read(len(buffer))
        buffer[: len(read)] = read
        ended = max(read.rfind(b"\n"), read.rfind(b"\r")) + 1
        self._of_line = len(read) - ended if ended else self._of_line + len(read)
        self._line += read.count(b"\n")
        self._read += len(read)
        if self._of_line > self._longest:
            what = f"the line is longer than {self._longest} bytes"
            raise DataError(self._path, what, "Check the file, or read it yourself for from_frame", line=self._line)
        if self._read > self._largest:
            raise too_large(self._path, self._largest)
        return len(read)


def too_large(path: Path, largest: int) -> DataError:
    """What is said of a table that is larger than it may be."""
    return DataError(path, f"holds more than {largest} bytes", "Check the file, or raise largest")


@contextmanager
def opened_text(path: Path) -> Iterator[BinaryIO]:
    """The bytes of the text, however it is compressed; what is wrong with the file is a DataError."""
    try:
        with _decompressed(path) as stream:
            yield stream
    except EOFError:
        raise DataError(path, "the compressed file is cut off", "Get the file again") from None
    except (OSError, zlib.error, lzma.LZMAError) as error:
        raise DataError(path, f"cannot be read ({error})", "Get the file again, or make it readable") from error


def _decompressed(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"BZh"):
        return cast(BinaryIO, bz2.open(path))
    if start.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.open(path))
    if start.startswith(b"\xfd7zXZ\x00"):
        return cast(BinaryIO, lzma.open(path))
    return path.open("rb")


VERSION = 1
"""To be raised when the arrays that a parser returns change."""


def cached(
    name: str, source: Path, parse: Callable[[Path], dict[str, NDArray[Any]]], check: Callable[[Path, Arrays], None]
) -> dict[str, NDArray[Any]]:
    """What `parse` makes of the source, from the cache where it is there; `check` raises where it is not right."""
    folder = cache_folder() / "parsed"
    target = folder / f"{name}.{file_hash(source)[:32]}.v{VERSION}.npz"
    kept = _read(target)
    if kept is not None:
        try:
            check(target, kept)
        except (DataError, KeyError):
            kept = None
    if kept is None:
        kept = parse(source)
        check(source, kept)
        named: dict[str, Any] = kept
        write_cached(target, lambda file: np.savez(file, **named))
        for old in folder.iterdir():
            if old != target and re.fullmatch(rf"{re.escape(name)}\.[0-9a-f]+\.v\d+\.npz", old.name):
                old.unlink(missing_ok=True)
    return kept


def file_hash(source: Path) -> str:
    """SHA-256 of a file's bytes."""
    try:
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(source, f"cannot be read ({error})", "Make it readable, or get it again") from error


def _read(target: Path) -> dict[str, NDArray[Any]] | None:
    try:
        with target.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, EOFError, TypeError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
        return None


def write_cached(target: Path, write: Callable[[BinaryIO], object]) -> None:
    """A file of the cache, there whole or not at all."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, write)
    except OSError as error:
        remedy = "Set the environment variable LONGTERM_CACHE to a folder that can be written"
        raise DataError(target, f"the cache cannot be written ({error})", remedy) from error
