"""Files that are there whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import longterm
from longterm._base.files import write_atomically
from longterm.errors import InputError
from longterm.storage.snapshot import Snapshot, write_snapshot

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(longterm.__file__).parents[1])}


def test_bytes_or_a_function_that_writes(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"one")
    assert path.read_bytes() == b"one"
    write_atomically(path, lambda file: np.savez(file, numbers=np.arange(3)))
    with np.load(path) as archive:
        assert archive["numbers"].tolist() == [0, 1, 2]
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(file):
        file.write(b"half of the new one")
        raise error

    with pytest.raises(error):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_two_writers_at_once_leave_one_of_two_whole_files(tmp_path):
    path = tmp_path / "file"

    def interrupted(file):
        file.write(b"first")
        write_atomically(path, b"second")

    write_atomically(path, interrupted)
    assert path.read_bytes() == b"first"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_what_killed_writers_left_is_removed_by_the_next_save_and_what_is_being_written_is_not(tmp_path):
    path = tmp_path / "fleet"
    snapshot = Snapshot("fleet", 1, {}, {})
    dies = "import os, sys, pathlib; from longterm._base.files import write_atomically as write; "
    dies += "write(pathlib.Path(sys.argv[1]), lambda file: os._exit(0))"  # in the middle of it
    subprocess.run([sys.executable, "-c", dies, str(path)], check=True, env=ENVIRONMENT)
    (tmp_path / "fleet.mine.partial").write_bytes(b"something else")
    assert len(list(tmp_path.glob("fleet.????????.partial"))) == 1

    def meanwhile(file):
        write_snapshot(path, snapshot)
        assert len(list(tmp_path.glob("fleet.????????.partial"))) == 1  # this one, which goes on
        file.write(b"whole")

    write_atomically(path, meanwhile)
    assert path.read_bytes() == b"whole"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["fleet", "fleet.mine.partial"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_replaced_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_only_regular_files_are_replaced(tmp_path, make):
    path = tmp_path / "special"
    make(path)
    with pytest.raises(InputError, match="not a regular file"):
        write_atomically(path, b"new")
    assert path.exists()
    assert not path.is_file()
