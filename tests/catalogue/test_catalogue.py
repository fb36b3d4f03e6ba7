"""Names for learners and problems: ours can all be built, others' are found, and parameters are checked."""

import warnings
from functools import cache
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from longterm import AOGD, InputError, hindsight, run
from longterm import learners as package
from longterm.catalogue import lookup as catalogue
from longterm.catalogue.entries import LearnerEntry, ProblemEntry
from longterm.catalogue.lookup import find_learner, find_problem, learners, problems
from longterm.data import find
from longterm.errors import AssumptionWarning
from longterm.lab.experiments.result import MEASURES
from longterm.learners import Learner, MahdaviOGD
from longterm.learners.saddle_point.mahdavi_ogd import papers_constraint_bound
from longterm.problems import doubly_stochastic, two_dimensional
from other_package import MINE

SMALL = {
    "doubly_stochastic": {"size": 3},
    "budgeted_logistic": {"budget": 3.0},
    "covariance": {"size": 3},
    "noisy_doubly_stochastic": {"size": 3},
    "online_linear_program": {"rounds": 50},
}
"""Parameters that make a problem small; the others are small by default."""


@cache
def small(problem):
    return find_problem(problem).build(**SMALL.get(problem, {}))


HERE = [name for name, entry in problems().items() if entry.data is None or find(entry.data) is not None]
"""The problems whose data are here."""


def learner_settings():
    return [(name, settings) for name, entry in learners().items() for settings in settings_of(entry)]


def settings_of(entry):
    """Return the settings in either league of the arena, or the default settings if there are none."""
    return [*entry.variants, *(one for one in entry.drifting if one not in entry.variants)] or [{}]


def learners_and_problems():
    """All of them; in `make test` each learner meets every fourth problem, another one first each time."""
    for i, (learner, settings) in enumerate(learner_settings()):
        for j, problem in enumerate(HERE):
            yield pytest.param(learner, settings, problem, marks=pytest.mark.cross if (i + j) % 4 else [])


@pytest.mark.parametrize(("learner", "settings", "problem"), list(learners_and_problems()))
@pytest.mark.filterwarnings("ignore::longterm.errors.AssumptionWarning")
def test_every_learner_runs_on_every_problem_or_refuses_it(learner, settings, problem):
    game, entry = small(problem), find_learner(learner)
    entry.check(settings, learner)
    made = made_for(game, entry, settings)
    if isinstance(made, InputError):
        assert made.remedy
        return
    trace = run(game.problem, made, game.stream, 50, progress=None)
    rounds = np.array([1, 20, 50])
    for theorem in (made.bound, made.bound_as_printed):
        for measure, values in theorem(game.problem, rounds).items():
            assert measure in MEASURES
            assert values.shape == rounds.shape
            assert np.all(np.isfinite(values))
    assert trace.last_round == 50


@pytest.mark.parametrize("learner", learners())
def test_every_learner_runs_somewhere_and_has_a_description(learner):
    entry = find_learner(learner)
    assert entry.about
    assert entry.title
    made = [made_for(small(problem), entry, settings_of(entry)[0]) for problem in HERE]
    assert any(isinstance(one, Learner) for one in made)


def made_for(game, entry, settings):
    """The learner, or why there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        try:
            made = entry.learner(game.problem, 50, settings)
            made.check(game.problem)
        except InputError as refused:
            return refused
    return made


@pytest.mark.slow
def test_every_named_learner_is_built():
    """The only public learner without a name, `FTRL`, is a composition that only code can build."""
    built = {
        type(made_for(small(problem), find_learner(name), settings))
        for name, settings in learner_settings()
        for problem in HERE
    }
    every = {one for one in vars(package).values() if isinstance(one, type) and issubclass(one, Learner)}
    assert {one.__name__ for one in every - built if one.name} == set()
    assert {one.__name__ for one in every if not one.name and not one.__abstractmethods__} == {"FTRL"}


@pytest.mark.parametrize("problem", HERE)
def test_every_problem_knows_its_best_decision(problem):
    assert find_problem(problem).about
    game = small(problem)
    best = hindsight.best(game.problem, game.stream, np.array([1, 10, 50]), seeds=2, benchmark=game.benchmark)
    assert best.x.shape == (3, game.problem.dimension)
    assert np.all(best.gap <= 1e-6 * np.maximum(np.abs(best.loss), game.problem.constants.loss_range))


def test_the_forms_of_convex_ogd():
    problem = doubly_stochastic(3)

    def build(problem, rounds, **parameters):
        return find_learner("mahdavi_ogd").learner(problem, rounds, parameters)

    assert build(problem, 400).schedule.eta == MahdaviOGD.for_problem(problem, horizon=400).schedule.eta
    each = build(problem, 4000, multipliers="each", delta="twice")
    assert (
        each.schedule.theta
        == MahdaviOGD.for_problem(problem, horizon=4000, multipliers="each", delta="twice").schedule.theta
    )
    stated = build(problem, 400, constraint_bound="paper")
    assert stated.schedule.eta > build(problem, 400).schedule.eta  # √3 is less than 4
    assert stated.schedule.eta == build(problem, 400, constraint_bound=3**0.5).schedule.eta
    drawn = build(problem, 400, multipliers="paper", constraint_bound="paper")
    wanted = MahdaviOGD.for_problem(problem, horizon=400, multipliers="paper", constraint_bound=3**0.5)
    assert drawn.schedule.eta == wanted.schedule.eta


def test_the_papers_D_of_budgets():
    problem = find_problem("budgeted_logistic").build(budget=3.0).problem
    R = 7**0.5 - 1
    assert papers_constraint_bound(problem) == pytest.approx(54**0.5 * R + R**2 / 2)
    assert papers_constraint_bound(problem) > problem.constants.constraint_bound
    with pytest.raises(InputError, match="states no D"):
        papers_constraint_bound(two_dimensional())


def test_other_packages_add_names_and_cannot_change_ours(monkeypatch):
    there = {"mine": "MINE", "plain": "build_mine", "aogd": "build_mine", "broken": "nothing"}

    def points(group):
        return [EntryPoint(n, f"other_package:{w}", group) for n, w in there.items() if group == "longterm.learners"]

    learners.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(catalogue, "entry_points", points)
        with pytest.warns(UserWarning, match="other_package:nothing cannot be loaded"):
            assert find_learner("mine") is MINE
        assert find_learner("plain").about == "Mine, of another package."
        assert find_learner("aogd").title == "A-OGD"
        assert isinstance(find_learner("mine").learner(two_dimensional(), 10, {"speed": 0.5}), AOGD)
    learners.cache_clear()
    with pytest.raises(InputError, match="'mine' is not known"):
        find_learner("mine")


def test_a_function_named_by_module_and_function():
    assert isinstance(find_learner("other_package:MINE"), LearnerEntry)
    assert isinstance(find_problem("other_package:build_mine"), ProblemEntry)
    for name, match in (
        ("other_package:nothing", "cannot be imported"),
        ("no_such_module:build", "cannot be imported"),
        ("other_package:NOT_A_BUILDER", "Name a function that builds"),
    ):
        with pytest.raises(InputError, match=match):
            find_learner(name)


def test_parameters_are_compared_with_the_builder():
    MINE.check({"speed": 1, "kind": "b", "anything": [3]}, "learners.mine")
    for given, match in (
        ({}, "learners.mine.speed: is missing. 'mine' needs it"),
        ({"speed": True}, "True is not a number"),
        ({"speed": 0.5, "kind": "c"}, '\'c\' is not one of "a", "b"'),
    ):
        with pytest.raises(InputError) as refused:
            MINE.check(given, "learners.mine")
        assert match in str(refused.value)
    assert find_learner("penalised_ftrl").signature() == "penalised_ftrl(w_0=None, growth=0.5)"
    wrong = LearnerEntry("wrong", lambda problem, rounds: 3)
    with pytest.raises(InputError, match="'wrong' built a int"):
        wrong.learner(two_dimensional(), 10, {})
