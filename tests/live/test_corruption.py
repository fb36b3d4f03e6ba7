"""Damaged snapshots and journals: the old state or a clear error, never a wrong state, never anything else."""

import contextlib
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from live_files import interrupted, load, put, saved
from live_plan import fresh, image, learner, start, step, undisturbed
from longterm import InputError, LiveLearner
from longterm.errors import JournalError, SnapshotError
from longterm.live.journal import Journal, JournalReader
from longterm.live.memory import KIND, VERSION
from longterm.storage.lock import FileLock
from longterm.storage.snapshot import MalformedError, Snapshot, pack, read_snapshot, unpack, write_snapshot
from longterm.storage.specification import specification

each_number_of_flips = pytest.mark.parametrize("flips", [300, pytest.param(10_000, marks=pytest.mark.cross)])


# --- damage -------------------------------------------------------------------------------------------------


def survives(folder, allowed):
    """Load it: an image that is allowed, or a SnapshotError; nothing else may happen."""
    try:
        live = load(folder)
    except SnapshotError as error:
        assert error.reason in ("truncated", "corrupted", "foreign", "another snapshot")  # noqa: PT017
        return False
    live.close()
    assert image(live) in allowed
    return True


def flipped(data, rng):
    """One byte changed in most cases, a few in some."""
    made = bytearray(data)
    for place in rng.integers(len(data), size=1 if rng.random() < 0.8 else rng.integers(2, 6)):
        made[place] ^= int(rng.integers(1, 256))
    return data + b"\0" if made == data else bytes(made)


@pytest.mark.slow
def test_every_truncation_of_a_snapshot_is_noticed(tmp_path):
    folder, _ = saved(tmp_path)
    data = (folder / "state").read_bytes()
    for length in range(len(data)):
        put(folder / "state", data[:length])
        assert not survives(folder, [])
    put(folder / "state", data + b"\0")
    assert not survives(folder, [])


@pytest.mark.slow
@each_number_of_flips
def test_thousands_of_flips_of_a_snapshot_are_noticed(tmp_path, flips):
    folder, _ = saved(tmp_path)
    data = (folder / "state").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(flips):
        put(folder / "state", flipped(data, rng))
        assert not survives(folder, [])


def ends(path):
    """The file sizes at which a journal's records end, with the number of the last one."""
    reader = JournalReader(path)
    return {reader.start.offset: reader.start.sequence} | {r.after.offset: r.after.sequence for r in reader}


@pytest.mark.slow
def test_every_truncation_of_a_journal_gives_the_state_after_the_last_whole_record(tmp_path):
    folder, images = saved(tmp_path)
    data, end = (folder / "journal").read_bytes(), ends(folder / "journal")
    sequence = None
    for length in range(len(data) + 1):
        put(folder / "journal", data[:length])
        sequence = end.get(length, sequence)
        assert survives(folder, [] if sequence is None else [images[sequence]]) == (sequence is not None)
        if sequence is not None:  # what was torn is gone from the file too, so that new records find a good end
            assert end[(folder / "journal").stat().st_size] == sequence
    assert sequence == 29


@pytest.mark.slow
@each_number_of_flips
def test_thousands_of_flips_of_a_journal_are_noticed(tmp_path, flips):
    folder, _ = saved(tmp_path)
    data = (folder / "journal").read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(flips):
        put(folder / "journal", flipped(data, rng))
        assert not survives(folder, [])


@pytest.mark.slow
@each_number_of_flips
def test_a_save_interrupted_before_its_new_journal(tmp_path, flips):
    folder, images = interrupted(tmp_path)
    data, end = (folder / "journal").read_bytes(), ends(folder / "journal")
    sequence = 0
    for length in range(min(end), len(data) + 1):
        put(folder / "journal", data[:length])
        sequence = end.get(length, sequence)
        assert survives(folder, [images[sequence]]) == (sequence >= 12)
    rng = np.random.default_rng(2)
    for _ in range(flips // 5):
        put(folder / "journal", flipped(data, rng))
        assert not survives(folder, [])


def test_a_journal_with_another_past_is_refused(tmp_path):
    folder, _ = interrupted(tmp_path)
    (folder / "journal").unlink()
    with fresh(journal=folder / "journal", fsync=False) as other:  # as fresh as the old one was, but another life
        for _ in range(6):
            other.skip(other.ask())
    with pytest.raises(JournalError, match="its past is not that of the snapshot"):
        load(folder)


def test_files_of_different_saves_do_not_mix(tmp_path):
    folder, _ = saved(tmp_path)
    older, journal = (folder / "state").read_bytes(), (folder / "journal").read_bytes()
    with load(folder) as live:
        live.save(folder / "state")
        step(live)
    newer = (folder / "journal").read_bytes()
    put(folder / "state", older)
    with pytest.raises(JournalError, match="does not continue this snapshot") as refused:
        load(folder)
    assert refused.value.reason == "another snapshot"
    with pytest.raises(JournalError, match="does not continue this snapshot"):
        fresh(journal=folder / "journal")
    put(folder / "journal", journal)
    load(folder).close()
    assert (folder / "journal").read_bytes() == journal != newer


def test_a_missing_journal_is_not_taken_for_an_empty_one(tmp_path):
    folder, _ = saved(tmp_path)
    (folder / "journal").unlink()
    with pytest.raises(JournalError) as refused:
        load(folder)
    assert refused.value.reason == "missing"


def test_an_error_leaves_the_files_alone(tmp_path):
    folder, _ = saved(tmp_path)
    data = bytearray((folder / "journal").read_bytes())
    data[-20] ^= 1
    put(folder / "journal", data)
    state = (folder / "state").read_bytes()
    with pytest.raises(
        JournalError, match=r"record 29, at byte \d+, is damaged.*cut the file off at \d+ bytes"
    ) as refused:
        load(folder)
    assert ((folder / "journal").read_bytes(), (folder / "state").read_bytes()) == (data, state)
    place = int(str(refused.value).split("at byte ")[1].split(",")[0])  # the remedy works
    put(folder / "journal", data[:place])
    with load(folder) as live:
        assert image(live) == undisturbed(28)[-1]


# --- bytes that nobody's save made, with good checksums -----------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=200))
def test_any_bytes_are_unpacked_or_refused(data):
    with contextlib.suppress(MalformedError):
        unpack(data)


@given(header=json_values, tail=st.binary(max_size=40))
def test_any_header_is_unpacked_or_refused(header, tail):
    text = json.dumps(header).encode()
    with contextlib.suppress(MalformedError):
        unpack(struct.pack("<I", len(text)) + text + tail)


@pytest.mark.parametrize(
    "entry",
    [
        ["x", "|O", [1]],
        ["x", "<f8", [-1]],
        ["x", "<f8", [2**62, 2**62]],
        ["x", "<f8", [True]],
        ["x", "<f8", "3"],
        ["x", "<f8", [1] * 40],
        ["x", "<f8"],
        "x",
    ],
)
def test_entries_that_make_no_sense(entry):
    text = json.dumps({"metadata": {}, "arrays": [entry]}).encode()
    with pytest.raises(MalformedError):
        unpack(struct.pack("<I", len(text)) + text + b"\0" * 8)


def test_deep_json_is_refused():
    text = b'{"metadata":' + b"[" * 200_000 + b"]" * 200_000 + b',"arrays":[]}'
    with pytest.raises(MalformedError):
        unpack(struct.pack("<I", len(text)) + text)


@given(metadata=st.dictionaries(st.sampled_from(["learner", "book", "follows"]), json_values))
def test_any_metadata_with_a_good_checksum_is_refused_in_words(metadata, tmp_path_factory):
    path = tmp_path_factory.mktemp("crafted") / "state"
    metadata["learner"] = specification(learner())
    write_snapshot(path, Snapshot(KIND, VERSION, metadata, fresh()._recorded.memory.arrays()))
    with pytest.raises(SnapshotError, match="makes no sense"):
        LiveLearner.load(path, learner())


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        pack({}, {}),
        pack({"op": "fly"}, {}),
        pack({"op": "skip", "token": 99}, {}),
        pack({"op": "skip", "token": None}, {}),
        pack({"op": "tell", "token": 1}, {"constraint": np.zeros(())}),
        pack(
            {"op": "tell", "token": 1}, {"state.round": np.zeros(()), "state.x": np.zeros(3), "state.multiplier": 0.0}
        ),
    ],
)
def test_records_that_make_no_sense_are_refused_in_words(tmp_path, payload):
    with start(tmp_path, fsync=False) as live:
        step(live)
        live._recorded.journal.append(payload, 2)
    with pytest.raises(JournalError, match="record 2 makes no sense"):
        start(tmp_path)


@given(
    st.dictionaries(
        st.text(max_size=6),
        st.sampled_from([np.float64(1.5), np.zeros(()), np.arange(6.0).reshape(2, 3).T, np.ones((0, 2), np.float32)])
        | st.sampled_from(
            [np.int64(-3), np.array([True, False]), np.arange(3, dtype=">i4"), np.array([np.nan, -np.inf])]
        ),
        max_size=5,
    )
)
def test_arrays_and_scalars_come_back_as_they_were(arrays):
    metadata, made = unpack(pack({"a": [1, {"b": None}]}, arrays))
    assert metadata == {"a": [1, {"b": None}]}
    assert list(made) == list(arrays)
    for name, value in arrays.items():
        np.testing.assert_array_equal(made[name], value)
        assert isinstance(made[name], np.generic) == isinstance(value, np.generic)
        assert made[name].dtype == value.dtype.newbyteorder("=")


def test_what_cannot_be_stored_is_refused_when_the_learner_is_made():
    with pytest.raises(InputError, match="dtype object"):
        pack({}, {"x": np.array([None])})
    with pytest.raises(ValueError, match="JSON"):
        pack({"x": float("nan")}, {})


def test_snapshots_know_nothing_of_learners(tmp_path):
    path = tmp_path / "anything"
    write_snapshot(path, Snapshot("pair", 3, {"note": "é"}, {"x": np.arange(3.0)}))
    found = read_snapshot(path, "pair", 3)
    assert (found.metadata, found.version) == ({"note": "é"}, 3)
    np.testing.assert_array_equal(found.arrays["x"], np.arange(3.0))


def test_journals_know_nothing_of_learners(tmp_path):
    path = tmp_path / "anything"
    journal = Journal.create(path, b"i" * 32, 5, FileLock(path).acquire(), fsync=False)
    journal.append(b"one", 6)
    journal.append(b"", 7)
    journal.close()
    reader = JournalReader(path)
    assert reader.identity == b"i" * 32
    assert [(r.payload, r.after.sequence) for r in reader] == [(b"one", 6), (b"", 7)]
