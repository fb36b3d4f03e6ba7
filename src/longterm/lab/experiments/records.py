"""Records of finished jobs: JSON files with a checksum.

Numbers have enough digits to read back the same float64, so equal numbers give equal bytes. A record that is truncated,
changed, or belongs to another job is not read: the job counts as unfinished.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longterm._base.files import write_atomically
from longterm.errors import InputError
from longterm.lab.experiments.spec import as_json

FORMAT = 1


def encode_record(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a record."""
    text = as_json(content)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"format":{FORMAT},"sha256":"{digest}",\n"content":{text}}}\n'.encode()


def decode_record(data: bytes) -> dict[str, Any] | None:
    """Return the content of a record, or None if these are not exactly the bytes of one."""
    try:
        content = json.loads(data)["content"]
        return content if encode_record(content) == data else None
    except (ValueError, KeyError, TypeError, RecursionError):  # UnicodeDecodeError is a ValueError
        return None


def read_record(path: Path, stem: str) -> dict[str, Any] | None:
    """Return the record of this job in a file, or None if there is no valid one."""
    try:
        content = decode_record(path.read_bytes())
    except OSError:
        return None
    return content if content is not None and content.get("job") == stem else None


def write_file(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file of a result folder atomically; raise if a symbolic link would lead out of the folder."""
    if path.is_symlink():
        raise InputError(str(path), "is a symbolic link", "Remove it, or give another folder (--out)")
    write_atomically(path, content, sync=sync)


def write_json(path: Path, content: Mapping[str, Any], *, sync: bool = True) -> None:
    """Write a JSON file with sorted keys."""
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_file(path, f"{text}\n".encode(), sync=sync)
