"""LIBSVM's text format: what is read, and what is wrong with the rest, to the line."""

import bz2
import gzip
import lzma
import tracemalloc

import fuzz_libsvm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from longterm.data import DataError, files, read_libsvm
from longterm.errors import InputError

TINY = b"+1 1:0.5 3:-2e-3\r\n\n-1\n2 2:1 3:.25 \n"
COMPRESSED = {"plain": bytes, "bz2": bz2.compress, "gz": gzip.compress, "xz": lzma.compress}


@pytest.mark.parametrize("how", COMPRESSED)
def test_every_compression_whatever_the_name(tmp_path, how):
    file = tmp_path / "no-ending"
    file.write_bytes(COMPRESSED[how](TINY))
    features, labels = read_libsvm(file)
    np.testing.assert_array_equal(features.toarray(), [[0.5, 0, -2e-3], [0, 0, 0], [0, 1, 0.25]])
    np.testing.assert_array_equal(labels, [1, -1, 2])
    assert read_libsvm(file, features=7)[0].shape == (3, 7)
    file.write_bytes(COMPRESSED[how](TINY.rstrip()))  # no newline at the end
    assert read_libsvm(file)[0].shape == (3, 3)


numbers = st.floats(-1e6, 1e6).map(lambda v: float(f"{v:.6g}"))
rows = st.lists(st.tuples(st.integers(-3, 3), st.dictionaries(st.integers(1, 9), numbers, max_size=5)), min_size=1)


@given(rows, st.integers(1, 40))
def test_it_is_what_scikit_learn_reads_whatever_the_block(tmp_path_factory, table, block):
    lines = [" ".join([str(label), *(f"{k}:{row[k]!r}" for k in sorted(row))]) for label, row in table]
    file = tmp_path_factory.mktemp("rows") / "rows"
    file.write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK", block)
        features, labels = read_libsvm(file, features=9)
    expected = np.zeros((len(table), 9))
    for i, (_, row) in enumerate(table):
        for k, value in row.items():
            expected[i, k - 1] = value
    theirs, same = load_svmlight_file(str(file), n_features=9, zero_based=False)
    for found in (features, theirs):
        np.testing.assert_array_equal(found.toarray(), expected)
    np.testing.assert_array_equal(labels, [label for label, _ in table])
    np.testing.assert_array_equal(same, labels)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_fuzzed_lines_are_read_as_a_slow_reference_reads_them(seed, monkeypatch, capsys):
    monkeypatch.setattr(files, "BLOCK", files.BLOCK)  # the fuzzer changes it
    assert fuzz_libsvm.main(5_000, seed) == 0
    assert "no difference" in capsys.readouterr().out


@pytest.mark.parametrize("block", [1, 8, 4 * 2**20])
@pytest.mark.parametrize(
    "line",
    [
        *("1 3.:5", "1 1e1:5", "1 +3:5", "1 1:1_000", "1_0 1:1", "1 ٣:5", "1 3:٥", "1 1:5\u00a02:1", "1 1:1 2:0x1"),
        *("1 1:2.5.3 2:", "1 1:1-2 3:4", "1 1:1\x1c2:1", "1\x00 1:1"),
    ],
)
def test_a_wrong_line_is_wrong_beside_any_other(tmp_path, monkeypatch, line, block):
    monkeypatch.setattr(files, "BLOCK", block)
    for others in ([line], ["1 1:1", line], [line, "1 2:2"], ["", "1 1:1", line, "x"]):
        (tmp_path / "rows").write_text("\n".join(others), encoding="utf-8")
        with pytest.raises(DataError) as caught:
            read_libsvm(tmp_path / "rows")
        assert caught.value.line == others.index(line) + 1


@pytest.mark.slow
def test_a_small_file_that_holds_one_endless_line_is_refused_at_once(tmp_path):
    file = tmp_path / "bomb.gz"
    with gzip.open(file, "wb", compresslevel=6) as stream:
        for _ in range(100):
            stream.write(b"1" * 2**20)
    tracemalloc.start()
    with pytest.raises(DataError, match="line is longer than 16777216 bytes") as caught:
        read_libsvm(file)
    assert tracemalloc.get_traced_memory()[1] < 6 * 2**24
    tracemalloc.stop()
    assert caught.value.line == 1
    assert "raise longest_line" in str(caught.value)


@pytest.mark.parametrize("block", [1, 5, 64, 4 * 2**20])
def test_the_limit_on_lines_is_the_same_in_every_block_and_can_be_raised(tmp_path, monkeypatch, block):
    monkeypatch.setattr(files, "BLOCK", block)
    (tmp_path / "rows").write_text("1 1:1\n1 1:1 2:2 3:33\n1 1:1\n")
    assert read_libsvm(tmp_path / "rows", longest_line=14)[0].shape == (3, 3)
    with pytest.raises(DataError, match="longer than 13 bytes") as caught:
        read_libsvm(tmp_path / "rows", longest_line=13)
    assert caught.value.line == 2
    with pytest.raises(InputError, match="longest_line"):
        read_libsvm(tmp_path / "rows", longest_line=0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x 1:1", "label 'x' is not a finite number"),
        ("nan 1:1", "label 'nan' is not a finite number"),
        ("<!DOCTYPE html>", "label '<!DOCTYPE' is not"),
        ("1 5", "'5' is not index:value"),
        ("1 1:2 3", "'3' is not index:value"),
        ("1:2 2:3", "label '1:2' is not"),
        ("1 0:2", "index '0' is not a whole number from 1"),
        ("1 -1:2", "index '-1' is not a whole number"),
        ("1 1.5:2", "index '1.5' is not a whole number"),
        ("1 :2", "index '' is not a whole number"),
        ("1 6:2", "index '6' is not a whole number from 1 to 5"),
        ("1 99999999999:2", "index '99999999999' is not"),
        ("1 2:1 2:1", "index 2 comes after 2"),
        ("1 3:1 2:1", "index 2 comes after 3"),
        ("1 2:", "value '' is not a finite number"),
        ("1 2: 3:1", "value '' is not a finite number"),
        ("1 2:one", "value 'one' is not"),
        ("1 2:inf", "value 'inf' is not"),
        ("1 2:3:4", "value '3:4' is not"),
        ("1 2:1 # remark", "'#' is not index:value"),
        ("1 2:\xff", "is not a finite number"),
    ],
)
@pytest.mark.parametrize("block", [8, 4 * 2**20])
def test_what_is_wrong_is_named_with_its_line(tmp_path, monkeypatch, line, reason, block):
    monkeypatch.setattr(files, "BLOCK", block)
    file = tmp_path / "wrong"
    file.write_bytes(b"1 1:1 5:2\n\n-1 2:2\n" + line.encode("latin-1") + b"\n1 1:1\n")
    with pytest.raises(DataError) as caught:
        read_libsvm(file, features=5)
    assert reason in caught.value.reason
    assert caught.value.line == 4
    assert caught.value.file == str(file)
    assert str(caught.value).startswith(f"{file}, line 4: ")


@pytest.mark.parametrize("how", ["bz2", "gz", "xz"])
def test_a_file_that_is_cut_off_or_damaged(tmp_path, how):
    rng = np.random.default_rng(0)
    lines = b"".join(b"1 1:%f 2:%f\n" % tuple(pair) for pair in rng.random((2000, 2)))
    packed = COMPRESSED[how](lines)
    file = tmp_path / f"rows.{how}"
    for length in (len(packed) // 2, len(packed) - 5):
        file.write_bytes(packed[:length])
        with pytest.raises(DataError, match="cut off"):
            read_libsvm(file)
    middle = len(packed) // 2
    file.write_bytes(packed[:middle] + bytes(200) + packed[middle + 200 :])
    with pytest.raises(DataError, match=r"cannot be read|cut off|not a finite|not index|not a whole"):
        read_libsvm(file)


def test_no_file_a_folder_and_an_empty_file(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_libsvm(tmp_path / "none")
    with pytest.raises(DataError, match="cannot be read"):
        read_libsvm(tmp_path)
    (tmp_path / "empty").write_bytes(b"\n \n")
    with pytest.raises(DataError, match="has no rows"):
        read_libsvm(tmp_path / "empty")
