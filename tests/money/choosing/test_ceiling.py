"""Ceilings and planned prices: never above the ceiling at any time, plans by hand, targets for rewards."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import InputError
from longterm.money import (
    EXP3IX,
    Budget,
    Ceiling,
    Chooser,
    EntropicDual,
    FixedMixture,
    HedgeDual,
    LinearUCB,
    PlannedPrice,
    PrimalDual,
    ThompsonSampling,
)
from longterm.money.choosing.duals import Setting, Situation
from longterm.money.choosing.primals import Prediction
from longterm.money.choosing.recent import RecentRequests

sequences = st.lists(
    st.tuples(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.floats(0, 1), st.integers(0, 3)),
    min_size=1,
    max_size=40,
)


def rules(ceiling):
    return {
        "mixture": PrimalDual(FixedMixture((0.2, 0.3, 0.5)), EntropicDual(0.1, step=0.05), ceiling),
        "planned": PrimalDual(
            ThompsonSampling(3, 1, level_scale=0.2, drift=0.01, learn_costs=True, window=16), PlannedPrice(4), ceiling
        ),
    }


@pytest.mark.parametrize("name", ["mixture", "planned"])
@examples(60)
@given(rounds=sequences, rate=st.floats(0.01, 0.9), credit=st.floats(0, 2))
def test_the_exact_bill_is_never_above_the_ceiling(name, rounds, rate, credit):
    """Costs up to their bounds, settled up to three requests later: the exact sum, after every request."""
    made = Chooser(rules(Ceiling(rate, 1.0, credit))[name], seed=1)
    due, spent = [], Fraction(0)
    for t, (costs, share, late) in enumerate(rounds, start=1):
        for entry in [entry for entry in due if entry[0] <= t]:
            due.remove(entry)
            made.settle(entry[1], 0.5, entry[2])
            spent += Fraction(entry[2])
        choice = made.act([1.0], costs=[c * share for c in costs], bounds=costs)
        if choice.action is not None:
            due.append((t + late, choice, costs[choice.action]))
        held = sum((Fraction(entry[2]) for entry in due), Fraction(0))
        assert spent + held <= Fraction(rate) * t + Fraction(credit)


def test_unspent_money_can_be_spent_later():
    made = Chooser(PrimalDual(FixedMixture((0.0, 1.0)), EntropicDual(0.1, step=0.05), Ceiling(0.1, 1.0)))
    actions = [made.act(costs=[0.0, 0.3]).action for _ in range(12)]
    assert [t + 1 for t, action in enumerate(actions) if action == 1] == [
        4,
        7,
        10,
    ]  # 0.3 at 0.1 a request, rounded down


def test_the_cheapest_answers_where_nothing_fits():
    strict, open_ = (
        Chooser(PrimalDual(FixedMixture((0.5, 0.5)), HedgeDual(step=0.1), Ceiling(0.1, 1.0, always_answer=always)))
        for always in (False, True)
    )
    assert strict.act(costs=[0.3, 0.2]).action is None
    choice = open_.act(costs=[0.3, 0.2])
    assert (choice.action, choice.probabilities.tolist()) == (1, [0.0, 1.0])
    assert open_.act(costs=[0.3, 0.2], allowed=[True, False]).action == 0


def test_without_a_horizon_nothing_may_need_one():
    with pytest.raises(InputError, match="horizon: is missing, but a Budget has a limit"):
        PrimalDual(EXP3IX(2), HedgeDual(), Budget(1.0, 1.0))
    with pytest.raises(InputError, match="horizon: is missing, but the step size"):
        PrimalDual(EXP3IX(2), HedgeDual(step=0.1), Ceiling(0.1, 1.0))
    with pytest.raises(InputError, match="a Ceiling, for which no theorem"):
        PrimalDual(LinearUCB(2, 1), EntropicDual(0.1), Ceiling(0.1, 1.0), 100).bound()
    with pytest.raises(InputError, match="cannot be planned together"):
        PrimalDual(LinearUCB(2, 1), PlannedPrice(), (Budget(5.0, 1.0), Budget(5.0, 1.0)), 100)
    assert repr(Chooser(PrimalDual(FixedMixture((1.0,)), HedgeDual(step=0.1), Ceiling(0.5, 1.0)))).startswith(
        "Chooser("
    )


# --- planned prices -------------------------------------------------------------------------------------------

SETTING = Setting(np.ones(1), None, 100.0, 0.2, -100.0, 101.0)


def planned(dual, gains, left=0.0, deficit=0.0):
    """The plan for requests on which the second action gains `gains` and costs 1, the first nothing."""
    gains = np.asarray(gains)
    costs = np.tile([[0.0], [1.0]], (len(gains), 1, 1))
    recent = Prediction(np.stack([0.0 * gains, gains], axis=1), costs)
    state = dual.init(SETTING)._replace(price=np.array([0.85]), deficit=np.array([deficit]))
    in_use, bounds = np.ones(2, dtype=bool), np.array([[0.0], [1.0]])
    situation = Situation(dual.every, bounds, np.array([left]), np.array([0.2]), in_use, True, lambda: recent)
    price = dual.plan(state, situation, SETTING).price[0]
    return price, int((gains > price).sum())


GAINS = np.arange(1, 11) / 10


def test_the_price_is_that_at_which_the_window_costs_the_target():
    price, bought = planned(PlannedPrice(), GAINS, left=1.0)  # as much as the reserve: the target is ρ = 0.2
    assert 0.8 <= price < 0.8 * 1.01
    assert bought == 2
    assert planned(PlannedPrice(recovery=10.0), GAINS, left=3.0)[1] == 4  # 0.2 + (3 − 1)/10 = 0.4
    assert planned(PlannedPrice(), [-1.0, 0.9, -1.0, -1.0, -1.0, -1.0], left=1.0)[0] == 0.0  # one of six is below ρ


def test_the_target_is_the_ceiling_until_more_than_the_reserve_is_unspent():
    """The reserve is 1, the bound of the second action. More is spent in 10 requests, at most 2 ρ in each."""
    dual = PlannedPrice(recovery=10.0)
    assert [planned(dual, GAINS, left=left)[1] for left in (0.0, 1.0, 2.0, 30.0)] == [2, 2, 3, 4]


def test_the_price_is_the_largest_at_which_the_reward_is_reached():
    dual = PlannedPrice(recovery=10.0, least_reward=0.27)
    assert planned(dual, GAINS)[1] == 3  # (0.8 + 0.9 + 1.0)/10
    assert planned(dual, GAINS, deficit=0.6)[1] == 4  # it asks for 0.06 more
    assert planned(PlannedPrice(least_reward=0.9), GAINS)[0] == 0.0
    state = dual.init(SETTING)
    assert dual.reward(dual.reward(state, 0.17), 0.3).deficit == pytest.approx([0.07])


def test_a_plan_needs_announced_costs_and_predictions():
    rule = PrimalDual(ThompsonSampling(2, 1, window=8), PlannedPrice(), Ceiling(0.1, 1.0))
    with pytest.raises(InputError, match="dual in round 1: computes its price from the announced costs"):
        Chooser(rule).act([1.0])
    with pytest.raises(InputError, match="FixedMixture keeps no recent requests"):
        Chooser(PrimalDual(FixedMixture((0.5, 0.5)), PlannedPrice(), Ceiling(0.1, 1.0))).act([1.0], costs=[0, 1])


def require_windows(money, rate, depth):
    """Compare the exact bill of every window with rate · length + depth. `money` is by request, from 1."""
    sums = [Fraction(0)]
    for amount in money:
        sums.append(sums[-1] + amount)
    for end in range(len(sums)):
        for start in range(end):
            assert sums[end] - sums[start] <= rate * (end - start) + depth


@pytest.mark.parametrize("name", ["mixture", "planned"])
@examples(25)
@given(rounds=sequences, rate=st.floats(0.01, 0.9), credit=st.floats(0, 2), bank=st.floats(0, 20))
def test_the_exact_bill_of_every_window_is_within_the_bank(name, rounds, rate, credit, bank):
    """By the request that opened a cost, and by the time of its settlement. Idle times come before and after."""
    made = Chooser(rules(Ceiling(rate, 1.0, credit, bank=bank))[name], seed=1)
    idle = [([1.0, 1.0, 1.0], 0.0, 0)] * 8
    due, opened, settled = [], [], []
    for t, (costs, share, late) in enumerate([*idle, *rounds, *idle, *rounds], start=1):
        opened.append(Fraction(0))
        settled.append(Fraction(0))
        for entry in [entry for entry in due if entry[0] <= t]:
            due.remove(entry)
            _, choice, cost, number = entry
            if number % 5:
                made.settle(choice, 0.5, cost)
            else:
                made.skip(choice)  # counts the money held back
            settled[-2 if t > 1 else -1] += Fraction(cost)  # before this request
            opened[number - 1] += Fraction(cost)
        choice = made.act([1.0], costs=[c * share for c in costs], bounds=costs)
        if choice.action is not None:
            cost = 0.0 if t <= len(idle) and t % 5 else costs[choice.action]
            due.append((t + 1 + late, choice, cost, t))
    depth = Fraction(bank) * Fraction(rate) + Fraction(credit)
    require_windows(opened, Fraction(rate), depth)
    require_windows(settled, Fraction(rate), depth)


def test_savings_beyond_the_bank_are_given_up_and_survive_a_restart(tmp_path):
    def opened(bank):
        rule = PrimalDual(FixedMixture((0.5, 0.5)), EntropicDual(0.1, step=0.05), Ceiling(1.0, 10.0, bank=bank))
        return Chooser.open(tmp_path / f"{bank}.db", rule)

    for bank, most in ((5.0, 5), (None, 100)):
        made = opened(bank)
        for _ in range(100):
            made.settle(made.act(costs=[0.0, 0.0]), 0.5, 0.0)
        assert made.metrics()["limit"]["money"] == pytest.approx(most, abs=1e-6)
        made.close()
        made = opened(bank)
        paid = [made.act(costs=[10.0, 1.0], bounds=[10.0, 1.0]).action for _ in range(20)]
        bill = sum({0: 10.0, 1: 1.0, None: 0.0}[action] for action in paid)
        assert bill <= most + 20
        assert (bill > 26) == (bank is None)
        made.close()


def test_a_bank_is_a_number_of_requests():
    with pytest.raises(InputError, match="bank"):
        Ceiling(1.0, 2.0, bank=-1.0)


def test_list_prices_of_the_past_do_not_count_and_costs_of_requests_do():
    recent, rng = RecentRequests.empty(64, 3), np.random.default_rng(0)
    costs = rng.random(64)
    for t in range(64):
        recent = recent.added(0, np.array([float(t)]), np.array([2.0 if t < 30 else 3.0, costs[t]]))
    contexts, rows = recent.rows(np.array([64.0]), np.array([1.0, 0.5]))
    np.testing.assert_array_equal(contexts[:, 0], np.arange(65.0))
    np.testing.assert_array_equal(rows[:, 0], 1.0)
    np.testing.assert_array_equal(rows[:, 1], [*costs, 0.5])
