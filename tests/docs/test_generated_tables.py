"""The tables of the docs are read off the learners."""

import runpy
from pathlib import Path

GENERATE = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "generate.py"))


def test_tables_are_not_stale():
    for path in GENERATE["PAGES"]:
        page = path.read_text(encoding="utf-8")
        assert "<!-- learners -->" in page
        assert GENERATE["with_tables"](page) == page, f"{path.name} is stale: make tables"


def test_every_learner_with_a_name_says_what_it_promises():
    for learner in GENERATE["every_learner"]():
        assert learner.promises, learner.__name__
        assert set(learner.promises) <= {*GENERATE["MEASURES"], "every round"}, learner.__name__
