"""Return on spend: by hand, violation below its bound on every sequence, guarded never below."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from hypothesis_settings import examples
from longterm import InputError
from longterm.errors import NonFiniteError, OverspentWarning
from longterm.money import Auctions, Outcome, ReturnOnSpend, best_in_hindsight, best_return, replay_auctions
from longterm.money.pacing.landscapes import SeenPrices

RULES = ("joint", "guarded")


def pacer(rule="joint", *, horizon=200, budget=None, target=1.0, **options):
    return ReturnOnSpend(target, horizon, largest_value=10.0, largest_bid=20.0, budget=budget, rule=rule, **options)


def test_rounds_by_hand():
    made = pacer(budget=400.0, step=0.1, price_step=0.2, start=0.5)
    state = made.init()
    assert made.act(state, 4.0) == pytest.approx(4.0 * 1.5 / 0.5)
    state = made.settle(state, Outcome(6.0, 4.0, won=True))
    assert state.slack.value == pytest.approx(-2.0)
    assert state.multiplier == pytest.approx(0.5 * np.exp(0.2))
    assert state.price == pytest.approx(0.2 * (6 - 2))
    lam, mu = state.multiplier, state.price
    assert made.act(state, 4.0) == pytest.approx(4.0 * (1 + lam) / (lam + mu))
    assert pacer("guarded").act(state, 4.0) == pytest.approx(4.0)  # no slack: at most the value
    assert made.act(state, 10.0) <= 20.0


def test_a_target_divides_values():
    made, plain = pacer(target=2.0, step=0.01), ReturnOnSpend(1.0, 200, 5.0, 20.0, step=0.01)
    assert made.act(made.init(), 8.0) == plain.act(plain.init(), 4.0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["charged in full", "second price", "worthless then dear", "free then charged"])
@pytest.mark.parametrize("budget", [None, 500.0])
def test_the_violation_is_below_its_bound_on_adversarial_sequences(rule, kind, budget):
    T = 3000
    made = pacer(rule, horizon=T, budget=budget)
    rng = np.random.default_rng(2)
    state, worst = made.init(), 0.0
    for t in range(T):
        value = {"worthless then dear": 0.1 if t < T / 2 else 10.0}.get(kind, 10.0 * rng.random())
        bid = made.act(state, value)
        if kind == "second price":
            market = 12 * rng.random()
            won, paid = bid >= market, market
        elif kind == "free then charged":  # λ is lulled to nothing, then every win costs its bid
            won, paid = True, 0.0 if t < T / 3 else bid
        else:
            won, paid = True, bid
        state = made.settle(state, Outcome(paid if won else 0.0, value, won=bool(won)))
        worst = max(worst, -state.slack.value)
    assert worst <= made.violation_bound() + 1e-9
    if rule == "guarded":
        assert worst <= 1e-9
    elif kind == "charged in full" and budget is None:
        assert worst > 0.3 * made.violation_bound()  # the bound is not far from the truth
    if budget is not None:
        assert made.remaining(state) >= -1e-9


@pytest.mark.parametrize("rule", RULES)
@examples(80)
@given(
    rounds=st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1), st.booleans()), min_size=1, max_size=80),
    budget=st.one_of(st.none(), st.floats(1, 500)),
    first_price=st.booleans(),
)
def test_no_sequence_breaks_a_promise(rule, rounds, budget, first_price):
    """Any wins, any charge up to the bid: the bound, the guard and the budget hold after every auction."""
    landscape = SeenPrices(np.arange(21.0)) if first_price else None
    made = pacer(rule, horizon=len(rounds), budget=budget, landscape=landscape)
    state, total = made.init(), 0.0
    for value, share, won in rounds:
        bid = made.act(state, value)
        paid = bid * share if won else 0.0
        state = made.settle(state, Outcome(paid, value, share * 20, bid, won))
        total += paid
        assert -state.slack.value <= made.violation_bound() + 1e-9
        assert budget is None or total <= budget * (1 + 1e-12)


@pytest.mark.parametrize("budget", [None, 4000.0])
def test_regret_is_below_the_theorem_on_iid_auctions(budget):
    T, regrets = 4000, []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        values, prices = 10 * rng.random(T), 15 * rng.random(T)
        made = ReturnOnSpend(1.0, T, 10.0, 15.0, budget=budget)
        run = replay_auctions(made, Auctions(values, prices))
        best = best_return(values, prices, 1.0, budget)
        assert best.upper_bound - best.value <= 1e-6 * best.value
        regrets.append(best.value - run.value)
        assert -made.slack(run).min() <= made.violation_bound()
    assert np.mean(regrets) <= made.regret_bound()
    assert np.mean(regrets) < 0.05 * best.value


def test_hindsight_is_certified_and_keeps_both_constraints():
    rng = np.random.default_rng(0)
    for _ in range(10):
        v, c = 5 * rng.random(200), 8 * rng.random(200)
        for target, budget in ((1.0, None), (1.3, 150.0), (0.5, 100.0)):
            best = best_return(v, c, target, budget)
            assert -1e-8 <= best.upper_bound - best.value <= 1e-6 * max(best.value, 1.0)
            assert v @ best.taken - target * (c @ best.taken) >= -1e-9 * best.value
            assert budget is None or c @ best.taken <= budget * (1 + 1e-12)
    loose = best_return(v, c, 1e-6, 100.0)
    assert loose.value == pytest.approx(best_in_hindsight(v, c, 100.0).objective, rel=1e-6)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12),
    st.sampled_from([0.5, 1.0, 1.7]),
    st.sampled_from([None, 0.5, 3.0, 100.0]),
)
def test_hindsight_is_that_of_a_general_solver(pairs, target, budget):
    v, c = np.array(pairs, dtype=float).T
    best = best_return(v, c, target, budget)
    rows, limits = [target * c - v], [0.0]
    if budget is not None:
        rows.append(c)
        limits.append(budget)
    solved = linprog(-v, A_ub=np.array(rows), b_ub=limits, bounds=(0, 1))
    assert best.value == pytest.approx(-solved.fun, abs=1e-8)
    assert abs(best.upper_bound - best.value) <= 1e-9 * (1 + best.value)
    assert v @ best.taken - target * (c @ best.taken) >= -1e-10 * (1 + best.value)
    assert np.all((best.taken >= 0) & (best.taken <= 1))
    assert np.sum((best.taken > 0) & (best.taken < 1)) <= 1


def test_auctions_at_exactly_the_target_are_taken():
    costs = np.random.default_rng(1).random(1000)
    best = best_return(0.3 * costs, costs, 0.3)
    assert best.value == pytest.approx(best.upper_bound, rel=1e-12)
    assert best.value == pytest.approx(0.3 * costs.sum())


def test_hindsight_refuses_negative_numbers():
    with pytest.raises(InputError, match="negative"):
        best_return([1.0, -1.0], [1.0, 1.0], 1.0)


def test_values_above_the_largest_do_not_break_the_bound():
    pacer = ReturnOnSpend(2.0, 300, largest_value=1.0, largest_bid=10.0)
    state, worst = pacer.init(), 0.0
    for _ in range(300):
        bid = pacer.act(state, 8.0)
        state = pacer.settle(state, Outcome(bid, 1.0, won=True))  # bought as 8, and worth 1
        worst = min(worst, state.slack.value)
    assert -worst <= pacer.violation_bound()


def test_guarded_is_never_below_to_the_last_bit():
    rng = np.random.default_rng(3)
    pacer = ReturnOnSpend(3.3, 2000, largest_value=1.0, largest_bid=7.0, rule="guarded")
    state, slack = pacer.init(), Fraction(0)
    for value in rng.random(2000).tolist():
        bid = pacer.act(state, value)
        paid = bid if rng.random() < 0.5 else 0.0  # the bid itself, or a gift that makes the slack larger
        state = pacer.settle(state, Outcome(paid, value, won=True))
        slack += Fraction(value) - Fraction(3.3) * Fraction(paid)
        assert slack >= 0
        assert state.slack.value >= 0


@pytest.mark.parametrize("rule", RULES)
def test_what_was_spent_is_spent_and_open_bids_are_held_back(rule):
    made = pacer(rule, budget=20.0)
    state = made.init()
    assert made.act(state, 4.0) > 0
    assert made.act(state, 4.0, hold=18.5) == 1.5
    state = made.settle(state, Outcome(3.0, 4.0, won=True))
    with pytest.warns(OverspentWarning, match="paid in round 2: 1e[+]50 is more than the money that was left"):
        state = made.settle(state, Outcome(1e50, 4.0, won=True))
    assert made.overspent(state) == 1e50
    assert np.isfinite(state.multiplier)
    assert made.act(state, 4.0) == 0.0


def test_a_guarded_return_is_kept_with_answers_outstanding():
    made = pacer("guarded")
    state = made.settle(made.init(), Outcome(1.0, 9.0, won=True))  # a slack of 8
    first = made.act(state, 1.0)
    second = made.act(state, 1.0, hold=first)
    for paid in (first, second):
        state = made.settle(state, Outcome(paid, 1.0, won=True))
    assert state.slack.value >= 0


def test_what_is_not_covered_says_so():
    with pytest.raises(InputError, match="no regret theorem"):
        pacer("guarded").regret_bound()
    with pytest.raises(InputError, match="step"):
        pacer(step=0.1).regret_bound()
    with pytest.raises(InputError, match="rule"):
        pacer("sequential")
    made = pacer()
    with pytest.raises(NonFiniteError, match="value in round 1"):
        made.act(made.init(), np.inf)
    with pytest.raises(InputError, match="paid in round 1"):
        made.settle(made.init(), Outcome(-1.0, 1.0, won=True))
