"""Files in LIBSVM's format: their content, and errors with the line."""

import bz2
import gzip
import lzma
import tracemalloc

import numpy as np
import pytest

from longterm.data import reading
from longterm.errors import DataError, InputError

pytest.importorskip("sklearn")
from longterm.data import read_libsvm

TINY = b"+1 1:0.5 3:-2e-3\r\n\n-1\n2 2:1 3:.25 \n"
COMPRESSED = {"plain": bytes, "bz2": bz2.compress, "gz": gzip.compress, "xz": lzma.compress}


@pytest.mark.parametrize("how", COMPRESSED)
def test_every_compression_is_detected(tmp_path, how):
    file = tmp_path / "no-ending"
    file.write_bytes(COMPRESSED[how](TINY))
    features, labels = read_libsvm(file)
    np.testing.assert_array_equal(features.toarray(), [[0.5, 0, -2e-3], [0, 0, 0], [0, 1, 0.25]])
    np.testing.assert_array_equal(labels, [1, -1, 2])
    assert read_libsvm(file, features=7)[0].shape == (3, 7)
    file.write_bytes(COMPRESSED[how](TINY.rstrip()))  # no newline at the end
    assert read_libsvm(file)[0].shape == (3, 3)


@pytest.mark.parametrize(
    "line", ["x 1:1", "<!DOCTYPE html>", "1 5", "1 0:2", "1 1.5:2", "1 3:1 2:1", "1 2:1 2:1", "1 1:x", "1 1:2.5.3"]
)
def test_a_wrong_line_is_named(tmp_path, line):
    for others in ([line], ["1 1:1", line], ["", "1 1:1", line, "1 1:1"]):
        (tmp_path / "rows").write_text("\n".join(others))
        with pytest.raises(DataError, match="is not in LIBSVM's format") as caught:
            read_libsvm(tmp_path / "rows")
        assert caught.value.line == others.index(line) + 1


@pytest.mark.parametrize("text", ["nan 1:1\n", "1 1:inf\n", "1 1:1\n1 1:nan\n"])
def test_numbers_that_are_not_finite_are_refused(tmp_path, text):
    (tmp_path / "rows").write_text(text)
    with pytest.raises(DataError, match=f"row {text.count(chr(10))} holds a number that is not finite"):
        read_libsvm(tmp_path / "rows")


def test_too_many_features_and_no_rows(tmp_path):
    (tmp_path / "rows").write_text("1 4:1\n")
    with pytest.raises(DataError, match="n_features was set to 3"):
        read_libsvm(tmp_path / "rows", features=3)
    with pytest.raises(InputError, match="features"):
        read_libsvm(tmp_path / "rows", features=0)
    (tmp_path / "rows").write_text("\n\n")
    with pytest.raises(DataError, match="has no rows"):
        read_libsvm(tmp_path / "rows")


@pytest.mark.parametrize("how", ["bz2", "gz", "xz"])
def test_a_damaged_file_is_refused(tmp_path, how):
    packed = COMPRESSED[how](b"1 1:1\n" * 5000)
    (tmp_path / "rows").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"cut off|cannot be read"):
        read_libsvm(tmp_path / "rows")


def test_a_small_file_cannot_fill_the_memory(tmp_path, monkeypatch):
    pytest.importorskip("sklearn.datasets")  # whose import takes memory of its own
    monkeypatch.setattr(reading, "MIN_LIMIT", 2**18)
    file = tmp_path / "bomb.xz"
    file.write_bytes(lzma.compress(b"1 1:1\n" * 2**18, preset=0))  # 1.5 MiB in 1 kB
    tracemalloc.start()
    with pytest.raises(DataError, match=f"holds more than {2**18} bytes"):
        read_libsvm(file)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()
    monkeypatch.setattr(reading, "MAX_LINE", 2**16)
    file.write_bytes(lzma.compress(b"1" * 2**18))
    with pytest.raises(DataError, match="the line is longer than 65536 bytes"):
        read_libsvm(file)
    file.write_bytes(lzma.compress(b"1 1:1\n" * 100))
    assert read_libsvm(file, max_bytes=600)[0].shape == (100, 1)
    with pytest.raises(DataError, match="holds more than 599 bytes"):
        read_libsvm(file, max_bytes=599)
