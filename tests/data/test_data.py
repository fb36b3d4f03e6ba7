"""Data sets: search, download, cache and checks, with small invented files."""

import bz2
import gzip
import os
import threading
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from longterm import InputError, data
from longterm.catalogue import scenarios
from longterm.data import cache, load, load_adult, load_elec2, load_sample, locations, published_sets, registry
from longterm.errors import DataError

TEXT = b"2 1:0.5 3:2\n1 2:1\n2 3:4\n"
TINY = registry.DataSet(
    name="tiny",
    address="http://127.0.0.1:9/tiny.bz2",  # nobody listens there
    about="made up",
    rows=3,
    features=3,
    entries=4,
    label_counts={1.0: 1, 2.0: 2},
    sha256="e7d6",
    positive=2.0,
)


@pytest.fixture(autouse=True)
def _folders(tmp_path, monkeypatch):
    """Nobody's own cache is touched."""
    monkeypatch.setenv("LONGTERM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LONGTERM_DATA", str(tmp_path / "given"))
    (tmp_path / "given").mkdir()


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A data set of three rows, known to the registry, not yet there."""
    source = tmp_path / "tiny"
    source.write_bytes(TEXT)
    known = replace(TINY, sha256=registry.content_hash(data.libsvm.parse_libsvm(source, 3)))
    monkeypatch.setattr(registry, "DATA_SETS", {"tiny": known})
    source.unlink()
    return known


def cached_files(tmp_path):
    return sorted((tmp_path / "cache" / "parsed").glob("*"))


def count_parses(monkeypatch):
    calls = []
    parse = data.load.__globals__["parse_libsvm"]
    monkeypatch.setitem(data.load.__globals__, "parse_libsvm", lambda *a: calls.append(a) or parse(*a))
    return calls


@pytest.mark.parametrize("ending", ["", ".bz2", ".gz"])
def test_a_given_folder_serves_the_file_however_it_is_compressed(tmp_path, tiny, monkeypatch, ending):
    pack = {"": bytes, ".bz2": bz2.compress, ".gz": gzip.compress}[ending]
    given = tmp_path / "given" / f"tiny{ending}"
    assert data.find("tiny") is None
    given.write_bytes(pack(TEXT))
    assert data.find("tiny") == locations.path("tiny") == data.fetch("tiny") == given
    calls = count_parses(monkeypatch)
    for _ in range(3):
        loaded = load("tiny")
        np.testing.assert_array_equal(loaded.features, [[0.5, 0, 2], [0, 1, 0], [0, 0, 4]])
        np.testing.assert_array_equal(loaded.labels, [1, -1, 1])
    assert len(calls) == 1
    assert list((tmp_path / "given").iterdir()) == [given]


def test_a_cache_is_used_only_for_its_own_source_and_version(tmp_path, tiny, monkeypatch):
    given = tmp_path / "given" / "tiny"
    given.write_bytes(TEXT)
    calls = count_parses(monkeypatch)
    load("tiny")
    other = tmp_path / "cache" / "parsed" / "tiny.t.0123456789abcdef0123456789abcdef.v1.npz"
    other.write_bytes(b"of another data set")
    given.write_bytes(TEXT.replace(b"2 1:0.5", b"2  1:0.50"))  # the same content in other bytes
    load("tiny")
    assert len(calls) == 2
    monkeypatch.setattr(cache, "VERSION", 2)
    load("tiny")
    load("tiny")
    assert len(calls) == 3
    assert other.exists()
    assert len(cached_files(tmp_path)) == 2  # the old ones are gone


def test_a_damaged_cache_is_replaced(tmp_path, tiny, monkeypatch):
    (tmp_path / "given" / "tiny").write_bytes(TEXT)
    expected = load("tiny").features
    (file,) = cached_files(tmp_path)
    whole = file.read_bytes()
    calls = count_parses(monkeypatch)
    at = whole.index(np.float64(0.5).tobytes())
    for damaged in (b"", whole[:100], whole[: len(whole) // 2], whole[:at] + b"\x01" + whole[at + 1 :], b"x" * 400):
        file.write_bytes(damaged)
        np.testing.assert_array_equal(load("tiny").features, expected)
        assert file.read_bytes() != damaged
    np.savez(file, labels=np.array([1.0]))  # a sound file of something else
    file.with_suffix(".npz.npz").unlink(missing_ok=True)
    np.testing.assert_array_equal(load("tiny").features, expected)
    assert len(calls) == 6


def test_a_cache_is_written_whole_or_not_at_all(tmp_path, tiny, monkeypatch):
    (tmp_path / "given" / "tiny").write_bytes(TEXT)

    def breaks_off(file, *_, **arrays):
        if arrays:
            file.write(b"half of it")
        raise KeyboardInterrupt

    for owner, step in ((np, "savez"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, breaks_off)
            with pytest.raises(KeyboardInterrupt):
                load("tiny")
        assert cached_files(tmp_path) == []
    load("tiny")
    (file,) = cached_files(tmp_path)
    assert file.suffix == ".npz"


def test_the_error_for_an_unwritable_cache_names_the_variable(tmp_path, tiny, monkeypatch):
    (tmp_path / "given" / "tiny").write_bytes(TEXT)
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("LONGTERM_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="LONGTERM_CACHE"):
        load("tiny")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (TEXT + b"1 1:1\n", "rows should be 3, found 4"),
        (TEXT.replace(b" 2:1", b""), "stored entries should be 4, found 3"),
        (TEXT.replace(b"1 2:1", b"3 2:1"), "label counts should be"),
        (TEXT.replace(b"1 2:1", b"2 2:1"), "classes should be 2, found 1"),
        (TEXT.replace(b"0.5", b"0.7"), "content hash should be"),
        (b"<html>404</html>\n", "could not convert string to float"),
    ],
)
def test_another_file_under_the_name_is_refused_and_not_cached(tmp_path, tiny, content, reason):
    (tmp_path / "given" / "tiny").write_bytes(content)
    with pytest.raises(DataError) as caught:
        load("tiny")
    assert reason in str(caught.value)
    assert caught.value.file.endswith("tiny")
    assert cached_files(tmp_path) == []


def test_the_error_for_a_missing_file_names_the_folder(tmp_path, tiny):
    for asked in (locations.path, data.fetch, load):
        with pytest.raises(DataError) as caught:
            asked("tiny")
        message = str(caught.value)
        assert "http://127.0.0.1:9/tiny.bz2" in message
        assert str(tmp_path / "cache" / "downloads") in message
        assert "LONGTERM_DATA" in message
    assert "could not be downloaded" in message
    assert not list((tmp_path / "cache").rglob("*tiny*"))


def test_without_pooch_the_error_names_the_extra(tiny, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(DataError, match=r"pip install 'longterm\[experiments\]'"):
        data.fetch("tiny")


def test_a_file_is_downloaded_once(tmp_path, tiny, monkeypatch):
    site = tmp_path / "site"
    site.mkdir()
    (site / "tiny.bz2").write_bytes(bz2.compress(TEXT))
    asked = []

    class Publisher(SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(site))

        def log_message(self, *arguments):
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Publisher) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            monkeypatch.setattr(registry, "DATA_SETS", {"tiny": replace(tiny, address=f"{address}/tiny.bz2")})
            for _ in range(2):
                assert data.fetch("tiny") == tmp_path / "cache" / "downloads" / "tiny.bz2"
            assert load("tiny").features.shape == (3, 3)
            assert asked == ["/tiny.bz2"]
            monkeypatch.setattr(registry, "DATA_SETS", {"tiny": replace(tiny, address=f"{address}/gone")})
            with pytest.raises(DataError, match="404"):
                data.fetch("tiny")
        finally:
            server.shutdown()


def test_names_and_folders_that_are_wrong(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="Choose from"):
        load("ijcnn")
    with pytest.raises(InputError, match="Use load_adult"):
        load("adult")
    with pytest.raises(InputError, match="'train' or 'test'"):
        load_adult("validation")
    monkeypatch.setenv("LONGTERM_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="not a folder"):
        data.find("ijcnn1")


def test_the_cache_folder(tmp_path, monkeypatch):
    assert locations.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("LONGTERM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert locations.cache_folder() == tmp_path / "longterm"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert locations.cache_folder() == Path.home() / ".cache" / "longterm"


ROW = b"39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, ?, "


def test_adult_as_its_publisher_writes_it(tmp_path):
    file = tmp_path / "adult.test"
    file.write_bytes(b"|1x3 Cross validator\n" + ROW + b"<=50K.\n" + ROW + b">50K.\n\n")
    columns = published_sets.parse_adult(file)
    np.testing.assert_array_equal(columns["labels"], [-1, 1])
    np.testing.assert_array_equal(columns["age"], [39, 39])
    np.testing.assert_array_equal(columns["sex"], [b"Male", b"Male"])


@pytest.mark.parametrize("line", [ROW, b"1, 2, 3", ROW.replace(b"39", b"old") + b">50K"])
def test_a_wrong_adult_is_refused(tmp_path, line):
    (tmp_path / "given" / "adult.data").write_bytes((ROW + b">50K\n") * 32_560 + line + b"\n")
    with pytest.raises(DataError):
        load_adult()
    assert cached_files(tmp_path) == []


def test_the_sample_is_scaled_and_labelled():
    sample = load_sample()
    assert sample.features.shape == (6000, 54)
    assert sample.features.min() == 0
    assert 0.9 < sample.features[:, :10].max() <= 1
    np.testing.assert_array_equal(sample.features[:, 10:14].sum(axis=1), 1)
    np.testing.assert_array_equal(sample.features[:, 14:].sum(axis=1), 1)
    np.testing.assert_array_equal(np.unique(sample.labels), [-1, 1])


ELEC2 = b"""feat_1,feat_2,feat_3,feat_4,feat_5,feat_6,target
0.0,0.05644299999999999,0.4,0.1,0.2,0.3,1
0.021277,0.05,0.5,0.1,0.2,0.3,0
"""


def test_elec2_has_descriptive_column_names(tmp_path, monkeypatch):
    given = tmp_path / "given" / "elec.csv.gz"
    given.write_bytes(gzip.compress(ELEC2))
    known = replace(
        registry.DATA_SETS["elec2"],
        rows=2,
        entries=12,
        label_counts={0.0: 1, 1.0: 1},
        sha256=registry.content_hash(published_sets.parse_elec2(given)),
    )
    monkeypatch.setattr(registry, "DATA_SETS", {"elec2": known})
    for _ in range(2):  # parsed, then from the cache
        table = load_elec2()
        np.testing.assert_array_equal(table.nsw_price, [0.05644299999999999, 0.05])  # exact in every pandas
        np.testing.assert_array_equal(table.transfer, [0.3, 0.3])
        np.testing.assert_array_equal(table.labels, [1, -1])
    with pytest.raises(InputError, match="load_elec2"):
        load("elec2")


def test_the_error_for_missing_elec2_names_the_file(tmp_path, monkeypatch):
    address = "http://127.0.0.1:9/elec.csv"  # nobody listens there
    monkeypatch.setattr(registry, "DATA_SETS", {"elec2": replace(registry.DATA_SETS["elec2"], address=address)})
    with pytest.raises(DataError, match=r"elec\.csv.*LONGTERM_DATA"):
        scenarios.power_allocation()


def test_the_cache_has_the_permissions_of_its_source(tmp_path, tiny):
    given = tmp_path / "given" / "tiny"
    given.write_bytes(TEXT)
    for mode in (0o600, 0o640, 0o444):
        given.chmod(mode)
        load("tiny")
        (file,) = cached_files(tmp_path)
        assert file.stat().st_mode & 0o777 == mode | 0o600
        file.unlink()
