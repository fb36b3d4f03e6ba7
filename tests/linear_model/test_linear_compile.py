"""How kernels are compiled: kept on disk for the next process, never stale, once for all kinds of memory."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numba
import numba.core.caching
import numpy as np
import pytest
from numba import float64
from scipy.sparse import csr_array

import longterm
from linear_learners import rows_and_labels
from longterm.errors import CompileCacheWarning
from longterm.linear_model import BudgetLinearLearner, compile_all
from longterm.linear_model.kernels import aftrl, aogd, penalised_ftrl
from longterm.linear_model.kernels.compile import compiled
from longterm.linear_model.kernels.layout import AFTRL
from longterm.linear_model.kernels.play import block_kernel
from longterm.linear_model.kernels.round import shrink
from longterm.storage import compiled as keep

SCRIPT = """
import numpy as np
from longterm.linear_model import BudgetLinearLearner
from longterm.linear_model.kernels.layout import AFTRL
from longterm.linear_model.kernels.play import block_kernel
learner = BudgetLinearLearner(2, 1.0, loss="hinge", fit_intercept=False)
learner.learn(np.ones((3, 2)), np.ones(3))
stats = block_kernel(AFTRL, "float64").stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), learner.cumulative_loss)
"""


def in_another_process(package: Path, cache: Path) -> tuple[int, int, float]:
    """Hits and misses of the cache on disk, and the sum of losses of three rows."""
    environment = {**os.environ, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    hits, misses, loss = done.stdout.split()
    return int(hits), int(misses), float(loss)


BITS = """
import hashlib, warnings
import numpy as np
from scipy.sparse import csr_array
from longterm.linear_model import BudgetLinearLearner
rng = np.random.default_rng(0)
X, y = rng.standard_normal((40, 7)), np.sign(rng.standard_normal(40))
for options in ({}, {"sparse": True}, {"rule": "penalised-ftrl"}, {"rule": "a-ogd"}, {"scales": "priced"}):
    block, single = BudgetLinearLearner(7, 0.5, **options), BudgetLinearLearner(7, 0.5, **options)
    block.learn(csr_array(X) if options.get("sparse") else X, y)
    for u, label in zip(X, y):
        single.step_dense(u, label)
    for learner in (block, single):
        state = b"".join(array.tobytes() for array in learner.__getstate__()["arrays"].values())
        print(hashlib.sha256(state).hexdigest())
"""


@pytest.mark.cross
def test_kernels_compiled_anew_give_the_same_bits_whatever_the_order_of_sets(tmp_path):
    """Each process compiles for itself: the order of what it hashes must not decide the order of its additions."""
    said = []
    for seed in ("0", "1"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "NUMBA_CACHE_DIR": str(tmp_path / seed)}
        environment["PYTHONPATH"] = str(Path(longterm.__file__).parents[1])
        done = subprocess.run([sys.executable, "-c", BITS], env=environment, capture_output=True, text=True, check=True)
        assert len(list((tmp_path / seed).rglob("*.nbi"))) > 0  # compiled here, and not found
        said.append(done.stdout.split())
    assert said[0] == said[1]
    assert said[0][::2] == said[0][1::2]  # a row alone is a block


@pytest.mark.cross
def test_the_next_process_finds_its_kernels_and_an_edited_helper_makes_new_ones(tmp_path):
    shutil.copytree(Path(longterm.__file__).parent, tmp_path / "longterm", ignore=shutil.ignore_patterns("__pycache__"))
    first = in_another_process(tmp_path, tmp_path / "cache")
    assert first[:2] == (0, 1)
    assert in_another_process(tmp_path, tmp_path / "cache") == (1, 0, first[2])
    losses = tmp_path / "longterm" / "linear_model" / "kernels" / "losses.py"
    changed = losses.read_text().replace("return -y, gap", "return -y, 2.0 * gap")
    assert changed != losses.read_text()
    losses.write_text(changed)
    after = in_another_process(tmp_path, tmp_path / "cache")
    assert after[:2] == (0, 1)
    assert after[2] == pytest.approx(2 * first[2])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for kernels, and a process that has not warned yet."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(keep, "_warned", False)
    return tmp_path


def twice(x):
    return 2.0 * x


def hits_and_value():
    made = compiled(twice, (float64,))
    return sum(made.stats.cache_hits.values()), made(3.0)


def no_folder(locator):
    raise PermissionError(13, "Permission denied")


@pytest.mark.slow
def test_kernels_of_other_sources_are_made_anew(folder, monkeypatch):
    """What a process does by itself of the test above, which compiles whole kernels in three of them."""
    kernels = folder / "kernels"
    shutil.copytree(Path(aogd.__file__).parent, kernels, ignore=shutil.ignore_patterns("__pycache__"))
    digest = keep.sources.__wrapped__
    monkeypatch.setattr(keep, "sources", lambda folder: digest(kernels))
    assert hits_and_value() == (0, 6.0)
    assert hits_and_value() == (1, 6.0)
    helper = kernels / "losses.py"
    helper.write_text(helper.read_text() + "# edited")
    assert hits_and_value() == (0, 6.0)


def test_what_cannot_be_kept_on_disk_is_compiled_all_the_same_with_one_warning(monkeypatch):
    monkeypatch.setattr(keep, "_warned", False)
    made = {}
    exec("def twice(x):\n    return 2.0 * x", made)  # Numba has no file to keep it beside
    with pytest.warns(CompileCacheWarning, match="no folder to keep them in.*NUMBA_CACHE_DIR") as caught:
        assert compiled(made["twice"], (float64,))(3.0) == 6.0
    assert len(caught) == 1
    assert compiled(made["twice"], (float64,))(4.0) == 8.0  # and not another one


def test_no_folder_can_be_made(folder, monkeypatch):
    monkeypatch.setattr(numba.core.caching._CacheLocator, "ensure_cache_path", no_folder)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder / "none"))
    with pytest.warns(CompileCacheWarning) as caught:
        assert hits_and_value()[1] == 6.0
    assert len(caught) == 1


def test_kernels_of_a_folder_that_can_only_be_read_are_found(folder, monkeypatch):
    assert hits_and_value() == (0, 6.0)
    monkeypatch.setattr(numba.core.caching._CacheLocator, "ensure_cache_path", no_folder)
    assert hits_and_value() == (1, 6.0)
    for file in folder.rglob("*.nb?"):
        file.unlink()
    with pytest.warns(CompileCacheWarning, match="can only be read, and not every kernel is there"):
        assert hits_and_value() == (0, 6.0)


def test_a_full_disk(folder, monkeypatch):
    @contextmanager
    def full(self, path):
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr(keep.KernelFile, "_open_for_write", full)
    with pytest.warns(CompileCacheWarning, match="No space left on device"):
        assert hits_and_value() == (0, 6.0)
    assert hits_and_value() == (0, 6.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_file_is_made_anew(folder, kind):
    assert hits_and_value() == (0, 6.0)
    (file,) = folder.rglob(f"*.{kind}")
    whole = file.read_bytes()
    damages = [b"", b"\x80", whole[:-7], whole[:40], bytes(len(whole)), b"garbage"]
    damages += [
        whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :] for i in (0, 31, 40, len(whole) // 2, len(whole) - 1)
    ]
    for damage in damages:
        file.write_bytes(damage)
        assert hits_and_value() == (0, 6.0)
        assert hits_and_value() == (1, 6.0)


@pytest.mark.cross
def test_a_pacers_loop_is_kept_the_same_way(folder):
    from longterm.pacing import compiled as pacing

    for damage in (None, b"garbage", b""):
        for file in folder.rglob("*.nb[ic]") if damage is not None else ():
            file.write_bytes(damage)
        made = pacing._compiled.__wrapped__(twice)
        assert made(3.0) == 6.0
        assert sum(made.stats.cache_hits.values()) == 0
    made = pacing._compiled.__wrapped__(twice)
    assert made(3.0) == 6.0
    assert sum(made.stats.cache_hits.values()) == 1


def test_kernels_are_found_whatever_the_time_of_their_source(folder):
    """The making of an image changes times, not contents."""
    assert keep.kept(twice)._cache_file._source_stamp == keep.sources(Path(__file__).parent)


@pytest.mark.cross
def test_everything_ahead_of_the_first_request():
    assert compile_all("a-ogd") == 7
    before = dict(block_kernel.cache_info()._asdict())
    learner = BudgetLinearLearner(2, 1.0, rule="a-ogd")
    learner.learn(np.ones((3, 2), dtype=np.float32), np.ones(3))
    learner.learn(csr_array(np.ones((3, 2))), np.ones(3))
    learner.step_dense(np.ones(2), 1.0)
    assert block_kernel.cache_info().misses == before["misses"]


def test_read_only_and_memory_mapped_rows_use_the_same_kernel(tmp_path):
    rows, labels = rows_and_labels(n=50)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    frozen = rows.copy()
    frozen.flags.writeable = False
    results = []
    for given in (rows, frozen, mapped):
        learner = BudgetLinearLearner(7, 1.0)
        learner.learn(given, labels)
        results.append(learner.weights.tobytes())
    assert results == results[:1] * 3
    assert len(block_kernel(AFTRL, "float64").signatures) == 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 16, 54])
def test_passes_over_the_coordinates_compute_what_numpy_does(length, dtype):
    rng = np.random.default_rng(length)
    # What lies behind the last number must be neither read nor written.
    v, point, u = (np.full(length + 8, np.nan, dtype=kind) for kind in (np.float64, np.float64, dtype))
    given, wide = np.round(rng.standard_normal(length), 1), np.round(rng.standard_normal(length))
    v, point, u = v[:length], point[:length], u[:length]

    def check(sums, new, wanted, wanted_sums):
        np.testing.assert_allclose(new, wanted, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(sums, wanted_sums, rtol=1e-13, atol=1e-14)
        assert all(np.all(np.isnan(array.base[length:])) for array in (v, point, u))

    def soft(z):
        return np.clip(z, -0.5, 0.5) - z

    def norms(x):
        return [np.abs(x).sum(), x @ x]

    def above(z):
        kept = np.abs(z[np.abs(z) > 0.5])
        return [len(kept), kept.sum(), kept @ kept]

    v[:], u[:] = given, wide
    check(shrink(v, 0.5, point), point, soft(given), norms(soft(given)))
    check(penalised_ftrl.count_above(v, 0.5), v, given, above(given))
    direction = 1.5 * wide + 0.3 * np.sign(given) + 0.7 * given
    check(aogd.squared_direction(v, u, 1.5, 0.3, 0.7), v, given, direction @ direction)
    added = given + 1.5 * wide
    check(aftrl.add_and_shrink(v, u, 1.5, 0.5, point), v, added, norms(soft(added)))
    np.testing.assert_allclose(point, soft(added), atol=1e-14)
    v[:] = given
    check(penalised_ftrl.add_and_count(v, u, 1.5, 0.5), v, added, above(added))
    v[:] = given
    stepped = 0.9 * given - 0.3 * np.sign(given) - 1.5 * wide
    check(aogd.descend(v, u, 0.9, 0.3, 1.5), v, stepped, norms(stepped))
