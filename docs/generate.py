"""Write the tables that are read off the learners into the pages: python docs/generate.py (make tables).

A page holds a table between two comments, <!-- learners --> and <!-- end -->; a test says when one is stale.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from longterm.learners import Learner, Need, every_learner
from longterm.theory.bounds import MEASURES

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "docs" / "proofs" / "guarantees.md",)
WORDS = dict(zip(MEASURES, ("regret", "signed", "hard", "squared", "long-term"), strict=True))
"""The measures, as the tables call them."""


def table_of_learners() -> str:
    """One row for each learner: what it needs, and what its theorem promises."""
    rows = ["| learner | T | needs | regret | violation |", "|---|---|---|---|---|"]
    return "\n".join(rows + [_row(learner) for learner in every_learner()])


def _row(learner: type[Learner[Any]]) -> str:
    known = "known" if "horizon" in inspect.signature(learner.for_problem).parameters else "every"
    needs = ", ".join(sorted(_words(need) for need in learner.needs)) or "–"
    promises = dict(learner.promises)
    regret = promises.pop("regret", "–")
    violation = "; ".join(f"{WORDS.get(measure, measure)} {order}" for measure, order in promises.items()) or "–"
    return f"| `{learner.__name__}` | {known} | {needs} | {regret} | {violation} |"


def _words(need: Need) -> str:
    return need.name.lower().replace("_", " ")


def with_tables(page: str) -> str:
    """The page with its tables as they should be."""
    return re.sub(
        r"(<!-- learners -->\n).*?(<!-- end -->)",
        lambda m: f"{m[1]}\n{table_of_learners()}\n\n{m[2]}",
        page,
        flags=re.DOTALL,
    )


def main() -> None:
    """Rewrite the pages."""
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
