"""Shared by the tests of A-FTRL on sparse rows."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from longterm.linear_model import _dying
from longterm.linear_model import _layout as at


def require_sound(parameters, state, drift=1e-300):
    """Every promise of the heap, checked from outside. `drift` is what larger sums may have left behind."""
    d = len(state.memory) // 2
    places = d.bit_length()
    words, (_, active, live, size) = state.memory.view(np.uint64)[1::2], state.round
    entries = state.heap[:size]
    lengths = np.abs(state.vector)
    threshold = state.numbers[at.MULTIPLIER_SUM] * parameters[at.L1]
    assert active == np.count_nonzero(lengths > threshold)
    assert live == np.count_nonzero(words)
    assert size <= len(state.heap) == 2 * d + _dying.SLACK
    assert np.isin(words[words > 0], entries).all()
    assert (words[lengths > threshold] > 0).all()
    assert np.array_equal(words[words > 0] & np.uint64(2**places - 1), np.flatnonzero(words) + 1)
    keys = (words >> np.uint64(places) << np.uint64(places) >> np.uint64(1)).view(np.float64)
    assert (keys[lengths > threshold] <= lengths[lengths > threshold]).all()
    parents = (np.arange(1, size) - 1) // _dying.ARITY
    assert (entries[parents] <= entries[1:]).all()
    w = lengths[lengths > threshold] - threshold
    numbers = state.numbers
    assert numbers[at.NORM_1] + numbers[_dying.LOW_1] == pytest.approx(math.fsum(w), rel=1e-11, abs=drift)
    assert numbers[at.NORM_2] + numbers[_dying.LOW_2] == pytest.approx(math.fsum(w * w), rel=1e-11, abs=drift)


def same_bits(a, b):
    size = a.round[_dying.SIZE]
    return (
        a.round.tobytes() == b.round.tobytes()
        and a.memory.tobytes() == b.memory.tobytes()
        and a.heap[:size].tobytes() == b.heap[:size].tobytes()
        and a.numbers.tobytes() == b.numbers.tobytes()
    )


def matrix(rng, n, d, density=0.05, dtype=np.float64):
    X = csr_array(random_array((n, d), density=density, rng=rng, dtype=dtype, data_sampler=rng.standard_normal))
    X.sort_indices()
    return X.data.astype(dtype), X.indices.astype(np.int32), X.indptr.astype(np.int32)
