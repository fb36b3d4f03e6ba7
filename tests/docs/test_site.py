"""The reference of the site has every public name, and the gallery a page for each thing it promises."""

import contextlib
import importlib
import inspect
import pkgutil
import re
import runpy
from pathlib import Path

import pytest

import longterm

ROOT = Path(__file__).parents[2]
REFERENCE = runpy.run_path(str(ROOT / "docs" / "reference.py"))
GALLERY = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))


def rooms() -> list[str]:
    """Every package and module directly in the library that says what it shows."""
    names = [one.name for one in pkgutil.iter_modules(longterm.__path__) if not one.name.startswith("_")]
    found = [importlib.import_module(f"longterm.{name}") for name in names]
    return [module.__name__ for module in found if getattr(module, "__all__", None)]


@pytest.mark.parametrize("room", ["longterm", *rooms()])
def test_every_public_name_has_a_place(room):
    module = importlib.import_module(room)
    assert room in REFERENCE["modules"](), room
    page = REFERENCE["page_of"](module, REFERENCE["home_of"]())
    listed = set(re.findall(r"^(?:   ~?|- :doc:`)(?:[\w.]+\.)?(\w+)(?:`:.*)?$", page, flags=re.MULTILINE))
    assert set(module.__all__) <= listed


def test_the_page_of_a_learner_has_its_statement_in_paragraphs():
    learners = importlib.import_module("longterm.learners")
    page = REFERENCE["entry_of"]("longterm.learners.AFTRL", learners.AFTRL, REFERENCE["home_of"]())
    starts = ("**Needs**: ", "**Guarantees**: ", "**Proof**: :doc:`/proofs/aftrl`", "**Not promised**: ")
    places = [page.index(f"\n\n{start}") for start in starts]
    assert places == sorted(places)
    assert max(places) < page.index(".. autoclass::")  # before the parameters
    assert ":py:obj:`~longterm.learners.Learner.ask`" in page  # a method is linked to the class that documents it


def test_signatures_and_examples_show_what_a_reader_would_write():
    homes = REFERENCE["home_of"]()
    for name, module in REFERENCE["modules"]().items():
        for public in (one for group in REFERENCE["groups_of"](module, homes).values() for one in group):
            thing = getattr(module, public)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                with contextlib.suppress(ValueError):  # a class of errors has none
                    found = inspect.signature(thing)
                    plain = [one.replace(annotation=one.empty) for one in found.parameters.values()]
                    signature = REFERENCE["signature_of"](thing, str(inspect.Signature(plain)))
                    odd = re.search(r"<factory>|np\.(True|False)_|<function|0x[0-9a-f]{6}", signature)
                    assert odd is None, (name, public)
            assert not re.search(r"np\.(True|False)_", inspect.getdoc(thing) or ""), (name, public)


def test_stressed_words_of_a_statement_stay_stressed_and_decisions_keep_their_asterisk():
    assert REFERENCE["inline"]("against a *mixture* of x* and g(x*)") == r"against a *mixture* of x\* and g(x\*)"
    assert REFERENCE["inline"]("*Beyond the\nroot* of T") == "*Beyond the\nroot* of T"


WRITTEN = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if not {"_build", "api", "gallery_pages"} & set(page.relative_to(ROOT / "docs").parts)
)


def contents(page: Path) -> list[Path]:
    """The pages in a page's table of contents."""
    text = "".join(re.findall(r"^```{toctree}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    names = [line for line in text.splitlines() if line and not line.startswith(":")]
    return [(page.parent / f"{name}.md").resolve() for name in names]


def test_every_page_is_in_the_contents_of_one_other():
    """Sphinx warns of one that is not, minutes later; `make docs` takes that for an error."""
    listed = [inside for page in WRITTEN for inside in contents(page)]
    assert sorted(page.name for page in WRITTEN if listed.count(page.resolve()) != 1) == ["index.md"]


def test_the_sidebar_has_seven_groups():
    assert len(contents(ROOT / "docs" / "index.md")) == 7


MANY_JOBS = {"coming_from": 900, "beyond_one_machine": 900, "operating": 800}
"""The words of pages that answer several questions: eight tools or engines, one job each; access, limits, health."""


@pytest.mark.parametrize(
    "page", [page for page in WRITTEN if page.parent.name in ("guides", "tutorials")], ids=lambda page: page.stem
)
def test_a_guide_or_tutorial_has_at_most_700_words(page):
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert len(prose.split()) <= MANY_JOBS.get(page.stem, 700)


def test_pages_run_elsewhere_are_run_by_the_tests_of_make_docs():
    tests = re.search(r"RUN_PAGES := (.*?)\nDOCTESTS", (ROOT / "Makefile").read_text(encoding="utf-8"), re.DOTALL)[1]
    others = [name for name in re.findall(r"\S+\.py", tests) if not name.endswith("test_pages.py")]
    run = "".join((ROOT / name).read_text(encoding="utf-8") for name in others)
    elsewhere = runpy.run_path(str(Path(__file__).parent / "test_pages.py"))["RUN_ELSEWHERE"]
    assert [page for page in elsewhere if Path(page).name not in run] == []


def test_the_command_line_is_told_in_full():
    page = REFERENCE["command_line"]()
    for command in ("reproduce", "run", "arena", "report", "data", "catalogue"):
        assert f"## longterm {command}" in page
    assert "--add" in page


def test_the_gallery_has_ten_pages_that_say_what_they_assume_and_where_to_go():
    assert len(GALLERY) >= 10
    for page in GALLERY:
        text = page.read_text(encoding="utf-8")
        assert "Assumes " in text, page.name
        assert ":doc:`/" in text, page.name


@pytest.mark.slow
@pytest.mark.parametrize("page", GALLERY, ids=lambda page: page.stem)
def test_a_page_of_the_gallery_runs(page, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    runpy.run_path(str(page), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", [ROOT / "README.md", *WRITTEN], ids=lambda page: page.stem)
def test_python_on_a_page_has_lines_of_at_most_88_columns(page):
    """Wider lines wrap in the middle of an expression, on a laptop and in the README."""
    blocks = re.findall(
        r"^```(?:python|\{code-block\} python)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S
    )
    assert [line for block in blocks for line in block.splitlines() if len(line) > 88] == []
