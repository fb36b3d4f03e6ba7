"""Bounds by measure: values, vacuous bounds, and the first informative horizon."""

from dataclasses import replace

import numpy as np
import pytest

from longterm import AOGD, hindsight, observe
from longterm.learners import MahdaviOGD, ProjectedOGD
from longterm.problems import doubly_stochastic, two_dimensional
from longterm.problems.streams import Replay
from longterm.theory import lemma_5, theorem_1, theorem_1_strongly_convex
from longterm.theory.bounds import MEASURES, Bounds
from longterm.theory.schedules import ConstantSchedule, ConvexSchedule, StronglyConvexSchedule

PROBLEM = two_dimensional()  # R = 1, Δ = 2, G = 2, D = 5/4, F = 2, σ = 1


def lemma_5_by_hand(steps, last):
    """Regret and violation after T = 1 … last rounds, with exact sums, at β = 2/3."""
    t = np.arange(1.0, last + 1)
    theta, eta = (12 / t ** (2 / 3), 0.5 / t ** (2 / 3)) if steps == "convex" else (24 / t ** (2 / 3), 1 / t)
    mu = 1 / (theta * (t + 1))
    growth = np.append(0.0, np.maximum(np.diff(1 / eta) - 1.0, 0.0))
    start = max(1 / eta[0] - 1.0, 0.0) / 2
    regret = start + 2 * np.cumsum(growth) + 4 * np.cumsum(eta) + 1.25**2 * np.cumsum(mu)
    return regret, np.sqrt(2 * (np.cumsum(theta) + 1 / mu[0] - theta[0]) * (regret + 2 * t))


@pytest.mark.parametrize(("steps", "first"), [("convex", (3, 870)), ("strongly convex", (5, 2407))])
def test_the_first_round_with_an_informative_bound(steps, first):
    bounds = AOGD.for_problem(PROBLEM, steps=steps).bound(PROBLEM, [100, 869, 870, 2406, 2407, 10**5])
    T, (regret, violation) = bounds.rounds, lemma_5_by_hand(steps, 10**5)
    np.testing.assert_allclose(bounds["regret"], regret[T - 1])
    np.testing.assert_allclose(bounds["signed_violation"], violation[T - 1])
    np.testing.assert_array_equal(bounds.trivial("regret"), 2.0 * T)
    np.testing.assert_array_equal(bounds.trivial("signed_violation"), 1.25 * T)
    np.testing.assert_array_equal(bounds.vacuous("signed_violation"), violation[T - 1] >= 1.25 * T)
    found = bounds.informative_from("regret"), bounds.informative_from("signed_violation")
    assert found == first
    for start, part, each in zip(first, (regret, violation), (2.0, 1.25), strict=True):  # the first T, none before it
        assert part[start - 1] < each * start
        assert np.all(part[: start - 1] >= each * np.arange(1.0, start))


@pytest.mark.parametrize("steps", ["convex", "strongly convex"])
@pytest.mark.parametrize("beta", [0.05, 0.5, 2 / 3, 0.95])
@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_a_ogd_has_the_smaller_of_its_two_theorems(steps, beta, sigma):
    """The losses are 1-strongly convex; the steps are made for less in some rows."""
    c = PROBLEM.constants
    if steps == "convex":
        schedule, closed = ConvexSchedule(c.diameter, c.gradient_bound, beta), theorem_1(c, [7, 10**4], beta)
    else:
        schedule = StronglyConvexSchedule(c.gradient_bound, sigma, beta)
        closed = theorem_1_strongly_convex(replace(c, strong_convexity=sigma), [7, 10**4], beta)
    exact = lemma_5(schedule, c, [7, 10**4])
    found = AOGD(PROBLEM.enclosing_set, schedule).bound(PROBLEM, [7, 10**4])
    np.testing.assert_allclose(found["regret"], np.minimum(closed.regret, exact.regret))
    np.testing.assert_allclose(found["signed_violation"], np.minimum(closed.violation, exact.violation))


def test_steps_for_less_strong_convexity_keep_to_their_bound():
    """Steps 1/(0.02 t) on 1-strongly convex losses: Theorem 1 with σ = 1 is smaller than the regret."""
    learner = AOGD(PROBLEM.enclosing_set, StronglyConvexSchedule(PROBLEM.constants.gradient_bound, 0.02, 0.5))
    state, targets, loss = learner.init(), [], 0.0
    for _ in range(20):
        x = learner.ask(state)
        targets.append(-x / max(np.linalg.norm(x), 1.0) if np.any(x) else np.array([1.0, 0.0]))
        feedback = observe(PROBLEM, x, [targets[-1]])
        loss += float(feedback.loss)
        state = learner.update(state, feedback)
    best = hindsight.best(PROBLEM, Replay([np.array(targets)]), 20).x[-1]
    regret = loss - sum(float(observe(PROBLEM, best, [target]).loss) for target in targets)
    assert float(theorem_1_strongly_convex(PROBLEM.constants, 20, 0.5).regret) < regret
    assert regret <= float(learner.bound(PROBLEM, 20)["regret"])


def test_the_text_of_bounds():
    early, late = (str(AOGD.for_problem(PROBLEM).bound(PROBLEM, T)) for T in (800, 2000))
    assert "signed_violation ≤ 1028.2 at T = 800 (vacuous until T = 870)" in early
    assert early.count("vacuous") == 1  # not of the regret
    assert "vacuous" not in late
    known = MahdaviOGD.for_problem(PROBLEM, horizon=100).bound(PROBLEM, 100)
    assert known.informative_from("signed_violation") is None  # its steps are made for one horizon
    assert "assumes (m + 1)G²η + 2μθ² ≤ θ" in str(known)


def test_a_bound_that_is_never_informative():
    problem = doubly_stochastic(8)
    odd = AOGD(problem.enclosing_set, ConstantSchedule(theta=1e4, eta=1e-9, mu=1e-9))
    bounds = odd.bound(problem, 100)
    assert bool(bounds.vacuous("regret"))
    small = Bounds(np.asarray(100), dict(bounds), problem.constants, theorem=lambda T: {"regret": 1e12 * T})
    assert small.informative_from("regret") is None
    assert "for any T up to ten million" in str(
        Bounds(small.rounds, {"regret": np.asarray(1e14)}, small.constants, theorem=small.theorem)
    )


def test_all_learners_of_a_grid_must_be_informative():
    betas = np.array([0.5, 2 / 3])
    grid = AOGD.for_problem(PROBLEM, beta=betas).bound(PROBLEM, [1000, 3000, 5000])
    assert grid.vacuous("signed_violation").tolist() == [[True, False], [True, False], [False, False]]
    alone = [AOGD.for_problem(PROBLEM, beta=b).bound(PROBLEM, 10).informative_from("signed_violation") for b in betas]
    assert grid.informative_from("signed_violation") == max(alone) == 4002
    assert grid.trivial("signed_violation").shape == (3, 1)


def test_a_mapping_by_measure():
    bounds = ProjectedOGD.for_problem(PROBLEM).bound(PROBLEM, 100)
    assert list(bounds) == ["regret", "hard_violation"]
    assert len(bounds) == 2
    assert set(bounds) <= set(MEASURES)
    assert not bounds.vacuous("hard_violation")  # 0 is below D·T
    with pytest.raises(KeyError, match="no bound on 'squared_violation'"):
        bounds["squared_violation"]


def test_no_theorem_is_an_empty_mapping_with_a_reason():
    odd = AOGD(PROBLEM.enclosing_set, ConstantSchedule(theta=1.0, eta=1.0, mu=0.1))
    bounds = odd.bound(PROBLEM, 100)
    assert not bounds
    assert str(bounds).startswith("no theorem: schedule in round 2: C2")
    with pytest.raises(KeyError, match="C2"):
        bounds["regret"]
