"""Hindsight with certificates, replays and the weighing of logs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import InputError
from longterm.money import (
    Budget,
    Chooser,
    EntropicDual,
    FixedMixture,
    HedgeDual,
    OutcomeTable,
    PrimalDual,
    ThompsonSampling,
    WordHash,
    best_choices,
    off_policy,
    replay_outcomes,
)
from longterm.money.choosing.best_choices import _solve_program, dual_bound


def instance(seed, rows=40, actions=4, resources=1):
    rng = np.random.default_rng(seed)
    return rng.random((rows, actions)), rng.random((rows, actions, resources))


@pytest.mark.slow
@examples(60)
@given(st.integers(0, 10**6), st.floats(0.05, 0.95))
def test_slopes_agree_with_the_program_and_both_are_certified(seed, tightness):
    r, c = instance(seed)
    low = c.min(axis=1).sum()
    limit = float(low + tightness * (c.max(axis=1).sum() - low))
    best = best_choices(r, c, Budget(limit, 1.0))
    shares, prices = _solve_program(r, c, np.ones(1), np.array([limit]))
    assert best.value == pytest.approx(float((shares * r).sum()), abs=1e-7)
    assert best.spent[0] <= limit
    assert -1e-9 <= best.upper_bound - best.value <= 1e-8
    assert dual_bound(r, c, np.ones(1), np.array([limit]), prices) == pytest.approx(best.value, abs=1e-6)
    assert np.all(best.shares >= 0)
    np.testing.assert_allclose(best.shares.sum(axis=1), 1.0)
    assert ((best.shares > 1e-9) & (best.shares < 1 - 1e-9)).any(axis=1).sum() <= 1  # one row is mixed


@examples(25)
@given(st.integers(0, 10**6))
def test_caps_and_floors_are_certified(seed):
    r, c = instance(seed, resources=2)
    even = c.mean(axis=1).sum(axis=0)
    budgets = (Budget(float(even[0] * 0.9), 1.0), Budget(float(even[1] * 1.05), 1.0, kind="at least"))
    best = best_choices(r, c, budgets)
    assert -1e-9 <= best.upper_bound - best.value <= 1e-6
    assert best.spent[0] <= budgets[0].limit * (1 + 1e-12)
    assert best.spent[1] >= budgets[1].limit * (1 - 1e-12)
    # every μ ≥ 0 is an upper bound
    rng = np.random.default_rng(seed)
    for _ in range(5):
        prices = rng.exponential(1.0, 2)
        assert (
            dual_bound(r, c, np.array([1.0, -1.0]), np.array([b.limit for b in budgets]), prices) >= best.value - 1e-9
        )


def test_the_benchmarks_are_ordered_and_context_is_worth_the_difference():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    means = np.array([[0.2, 0.9], [0.5, 0.6], [0.8, 0.3]])
    r = (rng.random((300, 2)) < means[labels]).astype(float)
    c = np.tile([0.0, 1.0], (300, 1))
    budget = Budget(100.0, 1.0)
    rows, classes, mixture = (best_choices(r, c, budget, b, classes=labels) for b in ("rows", "classes", "mixture"))
    assert rows.value > classes.value > mixture.value
    assert max(best.gap for best in (rows, classes, mixture)) < 1e-9
    assert rows.noisy
    assert not classes.noisy
    assert classes.shares.shape == (3, 2)
    assert mixture.regret(mixture.value - 2.5) == pytest.approx(2.5)


def test_a_noisy_row_benchmark_exceeds_what_any_policy_can_have():
    rng = np.random.default_rng(3)
    r = (rng.random((2000, 4)) < 0.5).astype(float)  # all actions alike: a fair coin each
    c = np.zeros((2000, 4))
    best = best_choices(r, c, Budget(1.0, 1.0))
    assert best.noisy
    assert best.value / 2000 == pytest.approx(1 - 0.5**4, abs=0.02)


def test_above_the_cheapest_is_counted_so():
    r, c = instance(5)
    above = best_choices(r, c, Budget(6.0, 1.0, above_cheapest=True))
    plain = best_choices(r, c - c.min(axis=1, keepdims=True), Budget(6.0, 1.0))
    assert above.value == pytest.approx(plain.value)


def test_bad_tables_are_refused():
    r, c = instance(1)
    with pytest.raises(InputError, match="lower than what the cheapest"):
        best_choices(r, c, Budget(1e-3, 1.0))
    with pytest.raises(InputError, match="cannot be met"):
        best_choices(r, c, Budget(1e9, 1.0, kind="at least"))
    with pytest.raises(InputError, match="costs"):
        best_choices(r, c[:5], Budget(1.0, 1.0))
    with pytest.raises(InputError, match="classes"):
        best_choices(r, c, Budget(20.0, 1.0), "classes")


# --- replays --------------------------------------------------------------------------------------------------


def table(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(rows), rng.random(rows)])
    rewards = (rng.random((rows, 2)) < np.column_stack([np.full(rows, 0.4), x[:, 1]])).astype(float)
    return OutcomeTable(x, rewards, np.column_stack([np.full(rows, 0.1), 0.5 + 0.5 * rng.random(rows)]))


def router(data, share=0.3, **options):
    excess = data.costs - data.costs.min(axis=1, keepdims=True)
    budget = Budget(share * float(excess.max(axis=1).sum()), float(excess.max()), above_cheapest=True)
    primal = ThompsonSampling(2, 2, prior_scale=0.5, exploration=1.0)
    return Chooser(PrimalDual(primal, EntropicDual(start=0.3, step=0.02), budget, len(data), replan=True), **options)


def test_a_replay_counts_what_the_chooser_counts():
    data = table()
    made = router(data, seed=1)
    run = replay_outcomes(made, data)
    assert made.spent[0] == pytest.approx(run.counted.sum())
    assert made.spent[0] <= made.rule.budget_set.limit(1)[0]
    assert made.spent[0] >= 0.97 * made.rule.budget_set.limit(1)[0]
    np.testing.assert_array_equal(run.rewards, data.rewards[np.arange(400), run.actions])
    best = best_choices(data.rewards, data.costs, made.rule.budgets)
    assert run.rewards.sum() < best.value


@pytest.mark.slow
def test_late_rewards_are_all_learned_and_labels_help():
    data = table(800)
    prompt, late = router(data, seed=1), router(data, seed=1)
    replay_outcomes(prompt, data)
    replay_outcomes(late, data, max_delay=50, seed=2)
    assert not late.pending
    assert late.spent[0] <= late.rule.budget_set.limit(1)[0]
    labelled = router(data, seed=1)
    replay_outcomes(labelled, data, labelled=300)
    precise = [np.trace(made.state.primal.belief.covariance) for made in (prompt, labelled)]
    assert precise[1] < precise[0]


@pytest.mark.slow
def test_a_log_weighs_another_policy():
    """The log of a learner that changes as it goes values a policy it never played: within four standard errors."""
    data = table(3000, seed=4)
    made = router(data, share=0.6, seed=3)
    run = replay_outcomes(made, data)
    other = np.column_stack([data.contexts[:, 1] < 0.5, data.contexts[:, 1] >= 0.5]).astype(float)
    truth = float((other * data.rewards).sum(axis=1).mean())
    worth = off_policy(run.actions, run.probabilities, run.rewards, other)
    assert abs(worth.value - truth) <= 4 * worth.deviation + 1e-3
    assert worth.deviation < 0.1
    with pytest.raises(InputError, match="never chooses an action that the log chose"):
        off_policy([0, 0], [1.0, 1.0], [1.0, 1.0], [[0.0, 1.0]] * 2)


@pytest.mark.parametrize("action", [-1, 2])
def test_a_log_with_refusals_is_not_weighed_as_if_something_was_played(action):
    with pytest.raises(InputError, match="Leave refused requests"):
        off_policy([0, action], [1.0, 1.0], [1.0, 0.0], [[0.5, 0.5]] * 2)


@pytest.mark.slow
def test_a_fixed_mixture_replayed_without_a_budget_in_the_way():
    data = table(1500, seed=9)
    rule = PrimalDual(FixedMixture((0.5, 0.5)), HedgeDual(), Budget(1000.0, 1.0), 1500, stop=False)
    run = replay_outcomes(Chooser(rule, seed=0), data)
    assert run.actions.mean() == pytest.approx(0.5, abs=0.05)
    assert np.all(run.probabilities == 0.5)


# --- text -----------------------------------------------------------------------------------------------------


def test_words_are_hashed_with_signs_and_counts_are_bounded():
    hashed = WordHash(64)
    x = hashed("What is 2 + 2? _")
    assert x.shape == (hashed.features,)
    assert x[0] == 1.0
    assert np.linalg.norm(x[13:]) == pytest.approx(1.0)
    np.testing.assert_array_equal(x, hashed("What is 2 + 2? _"))
    assert not np.array_equal(x[13:], hashed("Which of these is 2?")[13:])
    for text in ("", "\n" * 10_000, "é" * 500, "x" * 10**6, "\x00\ud800"):
        assert np.all(np.isfinite(hashed(text)))
        assert np.abs(hashed(text)).max() <= 8.0
