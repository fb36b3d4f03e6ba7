"""How kernels are compiled: kept on disk for the next process, never stale, once for all kinds of memory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import longterm
from longterm.linear_model._lanes import lanes
from longterm.linear_model._layout import Parameters, State
from longterm.linear_model.play import kernel, play

GAME = """
import numpy as np
from longterm.linear_model._layout import Parameters, State
from longterm.linear_model.play import kernel, play
state = State.start(2)
parameters = Parameters(1.0, 1.0, 1.0, 0.7, step=1.0, theta_0=1.0, loss=1)
play("aftrl", parameters.as_array(), state, np.ones((3, 2)), np.ones(3))
stats = kernel("aftrl", "float64").stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), state.numbers[0])
"""


def in_another_process(package: Path, cache: Path) -> tuple[int, int, float]:
    """Hits and misses of the cache on disk, and the sum of losses of a short game."""
    environment = {**os.environ, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", GAME], env=environment, capture_output=True, text=True, check=True)
    hits, misses, loss = done.stdout.split()
    return int(hits), int(misses), float(loss)


@pytest.mark.slow
def test_the_next_process_finds_its_kernels_and_an_edited_helper_makes_new_ones(tmp_path):
    shutil.copytree(Path(longterm.__file__).parent, tmp_path / "longterm", ignore=shutil.ignore_patterns("__pycache__"))
    first = in_another_process(tmp_path, tmp_path / "cache")
    assert first[:2] == (0, 1)
    assert in_another_process(tmp_path, tmp_path / "cache") == (1, 0, first[2])
    losses = tmp_path / "longterm" / "linear_model" / "_losses.py"
    changed = losses.read_text().replace("return gap, -y", "return 2.0 * gap, -y")
    assert changed != losses.read_text()
    losses.write_text(changed)
    after = in_another_process(tmp_path, tmp_path / "cache")
    assert after[:2] == (0, 1)
    assert after[2] == pytest.approx(2 * first[2])


def test_read_only_and_memory_mapped_rows_use_the_same_kernel(tmp_path):
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((50, 7)), np.sign(rng.standard_normal(50))
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    frozen = rows.copy()
    frozen.flags.writeable = False
    p = Parameters(1.0, 1.0, 1.0, 0.7, step=1.0, theta_0=1.0).as_array()
    results = []
    for given in (rows, frozen, mapped):
        state = State.start(7)
        play("aftrl", p, state, given, labels)
        results.append(state.vector.tobytes())
    assert results == results[:1] * 3
    assert len(kernel("aftrl", "float64").signatures) == 1


@lanes(writes=1, sums=3)
def every_operation(v, u, factor, bound):
    new = factor * u - v.clipped(bound) + u.signed(bound)
    return new, abs(-new), u.beyond(bound), u * u


@numba.njit
def call(v, u, factor, bound):
    return every_operation(v, u, factor, bound)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 16, 54])
def test_lanes_compute_what_numpy_does(length, dtype):
    rng = np.random.default_rng(length)
    # What lies behind the last number must be neither read nor written.
    v, u = np.full(length + 8, np.nan), np.full(length + 8, np.nan, dtype=dtype)
    v[:length], u[:length] = rng.standard_normal(length), np.round(rng.standard_normal(length))
    before, wide = v[:length].copy(), u[:length].astype(np.float64)
    sums = call(v[:length], u[:length], 1.5, 0.5)
    new = 1.5 * wide - np.clip(before, -0.5, 0.5) + 0.5 * np.sign(wide)
    np.testing.assert_allclose(v[:length], new, rtol=1e-14)
    np.testing.assert_allclose(sums, [np.abs(new).sum(), np.sum(wide > 0.5), wide @ wide], rtol=1e-13)
    assert np.all(np.isnan(v[length:]))
