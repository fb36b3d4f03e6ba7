"""OGD of Mahdavi, Jin and Yang (2012): by hand, its steps, its theorem, and the paper's table."""

import dataclasses

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import AOGD, InputError, Problem, compare, hindsight, observe, run
from longterm.errors import AssumptionWarning, NonFiniteError
from longterm.learners import MahdaviOGD
from longterm.learners.interface.needs import Need
from longterm.learners.saddle_point.mahdavi_ogd import papers_constraint_bound, smallest_horizon, smallest_root, twice
from longterm.learners.saddle_point.multiplier_rules import OneForTheMaximum, OnePerConstraint
from longterm.problems import doubly_stochastic, two_dimensional
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import RandomCosts, RandomPermutations, Replay
from longterm.theory.paper import lemma_5
from longterm.theory.schedules import ConstantSchedule
from opponents import best_linear, linprog_over, play_against
from zoo import D, sets

SETS = sets()
seeds = st.integers(0, 10**6)

# --- pencil and paper ---------------------------------------------------------------------------------------

CORNER = Problem(Ball(2, radius=2.0), Linear(2, 1.5), Affine([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.25]))
STEPS = ConstantSchedule(theta=0.5, eta=1.0, mu=1.0)  # η = 1, δ = ½
COSTS = [np.array(c) for c in ([-1.0, -1.0], [0.0, -1.0], [0.0, 0.0])]


def play(learner):
    state = learner.init()
    for cost in COSTS:
        state = learner.update(state, observe(CORNER, learner.ask(state), [cost]))
        yield state.x, state.multiplier


def test_first_rounds_with_a_multiplier_for_each_constraint():
    learner = MahdaviOGD(CORNER.enclosing_set, STEPS, duals=OnePerConstraint(2))
    (x2, l2), (x3, l3), (x4, l4) = play(learner)
    np.testing.assert_allclose(x2, [1, 1])
    np.testing.assert_allclose(l2, [0, 0])  # g(0) = (−½, −¼)
    np.testing.assert_allclose(x3, np.array([1, 2]) * 2 / np.sqrt(5))  # (1, 2), pulled back to radius 2
    np.testing.assert_allclose(l3, [0.5, 0.75])  # g(1, 1)
    np.testing.assert_allclose(x4, x3 - l3)
    np.testing.assert_allclose(l4, l3 + (x3 - [0.5, 0.25] - 0.5 * l3))


def test_first_rounds_with_one_multiplier_for_the_maximum():
    learner = MahdaviOGD(CORNER.enclosing_set, STEPS, duals=OneForTheMaximum())
    (x2, l2), (x3, l3), (x4, l4) = play(learner)
    np.testing.assert_allclose(x2, [1, 1])
    assert l2 == 0
    assert l3 == 0.75  # max(½, ¾)
    np.testing.assert_allclose(x4, x3 - [0, 0.75])  # the second constraint is the larger at x_3 too
    assert l4 == pytest.approx(0.75 + x3[1] - 0.25 - 0.5 * 0.75)


def test_the_aggregate_form_is_aogd_with_constant_steps():
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    learner = MahdaviOGD.for_problem(problem, horizon=200)
    ours, theirs = (
        run(problem, rule, stream, 200, seeds=range(3))
        for rule in (learner, AOGD(problem.enclosing_set, learner.schedule))
    )
    np.testing.assert_array_equal(ours.state.x, theirs.state.x)
    np.testing.assert_array_equal(ours.signed_violation, theirs.signed_violation)


def test_a_grid_of_steps_is_a_batch():
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    etas = np.array([0.01, 0.02])
    grid, *alone = (
        MahdaviOGD(problem.enclosing_set, ConstantSchedule(0.5 * eta, eta, eta), duals=OnePerConstraint(21))
        for eta in (etas, *etas.tolist())
    )
    together = run(problem, grid, stream, 60, seeds=range(2))
    assert together.multiplier.shape[1:] == (2, 2, 21)
    for i, learner in enumerate(alone):
        single = run(problem, learner, stream, 60, seeds=1)
        np.testing.assert_allclose(together.cumulative_loss[:, i, 1], single.cumulative_loss, atol=1e-9)


# --- the steps ----------------------------------------------------------------------------------------------


FACTS = {
    "radius": 2.0,
    "diameter": 4.0,
    "loss_gradient_bound": 3.0,
    "constraint_gradient_bound": 1.0,
    "constraint_bound": 5.0,
    "loss_range": 7.0,
}


def declaring(count, **changed):
    """A problem with `count` constraints and these constants."""
    affine = Affine(np.ones((count, 2)), np.ones(count))
    return Problem(Ball(2), Linear(2), affine, declared={**FACTS, **changed})


@given(need=st.floats(1e-3, 1e3), share=st.floats(1e-12, 1.0))
def test_delta_solves_its_equation_and_twice_is_enough_exactly_where_it_exists(need, share):
    eta = np.sqrt(share / (8 * need))
    delta = smallest_root(need, eta)
    assert delta == pytest.approx(need + 2 * delta**2 * eta**2, rel=1e-7)
    assert need <= delta <= twice(need, eta) * (1 + 1e-6)
    assert twice(need, eta) >= (need + 2 * twice(need, eta) ** 2 * eta**2) * (1 - 1e-12)
    beyond = eta * np.sqrt(1.01 / share)
    assert twice(need, beyond) < need + 2 * twice(need, beyond) ** 2 * beyond**2


def test_a_horizon_without_delta_is_refused_with_the_shortest_that_has_one():
    problem = Problem(Ball(2, radius=10.0), Linear(2, 100.0), Affine([[1e-3, 0.0]], [0.0]))
    with pytest.raises(InputError, match=r"horizon: 100 rounds are too few.* Give at least (\d+)") as refused:
        MahdaviOGD.for_problem(problem, horizon=100)
    least = smallest_horizon(problem.constants, 1)
    assert str(least) in refused.value.remedy
    MahdaviOGD.for_problem(problem, horizon=least)
    with pytest.raises(InputError):
        MahdaviOGD.for_problem(problem, horizon=least - 1)
    # The condition as printed, 2√2 η (m + 1) ≤ 1, lost G: it holds here at T = 100, where no δ exists.
    a = 10.0 * np.sqrt(2 * 100.0**2)
    assert 2 * np.sqrt(2) * 100.0 / (a * 10) * 2 <= 1
    # The simple δ can always be computed: it plays, and the loop warns.
    simple = MahdaviOGD.for_problem(problem, horizon=100, delta="twice")
    with pytest.warns(AssumptionWarning, match="does not hold"):
        run(problem, simple, RandomCosts(2, 100.0), 5)


@pytest.mark.parametrize("count", [1, 5])
def test_the_bound_at_the_tuned_horizon_is_theorem_4(count):
    """a √T, and √(2 (F T + a √T) √T (δ r²/a + a/r²)), a = r √((m + 1) G² + 2 m D²)."""
    problem = Problem(Box.cube(3, -1, 2), Linear(3, 2.0), Affine(np.eye(3)[[0, 1, 2, 0, 1]][:count], np.ones(count)))
    learner, T, c = MahdaviOGD.for_problem(problem, horizon=5000, multipliers="each"), 5000, problem.constants
    a = c.radius * np.sqrt((count + 1) * c.gradient_bound**2 + 2 * count * c.constraint_bound**2)
    delta = smallest_root((count + 1) * c.gradient_bound**2, c.radius**2 / (a * np.sqrt(T)))
    share = np.sqrt(T) * (delta * c.radius**2 / a + a / c.radius**2)
    closed = np.sqrt(2 * (c.loss_range * T + a * np.sqrt(T)) * share)
    exact, violation = learner.bound(problem, T), "signed_violation" if count == 1 else "long_term_violation"
    assert set(exact) == {"regret", violation}
    assert float(exact["regret"]) == pytest.approx(a * np.sqrt(T))
    assert closed * 0.999 < float(exact[violation]) <= closed
    if count == 1:
        lemma = lemma_5(learner.schedule, problem.constants, T)
        assert (float(lemma.regret), float(lemma.violation)) == (float(exact["regret"]), float(exact[violation]))


def test_more_multipliers_than_the_steps_were_made_for_are_noticed():
    problem = doubly_stochastic(3)
    steps = MahdaviOGD.for_problem(problem, horizon=1000).schedule
    learner = MahdaviOGD(problem.enclosing_set, steps, duals=OnePerConstraint(21))
    assert not learner.assumptions[0].holds
    bound = learner.bound(problem, 1000)
    assert not bound
    assert "C2" in bound.reason


# --- the bound ----------------------------------------------------------------------------------------------


KINDS = st.sampled_from(["random", "switching", "adaptive", "pushing"])


@given(seed=seeds, rounds=st.integers(1, 120), horizon=st.integers(150, 3000), kind=KINDS, count=st.integers(1, 4))
def test_theorem_4_holds_for_both_forms_on_a_box(seed, rounds, horizon, kind, count):
    rng = np.random.default_rng(seed)
    B = SETS["box"]
    matrix = rng.standard_normal((count, D))
    inside = B.sample(rng, 3).mean(axis=0)
    problem = Problem(B, Linear(D, 2.0), Affine(matrix, matrix @ inside + rng.uniform(0, 0.1, count)))
    for learner in (
        MahdaviOGD.for_problem(problem, horizon=horizon, multipliers="each"),
        MahdaviOGD.for_problem(problem, horizon=horizon, delta="twice"),
    ):
        costs, loss, sums, worst = play_against(problem, learner, kind, rounds, seed)
        regret = loss - linprog_over(B, matrix, problem.constraint.limit, costs.sum(axis=0))
        bound = learner.bound(problem, rounds)
        assert regret <= float(bound["regret"]) * (1 + 1e-9)
        if learner.duals.count == count > 1:
            assert np.linalg.norm(np.maximum(sums, 0)) <= float(bound["long_term_violation"]) * (1 + 1e-9)
        else:
            assert worst <= float(bound["signed_violation"]) * (1 + 1e-9)


@pytest.mark.parametrize("name", SETS)
@examples(30)
@given(seed=seeds, rounds=st.integers(1, 120), kind=KINDS)
def test_theorem_4_holds_on_every_set(name, seed, rounds, kind):
    rng, B = np.random.default_rng(seed), SETS[name]
    row = rng.standard_normal((1, D))
    problem = Problem(B, Linear(D, 2.0), Affine(row, row @ B.sample(rng, 3).mean(axis=0)))
    least = smallest_horizon(problem.constants, 1)
    learner = MahdaviOGD.for_problem(problem, horizon=max(rounds, least), multipliers="each")
    costs, loss, sums, _ = play_against(problem, learner, kind, rounds, seed)
    regret = loss - best_linear(B, row, problem.constraint.limit, costs.sum(axis=0))
    bound = learner.bound(problem, rounds)
    assert regret <= float(bound["regret"]) * (1 + 1e-9)
    assert float(sums[0]) <= float(bound["signed_violation"]) * (1 + 1e-9)


@pytest.mark.slow
@examples(30)
@given(seed=seeds, kind=KINDS)
def test_constraints_may_change_against_a_point_feasible_in_every_round(seed, kind):
    rng = np.random.default_rng(seed)
    T, d = 120, 3
    normals = rng.standard_normal((T, 2, d))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    comparator = rng.uniform(-0.5, 0.5, d)
    offsets = np.clip(normals @ comparator, -1.0, 1.0)  # the comparator lies on every boundary
    problem = Problem(Ball(d, radius=2.0), Linear(d), VaryingAffine(d, 2, row_norm=1.0, limit_bound=1.0))
    for learner in (
        MahdaviOGD.for_problem(problem, horizon=T, multipliers="each"),
        MahdaviOGD.for_problem(problem, horizon=T),
    ):
        costs, loss, sums, worst = play_against(problem, learner, kind, T, seed, (normals, offsets))
        bound = learner.bound(problem, T)
        assert loss - float((costs @ comparator).sum()) <= float(bound["regret"])
        if learner.duals.shape:
            assert np.linalg.norm(np.maximum(sums, 0)) <= float(bound["long_term_violation"])
        else:
            assert worst <= float(bound["signed_violation"])


# --- the paper's table --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_three_convex_ogd_rows_of_the_table():
    problem, stream = doubly_stochastic(8), RandomPermutations(8)
    stated = dataclasses.replace(problem, declared={"constraint_bound": 8**0.5})  # the D of the paper, which is wrong
    learners = {
        "one counted as 96": MahdaviOGD.for_problem(
            problem, horizon=1000, multipliers="paper", constraint_bound=8**0.5
        ),
        "vector": MahdaviOGD.for_problem(stated, horizon=1000, multipliers="each", delta="twice"),
        "aggregate": MahdaviOGD.for_problem(stated, horizon=1000, delta="twice"),
    }
    traces = compare(problem, learners, stream, 1000, seeds=range(10), record=[1000])
    best = hindsight.best(problem, stream, [1000], seeds=range(10))
    wanted = {"one counted as 96": (168.0, 527), "vector": (83.0, 257), "aggregate": (38.9, 64)}
    for name, (regret, violation) in wanted.items():
        assert traces[name].regret(best)[-1].mean() == pytest.approx(regret, rel=0.02)
        assert traces[name].signed_violation[-1].mean() == pytest.approx(violation, rel=0.02)


def test_the_mixed_instantiation_is_reached_by_its_name_only():
    problem = doubly_stochastic(8)
    mixed = MahdaviOGD.for_problem(problem, horizon=1000, multipliers="paper", constraint_bound=8**0.5)
    assert isinstance(mixed.duals, OneForTheMaximum)
    assert mixed.schedule.eta == pytest.approx(0.001313, rel=1e-3)
    assert mixed.schedule.theta / mixed.schedule.eta == pytest.approx(6208)
    assert MahdaviOGD.for_problem(problem, horizon=1000).schedule.eta > 4 * mixed.schedule.eta
    stated = MahdaviOGD.for_problem(problem, horizon=1000, multipliers="paper", constraint_bound="paper")
    assert stated.schedule.eta == mixed.schedule.eta
    exact = MahdaviOGD.for_problem(problem, horizon=1000, multipliers="paper")
    assert exact.schedule.eta < mixed.schedule.eta  # the true D is larger


def test_the_d_that_the_paper_states():
    assert papers_constraint_bound(doubly_stochastic(8)) == pytest.approx(8**0.5)
    with pytest.raises(InputError, match="states no D"):
        MahdaviOGD.for_problem(two_dimensional(), horizon=100, constraint_bound="paper")


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"multipliers": "two"}, "multipliers"),
        ({"delta": "thrice"}, "delta"),
        ({"constraint_bound": -1.0}, "constraint_bound"),
    ],
)
def test_settings_that_are_not_known_are_refused(options, argument):
    with pytest.raises(InputError) as refused:
        MahdaviOGD.for_problem(CORNER, horizon=100, **options)
    assert refused.value.argument == argument


# --- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "error", "argument"),
    [
        ({"pullback": None}, InputError, "pullback"),
        ({"constraint_values": None}, InputError, "constraint_values"),
        ({"constraint_values": np.zeros(3)}, InputError, "constraint_values"),
        ({"constraint_values": np.zeros(2, dtype=np.float32)}, InputError, "constraint_values"),
        ({"constraint_values": np.array([np.nan, 0.0])}, NonFiniteError, "constraint_values"),
        ({"loss_gradient": np.array([np.inf, 0.0])}, NonFiniteError, "loss_gradient"),
    ],
)
def test_tell_refuses_what_a_vector_of_multipliers_cannot_use(changed, error, argument):
    learner = MahdaviOGD.for_problem(CORNER, horizon=100, multipliers="each")
    state = learner.init()
    good = observe(CORNER, learner.ask(state), [COSTS[1]])
    with pytest.raises(error) as refused:
        learner.tell(state, good._replace(**changed))
    assert (refused.value.argument, refused.value.round) == (argument, 1)
    assert int(learner.tell(state, good).round) == 2


@pytest.mark.parametrize("horizon", [0, -3, 2.5, True, "10"])
def test_a_horizon_is_a_whole_number_of_rounds(horizon):
    with pytest.raises(InputError, match="horizon"):
        MahdaviOGD.for_problem(CORNER, horizon=horizon, multipliers="each")


def test_it_says_that_it_needs_the_horizon():
    assert MahdaviOGD.needs == {Need.HORIZON}


def test_strict_arrays_through_tell():
    learner, problem = MahdaviOGD.for_problem(two_dimensional(), horizon=100, multipliers="each"), two_dimensional()
    ours, strict = learner.init(), learner.init(xp=array_api_strict)
    for target in np.random.default_rng(1).uniform(-0.5, 0.5, (20, 2)):
        ours = learner.tell(ours, observe(problem, ours.x, [target]))
        strict = learner.tell(strict, observe(problem, strict.x, [array_api_strict.asarray(target)]))
    np.testing.assert_allclose(np.asarray(strict.multiplier), ours.multiplier, atol=1e-14)


def test_a_replayed_stream_gives_the_same_run_as_tell():
    learner = MahdaviOGD.for_problem(CORNER, horizon=100, multipliers="each")
    trace = run(CORNER, learner, Replay([np.array(COSTS)]))
    state = learner.init()
    for cost in COSTS:
        state = learner.tell(state, observe(CORNER, state.x, [cost]))
    np.testing.assert_array_equal(trace.state.x, state.x)
