"""Files of a release agree with the package."""

import importlib.util
import re
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


def test_the_recipe_asks_for_the_dependencies_of_the_package():
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("  run_constraints:")[0]
    asked = set(re.findall(r"- (\S+) (>=\S+)", run)) - {("python", PROJECT["requires-python"])}
    assert asked == {re.fullmatch(r"([\w-]+)(>=\S+)", one).groups() for one in PROJECT["dependencies"]}
