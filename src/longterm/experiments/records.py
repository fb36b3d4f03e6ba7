"""One finished job as a file: readable JSON, the same bytes for the same numbers, and a checksum.

Numbers are written with as many digits as it takes to read the same float64 again. A file that was cut short, changed,
or written for something else is not read: it counts as missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMAT = 1


def as_json(content: Any) -> str:
    """One line, keys in order, no NaN."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode(content: Mapping[str, Any]) -> bytes:
    """The bytes of a record."""
    text = as_json(content)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"format":{FORMAT},"sha256":"{digest}",\n"content":{text}}}\n'.encode()


def decode(data: bytes) -> dict[str, Any] | None:
    """What was encoded; None where these are not exactly the bytes of a record."""
    try:
        content = json.loads(data)["content"]
        return content if encode(content) == data else None
    except (ValueError, KeyError, TypeError):  # UnicodeDecodeError is a ValueError
        return None


def read_record(path: Path, stem: str) -> dict[str, Any] | None:
    """The record of this job in a file; None where there is no sound one."""
    try:
        content = decode(path.read_bytes())
    except OSError:
        return None
    return content if content is not None and content.get("job") == stem else None
