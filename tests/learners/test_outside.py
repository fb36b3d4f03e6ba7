"""A method and a problem of another package, as docs/tutorials/own_algorithm.md has them, take part in everything."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import longterm
from longterm.problems.streams import NoisyTargets
from longterm.testing import check_learner

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "tutorials" / "own_algorithm.md").read_text(encoding="utf-8"), re.DOTALL
)
SHORTEST, METHOD, TESTS, PROBLEM = BLOCKS
POINTS = """[longterm.learners]
exact_penalty = exact_penalty:build

[longterm.problems]
wall = wall:wall
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder as pip leaves it: two modules, and what their package says of itself."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "exact_penalty.py").write_text(METHOD)
    (folder / "wall.py").write_text(PROBLEM)
    (folder / "test_exact_penalty.py").write_text(TESTS)
    about = folder / "exact_penalty-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: exact-penalty\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    return folder


@pytest.fixture
def here(site, tmp_path, monkeypatch):
    source = Path(longterm.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{site}:{source}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def longterm_says(*arguments):
    done = subprocess.run([sys.executable, "-m", "longterm", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_learner_needs_update_alone(capsys):
    names = {"__name__": "shortest"}
    exec(SHORTEST, names)
    assert capsys.readouterr().out == "[0.09 0.1 ]\n"
    assert len([line for line in SHORTEST[: SHORTEST.index("problem =")].splitlines() if line]) <= 13
    learner, problem = names["learner"], names["problem"]
    check_learner(problem, learner, NoisyTargets([0.5, 0.2], spread=0.2))


@pytest.mark.slow
def test_it_passes_the_common_battery(site, here):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(site / "test_exact_penalty.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "7 passed" in done.stdout


@pytest.mark.slow
def test_it_is_in_the_catalogue_and_in_the_arena(here):
    said = longterm_says("catalogue")
    assert "exact_penalty(price=2.0)\n      Gradient descent with an exact penalty." in said
    options = ["--learners", "exact_penalty", "aogd", "--problems", "wall", "routing", "--rounds", "256"]
    said = longterm_says("arena", *options, "--sequences", "2", "--workers", "1", "--out", "arena")
    assert "exact_penalty" in said
    assert "2/2" in said
    page = (here / "arena" / "arena.html").read_text()
    assert page.count("exact_penalty") > 3
    assert ">Wall</h2>" in page


@pytest.mark.slow
def test_it_runs_and_is_reported(here):
    options = ["--problem", "wall distance=0.5", "--learners", "exact_penalty price=[1,4]", "aogd", "--rounds", "200"]
    said = longterm_says("run", *options, "--sequences", "2", "--workers", "1", "--out", "mine")
    assert "exact_penalty, price = 4" in said
    assert "exact_penalty, price = 4" in (here / "mine" / "report.html").read_text()


@pytest.mark.slow
def test_by_module_and_function(here):
    options = ["--learners", "exact_penalty:build price=1", "--problems", "wall:wall", "--rounds", "64"]
    assert "exact_penalty:build, price = 1" in longterm_says(
        "arena", *options, "--sequences", "1", "--workers", "1", "--out", "arena", "--no-report"
    )
