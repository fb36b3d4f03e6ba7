"""Files that are there whole or not at all."""

import numpy as np
import pytest

from longterm.storage.files import write_atomically


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
