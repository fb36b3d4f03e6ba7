"""What the pages and the docstrings point to exists: files, headings, names of the package."""

import contextlib
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

import longterm
from longterm import learners
from longterm.catalogue import scenarios

ROOT = Path(__file__).parents[2]
WRITTEN = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if not {"_build", "api", "gallery_pages"} & set(page.relative_to(ROOT / "docs").parts)
)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *WRITTEN]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
NAMED = [*PAGES, *SOURCES]
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
DOTTED = re.compile(r"`(?:python -m )?(longterm(?:\.\w+)+)")
SCENARIO = re.compile(r"`scenarios\.(\w+)")
DOCUMENT = re.compile(r"(?<![./\w])(docs/[\w/]+\.(?:md|py)|(?:tests|benchmarks|examples)/[\w/]+\.py)")


def found(pattern: re.Pattern[str], path: Path) -> list[str]:
    return sorted(set(pattern.findall(path.read_text(encoding="utf-8"))))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings: lower case, without punctuation, hyphens for spaces."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def resolve(name: str) -> object:
    """A module, or what is found in one by its dotted name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        except ImportError:  # of an extra that is not installed: the module or its parent exists
            with contextlib.suppress(ImportError):
                return importlib.util.find_spec(".".join(parts[:length]))
            return importlib.util.find_spec(".".join(parts[: length - 1]))
        for part in parts[length:]:
            thing = getattr(thing, part)
        return thing
    raise ModuleNotFoundError(name)


def dead_links(page: Path) -> list[str]:
    dead = []
    for link in found(LINK, page):
        if link.startswith(("https://", "http://")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    return dead


def unknown_names(path: Path) -> list[str]:
    unknown = []
    for name in found(DOTTED, path):
        try:
            resolve(name)
        except (ModuleNotFoundError, AttributeError):
            unknown.append(name)
    return unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page):
    assert dead_links(page) == []


@pytest.mark.parametrize("path", NAMED, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_things_exist(path):
    assert unknown_names(path) == []
    assert [name for name in found(SCENARIO, path) if name != "SCENARIOS" and name not in scenarios.SCENARIOS] == []
    assert [name for name in found(DOCUMENT, path) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_constructors_named_in_pages_exist(page):
    """`AOGD.for_problem` and the like: a class of the package, and something it has."""
    calls = re.findall(r"`([A-Z]\w+)\.(\w+)", page.read_text(encoding="utf-8"))
    classes = {name: thing for module in (longterm, learners) for name, thing in vars(module).items()}
    assert [
        f"{name}.{member}"
        for name, member in calls
        if isinstance(classes.get(name), type) and member not in {*dir(classes[name]), *classes[name].__annotations__}
    ] == []


def test_every_page_is_reachable_from_the_readme_or_another_page():
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in PAGES
        for link in found(LINK, page)
        if not link.startswith("http") and link.partition("#")[0]
    }
    assert [page.name for page in PAGES[2:] if page.resolve() not in linked] == []


def test_the_checks_notice_what_is_dead(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A, b's c\n[x](nowhere.md) [y](#a-bs-c) [z](#d) `longterm.nothing` `longterm.run(…)`\n")
    assert dead_links(page) == ["#d", "nowhere.md"]
    assert unknown_names(page) == ["longterm.nothing"]
