import numpy as np
import pytest

from longterm import InputError
from longterm.streams import (
    FromIterable,
    LateReversal,
    RandomCosts,
    RandomPermutations,
    Replay,
    ResampledRows,
    SwitchingCosts,
)

ROWS = ResampledRows(np.arange(20.0).reshape(10, 2), np.arange(10.0))
ENTERED_ANYWHERE = {
    "permutations": RandomPermutations(4),
    "rows": ROWS,
    "random costs": RandomCosts(3, norm=2.0),
    "switching costs": SwitchingCosts(3, norm=2.0),
    "late reversal": LateReversal(400, 0.7),
    "replay": Replay([np.arange(400.0)]),
}


@pytest.mark.parametrize("name", ENTERED_ANYWHERE)
def test_rounds_are_the_same_however_they_are_reached(name):
    stream = ENTERED_ANYWHERE[name]
    whole = stream.draw(3, 0, 300)
    for start, stop in ((0, 1), (5, 70), (63, 65), (64, 128), (127, 300)):
        for one, other in zip(stream.draw(3, start, stop).loss, whole.loss, strict=True):
            np.testing.assert_array_equal(one, other[start:stop])
    joined = [np.concatenate(parts) for parts in zip(*(b.loss for b in stream.blocks(3, 10, 300)), strict=True)]
    for one, other in zip(joined, whole.loss, strict=True):
        np.testing.assert_array_equal(one, other[10:])


@pytest.mark.parametrize("name", ENTERED_ANYWHERE)
def test_seeds_in_a_batch_are_the_single_seeds(name):
    stream = ENTERED_ANYWHERE[name]
    (block,) = stream.blocks([4, 9], 0, 50)
    for k, seed in enumerate((4, 9)):
        for batched, single in zip(block.loss, stream.draw(seed, 0, 50).loss, strict=True):
            np.testing.assert_array_equal(batched[:, k], single)


def test_permutations_are_permutations_and_uniform():
    matrices = RandomPermutations(3).draw(0, 0, 6000).loss[0].reshape(-1, 3, 3)
    np.testing.assert_array_equal(matrices.sum(axis=1), 1)
    np.testing.assert_array_equal(matrices.sum(axis=2), 1)
    _, counts = np.unique(matrices.reshape(-1, 9), axis=0, return_counts=True)
    assert len(counts) == 6
    assert counts.min() > 1000 - 5 * np.sqrt(1000)
    assert counts.max() < 1000 + 5 * np.sqrt(1000)


def test_rows_are_drawn_with_replacement_and_uniformly():
    index = ROWS.drawn(1, 0, 10_000)
    features, labels = ROWS.draw(1, 0, 10_000).loss
    np.testing.assert_array_equal(labels, index)
    np.testing.assert_array_equal(features, ROWS.features[index])
    assert np.bincount(index, minlength=10).min() > 1000 - 5 * np.sqrt(1000)


def test_adversaries_charge_their_full_norm():
    for stream in (RandomCosts(5, 3.0), SwitchingCosts(5, 3.0)):
        np.testing.assert_allclose(np.linalg.norm(stream.draw(0, 0, 100).loss[0], axis=1), 3.0)


def test_switching_costs_flip_at_powers_of_two():
    costs = SwitchingCosts(1).draw(0, 0, 16).loss[0][:, 0] * np.sign(SwitchingCosts(1).draw(0, 0, 1).loss[0][0, 0])
    np.testing.assert_array_equal(costs, [1, -1, -1, 1, 1, 1, 1, *[-1] * 8, 1])


def test_late_reversal_by_hand():
    costs = LateReversal(100, 0.5, norm=2.0).draw(0, 0, 100).loss[0][:, 0]
    assert costs[0] == -2
    assert np.count_nonzero(costs) == 1 + 22  # ⌈2 · 10⌉ + 2 rounds at the end
    np.testing.assert_array_equal(costs[-22:], 2)


def test_an_iterable_may_bring_constraint_parameters():
    stream = FromIterable(((np.zeros(2), 1.0, np.ones(3)) for _ in range(5)), constraint_parameters=2)
    (block,) = stream.blocks(0, 0, None)
    assert [a.shape for a in block.loss] == [(5, 2)]
    assert [a.shape for a in block.constraint] == [(5,), (5, 3)]


def test_an_iterable_cannot_be_entered_anywhere():
    with pytest.raises(InputError, match="Replay"):
        FromIterable([(1.0,)]).draw(0, 0, 1)


def test_blocks_are_bounded_in_memory():
    big = Replay([np.broadcast_to(0.0, (5000, 10_000))])
    assert max(block.loss[0].nbytes for block in big.blocks(0, 0, 5000)) <= 16 * 2**20
