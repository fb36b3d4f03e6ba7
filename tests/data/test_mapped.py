"""Memory-mapped rows in the cache folder: created once, checked, and refused with an error."""

import numpy as np
import pytest

from longterm import InputError
from longterm.data import named_rows as module
from longterm.data import tables as own
from longterm.data.named_rows import load_mapped
from longterm.errors import DataError

TEXT = "3 1:0.5 3:2\n1 2:1\n3 1:-1\n"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGTERM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LONGTERM_DATA", raising=False)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(TEXT)
    return path


def test_a_user_s_file_is_made_dense_once(file, monkeypatch):
    for _ in range(2):
        rows = load_mapped(str(file))
        np.testing.assert_array_equal(rows.features, [[0.5, 0, 2], [0, 1, 0], [-1, 0, 0]])
        np.testing.assert_array_equal(rows.labels, [1, -1, 1])  # the larger label is +1
        assert not rows.features.flags.writeable
        monkeypatch.setattr(own, "read_libsvm", None)  # not read a second time


def test_the_arrays_are_on_the_disk_and_not_in_memory(file):
    load_mapped(str(file))
    again = load_mapped(str(file)).features
    while not isinstance(again, np.memmap):
        again = again.base
        assert again is not None


def test_a_private_file_has_a_private_cache(file, tmp_path):
    file.chmod(0o600)
    load_mapped(str(file))
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "cache" / "rows").iterdir()} == {0o600}


def test_a_changed_file_is_read_again(file):
    load_mapped(str(file))
    file.write_text(TEXT.replace("0.5", "0.25"))
    assert load_mapped(str(file)).features[0, 0] == 0.25


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-8] + bytes(8)[:-1] + b"\x01", lambda data: data[:100], lambda data: b""]
)
def test_a_damaged_cache_is_made_again(file, tmp_path, damage):
    load_mapped(str(file))
    (kept,) = (tmp_path / "cache" / "rows").glob("*features*.npy")
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    np.testing.assert_array_equal(load_mapped(str(file)).features[0], [0.5, 0, 2])
    assert kept.read_bytes() == whole


def test_unusable_files_are_refused(file, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"neither a data set nor a file. Choose from \['sample', 'a9a'"):
        load_mapped("mnist")
    file.write_text("1 1:1\n2 1:1\n3 1:1\n")
    with pytest.raises(DataError, match="3 different labels"):
        load_mapped(str(file))
    file.write_text(TEXT)
    monkeypatch.setattr(module, "MAX_DENSE_BYTES", 8)
    with pytest.raises(InputError, match="as a dense array"):
        load_mapped(str(file))
    monkeypatch.setattr(module, "MAX_DENSE_BYTES", 2**30)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LONGTERM_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="the cache cannot be written"):
        load_mapped(str(file))


def test_the_sample_needs_no_cache(tmp_path):
    rows = load_mapped("sample")
    assert rows.features.shape == (6000, 54)
    with pytest.raises(ValueError, match="read-only"):
        rows.features[0, 0] = 1.0
    assert not (tmp_path / "cache").exists()
