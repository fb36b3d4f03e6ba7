"""The template: theorems on i.i.d. and adversarial games, with caps and floors, one budget and several."""

import numpy as np
import pytest

from longterm import InputError
from longterm.money import (
    EXP3IX,
    Budget,
    Chooser,
    EntropicDual,
    EuclideanDual,
    ExponentialWeights,
    FixedMixture,
    HedgeDual,
    InverseGapWeighting,
    LinearUCB,
    PrimalDual,
    TableRegressor,
    ThompsonSampling,
    best_choices,
)

each_horizon = pytest.mark.parametrize("T", [1500, pytest.param(3000, marks=pytest.mark.cross)])
MEANS, PRICES = np.array([0.0, 0.4, 0.9]), np.array([0.0, 0.3, 0.9])  # the first action is free and useless


def iid(seed, horizon):
    rng = np.random.default_rng(seed)
    rewards = (rng.random((horizon, 3)) < MEANS).astype(float)
    return rewards, np.clip(PRICES * rng.uniform(0.8, 1.1, (horizon, 3)), 0, 1)


def total(rule, rewards, costs, *, full, seed=0):
    chooser, earned = Chooser(rule, seed=seed), 0.0
    for r, c in zip(rewards, costs, strict=True):
        choice = chooser.act()
        if choice.action is None:
            continue
        earned += r[choice.action]
        if full:
            chooser.settle(choice, rewards=r, costs=c)
        else:
            chooser.settle(choice, reward=r[choice.action], cost=c[choice.action])
    return earned, chooser


@pytest.mark.slow
@each_horizon
@pytest.mark.parametrize(
    ("primal", "full", "dual"),
    [
        pytest.param(ExponentialWeights(3), True, HedgeDual(), id="hedge-hedge"),
        pytest.param(ExponentialWeights(3), True, EuclideanDual(), id="hedge-l2"),
        pytest.param(ExponentialWeights(3), True, EntropicDual(start=0.3), id="hedge-e", marks=pytest.mark.cross),
        pytest.param(EXP3IX(3), False, HedgeDual(), id="exp3-hedge", marks=pytest.mark.cross),
        pytest.param(EXP3IX(3), False, EuclideanDual(), id="exp3-l2", marks=pytest.mark.cross),
        pytest.param(EXP3IX(3), False, EntropicDual(start=0.3), id="exp3-e"),
    ],
)
def test_iid_games_stay_below_the_bound(primal, full, dual, T):
    budget = Budget(0.45 * T, largest=1.0)
    rule = PrimalDual(primal, dual, budget, T)
    mean_costs = PRICES * 0.95
    opt = best_choices(MEANS[None] * T, mean_costs[None] * T, budget, "mixture").value
    regrets = []
    for seed in range(3):
        rewards, costs = iid(seed, T)
        earned, chooser = total(rule, rewards, costs, full=full, seed=seed)
        assert chooser.spent[0] <= budget.limit
        regrets.append(opt - earned)
    assert np.mean(regrets) <= rule.bound().regret
    # The bound tells learning from not learning: with all outcomes seen, an even mix breaks it.
    if full and isinstance(dual, HedgeDual):
        idle = PrimalDual(FixedMixture((1 / 3,) * 3), dual, budget, T)
        missed = [opt - total(idle, *iid(seed, T), full=False, seed=seed)[0] for seed in range(3)]
        assert np.mean(missed) > rule.bound().regret


@pytest.mark.slow
@each_horizon
@pytest.mark.parametrize(
    ("kind", "primal", "full"),
    [
        pytest.param("spend or save", ExponentialWeights(3), True),
        pytest.param("spend or save", EXP3IX(3), False, marks=pytest.mark.cross),
        pytest.param("bait", ExponentialWeights(3), True, marks=pytest.mark.cross),
        pytest.param("bait", EXP3IX(3), False),
        pytest.param("alternating", ExponentialWeights(3), True),
        pytest.param("alternating", EXP3IX(3), False, marks=pytest.mark.cross),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_any_fixed_sequence_earns_its_share(kind, primal, full, T):
    t = np.arange(T)
    rewards, costs = np.zeros((T, 3)), np.zeros((T, 3))
    costs[:, 1:] = 1.0
    if kind == "spend or save":  # poor requests first; all the value is at the end, or nothing is
        rewards[:, 1] = np.where(t < T / 2, 0.3, 1.0)
        rewards[:, 2] = np.where(t < T / 2, 0.3, 0.0)
    elif kind == "bait":  # the good action turns bad when it has been learned
        rewards[:, 1] = np.where(t < T / 3, 1.0, 0.0)
        rewards[:, 2] = np.where(t < T / 3, 0.0, 1.0)
    else:
        rewards[:, 1], rewards[:, 2] = t % 2, (t + 1) % 2
    budget = Budget(0.4 * T, largest=1.0)
    rule = PrimalDual(primal, HedgeDual(), budget, T)
    bound = rule.bound("any")
    assert bound.share == pytest.approx(0.4)
    fixed = best_choices(rewards, costs, budget, "mixture").value
    earned = [total(rule, rewards, costs, full=full, seed=seed) for seed in range(3)]
    assert all(chooser.spent[0] <= budget.limit for _, chooser in earned)
    assert np.mean([e for e, _ in earned]) >= bound.share * fixed - bound.regret
    if full:
        assert bound.regret < bound.share * T  # not vacuous


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [3000, pytest.param(6000, marks=pytest.mark.cross)])
def test_contexts_with_inverse_gap_weighting_stay_below_the_bound(horizon):
    """Two contexts, three actions; the benchmark may choose by context."""
    rng = np.random.default_rng(1)
    means = np.array([[0.0, 0.2, 0.9], [0.0, 0.5, 0.1]])
    costs = np.array([0.0, 0.4, 1.0])
    budget = Budget(0.4 * horizon, largest=1.0)
    theory = PrimalDual(InverseGapWeighting(3, TableRegressor(2), multiple=1.0), HedgeDual(), budget, horizon)
    practice = PrimalDual(InverseGapWeighting(3, TableRegressor(2)), HedgeDual(), budget, horizon)
    cells = rng.integers(0, 2, horizon)
    drawn = (rng.random((horizon, 3)) < means[cells]).astype(float)
    best = best_choices(means[cells], np.tile(costs, (horizon, 1)), budget, "classes", classes=cells).value
    earned = {}
    for name, rule in (("theory", theory), ("practice", practice)):
        chooser, earned[name] = Chooser(rule, seed=1), 0.0
        for cell, r in zip(cells, drawn, strict=True):
            choice = chooser.act([float(cell)], costs=costs)
            if choice.action is not None:
                earned[name] += r[choice.action]
                chooser.settle(choice, reward=r[choice.action])
        assert chooser.spent[0] <= budget.limit
    assert best - earned["theory"] <= theory.bound().regret
    assert earned["practice"] > earned["theory"]  # the theorem explores too much
    assert earned["practice"] > 0.93 * best


@pytest.mark.slow
def test_linear_ucb_stays_below_its_bound():
    horizon, rng = 1500, np.random.default_rng(4)
    primal = LinearUCB(2, 2, shared_scale=0.0, prior_scale=1.0, noise=0.5)
    budget = Budget(0.3 * horizon, largest=1.0)
    width = primal.theory_width(PrimalDual(primal, HedgeDual(), budget, horizon).setting)
    rule = PrimalDual(
        LinearUCB(2, 2, shared_scale=0.0, prior_scale=1.0, noise=0.5, width=width), HedgeDual(), budget, horizon
    )
    xs = rng.random((horizon, 2))
    xs /= np.linalg.norm(xs, axis=1, keepdims=True)
    means = np.stack([np.zeros(horizon), xs @ np.array([0.9, 0.1])], axis=1)
    costs = np.array([0.0, 1.0])
    best = best_choices(means, np.tile(costs, (horizon, 1)), budget, "rows").value  # rows are means: no noise
    chooser, earned = Chooser(rule, seed=0), 0.0
    for x, mean in zip(xs, means, strict=True):
        choice = chooser.act(x, costs=costs)
        reward = float(rng.random() < mean[choice.action])
        earned += reward
        chooser.settle(choice, reward=reward)
    assert best - earned <= rule.bound().regret
    with pytest.raises(InputError, match="smaller than the theorem's"):
        PrimalDual(primal, HedgeDual(), budget, horizon).bound()


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [2000, pytest.param(4000, marks=pytest.mark.cross)])
@pytest.mark.parametrize("dual", [HedgeDual(), EuclideanDual()], ids=["hedge", "l2"])
def test_caps_and_floors_together_on_average(dual, horizon):
    """Two resources: spend at most 0.5, visit at least 0.25; no stopping.

    Slater: action 2 half the time has 0.15 to spare.
    """
    rng = np.random.default_rng(9)
    means = np.array([0.2, 0.9, 0.1])
    cost = np.array([[0.0, 0.0], [0.8, 0.0], [0.3, 0.8]])
    budgets = (Budget(0.5 * horizon, 1.0), Budget(0.25 * horizon, 1.0, kind="at least", name="visits"))
    probe = PrimalDual(ExponentialWeights(3), dual, budgets, horizon, stop=False, slater=0.1)
    # In units of the rules both rates are 0.25: half of action 2 costs 0.15 of 0.5, and visits 0.4 of 0.25.
    mix = np.array([0.5, 0.0, 0.5]) @ (cost / probe.setting.unit)
    slack = np.min(np.array([1, -1]) * (probe.setting.rate - mix))
    rule = PrimalDual(ExponentialWeights(3), dual, budgets, horizon, stop=False, slater=float(slack))
    best = best_choices(means[None] * horizon, cost[None] * horizon, budgets, "mixture").value
    chooser, earned = Chooser(rule, seed=2), 0.0
    for _ in range(horizon):
        rewards = (rng.random(3) < means).astype(float)
        choice = chooser.act()
        earned += rewards[choice.action]
        chooser.settle(choice, rewards=rewards, costs=cost)
    bound = rule.bound()
    assert best - earned <= bound.regret
    over = np.array([1, -1]) * (chooser.spent - np.array([0.5, 0.25]) * horizon) / rule.setting.unit
    assert over.max() <= bound.violation
    assert chooser.spent[1] > 0.2 * horizon  # left alone, action 2 would never be played
    with pytest.raises(InputError, match="'any', for which the theorem needs"):
        rule.bound("any")


@pytest.mark.slow
def test_several_caps_are_all_kept_and_the_tight_one_is_priced():
    horizon = 2000
    budgets = (Budget(400.0, 1.0, name="money"), Budget(30_000.0, 20.0, name="tokens"))
    rule = PrimalDual(EXP3IX(3), HedgeDual(), budgets, horizon)
    rng = np.random.default_rng(0)
    chooser = Chooser(rule, seed=3)
    for _ in range(horizon):
        costs = np.array([[0.0, 0.0], [0.2, 12.0], [0.9, 15.0]]) * rng.uniform(0.9, 1.1, (3, 1))
        choice = chooser.act(costs=costs)
        chooser.settle(choice, reward=[0.0, 0.5, 0.9][choice.action])
    assert np.all(chooser.spent <= [400.0, 30_000.0])
    assert chooser.spent[0] > 300.0


def test_a_floor_is_planned_with_what_is_covered():
    floor = Budget(60.0, 1.0, kind="at least")
    rule = PrimalDual(
        ThompsonSampling(2, 1, exploration=1.0),
        EntropicDual(1.0, step=0.05),
        floor,
        200,
        stop=False,
        replan=True,
        slater=0.5,
    )
    made = Chooser(rule, seed=0)
    for _ in range(200):
        choice = made.act([1.0], costs=[0.0, 1.0])
        made.settle(choice, reward=1.0 - choice.action)
    assert 60 <= made.spent[0] <= 66


def test_what_has_no_theorem_says_so():
    budget = Budget(100.0, 1.0)
    with pytest.raises(InputError, match="replan: is True, for which no theorem"):
        PrimalDual(ExponentialWeights(2), HedgeDual(), budget, 1000, replan=True).bound()
    with pytest.raises(InputError, match="no proved bound"):
        PrimalDual(ThompsonSampling(2, 1), HedgeDual(), budget, 1000).bound()
    with pytest.raises(InputError, match="radius"):
        PrimalDual(ExponentialWeights(2), HedgeDual(), budget, 1000, radius=1.0).bound()


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: PrimalDual(ExponentialWeights(2), HedgeDual(), (), 10), "budgets"),
        (lambda: PrimalDual(ExponentialWeights(2), HedgeDual(), Budget(11.0, 1.0), 10), "budgets"),
        (lambda: PrimalDual(ExponentialWeights(2), HedgeDual(), Budget(5.0, 1.0), 0), "horizon"),
        (
            lambda: PrimalDual(
                ExponentialWeights(2), HedgeDual(), (Budget(5.0, 1.0, above_cheapest=True), Budget(5.0, 1.0)), 10
            ),
            "above_cheapest=True beside other caps",
        ),
        (
            lambda: PrimalDual(ExponentialWeights(2), HedgeDual(), Budget(5.0, 1.0, kind="at least"), 10, stop=False),
            "slater",
        ),
    ],
)
def test_bad_games_are_refused(make, argument):
    with pytest.raises(InputError, match=argument):
        make()
