"""Polyak feasibility steps: by hand, feasible in every round, its regret, and what a longer step does."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import InputError, Problem, SlaterPoint, observe, run
from longterm.errors import AssumptionWarning
from longterm.learners import PolyakFeasibility
from longterm.learners.projected.polyak_feasibility import best_margin, feasible_regret, safe_step
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine, ElasticNetBudget, L2Budget, Stack, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import RandomCosts
from opponents import KINDS, best_in_box, play_linear, regret_in_a_ball, slope

seeds, horizons = st.integers(0, 10**6), st.integers(1, 300)
LEFT = SlaterPoint(1.25, np.array([-1.0, 0.0]))


def test_first_rounds_by_hand():
    problem = two_dimensional()  # g = x₁ − ¼, the unit disc
    learner = PolyakFeasibility(problem.enclosing_set, LEFT, eta=0.5, margin=0.5)
    state = learner.init()
    np.testing.assert_array_equal(learner.ask(state), [-1.0, 0.0])
    state = learner.tell(state, observe(problem, state.x, [np.array([1.0, 0.8])]))
    # y = (−1, 0) + ½ (2, 0.8) = (0, 0.4) has g + ϱ = ¼: back by ¼ along s = (1, 0).
    np.testing.assert_allclose(state.x, [-0.25, 0.4])
    state = learner.tell(state, observe(problem, state.x, [np.array([-0.75, 0.4])]))
    # y = (−½, 0.4) is inside {g + ϱ ≤ 0}: nothing is taken back.
    np.testing.assert_allclose(state.x, [-0.5, 0.4])


def test_the_step_goes_by_the_square_of_the_slope():
    problem = Problem(Box.cube(1, -9.0, 9.0), Linear(1, 9.0), Affine([[3.0]], [0.0]))
    learner = PolyakFeasibility(problem.enclosing_set, SlaterPoint(27.0, np.array([-9.0])), eta=1.0, margin=0.6)
    state = learner.tell(learner.init(), observe(problem, np.array([-9.0]), [np.array([-9.0])]))
    np.testing.assert_allclose(state.x, [-0.2])  # y = 0 has 3y + ϱ = 0.6: back by 0.6/9 · 3


def thin_problem(which, rng):
    if which == "box":
        rows = rng.standard_normal((3, 3))
        return Problem(Box.cube(3, -1.0, 1.0), Linear(3, 2.0), Affine(rows, rng.uniform(0.05, 0.5, 3)))
    if which == "mixed":
        parts = [L2Budget(3, 0.6), Affine([[1.0, 1.0, 0.0]], [0.3])]
        return Problem(Ball(3, 1.0), Linear(3, 2.0), Stack(parts))
    g = L2Budget(3, 0.5) if which == "ball" else ElasticNetBudget(3, budget=0.5)
    return Problem(Ball(3, 1.0), Linear(3, 2.0), g)


@given(kind=KINDS, seed=seeds, T=horizons, which=st.sampled_from(["box", "mixed", "ball", "elastic net"]))
def test_feasible_in_every_round(kind, seed, T, which):
    problem = thin_problem(which, np.random.default_rng(seed))
    learner = PolyakFeasibility.for_problem(problem, horizon=T)
    game = play_linear(problem, learner, kind, T, seed)
    assert game.values.max() <= 1e-8 * problem.constants.constraint_bound
    if which == "box":
        A, b = problem.constraint.matrix, problem.constraint.limit
        regret = game.loss - best_in_box(-np.ones(3), np.ones(3), A, b, game.costs.sum(axis=0))
    else:
        reach = 0.5 if which == "ball" else 0.2  # so far out all is feasible, in every direction
        regret = game.loss + reach * np.linalg.norm(game.costs.sum(axis=0))
    assert regret <= float(learner.bound(problem, T)["regret"]) * (1 + 1e-9)


def test_the_distance_to_the_tightened_set_contracts_as_the_proof_says():
    """‖x‖ ≤ ½ in the unit ball: the tightened set is ‖x‖ ≤ ½ − ϱ, and d_t ≤ ϱ/G_g in every round."""
    problem = Problem(Ball(2), Linear(2), L2Budget(2, budget=0.5))
    learner = PolyakFeasibility.for_problem(problem, horizon=2000, margin=0.1)
    state, away = learner.init(), []
    for t in range(2000):
        away.append(np.linalg.norm(state.x) - 0.4)
        turned = -state.x + [0.7 * state.x[1], -0.7 * state.x[0]] if t > 0 else np.array([1.0, 0.0])
        state = learner.tell(state, observe(problem, state.x, [turned / np.linalg.norm(turned)]))
    assert 0 < max(away) <= 0.1


def test_longer_steps_are_not_feasible():
    problem = Problem(Ball(2), Linear(2), L2Budget(2, budget=0.5))
    safe = PolyakFeasibility.for_problem(problem, horizon=1000, margin=0.01)
    bold = PolyakFeasibility(problem.enclosing_set, safe.slater, 0.2, safe.margin, safe.made_for)
    assert not bold.assumptions[0].holds
    with pytest.warns(AssumptionWarning, match="smaller η"):
        trace = run(problem, bold, RandomCosts(2), 1000)
    assert float(trace.largest_violation[-1]) > 0
    assert float(run(problem, safe, RandomCosts(2), 1000).largest_violation[-1]) <= 0
    bound = bold.bound(problem, 1000)
    assert not bound
    assert "too large" in bound.reason


@pytest.mark.slow
def test_regret_grows_like_the_root():
    problem = Problem(Ball(2), Linear(2), L2Budget(2, budget=0.5))
    found = []
    for T in (10**5, 10**7):
        bound = PolyakFeasibility.for_problem(problem, horizon=T).bound(problem, T)
        found.append(float(bound["regret"]))
    assert 8 <= found[1] / found[0] <= 12
    rounds = [250, 1000, 4000]
    made = [PolyakFeasibility.for_problem(problem, horizon=T) for T in rounds]
    regret = regret_in_a_ball(problem, lambda T: made[rounds.index(T)], rounds)
    bounds = [float(m.bound(problem, T)["regret"]) for m, T in zip(made, rounds, strict=True)]
    assert np.all(regret <= bounds)
    assert 0.35 <= slope(rounds, regret) <= 0.65


def test_the_steps_and_the_formula():
    c = two_dimensional().constants  # Δ = 2, G_f = 2, G_g = 1, F = 2
    eta = (1 - np.sqrt(1 - ((1.25 - 0.25) / 2) ** 2)) * 0.25 / 2
    assert safe_step(c, 1.25, np.asarray(0.25)) == pytest.approx(eta)
    regret = 4 / (2 * eta) + eta * 4 * 100 / 2 + 0.25 / 1.25 * 2 * 100
    assert float(feasible_regret(c, 1.25, eta, 0.25, np.asarray(100.0))) == pytest.approx(regret)
    best = best_margin(c, 1.25, 100)

    def bound(margin):
        return float(feasible_regret(c, 1.25, safe_step(c, 1.25, np.asarray(margin)), margin, np.asarray(100.0)))

    assert all(bound(best) <= bound(best * factor) for factor in (0.8, 0.95, 1.05, 1.2))


def test_the_slope_is_at_most_the_longest_gradient():
    """A G_g that is declared too small makes s_0 > G_g: it counts as G_g, and η stays a number."""
    c = dataclasses.replace(two_dimensional().constants, constraint_gradient_bound=0.4)  # s_0 = (1.25 − 0.25)/2
    assert safe_step(c, 1.25, np.asarray(0.25)) == pytest.approx(0.25 / (0.4 * 2))


def test_a_subgradient_of_nothing_at_the_minimum():
    problem = Problem(Ball(2), Linear(2), L2Budget(2, budget=0.5))  # x_1 = 0, where ∇g is 0
    learner = PolyakFeasibility.for_problem(problem, horizon=100, slater=SlaterPoint(0.5, np.zeros(2)))
    state = learner.tell(learner.init(), observe(problem, np.zeros(2), [np.array([1.0, 0.0])]))
    np.testing.assert_allclose(state.x, [-learner.eta, 0.0])


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda p: PolyakFeasibility(p.enclosing_set, LEFT, eta=0.1, margin=1.25), "margin"),
        (lambda p: PolyakFeasibility(p.enclosing_set, SlaterPoint(1.0), eta=0.1, margin=0.1), "slater"),
        (lambda p: PolyakFeasibility(p.enclosing_set, LEFT, eta=0.0, margin=0.1), "eta"),
        (lambda p: PolyakFeasibility.for_problem(p, horizon=0), "horizon"),
        (
            lambda p: PolyakFeasibility.for_problem(p, horizon=10, slater=SlaterPoint(1.2, np.array([0.2, 0.0]))),
            "slater",
        ),
        (
            lambda p: PolyakFeasibility.for_problem(
                Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0)), horizon=10
            ),
            "learner",
        ),
        (
            lambda p: PolyakFeasibility.for_problem(
                Problem(Ball(1), Linear(1), Affine([[1.0], [-1.0]], [0.0, 0.0])), horizon=9
            ),
            "constraint",
        ),
    ],
)
def test_bad_input_is_refused(call, argument):
    with pytest.raises(InputError) as refused:
        call(two_dimensional())
    assert refused.value.argument == argument
