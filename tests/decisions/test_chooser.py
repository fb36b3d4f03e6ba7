"""The chooser: never over budget on any sequence, late and lost outcomes, every call all or nothing."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import InputError
from longterm.decisions import (
    EXP3IX,
    Budget,
    Chooser,
    EntropicDual,
    EuclideanDual,
    FixedMixture,
    HedgeDual,
    InverseGapWeighting,
    LinearUCB,
    PrimalDual,
    RidgeRegressor,
    ThompsonSampling,
)
from longterm.errors import AlreadyToldError, BrokenBoundWarning, NonFiniteError, UnknownTokenError


def primals():
    return {
        "mixture": FixedMixture((0.2, 0.3, 0.5)),
        "exp3": EXP3IX(3),
        "thompson": ThompsonSampling(3, 1, exploration=1.0),
        "ucb": LinearUCB(3, 1),
        "igw": InverseGapWeighting(3, RidgeRegressor(1), sharpness=5.0),
    }


def chooser(name="thompson", limit=5.0, horizon=20, *, seed=0, budget=None, dual=None, **options):
    budget = budget or Budget(limit, largest=1.0)
    return Chooser(
        PrimalDual(primals()[name], dual or EntropicDual(start=0.1, step=0.05), budget, horizon, **options), seed=seed
    )


# --- money ----------------------------------------------------------------------------------------------------

sequences = st.lists(
    st.tuples(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.floats(0, 1), st.integers(0, 4)),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize("name", list(primals()))
@pytest.mark.parametrize("replan", [False, True])
@examples(40)
@given(rounds=sequences, limit=st.floats(0.1, 20), above=st.booleans())
def test_no_sequence_overspends_with_outcomes_late_or_lost(name, replan, rounds, limit, above):
    """Costs in (0, bound], settled up to four requests later or forgotten: the exact sum stays within the cap."""
    horizon = max(len(rounds), math.ceil(limit))
    made = chooser(name, budget=Budget(limit, 1.0, above_cheapest=above), horizon=horizon, replan=replan)
    due, spent = [], []
    for t, (costs, reward, late) in enumerate(rounds):
        for when, choice, counted, full, gain in list(due):
            if when <= t:
                due.remove((when, choice, counted, full, gain))
                made.settle(choice, gain, full)
                spent.append(counted)
        choice = made.act([1.0], costs=costs)
        if choice.action is None:
            assert not above  # the cheapest is always affordable
            continue
        base = min(costs) if above else 0.0
        full = costs[choice.action]
        if late == 4:
            made.skip(choice)
            spent.append(full - base)
        else:
            due.append((t + late, choice, full - base, full, reward))
        assert math.fsum([*spent, *(d[2] for d in due)]) <= limit
        assert np.all(made.committed <= limit)


def test_bounds_are_held_back_until_the_cost_is_known():
    made = chooser("mixture", limit=2.0, horizon=10)
    first = made.act([1.0], costs=[0.5, 0.5, 0.5], bounds=[1.0, 1.0, 1.0])
    second = made.act([1.0], costs=[0.5, 0.5, 0.5], bounds=[0.9, 0.9, 0.9])
    assert made.committed == pytest.approx([1.9])
    assert made.act([1.0], costs=[0.5, 0.5, 0.5]).action is None  # 1.9 + 0.5 > 2, though only 1 will be spent
    made.settle(first, reward=0.0, cost=0.5)
    assert made.act([1.0], costs=[0.5, 0.5, 0.5]).action is not None
    made.settle(second, cost=0.9)
    assert made.spent == pytest.approx([1.4])


def test_without_announced_costs_the_largest_is_held_back():
    made = chooser("exp3", limit=2.5, horizon=10)
    assert [made.act().action is None for _ in range(4)] == [False, False, True, True]
    made.settle(made.pending[1], 0.0, 0.2)
    assert made.act().action is not None


@pytest.mark.parametrize(("limit", "cost", "calls"), [(10.0, 1.0, 10), (100.0, 25.0, 4), (1.0, 0.1, 9)])
def test_whole_units_are_spent_to_the_last(limit, cost, calls):
    """Ten times the number 0.1 is more than 1."""
    made = chooser("mixture", budget=Budget(limit, cost), horizon=12)
    for _ in range(12):
        choice = made.act([1.0], costs=[cost] * 3)
        if choice.action is not None:
            made.settle(choice, reward=1.0)
    assert made.spent == pytest.approx([calls * cost])


def test_without_stopping_nothing_is_refused():
    made = chooser("mixture", limit=2.0, horizon=10, stop=False)
    for _ in range(10):
        made.settle(made.act([1.0], costs=[1.0, 1.0, 1.0]), reward=1.0)
    assert made.spent == pytest.approx([10.0])


def test_a_cost_above_its_bound_is_taken_and_warned_of():
    made = chooser("mixture")
    choice = made.act([1.0], costs=[0.5, 0.5, 0.5])
    with pytest.warns(BrokenBoundWarning, match=r"choice 1 cost 0.2 more than its bound"):
        made.settle(choice, reward=1.0, cost=0.7)
    assert made.spent == pytest.approx([0.7])


def test_a_free_action_that_costs_something_is_warned_of():
    made = chooser("mixture")
    choice = made.act([1.0], costs=[0.0, 0.0, 0.0])
    with pytest.warns(BrokenBoundWarning, match=r"choice 1 cost 0.7 more than its bound"):
        made.settle(choice, reward=1.0, cost=0.7)


@pytest.mark.parametrize("outcome", [{"reward": 1.0, "cost": 0.9}, {"rewards": [1.0] * 3, "costs": [0.9] * 3}])
def test_dear_answers_of_the_cheapest_break_no_cap(outcome):
    """Within its announced bound, but above what it was expected to cost."""
    made = chooser("mixture", budget=Budget(2.0, 1.0, above_cheapest=True), horizon=40)
    played = set()
    for _ in range(40):
        choice = made.act([1.0], costs=[0.1, 0.1, 0.5], bounds=[0.9, 0.9, 0.9])
        made.settle(choice, **outcome)
        played.add(choice.action)
        assert made.committed[0] <= 2.0
    assert played == {0, 1, 2}
    assert made.spent == pytest.approx([1.6])  # two answers of the dear one, 0.8 above the cheapest


def test_the_price_follows_the_spend():
    made = chooser("mixture", limit=4.0, horizon=20, dual=EuclideanDual(step=0.5))
    first = made.prices
    made.settle(made.act([1.0], costs=[0.8, 0.8, 0.8]), reward=0.0)
    np.testing.assert_allclose(made.prices - first, 0.5 * (0.8 - 0.2))


def test_replanning_spends_what_is_left_over_what_is_to_come():
    made = chooser("mixture", limit=4.0, horizon=20, dual=EuclideanDual(step=0.5), replan=True)
    for _ in range(3):
        made.settle(made.act([1.0], costs=[0.6, 0.6, 0.6]), reward=0.0)
    before = made.prices
    made.settle(made.act([1.0], costs=[0.6, 0.6, 0.6]), reward=0.0)
    np.testing.assert_allclose(made.prices - before, 0.5 * (0.6 - (4.0 - 1.8) / 17))


# --- outcomes -------------------------------------------------------------------------------------------------


def end(made):
    return made.state.primal, made.state.dual


def same(one, other):
    (a, p), (b, q) = end(one), end(other)
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-9)
    np.testing.assert_allclose(p, q, atol=1e-12)


def test_cost_and_reward_may_come_apart_in_either_order():
    whole, costs_first, rewards_first = (chooser("igw", seed=4) for _ in range(3))
    for made, order in ((whole, "both"), (costs_first, "cost"), (rewards_first, "reward")):
        choice = made.act([1.0])
        if order == "both":
            made.settle(choice, reward=0.7, cost=0.3)
        elif order == "cost":
            made.settle(choice, cost=0.3)
            assert list(made.pending) == [1]
            made.settle(choice, reward=0.7)
        else:
            made.settle(choice, reward=0.7)
            assert made.spent == pytest.approx([0.0])
            made.settle(choice, cost=0.3)
        assert not made.pending
    same(whole, costs_first)
    same(whole, rewards_first)


def test_the_lesson_of_a_late_reward_uses_the_prices_of_its_own_round():
    made = chooser("exp3", limit=10.0, dual=EuclideanDual(step=1.0))
    first = made.act(costs=[0.0, 0.5, 1.0])
    for _ in range(5):  # the price moves meanwhile
        made.settle(made.act(costs=[0.0, 0.5, 1.0], bounds=[1.0, 1.0, 1.0]), cost=1.0)
    losses = made.state.primal.losses
    made.settle(first, reward=1.0)
    gained = made.state.primal.losses - losses
    setting = made.rule.setting
    loss = (
        setting.lowest_payoff + setting.payoff_range - 1.0
    ) / setting.payoff_range  # λ_1 = 0: the payoff is the reward
    assert gained[first.action] == pytest.approx(loss / (first.probability + made.rule.primal.step / 2))


def test_settling_in_another_order_ends_in_the_same_belief():
    forward, backward = (chooser("thompson", limit=10.0, seed=2) for _ in range(2))
    for made, turn in ((forward, 1), (backward, -1)):
        choices = [made.act([1.0 + t / 10], costs=[0.0, 0.1, 0.2]) for t in range(10)]
        for choice in choices[::turn]:
            made.settle(choice, reward=choice.number / 10)
    same(forward, backward)


def test_each_part_counts_once():
    made = chooser("thompson")
    choice = made.act([1.0], costs=[0.0, 0.1, 0.2])
    made.settle(choice, cost=0.1)
    with pytest.raises(AlreadyToldError, match="cost was settled"):
        made.settle(choice, cost=0.1)
    made.settle(choice, reward=0.5)
    with pytest.raises(AlreadyToldError):
        made.settle(choice, reward=0.5)
    for bare in (1, 2):  # it does not name an epoch
        with pytest.raises(UnknownTokenError, match="is not a choice"):
            made.settle(bare, reward=0.5)
    with pytest.raises(UnknownTokenError):
        made.settle("first", reward=0.5)
    lost = made.act([1.0], costs=[0.0, 0.1, 0.2], bounds=[0.3, 0.3, 0.3])
    made.skip(lost)
    assert made.spent == pytest.approx([0.1 + 0.3])
    with pytest.raises(AlreadyToldError):
        made.skip(lost)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda c, k: c.act([1.0, 2.0], costs=[0, 0, 0]), InputError, "context in round 2: has shape"),
        (lambda c, k: c.act([np.nan], costs=[0, 0, 0]), NonFiniteError, "context in round 2"),
        (lambda c, k: c.act([1.0], costs=[0, 0]), InputError, "costs in round 2: have shape"),
        (lambda c, k: c.act([1.0], costs=[0, 0, -1]), InputError, "costs in round 2: are negative"),
        (lambda c, k: c.act([1.0], costs=[0, 0, 1], bounds=[0, 0, 0.5]), InputError, "bounds in round 2: are below"),
        (lambda c, k: c.act("text", costs=[0, 0, 0]), InputError, "not made of numbers"),
        (lambda c, k: c.settle(k, reward=1.5), InputError, r"not 1 number\(s\) in \[0, 1\]"),
        (lambda c, k: c.settle(k, reward=np.nan), NonFiniteError, "reward in round 1"),
        (lambda c, k: c.settle(k, reward=0.5, cost=-1.0), InputError, "cost in round 1"),
        (lambda c, k: c.settle(k, reward=0.5, cost=[0.1, 0.2]), InputError, "cost in round 1"),
        (lambda c, k: c.settle(k), InputError, "reward in round 1: and cost are missing"),
    ],
)
def test_bad_calls_are_refused_and_change_nothing(call, error, words):
    made, twin = chooser("thompson"), chooser("thompson")
    choice = made.act([1.0], costs=[0.0, 0.1, 0.2])
    twin.act([1.0], costs=[0.0, 0.1, 0.2])
    with pytest.raises(error, match=words):
        call(made, choice)
    made.settle(choice, reward=0.5)
    twin.settle(twin.pending[1], reward=0.5)
    same(made, twin)
    assert [made.act([1.0], costs=[0, 0, 0]).action for _ in range(5)] == [
        twin.act([1.0], costs=[0, 0, 0]).action for _ in range(5)
    ]


def test_above_the_cheapest_needs_costs():
    made = chooser("thompson", budget=Budget(1.0, 1.0, above_cheapest=True))
    with pytest.raises(InputError, match="not announced"):
        made.act([1.0])


# --- full feedback, warm starts, the recorded probability -----------------------------------------------------


def test_labels_of_the_past_move_the_belief_and_no_budget():
    made, twin = chooser("thompson"), chooser("thompson")
    for _ in range(200):
        made.teach([1.0], [0.1, 0.9, 0.5])
    np.testing.assert_allclose(made.state.primal.mean[0, :, 0], [0.1, 0.9, 0.5], atol=0.02)
    assert made.spent == pytest.approx([0.0])
    assert made.round == twin.round == 1
    warm = ThompsonSampling(3, 1, prior=made.state.primal)
    other = Chooser(PrimalDual(warm, EntropicDual(start=0.01), Budget(5.0, 1.0), 20), seed=1)
    assert [other.act([1.0], costs=[0, 0, 0]).action for _ in range(5)] == [1] * 5
    with pytest.raises(InputError, match="prior"):
        PrimalDual(ThompsonSampling(3, 2, prior=made.state.primal), HedgeDual(), Budget(5.0, 1.0), 20).init()


@pytest.mark.parametrize("name", list(primals()))
def test_the_recorded_probability_is_that_of_the_draw(name):
    made = chooser(name, limit=400.0, horizon=4000, seed=7)
    counts, expected = np.zeros(3), np.zeros(3)
    for _ in range(500):
        choice = made.act([1.0], costs=[0.0, 0.05, 0.1])
        counts[choice.action] += 1
        expected += choice.probabilities
        assert choice.probability == choice.probabilities[choice.action] > 0
        made.settle(choice, reward=[0.2, 0.5, 0.6][choice.action])
    # Σ (1{a} − p) is a martingale with steps at most 1: five deviations of the largest variance possible.
    assert np.abs(counts - expected).max() <= 5 * np.sqrt(500 / 4)


def test_the_same_seed_makes_the_same_choices():
    runs = []
    for _ in range(2):
        made = chooser("thompson", limit=10.0, horizon=50, seed=5)
        actions = []
        for _ in range(50):
            choice = made.act([1.0], costs=[0.0, 0.2, 0.4])
            actions.append(choice.action)
            made.settle(choice, reward=0.5)
        runs.append(actions)
    assert runs[0] == runs[1]


def test_nothing_warns_in_a_quiet_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = chooser("ucb", limit=1.0, horizon=5)
        for _ in range(5):
            choice = made.act([1.0], costs=[0.0, 0.5, 1.0])
            made.settle(choice, reward=1.0)
