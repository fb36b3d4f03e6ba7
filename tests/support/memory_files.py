"""Files of these tests lie in memory where that can be: they are about processes and bytes, not about a disk."""

import os
import tempfile
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path(tmp_path):
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK)):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="longterm-test-") as folder:
        yield Path(folder)
