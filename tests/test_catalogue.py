"""Names for learners and problems: ours can all be built, others' are found, and parameters are checked."""

from importlib.metadata import EntryPoint
from typing import Literal

import numpy as np
import pytest

from longterm import AOGD, InputError, MahdaviOGD, doubly_stochastic
from longterm.catalogue import LearnerEntry, ProblemEntry, find_learner, find_problem, learners, lookup, problems
from longterm.catalogue.base import signature
from longterm.catalogue.paper import papers_constraint_bound
from longterm.learners import twice
from longterm.problems import two_dimensional

CANNOT = {
    ("penalised_ftrl", "doubly_stochastic"),
    ("mirror_prox", "budgeted_logistic"),
    *((learner, "covariance") for learner in ("aftrl", "proximal_aogd", "penalised_ftrl", "mirror_prox")),
}


@pytest.mark.parametrize("problem", problems())
@pytest.mark.parametrize("learner", learners())
def test_every_learner_plays_every_problem_or_says_why_not(learner, problem):
    entry = find_problem(problem)
    game = entry.build(**({"budget": 3.0} if problem == "budgeted_logistic" else {"size": 4}))
    assert find_learner(learner).about
    assert entry.about
    if (learner, problem) in CANNOT:
        with pytest.raises(InputError, match="needs"):
            find_learner(learner).learner(game.problem, 500, {})
        return
    made = find_learner(learner).learner(game.problem, 500, {})
    made.check(game.problem)
    rounds = np.array([1, 20, 500])
    for theorem in (find_learner(learner).bound, find_learner(learner).printed):
        for values in ({} if theorem is None else theorem(made, game.problem, rounds)).values():
            assert values.shape == rounds.shape
            assert np.all(np.isfinite(values))


@pytest.mark.parametrize("problem", problems())
def test_every_problem_knows_its_best_decision(problem):
    game = find_problem(problem).build(**({"budget": 3.0} if problem == "budgeted_logistic" else {"size": 4}))
    best = game.best(np.array([1, 10, 50]), 2)
    assert best.x.shape == (3, game.problem.dimension)
    assert np.all(best.relative_gap <= 1e-6)


def test_the_forms_of_convex_ogd():
    problem = doubly_stochastic(3)
    build = find_learner("mahdavi_ogd").build
    assert build(problem, 400).schedule.eta == MahdaviOGD.aggregate(problem, 400).schedule.eta
    each = build(problem, 4000, multipliers="each", delta="twice")
    assert each.schedule.theta == MahdaviOGD.vector(problem, 4000, twice).schedule.theta
    stated = build(problem, 400, constraint_bound="paper")
    assert stated.schedule.eta > build(problem, 400).schedule.eta  # √3 is less than 4
    assert stated.schedule.eta == build(problem, 400, constraint_bound=3**0.5).schedule.eta
    drawn = build(problem, 400, multipliers="one, counted as many", constraint_bound="paper")
    wanted = MahdaviOGD.one_multiplier_counted_as_many(problem, 400, constraint_bound=3**0.5)
    assert drawn.schedule.eta == wanted.schedule.eta


def test_the_papers_D_of_budgets():
    problem = find_problem("budgeted_logistic").build(budget=3.0).problem
    R = 7**0.5 - 1
    assert papers_constraint_bound(problem) == pytest.approx(54**0.5 * R + R**2 / 2)
    assert papers_constraint_bound(problem) > problem.constants.constraint_bound
    with pytest.raises(InputError, match="states no D"):
        papers_constraint_bound(two_dimensional())


def build_mine(problem, rounds, speed: float, kind: Literal["a", "b"] = "a", **more):
    """Mine, of another package."""
    return AOGD.convex(problem, speed)


MINE = LearnerEntry("mine", build_mine, "Mine")
NOT_A_BUILDER = 3


def test_other_packages_add_names_and_cannot_change_ours(monkeypatch):
    there = {"mine": "MINE", "plain": "build_mine", "aogd": "build_mine", "broken": "nothing"}

    def points(group):
        return [EntryPoint(n, f"test_catalogue:{w}", group) for n, w in there.items() if group == "longterm.learners"]

    lookup._all.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(lookup, "entry_points", points)
        with pytest.warns(UserWarning, match="test_catalogue:nothing cannot be loaded"):
            assert find_learner("mine") is MINE
        assert find_learner("plain").about == "Mine, of another package."
        assert find_learner("aogd").title == "A-OGD"
        assert isinstance(find_learner("mine").learner(two_dimensional(), 10, {"speed": 0.5}), AOGD)
    lookup._all.cache_clear()
    with pytest.raises(InputError, match="'mine' is not known"):
        find_learner("mine")


def test_a_function_named_by_where_it_is():
    assert isinstance(find_learner("test_catalogue:MINE"), LearnerEntry)
    assert isinstance(find_problem("test_catalogue:build_mine"), ProblemEntry)
    for name, match in (
        ("test_catalogue:nothing", "cannot be imported"),
        ("no_such_module:build", "cannot be imported"),
        ("test_catalogue:NOT_A_BUILDER", "Name a function that builds"),
    ):
        with pytest.raises(InputError, match=match):
            find_learner(name)


def test_parameters_are_held_against_the_builder():
    MINE.check({"speed": 1, "kind": "b", "anything": [3]}, "learners.mine")
    for given, match in (
        ({}, "learners.mine.speed: is missing. 'mine' needs it"),
        ({"speed": True}, "True is not a number"),
        ({"speed": 0.5, "kind": "c"}, "'c' is not one of 'a', 'b'"),
    ):
        with pytest.raises(InputError) as refused:
            MINE.check(given, "learners.mine")
        assert match in str(refused.value)
    assert signature(find_learner("penalised_ftrl")) == "penalised_ftrl(w_0=None, growth=0.5)"
    wrong = LearnerEntry("wrong", lambda problem, rounds: 3)
    with pytest.raises(InputError, match="'wrong' built a int"):
        wrong.learner(two_dimensional(), 10, {})
