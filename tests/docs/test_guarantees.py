"""docs/proofs/guarantees.md says of every learner what the package says of it."""

import inspect
import re
from pathlib import Path

import pytest

from longterm import learners
from longterm.engines.trace import Trace
from longterm.learners import AFTRL, DoublingRestarts, Learner, Need, Restarted, SinhaVaze, YuNeely
from longterm.problems import two_dimensional

PAGE = (Path(__file__).parents[2] / "docs" / "proofs" / "guarantees.md").read_text(encoding="utf-8")
PACKAGE = {
    name: thing
    for name, thing in vars(learners).items()
    if inspect.isclass(thing) and issubclass(thing, Learner) and thing.name
}


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


def test_needs_of_learners_around_learners():
    problem = two_dimensional()
    inner = AFTRL.for_problem(problem)
    assert Restarted(inner, every=10).needs == inner.needs
    for one in (YuNeely.for_problem(problem, horizon=1), SinhaVaze.for_problem(problem, horizon=1)):
        assert DoublingRestarts(one).needs == one.needs - {Need.HORIZON}


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_an_entry_says_all_that_it_should(name):
    entry = ENTRIES[name]
    assert "*Assumes*" in entry
    assert re.search(r"\*Promises[^*]*\*", entry)
    assert re.search(r"^\$\$\n.*?(\\le|=).*?^\$\$", entry, flags=re.MULTILINE | re.DOTALL), "no formula"
    assert "*Not promised*" in entry
    promised = "hard_violation" in PACKAGE[name].promises
    assert promised or "**hard**" not in entry
