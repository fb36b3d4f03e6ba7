"""Files of a release agree with the package."""

import importlib.util
import re
import runpy
import tomllib
from pathlib import Path

import longterm

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_badges_are_those_of_the_project():
    spec = importlib.util.spec_from_file_location("badges", ROOT / "docs" / "badges.py")
    badges = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(badges)
    readme = (ROOT / "README.md").read_text()
    for name, text in badges.badges().items():
        path = badges.FOLDER / f"{name}.svg"
        assert path.read_text(encoding="utf-8") == text, "run python docs/badges.py"
        assert str(path.relative_to(ROOT)) in readme


def test_one_version_everywhere():
    assert f"version: {longterm.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f'version: "{longterm.__version__}"\n' in (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    assert f"## {longterm.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_the_date_of_the_release_is_that_of_the_changelog():
    heading = rf"^## {re.escape(longterm.__version__)} \((.+)\)$"
    dates = re.findall(heading, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = re.findall(r"^date-released: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert len(dates) == 1
    assert cited == [date for date in dates if date != "unreleased"]


def test_the_recipe_asks_for_the_dependencies_of_the_package():
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("  run_constraints:")[0]
    asked = set(re.findall(r"- (\S+) (>=\S+)", run)) - {("python", PROJECT["requires-python"])}
    assert asked == {re.fullmatch(r"([\w-]+)(>=\S+)", one).groups() for one in PROJECT["dependencies"]}


def test_the_address_stands_in_one_place_and_makes_every_link_of_the_readme_absolute():
    build = runpy.run_path(str(ROOT / "hatch_build.py"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = build["with_address"](readme, "https://example.org/longterm", "1.2.3")
    linked = re.findall(r"\]\(([^)]+)\)", text)
    assert len(linked) == len(re.findall(r"\]\(([^)]+)\)", readme))
    assert [link for link in linked if not link.startswith(("https://", "http://"))] == []
    assert "](https://example.org/longterm/raw/v1.2.3/docs/_static/demo_spending.png)" in text
    assert build["with_address"](readme, "", "1.2.3") == readme
    assert build["links"]("", "1.2.3") == {}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    named = re.search(r'^repository-code: "(.+)"$', (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert (named[1] if named else "") == settings["address"]
