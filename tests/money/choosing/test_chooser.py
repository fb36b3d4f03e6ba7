"""The chooser: never over budget on any sequence, late and lost outcomes, every call all or nothing."""

import math
import random
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import InputError
from longterm.errors import AlreadyToldError, BrokenBoundWarning, HorizonWarning, NonFiniteError, UnknownTokenError
from longterm.money import (
    EXP3IX,
    Budget,
    Ceiling,
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
from longterm.money.choosing.beliefs import LinearBelief


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
    primal = made.state.primal
    return getattr(primal, "belief", primal), made.state.dual


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
    assert gained[first.action] == pytest.approx(loss / (first.probability + made.rule.primal.step_in(setting) / 2))


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
    with pytest.raises(AlreadyToldError, match="cost is already settled"):
        made.settle(choice, cost=0.1)
    made.settle(choice, reward=0.5)
    with pytest.raises(AlreadyToldError):
        made.settle(choice, reward=0.5)
    for bare in (1, 2):  # it does not name an epoch
        with pytest.raises(UnknownTokenError, match="bare number"):
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
        (lambda c, k: c.act([1.0], costs=[0, 0, -1]), InputError, "costs in round 2: contain a negative number"),
        (
            lambda c, k: c.act([1.0], costs=[0, 0, 1], bounds=[0, 0, 0.5]),
            InputError,
            "bounds in round 2: are lower than the announced costs",
        ),
        (lambda c, k: c.act("text", costs=[0, 0, 0]), InputError, "does not consist of numbers"),
        (lambda c, k: c.settle(k, reward=1.5), InputError, r"not 1 number\(s\) in \[0, 1\]"),
        (lambda c, k: c.settle(k, reward=np.nan), NonFiniteError, "reward in round 1"),
        (lambda c, k: c.settle(k, reward=0.5, cost=-1.0), InputError, "cost in round 1"),
        (lambda c, k: c.settle(k, reward=0.5, cost=[0.1, 0.2]), InputError, "cost in round 1"),
        (lambda c, k: c.settle(k), InputError, "reward in round 1: is missing, and so is the cost"),
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
    with pytest.raises(InputError, match="costs in round 1: are missing"):
        made.act([1.0])


# --- full feedback, warm starts, the recorded probability -----------------------------------------------------


def test_labels_of_the_past_move_the_belief_and_no_budget():
    made, twin = chooser("thompson"), chooser("thompson")
    for _ in range(200):
        made.teach([1.0], [0.1, 0.9, 0.5])
    np.testing.assert_allclose(made.state.primal.belief.mean[0, :, 0], [0.1, 0.9, 0.5], atol=0.02)
    assert made.spent == pytest.approx([0.0])
    assert made.round == twin.round == 1
    warm = ThompsonSampling(3, 1, prior=made.state.primal.belief)
    other = Chooser(PrimalDual(warm, EntropicDual(start=0.01), Budget(5.0, 1.0), 20), seed=1)
    assert [other.act([1.0], costs=[0, 0, 0]).action for _ in range(5)] == [1] * 5
    with pytest.raises(InputError, match="prior"):
        PrimalDual(ThompsonSampling(3, 2, prior=made.state.primal.belief), HedgeDual(), Budget(5.0, 1.0), 20).init()


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


# --- hostile numbers ------------------------------------------------------------------------------------------


class Careless(FixedMixture):
    """A primal that ignores which actions are allowed, or has no probabilities at all."""

    def weigh(self, state, request, rng):
        return np.array(self.shares) if request.context[0] else np.full(3, np.nan)


def test_an_action_that_is_not_allowed_is_never_played_whatever_the_primal_says():
    rule = PrimalDual(Careless((0.9, 0.1, 0.0)), HedgeDual(), Budget(2.0, 1.0), 100)
    made = Chooser(rule, seed=0)
    for _ in range(50):
        choice = made.act([1.0], costs=[1.0, 0.0, 0.0])
        made.settle(choice, reward=0.5)
    assert made.spent == [2.0]
    assert choice.probabilities.tolist() == [0.0, 0.1, 0.0]
    with pytest.raises(NonFiniteError, match="probabilities in round 51: of Careless"):
        made.act([0.0], costs=[1.0, 0.0, 0.0])
    assert made.round == 51


@pytest.mark.parametrize("name", ["thompson", "ucb", "igw"])
@pytest.mark.parametrize("size", [1e3, 1e9, 1e20, 1e50])
def test_the_cap_holds_after_a_huge_context(name, size):
    made = chooser(name, limit=2.0, horizon=100)
    for t in range(60):
        choice = made.act([size if t == 20 else 1.0], costs=[1.0, 0.0, 0.0])
        made.settle(choice, reward=0.9 if choice.action == 0 else 0.1)
    assert made.spent[0] <= 2.0
    belief, _ = end(made)
    assert np.isfinite(belief.mean).all()


@pytest.mark.parametrize("huge", [1e51, 1e200, -1e99])
def test_numbers_out_of_range_are_refused_on_the_way_in(huge):
    made = chooser("thompson")
    with pytest.raises(InputError, match=r"context in round 1: .* is out of range"):
        made.act([huge], costs=[0.0, 0.0, 0.0])
    with pytest.raises(InputError, match="in round 1"):
        made.act([1.0], costs=[0.0, 0.0, huge])
    choice = made.act([1.0], costs=[0.0, 0.0, 0.0])
    with pytest.raises(InputError, match="cost in round 1"):
        made.settle(choice, 0.5, huge)
    with pytest.raises(InputError, match=r"limit: .* is out of range"):
        Budget(abs(huge), 1.0)


@pytest.mark.parametrize("name", ["thompson", "ucb", "igw"])
def test_a_time_stamp_among_the_features_stops_no_rule(name):
    made = {
        "thompson": ThompsonSampling(2, 2),
        "ucb": LinearUCB(2, 2),
        "igw": InverseGapWeighting(2, RidgeRegressor(2), sharpness=50.0),
    }[name]
    made = Chooser(PrimalDual(made, EntropicDual(start=0.1), Budget(200.0, 1.0), 400), seed=1)
    late = 0
    for t in range(400):
        choice = made.act([1.0, 1.7e9 + t], costs=[0.0, 0.1])
        made.settle(choice, reward=float(choice.action))
        late += choice.action if t >= 200 else 0
    assert late > 150


def test_a_feature_that_grows_keeps_the_information_of_the_past():
    """A belief that is rescaled on the way is the one that knew the scale from the start."""
    rng = np.random.default_rng(0)
    xs = np.stack([np.ones(40), np.concatenate([rng.uniform(-50, 50, 20), rng.uniform(-5e4, 5e4, 20)])], axis=1)
    late = LinearBelief.prior(2, 1, np.full(2, 6.25), np.full(2, 1.5625))
    early = late.rescaled(np.abs(xs).max(axis=0))
    for t, x in enumerate(xs):
        late, early = (belief.updated(x, t % 2, np.array([x @ [0.2, 1e-5]])) for belief in (late, early))
    assert late.scale.tolist() == early.scale.tolist()
    np.testing.assert_allclose(late.mean, early.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(late.covariance, early.covariance, rtol=1e-8, atol=1e-10)


# --- warnings -------------------------------------------------------------------------------------------------


def test_where_warnings_are_errors_a_cost_above_its_bound_changes_nothing():
    made = chooser("thompson")
    choice = made.act([1.0], costs=[0.5, 0.5, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BrokenBoundWarning):
            made.settle(choice, reward=1.0, cost=0.7)
    assert made.spent == [0.0]
    with pytest.warns(BrokenBoundWarning):
        made.settle(choice, reward=1.0, cost=0.7)
    assert made.spent == [0.7]


def test_a_cost_above_its_bound_by_one_unit_in_the_last_place_is_warned_of():
    made = chooser("mixture", budget=Budget(1e13, 1e13), horizon=20)
    choice = made.act([1.0], costs=[1e13] * 3)
    with pytest.warns(BrokenBoundWarning):
        made.settle(choice, reward=1.0, cost=np.nextafter(1e13, np.inf))


def test_more_requests_than_the_horizon_are_warned_of_once():
    made = chooser("mixture", horizon=6)
    for _ in range(6):
        made.act([1.0], costs=[0.0, 0.0, 0.0])
    with pytest.warns(HorizonWarning, match="made for 6 requests"):
        made.act([1.0], costs=[0.0, 0.0, 0.0])
    made.act([1.0], costs=[0.0, 0.0, 0.0])
    assert repr(made) == "Chooser(FixedMixture, 8 of 6 requests, 8 open, money 0 of 5)"


# --- requests that allow some actions, labels of some actions --------------------------------------------------


def test_a_request_may_allow_some_actions_only():
    made = chooser("mixture")
    for _ in range(10):
        choice = made.act([1.0], costs=[0.0, 0.0, 0.0], allowed=[True, False, True])
        assert choice.action != 1
        np.testing.assert_allclose(choice.probabilities / choice.probabilities.sum(), [2 / 7, 0, 5 / 7])
    for bad in ([False] * 3, [True], [1, 0, 1]):
        with pytest.raises(InputError, match="allowed in round 11"):
            made.act([1.0], costs=[0.0, 0.0, 0.0], allowed=bad)


def test_labels_of_some_actions_teach_those():
    made = chooser("thompson")
    before = made.state.primal.belief.widths(np.ones(1))
    for _ in range(50):
        made.teach([1.0], [np.nan, 0.9, np.nan])
    after = made.state.primal.belief.widths(np.ones(1))
    assert made.state.primal.belief.mean[0, 1, 0] == pytest.approx(0.9, abs=0.02)
    assert after[1] < 0.2 * before[1]
    assert after[0] > 0.5 * before[0]
    with pytest.raises(InputError, match="are missing for every action"):
        made.teach([1.0], [np.nan] * 3)


@pytest.mark.parametrize("kind", ["budget", "ceiling"])
def test_the_total_is_all_that_was_ever_spent(tmp_path, kind):
    """It grows with every cost and every correction to a higher one, and never falls."""
    budget = Budget(40.0, 1.0) if kind == "budget" else Ceiling(0.5, 1.0, 9.0)
    rule = PrimalDual(EXP3IX(2), HedgeDual(), budget, horizon=200)
    dice, expected, before, costs = random.Random(1), 0.0, 0.0, {}

    def made():
        return Chooser.open(tmp_path / "s.db", rule, durability="relaxed", expire_after=5)

    chooser = made()
    for t in range(120):
        choice = chooser.act([], costs=[0.5, 0.75])
        for old in [old for old in costs if costs[old] is None and old.number not in chooser.pending]:
            costs[old] = (0.5, 0.75)[old.action]  # it has expired
            expected += costs[old]
        if choice.action is not None:
            costs[choice] = None
            if t % 3:
                costs[choice] = 0.25 * dice.randrange(3)
                chooser.settle(choice, 0.5, costs[choice])
                expected += costs[choice]
        known = dice.choice([old for old in costs if costs[old] is not None] or [None])
        if known is not None:
            new = 0.25 * dice.randrange(4)
            chooser.correct(known, new)
            expected += max(new - costs[known], 0.0)
            costs[known] = new
        if t % 40 == 0:
            chooser.close()
            chooser = made()
        total = chooser.metrics()["total"]["money"]
        assert total == expected >= before
        before = total
    assert expected > chooser.spent[0]
    chooser.close()


def test_a_correction_never_leaves_less_than_nothing_spent(tmp_path):
    """0.1 is lost in the rounding of far larger costs, so that taking it away again would leave less than 0."""
    rule = PrimalDual(EXP3IX(2), HedgeDual(), Budget(1e50, 1e50), horizon=10)
    with Chooser.open(tmp_path / "s.db", rule, durability="relaxed") as chooser:
        choices = [chooser.act([], costs=[0.0, 0.0]) for _ in range(3)]
        for choice in choices:
            chooser.settle(choice, 0.5)
        for choice, cost in zip(choices, (1e50, 1e30, 0.1), strict=True):
            chooser.correct(choice, cost, force=True)
        for choice in (choices[1], choices[0], choices[2]):
            chooser.correct(choice, 0.0)
        assert chooser.spent[0] >= 0
    Chooser.open(tmp_path / "s.db", rule).close()


def test_a_price_in_equal_steps_stays_below_the_largest_price(tmp_path):
    """Even after a step beside which that price is lost in rounding."""
    rule = PrimalDual(EXP3IX(2), EuclideanDual(step=1e40), Budget(3.0, 1.0), horizon=10)
    with Chooser.open(tmp_path / "s.db", rule, durability="relaxed") as chooser:
        chooser.settle(chooser.act([], costs=[0.5, 0.5]), 0.5)
        assert chooser.prices[0] == pytest.approx(10 / 3)
    Chooser.open(tmp_path / "s.db", rule).close()


@pytest.mark.parametrize("stored", [False, True])
def test_a_cost_beside_which_others_would_be_lost_is_refused_also_if_it_is_forced(stored, tmp_path):
    rule = PrimalDual(EXP3IX(2), HedgeDual(), Budget(3.0, 1.0), horizon=10)
    chooser = Chooser.open(tmp_path / "s.db", rule, durability="relaxed") if stored else Chooser(rule)
    small, large = (chooser.act([], costs=[0.5, 0.5]) for _ in range(2))
    with pytest.raises(InputError, match="more than 1e"):
        chooser.settle(large, 0.5, 1e40, force=True)
    with pytest.warns(BrokenBoundWarning):
        chooser.settle(large, 0.5, 2.9e12, force=True)
    chooser.settle(small, 0.5, 0.3)
    with pytest.raises(InputError, match="more than 1e"):
        chooser.correct(large, 1e13, force=True)
    chooser.correct(large, 0.2)
    assert chooser.spent[0] == pytest.approx(0.5, abs=1e-12)


def test_a_ceiling_without_a_horizon_gets_none():
    chooser = Chooser(PrimalDual(LinearUCB(2, 1), EuclideanDual(step=0.1), Ceiling(0.5, 1.0)))
    with pytest.raises(InputError, match="horizon: is not used by this rule"):
        chooser.change(horizon=40)


def test_an_announced_cost_near_zero_leaves_the_chooser_usable(tmp_path):
    """The ratio of the cost to it would be infinite."""
    rule = PrimalDual(ThompsonSampling(2, 1, learn_costs=True), EuclideanDual(), Budget(30.0, 1.0), horizon=100)
    with Chooser.open(tmp_path / "s.db", rule, durability="relaxed") as chooser:
        for _ in range(40):  # until the beliefs are stored
            choice = chooser.act([1.0], costs=[5e-324, 5e-324], bounds=[1.0, 1.0])
            chooser.settle(choice, 0.5, 0.25)
    with Chooser.open(tmp_path / "s.db", rule, durability="relaxed") as chooser:
        assert chooser.spent[0] == 10.0
        assert chooser.act([1.0], costs=[0.5, 0.5]).action is not None


@pytest.mark.parametrize(
    "make",
    [
        lambda huge: EuclideanDual(step=huge),
        lambda huge: EntropicDual(huge),
        lambda huge: PrimalDual(EXP3IX(2), HedgeDual(), Budget(3.0, 1.0), 10, radius=huge),
        lambda huge: PrimalDual(EXP3IX(2), HedgeDual(), Budget(3.0, 1.0), 10, slater=1 / huge),
    ],
)
def test_hyperparameters_out_of_range_are_refused(make):
    with pytest.raises(InputError, match="out of range"):
        make(1e51)
