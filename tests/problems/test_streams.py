import numpy as np
import pytest

from longterm import InputError
from longterm.problems.streams import FromIterable, RandomCosts, RandomPermutations, Replay, ResampledRows
from longterm.problems.streams.costs import LateReversal, SwitchingCosts

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
    np.testing.assert_array_equal(features, ROWS.arrays[0][index])
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


def test_an_iterable_cannot_start_at_an_arbitrary_round():
    with pytest.raises(InputError, match="Replay"):
        FromIterable([(1.0,)]).draw(0, 0, 1)


def test_blocks_are_bounded_in_memory():
    big = Replay([np.broadcast_to(0.0, (5000, 10_000))])
    assert max(block.loss[0].nbytes for block in big.blocks(0, 0, 5000)) <= 16 * 2**20


def test_rows_may_be_targets_alone():
    (targets,) = ResampledRows([[1.0, 0.0], [0.0, 1.0]]).draw(0, 0, 5).loss
    assert targets.shape == (5, 2)


def test_an_exception_of_an_iterable_comes_after_its_items():
    def rounds():
        yield from (([1.0, 2.0],) for _ in range(20))
        raise ConnectionError("gone")

    blocks = FromIterable(rounds()).blocks(0, 0, 100)
    assert next(blocks).rounds == 20
    with pytest.raises(ConnectionError):
        next(blocks)


def test_an_item_that_does_not_fit_is_left_out():
    items = [(np.full(2, float(t)),) for t in range(10)]
    items[4] = (np.zeros(3),)
    stream = FromIterable(items)
    blocks = stream.blocks(0, 0, 9)
    assert next(blocks).rounds == 4
    with pytest.raises(InputError) as refused:
        next(blocks)
    assert refused.value.round == 5
    (rest,) = stream.blocks(0, 4, 9)
    assert rest.loss[0][:, 0].tolist() == [5, 6, 7, 8, 9]


def test_a_resumed_run_uses_the_rest_of_the_block():
    stream = FromIterable((float(t),) for t in range(100))
    (block,) = stream.blocks(0, 0, 50)
    assert block.rounds == 50
    parts = [b.loss[0].tolist() for b in stream.blocks(0, 30, 45)]
    assert parts == [[float(t) for t in range(30, 45)]]
    parts = [b.loss[0].tolist() for b in stream.blocks(0, 30, 60)]
    assert parts == [[float(t) for t in range(30, 50)], [float(t) for t in range(50, 60)]]


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: RandomCosts(0), "dimension"),
        (lambda: RandomCosts(2, norm=-1.0), "norm"),
        (lambda: SwitchingCosts(2.5), "dimension"),
        (lambda: LateReversal(10, 0.5, norm=float("nan")), "norm"),
        (lambda: LateReversal(0, 0.5), "rounds"),
        (lambda: LateReversal(10, 1.5), "beta"),
        (lambda: ResampledRows(np.zeros((3, 2)), np.zeros(2)), "arrays"),
        (lambda: ResampledRows(), "arrays"),
        (lambda: FromIterable([], constraint_parameters=-1), "constraint_parameters"),
        (lambda: list(RandomCosts(2).blocks(-1, 0, 5)), "seeds"),
        (lambda: list(RandomCosts(2).blocks([1.5], 0, 5)), "seeds"),
    ],
)
def test_impossible_streams_are_refused(make, argument):
    with pytest.raises(InputError) as refused:
        make()
    assert refused.value.argument == argument
