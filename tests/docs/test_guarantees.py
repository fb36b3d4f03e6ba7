"""The page of guarantees is read off the learners, and each learner states what the page needs."""

import inspect
import re
import runpy
from pathlib import Path

import pytest

from longterm.learners import AFTRL, DoublingRestarts, Restarted, SinhaVaze, YuNeely, every_learner
from longterm.learners.interface.needs import Need
from longterm.problems import two_dimensional

DOCS = Path(__file__).parents[2] / "docs"
GENERATE = runpy.run_path(str(DOCS / "generate.py"))
LEARNERS = {learner.__name__: learner for learner in every_learner()}


def test_the_page_includes_what_is_generated(tmp_path):
    GENERATE["write"](tmp_path)
    page = (DOCS / "proofs" / "guarantees.md").read_text(encoding="utf-8")
    included = re.findall(r"\{include\} \.\./reference/api/tables/(\w+\.md)", page)
    assert set(included) == {path.name for path in tmp_path.iterdir()}


def test_every_learner_has_one_row():
    rows = GENERATE["table_of_learners"]().splitlines()[2:]
    named = [re.search(r"~longterm\.learners\.(\w+)`", row)[1] for row in rows]
    assert sorted(named) == sorted(LEARNERS)
    assert all(row.count(" | ") == 4 for row in rows), "a bar in a cell"


def test_every_need_is_explained():
    rows = GENERATE["table_of_needs"]().splitlines()[2:]
    assert [row.split(" | ")[1].rstrip(" |") for row in rows] == [need.value for need in Need]


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_a_learner_says_all_that_it_should(name):
    learner = LEARNERS[name]
    assert learner.promises
    assert set(learner.promises) <= {*GENERATE["MEASURES"], "every round"}
    horizon = inspect.signature(learner.for_problem).parameters.get("horizon")
    required = horizon is not None and horizon.default is horizon.empty  # a preset alone may need it
    assert (Need.HORIZON in learner.needs) == required
    statement = GENERATE["statement_of"](learner)
    assert "Not promised:" in statement
    assert "hard_violation" in learner.promises or "**hard**" not in statement
    pages = [(DOCS / "proofs" / f"{page}.md").read_text(encoding="utf-8") for page in GENERATE["proofs_of"](learner)]
    assert pages, "name the page of the proof: docs/proofs/….md"
    assert any(f"`{name}" in page for page in pages)


@pytest.mark.parametrize(
    ("promise", "latex"),
    [
        ("O(T^max(β, 1−β)), O(log T)", r"$O(T^{\max(\beta, 1-\beta)})$, $O(\log T)$"),
        ("Õ(√(T(1 + P)) T^(3/4)) for a fixed g", r"$\tilde O(\sqrt{T(1 + P)} T^{3/4})$ for a fixed g"),
        ("hard 0", "hard 0"),
    ],
)
def test_orders_are_typeset(promise, latex):
    assert GENERATE["typeset"](promise) == latex


def test_needs_of_learners_around_learners():
    problem = two_dimensional()
    inner = AFTRL.for_problem(problem)
    assert Restarted(inner, every=10).needs == inner.needs
    for one in (YuNeely.for_problem(problem, horizon=1), SinhaVaze.for_problem(problem, horizon=1)):
        assert DoublingRestarts(one).needs == one.needs - {Need.HORIZON}
