"""Forecasts: perfect ones pay, useless ones cost a constant, and bounds on their errors hold against an adversary."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import InputError, LiveLearner, Problem, hindsight, observe, run
from longterm.learners import HedgedCuts, HintedCuts, Learner, OptimisticAFTRL, OptimisticCOCO, OptimisticOGD
from longterm.learners.optimistic.hints import GivenHints, HintModel, LastGradient, NoHint, Seasonal
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine, L2Budget, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box, Simplex
from longterm.problems.streams import Replay

T = 1000
RULES = (OptimisticOGD, HintedCuts, OptimisticAFTRL)


@cache
def game(name: str) -> tuple[Problem, np.ndarray, float]:
    """Costs in random directions on a disc; or a day's rhythm with noise, on a box with a least total."""
    rng = np.random.default_rng(0)
    if name == "disc":
        costs = rng.standard_normal((T, 5))
        problem = Problem(Ball(5), Linear(5), L2Budget(5, budget=0.5))
    else:
        costs = np.sin(np.pi * np.arange(T) / 12)[:, None] * rng.standard_normal(6) + 0.4 * rng.standard_normal((T, 6))
        problem = Problem(Box.cube(6, 0.0, 1.0), Linear(6), Affine(-np.ones((1, 6)), [-2.0]))
    costs = costs / np.maximum(np.linalg.norm(costs, axis=1, keepdims=True), 1.0)
    return problem, costs, float(hindsight.best(problem, Replay([costs]), [T]).loss[0])


def regret(rule: Any, name: str, hints: HintModel) -> float:
    problem, costs, best = game(name)
    learner = rule.for_problem(problem, hints=hints)
    trace = run(problem, learner, Replay([costs]))
    found = float(trace.cumulative_loss[-1]) - best
    assert found <= learner.bound(problem, T, state=trace.state)["regret"]
    assert trace.hard_violation[-1] < 5.0
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["disc", "day"])
@pytest.mark.parametrize("rule", [OptimisticOGD, HintedCuts])
def test_perfect_hints_help_and_useless_ones_cost_a_constant(rule: Any, name: str) -> None:
    costs, rng = game(name)[1], np.random.default_rng(1)
    noise = rng.standard_normal(costs.shape)
    none = regret(rule, name, NoHint())
    assert none > 0
    assert regret(rule, name, GivenHints(costs)) <= none / 5
    assert regret(rule, name, GivenHints(noise / np.linalg.norm(noise, axis=1, keepdims=True))) <= 2 * none


@pytest.mark.slow
def test_a_season_is_a_hint() -> None:
    assert regret(HintedCuts, "day", Seasonal(24)) < 0 < regret(HintedCuts, "day", NoHint())
    assert regret(OptimisticOGD, "day", Seasonal(24)) < regret(OptimisticOGD, "day", NoHint()) / 2


def test_a_leader_with_hints() -> None:
    """What A-FTRL pays for its multipliers stays; the rest falls."""
    perfect = regret(OptimisticAFTRL, "day", GivenHints(game("day")[1]))
    assert perfect < regret(OptimisticAFTRL, "day", NoHint()) / 5


@pytest.mark.slow
@examples(20)
@given(seed=st.integers(0, 10**6), trust=st.floats(-1.0, 1.0))
def test_bounds_hold_whatever_the_hints(seed: int, trust: float) -> None:
    problem = Problem(Ball(2), Linear(2), L2Budget(2, budget=0.5))
    for rule in RULES:
        learner: Learner[Any] = rule.for_problem(problem, hints=NoHint())
        rng, state = np.random.default_rng(seed), None
        costs, lost = [], 0.0
        state = learner.init()
        upcoming = rng.standard_normal(2)
        for _ in range(100):
            x = learner.ask(state)
            cost = upcoming + (2 * x if rng.random() < 0.5 else 0)
            cost /= max(1.0, float(np.linalg.norm(cost)))
            costs.append(cost)
            lost += float(cost @ x)
            upcoming = rng.standard_normal(2)
            state = learner.tell(state, observe(problem, x, [cost])._replace(hint=trust * upcoming))
        best = -0.5 * float(np.linalg.norm(np.sum(costs, axis=0)))
        assert lost - best <= learner.bound(problem, 100, state=state)["regret"] + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["disc", "day"])
def test_hints_of_loss_and_constraint(name: str) -> None:
    """As above, and the violation stays under its bound; a known g as its own forecast breaks less than none."""
    problem, costs, best = game(name)
    noise = np.random.default_rng(1).standard_normal(costs.shape)
    useless = GivenHints(noise / np.linalg.norm(noise, axis=1, keepdims=True))
    cases = {"none": (NoHint(), None), "perfect": (GivenHints(costs), None), "noise": (useless, LastGradient())}
    found, broken = {}, {}
    for key, (hints, about) in (cases | {"nothing": (NoHint(), NoHint())}).items():
        learner = OptimisticCOCO.for_problem(problem, hints=hints, constraint_hints=about)
        trace = run(problem, learner, Replay([costs]), record=[T])
        found[key], broken[key] = float(trace.cumulative_loss[-1]) - best, float(trace.hard_violation[-1])
        bound = learner.bound(problem, T, state=trace.state)
        assert found[key] <= bound["regret"]
        assert broken[key] <= min(20.0, bound["hard_violation"])
    assert found["perfect"] <= found["none"] / 5
    assert found["noise"] <= 2 * found["none"]
    assert broken["none"] < 0.7 * broken["nothing"]


@examples(20)
@given(seed=st.integers(0, 10**6), trust=st.floats(-1.0, 1.0), far=st.floats(1.0, 30.0))
def test_bounds_hold_whatever_the_hints_of_both(seed: int, trust: float, far: float) -> None:
    """Half-planes that cut off the point played, all with 0 inside; hints of any length on the constraint."""
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0))
    learner = OptimisticCOCO.for_problem(problem, hints=NoHint())
    rng, state, costs, lost, hard = np.random.default_rng(seed), learner.init(), [], 0.0, 0.0
    for _ in range(150):
        cost = rng.standard_normal(2)
        cost /= max(1.0, float(np.linalg.norm(cost)))
        state = learner.hinted(state, trust * cost, far * rng.standard_normal(2))
        x = learner.ask(state)
        row = x / np.linalg.norm(x) if rng.random() < 0.7 and np.any(x) else np.array([0.0, 1.0])
        feedback = observe(problem, x, [cost], [row[None, :], np.zeros(1)])
        lost, hard = lost + float(cost @ x), hard + max(float(feedback.constraint), 0.0)
        costs.append(cost)
        state = learner.tell(state, feedback)
    bound = learner.bound(problem, 150, state=state)
    assert lost <= bound["regret"]  # against 0, which is feasible in every round
    assert hard <= bound["hard_violation"]
    assert state.level >= state.constraint_errors


def test_optimistic_coco_by_hand() -> None:
    """B = [−1, 1], x ≤ 0, G_f = G_g = 1: round 1 plays 1 on a hint of −1, breaks by 1; the weight e^ω follows."""
    problem = Problem(Box([-1.0], [1.0]), Linear(1), Affine([[1.0]], [0.0]))
    learner = OptimisticCOCO.for_problem(problem, hints=NoHint(), constraint_hints=NoHint())
    omega = 1 / (4 * 5.11 * 2 * np.sqrt(5.0))
    state = learner.hinted(learner.init(), np.array([-1.0]))
    assert learner.ask(state) == 1.0
    state = learner.tell(state, observe(problem, learner.ask(state), [np.array([0.5])])._replace(hint=np.array([0.2])))
    assert (state.anchor, state.violation, state.loss_errors, state.constraint_errors) == (-1.0, 1.0, 2.25, 1.0)
    assert (state.errors, state.level) == (2.5**2, 1.0)  # d − m = (0.5 + 1) + 1; E = G_g² is not passed yet
    np.testing.assert_allclose(learner.report(state)["weight"], np.exp(omega))
    bound = learner.bound(problem, 1, state=state)
    assert bound["regret"] == pytest.approx(5.11 * 2 * (1.5 + 1e-6) + 1 / omega / 4)
    shown = learner.hinted(state, constraint_hint=np.array([-30.0]))
    eta = 2**-0.75 * 2 / np.sqrt(2.5**2 + 1e-12)
    assert shown.constraint_hint == -1.0
    np.testing.assert_allclose(learner.ask(shown), min(1.0, -1.0 - eta * (0.2 - np.exp(omega))))


def test_optimistic_ogd_by_hand() -> None:
    """B = [−1, 1]: a hint of 1 moves to −1, the truth −1 then moves y to 1; e² = 4, η = 2^{¼}/√(4 + ε)."""
    problem = Problem(Box([-1.0], [1.0]), Linear(1), Affine([[1.0]], [1.0]))
    learner = OptimisticOGD.for_problem(problem, hints=NoHint())
    state = learner.hinted(learner.init(), np.array([1.0]))
    assert learner.ask(state) == -1.0
    told = observe(problem, learner.ask(state), [np.array([-1.0])])._replace(hint=np.array([0.5]))
    state = learner.tell(state, told)
    assert (state.anchor, state.errors) == (1.0, 4.0)
    np.testing.assert_allclose(learner.ask(state), 1 - 2 * 2**-0.75 / 2 * 0.5, rtol=1e-9)


@pytest.mark.slow
def test_without_hints_the_experts_are_those_of_hedged_cuts() -> None:
    """m = 0: the hinted points are the mixture, so nobody gains by them; the bound has K + 3 for K."""
    problem, costs, best = game("disc")
    plain = run(problem, HedgedCuts.for_problem(problem), Replay([costs]))
    hinted = run(problem, HintedCuts.for_problem(problem, hints=NoHint()), Replay([costs]))
    assert abs(hinted.cumulative_loss[-1] - plain.cumulative_loss[-1]) < 0.3 * (plain.cumulative_loss[-1] - best)


def test_a_running_service_gives_its_forecasts() -> None:
    problem, costs, _ = game("disc")
    learner = OptimisticOGD.for_problem(problem, hints=NoHint())
    live, state = LiveLearner(learner, problem=problem), learner.init()
    for t in range(20):
        token = live.ask()
        np.testing.assert_array_equal(token.x, learner.ask(state))
        live.tell(token, loss_parameters=[costs[t]], hint=costs[t + 1])
        state = learner.tell(state, observe(problem, learner.ask(state), [costs[t]])._replace(hint=costs[t + 1]))
    for bad in (np.zeros(3), np.full(5, np.nan)):
        with pytest.raises(InputError, match="hint"):
            live.tell(live.ask(), loss_parameters=[costs[20]], hint=bad)


@pytest.mark.slow
def test_a_constraint_that_changes_is_taken_for_the_next() -> None:
    """A half-plane that turns slowly, perfect hints of the costs: much is gained, little is broken."""
    angle = 2 * np.pi * np.arange(T) / T
    rows = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    noise = np.random.default_rng(0).standard_normal((T, 2))
    costs = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0))
    stream = Replay([costs], [rows[:, None, :], np.full((T, 1), 0.3)])
    for bank in (0.0, 0.1):
        learner = HintedCuts.for_problem(problem, hints=GivenHints(costs), bank=bank)
        trace = run(problem, learner, stream)
        assert trace.cumulative_loss[-1] < -0.5 * T
        assert trace.long_term_violation[-1] < 0.01 * T


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="table"):
        GivenHints(np.zeros(3))
    problem = two_dimensional()
    with pytest.raises(InputError, match="AdaHedge"):
        HintedCuts(HedgedCuts.for_problem(problem, meta="adapt-ml-prod"), problem.constraint)
    assert not OptimisticOGD.for_problem(problem).bound(problem, 10)


@pytest.mark.parametrize("made_for", [None, 3.0])
def test_optimistic_coco_needs_the_constants(made_for):
    with pytest.raises(InputError, match="made_for"):
        OptimisticCOCO(Ball(2), made_for)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-12])
@pytest.mark.parametrize("over", [Ball(3), Simplex(3)], ids=["ball", "simplex"])
def test_hinted_points_keep_limits_in_any_unit(over: Any, unit: float) -> None:
    """‖Σ v_j ∇g_j‖² is of the order of g⁴, which float32 cannot hold. On a simplex only a part of ∇g moves points."""
    rows, limit = np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.3]]), np.array([0.35, 0.4])
    problem = Problem(over, Linear(3), Affine(unit * rows, unit * limit))
    costs = np.tile([-0.6, -0.8, 0.0], (60, 1))
    trace = run(problem, HintedCuts.for_problem(problem), Replay([costs]), dtype=np.float32, progress=None)
    assert trace.hard_violation[-1] <= 0.1 * unit
