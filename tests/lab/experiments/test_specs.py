"""Specifications: the same from Python, TOML and the command line; what is wrong with one is said by its key."""

import json
import math
import tomllib

import numpy as np
import pytest

from longterm import InputError
from longterm.lab import ExperimentSpec, LearnerSpec, ProblemSpec, read_spec
from longterm.lab.experiments.paper_experiments import EXPERIMENTS, Options, paper_spec
from longterm.lab.experiments.recorded_rounds import recorded_rounds
from longterm.lab.experiments.spec import slug
from longterm.lab.experiments.spec_tables import spec_of, table_of

TOML = """
name = "mine"
title = "My comparison"
rounds = 200
seeds = [3, 5]
record = 12
engine = "numpy"

[problem]
name = "budgeted_logistic"
data = "sample"
budget = 3.0

[[learners]]
learner = "aogd"
beta = [0.5, 0.75]

[[learners]]
learner = "mahdavi_ogd"
name = "OGD (Mahdavi et al. 2012)"
delta = "twice"
"""
WORDS = [
    *("run", "--name", "mine", "--title", "My comparison", "--rounds", "200", "--seeds", "3", "5", "--record", "12"),
    *("--engine", "numpy", "--problem", "budgeted_logistic data=sample budget=3.0"),
    *("--learners", "aogd beta=[0.5,0.75]", "mahdavi_ogd name='OGD (Mahdavi et al. 2012)' delta=twice"),
]
PYTHON = ExperimentSpec(
    problem=ProblemSpec("budgeted_logistic", {"data": "sample", "budget": 3.0}),
    learners=(
        LearnerSpec("aogd", {"beta": [0.5, 0.75]}),
        LearnerSpec("mahdavi_ogd", {"delta": "twice"}, name="OGD (Mahdavi et al. 2012)"),
    ),
    rounds=200,
    seeds=(3, 5),
    record=12,
    engine="numpy",
    name="mine",
    title="My comparison",
)


def said(words):
    pytest.importorskip("tyro", reason="the command line is of the extra `experiments`")
    from longterm.cli import parse

    return parse(words).specification()


def test_python_toml_and_the_command_line_give_the_same(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(TOML)
    assert read_spec(file) == PYTHON
    assert said(WORDS) == PYTHON
    assert spec_of(table_of(PYTHON)) == PYTHON
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"spec": table_of(PYTHON)}))
    assert read_spec(manifest) == PYTHON


def test_options_override_the_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(TOML)
    spec = said(["run", str(file), "--rounds", "7", "--sequences", "2", "--learners", "aftrl"])
    assert (spec.rounds, spec.seeds, [c.name for c in spec.curves]) == (7, (0, 1), ["A-FTRL"])
    assert spec.problem == PYTHON.problem
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"spec": table_of(paper_spec("dsm"))}))
    assert said(["run", str(manifest)]).command == "longterm reproduce dsm"
    assert said(["run", str(manifest), "--rounds", "7"]).command == ""  # that command would not run this
    with pytest.raises(InputError, match="problem: is missing"):
        said(["run"])
    with pytest.raises(InputError, match="together with --sequences"):
        said(["run", str(file), "--sequences", "2", "--seeds", "1"])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_papers_specifications_survive_a_round_trip(name):
    spec = paper_spec(name, Options(sequences=3, rounds=50, beta=0.6))
    assert spec_of(json.loads(json.dumps(table_of(spec)))) == spec
    assert spec.seeds == (0, 1, 2)
    assert spec.command == f"longterm reproduce {name} --sequences 3 --rounds 50 --beta 0.6"


def test_a_grid_has_a_curve_for_each_point():
    spec = LearnerSpec("aftrl", {"beta": [0.5, 0.75], "theta_0": [1.0, 2.0]}, name="mine")
    assert [curve.name for curve in spec.curves] == [
        "mine, beta = 0.5, theta_0 = 1",
        "mine, beta = 0.5, theta_0 = 2",
        "mine, beta = 0.75, theta_0 = 1",
        "mine, beta = 0.75, theta_0 = 2",
    ]
    assert spec.curves[2].parameters == {"beta": 0.75, "theta_0": 1.0}


CHANGES = {
    "rouns: is not known (did you mean 'rounds'?). Choose from ['problem', 'learners', 'rounds'": {"rouns": 3},
    "problem: is missing": {"problem": None},
    "problem: 3 is not a table": {"problem": 3},
    "learners: is missing": {"learners": None},
    "learners: 'aogd' is not a list of tables": {"learners": "aogd"},
    "learners: is empty": {"learners": []},
    "learners: a table does not name its learner. It has beta. Write for each": {"learners": [{"beta": 0.5}]},
    "learners: is one table. Write for each learner a line [[learners]]": {"learners": {"learner": "aogd"}},
    "seeds: '3' is neither a whole number nor a list of them. Write seeds = 10": {"seeds": "3"},
    "learners.learner: 'aodg' is not known (did you mean 'aogd'?). Choose from ['adagrad_aogd', ": {
        "learners": [{"learner": "aodg"}]
    },
    "learners.aogd.betta: is not a parameter of 'aogd' (did you mean 'beta'?). Choose from ['beta', ": {
        "learners": [{"learner": "aogd", "betta": 0.5}]
    },
    "learners.aogd.beta: 'half' is not a number": {"learners": [{"learner": "aogd", "beta": "half"}]},
    'learners.aogd.steps: \'concave\' is not one of "convex", "strongly convex"': {
        "learners": [{"learner": "aogd", "steps": ["convex", "concave"]}]
    },
    "learners: [] is not a list of values": {"learners": [{"learner": "aogd", "beta": []}]},
    'learners.role: \'best\' is not one of "paper", "fair", "own"': {"learners": [{"learner": "aogd", "role": "best"}]},
    "learners.read_off: 'loss' is not a measure": {"learners": [{"learner": "aogd", "read_off": {"loss": 3.0}}]},
    "two curves would be called 'a-ogd'": {"learners": [{"learner": "aogd"}, {"learner": "aogd"}]},
    "'comparator' cannot be used": {"learners": [{"learner": "aogd", "name": "Comparator"}]},
    "problem.name: is missing": {"problem": {"data": "sample"}},
    "problem.name: 'doubly' is not known (did you mean 'doubly_stochastic'?)": {"problem": {"name": "doubly"}},
    "problem.name: 'dsm' is not known. Choose from ['budgeted_logistic'": {"problem": {"name": "dsm"}},
    "problem.budget: 'low' is not a number": {"problem": {"name": "budgeted_logistic", "budget": "low"}},
    "problem.size: is not a parameter of 'budgeted_logistic'": {"problem": {"name": "budgeted_logistic", "size": 3}},
    "rounds: '200' is not a whole number": {"rounds": "200"},
    "rounds: 0 is not a whole number of at least 1": {"rounds": 0},
    "problem.size: True is not a whole number": {"problem": {"name": "doubly_stochastic", "size": True}},
    "record: 1 is too few": {"record": 1},
    "record: 2.5 is not a whole number": {"record": 2.5},
    'engine: \'torch\' is not one of "auto", "numpy", "jax"': {"engine": "torch"},
    "seeds: [1, 1] has a seed twice": {"seeds": [1, 1]},
    "seeds: 0 is not a whole number of at least 1": {"seeds": 0},
    "name: 3 is not text": {"name": 3},
    "two curves would be called 'm-w-0-0.6667'": {
        "learners": [{"learner": "penalised_ftrl", "name": "M", "w_0": [2 / 3, 0.66667]}]
    },
    "is too long for a file": {"learners": [{"learner": "aogd", "name": "x" * 201}]},
    "'' cannot be used": {"learners": [{"learner": "aogd", "name": "///"}]},
    "learners.aogd.beta: nan is neither text nor a finite number": {
        "learners": [{"learner": "aogd", "beta": math.nan}]
    },
    "problem.budget: inf is neither": {"problem": {"name": "budgeted_logistic", "budget": math.inf}},
    "learners.read_off.regret: 'low' is not a number": {
        "learners": [{"learner": "aogd", "read_off": {"regret": "low"}}]
    },
    "':f' cannot be imported": {"learners": [{"learner": ":f"}]},
    "'builtins:dict' is not a function with parameters": {"learners": [{"learner": "builtins:dict"}]},
    "'os:getcwd' does not take a problem": {"learners": [{"learner": "os:getcwd"}]},
    "cannot be imported": {"learners": [{"learner": "no_such_module:build"}]},
}


@pytest.mark.parametrize("wanted", CHANGES)
def test_errors_name_the_key(wanted):
    table = tomllib.loads(TOML) | CHANGES[wanted]
    with pytest.raises(InputError) as refused:
        spec_of({key: value for key, value in table.items() if value is not None})
    assert wanted in str(refused.value)


def test_files_without_a_specification_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_spec(tmp_path / "nothing.toml")
    for name, text in (("a.toml", "rounds = = 3"), ("b.json", "{}"), ("c.json", "{")):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match="is not a specification"):
            read_spec(tmp_path / name)


def test_impossible_options_of_the_paper_are_refused(tmp_path):
    for name, options, match in (
        ("dsm", Options(rho=3.0), "none of the chosen experiments has a budget"),
        ("dsm", Options(learners=("ogd-mahdavi-et-al-2012", "adam")), "'adam' is not a curve"),
        ("figure 5", Options(), "is not known"),
        ("dsm", Options(sequences=0), "sequences"),
        ("dsm", Options(beta=1.5), "outside"),
    ):
        with pytest.raises(InputError, match=match):
            paper_spec(name, options)
    assert [c.name for c in paper_spec("dsm", Options(learners=("OGD (Mahdavi et al. 2012)", "a-ogd"))).curves] == [
        "A-OGD",
        "OGD (Mahdavi et al. 2012)",
    ]


@pytest.mark.parametrize(("rounds", "record"), [(1, 2), (7, 40), (1000, 8), (581_012, 40)])
def test_recorded_rounds_begin_at_1_and_end_at_the_last(rounds, record):
    kept = recorded_rounds(rounds, record)
    assert kept[0] == 1
    assert kept[-1] == rounds
    assert np.all(np.diff(kept) > 0)
    assert len(kept) <= record
    if rounds > 1000:
        assert len(kept) >= 20


def test_slugs_are_file_names():
    assert slug("A-OGD, β = 0.5 / θ") == "a-ogd-beta-0.5-theta"
    assert slug("../../etc") == "etc"
    assert slug("学习者 1") == "学习者-1"
    names = [curve.name for curve in LearnerSpec("penalised_ftrl", {"w_0": [1e5, 1e-5, 1, -1]}).curves]
    assert len({slug(name) for name in names}) == 4


def test_errors_name_the_file(tmp_path):
    (tmp_path / "mine.toml").write_text("rouns = 3\n")
    with pytest.raises(InputError, match=r"mine\.toml: rouns: is not known \(did you mean 'rounds'\?\)"):
        read_spec(tmp_path / "mine.toml")


def test_the_title_is_the_name_or_the_problem():
    problem, learners = ProblemSpec("doubly_stochastic", {"size": 4}), (LearnerSpec("aogd"),)
    assert ExperimentSpec(problem, learners).title == "doubly stochastic, size = 4"
    assert ExperimentSpec(problem, learners, name="mine").title == "mine"
    assert ExperimentSpec(problem, learners, name="mine", title="Mine").title == "Mine"
