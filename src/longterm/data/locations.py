"""Folders with data files, and downloads from the publishers.

- ``LONGTERM_DATA`` names a folder that already has files. It is only read.
- ``LONGTERM_CACHE`` names the folder for downloads and parsed arrays. By default it is ``longterm`` in the user's cache
  folder (``XDG_CACHE_HOME``, or ``.cache`` in the home folder).
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from longterm.data.registry import DataSet, data_set
from longterm.errors import DataError

ENDINGS = ("", ".bz2", ".gz", ".xz")


def cache_folder() -> Path:
    """Return the folder for downloads and parsed arrays."""
    chosen = os.environ.get("LONGTERM_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "longterm"


def find(name: str) -> Path | None:
    """Return the local file of a data set, in any compression, or None.

    Parameters
    ----------
    name : str
        The name of a data set.
    """
    file = data_set(name).file
    stem = next((file.removesuffix(ending) for ending in ENDINGS[1:] if file.endswith(ending)), file)
    candidates = [file, *(stem + ending for ending in ENDINGS)]
    paths = (folder / candidate for folder in _folders() for candidate in candidates)
    return next((path for path in paths if path.is_file()), None)


def path(name: str) -> Path:
    """Return the local file of a data set, or raise an error that says what to download.

    Parameters
    ----------
    name : str
        The name of a data set.
    """
    file = find(name)
    if file is None:
        raise _missing(data_set(name), "is not here", f"Run longterm data fetch {name}, or download")
    return file


def fetch(name: str, *, progress: bool = False) -> Path:
    """Return the file of a data set. Download it from its publisher (with ``pooch``) if it is not local.

    An interrupted download leaves no file.

    Parameters
    ----------
    name : str
        The name of a data set.
    progress : bool
        Show a progress bar, if ``tqdm`` is installed.
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
        # The content is checked after parsing, so no hash of the bytes is needed.
        return Path(pooch.retrieve(data.address, None, fname=data.file, path=folder, progressbar=progress))
    except (OSError, ValueError) as error:  # requests' errors are OSErrors
        raise _missing(data, f"could not be downloaded ({type(error).__name__}: {error})") from error


def _missing(data: DataSet, reason: str, how: str = "Download") -> DataError:
    folder = cache_folder() / "downloads"
    remedy = (
        f"{how} {data.address} and put it into {folder}, or into a folder of your own that the environment variable "
        "LONGTERM_DATA names"
    )
    return DataError(data.file, reason, remedy)
