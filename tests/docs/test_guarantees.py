"""docs/guarantees.md says of every learner what the package says of it."""

import inspect
import re
from pathlib import Path

import pytest

from longterm import bounds, learners
from longterm.engines.trace import Trace
from longterm.learners import AFTRL, DoublingRestarts, Learner, Need, Restarted, SinhaVaze, YuNeely
from longterm.problems import two_dimensional

PAGE = (Path(__file__).parents[2] / "docs" / "guarantees.md").read_text(encoding="utf-8")
PACKAGE = {
    name: thing
    for name, thing in vars(learners).items()
    if inspect.isclass(thing) and issubclass(thing, Learner) and not inspect.isabstract(thing)
}
WRAPPERS = {"Restarted", "DoublingRestarts"}


def table(first_cell: str) -> list[list[str]]:
    """The rows of the table whose first heading this is."""
    after = PAGE.split(f"\n| {first_cell} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in after]


ROWS = {row[0].strip("` "): row[1:] for row in table("learner")}
ENTRIES = dict(re.findall(r"^### `(\w+)`\n\n(.*?)(?=^##|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))


def words(need: Need) -> str:
    return need.name.lower().replace("_", " ")


def test_every_learner_has_one_row_and_one_entry():
    assert PACKAGE.keys() == ROWS.keys() == ENTRIES.keys()
    assert len(table("learner")) == len(ROWS)


def test_words_are_explained():
    assert {row[0]: row[1] for row in table("word | `learner.needs` in full")} == {
        words(need): need.value for need in Need
    }
    measures = {row[0]: row[2].strip("`") for row in table("word | sum")}
    assert all(hasattr(Trace, name) or name in Trace.__dataclass_fields__ for name in measures.values())
    for name, (_, _, violation, _) in ROWS.items():
        assert name in WRAPPERS or set(violation.split(", ")) <= measures.keys(), name


@pytest.mark.parametrize("name", sorted(ROWS.keys() - WRAPPERS))
def test_needs(name):
    stated = set(ROWS[name][1].split(", ")) - {"–"}
    assert stated == {words(need) for need in PACKAGE[name].needs}


def test_needs_of_learners_around_learners():
    problem = two_dimensional()
    inner = AFTRL.for_problem(problem)
    assert ROWS["Restarted"][1] == "those of the learner in it"
    assert Restarted(inner, every=10).needs == inner.needs
    assert ROWS["DoublingRestarts"][1] == "those of the learner in it, but for the horizon"
    for one in (YuNeely.for_problem(problem, horizon=1), SinhaVaze.for_problem(problem, horizon=1)):
        assert DoublingRestarts(one).needs == one.needs - {Need.HORIZON}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_whether_the_number_of_rounds_must_be_known(name):
    """By the ways to build it: each asks for the rounds, or none does."""
    built = [
        member for key, member in inspect.getmembers(PACKAGE[name], inspect.ismethod) if not key.startswith("_")
    ] or [PACKAGE[name]]
    asks = [bool({"horizon", "rounds"} & inspect.signature(way).parameters.keys()) for way in built]
    assert asks == [ROWS[name][0] == "known"] * len(built)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_functions_named_are_theorems_of_the_package(name):
    named = set(re.findall(r"`(\w+)`", ROWS[name][3]))
    assert named
    assert named <= set(bounds.__all__)


def test_every_theorem_is_named():
    helpers = {"Bound", "gradient_bound_under_delay", "theorem_1_as_printed"}
    named = {word for row in ROWS.values() for word in re.findall(r"`(\w+)`", row[3])}
    assert set(bounds.__all__) - helpers <= named


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_an_entry_says_all_that_it_should(name):
    entry = ENTRIES[name]
    assert "*Assumes*" in entry
    assert re.search(r"\*Promises[^*]*\*", entry)
    assert re.search(r"^    .*[≤=]", entry, flags=re.MULTILINE), "no formula"
    assert "*Not promised*" in entry
    assert ("**hard**" in entry) == ("hard" in ROWS[name][2])
