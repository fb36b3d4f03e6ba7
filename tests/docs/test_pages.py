"""Run the code of the pages: each block prints what the page says, and each figure is the one that the page shows."""

import contextlib
import importlib.util
import io
import re
import runpy
from pathlib import Path

import pytest

from same_output import assert_same_output

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n((?:    [^\n]*\n)+))?", re.MULTILINE | re.DOTALL)
RUN_ELSEWHERE = {
    "guides/service.md",  # tests/server/test_guide.py
    "guides/litellm.md",  # tests/compat/test_litellm_ledger.py
    "guides/problems.md",  # tests/catalogue/test_scenarios.py
    "guides/experiments.md",  # tests/cli/test_cli.py
    "tutorials/own_algorithm.md",  # tests/learners/test_outside.py
}
GENERATED = {"_build", "api", "gallery_pages"}
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if not GENERATED & set(page.relative_to(DOCS).parts)
    and str(page.relative_to(DOCS)) not in RUN_ELSEWHERE
    and BLOCK.search(page.read_text(encoding="utf-8"))
)
NEEDS = {
    "linear_model": "numba",
    "BudgetLinear": "numba",
    "matplotlib": "matplotlib",
    "load_table": "pandas",
    "learn_files": "pyarrow",
    "import torch": "torch",
}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_of_a_page_prints_what_it_says(page, tmp_path, monkeypatch):
    text = page.read_text(encoding="utf-8")
    for word, module in NEEDS.items():
        if word in text:
            pytest.importorskip(module, reason=f"the page uses {word}")
    monkeypatch.chdir(tmp_path)
    figures = page_figures() if "matplotlib" in text else None
    names: dict[str, object] = {"__name__": page.stem}
    with figures.collected() if figures else contextlib.nullcontext({}) as drawn:
        for code, wanted in BLOCK.findall(text):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, str(page), "exec"), names)
            if wanted:
                assert_same_output(printed.getvalue(), wanted)
    for name, description in drawn.items():
        changed = figures.differences(figures.committed(name), description)
        assert changed == [], f"{name} is out of date: run python docs/page_figures.py {page.relative_to(DOCS.parent)}"


def page_figures():
    """The script that draws the figures of the pages, which needs Matplotlib."""
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("page_figures", DOCS / "page_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_page_shows_the_figures_that_its_code_draws():
    figures = page_figures()
    for page in figures.pages():
        assert figures.shown(page) == figures.saved(page), page
    drawn = [name for page in figures.pages() for name in figures.saved(page)]
    drawn += [name for script in SCRIPTS for name in figures.SAVED.findall((DOCS / script).read_text(encoding="utf-8"))]
    assert sorted(drawn) == sorted(path.name for path in figures.FOLDER.iterdir())
    shown = [*figures.shown(DOCS / "explanation" / "concepts.md"), *figures.shown(DOCS.parent / "README.md")]
    assert set(shown) == set(drawn) - {name for page in figures.pages() for name in figures.saved(page)}


SCRIPTS = ("concept_figures.py", "figure.py")
"""The scripts whose figures are drawn by no page's code."""


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_figures_of_a_script_are_up_to_date(script, monkeypatch):
    figures = page_figures()
    monkeypatch.syspath_prepend(str(DOCS))
    drawn = runpy.run_path(str(DOCS / script))["DRAWN"]
    with figures.collected() as found:
        for draw in drawn:
            draw()
    assert len(found) == len(drawn)
    for name, description in found.items():
        assert figures.differences(figures.committed(name), description) == [], f"run python docs/{script}"


def test_a_figure_with_other_numbers_is_noticed():
    figures = page_figures()
    pyplot = pytest.importorskip("matplotlib.pyplot")

    def of(values, label="loss"):
        with figures.collected() as found:
            drawing, axes = pyplot.subplots()
            axes.plot(values)
            axes.set_ylabel(label)
            drawing.savefig("one.svg")
        return found["one.svg"]

    old = of([1.0, 2.0, 10.0])
    assert figures.differences(old, of([1.0, 2.1, 10.0])) == []  # another processor
    assert figures.differences(old, of([1.0, 2.0, 12.0])) != []
    assert figures.differences(old, of([1.0, 2.0, 10.0], label="regret")) != []


def test_the_comparison_notices_a_wrong_number():
    assert_same_output("spent 1,003 of 2,000", "spent 1,001 of 2,000")
    with pytest.raises(AssertionError):
        assert_same_output("spent 1,003", "spent 1,303")
    with pytest.raises(AssertionError):
        assert_same_output("spent 1", "won 1")
