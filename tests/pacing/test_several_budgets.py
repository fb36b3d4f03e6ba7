"""Several budgets: by hand, never exceeded, regret below the theorem."""

import numpy as np
import pytest

from longterm import InputError
from longterm.decisions import Budget, best_choices
from longterm.pacing import SeveralBudgets


def several(T=2000, **options):
    return SeveralBudgets([0.3 * T, 1.0 * T], T, largest_reward=1.0, largest_use=[1.0, 2.0], **options)


def offers(seed, T=2000):
    rng = np.random.default_rng(seed)
    return rng.random((T, 2)), np.stack([rng.random((T, 2)), 2 * rng.random((T, 2))], axis=2)


def spend(made, rewards, uses):
    state, earned, used = made.init(), 0.0, np.zeros(2)
    for f, b in zip(rewards, uses, strict=True):
        choice = made.act(state, f, b)
        state = made.settle(state, choice)
        if choice.action is not None:
            earned += f[choice.action]
            used += b[choice.action]
    return earned, used, state


def test_several_budgets_by_hand():
    made = SeveralBudgets([2.0, 8.0], 4, largest_reward=1.0, largest_use=[1.0, 4.0], step=0.1)
    state = made.init()
    choice = made.act(state, [0.9, 0.5], [[1.0, 4.0], [0.0, 2.0]])
    state = made.settle(state, choice)
    assert choice.action == 0  # prices are 0; it uses twice the even rate of each
    np.testing.assert_allclose(state.prices, [0.1, 0.1])
    choice = made.act(state, [0.3, 0.2], [[1.0, 4.0], [0.0, 2.0]])  # 0.3 − 0.4 against 0.2 − 0.1
    state = made.settle(state, choice)
    assert choice.action == 1
    np.testing.assert_allclose(state.prices, [0.0, 0.1])
    np.testing.assert_allclose(state.spent.value, [1.0, 6.0])
    choice = made.act(state, [1.0], [[0.5, 2.1]])  # the best, but the second budget has 2 left
    assert choice.action is None
    np.testing.assert_allclose(made.settle(state, choice).spent.value, [1.0, 6.0])


@pytest.mark.slow
def test_several_budgets_are_kept_and_regret_is_below_the_theorem():
    regrets = []
    for seed in range(3):
        rewards, uses = offers(seed)
        made = several()
        earned, used, _ = spend(made, rewards, uses)
        assert np.all(used <= made.budgets * (1 + 1e-12))
        null = np.zeros((len(rewards), 1))
        table = np.concatenate([null, rewards], axis=1), np.concatenate([np.zeros((len(rewards), 1, 2)), uses], axis=1)
        best = best_choices(*table, [Budget(limit, 2.0) for limit in made.budgets.tolist()])
        regrets.append(best.value - earned)
    assert np.mean(regrets) <= made.bound()
    assert np.mean(regrets) < 0.05 * best.value


@pytest.mark.slow
def test_a_regulariser_moves_the_spend_to_where_it_aims():
    rewards, uses = offers(1)
    _, plain, _ = spend(several(), rewards, uses)
    even = several(regulariser="even", weight=5.0, aim=0.5)
    _, near, _ = spend(even, rewards, uses)
    assert abs(near[0] / even.budgets[0] - 0.5) < abs(plain[0] / even.budgets[0] - 0.5)
    scarce = uses * np.array([1.0, 0.2])  # the second budget would be left alone
    _, alone, _ = spend(several(), rewards, scarce)
    fair = several(regulariser="fair", weight=3.0)
    _, shared, _ = spend(fair, rewards, scarce)
    assert (shared / fair.budgets).min() > (alone / fair.budgets).min()
    assert np.all(shared <= fair.budgets * (1 + 1e-12))
    with pytest.raises(InputError, match="no bound"):
        fair.bound()
    with pytest.raises(InputError, match="regulariser"):
        several(regulariser="sweet")
