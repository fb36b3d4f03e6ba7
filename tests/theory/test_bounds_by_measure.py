"""Bounds by measure: values, vacuous bounds, and the first informative horizon."""

import numpy as np
import pytest

from longterm import AOGD
from longterm.learners import MahdaviOGD, ProjectedOGD
from longterm.problems import doubly_stochastic, two_dimensional
from longterm.theory.bounds import MEASURES, Bounds
from longterm.theory.schedules import ConstantSchedule

PROBLEM = two_dimensional()  # R = 1, Δ = 2, G = 2, D = 5/4, F = 2, σ = 1


def convex_by_hand(T):
    """Theorem 1, corrected, at β = 2/3: regret and violation."""
    regret = (4 + 1.25**2 / 8) * T ** (2 / 3) + 6 * T ** (1 / 3) - 3
    return regret, np.sqrt(24 * (3 * T ** (1 / 3) + 1) * (regret + 2 * T))


def strongly_convex_by_hand(T):
    regret = 4 * (1 + np.log(T)) + 1.25**2 * T ** (2 / 3) / 16
    return regret, np.sqrt(48 * (3 * T ** (1 / 3) + 1) * (regret + 2 * T))


@pytest.mark.parametrize(
    ("steps", "by_hand", "first"),
    [("convex", convex_by_hand, (26, 1248)), ("strongly convex", strongly_convex_by_hand, (6, 2634))],
)
def test_the_first_round_with_an_informative_bound(steps, by_hand, first):
    bounds = AOGD.for_problem(PROBLEM, steps=steps).bound(PROBLEM, [100, 1247, 1248, 2633, 2634, 10**5])
    T = bounds.rounds.astype(float)
    regret, violation = by_hand(T)
    np.testing.assert_allclose(bounds["regret"], regret)
    np.testing.assert_allclose(bounds["signed_violation"], violation)
    np.testing.assert_array_equal(bounds.trivial("regret"), 2 * T)
    np.testing.assert_array_equal(bounds.trivial("signed_violation"), 1.25 * T)
    np.testing.assert_array_equal(bounds.vacuous("signed_violation"), violation >= 1.25 * T)
    found = bounds.informative_from("regret"), bounds.informative_from("signed_violation")
    assert found == first
    for start, part, each in zip(first, (0, 1), (2.0, 1.25), strict=True):  # the first T, and none before it
        assert by_hand(float(start))[part] < each * start
        before = np.arange(1.0, start)
        assert np.all(by_hand(before)[part] >= each * before)


def test_the_text_of_bounds():
    early, late = (str(AOGD.for_problem(PROBLEM).bound(PROBLEM, T)) for T in (1000, 2000))
    assert "signed_violation ≤ 1357.4 at T = 1000 (vacuous" in early
    assert "informative from T = 1248 on" in early
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
    assert "at any T up to ten million" in str(
        Bounds(small.rounds, {"regret": np.asarray(1e14)}, small.constants, theorem=small.theorem)
    )


def test_all_learners_of_a_grid_must_be_informative():
    betas = np.array([0.5, 2 / 3])
    grid = AOGD.for_problem(PROBLEM, beta=betas).bound(PROBLEM, [1000, 3000, 5000])
    assert grid.vacuous("signed_violation").tolist() == [[True, True], [True, False], [False, False]]
    alone = [AOGD.for_problem(PROBLEM, beta=b).bound(PROBLEM, 10).informative_from("signed_violation") for b in betas]
    assert grid.informative_from("signed_violation") == max(alone) == 4327
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
