"""Compilation of kernels: cached on disk for the next process, never stale, once for all kinds of memory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import float64
from scipy.sparse import csr_array

import longterm
from linear_learners import rows_and_labels
from longterm._base import compiling as _numba
from longterm.errors import CompileCacheWarning
from longterm.linear_model import BudgetLinearLearner, compile_all
from longterm.linear_model.kernels.kernel_state import dense_kernel
from longterm.linear_model.kernels.layout import AFTRL

SCRIPT = """
import numpy as np
from longterm.linear_model import BudgetLinearLearner
from longterm.linear_model.kernels.layout import AFTRL
from longterm.linear_model.kernels.kernel_state import dense_kernel
learner = BudgetLinearLearner(2, 1.0, loss="hinge", fit_intercept=False)
learner.learn(np.ones((3, 2)), np.ones(3))
stats = dense_kernel(AFTRL, "float64").stats
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
for options in ({}, {"sparse": True}, {"rule": "penalised-ftrl"}):
    block, single = BudgetLinearLearner(7, 0.5, **options), BudgetLinearLearner(7, 0.5, **options)
    block.learn(csr_array(X) if options.get("sparse") else X, y)
    for u, label in zip(X, y):
        single.step_dense(u, label)
    for learner in (block, single):
        state = b"".join(array.tobytes() for array in learner.__getstate__()["arrays"].values())
        print(hashlib.sha256(state).hexdigest())
"""


@pytest.mark.cross
def test_kernels_compiled_again_give_the_same_bits_for_every_hash_seed(tmp_path):
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
def test_the_next_process_loads_kernels_and_an_edited_helper_recompiles_them(tmp_path):
    shutil.copytree(Path(longterm.__file__).parent, tmp_path / "longterm", ignore=shutil.ignore_patterns("__pycache__"))
    first = in_another_process(tmp_path, tmp_path / "cache")
    assert first[:2] == (0, 1)
    assert in_another_process(tmp_path, tmp_path / "cache") == (1, 0, first[2])
    losses = tmp_path / "longterm" / "linear_model" / "kernels" / "losses.py"
    changed = losses.read_text().replace("return gap, -y", "return 2.0 * gap, -y")
    assert changed != losses.read_text()
    losses.write_text(changed)
    after = in_another_process(tmp_path, tmp_path / "cache")
    assert after[:2] == (0, 1)
    assert after[2] == pytest.approx(2 * first[2])


def twice(x):
    return 2.0 * x


def test_a_compiled_function_is_found_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    for hits in (0, 1):
        made = _numba.compiled(twice, (float64,))
        assert made(3.0) == 6.0
        assert sum(made.stats.cache_hits.values()) == hits


def test_without_a_folder_functions_are_compiled_with_one_warning(monkeypatch):
    monkeypatch.setattr(_numba, "_warned", False)
    made = {}
    exec("def twice(x):\n    return 2.0 * x", made)  # Numba finds no folder for a function without a file
    with pytest.warns(CompileCacheWarning, match="NUMBA_CACHE_DIR") as caught:
        assert _numba.compiled(made["twice"], (float64,))(3.0) == 6.0
    assert len(caught) == 1
    assert _numba.compiled(made["twice"])(4.0) == 8.0  # without a second warning


def test_an_edited_file_changes_the_digest(tmp_path):
    helper = tmp_path / "helper.py"
    helper.write_text("a = 1")
    before = _numba.source_digest.__wrapped__(tmp_path)
    helper.write_text("a = 2")
    assert _numba.source_digest.__wrapped__(tmp_path) != before


@pytest.mark.cross
def test_compile_all_leaves_nothing_to_compile():
    assert compile_all("penalised-ftrl") == 5
    before = dense_kernel.cache_info().misses
    learner = BudgetLinearLearner(2, 1.0, rule="penalised-ftrl")
    learner.learn(np.ones((3, 2), dtype=np.float32), np.ones(3))
    learner.learn(csr_array(np.ones((3, 2))), np.ones(3))
    learner.step_dense(np.ones(2), 1.0)
    assert dense_kernel.cache_info().misses == before


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
    assert len(dense_kernel(AFTRL, "float64").signatures) == 1
