"""Mirror prox: by hand, its condition, its theorem, the paper's table, and why it looks linear there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import InputError, Problem, SlaterPoint, hindsight, observe, run
from longterm.errors import AssumptionWarning
from longterm.learners import MirrorProx, NoViolationMirrorProx
from longterm.learners.saddle_point.mirror_prox import mirror_prox_steps, unit_rows
from longterm.problems import budgeted_logistic, doubly_stochastic, two_dimensional
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import RandomCosts, RandomPermutations, Replay
from opponents import linprog_over, play_against
from zoo import D, sets

BOX = sets()["box"]
seeds = st.integers(0, 10**6)


def test_first_rounds_by_hand():
    # g = 2x − 1 on [−4, 4]: with rows of length 1, x − ½. η = ½, δη = ¼.
    problem = Problem(Ball(1, radius=4.0), Linear(1), Affine([[2.0]], [1.0]))
    learner = MirrorProx(problem.enclosing_set, unit_rows(problem), mirror_prox_steps(0.5, 0.5))
    state = learner.init()
    assert (state.x.tolist(), state.multiplier.tolist()) == ([0], [0])  # λ_1 = [0 + ½(0 − ½)]₊
    seen = []
    for cost in (-1.0, -1.0, -1.0):
        state = learner.tell(state, observe(problem, learner.ask(state), [np.array([cost])]))
        seen.append([float(part[0]) for part in (state.anchor, state.anchor_multiplier, state.x, state.multiplier)])
    # z_2 = ½, μ_2 = [½(0 − ½)]₊ = 0; x_2 = ½, λ_2 = [½(½ − ½)]₊ = 0
    assert seen[0] == [0.5, 0, 0.5, 0]
    # z_3 = 1, μ_3 = ½(½ − ½) = 0; x_3 = 1, λ_3 = ½(1 − ½) = ¼
    assert seen[1] == [1, 0, 1, 0.25]
    # z_4 = 1 − ½(−1 + ¼) = 1.375, μ_4 = ½(1 − ½ − ¼·¼) = 0.21875;
    # x_4 = 1.375 − ½·0.21875, λ_4 = 0.21875 + ½(1.375 − ½ − ¼·0.21875)
    assert seen[2] == [1.375, 0.21875, 1.265625, 0.21875 + 0.5 * (0.875 - 0.0546875)]


def test_the_trace_keeps_the_problems_own_constraint():
    problem = Problem(Ball(1, radius=4.0), Linear(1), Affine([[2.0]], [1.0]))
    trace = run(
        problem, MirrorProx.for_problem(problem, horizon=1000), Replay([np.full((20, 1), -1.0)]), record=[1, 20]
    )
    assert trace.per_constraint_violation[0].tolist() == [-1.0]  # 2·0 − 1, not −½


def test_rows_are_normalised():
    scaled = Affine(np.diag([3.0, 0.5]), [1.0, 1.0])
    rows = unit_rows(Problem(Ball(2), Linear(2), scaled))
    np.testing.assert_allclose(rows.matrix, np.eye(2))
    np.testing.assert_allclose(rows.limit, [1 / 3, 2.0])
    with pytest.raises(InputError, match="row 1 of A is zero"):
        unit_rows(Problem(Ball(2), Linear(2), Affine([[1.0, 0.0], [0.0, 0.0]], [1.0, 1.0])))


def test_its_condition_goes_through_the_largest_singular_value():
    problem = doubly_stochastic(8)
    assert np.linalg.norm(unit_rows(problem).matrix, 2) ** 2 == pytest.approx(5)
    assert not MirrorProx.for_problem(problem, horizon=31).assumptions[0].holds
    assert MirrorProx.for_problem(problem, horizon=32).assumptions[0].holds
    with pytest.warns(AssumptionWarning, match="2η²"):
        run(problem, MirrorProx.for_problem(problem, horizon=31), RandomPermutations(8), 3)
    bound = MirrorProx.for_problem(problem, horizon=31).bound(problem, 31)
    assert not bound
    assert "2η²" in bound.reason


@given(
    seed=seeds,
    rounds=st.integers(1, 100),
    share=st.floats(0.02, 1.0),
    delta=st.floats(0.01, 2.0),
    count=st.integers(1, 6),
    kind=st.sampled_from(["random", "switching", "adaptive", "pushing"]),
)
def test_theorem_12_holds_as_soon_as_the_condition_does(seed, rounds, share, delta, count, kind):
    """share = 2η²(σ_max² + δ²η²): above ½, the stronger condition with a 4 in it fails, and the theorem holds."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((count, D)) * rng.uniform(0.3, 3, (count, 1))
    inside = BOX.sample(rng, 3).mean(axis=0)
    problem = Problem(BOX, Linear(D, 2.0), Affine(matrix, matrix @ inside + rng.uniform(0, 0.1, count)))
    square = np.linalg.norm(unit_rows(problem).matrix, 2) ** 2
    eta = np.sqrt(share / (square + np.sqrt(square**2 + 2 * share * delta**2)))  # the positive root, in η²
    learner = MirrorProx(BOX, unit_rows(problem), mirror_prox_steps(eta, delta))
    assert learner.assumptions[0].value == pytest.approx(share)
    costs, loss, sums, _ = play_against(problem, learner, kind, rounds, seed)
    regret = loss - linprog_over(BOX, matrix, problem.constraint.limit, costs.sum(axis=0))
    bound = learner.bound(problem, rounds)
    each = float(bound["long_term_violation"])
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    unit = np.linalg.norm(np.maximum(sums / np.linalg.norm(matrix, axis=1), 0))
    assert unit <= each / problem.constants.constraint_gradient_bound * (1 + 1e-9)
    assert float(sums.max()) <= each * (1 + 1e-9)


def test_theorem_12_by_hand():
    problem, T = doubly_stochastic(8), 1000
    bound = MirrorProx.for_problem(problem, horizon=T).bound(problem, [500, T])
    assert bound["regret"][1] == pytest.approx(8 * 10 / 2 + 32 * 100)
    unit = np.sqrt((1 + 10) * (8 * 10 + 2 * 32 * 100 + 2 * 16 * T))
    assert bound["long_term_violation"][1] == pytest.approx(unit * np.sqrt(8))


# --- the paper's table and its noise floor ------------------------------------------------------------------


def test_the_mirror_prox_row_of_the_table():
    problem, stream = doubly_stochastic(8), RandomPermutations(8)
    trace = run(problem, MirrorProx.for_problem(problem, horizon=1000), stream, 1000, seeds=range(10), record=[1000])
    best = hindsight.best(problem, stream, [1000], seeds=range(10))
    assert trace.regret(best)[-1].mean() == pytest.approx(188.1, rel=0.02)
    assert trace.signed_violation[-1].mean() == pytest.approx(8.21, rel=0.02)


def excess(problem, stream, learner, rounds, spread):
    """What each of the later rounds costs more than the mean target, on average over 40 runs."""
    trace = run(problem, learner, stream, rounds, seeds=range(40), record=[rounds // 2, rounds])
    later = rounds - rounds // 2
    return (trace.cumulative_loss[1] - trace.cumulative_loss[0]).mean() / later - spread / 2


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [400, 1000, pytest.param(4000, marks=pytest.mark.cross)])
def test_a_constant_step_leaves_a_noise_floor_whatever_T_is(rounds):
    """x follows Σ_k η(1 − η)^k Y_{t−k}, of variance η/(2 − η) times that of Y, which is p − 1: half of it is lost."""
    p, eta = 8, 0.1
    problem = doubly_stochastic(p)
    learner = MirrorProx(problem.enclosing_set, unit_rows(problem), mirror_prox_steps(eta, 0.01))
    floor = eta / (2 - eta) * (p - 1) / 2  # 0.184
    found = excess(problem, RandomPermutations(p), learner, rounds, p - 1)
    assert found == pytest.approx(floor, rel=0.06)


def test_the_floor_is_there_even_where_T_is_as_large_as_the_article_asks():
    """One constraint: 164 (m + 1)³ = 1312 rounds are enough for the article, and the floor has not gone away."""
    T = 2000
    assert T >= 164 * 2**3
    problem = Problem(Ball(3), SquaredDistance(3), Affine([[1.0, 0.0, 0.0]], [0.5]))
    learner = MirrorProx.for_problem(problem, horizon=T)
    eta = T ** (-1 / 3)
    found = excess(problem, RandomCosts(3), learner, T, 1.0)  # targets uniform on the sphere: mean 0, variance 1
    assert found == pytest.approx(eta / (2 - eta) / 2, rel=0.1)


# --- without violation --------------------------------------------------------------------------------------


class Pushing(RandomCosts):
    """Costs that all point the same way, with some noise: out of {x_1 ≤ …}."""

    def expand(self, drawn):
        drawn = drawn * 0.5
        drawn[:, 0] -= 1.0
        return super().expand(drawn)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_no_violation_ends_with_none(scale):
    matrix = scale * np.array([[1.0, 0.0], [0.6, 0.8]])
    B = Box.cube(2, -1.0, 1.0)
    problem = Problem(B, Linear(2), Affine(matrix, scale * np.array([0.25, 0.3])))
    T, stream = 3000, Pushing(2)
    learner = NoViolationMirrorProx.for_problem(problem, horizon=T)
    assert all(assumption.holds for assumption in learner.assumptions)
    trace, plain = (
        run(problem, rule, stream, T, seeds=range(20), record=[T])
        for rule in (learner, MirrorProx.for_problem(problem, horizon=T))
    )
    assert plain.per_constraint_violation[-1].max() > 0  # the margin is needed
    assert np.all(trace.per_constraint_violation[-1] <= 0)
    bound = learner.bound(problem, T)
    assert float(bound["long_term_violation"]) == 0
    totals = [stream.draw(seed, 0, T).loss[0].sum(axis=0) for seed in range(20)]
    best = np.array([linprog_over(B, matrix, problem.constraint.limit, total) for total in totals])
    assert np.all(trace.cumulative_loss[-1] - best <= float(bound["regret"]))


def test_no_violation_too_early_is_noticed():
    learner = NoViolationMirrorProx.for_problem(two_dimensional(), horizon=5)
    assert learner.gamma == pytest.approx(1.25)  # no larger than ε
    assert [assumption.holds for assumption in learner.assumptions] == [True, False, False]
    with pytest.warns(AssumptionWarning, match="γ = 2√"):
        run(two_dimensional(), learner, RandomCosts(2), 3)


def test_the_slack_is_counted_in_rows_of_length_one():
    problem = Problem(Ball(2), Linear(2), Affine([[4.0, 0.0]], [1.0]))
    assert NoViolationMirrorProx.for_problem(problem, horizon=1000).slater.epsilon == pytest.approx(1.25)
    assert NoViolationMirrorProx.for_problem(problem, horizon=1000, slater=SlaterPoint(0.5)).slater.epsilon == 0.5


# --- refusals -----------------------------------------------------------------------------------------------


def test_it_refuses_what_its_theory_does_not_allow():
    curved = budgeted_logistic(np.ones((3, 2)), budget=1.0)
    varying = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, row_norm=1.0, limit_bound=1.0))
    flat = Problem(Ball(2), Linear(2), Affine([[1.0, 0.0]], [0.5]))
    for problem, reason in ((curved, "affine"), (varying, "same constraint in every round")):
        with pytest.raises(InputError, match=reason):
            MirrorProx.for_problem(problem, horizon=100)
        with pytest.raises(InputError, match=reason):
            run(problem, MirrorProx.for_problem(flat, horizon=100), RandomCosts(2), 10)
    with pytest.raises(InputError, match="no interior"):
        NoViolationMirrorProx.for_problem(doubly_stochastic(3), horizon=1000)
    with pytest.raises(InputError, match="horizon"):
        MirrorProx.for_problem(flat, horizon=0)
    with pytest.raises(InputError, match="rounds"):
        MirrorProx.for_problem(flat, horizon=100).bound(flat, 0)
