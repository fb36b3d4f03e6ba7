"""A compiled engine draws random streams itself: the same numbers, whatever the seed and wherever a run is split."""

import numpy as np
import pytest

from longterm import AOGD, run
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations
from longterm.problems.streams.generator import LARGEST_SEED, seed_words, uniforms

jax = pytest.importorskip("jax")
from longterm.play.engines import device_streams  # noqa: E402

SIZE = 4
PROBLEM, STREAM = doubly_stochastic(SIZE), RandomPermutations(SIZE)


def numpys(seed, chunk, count):
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(chunk,))).random(count)


@pytest.mark.parametrize("seeds", [[0], [1, 2**32 - 1, 2**32], [2**100 + 9, LARGEST_SEED]])
def test_the_generator_is_numpys_to_the_bit(seeds):
    chunks = np.array([0, 1, 77, 2**32 - 1], dtype=np.uint32)
    here = uniforms(seed_words(seeds), chunks, 130, np)
    there = [[numpys(seed, int(chunk), 130) for seed in seeds] for chunk in chunks]
    np.testing.assert_array_equal(here, there)


def test_the_generator_is_the_same_when_compiled():
    chunks = np.arange(3, dtype=np.uint32)
    with jax.enable_x64(True):
        here = jax.jit(lambda w, c: uniforms(w, c, 65, jax.numpy))(seed_words([5, 6]), chunks)
    np.testing.assert_array_equal(np.asarray(here), uniforms(seed_words([5, 6]), chunks, 65, np))


@pytest.mark.parametrize(("seeds", "start", "stop"), [(3, 0, 200), ([3, 4, 2**40], 70, 190)])
def test_blocks_drawn_on_the_device_are_those_of_the_stream(monkeypatch, seeds, start, stop):
    monkeypatch.setattr(device_streams, "BLOCK_BYTES", 1)  # a chunk in each block
    wanted = np.concatenate([block.loss[0] for block in STREAM.blocks(seeds, start, stop)])
    rounds = {}
    for first, block in device_streams.drawn_blocks(STREAM, seeds, start, stop):
        expanded = STREAM.expand(np.asarray(block.drawn)).loss[0]
        rounds |= {first + i: expanded[i] for i in range(block.rounds)}
    np.testing.assert_array_equal([rounds[t] for t in range(start + 1, stop + 1)], wanted)
    assert max(rounds) == stop


@pytest.mark.slow
def test_a_run_with_device_streams_equals_the_reference_run_even_when_resumed(monkeypatch):
    monkeypatch.setattr(device_streams, "can_draw", lambda stream, seeds: True)
    learner = AOGD.for_problem(PROBLEM)
    options = {"seeds": range(3), "record": [5, 100, 150], "progress": None}
    reference = run(PROBLEM, learner, STREAM, 150, **options)
    half = run(PROBLEM, learner, STREAM, 100, engine="jax", **options)
    whole = run(PROBLEM, learner, STREAM, 150, engine="jax", resume=half, **options)
    for name in ("cumulative_loss", "signed_violation", "hard_violation"):
        np.testing.assert_allclose(getattr(whole, name), getattr(reference, name), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(whole.multiplier, reference.multiplier, rtol=1e-9)


def test_on_the_host_nothing_changes():
    assert jax.default_backend() != "cpu" or not device_streams.can_draw(STREAM, 0)
