"""Forged files: whoever wrote them, and however valid their checksums, they cannot hurt."""

import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fuzz_snapshots
import longterm
from longterm import AOGD, Fleet
from longterm.errors import SnapshotError
from longterm.linear_model import BudgetLinearLearner
from longterm.linear_model.kernels.layout import FIELDS, MIXTURE, MIXTURE_FIELDS
from longterm.problems import two_dimensional
from longterm.storage.packing import MalformedError, pack, unpack
from longterm.storage.snapshot import Snapshot, read_snapshot, write_snapshot

PROBLEM = two_dimensional()


def changed(path, change):
    """The file with its parts changed and its checksum made anew."""
    header, parts = fuzz_snapshots.taken_apart(path.read_bytes())
    change(header, {part[0]: part for part in parts})
    path.write_bytes(fuzz_snapshots.put_together(header, parts))


@pytest.fixture(scope="module")
def sparse_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("sparse") / "learner"
    fuzz_snapshots.KINDS["sparse"].save(path, 60)
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("files", "rounds"), [(200, 300), pytest.param(2000, 1000, marks=pytest.mark.cross)])
def test_thousands_of_forged_files(files, rounds):
    script = Path(fuzz_snapshots.__file__)
    environment = os.environ | {"PYTHONPATH": str(Path(longterm.__file__).parents[1]), "FUZZ_ROUNDS": str(rounds)}
    done = subprocess.run(
        [sys.executable, script, str(files), "3"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{files}  files, 0 wrong" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.cross)])
def test_forged_databases(count):
    script = Path(fuzz_snapshots.__file__).with_name("fuzz_databases.py")
    environment = os.environ | {"PYTHONPATH": str(Path(longterm.__file__).parents[1]), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, script, str(count), "3"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} databases, 0 wrong" in done.stdout


def heap_of(parts):
    return np.frombuffer(parts["state.heap"][3], dtype="<u8").copy()


FORGERIES = {
    "an index out of range": lambda heap: np.append(heap[:-1], heap[-1] | np.uint64(63)),
    "no index": lambda heap: np.append(heap[:-1], heap[-1] & ~np.uint64(63)),
    "out of order": lambda heap: heap[::-1],
    "all ones": lambda heap: heap | np.uint64(2**64 - 1),
}


@pytest.mark.parametrize("how", FORGERIES)
def test_one_integer_of_the_heap(tmp_path, sparse_file, how):
    path = tmp_path / "forged"
    path.write_bytes(sparse_file)

    def change(header, parts):
        heap = heap_of(parts)
        assert len(heap) > 2
        parts["state.heap"][3] = FORGERIES[how](heap).astype("<u8").tobytes()

    changed(path, change)
    with pytest.raises(SnapshotError, match=r"heap|entry"):
        BudgetLinearLearner.load(path)


@pytest.mark.parametrize("name", ["active", "live", "entries", "round"])
def test_counts(tmp_path, sparse_file, name):
    path = tmp_path / "forged"
    for value in (-1, 2**62, 0 if name == "round" else 39):
        path.write_bytes(sparse_file)

        def change(header, parts, value=value):
            numbers = np.frombuffer(parts["state.scalars"][3], dtype="<f8").copy()
            numbers[[field.name for field in FIELDS].index(name)] = value
            parts["state.scalars"][3] = numbers.tobytes()

        changed(path, change)
        with pytest.raises(SnapshotError):
            BudgetLinearLearner.load(path)


@pytest.fixture(scope="module")
def mixed_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed") / "learner"
    fuzz_snapshots.KINDS["a-ftrl"].save(path, 60)
    return path.read_bytes()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -3.0, 1e250, 7.0])
@pytest.mark.parametrize("field", MIXTURE_FIELDS, ids=lambda field: field.name)
@pytest.mark.parametrize("mixture", [0, 1])
def test_one_number_of_a_mixture(tmp_path, mixed_file, mixture, field, value):
    path = tmp_path / "forged"
    path.write_bytes(mixed_file)

    def change(header, parts):
        mixtures = np.frombuffer(parts["state.mixtures"][3], dtype=MIXTURE).copy()
        numbers = np.atleast_1d(mixtures[field.name][mixture])
        numbers[0] = value
        mixtures[field.name][mixture] = numbers if field.length > 1 else numbers[0]
        parts["state.mixtures"][3] = mixtures.tobytes()

    changed(path, change)
    if field.name == "pivot" and math.isfinite(value) and value < 1e200:  # Newton's iteration begins there
        BudgetLinearLearner.load(path)
        return
    with pytest.raises(SnapshotError, match=r"mixture|scale"):
        BudgetLinearLearner.load(path)


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [
        ("state.mixtures", "<f8", [MIXTURE.itemsize // 8, 2]),
        ("state.mixtures", "<f8", [MIXTURE.itemsize // 4]),
        ("state.mixtures", "<i8", [2, MIXTURE.itemsize // 8]),
        ("state.scalars", "<i8", [len(FIELDS)]),
        ("state.scalars", "<f8", [1, len(FIELDS)]),
    ],
)
def test_the_mixture_has_another_form(tmp_path, mixed_file, name, dtype, shape):
    path = tmp_path / "forged"
    path.write_bytes(mixed_file)
    changed(path, lambda header, parts: parts[name].__setitem__(slice(1, 3), [dtype, shape]))
    with pytest.raises(SnapshotError, match=name.removeprefix("state.")):
        BudgetLinearLearner.load(path)


@pytest.mark.parametrize(
    "settings",
    [
        {"scales": "one"},
        {"scales": "unheard of"},
        {"offset": "mean"},
        {"offset": "none"},
        {"offset": "unheard of"},
        {"offset": []},
        {"residual_radius": 8.0},
        {"residual_radius": math.nan},
        {"residual_radius": "4"},
        {"intercept_bound": 2.0},
        {"max_features": 3},
        {"max_features": 10**30, "rule": "penalised-ftrl"},
    ],
)
def test_settings_of_the_mixture(tmp_path, mixed_file, settings):
    path = tmp_path / "forged"
    path.write_bytes(mixed_file)
    BudgetLinearLearner.load(path)
    changed(path, lambda header, parts: header["metadata"]["metadata"]["settings"].update(settings))
    with pytest.raises(SnapshotError):
        BudgetLinearLearner.load(path)


def test_a_dimension_is_believed_as_far_as_the_file_has_numbers(tmp_path):
    path = tmp_path / "forged"
    for sparse in (False, True):
        BudgetLinearLearner(6, 1.0, sparse=sparse).save(path)
        changed(path, lambda header, parts: header["metadata"]["metadata"]["settings"].update(dimension=2_000_000_000))
        with pytest.raises(SnapshotError, match="the dimension is 2000000000, and there are numbers for 6"):
            BudgetLinearLearner.load(path)


def test_a_fleets_size_is_believed_as_far_as_the_file_has_numbers(tmp_path):
    path = tmp_path / "forged"
    learner = AOGD.for_problem(PROBLEM)
    Fleet(learner, 3).save(path)
    changed(path, lambda header, parts: header["metadata"]["metadata"].update(size=80_000_000))
    with pytest.raises(SnapshotError, match="80000000 learners"):
        Fleet.load(path, learner)


def test_a_shape_is_believed_as_far_as_there_are_bytes():
    header = json.dumps({"metadata": {}, "arrays": [["x", "<f8", [2**40, 0]]]}).encode()
    with pytest.raises(MalformedError, match="missing"):
        unpack(struct.pack("<I", len(header)) + header)
    assert unpack(pack({}, {"x": np.empty((3, 0))}))[1]["x"].shape == (3, 0)


# --- versions -------------------------------------------------------------------------------------------------


def test_a_file_of_another_version_names_its_writer(tmp_path):
    path = tmp_path / "file"
    write_snapshot(path, Snapshot("thing", 3, {}, {}))
    with pytest.raises(
        SnapshotError, match=f"longterm '{longterm.__version__}' wrote a thing of version 3, not 2"
    ) as e:
        read_snapshot(path, "thing", 2)
    assert e.value.reason == "another version"
    data = path.read_bytes()
    path.write_bytes(fuzz_snapshots.sealed(data[:8] + struct.pack("<I", 2) + data[12:-32]))
    with pytest.raises(SnapshotError, match="its layout is version 2, this library reads 1"):
        read_snapshot(path, "thing", 3)


def test_a_folder_is_no_snapshot(tmp_path):
    with pytest.raises(SnapshotError, match="it is a folder"):
        read_snapshot(tmp_path, "thing", 1)
