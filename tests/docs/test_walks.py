"""The design page names the files that a call really crosses."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "design.md").read_text(encoding="utf-8")
HEADINGS = {
    "run": "A round of `run`",
    "ask_and_tell": "`ask` and `tell`",
    "step_dense": "`step_dense`",
    "route_and_settle": "`route` and `settle`",
    "act": "`POST /act`",
    "reproduce": "`longterm reproduce dsm`",
}


@pytest.fixture(scope="module")
def walks():
    sys.path.insert(0, str(ROOT / "docs"))
    import walks

    sys.path.remove(str(ROOT / "docs"))
    return walks


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADINGS)
def test_a_walk_crosses_the_files_that_the_page_names(name, walks, tmp_path):
    for extra in {"step_dense": ("numba",), "act": ("fastapi",), "reproduce": ("cvxpy", "tyro")}.get(name, ()):
        pytest.importorskip(extra, reason="needs an extra")
    text = re.search(rf"^\*\*{re.escape(HEADINGS[name])}\.\*\*(.*?)(?=^\*\*|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert text is not None
    named = re.findall(r"`([\w/]+\.py)`", text[1])
    found = walks.crossed(walks.WALKS[name], tmp_path)
    assert named
    assert [file for file in named if file not in found] == []


def test_every_folder_has_a_row():
    folders = {path.parent.name for path in (ROOT / "src" / "longterm").glob("*/__init__.py")}
    rows = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert rows == folders
